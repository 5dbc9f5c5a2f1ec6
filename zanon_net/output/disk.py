# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Disk of a run's output: the rules for its use, and the state of the output on it."""

from collections.abc import Callable, Mapping
from dataclasses import field

from zanon_net._record import dataclass


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class DiskRules:
    """Settings about the disk, and facts of the run that they depend on.

    keep_ns: time that parts stay after their end, in ns; 0: for ever.
    max_bytes: bytes that all parts may take; 0: no limit.
    waits: true if the run waits for space on a full disk instead of ending.
    is_live: true if the sources are interfaces, which do not wait.
    gives_up: returns true if a wait is to end, because a signal ended the run.
    """

    keep_ns: int = 0
    max_bytes: int = 0
    waits: bool = False
    is_live: bool = False
    gives_up: Callable[[], bool] = _never

    @property
    def removes(self) -> bool:
        """True if parts are removed."""
        return bool(self.keep_ns or self.max_bytes)


@dataclass(frozen=True, slots=True)
class Removed:
    """Parts that were removed: their number, their bytes, and their records by format."""

    parts: int = 0
    bytes: int = 0
    records: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """State of the output on its disk so far.

    removed: removed parts of this run.
    earlier: removed parts of earlier runs.
    times_full: number of times that the run began to wait for space.
    waits: true if the run waits now.
    lost: records that were not written for lack of space, by format.
    """

    removed: Removed = Removed()
    earlier: Removed = Removed()
    times_full: int = 0
    waits: bool = False
    lost: Mapping[str, int] = field(default_factory=dict)

    @property
    def records_lost(self) -> int:
        """Records of all formats that were not written."""
        return sum(self.lost.values())

    def note(self) -> str | None:
        """Returns a line about a disk that was full; None if it never was full."""
        if self.times_full == 0:
            return None
        lost = ", ".join(f"{count:,} of {name}" for name, count in self.lost.items() if count)
        times = "once" if self.times_full == 1 else f"{self.times_full:,} times"
        return f"the disk was full {times}: records that were not written: {lost or 'none'}"

    def to_dict(self) -> dict[str, object]:
        """Returns the state for the manifest."""
        own, earlier = self.removed, self.earlier
        return {
            "removed": {
                "parts": own.parts,
                "bytes": own.bytes,
                "records": dict(own.records),
                "earlier_runs": {"parts": earlier.parts, "bytes": earlier.bytes},
            },
            "full_disk": {"times": self.times_full, "records_lost": dict(self.lost)},
        }
