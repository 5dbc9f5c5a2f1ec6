# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Open network interfaces, and the facts about each."""

import errno
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import field
from typing import Any

from zanon_net._core import LIMITS, Live
from zanon_net._record import dataclass
from zanon_net.config.parse import reject
from zanon_net.config.sections import RUN
from zanon_net.config.settings import Config
from zanon_net.config.types import RING_MIN
from zanon_net.errors import CaptureError, ConfigError
from zanon_net.pipeline.facts import INTERFACE, Away, Drops
from zanon_net.pipeline.interfaces import ANY, Losses
from zanon_net.pipeline.link_types import by_link_type
from zanon_net.pipeline.privileges import explain_missing
from zanon_net.system.capabilities import capture_in_force

COUNTS = ("bytes", "frames", "received", "dropped")
"""Counts of the core about an interface since it was opened."""


@dataclass(frozen=True, slots=True)
class InterfaceFacts:
    """Counts of the frames that an interface delivered and lost.

    received: frames that passed the filter, including frames that found the ring full. For `any`,
    also the second copy of each frame on the loopback interface, which is then left out.
    """

    name: str
    link_types: Mapping[int, int]
    bytes_read: int
    frames: int
    received: int
    drops: Drops
    warning: str | None
    away: Away = field(default_factory=Away)

    def to_dict(self) -> dict[str, Any]:
        """Returns the interface as the manifest has it."""
        return {
            "name": self.name,
            "format": INTERFACE,
            "link_types": by_link_type(self.link_types),
            "bytes": self.bytes_read,
            "frames": self.frames,
            "received": self.received,
            "drops": self.drops.to_dict(),
            "away": self.away.to_dict(),
            "warning": self.warning,
        }


WORKER_RINGS = 8
"""Most rings of an interface that one process reads."""


class _NoLosses:
    """Counts nothing: another shard of the run counts the frames that the interface lost."""

    count = 0

    def refresh(self) -> int:
        """See Losses."""
        return 0


class LiveInterfaces:
    """Open interfaces. Raises ConfigError, CaptureError or CapacityError.

    names: at most LIMITS["interfaces"], or "any".
    """

    def __init__(self, names: Sequence[str], config: Config) -> None:
        settings, shards = config.live, config.limits.shards
        rings = min(config.limits.workers, WORKER_RINGS) * shards
        if rings > LIMITS["rings"]:
            reject("shards", f"times workers must be at most {LIMITS['rings']} on interfaces")
        self.names = tuple(names)
        self._keeps_capture = settings.keeps_capture
        self._losses: list[Losses | _NoLosses] = []
        self._former = [Counter[str]() for _name in names]  # counts before it was opened again
        self._former_types = [Counter[int]() for _name in names]
        self._unread = self._stopped = False
        self._last: list[InterfaceFacts] | None = None
        try:
            self.live = Live(
                names,
                filter=config.input.filter,
                snaplen=settings.snaplen,
                ring_bytes=max(settings.ring_bytes // rings, RING_MIN),
                promiscuous=settings.promiscuous,
                rings=rings,
            )
        except CaptureError as error:
            if error.errno == errno.EPERM:
                raise explain_missing(error) from None
            raise
        self._losses = [Losses(name) for name in names]

    def keep(self, shard: int, shards: int) -> None:
        """Keeps the rings of a shard in this process, and closes the rings of the other shards.
        The first shard counts the frames that interfaces lost."""
        self.live.keep(shard, shards)
        if shard != 0:
            self._losses = [_NoLosses() for _name in self.names]

    def gone(self, i: int) -> bool:
        """Returns true if the i-th interface is gone, and all of its earlier frames are read."""
        return self.live.gone(i)

    def reopen(self, i: int, missed: int) -> None:
        """Opens the i-th interface, which is gone, again.

        missed: frames that passed it since it is back. Raises ZanonError if it is still gone.
        """
        known = self.live.facts()[i]
        with capture_in_force() if self._keeps_capture else nullcontext():
            self.live.reopen(i)
        self._former[i].update({key: known[key] for key in COUNTS} | {"missed": missed})
        self._former_types[i][known["link_type"]] += known["frames"]

    def stop(self) -> None:
        """Lets no more frames in. Frames that an interface loses from now on do not count as lost
        by the run."""
        for losses in self._losses:
            losses.refresh()
        self.live.stop()
        self._stopped = True

    def left_unread(self) -> None:
        """Notes that the rings were not read to their ends."""
        self._unread = True

    def finish(self) -> None:
        """Ends the reading: the facts stay as they are now."""
        self._last = self.facts()

    def facts(self) -> list[InterfaceFacts]:
        """Returns the facts about each interface so far."""
        if self._last is not None:
            return self._last
        return [self._facts_of(i, known) for i, known in enumerate(self.live.facts())]

    def _facts_of(self, i: int, known: Mapping[str, Any]) -> InterfaceFacts:
        former, losses = self._former[i], self._losses[i]
        n = {key: known[key] + former[key] for key in COUNTS}
        lost = losses.count if self._stopped else losses.refresh()
        left = max(0, n["received"] - n["dropped"] - n["frames"]) if self._unread else 0
        types, reason = self._former_types[i].copy(), known["warning"]
        types[known["link_type"]] += known["frames"]
        return InterfaceFacts(
            name=known["name"],
            link_types=types,
            bytes_read=n["bytes"],
            frames=n["frames"],
            received=n["received"],
            drops=Drops(n["dropped"], lost + former["missed"], left),
            warning=None if reason is None else f"went away: {reason}",
        )

    def close(self) -> None:
        """Closes the interfaces. A second call does nothing."""
        self.live.close()


def open_interfaces(names: Sequence[str], others: int, config: Config) -> LiveInterfaces:
    """Opens interfaces.

    others: the number of sources that are not interfaces. Raises ConfigError if there are any, or
    if the settings do not define the users' networks; CaptureError or CapacityError.
    """
    if others:
        raise ConfigError(f"{names[0]} is a network interface and cannot be read with captures")
    if len(set(names)) < len(names):
        raise ConfigError("give each interface once")
    if ANY in names and len(names) > 1:
        raise ConfigError(f"{ANY} is every interface: give it alone")
    if ANY in names and config.live.on_lost != RUN["on_lost"].default:
        raise ConfigError(f"on_lost: {ANY} never goes away; leave it out, or name the interfaces")
    if config.addresses.internal is None:
        raise ConfigError(
            f"{names[0]} is a network interface: say with --internal which addresses are users,"
            " such as --internal 10.0.0.0/8 (hosts of the Internet must not count as users)"
        )
    return LiveInterfaces(names, config)
