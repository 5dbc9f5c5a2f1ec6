# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Multidimensional recoding from the top down: classes split along the hierarchies.

It begins with one class of all rows. In each round each class splits along the column that leaves
the least loss: its rows go to the children of its node in that column. Children that cannot be a
class stay together as the rest, which keeps the node. If the rest cannot be a class either, the
smallest other children join it, as few as suffice. Then each class gets the lowest common nodes of
its rows. A class that no column can split is done. So no row is suppressed, and a value may be
written finer in one row than in another.

The idea is LeFevre et al., "Mondrian multidimensional k-anonymity" (ICDE 2006), with the
hierarchies' nodes for medians, and the rest of Aggarwal et al.'s and Fung et al.'s top-down
specializations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zanon_net.microdata.judging import OUT, Judge, Tuples, compacted
from zanon_net.microdata.measures import Floats, Ints


class _Trees:
    """The hierarchies of all columns, and the tuples' nodes as places in an order of each tree in
    which a subtree's leaves are contiguous."""

    def __init__(self, tuples: Tuples, hierarchies: Sequence[Any]) -> None:
        self.ancestors = [h.ancestors.astype(np.int64) for h in hierarchies]
        self.level = [h.level.astype(np.int64) for h in hierarchies]
        self.loss = [h.loss for h in hierarchies]
        self._ordered = [np.lexsort(ancestors) for ancestors in self.ancestors]
        self._place = []
        for ordered, codes in zip(self._ordered, tuples.codes, strict=True):
            place = np.empty(len(ordered), np.int64)
            place[ordered] = np.arange(len(ordered))
            self._place.append(place[codes])

    def __len__(self) -> int:
        return len(self.loss)

    def common(self, group: Ints, groups: int) -> Ints:
        """Returns the lowest common node of each group's tuples in each column (first index)."""
        active = np.flatnonzero(group >= 0)
        active = active[np.argsort(group[active], kind="stable")]
        starts = np.searchsorted(group[active], np.arange(groups))
        return np.array(
            [self._common(column, active, starts) for column in range(len(self))], np.int64
        )

    def _common(self, column: int, active: Ints, starts: Ints) -> Ints:
        place = self._place[column][active]
        ordered, ancestors = self._ordered[column], self.ancestors[column]
        low = ordered[np.minimum.reduceat(place, starts)]
        high = ordered[np.maximum.reduceat(place, starts)]
        lines = ancestors[:, low] == ancestors[:, high]
        found: Ints = ancestors[lines.argmax(axis=0), low]
        return found

    def mean_loss(self, nodes: Ints) -> Floats:
        """Returns the loss of each class from its nodes."""
        found: Floats = np.mean(
            [loss[of_class] for loss, of_class in zip(self.loss, nodes, strict=True)], axis=0
        )
        return found


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
    def __init__(self, tuples: Tuples, trees: _Trees, judge: Judge) -> None:
        self._tuples, self._trees, self._judge = tuples, trees, judge

    def split(self, column: int, group: Ints, nodes: Ints) -> _Split:
        """Splits each class by a column.

        group: the class of each tuple, or OUT. nodes: of each class and column.
        """
        groups = nodes.shape[1]
        part, parts = self._children(column, group, nodes[column])
        class_of = np.empty(parts, np.int64)
        class_of[part[part >= 0]] = group[part >= 0]
        good = self._judge.good(part, parts)
        pooled, is_split = self._pool(part, class_of, good, groups)
        # The rest of a class is one part. A class that cannot be split is one part.
        pooled |= ~is_split[class_of]
        joined = np.where(pooled, parts + class_of, np.arange(parts))
        part, parts = compacted(np.where(part >= 0, joined[part], OUT), parts + groups)
        return _Split(part, parts, self._loss(part, parts, group, is_split))

    def _children(self, column: int, group: Ints, node: Ints) -> tuple[Ints, int]:
        """Returns the parts of all classes by the children of their nodes, by class and node."""
        ancestors = self._trees.ancestors[column]
        below = np.maximum(self._trees.level[column][node] - 1, 0)
        child = ancestors[below[group], self._tuples.codes[column]]
        size = ancestors.shape[1]
        return compacted(np.where(group >= 0, group * size + child, OUT), len(node) * size)

    def _pool(self, part: Ints, class_of: Ints, good: Any, groups: int) -> tuple[Any, Any]:
        """Returns (the parts that go into the rest, the classes that split).

        From some m on, the rest with the m smallest good children may be a class.
        That m is found by bisection.
        """
        weight = np.bincount(part[part >= 0], self._tuples.weight[part >= 0], len(class_of))
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
        losses = self._trees.mean_loss(self._trees.common(part, parts))
        rows = self._tuples.weight[inside] * losses[part[inside]]
        summed = np.bincount(group[inside], rows, len(is_split))
        return np.where(is_split, summed, np.inf)


def _ranks(class_of: Ints, weight: Any, good: Any) -> Ints:
    """Returns the rank of each good part in its class: the smallest first, then by number."""
    order = np.lexsort((weight, ~good, class_of))
    starts = np.searchsorted(class_of[order], np.arange(class_of.max(initial=0) + 1))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - starts[class_of[order]]
    return rank


def top_down(tuples: Tuples, hierarchies: Sequence[Any], judge: Judge) -> Ints:
    """Returns the nodes of each tuple (second index) in each column. All rows together must be a
    permitted class."""
    trees = _Trees(tuples, hierarchies)
    splitter = _Splitter(tuples, trees, judge)
    written = np.empty_like(tuples.codes)
    group, groups = np.zeros(len(tuples), np.int64), 1
    while groups:
        nodes = trees.common(group, groups)
        splits = [splitter.split(column, group, nodes) for column in range(len(trees))]
        best = np.argmin([split.loss for split in splits], axis=0)  # the first of equal columns
        goes_on = np.isfinite(np.min([split.loss for split in splits], axis=0))
        inside = group >= 0
        done = inside & ~goes_on[group]
        written[:, done] = nodes[:, group[done]]
        most = max(split.parts for split in splits)
        chosen = np.choose(best[group], [split.part for split in splits])
        keys = np.where(inside & ~done, group * most + chosen, OUT)
        group, groups = compacted(keys, groups * most)
    return written
