# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Distinct rows of a table, as nodes of hierarchies, and the groups of them that may be a class.

The requirements of a class are defined in `measures`. Rows with equal quasi-identifiers are one
tuple with a weight, because a table has far fewer tuples than rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from zanon_net.microdata.measures import (
    KEYS_MAX,
    ROUNDING,
    Bools,
    Floats,
    Ints,
    Numbers,
    Sensitive,
    joint_numbers,
)
from zanon_net.microdata.plan import KINDS

USERS, DIVERSITY, SHARE, DISTANCE = range(1, 5)  # as zn_class_fault
OUT = -1  # the group of a tuple that is in no group
DENSE = 1 << 20  # most cells of a table that is filled instead of sorted


def compacted(keys: Ints, bound: int) -> tuple[Ints, int]:
    """Returns keys from 0 to bound - 1 as numbers without gaps, in the same order, and their
    number.

    A negative key stays.
    """
    inside = keys[keys >= 0]
    if bound <= 4 * len(keys) + 4096:
        present = np.zeros(bound + 1, np.bool_)
        present[inside] = True
        numbers = np.cumsum(present) - 1
        return np.where(keys < 0, keys, numbers[keys]), int(present.sum())
    distinct = np.unique(inside)
    return np.where(keys < 0, keys, np.searchsorted(distinct, keys)), len(distinct)


@dataclass(frozen=True)
class Tuples:
    """The distinct combinations of quasi-identifiers of a table, by their codes.

    codes: a node of each column (first index) and tuple. weight: rows of each tuple. of_row: the
    tuple of each row.
    """

    codes: Ints
    weight: Ints
    of_row: Ints

    def __len__(self) -> int:
        return len(self.weight)

    @classmethod
    def of(cls, columns: Sequence[Ints], nodes: Sequence[int]) -> "Tuples":
        """Returns the tuples of rows.

        columns: the node of each row. nodes: the number of nodes of each column.
        """
        numbers = [(codes.astype(np.int64), n) for codes, n in zip(columns, nodes, strict=True)]
        of_row, first = joint_numbers(numbers, len(columns[0]))
        codes = np.array([column[first] for column in columns], np.int64)
        return cls(codes, np.bincount(of_row, minlength=len(first)).astype(np.int64), of_row)


@dataclass(frozen=True)
class _Column:
    """A sensitive column: an entry for each value and user of a tuple."""

    values: int
    of_tuple: Ints
    value: Ints
    count: Ints  # number of rows, if each row is a user of its own
    user: Numbers | None

    def counts(self, group: Ints, groups: int) -> tuple[Ints, Ints, Ints]:
        """Returns (group, value, users) of each value in each group, by group and value."""
        of_group = group[self.of_tuple]
        inside = of_group >= 0
        key = (of_group * self.values + self.value)[inside]
        if self.user is not None:
            numbers = [(key, groups * self.values), (self.user[0][inside], self.user[1])]
            _joint, first = joint_numbers(numbers, len(key))
            key, count = key[first], np.ones(len(first), np.int64)
        else:
            count = self.count[inside]
        if groups * self.values <= DENSE:
            cells = np.bincount(key, count, groups * self.values).astype(np.int64)
            found = np.flatnonzero(cells)
            return found // self.values, found % self.values, cells[found]
        found, place = np.unique(key, return_inverse=True)
        sums = np.bincount(place.reshape(-1), count, len(found)).astype(np.int64)
        return found // self.values, found % self.values, sums


class Judge:
    """Decides which groups of tuples may be a class by a rule (Plan.rule).

    sensitive, users: the code of each row's value and user; users None: each row is a user.
    """

    def __init__(
        self,
        rule: Mapping[str, int | float],
        tuples: Tuples,
        sensitive: Sequence[Numbers],
        users: Numbers | None,
    ) -> None:
        self._rule = rule
        self._kind = KINDS[int(rule["kind"])]
        self._tuples = tuples
        self._users: tuple[Ints, Numbers] | None = None
        size = len(tuples)
        of_row: Numbers = (tuples.of_row, size)
        if users is not None:
            _pair, first = joint_numbers([of_row, users], len(tuples.of_row))
            self._users = tuples.of_row[first], (users[0][first], users[1])
        self._columns = [self._column(of_row, values, users) for values in sensitive]
        self._whole = self.whole(np.ones(size, np.bool_)) if rule["t"] < 1 else []

    def with_k(self, k: int) -> "Judge":
        """Returns the judge with another k."""
        other = copy(self)
        other._rule = {**self._rule, "k": k}
        return other

    @property
    def k(self) -> int:
        """Users that each class must have."""
        return int(self._rule["k"])

    @property
    def is_monotone(self) -> bool:
        """True if a union of permitted classes is always a permitted class.

        False if a user is in both classes, because the user's values count once. False also for
        distances to the written rows when rows may be left out.
        """
        simple = self._kind == "distinct" and self._rule["max_share"] >= 1
        return self._rule["t"] >= 1 and (self._users is None or simple)

    @staticmethod
    def _column(of_row: Numbers, values: Numbers, users: Numbers | None) -> _Column:
        numbers = [of_row, values] + ([] if users is None else [users])
        entry, first = joint_numbers(numbers, len(of_row[0]))
        count = np.bincount(entry, minlength=len(first)).astype(np.int64)
        user = None if users is None else (users[0][first], users[1])
        return _Column(values[1], of_row[0][first], values[0][first], count, user)

    def users(self, group: Ints, groups: int) -> Ints:
        """Returns the users of each group. group: of each tuple, or OUT."""
        if self._users is None:
            inside = group >= 0
            counts = np.bincount(group[inside], self._tuples.weight[inside], groups)
            return counts.astype(np.int64)
        of_tuple, (user, users) = self._users
        of_group = group[of_tuple]
        inside = of_group >= 0
        if groups * max(1, users) < KEYS_MAX:
            pairs = np.unique(of_group[inside] * users + user[inside])
            return np.bincount(pairs // users, minlength=groups).astype(np.int64)
        numbers = [(of_group[inside], groups), (user[inside], users)]
        _pair, first = joint_numbers(numbers, int(inside.sum()))
        return np.bincount(of_group[inside][first], minlength=groups).astype(np.int64)

    def whole(self, inside: Bools) -> list[Floats]:
        """Returns the share of each value of each sensitive column in the tuples inside."""
        group = np.where(inside, 0, OUT)
        shares = []
        for column in self._columns:
            _group, value, count = column.counts(group, 1)
            shares.append(np.bincount(value, count, column.values) / max(1, int(count.sum())))
        return shares

    def good(self, group: Ints, groups: int) -> Bools:
        """Returns true for groups that may be a class, if all rows are written.

        group: of each tuple, from 0 to groups - 1, each with tuples, or OUT.
        """
        good = np.ones(groups, np.bool_)
        for _fault, holds in self._checks(group, groups, self._whole):
            good &= holds
            if not good.any():
                break
        return good

    def faults(self, group: Ints, groups: int) -> Ints:
        """Returns why groups may not be written together: 0, or 1 + the place of the reason in
        FAULTS.

        Distances are to the remaining rows when the refused groups are left out, as the gate
        computes them.
        """
        faults = np.zeros(groups, np.int64)
        for fault, holds in self._checks(group, groups, None):
            faults[(faults == 0) & ~holds] = fault
        while self._rule["t"] < 1:
            inside = (group >= 0) & (faults == 0)[np.maximum(group, 0)]
            far = np.zeros(groups, np.bool_)
            for fault, holds in self._checks(group, groups, self.whole(inside)):
                far |= (fault == DISTANCE) & (faults == 0) & ~holds
            if not far.any():
                break
            faults[far] = DISTANCE
        return faults

    def _checks(
        self, group: Ints, groups: int, whole: Sequence[Floats] | None
    ) -> Iterator[tuple[int, Bools]]:
        """Yields (fault, the groups that do not have it). whole: the shares that distances are to;
        None: no distance."""
        rule = self._rule
        yield USERS, np.asarray(self.users(group, groups) >= rule["k"], np.bool_)
        is_plain = self._kind == "distinct" and rule["max_share"] >= 1
        for number, column in enumerate(self._columns):
            of_group, value, count = column.counts(group, groups)
            if is_plain:
                distinct = np.bincount(of_group, minlength=groups)
                yield DIVERSITY, np.asarray(distinct >= rule["l"], np.bool_)
            else:
                order = np.lexsort((value, -count, of_group))
                entries = of_group[order], value[order], count[order]
                none = np.zeros(column.values, np.int64)  # of the whole: distances are below
                found = Sensitive("", column.values, groups, *entries, none)
                yield DIVERSITY, found.is_diverse(int(rule["l"]), self._kind, rule["c"])
                most = rule["max_share"] * found.total + ROUNDING
                yield SHARE, np.asarray(found.largest <= most, np.bool_)
            if whole is not None and rule["t"] < 1:
                total = np.bincount(of_group, count, groups)
                more = np.maximum(count / total[of_group] - whole[number][value], 0)
                far = np.bincount(of_group, more, groups)
                yield DISTANCE, np.asarray(far <= rule["t"] + ROUNDING, np.bool_)
