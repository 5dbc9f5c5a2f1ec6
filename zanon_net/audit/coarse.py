# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The rule for coarse records, as the documents state it: numbers up to a power of a base."""

from math import isqrt

import numpy as np
import numpy.typing as npt

MINUTE_US = 60_000_000
Ints = npt.NDArray[np.int64]


def steps(base: str) -> Ints:
    """Returns the values that a coarse number may have: powers of the base, rounded up."""
    if base == "sqrt2":
        exact = [isqrt((1 << power) - 1) + 1 for power in range(1, 125)]
        return np.array(sorted({1, *exact}), dtype=np.int64)
    bits = int(base).bit_length() - 1
    return np.array([1 << bits * power for power in range(62 // bits)], dtype=np.int64)


def coarse(values: Ints, base: str) -> Ints:
    """Returns the smallest step that is at least each number; 0 stays 0."""
    listed = steps(base)
    at = np.minimum(np.searchsorted(listed, values), len(listed) - 1)
    return np.where(values > 0, listed[at], 0)


def coarse_sql(column: str, base: str) -> str:
    """Returns `coarse` as an expression of SQL, for numbers below 2^48."""
    if base != "sqrt2":
        bits = int(base).bit_length() - 1
        power = f"ceil(log2({column}) / {bits})::INTEGER"
        return f"CASE WHEN {column} > 0 THEN 1::BIGINT << ({bits} * {power}) ELSE 0 END"
    power = f"floor(2 * log2({column}))"
    low, high = (f"ceil(pow(2, ({power} + {more}) / 2))::BIGINT" for more in (0, 1))
    return (
        f"CASE WHEN {column} > 0 THEN CASE WHEN {low} >= {column} THEN {low} ELSE {high} END"
        " ELSE 0 END"
    )
