# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Unpacks a compressed source in a thread of its own, into a pipe that the core or Python reads.

Memory is bounded, and so is the unpacked size of captures. If the packed data is damaged or cut,
the data before that place is unpacked, and the problem names the place.
"""

import fcntl
import io
import os
import sys
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol

from zanon_net.errors import FormatError

MAGIC_BYTES = 13  # the header of a .lzma file, which has no magic number
RATIO_MAX = 200
UNBOUNDED_BYTES = 1 << 30
"""Unpacked size that is always allowed without --max-bytes. A larger source may unpack to RATIO_MAX
times its size."""

NO_BOUND = sys.maxsize

STEP_MIN, STEP_MAX = 256, 1 << 17
PACKED_STEP = 1 << 13  # packed bytes that a decoder gets at a time
ZSTD_STEP = 1 << 10  # packed bytes, which can be 32 MiB of one repeated byte
PIPE_BYTES = 1 << 20

_LZ4_LEGACY = b"\x02\x21\x4c\x18"
_LEGACY_BLOCK = 8 << 20  # bytes that a block of lz4's legacy format unpacks to, at most
_LEGACY_PACKED = _LEGACY_BLOCK + _LEGACY_BLOCK // 255 + 16  # the size of a packed block, at most

_SKIPPABLE = "zstd or lz4"  # until a frame follows that is not skippable
_BZIP2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")  # beginning of a first block, and of an end

_MAGICS = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\0": "xz",
    b"\x04\x22\x4d\x18": "lz4",
    _LZ4_LEGACY: "lz4",
    **{b"BZh%d%b" % (level, block): "bzip2" for level in range(1, 10) for block in _BZIP2_BLOCKS},
    **{bytes((first, 0x2A, 0x4D, 0x18)): _SKIPPABLE for first in range(0x50, 0x60)},
}
_LIBRARIES_OF = {
    "gzip": ("zlib",),
    "bzip2": ("bz2",),
    "xz": ("lzma",),
    "lzma": ("lzma",),
    "lz4": ("lz4.block", "lz4.frame"),
    "zstd": ("zstandard",),
    _SKIPPABLE: ("lz4.block", "lz4.frame", "zstandard"),
}
"""Modules that unpack each compression. An unpacker imports the modules of its compression."""
LIBRARIES = sorted({name for names in _LIBRARIES_OF.values() for name in names})
"""All of these modules."""
_ERRORS = {
    "zlib": "error",
    "lzma": "LZMAError",
    "zstandard": "ZstdError",
    "lz4.block": "LZ4BlockError",
}
"""Error of a module for damaged data, if the module has an error of its own."""


class Raw(Protocol):
    """A source of packed bytes."""

    def read(self, size: int, /) -> bytes:
        """Returns up to `size` bytes; none at the end."""
        ...


def compression_of(start: bytes) -> str | None:
    """Returns the compression of a file that starts with `start` (at least MAGIC_BYTES), or
    None."""
    for magic, name in _MAGICS.items():
        if start.startswith(magic):
            return name
    return "lzma" if _is_lzma_alone(start) else None


def may_be_compressed(start: bytes) -> bool:
    """Returns true if the next bytes of a stream decide about its compression.

    A stream of text cannot wait for MAGIC_BYTES. No text begins like a .lzma file.
    """
    return any(magic.startswith(start) for magic in _MAGICS)


def _is_lzma_alone(start: bytes) -> bool:
    """Returns true if xz takes `start` for the header of a .lzma file: valid properties, a
    dictionary of 2^n or 2^n + 2^(n-1) bytes, and an unknown size or less than 256 GiB."""
    if len(start) < MAGIC_BYTES or start[0] >= 9 * 5 * 5 or start[0] % 9 + start[0] // 9 % 5 > 4:
        return False
    dictionary = int.from_bytes(start[1:5], "little")
    size = int.from_bytes(start[5:13], "little")
    lowest = dictionary & -dictionary
    known = dictionary in (lowest, 3 * lowest, 0xFFFFFFFF) and dictionary > 0
    return known and (size < 1 << 38 or size == (1 << 64) - 1)


class _Counted:
    """Reads `start` and then `raw`, and counts the bytes."""

    def __init__(self, raw: Raw, start: bytes) -> None:
        self._raw = raw
        self._start = start
        self.bytes = 0

    def read(self, size: int) -> bytes:
        """Returns the bytes that are there, up to `size`; none at the end."""
        if self._start:
            data, self._start = self._start[:size], self._start[size:]
        else:
            data = self._raw.read(size) or b""
        self.bytes += len(data)
        return data


class _Decoder(Protocol):
    """Decoder of one stream or frame, as Python's bz2 and lzma modules have it."""

    @property
    def eof(self) -> bool:
        """True when the stream or frame has ended."""
        ...

    @property
    def needs_input(self) -> bool:
        """True if only further packed bytes give further unpacked bytes."""
        ...

    @property
    def unused_data(self) -> bytes:
        """The packed bytes after the end."""
        ...

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Returns the next unpacked bytes."""
        ...


class _GzipMember:
    """Decoder of a gzip member. The library's own reader waits for further packed bytes before it
    returns unpacked bytes."""

    def __init__(self) -> None:
        import zlib

        self._member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        self._rest = b""
        self.eof = False
        self.unused_data = b""

    @property
    def needs_input(self) -> bool:
        return not self._rest

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Unpacks at most `max_length` bytes; the packed bytes after them wait."""
        packed = self._rest + data
        # Feeds the last eight bytes apart: a wrong checksum must not cost the data before it.
        size = max(len(packed) - 8, 8)
        unpacked = self._member.decompress(packed[:size], max_length)
        self._rest = self._member.unconsumed_tail + packed[size:]
        if self._member.eof:
            self.eof, self.unused_data = True, self._member.unused_data + packed[size:]
        return unpacked


class _ZstdFrame:
    """Decoder of a zstd frame. The library's own reader takes a cut frame for a whole frame."""

    def __init__(self) -> None:
        import zstandard

        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._rest = b""
        self.eof = False
        self.unused_data = b""

    @property
    def needs_input(self) -> bool:
        return not self._rest

    def decompress(self, data: bytes, _max_length: int) -> bytes:
        """Unpacks at most ZSTD_STEP bytes; the bytes after them wait for the next call."""
        packed = self._rest + data
        # Feeds the last four bytes apart: a wrong checksum must not cost the data before it.
        size = min(ZSTD_STEP, max(len(packed) - 4, 4))
        unpacked = self._frame.decompress(packed[:size])
        self._rest = packed[size:]
        if self._frame.eof:
            self.eof, self.unused_data = True, self._frame.unused_data + self._rest
        return unpacked


class _Lz4Legacy:
    """Decoder of a frame in lz4's legacy format (`lz4 -l`): a magic number and blocks, each after
    its size. The frame ends with the file, or if a size is a magic number."""

    def __init__(self) -> None:
        self._packed = bytearray()
        self._begun = False
        self.eof = False
        self.unused_data = b""

    @property
    def may_end(self) -> bool:
        """True if the file may end here."""
        return self._begun and not self._packed

    @property
    def needs_input(self) -> bool:
        return len(self._packed) < 4 or len(self._packed) < 4 + self._size()

    def decompress(self, data: bytes, _max_length: int) -> bytes:
        """Unpacks the next block if it is complete."""
        self._packed += data
        if not self._begun:
            del self._packed[: len(_LZ4_LEGACY)]
            self._begun = True
        if len(self._packed) < 4:
            return b""
        size = self._size()
        if size > _LEGACY_PACKED:
            self.eof, self.unused_data = True, bytes(self._packed)
            return b""
        if len(self._packed) < 4 + size:
            return b""
        import lz4.block

        block = bytes(self._packed[4 : 4 + size])
        del self._packed[: 4 + size]
        unpacked: bytes = lz4.block.decompress(block, uncompressed_size=_LEGACY_BLOCK)
        return unpacked

    def _size(self) -> int:
        return int.from_bytes(self._packed[:4], "little")


def _decoder_of(compression: str) -> Any:
    """Returns a decoder for one stream or frame."""
    match compression:
        case "gzip":
            return _GzipMember()
        case "bzip2":
            import bz2

            return bz2.BZ2Decompressor()
        case "xz" | "lzma":
            import lzma

            form = lzma.FORMAT_XZ if compression == "xz" else lzma.FORMAT_ALONE
            return lzma.LZMADecompressor(form)
        case "lz4":
            import lz4.frame

            return lz4.frame.LZ4FrameDecompressor()
        case "zstd":
            return _ZstdFrame()
    raise ValueError("skippable frames alone")


def _damage() -> tuple[type[BaseException], ...]:
    """Returns the errors that mean damaged data, of the modules that are imported."""
    own = (
        getattr(sys.modules[module], name)
        for module, name in _ERRORS.items()
        if module in sys.modules
    )
    return (OSError, EOFError, RuntimeError, ValueError, *own)  # RuntimeError: of lz4's frames


class _Members:
    """Unpacks streams or frames of one compression that follow each other.

    The formats allow zeros after gzip, padding of xz, and skippable frames of zstd and lz4 between
    them. Raises EOFError for a cut stream and ValueError for other bytes after a stream.
    """

    def __init__(self, packed: _Counted) -> None:
        self._packed = packed
        self._decoder: _Decoder | None = None
        self._ahead = b""  # packed bytes that no decoder has
        self.compression: str | None = None

    def read1(self, size: int) -> bytes:
        """Returns about `size` unpacked bytes; none at the end."""
        unpacked = b""
        while not unpacked:
            if self._decoder is None and not self._begin():
                break
            decoder = self._decoder
            assert decoder is not None
            packed = b""
            if decoder.needs_input:
                packed, self._ahead = self._ahead or self._packed.read(PACKED_STEP), b""
                if not packed:
                    if getattr(decoder, "may_end", False):
                        break
                    raise EOFError
            unpacked = decoder.decompress(packed, size)
            if decoder.eof:
                self._ahead, self._decoder = decoder.unused_data or b"", None
        return unpacked

    def _begin(self) -> bool:
        """Makes the decoder of the next stream; returns false at the end of the file."""
        self._skip()
        self._look(MAGIC_BYTES)
        if not self._ahead:
            return False
        found = compression_of(self._ahead)
        if found is None or self.compression not in (None, found):
            raise ValueError("other bytes after a stream")
        self.compression = found
        legacy = self._ahead.startswith(_LZ4_LEGACY)
        self._decoder = _Lz4Legacy() if legacy else _decoder_of(found)
        return True

    def _skip(self) -> None:
        """Skips zeros after gzip, padding of xz, or skippable frames of zstd and lz4."""
        while self.compression == "gzip" and self._look(1) and self._ahead[0] == 0:
            self._ahead = self._ahead.lstrip(b"\0")
        if self.compression == "xz":
            while self._look(4) and self._ahead[:4] == bytes(4):
                zeros = len(self._ahead) - len(self._ahead.lstrip(b"\0"))
                self._ahead = self._ahead[zeros & ~3 :]
        while self.compression in (None, "zstd", "lz4") and self._look(8):
            # A frame that zstd and lz4 skip. Output of pzstd begins with such a frame.
            if compression_of(self._ahead) != _SKIPPABLE:
                break
            self._take(8 + int.from_bytes(self._ahead[4:8], "little"))

    def _look(self, size: int) -> bool:
        """Reads ahead until `size` bytes are there; returns false if the file has fewer."""
        while len(self._ahead) < size and (more := self._packed.read(PACKED_STEP)):
            self._ahead += more
        return len(self._ahead) >= size

    def _take(self, size: int) -> None:
        """Skips `size` bytes."""
        while size > len(self._ahead):
            size -= len(self._ahead)
            self._ahead = self._packed.read(PACKED_STEP)
            if not self._ahead:
                raise EOFError
        self._ahead = self._ahead[size:]


class Unpacker:
    """Unpacks a stream, in a thread of its own, into a pipe; `fd` is the pipe's end for reading.

    raw: the packed bytes after `start`; the thread reads and closes it.
    start: the first packed bytes, which identify the compression.
    max_bytes: most bytes to unpack; None: RATIO_MAX times the bytes read, and at least
        UNBOUNDED_BYTES. A reader whose memory does not grow with its input takes NO_BOUND.

    At the end of `fd`, `problem` says why it ended early, or `exceeded` that the bound was reached.
    """

    def __init__(self, raw: Raw, start: bytes, max_bytes: int | None) -> None:
        self.compression = compression_of(start) or ""
        for module in _LIBRARIES_OF.get(self.compression, ()):  # here: the thread may lack rights
            import_module(module)
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
        """Returns true if the stream unpacks to no more than `most` bytes.

        The check takes bytes from the pipe, so only for a stream that is not read any more.
        """
        while self.unpacked_bytes <= most and os.read(self.fd, most):
            pass
        return self.unpacked_bytes <= most

    def close(self) -> None:
        """Ends the unpacking at any place."""
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
        except _damage() as error:
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
        return f"after byte {self.unpacked_bytes} of the unpacked data"

    def _unpack(self) -> None:
        members = _Members(self._packed)
        # A damaged place costs at most a sixteenth of the data before it.
        while data := members.read1(min(max(self.unpacked_bytes // 16, STEP_MIN), STEP_MAX)):
            self.compression = members.compression or self.compression
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


def unpacked(data: bytes, name: str) -> bytes:
    """Returns all unpacked bytes of a file's bytes, which may be compressed.

    name: the name of the file, for messages.

    Raises FormatError if the data is damaged or cut.
    """
    raw = io.BytesIO(data)
    start = raw.read(MAGIC_BYTES)
    if compression_of(start) is None:
        return data
    unpacker = Unpacker(raw, start, NO_BOUND)
    try:
        with os.fdopen(unpacker.fd, "rb", closefd=False) as pipe:
            content = pipe.read()
    finally:
        unpacker.close()
    if unpacker.problem is not None:
        raise FormatError(f"{name}: {unpacker.problem}")
    return content
