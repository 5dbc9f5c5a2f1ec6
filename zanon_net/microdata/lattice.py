# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Full-domain recoding: one level a column, and the rows of classes that fail are left out.

`least_loss` finds the combination of levels with the least loss exactly. The combinations are a
lattice (Samarati 2001). The loss of the levels alone grows with each level. It is a lower bound of
the loss with suppressed rows, each of which counts 1. Combinations are examined in the order of
this bound, until it exceeds the best loss found. If a requirement of classes holds for their
unions, too, a combination that suppresses too much rules out all combinations below it. Each open
combination is then examined together with a chain from it to the top, which is halved (Kohlmayer et
al. 2012, "Flash").
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from zanon_net.errors import ConfigError
from zanon_net.microdata.judging import Judge, Tuples, compacted
from zanon_net.microdata.measures import KEYS_MAX, ROUNDING, Floats, Ints

COMBINATIONS_MAX = 1 << 20

Levels = tuple[int, ...]


@dataclass(frozen=True)
class Recoded:
    """A table with one level a column.

    nodes: of each tuple (second index) in each column. faults: the reason why a tuple may not be
    written, as Judge.faults. suppressed: its rows. loss: of the table; a suppressed row counts 1.
    """

    levels: Levels
    nodes: Ints
    faults: Ints
    suppressed: int
    loss: float


class Lattice:
    """All combinations of levels."""

    def __init__(self, tuples: Tuples, hierarchies: Sequence[Any], judge: Judge) -> None:
        self._tuples, self._judge = tuples, judge
        self._ancestors = [h.ancestors.astype(np.int64) for h in hierarchies]
        self._loss = [h.loss for h in hierarchies]
        self.shape = tuple(h.levels for h in hierarchies)
        self._rows = int(tuples.weight.sum())

    def at(self, levels: Levels) -> Recoded:
        """Returns the table with these levels."""
        nodes = np.array(
            [
                ancestors[level, codes]
                for ancestors, level, codes in zip(
                    self._ancestors, levels, self._tuples.codes, strict=True
                )
            ]
        )
        group, groups = self._classes(nodes)
        faults = self._judge.faults(group, groups)[group]
        weight, bad = self._tuples.weight, faults > 0
        loss = np.mean([of[node] for of, node in zip(self._loss, nodes, strict=True)], axis=0)
        total = float(weight @ np.where(bad, 1.0, loss)) / max(1, self._rows)
        return Recoded(levels, nodes, faults, int(weight[bad].sum()), total)

    def _classes(self, nodes: Ints) -> tuple[Ints, int]:
        group, groups = np.zeros(len(self._tuples), np.int64), 1
        for node, ancestors in zip(nodes, self._ancestors, strict=True):
            size = ancestors.shape[1]
            assert groups * size < KEYS_MAX  # there are fewer groups than rows
            group, groups = compacted(group * size + node, groups * size)
        return group, groups

    def bounds(self) -> Floats:
        """Returns the loss of each combination without suppressed rows."""
        total: Floats = np.zeros(self.shape)
        columns = zip(self._ancestors, self._loss, self._tuples.codes, strict=True)
        for column, (ancestors, loss, codes) in enumerate(columns):
            means = loss[ancestors[:, codes]] @ self._tuples.weight / max(1, self._rows)
            total = total + means.reshape(
                [-1 if c == column else 1 for c in range(len(self.shape))]
            )
        return total / len(self.shape)

    def chain(self, levels: Levels) -> Iterator[Levels]:
        """Yields combinations from one to the top, one level of one column at a time."""
        current = list(levels)
        yield levels
        while tuple(current) != tuple(n - 1 for n in self.shape):
            # The column with the most remaining levels, so that the chain goes through the middle.
            left = [n - 1 - level for n, level in zip(self.shape, current, strict=True)]
            current[left.index(max(left))] += 1
            yield tuple(current)


def least_loss(lattice: Lattice, suppressed_max: int, *, monotone: bool) -> Recoded | None:
    """Returns the combination of levels with the least loss that suppresses at most
    `suppressed_max` rows.

    Of combinations with equal loss, the one with the smallest levels is returned, from the first
    column on. None: there is no combination. monotone: true if requirements of classes hold for
    their unions, too.
    """
    count = prod(lattice.shape)
    if count > COMBINATIONS_MAX:
        raise ConfigError(
            f"there are {count:,} combinations of levels, more than {COMBINATIONS_MAX:,}; take"
            " method topdown, or hierarchies with fewer levels"
        )
    bounds = lattice.bounds()
    ruled_out = np.zeros(lattice.shape, np.bool_)
    known: dict[Levels, bool] = {}
    best: Recoded | None = None

    def look(levels: Levels) -> bool:
        """Returns true if a combination suppresses few enough rows."""
        nonlocal best
        if levels not in known:
            recoded = lattice.at(levels)
            known[levels] = recoded.suppressed <= suppressed_max
            if not known[levels]:
                below = tuple(slice(level + 1) for level in levels)
                ruled_out[below if monotone else levels] = True
            elif best is None or (recoded.loss, levels) < (best.loss, best.levels):
                best = recoded
        return known[levels]

    for flat in np.argsort(bounds, axis=None, kind="stable"):
        levels = tuple(int(i) for i in np.unravel_index(flat, lattice.shape))
        if best is not None and bounds[levels] > best.loss + ROUNDING:
            break
        if ruled_out[levels] or look(levels) or not monotone:
            continue
        chain = list(lattice.chain(levels))
        low, high = 1, len(chain) - 1
        while low < high:
            middle = (low + high) // 2
            if look(chain[middle]):
                high = middle
            else:
                low = middle + 1
    return best
