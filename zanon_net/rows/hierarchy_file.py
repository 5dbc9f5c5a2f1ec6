# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the files of hierarchies."""

import os
from pathlib import Path

from zanon_net._core import Taxonomy
from zanon_net.errors import ZanonError

FILE_MAX = 1 << 26  # bytes, as ZN_HIERARCHY_BYTES_MAX


def read_taxonomy(
    path: str | os.PathLike[str], delimiter: str = ";"
) -> tuple[Taxonomy, tuple[str, ...]]:
    """Reads the hierarchy in a file of ARX's form; returns it and a line for each of its oddities.

    delimiter: an ASCII character, or the word tab.

    Raises FormatError with the line for a file that is no hierarchy, CapacityError for a file that
    is too large, ZanonError for a file that cannot be read.
    """
    name = Path(path).name
    byte = ord("\t" if delimiter == "tab" else delimiter)
    try:
        with Path(path).open("rb") as file:
            data = file.read(FILE_MAX + 4)  # a byte more than allowed, after a byte order mark
    except OSError as error:
        raise ZanonError(f"{path} cannot be read: {error.strerror}") from error
    try:
        taxonomy = Taxonomy.read(data, byte)
    except ZanonError as error:
        raise type(error)(f"{name}: {error}") from None
    count, line = taxonomy.only_children
    if not count:
        return taxonomy, ()
    more = f", as {count - 1:,} more" if count > 1 else ""
    return taxonomy, (f"{name}: line {line}: a node with one child{more}",)
