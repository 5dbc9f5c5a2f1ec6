# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Multidimensional recoding from the top down: classes split along hierarchies and at medians.

It begins with one class of all rows. In each round each class splits along the column that leaves
the least loss. A column with a hierarchy sends the rows to the children of the class's node.
Children that cannot be a class stay together as the rest, which keeps the node. If the rest cannot
be a class either, the smallest other children join it, as few as suffice. A column of numbers
splits in two at the place that is nearest to the median, or to a quartile if the halves cannot be
classes. Then each class gets the lowest common nodes, and the ranges, of its rows. A class that no
column can split is done. A value may be written finer in one row than in another.

If rows may be suppressed, a class that is done loses the rows that cost the others most, as long as
this lowers the loss of the table, in which a suppressed row counts 1.

The idea is LeFevre et al., "Mondrian multidimensional k-anonymity" (ICDE 2006), with the
hierarchies' nodes for medians of texts, and the rest of Aggarwal et al.'s and Fung et al.'s
top-down specializations.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zanon_net.microdata.arrow import ROOT
from zanon_net.microdata.judging import OUT, USERS, Judge, Tuples, compacted
from zanon_net.microdata.measures import ROUNDING, Bools, Floats, Ints
from zanon_net.microdata.scale import Scale

FRACTIONS = (0.5, 0.25, 0.75)  # of a class's rows, at which numbers are split


@dataclass(frozen=True)
class Column:
    """A column as it is written.

    nodes: of each tuple. labels: the text of each node; None: a missing value. loss: of each node.
    """

    nodes: Ints
    labels: Sequence[str | None]
    loss: Floats


class _Tree:
    """A column with a hierarchy. Its leaves have places in an order of the tree in which the leaves
    of a subtree are contiguous."""

    def __init__(self, codes: Ints, hierarchy: Any) -> None:
        self._codes, self._hierarchy = codes, hierarchy
        self._ancestors = hierarchy.ancestors.astype(np.int64)
        self._level = hierarchy.level.astype(np.int64)
        self._ordered = np.lexsort(self._ancestors)
        place = np.empty(len(self._ordered), np.int64)
        place[self._ordered] = np.arange(len(self._ordered))
        self._place = place[codes]

    def common(self, active: Ints, starts: Ints) -> Ints:
        """Returns the lowest common node of each group. active: tuples by group. starts: of the
        groups in them."""
        place = self._place[active]
        low = self._ordered[np.minimum.reduceat(place, starts)]
        high = self._ordered[np.maximum.reduceat(place, starts)]
        lines = self._ancestors[:, low] == self._ancestors[:, high]
        found: Ints = self._ancestors[lines.argmax(axis=0), low]
        return found

    def loss(self, nodes: Ints) -> Floats:
        """Returns the loss of each node."""
        return np.asarray(self._hierarchy.loss[nodes], np.float64)

    def children(self, group: Ints, node: Ints) -> tuple[Ints, int]:
        """Returns the parts of all classes by the children of their nodes, by class and node."""
        below = np.maximum(self._level[node] - 1, 0)
        child = self._ancestors[below[group], self._codes]
        size = self._ancestors.shape[1]
        return compacted(np.where(group >= 0, group * size + child, OUT), len(node) * size)

    def written(self, nodes: Ints) -> Column:
        """Returns the column with these nodes of the tuples."""
        return Column(nodes, self._hierarchy.labels, self._hierarchy.loss)


class _Line:
    """A column of numbers. A node is a range: low code x codes + high code."""

    def __init__(self, codes: Ints, scale: Scale) -> None:
        self.place, self._scale, self._size = codes, scale, scale.nodes
        self.numbers = len(scale.occurring)  # codes below are numbers
        self._edges = np.append(scale.occurring, [0, 0])

    def node_of(self, low: Ints, high: Ints) -> Ints:
        """Returns the range of codes; the root if it holds more than numbers or missing values."""
        root = self.numbers + 1
        is_root = (high >= self.numbers) & (low < high)
        found: Ints = np.where(is_root, root, low) * self._size + np.where(is_root, root, high)
        return found

    def common(self, active: Ints, starts: Ints) -> Ints:
        """Returns the range of each group, as _Tree.common."""
        place = self.place[active]
        return self.node_of(np.minimum.reduceat(place, starts), np.maximum.reduceat(place, starts))

    def loss(self, nodes: Ints) -> Floats:
        """Returns the loss of each range."""
        low, high = np.divmod(nodes, self._size)
        of_range = self._scale.loss(self._edges[low], self._edges[high])
        return np.where(high < self.numbers, of_range, high - self.numbers)

    def written(self, nodes: Ints) -> Column:
        """Returns the column with these ranges of the tuples."""
        distinct, number = np.unique(nodes, return_inverse=True)
        labels: list[str | None] = []
        for low, high in zip(*np.divmod(distinct, self._size), strict=True):
            if high < self.numbers:
                labels.append(self._scale.label(int(self._edges[low]), int(self._edges[high])))
            else:
                labels.append(None if high == self.numbers else ROOT)
        return Column(number.reshape(-1).astype(np.int64), labels, self.loss(distinct))


@dataclass(frozen=True)
class _Runs:
    """Borders between different numbers of a class: the tuples of all classes, in order.

    group: the class of each border. place: the number above it. before: rows of the class below it.
    below: the number below it.
    """

    group: Ints
    place: Ints
    below: Ints
    before: Ints

    @classmethod
    def of(cls, group: Ints, place: Ints, weight: Ints) -> "_Runs":
        """Returns the borders. group: the class of each tuple, or OUT."""
        active = np.flatnonzero(group >= 0)
        active = active[np.lexsort((place[active], group[active]))]
        of_class, at, rows = group[active], place[active], np.cumsum(weight[active])
        first = np.searchsorted(of_class, of_class)  # of the tuple's class
        before = rows - np.where(first > 0, rows[first - 1], 0)
        is_border = (of_class[1:] == of_class[:-1]) & (at[1:] != at[:-1])
        borders = np.flatnonzero(is_border)
        return cls(of_class[borders], at[borders + 1], at[borders], before[borders])

    def least(self, score: Floats, groups: int) -> Ints:
        """Returns the border of each class with the least score, the first of equals; -1: none."""
        best = np.full(groups, np.inf)
        np.minimum.at(best, self.group, score)
        found = np.flatnonzero((score == best[self.group]) & np.isfinite(score))[::-1]
        border = np.full(groups, -1, np.int64)
        border[self.group[found]] = found
        return border


@dataclass(frozen=True)
class _Split:
    """Result of splitting each class by one column.

    part: of each tuple. parts: number of parts. loss: of each class's rows after the split, summed;
    infinite if the class cannot be split.
    """

    part: Ints
    parts: int
    loss: Floats


class _Splitter:
    def __init__(self, tuples: Tuples, hierarchies: Sequence[Any], judge: Judge) -> None:
        self._weight, self._judge = tuples.weight, judge
        self.columns = [
            (_Line if isinstance(hierarchy, Scale) else _Tree)(codes, hierarchy)
            for codes, hierarchy in zip(tuples.codes, hierarchies, strict=True)
        ]

    def common(self, group: Ints, groups: int) -> Ints:
        """Returns the lowest common node of each group's tuples in each column (first index)."""
        active = np.flatnonzero(group >= 0)
        active = active[np.argsort(group[active], kind="stable")]
        starts = np.searchsorted(group[active], np.arange(groups))
        return np.array([column.common(active, starts) for column in self.columns], np.int64)

    def mean_loss(self, nodes: Ints) -> Floats:
        """Returns the loss of each class from its nodes."""
        lost = [column.loss(found) for column, found in zip(self.columns, nodes, strict=True)]
        return np.asarray(np.mean(lost, axis=0), np.float64)

    def split(self, number: int, group: Ints, nodes: Ints) -> _Split:
        """Splits each class by a column.

        number: of the column. group: the class of each tuple, or OUT. nodes: of each class and
        column.
        """
        column = self.columns[number]
        if isinstance(column, _Line):
            part, parts, is_split = self._halves(column, group, nodes.shape[1])
        else:
            part, parts, is_split = self._children(column, group, nodes[number])
        return _Split(part, parts, self._loss(part, parts, group, is_split))

    def _halves(self, column: _Line, group: Ints, groups: int) -> tuple[Ints, int, Bools]:
        """Returns (parts, their number, the classes that split in two)."""
        runs = _Runs.of(group, column.place, self._weight)
        cut = np.full(groups, -1, np.int64)
        for candidate in self._cuts(column, runs, group, groups):
            is_open = (cut < 0) & (candidate >= 0)
            if not is_open.any():
                continue
            inside = (group >= 0) & is_open[group]
            halves = np.where(inside, 2 * group + (column.place >= candidate[group]), OUT)
            half, count = compacted(halves, 2 * groups)
            class_of = np.empty(count, np.int64)
            class_of[half[inside]] = group[inside]
            good = np.bincount(class_of, self._judge.good(half, count), groups) == 2
            cut[good] = candidate[good]
        is_split = cut >= 0
        upper = is_split[group] & (column.place >= cut[group])
        part, parts = compacted(np.where(group >= 0, 2 * group + upper, OUT), 2 * groups)
        return part, parts, is_split

    def _cuts(self, column: _Line, runs: _Runs, group: Ints, groups: int) -> Iterator[Ints]:
        """Yields for each class the number at which its upper part begins; -1: none."""

        def places(border: Ints) -> Ints:
            found: Ints = np.where(border >= 0, runs.place[border] if len(runs.place) else -1, -1)
            return found

        is_last = (runs.place >= column.numbers) & (runs.below < column.numbers)
        yield places(runs.least(np.where(is_last, 0.0, np.inf), groups))
        inside = group >= 0
        total = np.bincount(group[inside], self._weight[inside], groups)
        for fraction in FRACTIONS:
            yield places(runs.least(np.abs(runs.before - fraction * total[runs.group]), groups))

    def _children(self, column: _Tree, group: Ints, node: Ints) -> tuple[Ints, int, Bools]:
        """Returns (parts, their number, the classes that split)."""
        groups = len(node)
        part, parts = column.children(group, node)
        class_of = np.empty(parts, np.int64)
        class_of[part[part >= 0]] = group[part >= 0]
        good = self._judge.good(part, parts)
        pooled, is_split = self._pool(part, class_of, good, groups)
        # The rest of a class is one part. A class that cannot be split is one part.
        pooled |= ~is_split[class_of]
        joined = np.where(pooled, parts + class_of, np.arange(parts))
        part, parts = compacted(np.where(part >= 0, joined[part], OUT), parts + groups)
        return part, parts, is_split

    def _pool(self, part: Ints, class_of: Ints, good: Any, groups: int) -> tuple[Any, Any]:
        """Returns (the parts that go into the rest, the classes that split).

        From some m on, the rest with the m smallest good children may be a class.
        That m is found by bisection.
        """
        weight = np.bincount(part[part >= 0], self._weight[part >= 0], len(class_of))
        rank = _ranks(class_of, weight, good)
        children = np.bincount(class_of, good, groups).astype(np.int64)
        has_rest = np.bincount(class_of, ~good, groups) > 0
        low, high = np.zeros(groups, np.int64), np.where(has_rest, children, 0)
        while (open_ := low < high).any():
            middle = (low + high) // 2
            asked = open_[class_of] & (~good | (rank < middle[class_of]))
            tuples_asked = (part >= 0) & asked[part]
            rest, rests = compacted(np.where(tuples_asked, class_of[part], OUT), groups)
            holds = np.zeros(groups, np.bool_)
            holds[open_] = self._judge.good(rest, rests)
            low = np.where(open_ & ~holds, middle + 1, low)
            high = np.where(open_ & holds, middle, high)
        pooled = has_rest[class_of] & (~good | (rank < high[class_of]))
        # At least two parts are left; the rest may be among them.
        is_split = children - np.where(has_rest, high, 0) + has_rest >= 2
        return pooled, is_split

    def _loss(self, part: Ints, parts: int, group: Ints, is_split: Any) -> Floats:
        inside = part >= 0
        losses = self.mean_loss(self.common(part, parts))
        rows = self._weight[inside] * losses[part[inside]]
        summed = np.bincount(group[inside], rows, len(is_split))
        return np.where(is_split, summed, np.inf)

    def drop(self, group: Ints, nodes: Ints, is_done: Bools, most: int) -> Bools:
        """Returns true for tuples to suppress, at most `most` rows, in classes that are done.

        The remaining rows of each class are a class, and the loss of the table is less.
        """
        groups = nodes.shape[1]
        group = np.where((group >= 0) & is_done[group], group, OUT)
        gain, cost = np.zeros(groups), np.zeros(groups)
        chosen = np.zeros(len(group), np.bool_)
        for number in range(len(self.columns)):
            out = self._candidates(number, group, nodes, most)
            found, dropped = self._gain(group, out, nodes)
            better = found > gain + ROUNDING
            gain, cost = np.where(better, found, gain), np.where(better, dropped, cost)
            taken = (group >= 0) & better[group]
            chosen[taken] = out[taken]
        order = np.lexsort((np.arange(groups), -gain / np.maximum(cost, 1)))
        order = order[gain[order] > 0]
        accepted = np.zeros(groups, np.bool_)
        accepted[order[np.cumsum(cost[order]) <= most]] = True
        return chosen & (group >= 0) & accepted[group]

    def _candidates(self, number: int, group: Ints, nodes: Ints, most: int) -> Bools:
        """Returns the tuples without which a column would be written finer: children that are no
        class, or one end of the numbers."""
        column = self.columns[number]
        if isinstance(column, _Tree):
            part, parts = column.children(group, nodes[number])
            bad = ~self._judge.good(part, parts)
            return (part >= 0) & bad[part]
        groups = nodes.shape[1]
        runs = _Runs.of(group, column.place, self._weight)
        inside = group >= 0
        total = np.bincount(group[inside], self._weight[inside], groups)
        of_class, mean = runs.group, self.mean_loss(nodes)
        before = column.loss(nodes[number])[of_class]
        scores, columns = [], len(self.columns)
        highest = np.zeros(groups, np.int64)
        np.maximum.at(highest, group[inside], column.place[inside])
        lowest = np.full(groups, column.numbers + 2, np.int64)
        np.minimum.at(lowest, group[inside], column.place[inside])
        for lost, after in (
            (runs.before, column.node_of(runs.place, highest[of_class])),
            (total[of_class] - runs.before, column.node_of(lowest[of_class], runs.below)),
        ):
            kept = total[of_class] - lost
            gain = kept * (before - column.loss(after)) / columns - lost * (1 - mean[of_class])
            possible = (lost <= most) & (kept >= self._judge.k)
            scores.append(np.where(possible, -gain, np.inf))
        lower = runs.least(scores[0], groups)
        upper = runs.least(scores[1], groups)
        first, last = (_taken(s, at) for s, at in zip(scores, (lower, upper), strict=True))
        from_below = np.where(first <= last, _taken(runs.place, lower, -1), -1)
        from_above = np.where(last < first, _taken(runs.place, upper, -1), -1)
        below = (from_below[group] >= 0) & (column.place < from_below[group])
        above = (from_above[group] >= 0) & (column.place >= from_above[group])
        return inside & (below | above)

    def _gain(self, group: Ints, out: Bools, nodes: Ints) -> tuple[Floats, Floats]:
        """Returns (how much less each class loses without the tuples; their rows).

        The gain is 0 if the rest of a class is no class.
        """
        groups = nodes.shape[1]
        inside = group >= 0
        total = np.bincount(group[inside], self._weight[inside], groups)
        rest, rests = compacted(np.where(out, OUT, group), groups)
        gain, kept = np.zeros(groups), np.zeros(groups)
        if rests:
            left = rest >= 0
            class_of = np.empty(rests, np.int64)
            class_of[rest[left]] = group[left]
            kept[class_of] = np.bincount(rest[left], self._weight[left], rests)
            after = kept[class_of] * self.mean_loss(self.common(rest, rests))
            before = total[class_of] * self.mean_loss(nodes)[class_of]
            dropped = total[class_of] - kept[class_of]
            gain[class_of] = np.where(self._judge.good(rest, rests), before - after - dropped, 0.0)
        return gain, total - kept


def _taken(values: Any, at: Ints, none: float = np.inf) -> Any:
    """Returns the values at places; `none` where the place is -1."""
    return np.where(at >= 0, np.append(values, none)[at], none)


def _ranks(class_of: Ints, weight: Any, good: Any) -> Ints:
    """Returns the rank of each good part in its class: the smallest first, then by number."""
    order = np.lexsort((weight, ~good, class_of))
    starts = np.searchsorted(class_of[order], np.arange(class_of.max(initial=0) + 1))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - starts[class_of[order]]
    return rank


def top_down(
    tuples: Tuples, hierarchies: Sequence[Any], judge: Judge, most: int = 0
) -> tuple[list[Column], Ints]:
    """Returns (the columns as they are written, why each tuple is suppressed, as Judge.faults).

    hierarchies: of the columns; a Scale for numbers that split at medians. most: rows that may be
    suppressed. All rows together must be a permitted class.
    """
    splitter = _Splitter(tuples, hierarchies, judge)
    written = splitter.common(np.zeros(len(tuples), np.int64), 1).repeat(len(tuples), axis=1)
    faults = np.zeros(len(tuples), np.int64)
    group, groups = np.zeros(len(tuples), np.int64), 1
    while groups:
        nodes = splitter.common(group, groups)
        splits = [splitter.split(i, group, nodes) for i in range(len(splitter.columns))]
        best = np.argmin([split.loss for split in splits], axis=0)  # the first of equal columns
        continues = np.isfinite(np.min([split.loss for split in splits], axis=0))
        if most and not continues.all():
            dropped = splitter.drop(group, nodes, ~continues, most)
            most -= int(tuples.weight[dropped].sum())
            faults[dropped] = _faults(judge, dropped, group, groups)
            continues[group[dropped]] = True
            group = np.where(dropped, OUT, group)
        inside = group >= 0
        done = inside & ~continues[group]
        written[:, done] = nodes[:, group[done]]
        width = max(split.parts for split in splits)
        chosen = np.choose(best[group], [split.part for split in splits])
        keys = np.where(inside & ~done, group * width + chosen, OUT)
        group, groups = compacted(keys, groups * width)
    columns = [
        column.written(found) for column, found in zip(splitter.columns, written, strict=True)
    ]
    return columns, faults


def _faults(judge: Judge, dropped: Bools, group: Ints, groups: int) -> Ints:
    """Returns why the dropped tuples of each class could not be a class of their own."""
    part, parts = compacted(np.where(dropped, group, OUT), groups)
    if not parts:
        return np.zeros(0, np.int64)
    found = judge.faults(part, parts)[part[dropped]]
    return np.where(found > 0, found, USERS)
