# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Sources of rows, read to their ends one after the other, and rows written to standard output."""

import os
import select
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Protocol

from zanon_net._record import dataclass
from zanon_net.errors import ConfigError, FormatError, ZanonError
from zanon_net.output.sink import Plan
from zanon_net.output.stdout import StdoutSink
from zanon_net.rows.report import RowSource
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

Warn = Callable[[str], None]
"""Function called with a warning that must not wait for the end of a stream."""


class RowReader(Protocol):
    """Object that takes rows as bytes and returns rows that may be written: RowFilter,
    RowPublisher."""

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of a source."""

    def end(self) -> None:
        """Ends the source."""

    def take(self) -> bytes:
        """Returns the rows that are ready to be written."""

    @property
    def stats(self) -> dict[str, int]:
        """Its counters, `rows` among them."""

    @property
    def first_fault(self) -> tuple[int, str] | None:
        """(line, text) of the first row that could not be read."""


@dataclass(slots=True)
class Input:
    """A file or stream that is read.

    pipe: a named pipe that is opened when it is first read, because a program that fills several
    pipes one after the other opens the next one only after the last was read.
    """

    name: str
    descriptor: int | None
    pipe: Path | None = None
    bytes_read: int = 0
    rows: int = 0

    def read(self, interruption: Interruption) -> bytes:
        """Returns bytes, none at the end. Raises ZanonError, and StopReading when interrupted."""
        with interruption.reading():
            self._open()
            assert self.descriptor is not None
            try:
                data = read_stream(self.descriptor, READ_BYTES)
            except OSError as error:
                raise ZanonError(f"cannot read {self.name}: {error.strerror}") from error
        self.bytes_read += len(data)
        return data

    def wait(self, interruption: Interruption, seconds: float | None) -> bool:
        """Returns true if there is something to read within `seconds` (None: waits without limit);
        the end counts, too.

        Raises as `read`.
        """
        with interruption.reading():
            self._open()
            assert self.descriptor is not None
            return bool(select.select([self.descriptor], [], [], seconds)[0])

    def _open(self) -> None:
        if self.descriptor is None:
            assert self.pipe is not None
            self.descriptor = _open_path(self.pipe)

    def close(self) -> None:
        """Closes the file, if it was opened."""
        if self.descriptor is not None:
            os.close(self.descriptor)

    def facts(self) -> RowSource:
        """Returns the facts so far."""
        return RowSource(self.name, self.bytes_read, self.rows)


def _open_path(path: Path) -> int:
    try:
        return open_path(path)
    except OSError as error:
        raise ZanonError(f"{path} cannot be opened: {error.strerror}") from error


def _open_input(source: Source, interruption: Interruption, *, first: bool) -> Input:
    if source == STDIN:
        if sys.stdin is None:
            raise ZanonError("standard input is closed")
        if os.isatty(0):
            raise ConfigError("standard input is a terminal; pipe observations into it")
        return Input("standard input", os.dup(0))
    path = Path(source)
    if not first and path.is_fifo():
        return Input(path.name, None, path)
    with interruption.reading():  # a named pipe may be waited for
        descriptor = _open_path(path)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ZanonError(f"{path} is a folder; name the files in it")
    return Input(path.name, descriptor)


def open_inputs(
    sources: Sequence[Source], interruption: Interruption, stack: ExitStack
) -> list[Input]:
    """Opens the sources; `stack` closes them.

    Raises ConfigError and ZanonError if a source cannot be read, KeyboardInterrupt if interrupted.
    """
    check_sources(sources)
    inputs: list[Input] = []
    for source in sources:
        try:
            inputs.append(_open_input(source, interruption, first=not inputs))
        except StopReading:
            raise KeyboardInterrupt from None
        stack.callback(inputs[-1].close)
        descriptor = inputs[-1].descriptor
        if descriptor is not None:
            refuse_stdout(descriptor, inputs[-1].name)
    return inputs


class RowStream:
    """A reader of rows between inputs and standard output.

    output: the kind of rows, for the plan of the output.
    written: called after each read whose ready rows were written.
    idle: seconds after which a silent pipe is `silent`; None: waits without limit.
    silent: called then; the rows that are ready afterwards are written.
    """

    def __init__(
        self,
        reader: RowReader,
        interruption: Interruption,
        warn: Warn,
        output: str,
        *,
        written: Callable[[], None] = lambda: None,
        idle: float | None = None,
        silent: Callable[[], None] = lambda: None,
    ) -> None:
        self._reader = reader
        self._sink = StdoutSink(Plan((output,)))
        self._output = output
        self._interruption = interruption
        self._warn = warn
        self._written = written
        self._idle = idle
        self._silent = silent
        self.first_fault: str | None = None

    def run(self, inputs: Sequence[Input]) -> None:
        """Reads all inputs to their ends, or until interrupted."""
        for item in inputs:
            for data in self._pieces(item):
                self._pass_on(item, data)
            if self._interruption.requested:
                break  # the last row may be cut, so it is not a row
            self._pass_on(item, None)

    def _pieces(self, item: Input) -> Iterator[bytes]:
        with suppress(StopReading):
            while True:
                if self._idle is not None and not item.wait(self._interruption, self._idle):
                    self._silent()
                    self.write()
                    item.wait(self._interruption, None)
                data = item.read(self._interruption)
                if not data:
                    return
                yield data

    def _pass_on(self, item: Input, data: bytes | None) -> None:
        """Feeds `data` (None: the end of the input) and writes the rows that are ready."""
        before = self._reader.stats["rows"]
        try:
            if data is None:
                self._reader.end()
            else:
                self._reader.feed(data)
        except (ConfigError, FormatError) as error:
            if str(error).startswith("--header"):  # the header does not come from a file
                raise
            raise type(error)(f"{item.name}: {error}") from None
        finally:
            self.write()
        self._written()
        item.rows += self._reader.stats["rows"] - before
        fault = self._reader.first_fault
        if fault is not None and self.first_fault is None:
            self.first_fault = f"{item.name}: line {fault[0]}: {fault[1]}"
            self._warn(f"{self.first_fault}; the row is dropped, like all that cannot be read")

    def write(self) -> None:
        """Writes the rows that are ready."""
        ready = self._reader.take()
        if ready:
            self._sink.take([(None, {self._output: (ready, ready.count(b"\n"))}, {})], {})
