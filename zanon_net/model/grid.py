# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The law of a sum of independent two-point variables on a grid, cut to a window.

A variable is 0, or with probability m a jump D. On the grid, D = (j + θ)h becomes j with (1 - θ)
and j + 1 with θ, which keeps the mean. For any F, putting the grid in place of one variable moves
the expectation of F by between m θ(1-θ) h²/2 inf F'' and m θ(1-θ) h²/2 sup F''. Over all variables
the moves add up (`Jumps.spread`).

Jumps only go up, so the law below the end of the window is exact. Common jumps are convolved one by
one. The rare ones are far jumps, of which only a few fit into the window. Their law is the
exponential of a short series, Π(1 + m(w^D - 1)) = Π(1-m) exp Σ_i (-1)^(i+1) r^i w^(iD) / i with r =
m/(1-m), and its powers beyond those few are 0 within the window.
"""

from dataclasses import dataclass
from math import comb, exp, log2, sqrt

import numpy as np
from numpy.typing import NDArray

from zanon_net.model.special import Floats, convolve_truncated

RARE = 0.05  # jumps less likely than this are taken by the series,
POWERS_MAX = 16  # if at most this number of them fits into the window
EPSILON = 2.0**-52
CONVOLUTION_ERROR = 4 * EPSILON


@dataclass(frozen=True, slots=True)
class Jumps:
    """Two-point variables on a grid: with probability `mass`, a jump of `cell` + `part` steps."""

    mass: Floats
    cell: NDArray[np.int64]
    part: Floats

    @classmethod
    def of(cls, mass: Floats, size: Floats, step: float, cells: int) -> "Jumps":
        """Makes jumps of sizes >= 0, or infinite; a jump out of the window is cut to its end."""
        steps = np.minimum(size / step, cells)
        cell = np.floor(steps)
        return cls(mass, cell.astype(np.int64), steps - cell)

    def select(self, which: NDArray[np.bool_]) -> "Jumps":
        """Returns the jumps that `which` marks."""
        return Jumps(self.mass[which], self.cell[which], self.part[which])

    def rounded(self, up: bool) -> "Jumps":
        """Rounds all jumps down, or up: their sum is then a lower, or an upper, bound."""
        cell = self.cell + (self.part > 0) if up else self.cell
        return Jumps(self.mass, cell, np.zeros_like(self.part))

    def spread(self) -> float:
        """Returns Σ m θ(1-θ) / 2: half the variance that the grid adds, in squared steps."""
        return float(np.sum(self.mass * self.part * (1 - self.part))) / 2


@dataclass(frozen=True, slots=True)
class Law:
    """P[sum = c] of the first cells; the rest of the probability is beyond the window."""

    mass: Floats
    rounding: float  # a bound on the rounding error of all cells together

    def beyond(self) -> float:
        """Returns the probability that the sum is beyond the window."""
        return max(1.0 - float(self.mass.sum()), 0.0)


def law_on_grid(jumps: Jumps, cells: int) -> Law:
    """Returns the law of the sum of jumps on the cells 0 to `cells` - 1."""
    rare = (jumps.mass < RARE) & (jumps.cell * POWERS_MAX >= cells) & (jumps.cell > 0)
    law = _law_of_rare(jumps.select(rare & (jumps.mass > 0)), cells)
    common = jumps.select(~rare)
    mass = law.mass
    for m, cell, part in zip(common.mass, common.cell.tolist(), common.part, strict=True):
        mass = _with_jump(mass, m, cell, part)
    return Law(mass, law.rounding + 4 * EPSILON * (len(common.mass) + 4))


def _with_jump(law: Floats, mass: float, cell: int, part: float) -> Floats:
    """Returns the convolution of a law with one jump."""
    after = law * (1 - mass)
    for at, weight in ((cell, mass * (1 - part)), (cell + 1, mass * part)):
        if at < len(law) and weight != 0:
            after[at:] += weight * law[: len(law) - at]
    return after


def _law_of_rare(jumps: Jumps, cells: int) -> Law:
    """Returns exp of the series by Horner's rule: each turn is a convolution cut to the window."""
    if jumps.mass.size == 0:
        law = np.zeros(cells)
        law[0] = 1.0
        return Law(law, 0.0)
    series = _log_series(jumps, cells)
    stay = float(np.sum(np.log1p(-jumps.mass)))
    powers = (cells - 1) // int(jumps.cell.min())
    total = np.zeros(cells)
    total[0] = 1.0
    for i in range(powers, 0, -1):
        total = convolve_truncated(series / i, total)
        total[0] += 1.0
    growth = exp(float(np.abs(series).sum()) + stay)
    error = CONVOLUTION_ERROR * log2(2 * cells) * sqrt(cells) * powers * growth
    return Law(total * exp(stay), error)


def _log_series(jumps: Jumps, cells: int) -> Floats:
    """Returns Σ_i (-1)^(i+1) r^i w^(iD) / i within the window, w^D being spread over its two
    cells."""
    series = np.zeros(cells)
    odds = jumps.mass / (1 - jumps.mass)
    power = 1
    while (inside := jumps.cell * power < cells).any():
        cell, part = jumps.cell[inside] * power, jumps.part[inside]
        scale = (-1.0) ** (power + 1) / power * odds[inside] ** power
        for ups in range(power + 1):
            weight = scale * comb(power, ups) * part**ups * (1 - part) ** (power - ups)
            series += np.bincount(cell + ups, weight, minlength=cells + power)[:cells]
        power += 1
    return series
