# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Unpacked bytes of files of gzip and zstd."""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from zanon_net.errors import FormatError

GZIP, ZSTD = ".gz", ".zst"


@contextmanager
def unpacked(path: Path, packing: Callable[[BinaryIO], str]) -> Iterator[BinaryIO]:
    """Opens a file for its unpacked bytes. Raises FormatError if it cannot be read.

    packing: returns GZIP, ZSTD or another text, for a file that is not packed.
    """
    try:
        with path.open("rb") as file:
            kind = packing(file)
            if kind == GZIP:
                yield cast(BinaryIO, gzip.GzipFile(fileobj=file))
            elif kind == ZSTD:
                reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
                yield cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, reader)))
            else:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError):
        raise FormatError(f"{path}: its compressed data is cut or damaged") from None
    except OSError as error:
        problem = error.strerror or "input or output error"
        raise FormatError(f"{path} cannot be read: {problem}") from None
