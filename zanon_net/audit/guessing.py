# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Guesses of suppressed names, and of their categories, by the records of the release."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy import sparse

from zanon_net._record import dataclass
from zanon_net.audit.attack_math import Floats, Ints, Matrix, likelihood
from zanon_net.audit.coarse import coarse
from zanon_net.audit.database import Arrays
from zanon_net.audit.records import MINUTE_US, RELEASED, SUPPRESSED
from zanon_net.audit.subject import FEWEST, Subject

KNOWN_RECORDS = 400_000
"""Most records of which the attacker knows the names."""
KNOWN_CONTEXTS = 100_000
"""Most of these records of which the attacker also knows the names next to them."""
ASKED_RECORDS = 4000
"""Most records whose names are guessed."""
NAMES = 8000
"""Most names that are guessed: those with most records."""
FOLDS, DECILES = 5, 10
BLOCK = 1 << 24  # scores that are in memory at a time
BEHIND = 2  # minutes before the end of a record in which the names next to it were visited
CONTEXT_SMOOTH, CONTEXT_WEIGHT = 0.5, 0.7
NAME, CATEGORY, CONTEXT = "name", "category", ", with context"
STEPS = ("sqrt2", "4", "16")
"""Bases of coarse numbers; a later base discloses less."""

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """Result of the guesses."""

    right: dict[str, Bools]
    """True for each record whose guess is right, for each kind of guess."""
    chance: dict[str, float]
    """Share of the most frequent answer, for each kind of guess."""
    decile: Ints
    """Decile of each record's true name by popularity; 0 is the most popular."""

    def share(self, kind: str) -> float:
        """Returns the share of right guesses."""
        return float(self.right[kind].mean())

    @property
    def worst(self) -> str:
        """The kind of guess that is most above a guess without the log."""
        return max(self.right, key=lambda kind: self.share(kind) - self.chance[kind])


def finest_steps(subject: Subject) -> str:
    """Returns the base of coarse numbers that discloses most, of all folders."""
    found = [folder.coarse_steps for folder in subject.release.folders]
    return min(found, key=lambda base: STEPS.index(base) if base in STEPS else -1)


def guess_names(subject: Subject, base: str, *, with_context: bool = True) -> Guesses | None:
    """Guesses the names of records as if they were suppressed; None if there are too few.

    The truth is known of records with a name. They are rounded as if their names were suppressed,
    and a fifth of the pseudonyms is guessed from the records of the others.
    The base of coarse numbers is an argument. Without `with_context`, records of suppressed names
    are taken as records without a pseudonym.
    """
    found = _labelled(subject)
    is_asked = found["fold"] == 0
    asked = np.flatnonzero(is_asked)[:ASKED_RECORDS]
    if len(asked) < FEWEST or is_asked.all():
        subject.drop("labelled")
        return None
    known = np.flatnonzero(~is_asked)
    names, place = np.unique(found["name"], return_inverse=True)
    often = np.bincount(place[known], minlength=len(names))
    order = np.argsort(-often, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    number, count = rank[place], min(NAMES, len(names))
    known = known[number[known] < NAMES]
    context = None
    if with_context and has_context(subject):
        context = _context(subject, number, is_asked, count)
    subject.drop("labelled")
    category = _categories(subject, names[order])
    values = _values(subject, found, base)
    answers: dict[str, list[Ints]] = {}
    for kind, answer in _answers(values, number, known, asked, count, context, category):
        answers.setdefault(kind, []).append(answer)
    true = {NAME: number[asked]}
    if category is not None:
        true[CATEGORY] = category[true[NAME]]
    truth = {kind: true[kind.removesuffix(CONTEXT)] for kind in answers}
    return Guesses(
        right={kind: np.concatenate(found) == truth[kind] for kind, found in answers.items()},
        chance={kind: float(np.bincount(one).max()) / len(asked) for kind, one in truth.items()},
        decile=true[NAME] * DECILES // len(names),
    )


def _labelled(subject: Subject) -> Arrays:
    """Makes the table `labelled`, of records with a name in the order of the sample, and returns
    the columns, with their folds."""
    folder, seed, database = subject.release.folders[0], subject.seed, subject.database
    stated = "start_us" if folder.coarse_end == "floored" else "end_us"
    database.run(
        "CREATE TABLE labelled AS SELECT (row_number() OVER (ORDER BY key) - 1)::BIGINT AS place,"
        " * EXCLUDE (key) FROM (SELECT hash(name, who, start_us, c_bytes, s_bytes,"
        f" {seed}) AS key, name, who, {stated} // {MINUTE_US} AS minute, tcp::BIGINT AS tcp,"
        " port::BIGINT AS port, c_pkts, s_pkts, c_bytes, s_bytes,"
        f" (end_us // {MINUTE_US} - start_us // {MINUTE_US})::BIGINT AS minutes,"
        f" (hash(coalesce(who, hash(start_us)), {seed}) % {FOLDS})::BIGINT AS fold FROM records"
        f" WHERE status = {RELEASED} AND NOT coarse AND c_pkts IS NOT NULL AND name IS NOT NULL"
        f" ORDER BY key LIMIT {KNOWN_RECORDS})"
    )
    return database.arrays("SELECT * EXCLUDE (place, who, minute) FROM labelled ORDER BY place")


def _values(subject: Subject, found: Arrays, base: str) -> list[Ints]:
    """Returns the features of records, as coarse records would state them."""
    folder = subject.release.folders[0]
    numbers = {name: found[name] for name in ("c_pkts", "s_pkts", "c_bytes", "s_bytes")}
    if not subject.is_exact:
        numbers = {name: coarse(values, base) for name, values in numbers.items()}
    values = [
        numbers["c_bytes"],
        numbers["s_bytes"] * 4096 + numbers["s_pkts"],
        found["tcp"] * 65536 + found["port"],
    ]
    if subject.is_exact or folder.coarse_end == "floored":
        values.append(found["minutes"])
    return values


# ---- the names next to a record -----------------------------------------------------------------


def has_context(subject: Subject) -> bool:
    """Returns true if records of suppressed names have pseudonyms, which join them with names."""
    count = subject.database.value(
        f"SELECT count(*) FROM records WHERE status >= {SUPPRESSED} AND who IS NOT NULL"
    )
    return int(count) > 0


class _Context:
    """Evidence of the names that a pseudonym shows in the minutes of a record."""

    def __init__(self, place: Ints, name: Ints, number: Ints, is_known: Bools, names: int) -> None:
        width = int(name.max(initial=0)) + 1
        known = is_known[place] & (number[place] < names)
        ones = np.ones(int(known.sum()), dtype=np.float32)
        together = sparse.csr_matrix(
            (ones, (number[place[known]], name[known])), shape=(names, width)
        )
        records = np.flatnonzero(is_known[:KNOWN_CONTEXTS] & (number[:KNOWN_CONTEXTS] < names))
        usual = np.bincount(name[known], minlength=width) / max(1, len(records))
        often = np.bincount(number[records], minlength=names)
        together.sum_duplicates()
        together.data = np.log1p(together.data / usual[together.indices] / CONTEXT_SMOOTH)
        self._gain = together.T.tocsr()
        self._absent = np.log(CONTEXT_SMOOTH / (often + CONTEXT_SMOOTH)).astype(np.float32)
        shape = (len(number), width)
        self._shown: Matrix = sparse.csr_matrix(
            (np.ones(len(place), dtype=np.float32), (place, name)), shape=shape
        )

    def worth(self, asked: Ints) -> Floats:
        """Returns the evidence for each name (columns) of each record (rows)."""
        there = self._shown[asked]
        gain = np.asarray((there @ self._gain).todense(), dtype=np.float32)
        worth: Floats = gain + np.asarray(there.sum(axis=1)) * self._absent[None, :]
        return worth


def _context(subject: Subject, number: Ints, is_asked: Bools, names: int) -> _Context:
    """Reads the released names next to the records of `labelled`."""
    behind = 0 if subject.release.folders[0].coarse_end == "floored" else BEHIND
    found = subject.database.arrays(
        "SELECT DISTINCT place, near.name AS name FROM (SELECT place, who, name AS own,"
        f" unnest(range(minute - {behind}, minute + 1)) AS minute FROM labelled"
        f" WHERE who IS NOT NULL AND place < {KNOWN_CONTEXTS}) JOIN (SELECT DISTINCT who, name,"
        f" start_us // {MINUTE_US} AS minute FROM records WHERE who IS NOT NULL AND name IS NOT"
        " NULL AND NOT coarse) AS near USING (who, minute) WHERE near.name <> own"
    )
    _texts, column = np.unique(found["name"], return_inverse=True)
    return _Context(found["place"], column, number, ~is_asked, names)


def _categories(subject: Subject, names: npt.NDArray[np.uint64]) -> Ints | None:
    """Returns a number for the category of each name; 0 for a name that is not sensitive. None
    without a file of categories."""
    if not subject.has_categories:
        return None
    rows = subject.database.rows("SELECT DISTINCT name, category FROM categories ORDER BY category")
    numbers: dict[str, int] = {}
    found = {int(name): numbers.setdefault(text, len(numbers) + 1) for name, text in rows}
    return np.array([found.get(int(name), 0) for name in names], dtype=np.int64)


# ---- naive Bayes --------------------------------------------------------------------------------


def _answers(
    values: list[Ints],
    number: Ints,
    known: Ints,
    asked: Ints,
    names: int,
    context: _Context | None,
    category: Ints | None,
) -> Iterator[tuple[str, Ints]]:
    """Yields kinds of guesses, and the most probable answers for a block of records."""
    often = np.log(np.bincount(number[known], minlength=names) + 0.01).astype(np.float32)
    step = max(1, BLOCK // max(1, names))
    for begin in range(0, len(asked), step):
        part = asked[begin : begin + step]
        worth: Floats = np.repeat(often[None, :], len(part), axis=0)
        for feature in values:
            worth += likelihood(feature[known], number[known], feature[part], names)
        for suffix in ("", CONTEXT) if context is not None else ("",):
            if suffix and context is not None:
                worth += CONTEXT_WEIGHT * context.worth(part)
            yield NAME + suffix, worth.argmax(axis=1)
            if category is not None:
                yield CATEGORY + suffix, _by_category(worth, category[:names])


def _by_category(worth: Floats, category: Ints) -> Ints:
    """Returns the category that has most of each row's probability."""
    of_names = np.exp(worth - worth.max(axis=1, keepdims=True))
    members = sparse.csr_matrix(
        (np.ones(len(category), dtype=np.float32), (np.arange(len(category)), category))
    )
    answers: Ints = np.asarray((members.T @ of_names.T).argmax(axis=0)).ravel()
    return answers
