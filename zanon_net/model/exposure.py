# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rates of exposure, and the chance of an exposure in a window."""

import numpy as np
from numpy.typing import ArrayLike

from zanon_net.config.rules import RATES_MAX
from zanon_net.errors import ConfigError
from zanon_net.model import checks
from zanon_net.model.special import Floats


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
