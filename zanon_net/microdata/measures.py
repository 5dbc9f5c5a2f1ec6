# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Classes of a table, and the measures of each: k, l of three kinds, shares, distances.

A class is the rows with equal quasi-identifiers as written; a missing value is a value like any
other. With a user column, distinct users are counted: a user's rows with one sensitive value count
once, and rows without a user belong to one user. Without a user column, each row is a user of its
own.

Sources: k Sweeney 2002; distinct, entropy and recursive l Machanavajjhala et al. 2007; t Li et al.
2007 with equal distances between values. csrc/microdata/diversity.c decides. This module has the
definitions as numbers, for reports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zanon_net.config.parse import reject
from zanon_net.microdata.arrow import compute, encoded, texts
from zanon_net.microdata.plan import KINDS, Plan
from zanon_net.microdata.scale import Scale

ROUNDING = 1e-9  # as csrc/microdata/diversity.c: two equal values have an entropy of log 2
KEYS_MAX = 1 << 62  # of codes in one number

FAULTS = ("users", "diversity", "share", "distance")
"""The reason why a class may not be released, by the numbers of zn_class_fault less 1."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Sensitive:
    """The values of a sensitive column in each class: an entry for each value that occurs in a
    class.

    name: of the column.
    values: number of values in the whole table, including a missing value.
    class_of, value, count: of the entries, by class and then from the most frequent value down; the
        value as a number from 0 to values - 1, and the users that have it.
    classes: number of classes.
    whole_count: the users that have each value in the whole table.
    """

    name: str
    values: int
    classes: int
    class_of: Ints
    value: Ints
    count: Ints
    whole_count: Ints
    starts: Ints = field(init=False)
    total: Ints = field(init=False)

    def __post_init__(self) -> None:
        keep = object.__setattr__
        firsts = np.searchsorted(self.class_of, np.arange(self.classes + 1))
        keep(self, "starts", firsts.astype(np.int64))
        keep(self, "total", self._sums(self.count))

    def _sums(self, of_entries: Any) -> Any:
        """Returns the sums over each class."""
        if not self.classes:
            return np.zeros(0, dtype=np.asarray(of_entries).dtype)
        return np.add.reduceat(of_entries, self.starts[:-1])

    @property
    def distinct(self) -> Ints:
        """Number of values that occur in each class."""
        return np.diff(self.starts)

    @property
    def largest(self) -> Ints:
        """Count of each class's most frequent value."""
        return self.count[self.starts[:-1]]

    @property
    def share(self) -> Floats:
        """Share of each class's most frequent value."""
        return np.asarray(self.largest / self.total, np.float64)

    @property
    def _portions(self) -> Floats:
        return np.asarray(self.count / self.total[self.class_of], np.float64)

    @property
    def entropy(self) -> Floats:
        """Entropy of each class's values, in nats."""
        portions = self._portions
        sums: Floats = self._sums(-portions * np.log(portions))
        return np.maximum(sums, 0.0) + 0.0  # -0.0 + 0.0 is 0.0

    @property
    def whole(self) -> Floats:
        """Share of each value in the whole table, as if the table were one class."""
        return np.asarray(self.whole_count / max(1, self.whole_count.sum()), np.float64)

    @property
    def distance(self) -> Floats:
        """Variational distance of each class's values to the whole's, 0 to 1."""
        more = np.maximum(self._portions - self.whole[self.value], 0)
        sums: Floats = self._sums(more)
        return sums

    def tail(self, l: int) -> Ints:  # noqa: E741
        """Returns the sum of each class's counts from the l-th largest on."""
        rank = np.arange(len(self.count)) - self.starts[self.class_of]
        sums: Ints = self._sums(np.where(rank >= l - 1, self.count, 0))
        return sums

    def is_diverse(self, l: int, kind: str, c: float) -> Bools:  # noqa: E741
        """Returns true for each class that is l-diverse."""
        if kind == "recursive":
            return np.asarray((self.distinct >= l) & (self.largest < c * self.tail(l)), np.bool_)
        if l <= 1:
            return np.ones(self.classes, np.bool_)
        diverse = self.distinct >= l
        if kind == "entropy":
            diverse &= self.entropy >= np.log(l) - ROUNDING
        return np.asarray(diverse, np.bool_)


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of a table.

    rows, users: of each class. sensitive: the values of each sensitive column in them. tuples,
    first: the source of `quasi`.
    """

    rows: Ints
    users: Ints
    sensitive: tuple[Sensitive, ...]
    tuples: Any = None
    first: Ints | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def quasi(self) -> Any:
        """A pyarrow.Table with the quasi-identifiers of each class."""
        return self.tuples.take(self.first)

    def faults(self, rule: Mapping[str, int | float]) -> NDArray[np.int8]:
        """Returns why each class may not be released by a rule (Plan.rule): 0, or 1 + an index into
        FAULTS, the first reason that is found."""
        found = np.zeros(len(self), np.int8)
        kind = KINDS[int(rule["kind"])]
        checks: list[tuple[int, Bools]] = [(0, self.users >= rule["k"])]
        for column in self.sensitive:
            checks.append((1, column.is_diverse(int(rule["l"]), kind, rule["c"])))
            if rule["max_share"] < 1:
                most = rule["max_share"] * column.total + ROUNDING
                checks.append((2, column.largest <= most))
            if rule["t"] < 1:
                checks.append((3, column.distance <= rule["t"] + ROUNDING))
        for fault, good in sorted(checks, key=lambda check: check[0]):
            found[(found == 0) & ~good] = fault + 1
        return found


def measure(table: Any, plan: Plan, quasi: Sequence[str] | None = None) -> Classes:
    """Returns the classes of a table that `as_table` or `read_table` returned.

    quasi: the columns that make classes; None: the columns of the plan. Without columns, all rows
    are one class.
    """
    quasi = plan.quasi_columns if quasi is None else tuple(quasi)
    user = () if plan.user is None else (plan.user,)
    keys = dict.fromkeys((*quasi, *plan.sensitive_columns, *user))
    if not keys:  # nothing distinguishes rows
        rows = np.array([len(table)] if len(table) else [], np.int64)
        return Classes(rows, rows, ())
    tuples = table.select(list(keys)).group_by(list(keys)).aggregate([([], "count_all")])
    rows = tuples.column("count_all").to_numpy().astype(np.int64)
    numbers = {name: _numbers(tuples.column(name), name not in user) for name in keys}
    class_of, first = joint_numbers([numbers[name] for name in quasi], len(tuples))
    classes = len(first)
    class_rows = np.bincount(class_of, rows, classes).astype(np.int64)
    user_numbers = numbers[user[0]] if user else None
    class_users = class_rows
    if user_numbers is not None:
        class_users = _distinct(class_of, user_numbers, classes)
    alone = user_numbers is None and len(plan.sensitive_columns) == 1
    if alone:  # unless an empty text and a missing value have become one value
        alone = len(joint_numbers(list(numbers.values()), len(tuples))[1]) == len(tuples)
    sensitive = tuple(
        sensitive_of(name, class_of, classes, numbers[name], user_numbers, rows, distinct=alone)
        for name in plan.sensitive_columns
    )
    return Classes(class_rows, class_users, sensitive, tuples.select(list(quasi)), first)


Numbers = tuple[Ints, int]
"""Codes of a column's values by their order, and how many values there are."""


def _numbers(column: Any, in_order: bool) -> Numbers:
    """Returns the values of a column as numbers: their places among the distinct values.

    in_order: true if the distinct values are sorted by their bytes.
    """
    pc = compute()
    codes, values = encoded(column)
    place = np.arange(len(values) + 1)  # the last place is for a missing value
    if in_order:
        place[pc.array_sort_indices(texts(values)).to_numpy()] = np.arange(len(values))
    found = pc.fill_null(codes, len(values)).to_numpy()
    empty = texts(values).index("").as_py()
    if empty < 0:
        return place[found], len(values) + (codes.null_count > 0)
    place[place > place[empty]] -= 1  # an empty text is a missing value, as in CSV
    place[empty] = len(values) - 1
    return place[found], len(values)


def joint_numbers(columns: Sequence[Numbers], length: int) -> tuple[Ints, Ints]:
    """Returns (number of each row's combination of codes, first row of each combination)."""
    keys, count = np.zeros(length, np.int64), 1
    for codes, values in columns:
        if count * max(1, values) >= KEYS_MAX:
            distinct, keys = np.unique(keys, return_inverse=True)
            count = len(distinct)
        keys = keys * max(1, values) + codes
        count *= max(1, values)
    _distinct_keys, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return inverse.astype(np.int64).reshape(-1), first


def _distinct(group: Ints, codes: Numbers, groups: int) -> Ints:
    """Returns the number of distinct codes of each group."""
    pairs = np.unique(group * codes[1] + codes[0])
    return np.bincount(pairs // max(1, codes[1]), minlength=groups).astype(np.int64)


def sensitive_of(
    name: str,
    class_of: Ints,
    classes: int,
    codes: Numbers,
    user: Numbers | None,
    rows: Ints,
    *,
    distinct: bool = False,
) -> Sensitive:
    """Returns the values of a sensitive column in classes, from rows by numbers.

    The arguments are the class of each row, the number of classes, its value, its user, and the
    number of rows that it represents. distinct: true if no two rows have the same class and value,
    and there are no users.
    """
    value, values = codes
    if distinct:
        whole = np.bincount(value, rows, values).astype(np.int64)
        order = np.lexsort((value, -rows, class_of))
        return Sensitive(name, values, classes, class_of[order], value[order], rows[order], whole)
    entry, first = joint_numbers([(class_of, classes), (value, values)], len(rows))
    if user is None:
        count = np.bincount(entry, rows, len(first)).astype(np.int64)
        whole = np.bincount(value, rows, values).astype(np.int64)
    else:
        count = _distinct(entry, user, len(first))
        whole = _distinct(value, user, values)
    entry_class, entry_value = class_of[first], value[first]
    order = np.lexsort((entry_value, -count, entry_class))
    listed = entry_class[order], entry_value[order], count[order]
    return Sensitive(name, values, classes, *listed, whole)


def losses(written: Sequence[str | None], hierarchy: Any) -> tuple[Floats, Bools]:
    """Returns the loss of each value as it is written, and true for values that the hierarchy has.

    A label of nodes of several levels is taken for the node with most leaves below it. A value that
    the hierarchy lacks has no loss.
    """
    if isinstance(hierarchy, Scale):
        return hierarchy.losses(written)
    of_label: dict[str | None, float] = {}
    for label, loss in zip(hierarchy.labels, hierarchy.loss, strict=True):
        of_label[label] = max(of_label.get(label, 0.0), float(loss))
    known = np.array([value in of_label for value in written], np.bool_)
    return np.array([of_label.get(value, 0.0) for value in written], np.float64), known


def column_loss(classes: Classes, name: str, hierarchy: Any) -> tuple[float, int]:
    """Returns (mean over rows of the loss of a column's values, rows with a value that the
    hierarchy lacks)."""
    codes, values = encoded(classes.quasi.column(name))
    loss, known = losses([*texts(values).to_pylist(), None], hierarchy)
    found = compute().fill_null(codes, len(values)).to_numpy()
    rows = max(1, int(classes.rows.sum()))
    unknown = int(classes.rows[~known[found]].sum())
    return float(loss[found] @ classes.rows / rows), unknown


def check_feasible(table: Any, plan: Plan) -> None:
    """Raises ConfigError if no release of a table can meet a plan, however coarse.

    All rows as one class are the best case for k and each kind of l, but not for t: a requirement
    that holds in all classes holds in their union. The text begins with the plan's field.
    """
    whole = measure(table, plan, ())
    if not len(whole):
        return
    users = int(whole.users[0])
    if users < plan.k:
        named = "rows" if plan.user is None else "users"
        reject("k", f"{plan.k} is more than the {users} {named} that there are")
    kind = KINDS[int(plan.rule["kind"])]
    for column in whole.sensitive:
        if column.values < plan.l:
            problem = f"{plan.l} is more than the {column.values} values of column {column.name!r}"
            reject("l", problem)
        if not column.is_diverse(plan.l, kind, plan.rule["c"])[0]:
            reject("l", f"column {column.name!r} as a whole is not so diverse")
        if plan.max_share is not None and column.share[0] > plan.max_share + ROUNDING:
            problem = f"one value of column {column.name!r} has {column.share[0]:.1%} of the whole"
            reject("max_share", f"{problem}, and no class can be better than that")
