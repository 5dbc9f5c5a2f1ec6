# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""First lines and ends of text files, compressed or not."""

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from zanon_net.errors import FormatError

LINE_MAX = 1 << 20
STEP = 1 << 20


def first_line(path: Path, count: int = 1) -> bytes:
    """Returns the first lines of a file, without the last newline.

    Raises FormatError if the file cannot be read.
    """
    with opened(path) as stream:
        lines = [stream.readline(LINE_MAX) for _ in range(count)]
    return b"".join(lines).removesuffix(b"\n")


def refuse_cut(path: Path) -> None:
    """Raises FormatError if a file does not end with a newline, or if its compressed data is
    cut."""
    with opened(path) as stream:
        if path.suffix not in (".gz", ".zst"):
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - 1))
        last = b"\n"
        while data := stream.read(STEP):
            last = data[-1:]
    if last != b"\n":
        raise FormatError(f"{path}: it ends in the middle of a line; is it whole?")


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Opens a file to read its unpacked bytes. Raises FormatError if it cannot be read."""
    try:
        with path.open("rb") as file:
            if path.suffix == ".gz":
                yield cast(BinaryIO, gzip.GzipFile(fileobj=file))
            elif path.suffix == ".zst":
                reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
                yield cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, reader)))
            else:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError):
        raise FormatError(f"{path}: its compressed data is cut or damaged") from None
    except OSError as error:
        problem = error.strerror or "input or output error"
        raise FormatError(f"{path}: cannot be read: {problem}") from None
