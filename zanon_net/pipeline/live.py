# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Reads a run's packets from network interfaces, until a signal or the loss of an interface ends
it."""

import time
from collections.abc import Callable, Iterator
from typing import Protocol

from zanon_net._core import PacketEngine
from zanon_net.config.settings import Config
from zanon_net.pipeline.doubts import Doubts
from zanon_net.pipeline.facts import Drops, Loss
from zanon_net.pipeline.interface_watch import InterfaceWatch
from zanon_net.pipeline.live_interfaces import InterfaceFacts, LiveInterfaces
from zanon_net.pipeline.window_hooks import WindowHooks
from zanon_net.system.log import log

BATCH_FRAMES = 16384
WAIT_MS = 100  # longest wait of the core, and so of a signal, a status line or an idle flow
DRAIN_S = 0.3  # longer than a frame waits for its turn (ZN_LIVE_HOLD_MS)
DRAIN_MAX_S = 10.0  # frames of rings that take longer to empty are counted as lost
HOUSEKEEPING_S = 1.0
WARNING_S = 10.0  # between two warnings of one kind, and no less than between status lines


class Wishes(Protocol):
    """Requests to a run from outside; a signal may change them at any time."""

    @property
    def requested(self) -> bool:
        """True if the reading is to end."""

    def take_rotation(self) -> bool:
        """Returns true if new files were requested since the last call."""


class GrowthWarnings:
    """Warns while a number that should be 0 grows: at its first value, and then repeatedly."""

    def __init__(self, config: Config) -> None:
        self._interval_s = max(WARNING_S, config.live.status_s or 0.0)
        self._due: float | None = None  # monotonic; None: the number was 0 until now
        self._before = 0

    def see(self, number: int, text: str | None, now: float) -> None:
        """Warns with `text` if the number has grown since the last warning and a warning is due."""
        if number <= self._before or (self._due is not None and now < self._due):
            return
        self._due, self._before = now + self._interval_s, number
        log.warning("warning: so far %s", text)


class LiveWarnings:
    """Warns of lost packets, of missing answers of a counter, and of steps of the clock."""

    def __init__(self, engine: PacketEngine, config: Config) -> None:
        self._engine = engine
        self._lost, self._unanswered, self._steps = (GrowthWarnings(config) for _ in range(3))

    def see(self, loss: Loss | None, now: float) -> None:
        """Warns if a warning is due. loss: the packets that were lost so far."""
        doubts = Doubts.of(self._engine.stats, self._engine.table_stats)
        if loss is not None:
            self._lost.see(loss.drops.total, loss.text(), now)
        missing = max(doubts.unanswered, doubts.names)
        self._unanswered.see(missing, doubts.unanswered_text(), now)
        self._steps.see(doubts.clock_steps, doubts.clock_text(), now)


class LiveReader:
    """Feeds one engine from interfaces until a request, or the loss of an interface, ends it."""

    is_live = True
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
        self._warnings = LiveWarnings(engine, hooks.config)
        self._watch = InterfaceWatch(interfaces, hooks.config.live.on_lost)
        self.first_ns: int | None = None
        self.started: Callable[[], None] | None = None  # called when the first packet was read

    def take_rotation(self) -> bool:
        """Returns true if a signal requested new files since the last call."""
        return self._wishes.take_rotation()

    def facts(self) -> list[InterfaceFacts]:
        """Returns the facts about each interface so far."""
        return self._watch.facts()

    def presence(self) -> dict[str, int | None]:
        """Returns when each interface went away, in ns since the epoch; None if it is present."""
        return self._watch.presence()

    @property
    def failure(self) -> str | None:
        """The reason for the end of the reading, if a lost interface ended it and must not."""
        return self._watch.failure

    def note(self) -> str | None:
        """See Reader: interfaces are read together."""
        return None

    def drops(self) -> Drops:
        """Packets lost so far."""
        lost = [facts.drops for facts in self.facts()]
        return Drops.of_counters(self._engine.stats).plus(lost)

    def loss(self) -> Loss | None:
        """Returns the loss so far; None if no packet was lost."""
        return Loss.of([facts.to_dict() for facts in self.facts()], self.drops())

    def batches(self) -> Iterator[None]:
        """Yields after each batch, and at least ten times a second, with output to take."""
        log.notice("listening on %s", ", ".join(self._interfaces.names))
        last = kept_house = time.monotonic()
        while not self._wishes.requested and not self._watch.lost:
            if self._batch():
                last = time.monotonic()
                self._learn()
            now = time.monotonic()
            self._watch.look(now)
            if now - kept_house >= HOUSEKEEPING_S:
                kept_house = now
                self._engine.idle(int((now - last) * 1e9))
                self._warnings.see(self.loss(), now)  # reads narrow counters before they wrap
            yield
        log.info("reading the frames that are left in the rings")
        yield from self._drain()
        self._watch.finish()

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
                while self._batch(0, 0):  # frames that had to wait and are due
                    self._learn()
                    yield
                self._interfaces.left_unread()
                return

    def _batch(self, frames: int = BATCH_FRAMES, wait_ms: int = WAIT_MS) -> bool:
        """Reads the frames that are there; returns true if a frame was read."""
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
