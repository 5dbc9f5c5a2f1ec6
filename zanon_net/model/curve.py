# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Exposures as a function of rank, from how many names have at least so many users.

log(λΔt) is taken as linear in log(rank) between ranks where it is known: where the number of users
passes a power of two. Above the first such rank and below the last, the line goes on.
"""

from dataclasses import dataclass

import numpy as np

from zanon_net.model.special import Floats, betainc

ROUNDS = 12
DEFAULT_SLOPE = 1.0
SLOPES = (0.3, 3.0)
TAIL_MAX = 4  # names never seen in a window, at most so many times those seen


@dataclass(frozen=True, slots=True)
class Curve:
    """Knots: the rank where exposures reach a value, from the most popular down."""

    ranks: Floats
    exposures: Floats

    def at(self, rank: Floats) -> Floats:
        """λΔt at ranks >= 1/2, not whole numbers only."""
        x, y = np.log(self.ranks), np.log(self.exposures)
        log_rank = np.log(rank)
        inner = np.interp(log_rank, x, y)
        first, last = self._slopes()
        inner = np.where(log_rank < x[0], y[0] + first * (x[0] - log_rank), inner)
        inner = np.where(log_rank > x[-1], y[-1] - last * (log_rank - x[-1]), inner)
        return np.asarray(np.exp(inner))

    def _slopes(self) -> tuple[float, float]:
        """How steeply exposures fall with rank at both ends, as exponents of a power law."""
        if len(self.ranks) < 2:
            return DEFAULT_SLOPE, DEFAULT_SLOPE
        x, y = np.log(self.ranks), np.log(self.exposures)
        some = min(3, len(x)) - 1
        slopes = (
            (y[0] - y[some]) / (x[some] - x[0]),
            (y[-1 - some] - y[-1]) / (x[-1] - x[-1 - some]),
        )
        first, last = (float(np.clip(slope, *SLOPES)) for slope in slopes)
        return first, last


def exposures_of(count: Floats, users: float) -> Floats:
    """λΔt of a name that `count` of the users expose in a window."""
    return np.asarray(-np.log1p(-np.minimum(count / users, 1 - 0.5 / users)))


def chance_of_at_least(count: int, users: float, exposures: Floats) -> Floats:
    """P[Bin(U, p) >= count] for each name, count >= 1."""
    p = -np.expm1(-exposures)
    if count > users:
        return np.zeros_like(p)
    return betainc(count, users - count + 1, p)
