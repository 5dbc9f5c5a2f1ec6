# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of attacks that `audit` and the attack suite share: behaviour, and naive Bayes."""

from typing import Any

import numpy as np
import numpy.typing as npt

from zanon_net.errors import MissingExtraError

try:
    from scipy import sparse
except ImportError:
    raise MissingExtraError(
        "the audit needs DuckDB and SciPy; install them with: pip install 'zanon-net[audit]'"
    ) from None

SIZE_WEIGHT, HOUR_WEIGHT = 0.3, 0.5  # of a size and of an hour, relative to a name
SIZE_BINS, HOURS = 64, 24
SMOOTH = 0.5

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Matrix = Any
"""A sparse matrix of SciPy, in rows."""


def counted(row: Ints, column: Ints, shape: tuple[int, int], times: Any = None) -> Matrix:
    """Returns 1 + log(times) of each feature, times the logarithm of its rarity.

    times: number of times of each entry; None means once.
    """
    values = np.ones(len(row), dtype=np.float32) if times is None else times
    matrix = sparse.csr_matrix((values, (row, column)), shape=shape, dtype=np.float32)
    matrix.sum_duplicates()
    users = np.maximum(matrix.getnnz(axis=0), 1)
    matrix.data = (1 + np.log(matrix.data)) * np.log((1 + shape[0]) / users[matrix.indices])
    return matrix


def unit_rows(matrix: Matrix) -> Matrix:
    """Returns the rows, each of length one."""
    length = np.sqrt(matrix.multiply(matrix).sum(axis=1)).A1
    return sparse.diags(1 / np.maximum(length, 1e-9)) @ matrix


def stacked(parts: list[Matrix]) -> Matrix:
    """Returns the columns of matrices next to each other."""
    return sparse.hstack(parts, format="csr")


def likelihood(known: Ints, names: Ints, asked: Ints, count: int) -> Floats:
    """Returns log P(value | name) of each value requested (rows), for each name."""
    values, place = np.unique(asked, return_inverse=True)
    at = np.minimum(np.searchsorted(values, known), max(0, len(values) - 1))
    is_asked = values[at] == known
    table = np.zeros((len(values), count), dtype=np.float32)
    np.add.at(table, (at[is_asked], names[is_asked]), 1)
    usual = (table.sum(axis=1, keepdims=True) + 0.1) / (len(known) + 1)
    often = np.bincount(names, minlength=count).astype(np.float32)
    worth: Floats = np.log((table + SMOOTH * usual) / (often + SMOOTH)).astype(np.float32)
    return worth[place]
