# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""One output to standard output."""

import errno
import os
import sys
from collections.abc import Mapping
from typing import BinaryIO

from zanon_net.errors import ZanonError
from zanon_net.output.files import compressor, end_of_block
from zanon_net.output.sink import Parts, Plan, Sink, Tables
from zanon_net.system.file_errors import explained


def standard_output() -> BinaryIO:
    """Returns the stream of bytes. Raises ZanonError if it is closed."""
    stream: BinaryIO | None = getattr(sys.stdout, "buffer", None)
    if stream is None:
        raise ZanonError("standard output is closed")
    return stream


def write_whole(stream: BinaryIO, data: bytes | memoryview) -> None:
    """Writes all of the data. An unbuffered stream (PYTHONUNBUFFERED), a signal or a full disk cuts
    a write.

    Raises OSError.
    """
    rest = memoryview(data)
    while rest:
        written = stream.write(rest)
        if not written:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        rest = rest[written:]


def write_stdout(content: bytes) -> None:
    """Writes to standard output. Raises ZanonError, also if it is closed, and OutputError."""
    stream = standard_output()
    with explained("write", "standard output"):
        sys.stdout.flush()
        write_whole(stream, content)
        stream.flush()


class StdoutSink(Sink):
    """One output to standard output. A reader that went away raises BrokenPipeError."""

    def __init__(self, plan: Plan) -> None:
        self._stream = standard_output()
        (self._output,) = plan.outputs
        self._compress = plan.compress
        self._compressor = compressor(plan.compress)
        self._holds_back = False  # true if the compressor may have delayed bytes
        self._records = 0
        self._put(plan.headers.get(self._output, b""))

    def _put(self, data: bytes | memoryview) -> None:
        self._write(self._compressor.compress(data))
        with explained("write", "standard output"):
            self._stream.flush()  # the reader of a pipe gets each batch when it is decided
        self._holds_back = True

    def _write(self, data: bytes | memoryview) -> None:
        with explained("write", "standard output"):
            write_whole(self._stream, data)

    def take(self, parts: Parts, tables: Tables) -> None:
        """See Sink."""
        for _period, texts, _rows in parts:
            if self._output in texts:
                lines, count = texts[self._output]
                self._put(lines)
                self._records += count

    def flush(self, *, blocks: bool) -> None:
        """See Sink."""
        if blocks and self._holds_back:
            self._write(end_of_block(self._compressor, self._compress))
            self._holds_back = False
        with explained("write", "standard output"):
            self._stream.flush()

    def finish(self, first_ns: int | None) -> None:
        """See Sink. Standard output is no file of a folder."""
        self._write(self._compressor.flush())

    def publish(self, manifest: bytes) -> None:
        """See Sink. The manifest has no place among the data."""
        with explained("write", "standard output"):
            self._stream.flush()

    def discard(self) -> None:
        """See Sink. Lines that were written cannot be taken back."""

    @property
    def written(self) -> Mapping[str, int]:
        """See Sink."""
        return {self._output: self._records}
