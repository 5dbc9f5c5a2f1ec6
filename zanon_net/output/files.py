# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A file of a log while it is written, and text files, compressed or not."""

import contextlib
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import Protocol

from zanon_net._record import dataclass
from zanon_net.output.room import PatientFile, Room
from zanon_net.output.whole_records import PCAPNG_MAGIC, Checkpoints, whole_packets
from zanon_net.system.file_errors import explained

PARTIAL = ".partial"
BUFFER_BYTES = 1 << 20
ENDING_BYTES = 1 << 16  # content cut off on a full disk so that a compressed file can be ended
GZIP = 31  # zlib's number of a gzip stream with the largest window
GZIP_LEVEL, ZSTD_LEVEL = 4, 3

SUFFIXES = {"none": "", "gzip": ".gz", "zstd": ".zst"}


class Compressor(Protocol):
    """Compresses a stream piece by piece."""

    def compress(self, data: bytes | memoryview, /) -> bytes | memoryview:
        """Takes the next bytes; returns compressed ones, or nothing yet."""

    def flush(self, mode: int = ..., /) -> bytes:
        """Returns the end of the stream; of a block, if the mode says so."""


class _Plain:
    """No compression."""

    def compress(self, data: bytes | memoryview, /) -> bytes | memoryview:
        """Returns the bytes unchanged."""
        return data

    def flush(self, mode: int = 0, /) -> bytes:
        """Returns nothing, because nothing is delayed."""
        del mode
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
    """Returns a compressor: "none", "gzip" or "zstd"."""
    return _COMPRESSORS[kind]()


def end_of_block(stream: Compressor, kind: str) -> bytes:
    """Returns the bytes that a compressor of this kind has delayed, in readable form; the stream
    continues."""
    if kind == "zstd":
        import zstandard

        return stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    return stream.flush(zlib.Z_SYNC_FLUSH)


@dataclass(frozen=True, slots=True)
class Piece:
    """A whole file on the disk that has not appeared yet.

    partial: its path until it appears. bytes, records: its size.
    folder: its folder in the folder of the output; empty: the output has no partitions.
    """

    partial: Path
    bytes: int
    records: int
    folder: str = ""


class LogFile(ABC):
    """A file that is written as NAME.partial; its creator renames it when it is whole.

    path: its final path, in the same folder.
    records: number of records in the file.
    room: waits for space in the middle of a write; None: there is no wait.
    """

    def __init__(self, path: Path, room: Room | None = None) -> None:
        self.path = path
        self.records = 0
        with explained("write", path):
            partial = self.partial
            if room is not None and room.waits:
                self._raw: FileIO = PatientFile(partial, room)
            else:
                self._raw = partial.open("xb", buffering=0)
        self._file = BufferedWriter(self._raw, BUFFER_BYTES)

    @property
    def partial(self) -> Path:
        """The path of the unfinished file."""
        return self.path.with_name(self.path.name + PARTIAL)

    @property
    def size(self) -> int:
        """Bytes written so far, without bytes that the compressor delays."""
        return self._file.tell()

    @property
    def on_disk(self) -> int:
        """Bytes of the unfinished file that are on the disk."""
        return self.partial.stat().st_size

    @property
    def files(self) -> int:
        """The number of files so far."""
        return 1

    @property
    def pieces(self) -> Sequence[Piece]:
        """The file itself, after `to_disk` or `cut`."""
        with explained("write", self.path):
            return [Piece(self.partial, self.on_disk, self.records)]

    @abstractmethod
    def _end(self) -> None:
        """Writes the delayed bytes."""

    def flush(self, *, blocks: bool) -> None:  # noqa: B027  (not every format has a whole prefix)
        """See Sink."""

    def to_disk(self) -> int:
        """Ends the file and returns its bytes. Raises OutputError."""
        with explained("write", self.path):
            self._end()
            self._file.flush()
            size = self._file.tell()
            os.fsync(self._file.fileno())
            self._file.close()
        return size

    def cut(self, spare: int) -> int | None:
        """Cuts a file that found no space to whole records, ends it, and returns its bytes.

        spare: bytes to leave free, if the file is that large. Returns None if nothing of the file
        can be kept. Raises OSError if there is no space even for the end of the file.
        """
        del spare
        return None

    @property
    def needs_room(self) -> bool:
        """True if the file takes more space when it ends than it has now."""
        return False

    def _shut(self) -> None:
        """Closes the file without the bytes in its buffer, which might be half a record."""
        with contextlib.suppress(OSError):
            self._raw.close()

    def remove(self) -> None:
        """Closes and removes the unfinished file."""
        self._shut()
        with contextlib.suppress(OSError, ValueError):
            self._file.close()
        with contextlib.suppress(OSError):
            self.partial.unlink()


class TextFile(LogFile):
    """Lines behind a header line, which may be empty."""

    def __init__(self, path: Path, header: bytes, compress: str, room: Room | None = None) -> None:
        self._header, self._compress = header, compress
        self._compressor = compressor(compress)
        self._holds_back = False  # true if the compressor may have delayed bytes
        self._checkpoints = Checkpoints(len(header))
        super().__init__(path, room)
        self._put(header)

    def write(self, lines: bytes | memoryview, count: int) -> None:
        """Appends `count` whole lines. Raises OutputError."""
        self._put(lines)
        self.records += count
        self._checkpoints.add(len(lines), self.records)

    def _put(self, data: bytes | memoryview) -> None:
        with explained("write", self.path):
            self._file.write(self._compressor.compress(data))
        self._holds_back = True

    def flush(self, *, blocks: bool) -> None:
        """See LogFile."""
        with explained("write", self.path):
            if blocks and self._holds_back:
                self._file.write(end_of_block(self._compressor, self._compress))
                self._holds_back = False
            self._file.flush()

    def _end(self) -> None:
        self._file.write(self._compressor.flush())

    @property
    def needs_room(self) -> bool:
        """True if not even the header is on the disk."""
        return self.partial.stat().st_size == 0 and self._header != b""

    def cut(self, spare: int) -> int | None:
        """See LogFile."""
        self._shut()
        with self.partial.open("r+b", buffering=0) as file:
            limit = _content_limit(file, self._compress, spare)
            begin, before = self._checkpoints.before(limit)
            records, whole = self._whole(_contents(file, self._compress, begin), limit - begin)
            self.records, length = before + records, begin + whole
            if limit < len(self._header):
                self.records, length = 0, len(self._header)
                end = compressor(self._compress)
                file.truncate(0)
                _write(file, 0, bytes(end.compress(self._header)) + end.flush())
            elif self._compress == "none":
                file.truncate(length)
            else:
                _compress_again(file, self._compress, length)
            os.fsync(file.fileno())
            return os.fstat(file.fileno()).st_size

    def _whole(self, pieces: Iterable[bytes], limit: int) -> tuple[int, int]:
        """Returns (number, bytes) of the whole records in the first `limit` bytes of a content."""
        lines = length = seen = 0
        for piece in pieces:
            piece = piece[: max(0, limit - seen)]
            lines += piece.count(b"\n")
            length = max(length, seen + piece.rfind(b"\n") + 1) if b"\n" in piece else length
            seen += len(piece)
        return lines, length


class CaptureFile(TextFile):
    """Packets behind the header of their format."""

    def _whole(self, pieces: Iterable[bytes], limit: int) -> tuple[int, int]:
        """See TextFile."""
        is_blocks = self._header.startswith(PCAPNG_MAGIC)
        return whole_packets(pieces, limit, is_blocks=is_blocks)


def _pieces(file: FileIO, kind: str) -> Iterator[tuple[bytes, int]]:
    """Yields the content of a compressed file, which may end anywhere, and the offset read so far.

    The content ends early if the disk lost written bytes: some disks notice late that they are
    full.
    """
    unpack: Callable[[bytes], bytes] = zlib.decompressobj(GZIP).decompress
    damaged: type[Exception] = zlib.error
    if kind == "zstd":
        import zstandard

        unpack = zstandard.ZstdDecompressor().decompressobj().decompress
        damaged = zstandard.ZstdError
    at = 0
    while data := os.pread(file.fileno(), BUFFER_BYTES, at):
        at += len(data)
        try:
            piece = unpack(data)
        except damaged:
            return
        yield piece, at


def _contents(file: FileIO, kind: str, begin: int = 0) -> Iterator[bytes]:
    """Yields the content of a file from an offset on. The content may end anywhere."""
    if kind == "none":
        while data := os.pread(file.fileno(), BUFFER_BYTES, begin):
            begin += len(data)
            yield data
        return
    for piece, _at in _pieces(file, kind):
        yield piece[begin:]
        begin -= min(begin, len(piece))


def _content_limit(file: FileIO, kind: str, spare: int) -> int:
    """Returns the bytes of a file's content that can be kept if `spare` bytes are to be left
    free."""
    if kind == "none":
        return max(0, os.fstat(file.fileno()).st_size - spare)
    there = sum(map(len, _contents(file, kind)))
    return max(0, there - max(spare, ENDING_BYTES))  # the new end may be longer than the old one


def _compress_again(file: FileIO, kind: str, length: int) -> None:
    """Replaces a compressed file by a file of the first `length` bytes of its content.

    There is no space for a second file. The new bytes equal the old bytes up to near their end, and
    no byte is written to a place that has not been read yet.
    """
    new, waiting, written, left = compressor(kind), bytearray(), 0, length
    for piece, read in _pieces(file, kind):
        waiting += new.compress(piece[:left])
        left -= min(left, len(piece))
        safe = min(len(waiting), read - written)
        _write(file, written, bytes(waiting[:safe]))
        written += safe
        del waiting[:safe]
    waiting += new.flush()
    _write(file, written, bytes(waiting))
    file.truncate(written + len(waiting))


def _write(file: FileIO, at: int, data: bytes) -> None:
    """Writes all of the data at a place. Raises OSError."""
    rest = memoryview(data)
    while rest:
        written = os.pwrite(file.fileno(), rest, at)
        at, rest = at + written, rest[written:]
