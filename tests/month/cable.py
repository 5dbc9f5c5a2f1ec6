# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The cable into the run, with a count of what was sent and what arrived."""

import errno
import time
from collections.abc import Sequence

from support.netns import Namespace
from support.packets import Frame

from month.stamps import stamped

SLICE = 20  # frames between two looks at the clock
RATE_MAX = 10_000  # frames a second
RETRY_S = 0.002


class Cable:
    """Frames sent into `b` arrive at `a`, which a run reads."""

    def __init__(self, net: Namespace) -> None:
        self._net = net
        net.ip("link set dev lo up")
        net.cable("a", "b")
        self._raw = net.sender("b")
        self.sent = 0
        self._arrived = 0  # at interfaces that are gone
        self._is_there = True

    def send(self, frames: Sequence[Frame], seconds: float = 0.0) -> None:
        """Sends frames with their packet times, evenly over some time of the clock."""
        began = time.monotonic()
        seconds = max(seconds, len(frames) / RATE_MAX)
        for at in range(0, len(frames), SLICE):
            due = began + seconds * at / len(frames)
            time.sleep(max(0.0, due - time.monotonic()))
            for frame in frames[at : at + SLICE]:
                self._send(stamped(frame.data, frame.t_ns))
        time.sleep(max(0.0, began + seconds - time.monotonic()))

    def _send(self, data: bytes) -> None:
        """Sends a frame, again where the system's input queue was full: it has lost the first one,
        and counts it."""
        while True:
            self.sent += 1
            try:
                self._raw.send(data)
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                time.sleep(RETRY_S)
            else:
                return

    @property
    def arrived(self) -> int:
        """Frames that the system has seen at `a`."""
        here = self._net.counter("a", "rx_packets") if self._is_there else 0
        return self._arrived + here

    def pull(self) -> None:
        """Takes the interface down."""
        self._net.ip("link set dev a down")

    def plug(self) -> None:
        """Brings it up again."""
        self._net.ip("link set dev a up")

    def remove(self) -> None:
        """Removes the interface."""
        self._arrived = self.arrived
        self._is_there = False
        self._net.ip("link del dev a")
        self._raw.close()

    def bring_back(self) -> None:
        """Makes an interface of the same name."""
        self._net.cable("a", "b")
        self._is_there = True
        self._raw = self._net.sender("b")
