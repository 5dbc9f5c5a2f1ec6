# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The approximation of the 2020 paper, kept to reproduce its figures."""

import numpy as np
from numpy.typing import ArrayLike

from zanon_net.model import checks
from zanon_net.model.binomial import tail


def k_anonymity_pairwise(py: ArrayLike, users: int, k: int) -> float:
    """Returns P[Bin(U-1, p^Q) >= k-1] with p^Q = Π_a (p_a^2 + (1-p_a)^2) (2020 section IV-D).

    Legacy, and biased: it is g(E[p_y]) in place of E[g(p_y)]. For k = 2, where g is concave, it is
    always too optimistic: at the 2020 Table II it gives 0.869 where 0.126 is right. Use
    k_anonymity.

    py: p^Y, shape (A,). users, k: U and k. Raises ConfigError.
    """
    p = checks.probabilities("py", py)
    n, m = checks.count("users", users) - 1, checks.count("k", k) - 1
    matching = float(np.exp(np.sum(np.log1p(-2 * p * (1 - p)))))
    return float(tail(n, m, matching))
