# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The oracle of `filter --levels` on rows: the rule of oracle/generalization, row by row."""

from collections.abc import Sequence

from oracle.generalization import Rule, World
from oracle.hierarchy import Tree

Step = tuple[int, ...]
Values = Sequence[str | None]


class Ladder:
    """Rows in the order of their times: which generalization of each leaves."""

    def __init__(self, trees: Sequence[Tree], steps: Sequence[Step], z: int, window: int) -> None:
        self.trees, self.steps, self.z = trees, steps, z
        self.numbers: dict[object, int] = {}
        self.world = World([tuple(range(len(steps)))], [1.0])
        self.rule = Rule(self.world, window, z_max=z)

    def nodes(self, values: Values, step: Step) -> tuple[tuple[int, str], ...]:
        """A generalization; a value that is in no hierarchy is the root."""
        found = []
        for tree, value, level in zip(self.trees, values, step, strict=True):
            top = (tree.levels - 1, tree.lines[0][-1])
            known = tree.find(value) >= 0
            found.append(tree.ancestor((0, value or ""), level) if known else top)
        return tuple(found)

    def chain(self, values: Values) -> tuple[int, ...]:
        """The numbers of a row's generalizations, which the world learns."""
        labels = [(i, self.nodes(values, step)) for i, step in enumerate(self.steps)]
        chain = tuple(self.numbers.setdefault(label, len(self.numbers) + 1) for label in labels)
        for level, label in enumerate(chain):
            for higher in range(level + 1, len(chain)):
                self.world.above[label][higher].add(chain[higher])
        return chain

    def decide(self, t: int, user: int, values: Values) -> tuple[Step, list[str | None]] | None:
        """(step, labels) of the generalization that leaves, or None."""
        level = self.rule.observe(t, user, self.chain(values), self.z)
        if level is None:
            return None
        step = self.steps[level]
        return step, [label or None for _level, label in self.nodes(values, step)]
