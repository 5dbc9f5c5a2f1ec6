# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Eq. 5, over all 2^A sets of attributes: the oracle for all faster methods."""

import numpy as np
from numpy.typing import ArrayLike

from zanon_net.errors import ConfigError
from zanon_net.model import checks
from zanon_net.model.binomial import tail
from zanon_net.model.special import Floats

ATTRIBUTES_MAX = 22


def k_anonymity_exact(py: ArrayLike, users: int, k: int) -> float:
    """Returns p_k-anon = Σ_y p_y P[Bin(U-1, p_y) >= k-1] by enumeration (Eq. 5), good to about
    1e-13.

    py: p^Y, shape (A,), at most 22 of them neither 0 nor 1. Raises ConfigError.
    """
    p = checks.probabilities("py", py)
    n, m = checks.count("users", users) - 1, checks.count("k", k) - 1
    if m == 0 or m > n:
        return float(m == 0)
    sets = realizations(undecided(p)[:, np.newaxis])[:, 0]
    return min(float(np.sum(sets * tail(n, m, sets))), 1.0)


def undecided(py: Floats) -> Floats:
    """Returns the rows of py, of shape (A,) or (A, C), that are not 0 for all classes or 1 for all.

    Raises ConfigError when there are too many to enumerate.
    """
    classes = tuple(range(1, py.ndim))
    open_rows: Floats = py[~((py == 0).all(axis=classes) | (py == 1).all(axis=classes))]
    if len(open_rows) > ATTRIBUTES_MAX:
        raise ConfigError(
            f"py: {len(open_rows)} attributes make too many sets to enumerate; at most "
            f"{ATTRIBUTES_MAX}"
        )
    return open_rows


def realizations(py: Floats) -> Floats:
    """Returns p_y of all 2^A sets y in each class (Eq. 4): shape (2^A, C) for py of shape (A,
    C)."""
    sets = np.ones((1, py.shape[1]))
    for p in py:
        sets = np.concatenate([sets * (1 - p), sets * p])
    return np.asarray(sets)
