# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Tests if windows are as alike as the model says, and which assumption fails."""

import math

import numpy as np

from zanon_net.model.curve import chance_of_at_least
from zanon_net.model.special import Floats, chi_square_tail
from zanon_net.popularity import PopularityWindow, rounding_unit

WINDOWS_MIN = 3
RISK = 0.01  # the risk of rejecting a stationary stream


def find_problems(
    windows: list[PopularityWindow], users: int, exposures: tuple[Floats, Floats]
) -> tuple[bool | None, tuple[str, ...]]:
    """Returns whether counts differ between windows by no more than chance, and the failed
    assumptions.

    For constant rates and independent users, the names with at least 2^j users are a sum of
    independent indicators in each window. Its variance is known, and the sum of squares over the
    windows is about chi-square. Rounding adds its own variance. exposures: λ_a Δt of the fit, and
    the number of names with each.
    """
    if len(windows) < WINDOWS_MIN:
        few = f"{len(windows)} windows are too few to tell whether the stream is stationary"
        return None, (few,)
    tests = [_users_test(windows, exposures)]
    depth = max(len(window.bins) for window in windows)
    padded = [(*window.bins, *(0,) * (depth - len(window.bins))) for window in windows]
    bins = np.array(padded, dtype=float)
    tests += [_names_test(bins, users, exposures, j) for j in range(depth)]
    problems = tuple(text for chance, text in tests if chance * len(tests) < RISK)
    return not problems, problems


def _users_test(
    windows: list[PopularityWindow], exposures: tuple[Floats, Floats]
) -> tuple[float, str]:
    counts = np.array([window.users for window in windows], dtype=float)
    silent = math.exp(-float(exposures[0] @ exposures[1]))
    variance = counts.mean() * silent + _rounding(counts)
    text = (
        f"the number of users is not constant: {counts.min():.0f} to {counts.max():.0f} a window;"
        " fit a span in which it is"
    )
    return _chance(counts, variance), text


def _names_test(
    bins: Floats, users: int, exposures: tuple[Floats, Floats], j: int
) -> tuple[float, str]:
    """Returns bins: how many names had 2^j to 2^(j+1) - 1 users, by window and j."""
    tails = bins[:, j:].sum(axis=1)
    p = chance_of_at_least(1 << j, users, exposures[0])
    rounding = _rounding(bins[:, j:]) * (bins.shape[1] - j)
    variance = float(exposures[1] @ (p * (1 - p))) + rounding
    text = (
        f"popularity is not constant, or users are not independent: names with {1 << j} users or"
        f" more are {tails.min():.0f} to {tails.max():.0f} a window; fit a span in which it is"
    )
    return _chance(tails, variance), text


def _rounding(counts: Floats) -> float:
    """Returns the largest variance that rounding to two significant digits adds."""
    values, times = np.unique(counts, return_counts=True)
    units = np.array([rounding_unit(int(value)) for value in values], dtype=float)
    return float(np.average(np.where(units > 1, units**2 / 4, 0.0), weights=times))


def _chance(values: Floats, variance: float) -> float:
    """Returns the probability of values at least this different, for this variance."""
    squares = float(np.sum((values - values.mean()) ** 2))
    return chi_square_tail(len(values) - 1, squares / (variance + 0.25))
