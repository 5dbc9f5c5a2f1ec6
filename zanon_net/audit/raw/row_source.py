# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The raw rows that `filter` read: times, users and attributes as numbers, and their users."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zanon_net.audit.raw.hosts import normal, under
from zanon_net.audit.raw.row_reader import (
    Form,
    Line,
    Spelled,
    Value,
    csv_lines,
    json_lines,
    opened,
    time_of,
)
from zanon_net.audit.raw.sweep import Observations, count_users
from zanon_net.errors import CapacityError, ConfigError, FormatError

Numbers = NDArray[np.int64]
Indices = NDArray[np.uint32]
NOTHING = (1 << 32) - 1  # number of a row without an attribute
TEXT_BYTES = 200  # of a text and its number, with its place in a dictionary
ROW_BYTES = 64  # of a row in the arrays of the audit and of the sort
SWEEP_SHARE = 4  # the sweep gets this part of the memory at least
STRETCH = 1 << 14  # rows


@dataclass(frozen=True, slots=True)
class RowRules:
    """Settings of a run of `filter` on plain rows.

    source, target: csv, jsonl or parquet. header: columns of CSV without a header line.
    """

    z: int
    window_ns: int
    rotate_ns: int
    is_ephemeral: bool
    time: str
    user: str
    attribute: str
    passed: tuple[str, ...]
    has_user: bool
    is_blank: bool
    unit: str
    source: str
    target: str
    form: Form
    header: str
    nulls: frozenset[str]
    never: tuple[str, ...]
    never_count: int

    @classmethod
    def of(cls, manifest: Mapping[str, Any], never: Sequence[str]) -> "RowRules":
        """Returns the settings of a manifest. Raises FormatError for rows that have no check."""
        own = manifest["configuration"]
        if own.get("preset"):
            refuse("--preset", "the promise of logs of other tools has no check yet")
        if own.get("levels"):
            refuse("--levels", "run filter without --levels to check its promise")
        if own["format"] == "parquet":
            refuse("Parquet as input", "run filter on CSV or JSON Lines to check its promise")
        if never and len(never) != own["never_suffixes"]:
            raise ConfigError(
                f"never: the file has {len(never):,} suffixes, and the run had"
                f" {own['never_suffixes']:,}; give the file of the run"
            )
        delimiter = "\t" if own["delimiter"] == "tab" else own["delimiter"]
        return cls(
            z=own["z"],
            window_ns=own["window_ns"],
            rotate_ns=own["rotate_ns"],
            is_ephemeral=own["key_mode"] == "ephemeral",
            time=own["time"],
            user=own["user"],
            attribute=own["attribute"],
            passed=tuple(own["pass"]),
            has_user=not own["no_user"],
            is_blank=own["suppressed"] == "blank",
            unit=own["time_unit"],
            source=own["format"],
            target=own["format"] if own["to"] == "auto" else own["to"],
            form=Form(delimiter.encode(), own["quote"] == "csv"),
            header=header_of(own["header"]),
            nulls=frozenset(own["null"]),
            never=tuple(never),
            never_count=own["never_suffixes"],
        )

    @property
    def wanted(self) -> list[str]:
        """The columns that the run read."""
        return [self.time, self.user, self.attribute, *self.passed]

    @property
    def written(self) -> list[str]:
        """The columns that the run wrote, in their order."""
        user = [self.user] if self.has_user else []
        return [self.time, *user, self.attribute, *self.passed]

    @property
    def has_kinds(self) -> bool:
        """True if the release shows whether an attribute was a text or another value of JSON."""
        return self.source == self.target == "jsonl"

    def bars(self, attribute: str) -> bool:
        """Returns whether an attribute ends in a name never to release."""
        return bool(self.never) and under(normal(attribute)[1], self.never)


def refuse(what: str, hint: str) -> None:
    """Raises FormatError: this release cannot be checked with raw rows."""
    raise FormatError(f"raw: the release was made with {what}; {hint}")


def header_of(stated: Any) -> str:
    """Returns the columns of CSV without a header line. Raises FormatError if they are unknown."""
    if stated is True:
        raise FormatError(
            "raw: the manifest does not state the columns of --header; repeat the run with this"
            " version"
        )
    return stated or ""


class Words:
    """Texts and their numbers. Raises CapacityError if they do not fit into the memory."""

    def __init__(self, memory: int) -> None:
        self.numbers: dict[str, int] = {}
        self._room = memory

    def number(self, text: str) -> int:
        """Returns the number of a text."""
        found = self.numbers.get(text)
        if found is None:
            found = self.numbers[text] = len(self.numbers)
            self._room -= TEXT_BYTES + 2 * len(text)
            if self._room < 0:
                raise CapacityError("the texts of the rows do not fit into --memory; raise it")
        return found

    @cached_property
    def texts(self) -> list[str]:
        """The texts by their numbers, when all are known."""
        return list(self.numbers)


@dataclass(slots=True)
class RawRows:
    """The raw rows of a run.

    t_ns, users, names: of each row with a time and a user; NOTHING: the row has no attribute.
    people, attributes: texts of users and attributes. An attribute of JSON that is no text has a
    mark before it. read, dropped, empty: numbers of rows; empty: without an attribute.
    barred: rows whose attribute is never released. counts: users of each row's attribute in the
    window before it. is_ordered: true if no row is earlier than a row before it.
    """

    people: Words
    attributes: Words
    t_ns: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    users: Indices = field(default_factory=lambda: np.empty(0, np.uint32))
    names: Indices = field(default_factory=lambda: np.empty(0, np.uint32))
    counts: Indices = field(default_factory=lambda: np.empty(0, np.uint32))
    never: frozenset[int] = frozenset()
    read: int = 0
    dropped: int = 0
    empty: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    is_ordered: bool = True

    @property
    def is_named(self) -> NDArray[np.bool_]:
        """True for each row with an attribute that may count."""
        barred = np.fromiter(self.never, np.uint32, len(self.never))
        return np.asarray((self.names != NOTHING) & ~np.isin(self.names, barred))


JSON_MARK = "\0"  # no text of a row has this character


def attribute_key(value: str, rules: RowRules) -> str:
    """Returns the text under which an attribute counts: 5 and "5" of JSON are two attributes."""
    is_other = isinstance(value, Spelled) and rules.source == "jsonl"
    return JSON_MARK + value if is_other else str(value)


def read_rows(paths: Sequence[Path], rules: RowRules, memory: int, threads: int) -> RawRows:
    """Reads the raw rows, and counts the users of each row's attribute."""
    rows = RawRows(Words(memory // 4), Words(memory // 4))
    times, users, names = array("q"), array("I"), array("I")
    latest, most = 0, memory // 2 // ROW_BYTES
    for path in paths:
        for line in source_lines(path, rules):
            rows.read += 1
            found = None if line.cells is None else observed(line.cells, rules)
            if found is None:
                rows.dropped += 1
                continue
            t_ns, user, attribute = found
            rows.is_ordered &= t_ns >= latest
            latest = max(latest, t_ns)
            rows.first_ns = t_ns if rows.first_ns is None else min(rows.first_ns, t_ns)
            rows.empty += not attribute
            if not user:
                continue
            times.append(t_ns)
            users.append(rows.people.number(user))
            names.append(
                rows.attributes.number(attribute_key(attribute, rules)) if attribute else NOTHING
            )
            if len(times) > most:
                raise CapacityError("the raw rows do not fit into --memory; raise it")
    rows.last_ns = None if rows.first_ns is None else latest
    rows.t_ns = np.frombuffer(times, np.int64)
    rows.users = np.frombuffer(users, np.uint32)
    rows.names = np.frombuffer(names, np.uint32)
    rows.never = frozenset(
        number
        for text, number in rows.attributes.numbers.items()
        if rules.never and rules.bars(text.removeprefix(JSON_MARK))
    )
    rows.counts = counted(rows, rules.window_ns, memory // SWEEP_SHARE, threads)
    return rows


def counted(rows: RawRows, window_ns: int, memory: int, threads: int) -> Indices:
    """Returns the users of each row's attribute in the window before the row, and 0 for a row
    without an attribute."""
    counts = np.zeros(len(rows.t_ns), np.uint32)
    named = np.flatnonzero(rows.names != NOTHING)
    seen = Observations(rows.t_ns[named], rows.users[named], rows.names[named])
    counts[named] = count_users(seen, window_ns, memory=memory, threads=threads)
    return counts


def source_lines(path: Path, rules: RowRules) -> Iterator[Line]:
    """Yields the rows of a raw file."""

    def refuse_header() -> None:
        raise ConfigError(
            f"raw: {path} has not each column of the run once; give the rows that the run read"
        )

    with opened(path) as stream:
        if rules.source == "jsonl":
            yield from json_lines(stream, rules.wanted)
        else:
            yield from csv_lines(stream, rules.form, rules.wanted, rules.header, refuse_header)


def observed(cells: Sequence[Value], rules: RowRules) -> tuple[int, str, str] | None:
    """Returns the time, user and attribute of a row; "": missing. None: the row cannot be read."""
    time, user, attribute = (
        "" if cell is None or (cell in rules.nulls and not isinstance(cell, Spelled)) else cell
        for cell in cells[:3]
    )
    if not time or (attribute and not user):
        return None
    if isinstance(user, Spelled) and not is_whole(user):
        return None
    t_ns = time_of(time, rules.unit)
    return None if t_ns is None else (t_ns, str(user), attribute)


def is_whole(number: str) -> bool:
    """Returns whether a value of JSON is a whole number, which has one spelling only."""
    return number != "-0" and number.removeprefix("-").isdecimal()
