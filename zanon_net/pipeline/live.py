# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A run's packets from network interfaces, until a signal ends it or all interfaces are gone."""

import errno
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from zanon_net._core import LIMITS, Live, PacketEngine
from zanon_net.config.schema import RUN
from zanon_net.config.settings import Config
from zanon_net.config.types import RING_MIN
from zanon_net.errors import CaptureError, ConfigError
from zanon_net.pipeline.facts import INTERFACE, Drops, Loss
from zanon_net.pipeline.interfaces import ANY, Losses
from zanon_net.pipeline.link_types import link_type_name
from zanon_net.pipeline.privileges import explain_missing
from zanon_net.pipeline.window_hooks import WindowHooks
from zanon_net.system.log_levels import NOTICE

BATCH_FRAMES = 16384
WAIT_MS = 100  # longest wait of the core, and so of a signal, a status line or an idle flow
DRAIN_S = 0.3  # longer than a frame is held back for its turn (ZN_LIVE_HOLD_MS)
DRAIN_MAX_S = 10.0  # frames of rings that take longer to empty are counted as lost
HOUSEKEEPING_S = 1.0
LOSS_WARNING_S = 10.0  # between two warnings of a loss, and no less than between status lines

_log = logging.getLogger("zanon_net")


@dataclass(frozen=True, slots=True)
class InterfaceFacts:
    """Counts of the frames that an interface delivered and lost.

    received: frames that passed the filter, also those that found the ring full; of `any` also the
    second copy of each frame on the loopback interface, which is then left out.
    """

    name: str
    link_type: int
    bytes_read: int
    frames: int
    received: int
    drops: Drops
    warning: str | None

    def to_dict(self) -> dict[str, Any]:
        """The interface as the manifest has it."""
        return {
            "name": self.name,
            "format": INTERFACE,
            "link_types": {link_type_name(self.link_type): self.frames},
            "bytes": self.bytes_read,
            "frames": self.frames,
            "received": self.received,
            "drops": self.drops.to_dict(),
            "warning": self.warning,
        }


class LiveInterfaces:
    """Open interfaces. Raises ConfigError, CaptureError or CapacityError.

    names: at most LIMITS["interfaces"], or "any".
    """

    def __init__(self, names: Sequence[str], config: Config) -> None:
        settings, rings = config.live, min(config.limits.workers, LIMITS["rings"])
        self.names = tuple(names)
        self._losses: list[Losses] = []
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

    def stop(self) -> None:
        """Lets no more frames in; what an interface loses from now on is no loss of the run's."""
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
        """The facts about each interface so far."""
        if self._last is not None:
            return self._last
        return [
            InterfaceFacts(
                name=known["name"],
                link_type=known["link_type"],
                bytes_read=known["bytes"],
                frames=known["frames"],
                received=known["received"],
                drops=Drops(known["dropped"], self._lost(losses), self._unread_of(known)),
                warning=known["warning"],
            )
            for known, losses in zip(self.live.facts(), self._losses, strict=True)
        ]

    def _lost(self, losses: Losses) -> int:
        return losses.count if self._stopped else losses.refresh()

    def _unread_of(self, known: dict[str, Any]) -> int:
        left: int = known["received"] - known["dropped"] - known["frames"]
        return max(0, left) if self._unread else 0

    def close(self) -> None:
        """Closes them; again is fine."""
        self.live.close()


def refuse_live_settings(config: Config) -> None:
    """Raises ConfigError for a setting that says nothing about captures."""
    for name in ("ring", "snaplen", "promiscuous", "fail_on_loss"):
        if getattr(config.live, name) != RUN[name].default:
            raise ConfigError(f"{name}: is for network interfaces; leave it out for captures")


def open_interfaces(names: Sequence[str], others: int, config: Config) -> LiveInterfaces:
    """Opens interfaces.

    others: the number of sources that are none. Raises ConfigError when there are any, or when the
    settings do not say who is a user; CaptureError or CapacityError.
    """
    if others:
        raise ConfigError(f"{names[0]} is a network interface and cannot be read beside captures")
    if len(set(names)) < len(names):
        raise ConfigError("give each interface once")
    if ANY in names and len(names) > 1:
        raise ConfigError(f"{ANY} is every interface: give it alone")
    if config.addresses.internal is None:
        raise ConfigError(
            f"{names[0]} is a network interface: say with --internal which addresses are users,"
            " such as --internal 10.0.0.0/8 (hosts of the Internet must not count as users)"
        )
    return LiveInterfaces(names, config)


class Wishes(Protocol):
    """Requests to a run from outside; a signal may change them at any time."""

    @property
    def requested(self) -> bool:
        """Whether the reading is to end."""

    def take_rotation(self) -> bool:
        """Whether new files were requested since the last call."""


class LossWarnings:
    """Warns while a run loses packets: at the first loss, then at times."""

    def __init__(self, config: Config) -> None:
        self._interval_s = max(LOSS_WARNING_S, config.live.status_s or 0.0)
        self._due: float | None = None  # monotonic; None: nothing was lost yet
        self._lost = 0

    def see(self, loss: Loss | None, now: float) -> None:
        """Warns of a loss that has grown since the last warning, if one is due."""
        grown = loss is not None and loss.drops.total > self._lost
        if loss is None or not grown or (self._due is not None and now < self._due):
            return
        self._due, self._lost = now + self._interval_s, loss.drops.total
        _log.warning("warning: so far %s", loss.text())


class LiveReader:
    """Feeds one engine from interfaces until a request to end, or until all of them are gone."""

    interrupted = False  # a signal is how a live run ends

    def __init__(
        self,
        engine: PacketEngine,
        interfaces: LiveInterfaces,
        progress: Callable[[int, int, int], None] | None,
        wishes: Wishes,
        hooks: WindowHooks,
    ) -> None:
        self._engine = engine
        self._hooks = hooks
        self._interfaces = interfaces
        self._progress = progress
        self._wishes = wishes
        self._losses = LossWarnings(hooks.config)
        self.first_ns: int | None = None
        self.started: Callable[[], None] | None = None  # called when the first packet was read

    def take_rotation(self) -> bool:
        """Whether a signal requested new files since the last call."""
        return self._wishes.take_rotation()

    def facts(self) -> list[InterfaceFacts]:
        """The facts about each interface so far."""
        return self._interfaces.facts()

    def drops(self) -> Drops:
        """Packets lost so far."""
        lost = [facts.drops for facts in self.facts()]
        return Drops.of_counters(self._engine.stats).plus(lost)

    def loss(self) -> Loss | None:
        """The loss so far; None where there is none."""
        return Loss.of([facts.to_dict() for facts in self.facts()], self.drops())

    def batches(self) -> Iterator[None]:
        """Yields after each batch, and at least ten times a second, with output to take."""
        _log.log(NOTICE, "listening on %s", ", ".join(self._interfaces.names))
        live, last = self._interfaces.live, time.monotonic()
        kept_house = last
        while not self._wishes.requested and not live.ended:
            if self._batch():
                last = time.monotonic()
                self._learn()
            now = time.monotonic()
            if now - kept_house >= HOUSEKEEPING_S:
                kept_house = now
                self._engine.idle(int((now - last) * 1e9))
                self._losses.see(self.loss(), now)  # reads narrow counters before they wrap
            yield
        _log.info("reading what is left in the rings")
        yield from self._drain()
        self._interfaces.finish()

    def _drain(self) -> Iterator[None]:
        """Stops the capture, and reads the frames that are in the rings."""
        self._interfaces.stop()
        last = began = time.monotonic()
        while time.monotonic() - last < DRAIN_S:
            if self._batch():
                last = time.monotonic()
                self._learn()
                yield
            if last - began > DRAIN_MAX_S:
                while self._batch(0, 0):  # frames that were held back and are due
                    self._learn()
                    yield
                self._interfaces.left_unread()
                return

    def _batch(self, frames: int = BATCH_FRAMES, wait_ms: int = WAIT_MS) -> bool:
        """Reads the frames that are there; returns whether there were any."""
        live = self._interfaces.live
        some = live.run(self._engine, frames, wait_ms) > 0
        while self._hooks.see(self._engine):
            live.run(self._engine, 0, 0)  # frames that had been read past the window's end
        return some

    def _learn(self) -> None:
        if self.first_ns is None and self._engine.time_range_ns is not None:
            self.first_ns = self._engine.time_range_ns[0]
            if self.started is not None:
                self.started()
        if self._progress is not None:
            stats = self._engine.stats
            self._progress(stats["bytes_captured"], 0, stats["frames"])
