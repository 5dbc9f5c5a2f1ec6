# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""One file of a log while it is written, and text files, compressed or not."""

import contextlib
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from zanon_net.system.file_errors import explained

PARTIAL = ".partial"
BUFFER_BYTES = 1 << 20
GZIP = 31  # zlib's number of a gzip stream with the largest window
GZIP_LEVEL, ZSTD_LEVEL = 4, 3

SUFFIXES = {"none": "", "gzip": ".gz", "zstd": ".zst"}


class Compressor(Protocol):
    """Compresses a stream piece by piece."""

    def compress(self, data: bytes | memoryview, /) -> bytes | memoryview:
        """Takes the next bytes; returns compressed ones, or nothing yet."""

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
    """A file that is written as NAME.partial; its creator renames it when it is whole.

    path: its final path, in the same folder. records: how many it holds.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.records = 0
        with explained("write", path):
            self._file = self.partial.open("xb", buffering=BUFFER_BYTES)

    @property
    def partial(self) -> Path:
        """The path of the unfinished file."""
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
        """Closes and removes the unfinished file."""
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
