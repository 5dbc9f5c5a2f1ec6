# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Reads packets of captures for an engine, batch by batch, until their end or a signal."""

import errno
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import takewhile
from typing import TYPE_CHECKING

from zanon_net._core import PacketEngine
from zanon_net.config.sections import RUN
from zanon_net.config.settings import Config
from zanon_net.errors import CaptureError, ConfigError
from zanon_net.pipeline.directions import COUNTERS, Directions
from zanon_net.pipeline.facts import Drops, SourceFacts
from zanon_net.pipeline.interfaces import interfaces_of
from zanon_net.pipeline.sources import OpenSource, open_sources
from zanon_net.pipeline.window_hooks import WindowHooks
from zanon_net.system.log import log
from zanon_net.system.signals import Interruption, StopReading
from zanon_net.system.streams import Source

if TYPE_CHECKING:
    from zanon_net.pipeline.live import LiveReader
    from zanon_net.pipeline.live_interfaces import LiveInterfaces

BATCH_FRAMES = 65536
SIZED_FRAMES = 16384  # with --split-size, because the size of files is checked after each batch
UNPACKED_FRAMES = 2048  # of compressed sources, which are slow: the progress moves more often
FRAMES_ALONE = 256  # frames that are read one by one until a frame is a packet
Progress = Callable[[int, int, int], None]
"""Function called after each batch: bytes read, bytes in all (0: not known), packets."""
Started = Callable[[int, int], None]
"""Function called with the first packet: flows and bytes that the flow table holds at most."""


def open_all(
    sources: Sequence[Source], config: Config, interruption: Interruption, stack: ExitStack
) -> list[OpenSource]:
    """Opens the sources as `open_sources` does. Raises KeyboardInterrupt when interrupted."""
    try:
        with interruption.reading(rotates=False):
            return open_sources(sources, config, stack)
    except StopReading:
        raise KeyboardInterrupt from None
    except CaptureError as error:
        if error.errno == errno.EINTR and interruption.requested:
            raise KeyboardInterrupt from None
        raise


class Reader:
    """Feeds one engine from several sources, one after the other, batch by batch."""

    is_live = False
    failure = None  # the error of a capture is raised

    def __init__(
        self,
        engine: PacketEngine,
        sources: Sequence[OpenSource],
        progress: Progress | None,
        interruption: Interruption,
        hooks: WindowHooks | None = None,
        batch_frames: int = BATCH_FRAMES,
        directions: Directions | None = None,
    ) -> None:
        self._engine = engine
        self._directions = directions
        self._hooks = hooks
        self._batch_frames = self._left = batch_frames
        self._sources = sources
        self._progress = progress
        totals = [source.progress()[1] for source in sources]
        self._total = sum(totals) if all(totals) else 0
        self._read = self._read_frames = 0  # bytes and frames of finished sources
        self._frames = self._yielded = self._frames_read()
        self._interruption = interruption
        self.first_ns: int | None = None
        self.started: Callable[[], None] | None = None  # called when the first packet was read

    def take_rotation(self) -> bool:
        """Returns true if a signal requested new files since the last call."""
        return self._interruption.take_rotation()

    @property
    def interrupted(self) -> bool:
        """True if a signal ended the reading."""
        return self._interruption.requested

    def facts(self) -> list[SourceFacts]:
        """Returns the facts about each source so far."""
        return [source.facts() for source in self._sources]

    def presence(self) -> dict[str, int | None]:
        """See LiveReader. There are no interfaces."""
        return {}

    def drops(self) -> Drops:
        """Packets lost so far."""
        return Drops.of_counters(self._engine.stats)

    def note(self) -> str | None:
        """Returns advice about captures that overlap in time, or None."""
        return None if self._directions is None else self._directions.note()

    def batches(self) -> Iterator[None]:
        """Yields after each batch, and about five times a second while a stream is silent."""
        before = self._engine.counts(*COUNTERS)
        for source in takewhile(lambda _source: not self.interrupted, self._sources):
            log.info("reading %s", source.name)
            while not self.interrupted and self._batch(source):
                if self.first_ns is None and self._engine.time_range_ns is not None:
                    self.first_ns = self._engine.time_range_ns[0]
                    if self.started is not None:
                        self.started()
                is_over = self._engine.is_over(source.capture)
                if not (is_over and self._joins(source)):
                    yield
                    self._yielded = self._frames
                self._report_progress(source)
                if is_over:
                    break
            while self.interrupted and source.is_open and self._take_read(source):
                yield
                self._report_progress(source)
            source.check()
            source.close()
            self._read += source.progress()[0]
            self._read_frames += source.frames
            now = self._engine.counts(*COUNTERS)
            self._see_directions(source, before, now)
            before = now
        if self._frames != self._yielded:
            yield

    def _joins(self, source: OpenSource) -> bool:
        """Returns true if the batch continues with the next source. One batch of many small files
        takes less time than a batch for each file."""
        return (
            source is not self._sources[-1]
            and source.is_file
            and not source.is_unpacked
            and self._frames - self._yielded < self._batch_frames > SIZED_FRAMES
            and not self._engine.waiting
            and not self._interruption.rotation
        )

    def _see_directions(
        self, source: OpenSource, before: dict[str, int], now: dict[str, int]
    ) -> None:
        """Looks for the other direction of a capture that was read."""
        if self._directions is None or self.interrupted or len(self._sources) == 1:
            return
        times = self._engine.time_range_ns
        self._directions.see(source, None if times is None else times[1], before, now)

    def _report_progress(self, source: OpenSource) -> None:
        if self._progress is not None:
            read = self._read + source.progress()[0]
            self._progress(read, self._total, self._read_frames + source.frames)

    def _batch(self, source: OpenSource) -> bool:
        """Reads one batch; returns true if there may be more."""
        # Reads the first packet alone: the engine's time range is then its time.
        alone = self.first_ns is None and source.frames < FRAMES_ALONE
        more = True
        try:
            with self._interruption.reading():
                frames = 1 if alone else self._frames_of_call(source)
                # A pause of a stream is a batch without frames, so that due work is done meanwhile.
                more = self._engine.run(source.capture, frames, pauses=True) != 0
        except StopReading:
            pass
        # any signal ends a wait, even a signal without a handler of zanon_net
        except CaptureError as error:
            if error.errno != errno.EINTR:
                raise
        self._end_call(source)
        return more

    def _frames_of_call(self, source: OpenSource) -> int:
        """Frames of the next call: with --split-size, the rest of a batch that was cut short."""
        if self._batch_frames <= SIZED_FRAMES:
            return self._left
        return UNPACKED_FRAMES if source.is_unpacked else self._batch_frames

    def _take_read(self, source: OpenSource) -> bool:
        """Feeds frames that were read ahead; returns true if there were any."""
        more = self._engine.run(source.capture, 0) > 0
        self._end_call(source)
        return more

    def _end_call(self, source: OpenSource) -> None:
        """Handles a window that ended, and counts frames."""
        if self._hooks is not None:
            self._hooks.see(self._engine)
        before, self._frames = self._frames, self._frames_read()
        frames = self._frames - before
        source.frames += frames
        self._left = (self._left - frames) % self._batch_frames or self._batch_frames

    def _frames_read(self) -> int:
        """Returns the frames read so far from all sources, including a call that a signal ended."""
        return sum(self._engine.counts("frames", "frames_filtered").values())


def _refuse_live_settings(config: Config) -> None:
    """Raises ConfigError for a setting that has no effect on captures."""
    for name in ("ring", "snaplen", "promiscuous", "fail_on_loss", "on_lost"):
        if getattr(config.live, name) != RUN[name].default:
            raise ConfigError(f"{name}: is for network interfaces; leave it out for captures")


def reader_opener(
    sources: Sequence[Source],
    config: Config,
    progress: Progress | None,
    interruption: Interruption,
    stack: ExitStack,
    live: "LiveInterfaces | None" = None,
) -> "Callable[[PacketEngine, WindowHooks], Reader | LiveReader]":
    """Opens the sources, which `stack` closes; returns a function that makes their reader.

    live: the interfaces, if they are open.
    """
    names = interfaces_of(sources)
    if names:
        from zanon_net.pipeline.live import LiveReader  # late: only interfaces need it
        from zanon_net.pipeline.live_interfaces import open_interfaces

        opened_live = live or open_interfaces(names, len(sources) - len(names), config)
        stack.callback(opened_live.close)
        return lambda engine, hooks: LiveReader(engine, opened_live, progress, interruption, hooks)
    _refuse_live_settings(config)
    opened = open_all(sources, config, interruption, stack)
    frames = SIZED_FRAMES if config.output.size_limit else BATCH_FRAMES
    found = Directions(config)
    return lambda engine, hooks: Reader(
        engine, opened, progress, interruption, hooks, frames, found
    )
