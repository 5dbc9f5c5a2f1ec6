# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The oracle of `filter --generalize`: all generalizations of all rows, counted by brute force."""

import itertools
from collections.abc import Sequence
from fractions import Fraction

from oracle.hierarchy import Tree
from oracle.ztable import ZOracle

Step = tuple[int, ...]
Values = Sequence[str | None]


def all_steps(trees: Sequence[Tree]) -> list[Step]:
    """All combinations of levels but the roots, those that lose least first."""
    steps = itertools.product(*(range(tree.levels) for tree in trees))
    below = [step for step in steps if step != tuple(tree.levels - 1 for tree in trees)]
    return sorted(below, key=lambda step: (expected_loss(trees, step), step))


def expected_loss(trees: Sequence[Tree], step: Step) -> Fraction:
    """The mean over the columns, and over the values of each."""
    total = Fraction(0)
    for tree, level in zip(trees, step, strict=True):
        losses = [tree.loss((level, line[level])) for line in tree.lines]
        total += sum(losses, Fraction(0)) / len(losses)
    return total / len(trees)


class Ladder:
    """Rows in the order of their times: which generalization of each leaves."""

    def __init__(self, trees: Sequence[Tree], steps: Sequence[Step], z: int, window: int) -> None:
        self.trees, self.steps = trees, steps
        self.oracle = ZOracle(z, window)

    def nodes(self, values: Values, step: Step) -> tuple[tuple[int, str], ...]:
        """A generalization; a value that is in no hierarchy is the root."""
        found = []
        for tree, value, level in zip(self.trees, values, step, strict=True):
            top = (tree.levels - 1, tree.lines[0][-1])
            known = tree.find(value) >= 0
            found.append(tree.ancestor((0, value or ""), level) if known else top)
        return tuple(found)

    def decide(self, t: int, user: str, values: Values) -> tuple[Step, list[str | None]] | None:
        """(step, labels) of the finest generalization that z users exposed, or None."""
        answer = None
        for step in self.steps:
            nodes = self.nodes(values, step)
            if self.oracle.observe(t, user, nodes) and answer is None:
                answer = step, [label or None for _level, label in nodes]
        return answer
