# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The disk of a run's output: the rules of what stays there, and what became of the output."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class DiskRules:
    """The settings about a disk, and what they need to know of the run.

    keep_ns: how long parts stay after they are over; 0: for ever. max_bytes: what all parts may
    take; 0: no limit. waits: on a full disk the run waits for space, and does not end. is_live: the
    sources are interfaces, which do not wait. gives_up: whether a wait is to end, as a signal
    ended the run.
    """

    keep_ns: int = 0
    max_bytes: int = 0
    waits: bool = False
    is_live: bool = False
    gives_up: Callable[[], bool] = _never

    @property
    def removes(self) -> bool:
        """Whether parts are removed."""
        return bool(self.keep_ns or self.max_bytes)


@dataclass(frozen=True, slots=True)
class Removed:
    """Parts that were removed: how many, their bytes, and their records by format."""

    parts: int = 0
    bytes: int = 0
    records: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """What became of the output on its disk so far.

    removed: parts of this run. earlier: those of runs before it. times_full: how often the run
    began to wait for space. waits: it does so now. lost: records that were not written for that, by
    format.
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
        """A line about a disk that was full; None where it never was."""
        if self.times_full == 0:
            return None
        lost = ", ".join(f"{count:,} of {name}" for name, count in self.lost.items() if count)
        times = "once" if self.times_full == 1 else f"{self.times_full:,} times"
        return f"the disk was full {times}: records that were not written: {lost or 'none'}"

    def to_dict(self) -> dict[str, object]:
        """For the manifest."""
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
