# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Network interfaces: their names, and their losses as the system counts them."""

import os
import socket
from collections.abc import Sequence
from pathlib import Path

from zanon_net.config.parse import did_you_mean

ANY = "any"
PROC_NET_DEV = Path("/proc/net/dev")
_DROP, _FIFO = 3, 4  # columns of /proc/net/dev: dropped or missed, and overruns of the card's queue


def interfaces_of(sources: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Returns the sources that are interfaces; a file of the same name takes precedence."""
    known = {name for _index, name in socket.if_nameindex()} | {ANY}
    return [str(item) for item in sources if str(item) in known and not Path(item).exists()]


def no_such(name: str) -> str:
    """The message about a name of neither a file nor an interface."""
    known = [known for _index, known in socket.if_nameindex()]
    return f"No such file or directory, and no network interface{did_you_mean(name, known)}"


def read_losses(text: str) -> dict[str, int]:
    """Frames that no program could see, by interface, from the text of /proc/net/dev."""
    losses = {}
    for line in text.split("\n"):
        name, colon, numbers = line.rpartition(":")
        if colon:
            columns = numbers.split()
            losses[name.lstrip(" ")] = int(columns[_DROP]) + int(columns[_FIFO])
    return losses


class Losses:
    """Frames that an interface lost since this object was made, as the system counts them.

    Some systems also count frames of protocols that they do not handle, although these were read.
    Where the system has no count, it is 0.
    """

    def __init__(self, interface: str, source: Path = PROC_NET_DEV) -> None:
        self._interface = interface
        self._source = source
        self._seen: dict[str, int] | None = None
        self.count = 0
        self.refresh()

    def refresh(self) -> int:
        """The count up to now; an interface that came back with new counters goes on from there.

        Losses from before the first look at an interface do not count: while `any` is read,
        interfaces come, go, and get other names.
        """
        try:
            losses = read_losses(os.fsdecode(self._source.read_bytes()))
        except OSError:
            return self.count
        wanted = losses.keys() if self._interface == ANY else {self._interface}
        now = {name: count for name, count in losses.items() if name in wanted}
        before = self._seen or {}
        for name, count in now.items():
            base = before.get(name, count)
            self.count += count - base if count >= base else count
        self._seen = before | now
        return self.count
