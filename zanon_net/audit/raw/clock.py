# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The clock of packets, and the epoch of new pseudonyms (contract, sections 2 and 6)."""

from dataclasses import dataclass

REBASE_AFTER = 256


@dataclass(slots=True)
class Clock:
    """The largest time of a packet that was accepted.

    window_ns: a packet that is older than the window is too late. rotate_ns: length of an epoch.
    ephemeral: true if a key of a past epoch does not exist any more.
    now_ns: the clock; None before the first packet. jumps: how often the clock was set back.
    """

    window_ns: int
    rotate_ns: int
    ephemeral: bool
    now_ns: int | None = None
    jumps: int = 0
    _too_late: int = 0
    _epoch: int = 0

    def see(self, t_ns: int) -> bool:
        """Moves the clock; returns true if the clock was set back to the time of the packet."""
        if self.now_ns is None or t_ns >= self.now_ns - self.window_ns:
            self.now_ns = max(t_ns, self.now_ns or 0)
            self._too_late = 0
            return False
        self._too_late += 1
        if self._too_late < REBASE_AFTER:
            return False
        self.now_ns, self._too_late, self._epoch = t_ns, 0, 0
        self.jumps += 1
        return True

    def epoch(self, t_ns: int) -> tuple[int, int]:
        """Returns the number of jumps, and the epoch of a flow that opens with a packet.

        A jump draws another secret, so that equal epochs before and after it have other keys.
        """
        epoch = t_ns // self.rotate_ns
        if not self.ephemeral:
            return 0, epoch
        self._epoch = max(self._epoch, epoch)
        return self.jumps, self._epoch
