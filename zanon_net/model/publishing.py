# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The chance that one user has an attribute in the released stream."""

import math

import numpy as np
from numpy.typing import ArrayLike

from zanon_net.model import checks
from zanon_net.model.binomial import tail
from zanon_net.model.special import Floats

NEGLIGIBLE_LOG = -40 * math.log(10)


def publish_probs(px: ArrayLike, users: int, z: int, periods: int = 1) -> Floats:
    """Returns p^N_a = 1 - (1 - p^Y_a)^N with p^Y_a = p^X_a p^O_a (Eq. 3; 2020 section IV-C).

    p^O_a = P[Bin(U-1, p^X_a) >= z-1]: z counts the present user, too. px: p^X, shape (A,). users:
    U. periods: N windows an attacker collects. Returns shape (A,); all 0 if z > U. Raises
    ConfigError.
    """
    chance = checks.probabilities("px", px)
    others = checks.count("users", users) - 1
    published = chance * tail(others, checks.count("z", z) - 1, chance)
    return over_periods(published, checks.count("periods", periods))


def not_negligible(falling: Floats, users: int, z: int) -> Floats:
    """Returns the p^X, out of falling ones, whose p^O may exceed 1e-40, by P[Bin(n, p) >= m] <= (e
    n p / m)^m."""
    if z == 1 or users == 1:
        return falling
    log = NEGLIGIBLE_LOG / (z - 1) + math.log((z - 1) / (math.e * (users - 1)))
    return falling[: int(np.searchsorted(-falling, -math.exp(min(log, 0.0)), side="right"))]


def over_periods(py: Floats, periods: int) -> Floats:
    """Returns 1 - (1 - p)^N: at least once in N windows."""
    if periods == 1:
        return py
    with np.errstate(divide="ignore"):  # log of 0: certain already in one window
        return np.asarray(-np.expm1(periods * np.log1p(-py)))
