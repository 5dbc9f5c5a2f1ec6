# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The model by the letter of the paper, in exact fractions: slow, short, independent."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import comb


def at_least(n: int, m: int, p: Fraction) -> Fraction:
    """P[Bin(n, p) >= m]."""
    return sum(
        (comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(max(m, 0), n + 1)), Fraction()
    )


def publish_prob(px: float, users: int, z: int) -> Fraction:
    """p^Y = p^X p^O (Eq. 3)."""
    p = Fraction(px)
    return p * at_least(users - 1, z - 1, p)


def k_anonymity(py: Sequence[float], users: Sequence[int], k: int, own: int = 0) -> Fraction:
    """p_k-anon of the class `own` (Eq. 5, and section 6); py: a row an attribute, classes in it."""
    rows = [[Fraction(p) for p in (row if isinstance(row, Sequence) else [row])] for row in py]
    total = Fraction()
    for y in product((0, 1), repeat=len(rows)):
        chances = []
        for c in range(len(users)):
            chance = Fraction(1)
            for row, has in zip(rows, y, strict=True):
                chance *= row[c] if has else 1 - row[c]
            chances.append(chance)
        alike = {0: Fraction(1)}
        for c, size in enumerate(users):
            others, p = size - (c == own), chances[c]
            pmf = [comb(others, i) * p**i * (1 - p) ** (others - i) for i in range(others + 1)]
            grown: dict[int, Fraction] = {}
            for have, weight in alike.items():
                for i, more in enumerate(pmf):
                    grown[have + i] = grown.get(have + i, Fraction()) + weight * more
            alike = grown
        total += chances[own] * sum((w for n, w in alike.items() if n >= k - 1), Fraction())
    return total
