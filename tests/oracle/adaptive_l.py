# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The oracle of the adaptive l: Algorithm A1 of the paper that oracle/suhdsa.py is made after, with
both directions, and with hysteresis since the last change."""

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence


def entropy(values: Sequence[Hashable]) -> float:
    """Natural logarithm."""
    n = len(values)
    return -sum(count / n * math.log(count / n) for count in Counter(values).values())


def adaptive_l(
    windows: Sequence[Sequence[Hashable]],
    l_min: int,
    l_max: int,
    *,
    rises: bool,
    alpha: float,
    band: float,
    dwell: int,
) -> Iterator[int]:
    """The l of each window. rises: when the entropy falls; else it falls with it."""
    lt, most, mean = l_min, 0, None
    at, changed, e_then = 0, 0, 0.0
    for values in windows:
        most = max(most, len(set(values)))
        if most >= 2:
            h = entropy(values)
            mean = h if mean is None else alpha * h + (1 - alpha) * mean
            e = min(mean / math.log(most), 1)
            at += 1
            if changed == 0 or (at - changed >= dwell and abs(e - e_then) >= band):
                share = 1 - e if rises else e
                lt = min(max(math.floor(l_min + (l_max - l_min) * share + 1e-9), l_min), l_max)
                changed, e_then = at, e
        yield lt
