# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""First lines and ends of text files, compressed or not."""

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from zanon_net.audit.raw.packed_files import GZIP, ZSTD, unpacked
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
        if path.suffix not in (GZIP, ZSTD):
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - 1))
        last = b"\n"
        while data := stream.read(STEP):
            last = data[-1:]
    if last != b"\n":
        raise FormatError(f"{path}: it ends in the middle of a line; is it whole?")


def opened(path: Path) -> AbstractContextManager[BinaryIO]:
    """Opens a file to read its unpacked bytes; its suffix gives the packing. Raises FormatError if
    it cannot be read."""
    return unpacked(path, lambda _file: path.suffix)
