# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Files, streams and named pipes of rows, which may be compressed."""

import os
import select
from pathlib import Path

from zanon_net._record import dataclass
from zanon_net.errors import FormatError, ZanonError
from zanon_net.rows.report import RowSource
from zanon_net.system.decompress import NO_BOUND, Unpacker, compression_of, may_be_compressed
from zanon_net.system.signals import Interruption
from zanon_net.system.streams import open_path, read_stream

PARQUET = b"PAR1"  # first bytes of a file
READ_BYTES = 1 << 18  # of a file; a read of a pipe returns the bytes that are there


@dataclass(slots=True)
class Input:
    """A file or stream that is read, and unpacked if its first bytes are of a compression.

    pipe: a named pipe that is opened when it is first read, because a program that fills several
    pipes one after the other opens the next one only after the last was read.
    bytes_read: of the unpacked data.
    """

    name: str
    descriptor: int | None
    pipe: Path | None = None
    bytes_read: int = 0
    rows: int = 0
    begun: bool = False
    unpacker: Unpacker | None = None

    def read(self, interruption: Interruption) -> bytes:
        """Returns unpacked bytes, none at the end.

        Raises ZanonError, FormatError at the place where compressed data is damaged or cut, and
        StopReading when interrupted.
        """
        with interruption.reading():
            self._open()
            try:
                data = self._read() if self.begun else self._begin()
            except OSError as error:
                raise ZanonError(f"cannot read {self.name}: {error.strerror}") from error
        if not data and self.unpacker is not None and self.unpacker.problem is not None:
            raise FormatError(f"{self.name}: {self.unpacker.problem}")
        self.bytes_read += len(data)
        return data

    def _read(self) -> bytes:
        return read_stream(self._readable(), READ_BYTES)

    def _begin(self) -> bytes:
        """Reads the first bytes, and unpacks the source if they are of a compression."""
        start = self._read()
        while start and compression_of(start) is None and may_be_compressed(start):
            more = self._read()
            if not more:
                break
            start += more
        self.begun = True
        if start.startswith(PARQUET):
            raise FormatError(f"{self.name}: Parquet is read from its end; name a file")
        if compression_of(start) is None:
            return start
        assert self.descriptor is not None
        raw = os.fdopen(os.dup(self.descriptor), "rb", buffering=0)
        self.unpacker = Unpacker(raw, start, NO_BOUND)
        return self._read()

    def _readable(self) -> int:
        """Returns the descriptor that the source's bytes are read from."""
        assert self.descriptor is not None
        return self.descriptor if self.unpacker is None else self.unpacker.fd

    def wait(self, interruption: Interruption, seconds: float | None) -> bool:
        """Returns true if there is something to read within `seconds` (None: waits without limit);
        the end counts, too.

        Raises as `read`.
        """
        with interruption.reading():
            self._open()
            return bool(select.select([self._readable()], [], [], seconds)[0])

    def _open(self) -> None:
        if self.descriptor is None:
            assert self.pipe is not None
            self.descriptor = open_source(self.pipe)

    def renew(self) -> bool:
        """Returns true if other bytes may follow after an end."""
        return False

    def close(self) -> None:
        """Closes the file, if it was opened."""
        if self.unpacker is not None:
            self.unpacker.close()
        if self.descriptor is not None:
            os.close(self.descriptor)

    def facts(self) -> RowSource:
        """Returns the facts so far."""
        compression = None if self.unpacker is None else self.unpacker.compression
        return RowSource(self.name, compression, self.bytes_read, self.rows)


def open_source(path: Path) -> int:
    """Opens a path for reading. Raises ZanonError."""
    try:
        return open_path(path)
    except OSError as error:
        raise ZanonError(f"{path} cannot be opened: {error.strerror}") from error
