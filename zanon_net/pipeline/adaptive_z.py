# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""z that follows the stream: the counts of each window set it for the next window."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zanon_net._record import dataclass
from zanon_net.config.sections import ZParams

LOWER_BELOW = 0.9  # a window that needs less than this share of the z in force may lower it
LOWER_AFTER = 2  # after this number of such windows in a row


@dataclass(frozen=True, slots=True)
class ZChange:
    """z is `new` from t_ns on, in packet time (ns since the Unix epoch)."""

    t_ns: int
    old: int
    new: int
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Returns the change for the manifest."""
        return {"t_ns": self.t_ns, "old": self.old, "new": self.new, "reason": self.reason}


class ZController:
    """Keeps the probability that k users are alike at the target, with z from `z` to `z_max`.

    A window needs the smallest z from which on every z would have reached the target in it. A
    larger z takes effect at once. A smaller z takes effect after two windows in a row that need
    less than nine tenths of the z in force; it is the larger of the two needs. Otherwise z would
    follow every wave.

    Raises MissingExtraError without SciPy.
    """

    def __init__(self, params: ZParams) -> None:
        from zanon_net.model.observed import observed_stream
        from zanon_net.model.thresholds import smallest_z

        self._observed, self._smallest_z = observed_stream, smallest_z
        self._params = params
        self._floor, self._cap = params.z, params.z_limit
        self.z = params.z
        self.changes: list[ZChange] = []
        self.windows = self.above_cap = 0  # all windows, and windows that needed more than z_max
        self._lower: list[int] = []

    def see(self, end_ns: int, users: int, counts: NDArray[np.uint32]) -> int:
        """Takes a whole window that ends at end_ns; returns the z of the next window."""
        needed, why = self._needed(users, counts)
        wanted = min(max(needed, self._floor), self._cap)
        self.windows += 1
        if needed > self._cap:
            self.above_cap += 1
            why += f", more than z_max = {self._cap}"
        if wanted >= LOWER_BELOW * self.z:
            self._lower.clear()
        if wanted > self.z:
            self._change(end_ns, wanted, why)
        elif wanted < LOWER_BELOW * self.z:
            self._lower.append(wanted)
            if len(self._lower) == LOWER_AFTER:
                self._change(end_ns, max(self._lower), f"{LOWER_AFTER} windows needed less")
                self._lower.clear()
        return self.z

    def facts(self) -> dict[str, Any]:
        """Returns the state for the manifest."""
        return {
            "z_changes": [change.to_dict() for change in self.changes],
            "z_windows": {"seen": self.windows, "needed_more_than_z_max": self.above_cap},
        }

    def _needed(self, users: int, counts: NDArray[np.uint32]) -> tuple[int, str]:
        """Returns the z that the window needs, and the reason."""
        k, target = self._params.target_k or 0, self._params.target_p or 0.0
        if users == 0 or len(counts) == 0:
            return self.z, "nothing was seen"
        total, px = self._observed(counts, users)
        if k > total:
            return total + 1, f"fewer than {k} users"
        return self._smallest_z(px, total, k, target=target, mode="stable"), "the window needed it"

    def _change(self, t_ns: int, new: int, reason: str) -> None:
        self.changes.append(ZChange(t_ns, self.z, new, reason))
        self.z = new
