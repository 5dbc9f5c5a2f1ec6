# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The probability that enough others of several classes are alike, given each one's probability."""

import numpy as np

from zanon_net.model.binomial import pmf, tail
from zanon_net.model.special import Floats

CELLS = 1 << 21  # most numbers of an array in memory at once


def tail_of_sum(n: tuple[int, ...], m: int, p: Floats) -> Floats:
    """Returns P[Σ_c Bin(n_c, p_c) >= m] for each row of p, shape (R, C); terms are positive
    throughout.

    The result has shape (R,). About R (C-2) m^2 + R m steps.
    """
    if m <= 0:
        return np.ones(len(p))
    rows = max(CELLS // (m + 1), 1)
    parts = [_tail_of_sum(n, m, p[at : at + rows]) for at in range(0, len(p), rows)]
    return np.concatenate(parts) if parts else np.zeros(0)


def _tail_of_sum(n: tuple[int, ...], m: int, p: Floats) -> Floats:
    """Adds one class after the other to the sum; column t - 1 is P[sum >= t], t = 1 to m."""
    total = np.zeros((len(p), m))
    for i, (size, chance) in enumerate(zip(n, p.T, strict=True)):
        last = i == len(n) - 1
        counts = min(size, m - 1)
        weights = pmf(size, np.arange(counts + 1)[np.newaxis, :], chance[:, np.newaxis])
        grown = np.zeros_like(total)
        for t in range(m if last else 1, m + 1):
            grown[:, t - 1] = tail(size, t, chance)
            if i > 0:
                below = min(t, counts + 1)
                parts = weights[:, :below] * total[:, t - below : t][:, ::-1]
                grown[:, t - 1] += parts.sum(axis=1)
        total = grown
    return np.minimum(total[:, -1], 1.0)
