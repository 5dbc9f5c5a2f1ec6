# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Sources of rows, read to their ends one after the other, and rows written to standard output."""

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Protocol

from zanon_net.errors import ConfigError, FormatError, ZanonError
from zanon_net.output.sink import Plan
from zanon_net.output.stdout import StdoutSink
from zanon_net.rows.inputs import PARQUET, Input, open_source
from zanon_net.rows.socket_input import PREFIX, SocketInput
from zanon_net.system.signals import Interruption, StopReading
from zanon_net.system.streams import (
    STDIN,
    Source,
    check_sources,
    refuse_stdout,
)

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


def _open_input(source: Source, interruption: Interruption, *, first: bool) -> Input:
    if source == STDIN:
        if sys.stdin is None:
            raise ZanonError("standard input is closed")
        if os.isatty(0):
            raise ConfigError("standard input is a terminal; pipe observations into it")
        return Input("standard input", os.dup(0))
    if str(source).startswith(PREFIX):
        return SocketInput.listening(Path(str(source).removeprefix(PREFIX)))
    path = Path(source)
    if not first and path.is_fifo():
        return Input(path.name, None, path)
    with interruption.reading():  # a named pipe may be waited for
        descriptor = open_source(path)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ZanonError(f"{path} is a folder; name the files in it")
    return Input(path.name, descriptor)


def is_parquet(source: Source) -> bool:
    """Returns true if a source is a regular file that begins as Parquet does."""
    try:
        if source == STDIN:
            return os.pread(0, len(PARQUET), 0) == PARQUET
        path = Path(source)
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(PARQUET)) == PARQUET
    except OSError:  # a pipe, or a file that cannot be read, which its opening reports
        return False


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
    put: called with the rows that are ready, instead of writing them to standard output.
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
        put: Callable[[bytes], None] | None = None,
        idle: float | None = None,
        silent: Callable[[], None] = lambda: None,
    ) -> None:
        self._reader = reader
        self._put = put or self._to_stdout(output)
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

    def _pieces(self, item: Input) -> Iterator[bytes | None]:
        """Yields the bytes of an input, and None at an end after which it goes on."""
        with suppress(StopReading):
            while True:
                if self._idle is not None and not item.wait(self._interruption, self._idle):
                    self._silent()
                    self.write()
                    item.wait(self._interruption, None)
                data = item.read(self._interruption)
                if not data and not item.renew():
                    return
                yield data or None

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
            self._put(ready)

    def _to_stdout(self, output: str) -> Callable[[bytes], None]:
        """Returns a function that writes rows. The reader counts them, so the sink does not."""
        sink = StdoutSink(Plan((output,)))
        return lambda ready: sink.take([(None, {output: (ready, 0)}, {})], {})
