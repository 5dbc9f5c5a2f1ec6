# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Values of a column as texts: a number as Arrow writes it, None for a missing value.

An empty text is a missing value, as in CSV.
"""

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from zanon_net.microdata.arrow import arrow, encoded, texts

Codes = npt.NDArray[np.int32]


def _is_arrow(values: Any) -> bool:
    pa = sys.modules.get("pyarrow")
    return pa is not None and isinstance(values, pa.Array | pa.ChunkedArray)


def dictionary_of(values: Any) -> tuple[Codes, list[str]]:
    """Returns (indices, texts): each value's index in the distinct texts, -1 for a missing
    value."""
    if _is_arrow(values):
        return _arrow_dictionary(values)
    found: dict[str | None, int] = {None: -1, "": -1}
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    written = [text_of(value) for value in listed]
    for text in written:
        found.setdefault(text, len(found) - 2)
    indices = np.fromiter((found[text] for text in written), np.int32, len(written))
    return indices, [text for text in found if text]


def _arrow_dictionary(values: Any) -> tuple[Codes, list[str]]:
    pa = arrow()
    column = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    codes, words = encoded(column)
    indices = codes.combine_chunks().fill_null(-1).to_numpy(zero_copy_only=False)
    indices = indices.astype(np.int32, copy=False)
    listed = texts(words).to_pylist()
    empty = [i for i, word in enumerate(listed) if not word]
    if empty:
        indices = np.where(np.isin(indices, empty), np.int32(-1), indices)
    return indices, [word or "" for word in listed]


def text_of(value: Any) -> str | None:
    """Returns a value of Python as Arrow writes it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def distinct_texts(values: Any) -> tuple[list[str], bool]:
    """Returns (the distinct texts that occur, sorted by their bytes; true if values are
    missing)."""
    indices, words = dictionary_of(values)
    occurring = np.unique(indices)
    found = sorted((words[i] for i in occurring if i >= 0), key=bytes_of)
    return found, bool(len(occurring) and occurring[0] < 0)


def bytes_of(text: str) -> bytes:
    """Returns a text as UTF-8."""
    return text.encode()
