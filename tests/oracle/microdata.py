# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The definitions of k, l, t, loss and re-identification for whole rows, by brute force.

A table is a list of dicts; a missing value is None, a value like any other. Each function reads as
its definition does: it looks at all pairs of rows where the definition speaks of them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

Row = Mapping[str, Any]
Table = Sequence[Row]
Lines = Mapping[Any, Sequence[Any]]
"""A hierarchy: the labels of each raw value, from its leaf to the root."""


def same(a: Row, b: Row, columns: Sequence[str]) -> bool:
    return all(a[column] == b[column] for column in columns)


def classes(table: Table, quasi: Sequence[str]) -> list[list[Row]]:
    """The rows with the same quasi-identifiers, together."""
    found: list[list[Row]] = []
    for row in table:
        home = next((group for group in found if same(group[0], row, quasi)), None)
        if home is None:
            found.append([row])
        else:
            home.append(row)
    return found


def users(rows: Table, user: str | None) -> int:
    """The distinct users of some rows; without a user column each row is one."""
    return len(rows) if user is None else len({row[user] for row in rows})


def counts(rows: Table, sensitive: str, user: str | None) -> dict[Any, int]:
    """The users that have each sensitive value."""
    values = {row[sensitive] for row in rows}
    return {
        value: users([row for row in rows if row[sensitive] == value], user) for value in values
    }


def k_of(table: Table, quasi: Sequence[str], user: str | None = None) -> int:
    """The largest k: each row has k - 1 others, of other users, with its quasi-identifiers."""
    sizes = [users([other for other in table if same(row, other, quasi)], user) for row in table]
    return min(sizes, default=0)


def entropy(of: Mapping[Any, int]) -> float:
    total = sum(of.values())
    return -sum(n / total * math.log(n / total) for n in of.values())


def recursive_c(of: Mapping[Any, int], l: int) -> Fraction | None:  # noqa: E741
    """The bound above which each c makes r_1 < c (r_l + ... + r_m) true; None: there is none."""
    ordered = sorted(of.values(), reverse=True)
    tail = sum(ordered[l - 1 :])
    return None if tail == 0 else Fraction(ordered[0], tail)


def share(of: Mapping[Any, int]) -> Fraction:
    return Fraction(max(of.values()), sum(of.values()))


def distance(of: Mapping[Any, int], all_of: Mapping[Any, int]) -> Fraction:
    """Half the sum of what the shares of each value differ by."""
    total, everything = sum(of.values()), sum(all_of.values())
    return (
        sum(
            (
                abs(Fraction(of.get(value, 0), total) - Fraction(n, everything))
                for value, n in all_of.items()
            ),
            Fraction(0),
        )
        / 2
    )


def is_diverse(of: Mapping[Any, int], l: int, l_kind: str) -> bool:  # noqa: E741
    if l_kind.startswith("recursive:"):
        bound = recursive_c(of, l)
        return bound is not None and bound < Fraction(l_kind.partition(":")[2])
    if l_kind == "entropy":
        return entropy(of) >= math.log(l) - 1e-9
    return len(of) >= l


def is_good(
    rows: Table,
    all_of: Mapping[str, Mapping[Any, int]],
    *,
    k: int = 1,
    l: int = 1,  # noqa: E741
    l_kind: str = "distinct",
    max_share: float = 1,
    t: float = 1,
    user: str | None = None,
) -> bool:
    """Whether a class may be released. all_of: the whole's counts of each sensitive column."""
    good = users(rows, user) >= k
    for sensitive, everything in all_of.items():
        of = counts(rows, sensitive, user)
        good &= is_diverse(of, l, l_kind)
        good &= float(share(of)) <= max_share + 1e-9
        good &= float(distance(of, everything)) <= t + 1e-9
    return good


# ---- loss and attack ----------------------------------------------------------------------------


def below(lines: Lines, label: Any) -> int:
    """The leaves whose line has the label: most of them where it stands at several levels."""
    depths = {len(line) for line in lines.values()}
    return max(
        (
            len({line[0] for line in lines.values() if line[level] == label})
            for level in range(min(depths))
        ),
        default=0,
    )


def loss(lines: Lines, label: Any) -> Fraction:
    leaves = len({line[0] for line in lines.values()})
    return Fraction(below(lines, label) - 1, leaves - 1) if leaves > 1 else Fraction(0)


def contains(lines: Lines, label: Any, raw: Any) -> bool:
    return label in lines[raw]


def _tiers(target: Row, released: Table, hierarchies: Mapping[str, Lines]) -> Iterator[list[Row]]:
    """The candidates, the least general first; those of one tier are equally general."""
    candidates = [
        row
        for row in released
        if all(contains(lines, row[name], target[name]) for name, lines in hierarchies.items())
    ]

    def generality(row: Row) -> Fraction:
        return sum((loss(lines, row[name]) for name, lines in hierarchies.items()), Fraction(0))

    for level in sorted({generality(row) for row in candidates}):
        yield [row for row in candidates if generality(row) == level]


def re_id(
    target: Row,
    released: Table,
    hierarchies: Mapping[str, Lines],
    sensitive: Sequence[str],
    k: int,
) -> Fraction | None:
    """How likely the target's own row is among the first k: over all orders of equal candidates,
    and all candidates that may be the target's. None: no candidate may."""
    tiers = list(_tiers(target, released, hierarchies))
    own = [row for tier in tiers for row in tier if same(row, target, sensitive)]
    if not own:
        return None
    chances = []
    for mine in own:
        before, chance = 0, Fraction(0)
        for tier in tiers:
            if any(row is mine for row in tier):
                orders = list(permutations(range(len(tier))))
                place = next(i for i, row in enumerate(tier) if row is mine)
                hits = sum(before + order.index(place) < k for order in orders)
                chance = Fraction(hits, len(orders))
            before += len(tier)
        chances.append(chance)
    return sum(chances, Fraction(0)) / len(own)


def disclosed(
    target: Row,
    released: Table,
    hierarchies: Mapping[str, Lines],
    sensitive: str,
    key: Sequence[str],
) -> Fraction | None:
    """How likely the most frequent value of the class of the first candidate is the target's. A
    class is the rows that are the same in the columns `key`."""
    first = next(_tiers(target, released, hierarchies), None)
    if first is None:
        return None
    chance = Fraction(0)
    for row in first:
        members = [other for other in released if same(other, row, key)]
        chance += most_frequent(members, sensitive, target[sensitive]) / len(first)
    return chance


def most_frequent(rows: Table, sensitive: str, value: Any) -> Fraction:
    """How likely `value` is drawn out of the most frequent ones."""
    of = counts(rows, sensitive, None)
    modes = [other for other, n in of.items() if n == max(of.values())]
    return Fraction(value in modes, len(modes))
