# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The promise of rows of `filter`, checked against the raw rows that the run read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.row_release import (
    ATTRIBUTE,
    NOBODY,
    TIME,
    UNKNOWN,
    USER,
    ShownRows,
    numbers_of,
    read_release,
    spelled,
)
from zanon_net.audit.raw.row_source import (
    JSON_MARK,
    NOTHING,
    Indices,
    Numbers,
    RawRows,
    RowRules,
    read_rows,
)
from zanon_net.audit.raw.row_sums import row_sums
from zanon_net.audit.raw.row_traces import Forbidden, in_folder
from zanon_net.errors import ConfigError, FormatError

COVER_LEAST = 0.999  # of the release's time
ENDINGS = (".csv", ".jsonl", ".parquet", ".gz", ".zst")
Flags = NDArray[np.bool_]


@dataclass(slots=True)
class Groups:
    """Raw rows with equal keys: their number, their users, and the count at their time.

    users: the most users in the window. low, high: the smallest and largest number of a user.
    is_late: true if a row has the pseudonym of a later epoch than its own.
    """

    keys: Numbers
    sizes: Numbers
    users: Indices
    low: Indices
    high: Indices
    is_late: Flags

    @classmethod
    def of(cls, keys: Numbers, counts: Indices, users: Indices, late: Flags) -> "Groups":
        """Returns the groups of rows by their keys."""
        order = np.argsort(keys, kind="stable")
        found, first, sizes = np.unique(keys[order], return_index=True, return_counts=True)
        if not len(found):
            return cls(found, sizes, counts[:0], users[:0], users[:0], late[:0])
        return cls(
            found,
            sizes,
            np.maximum.reduceat(counts[order], first),
            np.minimum.reduceat(users[order], first),
            np.maximum.reduceat(users[order], first),
            np.logical_or.reduceat(late[order], first),
        )

    def places(self, keys: Numbers) -> Numbers:
        """Returns the place of each key; -1 for a key that no raw row has."""
        if not len(self.keys):
            return np.full(len(keys), -1, np.int64)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, -1)


def check_rows(
    folder: Path,
    manifest: Mapping[str, Any],
    sources: Sequence[Path],
    *,
    never: Sequence[str] = (),
    memory: int = 2 << 30,
    threads: int = 1,
) -> "RowCheck":
    """Checks the rows that `filter` wrote into a folder.

    Raises ConfigError for raw rows of another run, FormatError for rows that have no check.
    """
    rules = RowRules.of(manifest, never)
    path = release_of(folder, sources)
    raw = read_rows(sources, rules, memory // 2, threads)
    refuse_other_time(manifest, raw)
    return RowCheck(path, manifest, rules, raw, read_release(path, rules, raw, memory // 4))


def release_of(folder: Path, sources: Sequence[Path]) -> Path:
    """Returns the only file of rows in a folder."""
    if len({path.resolve() for path in sources}) < len(sources):
        raise ConfigError("raw: a file of raw rows is given twice")
    if not folder.is_dir():
        folder = folder.parent
    inside = folder.resolve()
    if any(path.resolve().is_relative_to(inside) for path in sources):
        raise ConfigError("raw: the raw rows are in the folder of the release; move them out of it")
    found = [path for path in sorted(folder.iterdir()) if path.suffix in ENDINGS]
    if len(found) != 1:
        raise FormatError(
            f"{folder}: it has {len(found)} files of rows, and a manifest of filter is about one"
        )
    return found[0]


def refuse_other_time(manifest: Mapping[str, Any], raw: RawRows) -> None:
    """Raises ConfigError if the raw rows do not cover the time of the release."""
    span = manifest["time_range"]
    if not span:
        return
    first, last = span["first_ns"], span["last_ns"]
    share = 0.0
    if raw.first_ns is not None and raw.last_ns is not None:
        common = min(last, raw.last_ns) - max(first, raw.first_ns)
        share = float(common >= 0) if last == first else max(common, 0) / (last - first)
    if share < COVER_LEAST:
        raise ConfigError(
            f"raw: the raw rows cover {share:.1%} of the release's time; give all files of the run"
        )


class RowCheck:
    """All checks of the rows of one run."""

    def __init__(
        self,
        path: Path,
        manifest: Mapping[str, Any],
        rules: RowRules,
        raw: RawRows,
        shown: ShownRows,
    ) -> None:
        self._path, self._manifest, self._rules = path, manifest, rules
        self._raw, self._shown = raw, shown
        self._is_proven = raw.dropped <= sum(manifest["rows"]["dropped"].values())
        self._times = np.unique(raw.t_ns)
        self._own = canonical(rules, raw)
        late = late_rows(rules, raw)
        named = raw.names != NOTHING
        keys = self._keys(self._own[raw.names[named]], raw.t_ns[named])
        self._exposed = Groups.of(keys, raw.counts[named], raw.users[named], late[named])
        self._at = Groups.of(raw.t_ns, raw.counts, raw.users, late)
        self.claims = int(np.sum(shown.names != NOTHING))
        self._kept = np.zeros(len(shown.names), bool)  # rows whose attribute may be shown
        self.left_out: list[tuple[str, str]] = []

    def run(self) -> list[Finding]:
        """Returns all findings, and fills `left_out`."""
        found = [*self._shown.findings, *self._names(), *self._reasons()]
        found += self._without_row()
        if self._rules.has_user:
            found += self._pseudonyms()
        found += self._traces()
        found += row_sums(self._manifest, self._rules, self._raw, self._shown)
        if self._rules.never_count and not self._rules.never:
            reason = "attributes never to release: give the run's file (--never)"
            self.left_out.append(("reasons", reason))
        if self._rules.passed:
            reason = f"{len(self._rules.passed)} columns of --pass, which may have any text"
            self.left_out += [("addresses", reason), ("hidden", reason)]
        if self._manifest["interrupted"]:
            self.left_out.append(("sums", "the run was interrupted, so it did not read all rows"))
        return found

    def note(self, unproven: int) -> str:
        """Returns sentences with the numbers of rows read and of attributes not confirmed."""
        return (
            f"The audit read {self._raw.read:,} raw rows, and could not read"
            f" {self._raw.dropped:,} of them. It could not confirm {unproven:,} of"
            f" {self.claims:,} shown attributes."
        )

    def _keys(self, names: Indices, t_ns: Numbers) -> Numbers:
        """Returns a number for each pair of an attribute and a time; -1 if no raw row has the
        time."""
        if not len(self._times):
            return np.full(len(names), -1, np.int64)
        places = np.minimum(np.searchsorted(self._times, t_ns), len(self._times) - 1)
        keys = names.astype(np.int64) * len(self._times) + places
        return np.where(self._times[places] == t_ns, keys, -1)

    def _finding(
        self, check: str, at: int, column: str, measured: float, needed: float, detail: str = ""
    ) -> Finding:
        """Returns a finding about a row of the release, by its place."""
        row = int(self._shown.rows[at])
        file = self._path.name
        return Finding(check, file, row, column, measured, needed, detail, self._is_proven)

    def _text(self, at: int) -> str:
        """Returns the attribute of a row of the release."""
        if at in self._shown.strange:
            return self._shown.strange[at]
        text: str = self._raw.attributes.texts[self._shown.names[at]]
        return text.removeprefix(JSON_MARK)

    def _names(self) -> Iterator[Finding]:
        """Yields the attributes that fewer than z users shared, or that no raw row exposed."""
        claims = np.flatnonzero(self._shown.names != NOTHING)
        names = self._shown.names[claims]
        keys = self._keys(names, self._shown.t_ns[claims])
        places = self._exposed.places(np.where(names == UNKNOWN, -1, keys))
        places[names == UNKNOWN] = -1
        again = occurrences(keys)
        sizes = at_places(self._exposed.sizes, places)
        users = at_places(self._exposed.users, places)
        self._kept[claims] = (again < sizes) & (users >= self._rules.z)
        for at in np.flatnonzero(~self._kept[claims]):
            row = int(claims[at])
            if again[at] >= sizes[at]:
                measured, needed = int(sizes[at]), int(again[at]) + 1
            else:
                measured, needed = int(users[at]), self._rules.z
            yield self._finding("names", row, ATTRIBUTE, measured, needed, self._text(row))

    def _reasons(self) -> Iterator[Finding]:
        """Yields the attributes that may never be released."""
        if not self._rules.never:
            return
        barred = {int(self._own[number]) for number in self._raw.never}
        odd = np.isin(self._shown.names, np.array(sorted(barred), np.uint32))
        odd[[at for at, text in self._shown.strange.items() if self._rules.bars(text)]] = True
        for at in np.flatnonzero(odd):
            yield self._finding("reasons", int(at), ATTRIBUTE, 1, 0, self._text(int(at)))

    def _without_row(self) -> Iterator[Finding]:
        """Yields the rows without an attribute at a time that has fewer raw rows."""
        places = self._at.places(self._shown.t_ns)
        again = occurrences(self._shown.t_ns)
        sizes = at_places(self._at.sizes, places)
        for at in np.flatnonzero((again >= sizes) & (self._shown.names == NOTHING)):
            yield self._finding("names", int(at), TIME, int(sizes[at]), int(again[at]) + 1)

    def _pseudonyms(self) -> Iterator[Finding]:
        """Yields pseudonyms of two epochs or of two users, and users of two pseudonyms."""
        known, people = self._owners()
        rows = np.flatnonzero(known & (self._shown.users != NOBODY))
        epochs = self._shown.t_ns[rows] // self._rules.rotate_ns
        epoch_of: dict[int, int] = {}
        owner_of: dict[tuple[int, int], int] = {}
        name_of: dict[tuple[int, int], int] = {}
        columns = (rows, epochs, self._shown.users[rows], people[rows])
        for at, epoch, name, user in zip(*(one.tolist() for one in columns), strict=True):
            is_one = epoch_of.setdefault(name, epoch) == epoch
            if user != NOBODY:
                is_one &= owner_of.setdefault((epoch, name), user) == user
                is_one &= name_of.setdefault((epoch, user), name) == name
            if not is_one:
                text = self._shown.pseudonyms.texts[name]
                yield self._finding("pseudonyms", at, USER, 2, 1, text)

    def _owners(self) -> tuple[Flags, NDArray[np.int64]]:
        """Returns whether the epoch of each row is known, and its user's number if only one user
        fits the row, else NOBODY."""
        named = self._shown.names < UNKNOWN
        keys = self._keys(np.where(named, self._shown.names, 0), self._shown.t_ns)
        places = self._exposed.places(keys)
        times = self._at.places(self._shown.t_ns)
        known = np.zeros(len(keys), bool)
        owners = np.full(len(keys), NOBODY, np.int64)
        for groups, at, fits in (
            (self._exposed, places, named & (places >= 0)),
            (self._at, times, (self._shown.names == NOTHING) & (times >= 0)),
        ):
            at = at[fits]
            known[fits] = ~groups.is_late[at]
            one = groups.low[at] == groups.high[at]
            owners[fits] = np.where(one, groups.low[at], NOBODY)
        return known, owners

    def _traces(self) -> Iterator[Finding]:
        """Yields users, and attributes that z users never shared, at any place that may not have
        them."""
        forbidden = Forbidden(self._raw.people.numbers, self._hidden())
        file = self._path.name
        for row, column, text in self._shown.odd:
            for check, what in forbidden.in_cell(text):
                yield Finding(check, file, row, column, 1, 0, what)
        for at in np.flatnonzero((self._shown.names != NOTHING) & ~self._kept):
            for check, what in forbidden.in_cell(self._text(int(at)).encode()):
                yield Finding(check, file, int(self._shown.rows[at]), ATTRIBUTE, 1, 0, what)
        names = self._shown.pseudonyms.texts
        plain = [one for one, name in enumerate(names) if name in self._raw.people.numbers]
        for at in np.flatnonzero(np.isin(self._shown.users, np.array(plain, np.uint32))):
            name = names[self._shown.users[at]]
            yield Finding("addresses", file, int(self._shown.rows[at]), USER, 1, 0, name)
        findings, others, disclosed = in_folder(self._path, self._manifest, forbidden)
        yield from findings
        if others:
            reason = f"{others:,} files that no manifest lists, except for users and hidden names"
            self.left_out.append(("format", reason))
        if disclosed:
            reason = "names of raw files in the manifest, which have a user or a hidden attribute"
            self.left_out.append(("addresses", reason))

    def _hidden(self) -> set[str]:
        """Returns the attributes that z users never shared, and that no row may show."""
        most = np.zeros(len(self._own), np.uint32)
        named = self._raw.names != NOTHING
        np.maximum.at(most, self._own[self._raw.names[named]], self._raw.counts[named])
        texts = [one.removeprefix(JSON_MARK) for one in self._raw.attributes.texts]
        shown = {texts[one] for one in np.unique(self._shown.names[self._kept])}
        rare = np.flatnonzero(most[self._own] < self._rules.z)
        return {texts[one] for one in rare} - shown


def at_places(values: Numbers | Indices, places: Numbers) -> Numbers:
    """Returns the value at each place, and 0 for the place -1."""
    found = np.zeros(len(places), np.int64)
    found[places >= 0] = values[places[places >= 0]]
    return found


def canonical(rules: RowRules, raw: RawRows) -> Indices:
    """Returns the number under which the release shows each attribute."""
    own = np.arange(len(raw.attributes.texts), dtype=np.uint32)
    if rules.source == "csv" or rules.has_kinds:
        return own
    numbers = numbers_of(rules, raw)
    for text, number in raw.attributes.numbers.items():
        own[number] = numbers[spelled(text.removeprefix(JSON_MARK), rules)]
    return own


def late_rows(rules: RowRules, raw: RawRows) -> Flags:
    """Returns which raw rows come after a row of a later epoch. Keys that are not in a file only
    go forward, so a late row may have the pseudonym of a later epoch."""
    epochs = raw.t_ns // rules.rotate_ns
    if not rules.is_ephemeral or not len(epochs):
        return np.zeros(len(epochs), bool)
    return np.asarray(np.maximum.accumulate(epochs) > epochs)


def occurrences(keys: Numbers) -> Numbers:
    """Returns how many rows before each row have its key."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(keys) else order
    sizes = np.diff(np.r_[starts, len(keys)])
    found = np.empty(len(keys), np.int64)
    found[order] = np.arange(len(keys)) - np.repeat(starts, sizes)
    return found
