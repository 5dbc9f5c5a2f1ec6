# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""One file of a log while it is written: text, compressed or not, or Parquet."""

import contextlib
import errno
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from zanon_net._core import FULL_ROWS
from zanon_net.errors import OutputError
from zanon_net.output.schema import Column, Schema

PARTIAL = ".partial"
BUFFER_BYTES = 1 << 20
GZIP = 31  # zlib's number of a gzip stream with the largest window
GZIP_LEVEL, ZSTD_LEVEL = 4, 3
ROW_GROUP_ROWS = FULL_ROWS

SUFFIXES = {"none": "", "gzip": ".gz", "zstd": ".zst"}

_ADVICE = {
    errno.ENOSPC: "free some space and run again",
    errno.EDQUOT: "the disk quota is used up: free some space and run again",
    errno.EFBIG: "the limit on file sizes is reached: raise it with ulimit -f and run again",
    errno.EACCES: "choose a folder you may write to",
    errno.EPERM: "choose a folder you may write to",
    errno.EROFS: "choose a folder you may write to",
    errno.ENOENT: "make the folder it is to lie in first",
}


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # only what is written has these


def explanation(action: str, path: object, error: OSError) -> str:
    """What failed, where, and what to do, in a line."""
    advice = _ADVICE.get(error.errno or 0)
    text = f"cannot {action} {path}: {error.strerror or error}"
    return f"{text}; {advice}" if advice else text


@contextlib.contextmanager
def explained(action: str, path: object) -> Iterator[None]:
    """Turns an OSError into an OutputError that says what failed, where, and what to do."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(explanation(action, path, error)) from error


class Compressor(Protocol):
    """Compresses a stream piece by piece."""

    def compress(self, data: bytes | memoryview, /) -> bytes | memoryview:
        """What comes out for the next piece, which may be nothing."""

    def flush(self) -> bytes:
        """The end of the stream."""


class _Plain:
    """No compression."""

    def compress(self, data: bytes | memoryview, /) -> bytes | memoryview:
        """The same bytes."""
        return data

    def flush(self) -> bytes:
        """Nothing is held back."""
        return b""


def _zstd() -> Compressor:
    import zstandard  # most runs write without it

    return zstandard.ZstdCompressor(level=ZSTD_LEVEL).compressobj()


_COMPRESSORS: dict[str, Callable[[], Compressor]] = {
    "none": _Plain,
    "gzip": lambda: zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP),
    "zstd": _zstd,
}


def compressor(kind: str) -> Compressor:
    """A compressor: "none", "gzip" or "zstd"."""
    return _COMPRESSORS[kind]()


class LogFile(ABC):
    """A file that is written as NAME.partial; whoever made it gives it its name.

    path: where it will be when it is whole, beside its partial form. records: how many it holds.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = 0
        with explained("write", path):
            self._file = self.partial.open("xb", buffering=BUFFER_BYTES)

    @property
    def partial(self) -> Path:
        """Where it is now."""
        return self.path.with_name(self.path.name + PARTIAL)

    @property
    def size(self) -> int:
        """Bytes written so far, without what is held back for compression."""
        return self._file.tell()

    @abstractmethod
    def _end(self) -> None:
        """Writes what is held back."""

    def to_disk(self) -> int:
        """Ends the file; returns its bytes. Raises OutputError."""
        with explained("write", self.path):
            self._end()
            self._file.flush()
            size = self._file.tell()
            os.fsync(self._file.fileno())
            self._file.close()
        return size

    def remove(self) -> None:
        """Gives up: nothing of it stays."""
        with contextlib.suppress(OSError, ValueError):
            self._file.close()
        with contextlib.suppress(OSError):
            self.partial.unlink()


class TextFile(LogFile):
    """Lines behind a header line, which may be empty."""

    def __init__(self, path: Path, header: bytes, compress: str) -> None:
        self._compressor = compressor(compress)
        super().__init__(path)
        self._put(header)

    def write(self, lines: bytes | memoryview, count: int) -> None:
        """Appends whole lines, so many. Raises OutputError."""
        self._put(lines)
        self.records += count

    def _put(self, data: bytes | memoryview) -> None:
        with explained("write", self.path):
            self._file.write(self._compressor.compress(data))

    def _end(self) -> None:
        self._file.write(self._compressor.flush())


class ParquetFile(LogFile):
    """Rows; each write makes a row group, or several of ROW_GROUP_ROWS.

    gathers: only the last row group has fewer, however many rows come at once; the writes differ
    with the number of workers where a table is taken before it is full.
    """

    def __init__(self, path: Path, schema: Schema, compress: str, *, gathers: bool) -> None:
        super().__init__(path)
        self._schema = schema
        self._gathers = gathers
        self._gathered: list[Any] = []
        with explained("write", path):
            self._writer = schema.writer(self._file, compress)

    def write(self, table: Sequence[Column], start: int, end: int) -> None:
        """Appends rows start to end of the table. Raises OutputError."""
        rows = self._schema.table(table, start, end)
        with explained("write", self.path):
            if self._gathers:
                self._gather(rows)
            else:
                self._writer.write_table(rows, ROW_GROUP_ROWS)
        self.records += end - start

    def _gather(self, rows: Any) -> None:
        while (room := ROW_GROUP_ROWS - sum(map(len, self._gathered))) <= len(rows):
            self._gathered.append(rows[:room])
            self._write_gathered()
            rows = rows[room:]
        if len(rows):
            self._gathered.append(rows)

    def _write_gathered(self) -> None:
        group, self._gathered = self._schema.joined(self._gathered), []
        self._writer.write_table(group)

    def _end(self) -> None:
        if self._gathered:
            self._write_gathered()
        self._writer.close()

    def remove(self) -> None:
        """See LogFile."""
        with contextlib.suppress(Exception):  # its footer has nowhere to go
            self._writer.close()
        super().remove()
