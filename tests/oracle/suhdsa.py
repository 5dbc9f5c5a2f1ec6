# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The oracle of groups of rows: Algorithm 1 of "Real-Time Stream Data Anonymization via Dynamic
Reconfiguration with l-Diversity-Enhanced SUHDSA" (Sensors 2026, 26(1), 95), in plain Python.

What the paper leaves open is chosen as csrc/microdata/groups.h says. Distances and losses are whole
numbers, ONE for a column, so that ties are ties on every machine.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from oracle.microdata import is_diverse, share

ONE = 1 << 26
ROUNDING = 1e-9


class Tree:
    """A hierarchy: the parent of each node; a child's number is smaller, the root is its own."""

    def __init__(self, parent: Sequence[int]) -> None:
        self.parent = list(parent)
        inner = set(parent)
        self.leaves = [node for node in range(len(parent)) if node not in inner]
        if len(parent) == 1:
            self.leaves = [0]
        self.below = [0] * len(parent)
        for leaf in self.leaves:
            for node in self.path(leaf):
                self.below[node] += 1
        most = max(len(self.leaves) - 1, 1)
        self.loss = [((below - 1) * ONE + most // 2) // most for below in self.below]
        self._apart: dict[tuple[int, int], int] = {}

    def path(self, node: int) -> list[int]:
        """The node and all above it."""
        path = [node]
        while self.parent[path[-1]] != path[-1]:
            path.append(self.parent[path[-1]])
        return path

    def common(self, a: int, b: int) -> int:
        """The lowest node that is both or has both below it."""
        while a != b:
            if a < b:
                a = self.parent[a]
            else:
                b = self.parent[b]
        return a

    def apart(self, a: int, b: int) -> int:
        """The distance of two nodes: the loss where one node stands for both."""
        if (a, b) not in self._apart:
            self._apart[a, b] = self.loss[self.common(a, b)]
        return self._apart[a, b]


@dataclass(frozen=True)
class Row:
    """A row: nodes of its quasi-identifiers, sensitive values, and its user (None: its own)."""

    quasi: tuple[int, ...]
    sensitive: tuple[int, ...] = ()
    user: int | None = None


@dataclass(frozen=True)
class Rule:
    """What a group must have."""

    k: int
    l: int = 1  # noqa: E741
    l_kind: str = "distinct"
    max_share: float = 1.0

    def holds(self, users: int, of: Mapping[int, int]) -> bool:
        """Whether a class of so many users with such counts of values may be released."""
        if users < self.k or not is_diverse(of, self.l, self.l_kind):
            return False
        return float(share(of)) <= self.max_share + ROUNDING


@dataclass
class Grouper:
    """Groups rows. literal: what could not be repaired is a group all the same, and swaps go by
    (2); strict: it is merged whatever its size, else its rows are in no group, and swaps go by (3).

    part: a window of more rows is split by its hierarchies first.
    """

    trees: Sequence[Tree]
    rule: Rule
    repair: bool = True
    strict: bool = True
    neighbours: int = 3
    growth: int = 3
    weight: float = 0.7
    part: int = 4000
    swaps: int = 0
    merges: int = 0
    pairs: int = 0
    rows: Sequence[Row] = field(default=(), repr=False)
    aim: int = 1
    wanted: int = 1

    # ---- what a group is ----

    def distance(self, a: Sequence[int], b: Sequence[int]) -> int:
        """The sum over the columns."""
        return sum(tree.apart(x, y) for tree, x, y in zip(self.trees, a, b, strict=True))

    def representative(self, group: Iterable[int]) -> tuple[int, ...]:
        """The commonest node of each column; ties: the smaller."""
        columns = zip(*(self.rows[row].quasi for row in group), strict=True)
        counts = (Counter(column) for column in columns)
        return tuple(min(count, key=lambda node: (-count[node], node)) for count in counts)

    def nodes(self, group: Sequence[int]) -> tuple[int, ...]:
        """The lowest common node of each column."""
        nodes = list(self.rows[group[0]].quasi)
        for row in group[1:]:
            pairs = zip(self.trees, nodes, self.rows[row].quasi, strict=True)
            nodes = [tree.common(a, b) for tree, a, b in pairs]
        return tuple(nodes)

    def cost(self, group: Sequence[int]) -> int:
        """Rows x loss."""
        nodes = self.nodes(group)
        return len(group) * sum(
            tree.loss[node] for tree, node in zip(self.trees, nodes, strict=True)
        )

    def user(self, row: int) -> object:
        """Who the row is of."""
        given = self.rows[row].user
        return ("row", row) if given is None else given

    def users(self, group: Iterable[int]) -> int:
        """Distinct users."""
        return len({self.user(row) for row in group})

    def values(self, group: Iterable[int]) -> list[int]:
        """Distinct values of each sensitive column."""
        columns = zip(*(self.rows[row].sensitive for row in group), strict=True)
        return [len(set(column)) for column in columns]

    def counts(self, group: Iterable[int], column: int) -> Counter[int]:
        """The users that have each value of a sensitive column."""
        pairs = {(self.rows[row].sensitive[column], self.user(row)) for row in group}
        return Counter(value for value, _ in pairs)

    def missing(self, group: Iterable[int]) -> int:
        """How many values the group lacks, over the columns."""
        return sum(max(self.aim - n, 0) for n in self.values(group))

    def urgency(self, group: Sequence[int]) -> int:
        """l - D(G), where D(G) is the least over the columns; at least 0."""
        return max([self.aim - n for n in self.values(group)] + [0])

    def good(self, group: Sequence[int]) -> bool:
        """Whether the group may be released."""
        if self.missing(group):
            return False
        users = self.users(group)
        for column in range(len(self.rows[group[0]].sensitive)):
            if not self.rule.holds(users, self.counts(group, column)):
                return False
        return users >= self.rule.k

    # ---- GroupByQID ----

    def nearest(self, row: int, others: Iterable[int]) -> list[int]:
        """The others by distance, ties by row."""
        quasi = self.rows[row].quasi
        return sorted(others, key=lambda i: (self.distance(quasi, self.rows[i].quasi), i))

    def around(self, left: Sequence[int]) -> list[int]:
        """The first of the rows left with the nearest others, until there are k users."""
        group = [left[0]]
        for row in self.nearest(left[0], left[1:]):
            if len(group) == self.rule.k:
                break
            if self.user(row) not in {self.user(i) for i in group}:
                group.append(row)
        return group

    def form(self, part: Sequence[int]) -> list[list[int]]:
        """The groups of a part of the window, before repairs."""
        left, groups = list(part), []
        while left and self.users(left) >= self.rule.k:
            groups.append(self.around(left))
            left = [row for row in left if row not in groups[-1]]
        if not groups:
            return []
        centres = [self.representative(group) for group in groups]
        for row in left:
            quasi = self.rows[row].quasi
            near = min(range(len(groups)), key=lambda j: (self.distance(quasi, centres[j]), j))
            groups[near].append(row)
            centres[near] = self.representative(groups[near])
        return groups

    # ---- repairs ----

    def exchange(
        self, g: list[int], h: list[int], centres: tuple[Sequence[int], Sequence[int]]
    ) -> tuple[list[int], list[int]] | None:
        """One swap: of the pairs that help most the least in cost, ties by rows."""
        best, lacks = None, self.missing(g)
        for x in g:
            for y in h:
                new_g = [y if row == x else row for row in g]
                new_h = [x if row == y else row for row in h]
                still = self.missing(new_g)
                if still >= lacks or self.missing(new_h):
                    continue
                if min(self.users(new_g), self.users(new_h)) < self.rule.k:
                    continue
                cost = self.distance(self.rows[x].quasi, centres[0])
                cost += self.distance(self.rows[y].quasi, centres[1])
                if best is None or (still, cost, x, y) < best[0]:
                    best = ((still, cost, x, y), new_g, new_h)
        return best and best[1:]

    def swap(self, g: list[int], h: list[int]) -> tuple[list[int], list[int], int, int] | None:
        """The fewest exchanges that repair g, how many, and the pairs looked at; None: in vain."""
        own, other = self.representative(g), self.representative(h)
        centres = (other, own) if self.strict else (own, other)
        number = pairs = 0
        while self.missing(g):
            self.pairs += len(g) * len(h)
            pairs += len(g) * len(h)
            done = self.exchange(g, h, centres)
            if done is None:
                return None
            g, h = done
            number += 1
        return (g, h, number, pairs) if number and self.good(g) and self.good(h) else None

    def price(self, before: int, after: int, rows: int, work: int) -> float:
        """Equation (1): the loss by row of both groups, and the work."""
        more = (after - before) / (ONE * len(self.trees)) / rows
        share = work / (self.growth * self.rule.k) ** 2
        loss_part = self.weight * more
        work_part = (1 - self.weight) * share
        return loss_part + work_part

    def repair_one(self, groups: dict[int, list[int]], number: int) -> None:
        """Swaps with one of the nearest groups, or takes it in, whichever is cheaper."""
        g = groups[number]
        near = sorted(
            (j for j in groups if j != number),
            key=lambda j: (
                self.distance(self.representative(g), self.representative(groups[j])),
                j,
            ),
        )[: self.neighbours]
        choices = []
        for place, j in enumerate(near):
            h = groups[j]
            rows, before = len(g) + len(h), self.cost(g) + self.cost(h)
            swapped = self.swap(g, h) if self.good(h) else None
            if swapped is not None:
                after = self.cost(swapped[0]) + self.cost(swapped[1])
                price = self.price(before, after, rows, swapped[3])
                choices.append((price, 0, place, j, swapped))
            if rows <= self.growth * self.rule.k and self.good(g + h):
                price = self.price(before, self.cost(g + h), rows, rows)
                choices.append((price, 1, place, j, None))
        if not choices:
            return
        _, _, _, j, swapped = min(choices, key=lambda choice: choice[:3])
        if swapped is not None:
            groups[number], groups[j] = swapped[0], swapped[1]
            self.swaps += swapped[2]
        else:
            groups[number] = g + groups.pop(j)
            self.merges += 1

    def merge_all(self, groups: dict[int, list[int]]) -> None:
        """Merges what is not good, worst first, with the group that adds least to the loss; of
        those with which it is good, if there is one. Nothing helps where all lack values."""
        if self.missing([row for group in groups.values() for row in group]):
            return
        while len(groups) > 1:
            bad = [j for j in groups if not self.good(groups[j])]
            if not bad:
                return
            number = min(bad, key=lambda j: (-self.urgency(groups[j]), j))
            g = groups[number]
            others = [j for j in groups if j != number]
            good = [j for j in others if self.good(g + groups[j])]
            best = min(
                good or others,
                key=lambda j: (self.cost(g + groups[j]) - self.cost(groups[j]), j),
            )
            groups[number] = g + groups.pop(best)
            self.merges += 1

    def repaired(self, formed: list[list[int]]) -> list[list[int]]:
        """The groups of a part after repairs."""
        groups = dict(enumerate(formed))
        if self.repair:
            self.aim = self.wanted
            self.repair_all(groups)
            self.aim = self.rule.l
        if self.repair and self.strict:
            self.merge_all(groups)
        if self.strict:
            return [group for group in groups.values() if self.good(group)]
        return list(groups.values())

    def repair_all(self, groups: dict[int, list[int]]) -> None:
        """The loop over the marked groups."""
        bad = [j for j in groups if not self.good(groups[j])]
        for number in sorted(bad, key=lambda j: (-self.urgency(groups[j]), j)):
            if number in groups and not self.good(groups[number]):
                self.repair_one(groups, number)

    # ---- windows ----

    def halves(self, part: list[int]) -> list[list[int]]:
        """A part that has too many rows, by the children of the common node of one column: that
        with the most loss of those by which it falls apart; where none is, by row."""
        nodes = self.nodes(part)
        columns = sorted(
            range(len(nodes)), key=lambda column: (-self.trees[column].loss[nodes[column]], column)
        )
        for column in columns:
            tree, buckets = self.trees[column], {}
            for row in part:
                path = [nodes[column], *tree.path(self.rows[row].quasi[column])]
                below = path[path.index(nodes[column], 1) - 1]
                buckets.setdefault(below, []).append(row)
            whole = self.whole([buckets[node] for node in sorted(buckets)])
            if len(whole) > 1:
                return whole
        middle = len(part) // 2
        return [part[:middle], part[middle:]]

    def whole(self, buckets: list[list[int]]) -> list[list[int]]:
        """Puts a bucket that cannot stand alone to the next one, the last to the one before."""
        parts: list[list[int]] = []
        held: list[int] = []
        for bucket in buckets:
            held = sorted(held + bucket)
            if self.good(held):
                parts.append(held)
                held = []
        if parts and held:
            parts[-1] = sorted(parts[-1] + held)
        return parts

    def parts(self, part: list[int]) -> list[list[int]]:
        """The parts of at most `part` rows of a window."""
        if len(part) <= self.part:
            return [part]
        return [small for half in self.halves(part) for small in self.parts(half)]

    def window(self, rows: Sequence[Row], aim: int | None = None) -> list[list[int]]:
        """The groups of a window, each sorted, by their first rows. aim: the l that repairs aim at,
        where it is more than the rule's; strict is by the rule."""
        self.rows, self.aim, self.wanted = rows, self.rule.l, max(aim or 1, self.rule.l)
        groups: list[list[int]] = []
        for part in self.parts(list(range(len(rows)))) if rows else []:
            groups += self.repaired(self.form(part))
        return sorted(sorted(group) for group in groups)

    def oldest(self, rows: Sequence[Row]) -> list[int]:
        """The first row with its nearest, as many as the rule takes; empty when it cannot hold."""
        self.rows, self.aim = rows, self.rule.l
        if not rows or self.users(range(len(rows))) < self.rule.k:
            return []
        group = self.around(range(len(rows)))
        for row in self.nearest(0, [row for row in range(1, len(rows)) if row not in group]):
            if self.good(group):
                break
            if self.helps(group, row):
                group.append(row)
        return sorted(group) if self.good(group) else []

    def helps(self, group: list[int], row: int) -> bool:
        """Whether the row adds a value that the group lacks; or, where it has enough of them and
        other things are missing, one that is not the commonest."""
        if self.missing(group):
            return self.missing([*group, row]) < self.missing(group)
        for column in range(len(self.rows[row].sensitive)):
            counts = self.counts(group, column)
            if self.rule.holds(self.users(group), counts):
                continue
            if counts[self.rows[row].sensitive[column]] < max(counts.values()):
                return True
        return False
