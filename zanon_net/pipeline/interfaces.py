# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Network interfaces: their names, and the losses that the system counts."""

import errno
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from zanon_net.config.parse import did_you_mean, shown
from zanon_net.errors import CaptureError, ConfigError
from zanon_net.pipeline.link_counters import (
    SOFTNET_STAT,
    LinkCounters,
    read_backlog,
    read_interface_name,
    read_link_below,
    read_links,
)
from zanon_net.system.streams import STDIN

ANY = "any"
BACKLOG_WRAPS = 1 << 32


def interfaces_of(sources: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Returns the names of the sources that are interfaces; a file of the same name takes
    precedence.

    A source that is an alternative name of an interface is replaced by the interface's name.
    """
    texts = [text for text in map(str, sources) if not _is_there(text)]
    if not texts:
        return []
    known = {name for _index, name in _interfaces()} | {ANY}
    found = [text if text in known else interface_named(text) for text in texts]
    return [name for name in found if name is not None]


def _is_there(path: str) -> bool:
    with suppress(OSError):  # such as the error for a name that is too long
        return Path(path).exists()
    return False


def _interfaces() -> list[tuple[int, str]]:
    """Returns the index and the name of each interface."""
    import socket  # late: a run on captures needs no socket

    return socket.if_nameindex()


def interface_named(other: str) -> str | None:
    """Returns the name of the interface with this alternative name; None if there is no such
    interface."""
    may_be = other not in ("", STDIN) and "/" not in other and "\0" not in other
    return read_interface_name(other) if may_be else None


def no_such(name: str) -> str:
    """Returns the message about a name of neither a file nor an interface."""
    known = [known for _index, known in _interfaces()]
    return f"No such file or directory, and no network interface{did_you_mean(name, known)}"


def refuse_output(name: str, sources: Sequence[str | os.PathLike[str]]) -> None:
    """Refuses an output interface that does not exist, or is surely a mistake.

    name: the interface's own name. sources: the sources of the run. Raises CaptureError if the
    interface does not exist, and ConfigError.
    """
    known = {name: index for index, name in _interfaces()}
    if name == ANY:
        raise ConfigError(f"--to: packets leave through one interface, not through {ANY}; name it")
    if name not in known:
        problem = f"--to: there is no interface {shown(name)}{did_you_mean(name, known)}"
        # it may appear later, as an interface to read may
        raise CaptureError(errno.ENODEV, problem)
    for source in interfaces_of(sources):
        if source == ANY:
            raise ConfigError(
                f"--to: {ANY} reads from every interface, also from {name}; name those to read"
            )
        if source == name:
            raise ConfigError(f"--to: packets are read from {name}; send them through another")
        if known[source] == _below(name) or known[name] == _below(source):
            raise ConfigError(
                f"--to: what leaves through {name} arrives at {source}, where packets are read;"
                " send them through another"
            )


def _below(name: str) -> int | None:
    """Returns the index of the interface below an interface, or at the other end of its cable."""
    with suppress(OSError):
        return read_link_below(name)
    return None


class SystemCounters:
    """Reads the system's counts of lost frames."""

    def links(self, interface: str | None) -> Mapping[str, LinkCounters]:
        """Returns the counters of an interface, or of all, by name. Raises OSError."""
        return read_links(interface)

    def backlog(self) -> Mapping[int, int]:
        """Returns the frames that a full backlog dropped, by processor. Raises OSError."""
        return read_backlog(SOFTNET_STAT.read_text())


class Losses:
    """Counts frames that an interface lost since this object was made, before any program could see
    them.

    These are the frames that its card lost, and the frames for which the system's backlog was full.
    The system counts the latter twice. Per processor, it counts them together with frames of other
    interfaces. Per interface, it counts them together with frames that it does not handle and that
    were read. A frame counts if both counters have counted it. Without a count of the system, the
    loss is 0.
    """

    def __init__(self, interface: str, system: SystemCounters | None = None) -> None:
        self._interface = None if interface == ANY else interface
        self._system = system or SystemCounters()
        self._links: dict[str, LinkCounters] = {}
        self._backlog: dict[int, int] = {}
        # frames of the last look that only one of the two counters had counted
        self._unmatched = (0, 0)
        self.count = 0
        self.refresh()

    def refresh(self) -> int:
        """Returns the count up to now; for an interface with restarted counters, the count
        continues.

        Losses from before the first look at an interface do not count: while `any` is read,
        interfaces appear, disappear, and are renamed.
        """
        with suppress(OSError, ValueError):
            missed, dropped = self._link_growth(self._system.links(self._interface))
            self.count += missed
            with suppress(OSError, ValueError):
                full = self._backlog_growth(self._system.backlog())
                self.count += self._match(dropped, full)
        return self.count

    def _link_growth(self, now: Mapping[str, LinkCounters]) -> tuple[int, int]:
        missed = dropped = 0
        for name, counters in now.items():
            before = self._links.get(name, counters)
            missed += _grown(before.missed, counters.missed)
            dropped += _grown(before.dropped, counters.dropped)
        self._links |= now
        return missed, dropped

    def _backlog_growth(self, now: Mapping[int, int]) -> int:
        grown = sum((n - self._backlog.get(cpu, n)) % BACKLOG_WRAPS for cpu, n in now.items())
        self._backlog |= now
        return grown

    def _match(self, dropped: int, full: int) -> int:
        """Returns the frames that both counters have counted by now.

        The counters are read one after the other, so one counter may have counted a frame at the
        last look.
        """
        early_dropped, early_full = self._unmatched
        both = min(dropped + early_dropped, full + early_full)
        self._unmatched = (
            min(dropped, dropped + early_dropped - both),
            min(full, full + early_full - both),
        )
        return both


def _grown(before: int, now: int) -> int:
    """Returns the growth of a counter, which may have restarted."""
    return now - before if now >= before else now
