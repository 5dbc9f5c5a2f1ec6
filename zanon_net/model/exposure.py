# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rates of exposure, and the probabilities that a user exposes an attribute and has it released."""

import math

import numpy as np
from numpy.typing import ArrayLike

from zanon_net.config.rules import RATES_MAX
from zanon_net.errors import ConfigError
from zanon_net.model import checks
from zanon_net.model.binomial import tail
from zanon_net.model.special import Floats

NEGLIGIBLE_LOG = -40 * math.log(10)


def zipf_rates(attributes: int, first: float, exponent: float = 1.0) -> Floats:
    """Rates λ_r = first / r^exponent of the ranks r = 1 to `attributes` (2022 section 3.2.1).

    first: exposures of the most popular attribute by one user in a unit of time. Returns float64
    of shape (A,). Raises ConfigError.
    """
    count = checks.count("attributes", attributes, high=RATES_MAX)
    checks.positive("first", first)
    if not np.isfinite(exponent):
        raise ConfigError(f"exponent: must be finite, not {exponent}")
    ranks = np.arange(1, count + 1, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore"):  # infinite rates are refused below
        return checks.rates(first / ranks**exponent)


def exposure_probs(rates: ArrayLike, window: float) -> Floats:
    """Returns p^X_a = 1 - exp(-λ_a Δt): a user exposes a at least once in a window (Eq. 1).

    rates: shape (A,). window: Δt in the rates' unit of time. Returns shape (A,). Raises
    ConfigError.
    """
    return -np.expm1(-checks.rates(rates) * checks.positive("window", window))


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
