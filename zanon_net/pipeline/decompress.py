# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Compressed captures: unpacked in a thread of their own, into a pipe that the core reads.

The unpacked size is bounded, and so is the memory. Where the packed data is damaged or cut, the
data before that place is used, and the warning names the place.
"""

import bz2
import fcntl
import gzip
import lzma
import os
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import lz4.frame
import zstandard

MAGIC_BYTES = 6
RATIO_MAX = 200
UNBOUNDED_BYTES = 1 << 30
"""Without --max-bytes, a source may unpack to RATIO_MAX times its size, and always to this size."""

STEP_MIN, STEP_MAX = 256, 1 << 17
ZSTD_STEP = 1 << 10  # packed bytes, which can be 32 MiB of one repeated byte
HEADER_BYTES = 64  # reads of so few bytes are for headers, which must come whole
PIPE_BYTES = 1 << 20

_MAGICS = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\0": "xz",
    b"\x04\x22\x4d\x18": "lz4",
    b"BZh": "bzip2",
}
_DAMAGE = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zstandard.ZstdError,
    RuntimeError,  # lz4's
    ValueError,
)


class Raw(Protocol):
    """A source of packed bytes."""

    def read(self, size: int, /) -> bytes:
        """Returns up to `size` bytes; none at the end."""
        ...


def compression_of(start: bytes) -> str | None:
    """The compression of a file that starts with these (at least MAGIC_BYTES) bytes, if any."""
    for magic, name in _MAGICS.items():
        if start.startswith(magic):
            return name
    # Output of pzstd begins with a skippable frame.
    skippable = start[1:4] == b"\x2a\x4d\x18" and 0x50 <= start[0] <= 0x5F
    return "zstd" if skippable else None


class _Counted:
    """Reads `start` and then `raw`, and counts the bytes."""

    def __init__(self, raw: Raw, start: bytes) -> None:
        self._raw = raw
        self._start = start
        self.bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Returns the bytes that are there, up to `size`; of a header, all of them."""
        size = STEP_MAX if size < 0 else size
        data = self._some(size)
        while size <= HEADER_BYTES and len(data) < size and (more := self._some(size - len(data))):
            data += more
        return data

    def _some(self, size: int) -> bytes:
        if self._start:
            data, self._start = self._start[:size], self._start[size:]
        else:
            data = self._raw.read(size) or b""
        self.bytes += len(data)
        return data


class _Zstd:
    """Unpacks zstd frames. The library's own reader takes a cut frame for a whole one."""

    def __init__(self, packed: _Counted) -> None:
        self._packed = packed
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._rest = b""

    def read1(self, _size: int) -> bytes:
        """Unpacked bytes; none at the end."""
        unpacked = b""
        while not unpacked:
            packed = self._rest or self._packed.read(ZSTD_STEP)
            if not packed and self._frame is not None:
                raise EOFError
            if not packed:
                break
            if self._frame is None:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            # Feeds the last four bytes apart: a wrong checksum must not cost the data before it.
            packed, self._rest = packed[:-4] or packed, packed[-4:] if len(packed) > 4 else b""
            unpacked = self._frame.decompress(packed)
            if self._frame.eof:
                self._rest, self._frame = self._frame.unused_data + self._rest, None
        return unpacked


_READERS: dict[str, Callable[[Any], Any]] = {
    "gzip": lambda packed: gzip.GzipFile(fileobj=packed, mode="rb"),
    "bzip2": bz2.BZ2File,
    "xz": lzma.LZMAFile,
    "lz4": lz4.frame.LZ4FrameFile,
    "zstd": _Zstd,
}


class Unpacker:
    """Unpacks a stream, in a thread of its own, into a pipe; `fd` is the pipe's end for reading.

    raw: the packed bytes after `start`; the thread reads and closes it.
    start: the first packed bytes, which identify the compression.
    max_bytes: most bytes to unpack; None: RATIO_MAX times the bytes read, but UNBOUNDED_BYTES at
        least.

    Once `fd` is at its end, `problem` says why it ended early, or `exceeded` that the bound did.
    """

    def __init__(self, raw: Raw, start: bytes, max_bytes: int | None) -> None:
        self.compression = compression_of(start) or ""
        self.problem: str | None = None
        self.exceeded: str | None = None
        self.unpacked_bytes = 0
        self._max_bytes = max_bytes
        self._raw = raw
        self._packed = _Counted(raw, start)
        self.fd, self._out = os.pipe()
        with suppress(OSError, AttributeError):
            fcntl.fcntl(self._out, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._thread = threading.Thread(target=self._run, name="unpacking", daemon=True)
        self._thread.start()

    @property
    def packed_bytes(self) -> int:
        """The number of packed bytes that were read."""
        return self._packed.bytes

    def ends_within(self, most: int) -> bool:
        """Whether it unpacks to no more than `most` bytes. Takes bytes from the pipe to find out,
        so only for a stream that nobody reads any more."""
        while self.unpacked_bytes <= most and os.read(self.fd, most):
            pass
        return self.unpacked_bytes <= most

    def close(self) -> None:
        """Ends the unpacking, wherever it is."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        # A thread that waits for a stream's next bytes ends with the process.
        self._thread.join(timeout=0.2)

    def _run(self) -> None:
        try:
            self._unpack()
        except BrokenPipeError:
            pass  # the reader has closed its end
        except EOFError:
            self.problem = f"the {self.compression} data ends early, {self._place()}"
        except MemoryError:
            self.problem = f"the {self.compression} data needs more memory than there is"
        except _DAMAGE as error:
            self.problem = f"the {self.compression} data is damaged {self._place()}"
            if "too much memory" in str(error):  # a window beyond zstd's usual bound, 128 MiB
                self.problem = (
                    "the zstd data needs a large window: unpack it first (zstd -d --long=31)"
                )
        finally:
            os.close(self._out)
            close = getattr(self._raw, "close", None)
            if close is not None:
                close()

    def _place(self) -> str:
        return f"behind byte {self.unpacked_bytes} of what it unpacks to"

    def _unpack(self) -> None:
        reader = _READERS[self.compression](self._packed)
        # A damaged place costs at most a sixteenth of the data before it.
        while data := reader.read1(min(max(self.unpacked_bytes // 16, STEP_MIN), STEP_MAX)):
            room = self._bound() - self.unpacked_bytes
            self._write(data[:room])
            if room < len(data):
                self.exceeded = (
                    f"the {self.compression} data unpacks to more than {self._bound()} bytes; "
                    "raise --max-bytes if it is meant to"
                )
                return

    def _bound(self) -> int:
        if self._max_bytes is not None:
            return self._max_bytes
        return max(UNBOUNDED_BYTES, RATIO_MAX * self.packed_bytes)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.write(self._out, view)
            self.unpacked_bytes += written
            view = view[written:]
