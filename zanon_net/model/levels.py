# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Shares of exposures that a run with --levels publishes as name, domain or category.

The shares apply to a stationary stream: an exposure sees the users of a whole window. They leave
out that a published name casts no votes for its domain for a window.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zanon_net.model.special import Floats
from zanon_net.popularity import LevelShares, PopularityWindow


@dataclass(frozen=True, slots=True)
class Levels:
    """Mean shares of windows.

    z: shape (n,), rising from 1. shares: shape (n, 4), name to kept of LevelShares.
    """

    z: Floats
    shares: Floats

    @classmethod
    def of(cls, windows: Sequence[PopularityWindow]) -> "Levels | None":
        """Averages windows by their exposures; None if no window has shares by level."""
        counted = [window for window in windows if window.levels]
        if not counted:
            return None
        steps = sorted({row.z for window in counted for row in window.levels})
        total = np.zeros((len(steps), 4))
        for window in counted:
            known = {row.z: row[1:] for row in window.levels}
            rows = [known.get(z, (0.0, 0.0, 0.0, 0.0)) for z in steps]
            total += window.exposures * np.array(rows)
        return cls(
            np.array(steps, dtype=np.float64), total / sum(window.exposures for window in counted)
        )

    def at(self, z: int) -> LevelShares:
        """Returns the shares at z; between two known z they are linear in log(z)."""
        if z > self.z[-1]:
            return LevelShares(z, 0.0, 0.0, 0.0, 0.0)
        x, known = np.log(float(z)), np.log(self.z)
        return LevelShares(z, *(float(np.interp(x, known, column)) for column in self.shares.T))
