# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Exposures as a function of rank, from the numbers of names that have at least 2^j users.

log(λΔt) is known at the ranks where the number of users passes a power of two. Between these it is
taken as linear in log(rank); beyond the first and the last, the line is continued.
"""

from dataclasses import dataclass

import numpy as np

from zanon_net.model.special import Floats, betainc

ROUNDS = 12
DEFAULT_SLOPE = 1.0
SLOPES = (0.3, 3.0)
TAIL_MAX = 4  # names are at most TAIL_MAX times the names seen in a window


@dataclass(frozen=True, slots=True)
class Curve:
    """Knots: ranks and the exposures there, from the most popular name down."""

    ranks: Floats
    exposures: Floats

    def at(self, rank: Floats) -> Floats:
        """Returns λΔt at ranks >= 1/2, which need not be whole numbers."""
        x, y = np.log(self.ranks), np.log(self.exposures)
        log_rank = np.log(rank)
        inner = np.interp(log_rank, x, y)
        first, last = self._slopes()
        inner = np.where(log_rank < x[0], y[0] + first * (x[0] - log_rank), inner)
        inner = np.where(log_rank > x[-1], y[-1] - last * (log_rank - x[-1]), inner)
        return np.asarray(np.exp(inner))

    def _slopes(self) -> tuple[float, float]:
        """Returns the exponents of the power laws by which exposures fall with rank at both
        ends."""
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
    """Returns λΔt of a name that `count` of the users expose in a window."""
    return np.asarray(-np.log1p(-np.minimum(count / users, 1 - 0.5 / users)))


def chance_of_at_least(count: int, users: float, exposures: Floats) -> Floats:
    """Returns P[Bin(U, p) >= count] for each name, count >= 1."""
    p = -np.expm1(-exposures)
    if count > users:
        return np.zeros_like(p)
    return betainc(count, users - count + 1, p)
