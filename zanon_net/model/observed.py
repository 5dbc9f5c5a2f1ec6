# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters straight from one window's counts, without a fit."""

import numpy as np
from numpy.typing import NDArray

from zanon_net.model.curve import exposures_of
from zanon_net.model.special import Floats

SILENT_MAX = 50  # users for each active user, at most
BISECTIONS = 60
ROUNDS = 4


def all_users(active: float, users: float, exposures: Floats) -> float:
    """Estimates U from the active users, those with at least one name in the window.

    active = U (1 - exp(-C / U)), where C, the exposures of all users together, hardly depends on U:
    `exposures`, λ_a Δt, were found for `users`.
    """
    together = users * float(exposures.sum())
    low, high = together / (SILENT_MAX * active), 60.0  # bounds of C / U
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if -np.expm1(-middle) / middle > active / together:
            low = middle
        else:
            high = middle
    return max(together / high, active)


def observed_stream(counts: NDArray[np.uint32], active: int) -> tuple[int, Floats]:
    """Returns (U, p^X) of a window, from counts of distinct users a name, and the users with a
    name.

    counts: shape (A,), each at least 1. active: at least 1, at least every count.
    """
    users = float(active)
    for _ in range(ROUNDS):
        exposures = exposures_of(counts.astype(np.float64), users)
        users = all_users(active, users, exposures)
    total = max(round(users), active)
    return total, np.minimum(counts / total, 1.0)
