# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""p_k-anon of one class of users with certified bounds, for any number of attributes."""

import math

import numpy as np
from numpy.typing import ArrayLike

from zanon_net.model import checks
from zanon_net.model.binomial import (
    curvature,
    curvature_range,
    log_p_reaching,
    slope_max,
    tail,
)
from zanon_net.model.bounds import Bounds, bounds_around
from zanon_net.model.enumeration import ATTRIBUTES_MAX, k_anonymity_exact
from zanon_net.model.grid import EPSILON, Jumps, Law, law_on_grid
from zanon_net.model.special import Floats

CELLS_MIN, CELLS_MAX = 64, 1 << 20
OF_WIDTH = 0.95  # the share of the width that the grid's error may take,
CUT = 1 / 64  # and the share for the part that is cut off at the low end


def k_anonymity(py: ArrayLike, users: int, k: int, *, width: float = 1e-6) -> Bounds:
    """Returns p_k-anon = E_y[g(p_y)], g(p) = P[Bin(U-1, p) >= k-1] (Eq. 4, 5), between certified
    bounds.

    py: p^Y, shape (A,). users, k: U and k. width: largest distance of the bounds, down to about
    1e-9. They are wider only if the sum is too steep for the finest grid (k close to a U beyond
    10^6, say) and A > 22: look at `Bounds.width`. Raises ConfigError.

    log p_y = L_max - Σ_a D_a Bernoulli(m_a), m_a = min(p_a, 1-p_a), D_a = log((1-m_a)/m_a): the law
    of the sum is put on a grid (see grid), whose error is certified by the extremes of G''.
    """
    p = checks.probabilities("py", py)
    n, m = checks.count("users", users) - 1, checks.count("k", k) - 1
    width = checks.positive("width", width)
    if m == 0:
        return Bounds(1.0, 1.0, 1.0)
    if m > n:
        return Bounds(0.0, 0.0, 0.0)
    rare = np.minimum(p, 1 - p)
    rare = rare[rare > 0]
    if rare.size == 0:
        return Bounds(1.0, 1.0, 1.0)
    grid = _Grid(rare, n, m, width)
    if grid.too_fine and rare.size <= ATTRIBUTES_MAX:
        exact = k_anonymity_exact(rare, n + 1, m + 1)
        return bounds_around(exact - 1e-12, exact + 1e-12, exact)
    return grid.bounds()


def k_anonymity_pairwise(py: ArrayLike, users: int, k: int) -> float:
    """Returns P[Bin(U-1, p^Q) >= k-1] with p^Q = Π_a (p_a^2 + (1-p_a)^2) (2020 section IV-D).

    Legacy, and biased: it is g(E[p_y]) in place of E[g(p_y)]. For k = 2, where g is concave, it is
    always too optimistic: at the 2020 Table II it gives 0.869 where 0.126 is right. Use
    k_anonymity.

    py: p^Y, shape (A,). users, k: U and k. Raises ConfigError.
    """
    p = checks.probabilities("py", py)
    n, m = checks.count("users", users) - 1, checks.count("k", k) - 1
    matching = float(np.exp(np.sum(np.log1p(-2 * p * (1 - p)))))
    return float(tail(n, m, matching))


class _Grid:
    """The loss Σ D_a B_a over [0, window), where G(log_max - loss) is not negligible."""

    def __init__(self, rare: Floats, n: int, m: int, width: float) -> None:
        self.n, self.m = n, m
        self.mass = rare
        self.size = np.log1p(-rare) - np.log(rare)
        self.log_max = float(np.sum(np.log1p(-rare)))
        self.low, self.high = curvature_range(n, m, self.log_max)
        self.window = self.log_max - log_p_reaching(n, m, min(CUT * width, 0.5))
        self.cells = self._cells(OF_WIDTH * width) if self.window > 0 else 0
        self.too_fine = self.cells > CELLS_MAX
        self.cells = min(self.cells, CELLS_MAX)

    def _cells(self, error: float) -> int:
        """Returns the number of cells for a grid error of at most `error`, as θ(1-θ) <= 1/4."""
        spread = float(self.mass[self.size < self.window].sum()) / 8
        steep = spread * (self.high - self.low)
        finest = self.window * math.sqrt(steep / error)
        return max(math.ceil(finest), CELLS_MIN) if finest < 2.0**40 else 1 << 40

    def bounds(self) -> Bounds:
        """Bounds on E[G], and the estimate, from which the grid's mean error is subtracted."""
        top = float(tail(self.n, self.m, math.exp(self.log_max)))
        if self.cells == 0:
            return bounds_around(0.0, top * (1 + 1e-9), top / 2)
        step = self.window / self.cells
        jumps = Jumps.of(self.mass, self.size, step, self.cells)
        log_p = self.log_max - step * np.arange(self.cells)
        gain = tail(self.n, self.m, np.exp(log_p))
        law = law_on_grid(jumps, self.cells)
        value = float(law.mass @ gain)
        cut = law.beyond() * float(tail(self.n, self.m, math.exp(log_p[-1] - step)))
        error = jumps.spread() * step**2
        off = self._rounding(law)
        lower, upper = value - error * self.high - off, value - error * self.low + cut + off
        bend = float(law.mass @ curvature(self.n, self.m, log_p))
        estimate = value - error * bend + cut / 2
        if self.too_fine:
            low, high = self._directed(jumps, gain)
            lower, upper = max(lower, low - off), min(upper, high + cut + off)
        return bounds_around(lower, upper, estimate)

    def _rounding(self, law: Law) -> float:
        """Returns a bound on rounding errors: in the law, in p_y (from the given p on) and in g."""
        steepest = slope_max(self.n, self.m)
        slope = steepest * 64 * EPSILON * (1 + self.window - self.log_max)
        return law.rounding + slope + 1e-13

    def _directed(self, jumps: Jumps, gain: Floats) -> tuple[float, float]:
        """Bounds for any steepness of G, as it only rises: all jumps rounded up, or down."""
        sides = (law_on_grid(jumps.rounded(up=up), self.cells).mass for up in (True, False))
        low, high = (float(side @ gain) for side in sides)
        return low, high
