# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Shares by level of the exposures of one window, by definition and without a table."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence

Names = tuple[str, str | None, str | None]
"""A name, its domain and its category."""


def by_level(exposures: Sequence[tuple[Hashable, Names]], z: int) -> tuple[list[int], float]:
    """Exposures that z users share by name, by domain and by category, and the share of the
    entropy of names that is kept. exposures: (user, chain)."""
    left, counts = list(exposures), [0, 0, 0]
    shown: Counter[tuple[int, str]] = Counter()
    for level in range(3):
        behind: dict[str | None, set[Hashable]] = defaultdict(set)
        for user, chain in left:
            behind[chain[level]].add(user)
        passing = {label for label, users in behind.items() if label and len(users) >= z}
        for _user, chain in left:
            if (label := chain[level]) is not None and label in passing:
                counts[level] += 1
                shown[level, label] += 1
        left = [(user, chain) for user, chain in left if chain[level] not in passing]
    whole = entropy(Counter(chain[0] for _user, chain in exposures).values(), len(exposures))
    kept = entropy(shown.values(), len(exposures))
    return counts, kept / whole if whole > 0 else float(counts[0] > 0)


def entropy(counts: Iterable[int], n: int) -> float:
    """Bits; exposures that are not among the counts add nothing."""
    return sum(-k / n * math.log2(k / n) for k in counts)
