# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Filters observations from CSV or JSON Lines to standard output, with zero delay."""

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from zanon_net._core import RowFilter
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.errors import ConfigError, FormatError, ZanonError
from zanon_net.output.popularity_file import PopularityFile
from zanon_net.output.sink import Plan
from zanon_net.output.stdout import StdoutSink
from zanon_net.rows.report import FilterReport, RowSource, RowTotals, build_filter_manifest
from zanon_net.system.signals import Interruption, StopReading
from zanon_net.system.streams import (
    STDIN,
    Source,
    check_sources,
    open_path,
    read_stream,
    refuse_stdout,
)

READ_BYTES = 1 << 18  # of a file; a read of a pipe returns the bytes that are there
OUTPUT = "observations"

Warn = Callable[[str], None]
"""Called with a warning that must not wait for the end of a stream."""


@dataclass(slots=True)
class _Input:
    """A file or stream being read.

    pipe: a named pipe that is opened when it is first read: a program that fills several, one after
        the other, opens the next one only when the last was read.
    """

    name: str
    descriptor: int | None
    pipe: Path | None = None
    bytes_read: int = 0
    rows: int = 0

    def read(self, interruption: Interruption) -> bytes:
        """Returns bytes, none at the end. Raises ZanonError, and StopReading when interrupted."""
        with interruption.reading():
            if self.descriptor is None:
                assert self.pipe is not None
                self.descriptor = _open_path(self.pipe)
            try:
                data = read_stream(self.descriptor, READ_BYTES)
            except OSError as error:
                raise ZanonError(f"cannot read {self.name}: {error.strerror}") from error
        self.bytes_read += len(data)
        return data

    def close(self) -> None:
        """Closes the file, if it was opened."""
        if self.descriptor is not None:
            os.close(self.descriptor)

    def facts(self) -> RowSource:
        """The facts so far."""
        return RowSource(self.name, self.bytes_read, self.rows)


def _open_path(path: Path) -> int:
    try:
        return open_path(path)
    except OSError as error:
        raise ZanonError(f"{path} cannot be opened: {error.strerror}") from error


def _open_input(source: Source, interruption: Interruption, *, first: bool) -> _Input:
    if source == STDIN:
        if sys.stdin is None:
            raise ZanonError("standard input is closed")
        if os.isatty(0):
            raise ConfigError("standard input is a terminal; pipe observations into it")
        return _Input("standard input", os.dup(0))
    path = Path(source)
    if not first and path.is_fifo():
        return _Input(path.name, None, path)
    with interruption.reading():  # a named pipe may be waited for
        descriptor = _open_path(path)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ZanonError(f"{path} is a folder; name the files in it")
    return _Input(path.name, descriptor)


class _Filter:
    """A row filter between inputs and standard output."""

    def __init__(
        self,
        row_filter: RowFilter,
        popularity: PopularityFile | None,
        interruption: Interruption,
        warn: Warn,
    ) -> None:
        self._row_filter = row_filter
        self._sink = StdoutSink(Plan((OUTPUT,)))
        self._popularity = popularity
        self._interruption = interruption
        self._warn = warn
        self.first_fault: str | None = None

    def run(self, inputs: Sequence[_Input]) -> None:
        """Reads all inputs to their ends, or until interrupted."""
        for item in inputs:
            for data in self._pieces(item):
                self._pass_on(item, data)
            if self._interruption.requested:
                break  # the last row may be cut: it is no row
            self._pass_on(item, None)
        self._row_filter.finish()
        self._count()
        if self._popularity is not None:
            self._popularity.publish()

    def _pieces(self, item: _Input) -> Iterator[bytes]:
        with suppress(StopReading):
            while data := item.read(self._interruption):
                yield data

    def _pass_on(self, item: _Input, data: bytes | None) -> None:
        """Feeds `data`, None: the end of the input, and writes the rows that are ready."""
        before = self._row_filter.stats["rows"]
        try:
            if data is None:
                self._row_filter.end()
            else:
                self._row_filter.feed(data)
        except (ConfigError, FormatError) as error:
            if str(error).startswith("--header"):  # the header is not in a file
                raise
            raise type(error)(f"{item.name}: {error}") from None
        finally:
            ready = self._row_filter.take()
            if ready:
                self._sink.take([(None, {OUTPUT: (ready, ready.count(b"\n"))}, {})], {})
        self._count()
        item.rows += self._row_filter.stats["rows"] - before
        fault = self._row_filter.first_fault
        if fault is not None and self.first_fault is None:
            self.first_fault = f"{item.name}: line {fault[0]}: {fault[1]}"
            self._warn(f"{self.first_fault}; the row is dropped, as any other like it")

    def _count(self) -> None:
        """Adds the windows that have ended to the popularity file."""
        if self._popularity is not None:
            for window in self._row_filter.windows():
                self._popularity.add(window)


def filter_rows(
    sources: Sequence[Source],
    config: FilterConfig,
    *,
    interruption: Interruption | None = None,
    warn: Warn = lambda _text: None,
) -> FilterReport:
    """Writes to standard output the observations of `sources` that z users share.

    sources: paths, "-" for standard input, in the order of their times; they are one stream.
    config: the settings.
    interruption: an Interruption that the caller has entered: a signal then ends the reading.
    warn: called at once with the first row that cannot be read.

    Returns the report. Raises ConfigError when the settings do not fit the input, FormatError when
    no row could be read or, with config.strict, one could not; CapacityError when memory ran out,
    BrokenPipeError when the reader of the output has gone, ZanonError for other errors of files.
    """
    interruption = interruption or Interruption()
    check_sources(sources)
    with ExitStack() as stack, ExitStack() as until_done:
        inputs: list[_Input] = []
        for source in sources:
            try:
                inputs.append(_open_input(source, interruption, first=not inputs))
            except StopReading:
                raise KeyboardInterrupt from None
            stack.callback(inputs[-1].close)
            if inputs[-1].descriptor is not None:
                refuse_stdout(inputs[-1].descriptor, inputs[-1].name)
        row_filter = RowFilter(**config.row_filter_arguments())
        stack.callback(row_filter.close)
        popularity = None
        if config.popularity is not None:
            popularity = PopularityFile(config.popularity, config.z, config.window_ns)
            until_done.callback(popularity.discard)
        began = time.monotonic()
        _Filter(row_filter, popularity, interruption, warn).run(inputs)
        totals = RowTotals.of(row_filter)
        interrupted = interruption.requested
        if totals.rows["rows"] and not totals.rows["observations"] and not interrupted:
            raise FormatError("not one row could be read")
        facts = [item.facts() for item in inputs]
        manifest = build_filter_manifest(config, totals, facts, interrupted=interrupted)
        until_done.pop_all()
        return FilterReport(manifest, totals, time.monotonic() - began)
