# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The smallest z that reaches a target: proven for every z, without computing every z.

p_k-anon is not monotone in z, so bisection would miss crossings. But it cannot change fast: with
H(p) = g(p) + p g'(p), its derivative in one p_a is E[H(p_a q) - H((1-p_a) q)], q being the chance
of the other attributes, so |Δ p_k-anon| <= max(H) Σ_a |Δ p_a|. All p_a fall as z grows, so the
sum is the difference of two totals. From a z that misses the target by d, every z whose total is
less than d / max(H) away misses it too.
"""

from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from zanon_net.errors import ConfigError
from zanon_net.model import checks
from zanon_net.model.binomial import pmf, tail
from zanon_net.model.bounds import Bounds
from zanon_net.model.exposure import exposure_probs, not_negligible, publish_probs
from zanon_net.model.single import k_anonymity
from zanon_net.model.special import Floats

Mode = Literal["first", "stable"]
WIDTHS = (1e-2, 1e-4, 1e-6, 1e-8)  # tried until the answer is clear


def smallest_z(
    px: ArrayLike,
    users: int,
    k: int,
    *,
    target: float,
    mode: Mode = "first",
    periods: int = 1,
) -> int:
    """Returns the smallest z with p_k-anon >= target: the first such z, or the first from which all
    reach it.

    px: p^X, shape (A,). target: above 0, below 1. mode: "first", or "stable": every larger z
    reaches the target, too. periods: N windows an attacker collects. z = U + 1 always suffices,
    because nothing is released then. Raises ConfigError, also if k exceeds U, because then no z
    suffices.
    """
    search = _Search(checks.probabilities("px", px), checks.count("users", users), k, periods)
    if not checks.positive("target", target) < 1:
        raise ConfigError(f"target: must be below 1, not {target}: 1 is reached by no release only")
    if mode not in ("first", "stable"):
        raise ConfigError(f"mode: must be first or stable, not {mode!r}")
    return search.first(target) if mode == "first" else search.stable(target)


def z_by_window(
    rates: ArrayLike,
    windows: Iterable[float],
    users: int,
    k: int,
    *,
    target: float,
    mode: Mode = "first",
    periods: int = 1,
) -> list[int]:
    """Returns smallest_z for each window Δt, in the rates' unit of time. Raises ConfigError."""
    return [
        smallest_z(
            exposure_probs(rates, window), users, k, target=target, mode=mode, periods=periods
        )
        for window in windows
    ]


class _Search:
    """Search for p_k-anon as a function of z, and the distance from a z over which it is known."""

    def __init__(self, px: Floats, users: int, k: int, periods: int) -> None:
        self.k = checks.count("k", k)
        self.periods = checks.count("periods", periods)
        self.users = users
        if self.k > users:
            raise ConfigError(f"k: {k} users cannot be alike among {users}")
        self.falling = -np.sort(-px)
        self.totals: dict[int, float] = {}
        self.step = 1
        n, m = users - 1, self.k - 1
        steepest = (m + 1) / (n + 1)
        self.slope = float(tail(n, m, steepest) + m * pmf(n, min(m, n), steepest)) * (1 + 1e-9)

    def published(self, z: int) -> Floats:
        """Returns p^N at z, without those below about 1e-40."""
        chances = not_negligible(self.falling, self.users, z)
        return publish_probs(chances, self.users, z, self.periods)

    def total(self, z: int) -> float:
        """Returns Σ_a p_a at z."""
        if z not in self.totals:
            self.totals[z] = float(self.published(z).sum())
        return self.totals[z]

    def lead(self, z: int, target: float) -> float:
        """Returns a bound on p_k-anon at z minus the target: the nearest to 0 of a certain sign."""
        py = self.published(z)
        self.totals[z] = float(py.sum())
        bounds = Bounds(0.0, 1.0, 0.5)
        for width in WIDTHS:
            bounds = k_anonymity(py, self.users, self.k, width=width)
            if bounds.lower >= target:
                return bounds.lower - target
            if bounds.upper < target:
                return bounds.upper - target
        return 0.0 if bounds.estimate >= target else -1e-300

    def edge(self, z: int, end: int, lead: float) -> int:
        """Returns a z between z and `end`: from z to there, p_k-anon stays above the target, or
        below it, as at z."""
        room = abs(lead) / self.slope
        away = 1 if end > z else -1
        near, far = 0, abs(end - z) + 1  # the last step known to be inside, the first outside

        def inside(steps: int) -> bool:
            return abs(self.total(z + away * steps) - self.total(z)) <= room

        while near < far - 1:
            trial = near + self.step
            if trial >= far:
                trial = (near + far) // 2
            if inside(trial):
                near, self.step = trial, 2 * self.step
            else:
                far, self.step = trial, max(self.step // 2, 1)
                if far - near <= max(near // 4, 1):
                    break
        return z + away * near

    def first(self, target: float) -> int:
        """Returns the first z that reaches the target."""
        z, end = 1, self.users + 1
        while z < end:
            lead = self.lead(z, target)
            if lead >= 0:
                return z
            z = self.edge(z, end, lead) + 1
        return end

    def stable(self, target: float) -> int:
        """Returns the first z from which on all reach the target."""
        z = self.users + 1
        while z > 0:
            lead = self.lead(z, target)
            if lead < 0:
                return z + 1
            z = self.edge(z, 1, lead) - 1
        return 1
