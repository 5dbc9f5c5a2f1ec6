# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""From captures to logs: opens, reads in batches, writes, and ends well or leaves nothing."""

import errno
import logging
import os
import pwd
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import Any, Self

from zanon_net._core import Engine
from zanon_net.config import Config
from zanon_net.errors import CaptureError, FormatError
from zanon_net.interfaces import interfaces_of
from zanon_net.live import LiveReader, open_interfaces
from zanon_net.outputs import FolderSink, Sink, default_folder, open_sink
from zanon_net.privileges import become, find_user, make_folder
from zanon_net.report import (
    Drops,
    Facts,
    Report,
    SourceFacts,
    Totals,
    build_manifest,
    manifest_bytes,
)
from zanon_net.sources import OpenSource, Source, open_sources
from zanon_net.status import Status, StatusClock

BATCH_FRAMES = 16384
FRAMES_ALONE = 256  # how many are looked at one by one until one turns out to be a packet
Progress = Callable[[int, int, int], None]
"""Told after each batch: bytes read, bytes in all (0: not known), packets."""

_log = logging.getLogger("zanon_net")


class StopReading(Exception):  # noqa: N818  (no error: a wish)
    """A signal came while the core was waiting for packets."""


class Interruption:
    """While entered, SIGINT and SIGTERM end the reading instead of the process.

    What was read is then finished and written. A second signal raises KeyboardInterrupt, wherever
    the run may be. Main thread only.
    """

    def __init__(self) -> None:
        self.requested = False
        self._reading = False
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._former[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        if self._reading:
            raise StopReading

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Inside, and only there, the first signal raises StopReading."""
        self._reading = True
        try:
            if self.requested:
                raise StopReading
            yield
        finally:
            self._reading = False


def open_all(
    sources: Sequence[Source], config: Config, interruption: Interruption, stack: ExitStack
) -> list[OpenSource]:
    """Opens the sources as `open_sources` does. Raises KeyboardInterrupt when interrupted."""
    try:
        with interruption.reading():
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
    ) -> None:
        self._engine = engine
        self._sources = sources
        self._progress = progress
        self._interruption = interruption
        self.first_ns: int | None = None

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
                more = self._engine.run(source.capture, 1 if alone else BATCH_FRAMES) > 0
        except StopReading:
            pass
        except CaptureError as error:  # a signal ends a wait, whether or not it means us
            if error.errno != errno.EINTR:
                raise
        source.frames += self._frames() - before
        return more

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
) -> Report:
    """Turns captures, or what passes network interfaces, into anonymized logs.

    source: a capture's path, a folder of captures, "-" for standard input, or several of them; they
        are read in the order of their first packets' times. Packed captures are unpacked. Or one or
        more interfaces, which are read until interrupted.
    config: the settings; the defaults when None.
    out: a folder that is new or empty, "-" for standard output, None for ./zanon-<UTC start>.
    progress: called after each batch; see Progress.
    status: called every `config.live.status`, if that is set.
    interruption: entered by the caller, lets a signal end the reading early.

    Raises ConfigError, CaptureError, FormatError, CapacityError, or ZanonError when the output
    cannot be written. After any error nothing stands under a final name.
    """
    config = config or Config()
    interruption = interruption or Interruption()
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    user = None if config.live.drop_to is None else find_user(config.live.drop_to)
    with ExitStack() as stack:
        begin = _opener(sources, config, progress, interruption, stack)
        engine = Engine(**config.engine_arguments())
        stack.callback(engine.close)
        if user is not None:
            out = _drop_to(user, out, stack)
        sink = open_sink(out, config.output.format)
        stack.callback(sink.discard)
        return _run(begin(engine), engine, sink, config, status)


def _drop_to(user: pwd.struct_passwd, out: Source | None, stack: ExitStack) -> Source:
    """Goes on as `user`, who gets the folder to write to, unless it is there. Raises ZanonError."""
    out = default_folder(datetime.now(UTC)) if out is None else out
    if out != "-":
        folder = Path(out)
        make_folder(folder, user)
        stack.callback(lambda: _remove_empty(folder))
    become(user)
    return out


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _opener(
    sources: Sequence[Source],
    config: Config,
    progress: Progress | None,
    interruption: Interruption,
    stack: ExitStack,
) -> Callable[[Engine], Reader | LiveReader]:
    """Opens the sources, which `stack` closes; what it returns makes their reader."""
    names = interfaces_of(sources)
    if names:
        live = open_interfaces(names, len(sources) - len(names), config)
        stack.callback(live.close)
        return lambda engine: LiveReader(engine, live, progress, lambda: interruption.requested)
    opened = open_all(sources, config, interruption, stack)
    return lambda engine: Reader(engine, opened, progress, interruption)


def _run(
    reader: Reader | LiveReader,
    engine: Engine,
    sink: Sink,
    config: Config,
    tell: Callable[[Status], None] | None,
) -> Report:
    began = time.monotonic()
    outputs = config.output.outputs
    clock = None
    if tell is not None and config.live.status_s is not None:
        clock = StatusClock(engine, reader.drops, config.live.status_s, tell)
    for _batch in reader.batches():
        _drain(engine, outputs, sink)
        if clock is not None:
            clock.tick()
    facts, drops = reader.facts(), reader.drops()
    _refuse_unreadable(facts)
    engine.finish()
    _drain(engine, outputs, sink)
    files = sink.settle(reader.first_ns)
    totals = Totals.of(engine)
    manifest = build_manifest(
        config, totals, facts, files, interrupted=reader.interrupted, drops=drops
    )
    sink.publish(manifest_bytes(manifest))
    out = sink.folder if isinstance(sink, FolderSink) else None
    _log.info("finished")
    return Report(manifest, out, totals, time.monotonic() - began)


def _drain(engine: Engine, outputs: Iterable[str], sink: Sink) -> None:
    for output in outputs:
        data = engine.take(output)
        if data:
            sink.write(output, data)


def _refuse_unreadable(facts: Sequence[Facts]) -> None:
    """Raises FormatError when not one packet could be read from sources that should hold some."""
    if any(source.frames for source in facts):
        return
    for source in facts:
        if source.warning is not None:
            raise FormatError(f"{source.name}: {source.warning}; not one packet can be read")
