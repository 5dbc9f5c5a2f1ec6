# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The oracle of hierarchies: trees of tuples, and numbers in intervals by fractions."""

import re
from collections.abc import Sequence
from fractions import Fraction

Node = tuple[int, str]
"""(level, label)"""


class Tree:
    """The hierarchy of lines, each from a value to the root."""

    def __init__(self, lines: Sequence[Sequence[str]], *, in_order: bool = False) -> None:
        self.lines = [tuple(line) for line in lines]
        self.levels = len(self.lines[0])
        self.nodes: list[Node] = []
        for level in range(self.levels):
            labels = list(dict.fromkeys(line[level] for line in self.lines))
            if not in_order:
                labels.sort(key=str.encode)
            self.nodes += [(level, label) for label in labels]

    def number(self, node: Node) -> int:
        return self.nodes.index(node)

    def line_of(self, node: Node) -> tuple[str, ...]:
        """A line that the node is in."""
        level, label = node
        return next(line for line in self.lines if line[level] == label)

    def ancestor(self, node: Node, level: int) -> Node:
        return (level, self.line_of(node)[level]) if level > node[0] else node

    def parent(self, node: Node) -> Node:
        return self.ancestor(node, min(node[0] + 1, self.levels - 1))

    def leaves_below(self, node: Node) -> int:
        return sum(line[node[0]] == node[1] for line in self.lines)

    def loss(self, node: Node) -> Fraction:
        if len(self.lines) == 1:
            return Fraction(0)
        return Fraction(self.leaves_below(node) - 1, len(self.lines) - 1)

    def common(self, a: Node, b: Node) -> Node:
        """The lowest node that both are or lie below."""
        for level in range(max(a[0], b[0]), self.levels):
            if self.ancestor(a, level) == self.ancestor(b, level):
                return self.ancestor(a, level)
        raise AssertionError("there is one root")

    def find(self, value: str | None) -> int:
        node = (0, value or "")
        return self.number(node) if node in self.nodes else -1


def interval(text: str, width: str, *, whole: bool = False) -> int | None:
    """The largest whole number <= text / width; None where the text is no number."""
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text):
        return None
    value = Fraction(text)
    if whole and value.denominator != 1:
        return None
    return value // Fraction(width)


def contains(label: str, text: str) -> bool:
    """Whether a number lies in what `Round` writes."""
    value = Fraction(text)
    number = r"(-?[0-9]+(?:\.[0-9]+)?)"
    if label == "*":
        return True
    if match := re.fullmatch(rf"\[{number},{number}\)", label):
        return Fraction(match[1]) <= value < Fraction(match[2])
    if match := re.fullmatch(rf"<{number}", label):
        return value < Fraction(match[1])
    if match := re.fullmatch(rf"{number}\+", label):
        return value >= Fraction(match[1])
    if match := re.fullmatch(r"([0-9]+)-([0-9]+)", label):
        return Fraction(match[1]) <= value <= Fraction(match[2]) and value.denominator == 1
    return value == Fraction(label)
