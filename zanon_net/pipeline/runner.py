# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""From captures to logs: opens, reads in batches, writes, and ends well or leaves nothing."""

import errno
import logging
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import takewhile
from types import FrameType
from typing import Any, Self

from zanon_net._core import OUTPUTS, TABLES, Engine
from zanon_net._version import __version__
from zanon_net.config.settings import Config
from zanon_net.errors import CaptureError, FormatError, OutputError, ZanonError
from zanon_net.output.files import ROW_GROUP_ROWS
from zanon_net.output.folder import FolderSink, check_out, open_sink
from zanon_net.output.sinks import Plan, Sink
from zanon_net.pipeline.interfaces import interfaces_of
from zanon_net.pipeline.live import LiveReader, open_interfaces
from zanon_net.pipeline.privileges import find_user, go_on_as, load_libraries
from zanon_net.pipeline.report import (
    Drops,
    Ending,
    Facts,
    Report,
    SourceFacts,
    Totals,
    build_manifest,
    manifest_bytes,
)
from zanon_net.pipeline.sources import OpenSource, Source, open_sources
from zanon_net.pipeline.status import Status, StatusClock
from zanon_net.pipeline.window_hooks import Windows

BATCH_FRAMES = 65536
SIZED_FRAMES = 16384  # where a part ends with a file's size, which is seen after each batch
UNPACKED_FRAMES = 2048  # what is unpacked comes slowly, and who waits wants to see how far it is
REMOVAL_S = 2.0  # more than it takes to remove a run's files
FRAMES_ALONE = 256  # how many are looked at one by one until one turns out to be a packet
Progress = Callable[[int, int, int], None]
"""Told after each batch: bytes read, bytes in all (0: not known), packets."""
Started = Callable[[int, int], None]
"""Told with the first packet: flows there is room for, bytes that the flow table takes at most."""

_log = logging.getLogger("zanon_net")


class StopReading(Exception):  # noqa: N818  (no error: a wish)
    """A signal came while the core was waiting for packets."""


class Interruption:
    """While entered, SIGINT and SIGTERM end the reading instead of the process.

    What was read is then finished and written. A second signal raises KeyboardInterrupt, wherever
    the run may be, so that what it wrote is removed; others do not disturb that for REMOVAL_S.
    rotates: SIGHUP asks for new files, but stays ignored where it was, as nohup wants it. Main
    thread only.
    """

    def __init__(self, *, rotates: bool = False) -> None:
        self.requested = False
        self._gave_up: float | None = None  # when the second one came
        self._hears_hangups = rotates
        self.rotation = False  # asked for, and for whoever does it to take back
        self._reading = self._rotates = self._rotation_missed = False
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._former[number] = signal.signal(number, self._on_signal)
        if self._hears_hangups and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            self._former[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._on_hangup)
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.requested:
            now, before = time.monotonic(), self._gave_up
            if before is not None and now - before < REMOVAL_S:
                return
            self._gave_up = now
            raise KeyboardInterrupt
        self.requested = True
        if self._reading:
            self._reading = self._rotates = False  # once, also where `reading` begins or ends
            raise StopReading

    def _on_hangup(self, _number: int, _frame: FrameType | None) -> None:
        self.rotation = True
        self._rotation_missed = not self._rotates
        if self._rotates:
            self._reading = self._rotates = False  # once, also where `reading` begins or ends
            raise StopReading

    def take_rotation(self) -> bool:
        """Whether SIGHUP asked for new files since this was asked last."""
        self._rotation_missed = False
        asked, self.rotation = self.rotation, False
        return asked

    @contextmanager
    def reading(self, *, rotates: bool = True) -> Iterator[None]:
        """Inside, and only there, a signal raises StopReading; SIGHUP only if `rotates`.

        A SIGHUP that came before, and that nobody has taken yet, raises it here, once: what is read
        may have nothing to give for a long time.
        """
        self._reading, self._rotates = True, rotates
        try:
            missed = rotates and self._rotation_missed
            if missed:
                self._rotation_missed = False
            if self.requested or missed:
                raise StopReading
            yield
        finally:
            self._reading = self._rotates = False


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

    def __init__(
        self,
        engine: Engine,
        sources: Sequence[OpenSource],
        progress: Progress | None,
        interruption: Interruption,
        windows: Windows | None = None,
        batch_frames: int = BATCH_FRAMES,
    ) -> None:
        self._engine = engine
        self._windows = windows
        self._batch_frames = self._left = batch_frames
        self._sources = sources
        self._progress = progress
        self._interruption = interruption
        self.first_ns: int | None = None
        self.started: Callable[[], None] | None = None  # to be called when a packet could be read

    def take_rotation(self) -> bool:
        """Whether a signal asked for new files since this was asked last."""
        return self._interruption.take_rotation()

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended the reading."""
        return self._interruption.requested

    def facts(self) -> list[SourceFacts]:
        """What is known about each source now."""
        return [source.facts() for source in self._sources]

    def drops(self) -> Drops:
        """Packets lost so far."""
        return Drops.of_counters(self._engine.stats)

    def batches(self) -> Iterator[None]:
        """Yields after each batch, when the engine holds output to take."""
        for source in takewhile(lambda _source: not self.interrupted, self._sources):
            _log.info("reading %s", source.name)
            while not self.interrupted and self._batch(source):
                if self.first_ns is None and self._engine.time_range_ns is not None:
                    self.first_ns = self._engine.time_range_ns[0]
                    if self.started is not None:
                        self.started()
                yield
                self._tell()
            while self.interrupted and source.is_open and self._take_read(source):
                yield
                self._tell()
            source.check()
            source.close()

    def _tell(self) -> None:
        if self._progress is not None:
            done, totals = zip(*(source.progress() for source in self._sources), strict=True)
            total = sum(totals) if all(totals) else 0
            self._progress(sum(done), total, sum(source.frames for source in self._sources))

    def _batch(self, source: OpenSource) -> bool:
        """Reads one batch; whether there may be more."""
        # The first packet goes alone: the engine's time range is then its time, whatever comes.
        alone = self.first_ns is None and source.frames < FRAMES_ALONE
        before, more = self._frames(), True
        try:
            with self._interruption.reading():
                frames = 1 if alone else self._frames_of_call(source)
                more = self._engine.run(source.capture, frames) > 0
        except StopReading:
            pass
        except CaptureError as error:  # a signal ends a wait, whether or not it means us
            if error.errno != errno.EINTR:
                raise
        self._end_call(source, before)
        return more

    def _frames_of_call(self, source: OpenSource) -> int:
        """Where files have a size they are looked at behind so many, whatever ended a call."""
        if self._batch_frames <= SIZED_FRAMES:
            return self._left
        return UNPACKED_FRAMES if source.is_unpacked else self._batch_frames

    def _take_read(self, source: OpenSource) -> bool:
        """Takes what was read ahead of its turn; whether there was any."""
        before = self._frames()
        more = self._engine.run(source.capture, 0) > 0
        self._end_call(source, before)
        return more

    def _end_call(self, source: OpenSource, before: int) -> None:
        """Sees to a window that ended, and counts what was read. before: what _frames gave."""
        if self._windows is not None:
            self._windows.see(self._engine)
        source.frames += (frames := self._frames() - before)
        self._left = (self._left - frames) % self._batch_frames or self._batch_frames

    def _frames(self) -> int:
        """Frames read so far from all sources, also by a call that a signal ended."""
        stats = self._engine.stats
        return stats["frames"] + stats["frames_filtered"]


def run(
    source: Source | Iterable[Source],
    config: Config | None = None,
    *,
    out: Source | None = None,
    progress: Progress | None = None,
    status: Callable[[Status], None] | None = None,
    interruption: Interruption | None = None,
    started: Started | None = None,
) -> Report:
    """Turns captures, or what passes network interfaces, into anonymized logs; returns the report.

    source: a capture's path, a folder of captures, "-" for standard input, or several of them; they
        are read in the order of their first packets' times. Packed captures are unpacked. Or one or
        more interfaces, which are read until interrupted.
    config: the settings; the defaults when None.
    out: a folder that is new or empty, "-" for standard output, None for ./zanon-<UTC start>.
    progress: called after each batch; see Progress.
    status: called every `config.live.status`, if that is set.
    interruption: an Interruption; entered, it lets signals end the reading.
    started: called when the first packet could be read; see Started.

    Raises ConfigError, CaptureError (a source cannot be read), FormatError (it is no capture),
    CapacityError or OutputError, each a ZanonError. After any error only files that are whole stand
    under a final name: none, unless the output was rotated before. When it was, or when the output
    could not be written, the manifest tells what there is and how many records there is not.
    """
    config = config or Config()
    interruption = interruption or Interruption()
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    check_out(out, sources, config.output.popularity)
    user = None if config.live.drop_to is None else find_user(config.live.drop_to)
    with ExitStack() as stack, ExitStack() as until_published:
        begin = _opener(sources, config, progress, interruption, stack)
        engine = Engine(**config.engine_arguments())
        stack.callback(engine.close)
        if user is not None:
            load_libraries(config)
            out = go_on_as(user, out, stack)
        windows = Windows(config)
        until_published.callback(windows.discard)
        sink = open_sink(out, config.output.format, plan_of(engine, config))
        stack.callback(sink.discard)
        reader = begin(engine, windows)
        if started is not None:
            reader.started = partial(started, config.limits.max_flows, engine.flow_bytes_max)
        report = run_reader(reader, engine, sink, windows, status)
        until_published.pop_all()
        return report


def _opener(
    sources: Sequence[Source],
    config: Config,
    progress: Progress | None,
    interruption: Interruption,
    stack: ExitStack,
) -> Callable[[Engine, Windows], Reader | LiveReader]:
    """Opens the sources, which `stack` closes; what it returns makes their reader."""
    names = interfaces_of(sources)
    if names:
        live = open_interfaces(names, len(sources) - len(names), config)
        stack.callback(live.close)
        return lambda engine, windows: LiveReader(engine, live, progress, interruption, windows)
    opened = open_all(sources, config, interruption, stack)
    frames = SIZED_FRAMES if config.output.size_limit else BATCH_FRAMES
    return lambda engine, windows: Reader(engine, opened, progress, interruption, windows, frames)


def plan_of(engine: Engine, config: Config) -> Plan:
    """What a run of the engine writes."""
    outputs = config.output.outputs
    return Plan(
        outputs=outputs,
        headers={output: engine.header(output) for output in outputs if output in OUTPUTS},
        fields={output: engine.fields(output) for output in outputs if output in TABLES},
        about={"zanon_net": __version__, "configuration": config.to_dict()},
        compress=config.output.compress,
        split_ns=config.output.split_ns,
        split_bytes=config.output.size_limit,
    )


def run_reader(
    reader: Reader | LiveReader,
    engine: Engine,
    sink: Sink,
    windows: Windows,
    tell: Callable[[Status], None] | None = None,
) -> Report:
    """Reads to the end, and writes. Raises what `run` raises."""
    config = windows.config
    began = time.monotonic()

    def manifest(error: str | None = None) -> dict[str, Any]:
        facts, drops = reader.facts(), reader.drops()
        ending = Ending(sink.files, sink.written, reader.interrupted, error, drops)
        return build_manifest(config, Totals.of(engine), facts, ending) | windows.facts()

    clock = None
    if tell is not None and config.live.status_s is not None:
        clock = StatusClock(engine, reader.drops, config.live.status_s, tell)
    try:
        for _batch in reader.batches():
            _drain(engine, sink)
            _rotate(reader, engine, sink)
            if clock is not None:
                clock.tick()
        if isinstance(reader, Reader):  # an interface may be silent, and may be removed
            _refuse_unreadable(reader.facts())
        while engine.finish():
            _drain(engine, sink)
            _rotate(reader, engine, sink)
        sink.take(*engine.drain())
        windows.see(engine)
        sink.settle(reader.first_ns)
        final = manifest()
        windows.publish()
        sink.publish(manifest_bytes(final))
    except BaseException as error:
        if isinstance(error, OutputError) or sink.files:
            text = str(error) if isinstance(error, ZanonError) else type(error).__name__
            sink.abandon(lambda: manifest_bytes(manifest(text)))
        raise
    out = sink.folder if isinstance(sink, FolderSink) else None
    _log.info("finished")
    return Report(final, out, Totals.of(engine), time.monotonic() - began)


def _drain(engine: Engine, sink: Sink) -> None:
    """Empties the engine's outputs, and those of records that found no room there; of the table for
    Parquet, what makes a row group."""
    sink.take(*engine.drain(rows=ROW_GROUP_ROWS))
    while engine.waiting:
        engine.settle()
        sink.take(*engine.drain(rows=ROW_GROUP_ROWS))


def _rotate(reader: Reader | LiveReader, engine: Engine, sink: Sink) -> None:
    """Ends a part where a signal asked for it, or where a file is large."""
    times = engine.time_range_ns
    if reader.first_ns is not None and times and (sink.is_large or reader.take_rotation()):
        sink.take(*engine.drain())
        sink.rotate(reader.first_ns, times[1])


def _refuse_unreadable(facts: Sequence[Facts]) -> None:
    """Raises FormatError when not one packet could be read from sources that should hold some."""
    nothing_read = not any(source.frames for source in facts)
    for source in facts:
        if nothing_read and source.warning is not None:
            raise FormatError(f"{source.name}: {source.warning}; not one packet can be read")
