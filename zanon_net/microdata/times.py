# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Times of Arrow columns, read as `zanon-net publish` reads them (csrc/util/timestamp.h)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from zanon_net._core import parse_time, time_problem
from zanon_net.config.filter_rows import TIME_UNITS
from zanon_net.config.parse import UNITS_NS
from zanon_net.errors import ConfigError, FormatError
from zanon_net.microdata.arrow import arrow, encoded, texts

__all__ = ["TIME_UNITS", "times_of"]

_LATEST = 2**63 - 1


def times_of(column: Any, name: str, unit: str, table: str = "the batch") -> npt.NDArray[np.int64]:
    """Returns a column of times in ns since 1970.

    column: of `as_table`, without nulls: timestamps, or whole numbers and texts in `unit`. table:
        its name in errors.

    Raises FormatError for a value that is no time from 1970 to 2262, ConfigError for numbers of an
    unknown unit.
    """
    types, kind = arrow().types, column.type
    if types.is_timestamp(kind):
        counted, step = column.cast(arrow().int64()), UNITS_NS[kind.unit]
    elif types.is_integer(kind):
        if unit == "iso":
            raise ConfigError(f"time_unit: column {name!r} has plain numbers; give their unit")
        counted, step = column, UNITS_NS[unit]
    else:
        codes, words = encoded(column)
        listed = [text.encode() for text in texts(words).to_pylist()]
        read = [parse_time(text, unit) for text in listed]
        if None in read:
            problem = time_problem(listed[read.index(None)], unit)
            raise FormatError(f"{table}: column {name!r} has {problem}")
        of_word = np.array([found[0] for found in read if found is not None], np.int64)
        return np.ascontiguousarray(of_word[codes.to_numpy()]) if len(codes) else of_word[:0]
    numbers = counted.to_numpy()
    if len(numbers) and not (int(numbers.min()) >= 0 and int(numbers.max()) <= _LATEST // step):
        raise FormatError(f"{table}: column {name!r} has a time that is not from 1970 to 2262")
    return np.ascontiguousarray(numbers.astype(np.int64) * step)
