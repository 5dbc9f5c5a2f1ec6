# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The probability that enough others are alike, given the probability of one; and its curvature.

The others are of one class, or of several classes (`tail_of_sum`).

For n others, of whom m are needed, g(p) = P[Bin(n, p) >= m]. Seen over L = log p it is G(L) =
g(e^L), with G' = m b and G'' = m b (m - np)/(1 - p), b = P[Bin(n, p) = m].
"""

import numpy as np
from numpy.typing import ArrayLike

from zanon_net.model.special import Floats, betainc, gammaln, xlog1py, xlogy

BISECTIONS = 80
CELLS = 1 << 21  # most numbers of an array in memory at once
SAFETY = 1 + 1e-9  # factor on the extremes of curvature, for rounding


def tail(n: int, m: int, p: ArrayLike) -> Floats:
    """Returns g(p) = P[Bin(n, p) >= m] (Eq. 3), of p's shape, with a small relative error even near
    0.

    The regularised incomplete beta function I_p(m, n - m + 1): 1 - cdf would be 0 below 1e-16.
    """
    chance = np.asarray(p, dtype=np.float64)
    if m <= 0:
        return np.ones_like(chance)
    if m > n:
        return np.zeros_like(chance)
    if m == 1:
        return -np.expm1(xlog1py(n, -chance))
    return betainc(m, n - m + 1, chance)


def pmf(n: int, m: ArrayLike, p: ArrayLike) -> Floats:
    """Returns P[Bin(n, p) = m], relative error about 1e-14; m and p are broadcast, m is from 0 to
    n.

    Loader's form (2000): the deviance of m from np, and the error of Stirling's formula. Logarithms
    of factorials would cancel: for n = 10^6 they leave 10 digits.
    """
    some, chance = np.broadcast_arrays(
        np.asarray(m, dtype=np.float64), np.asarray(p, dtype=np.float64)
    )
    rest = n - some
    at_end = (some == 0) | (rest == 0)
    inner = np.where(at_end, 1.0, some), np.where(at_end, 1.0, rest)
    log = _stirling_lack(np.array(float(max(n, 1))))
    log = log - _stirling_lack(inner[0]) - _stirling_lack(inner[1])
    log = log - _deviance(inner[0], n * chance) - _deviance(inner[1], n * (1 - chance))
    log = log + 0.5 * np.log(n / (2 * np.pi * inner[0] * inner[1]) if n > 0 else 1.0)
    ends = np.where(some == 0, xlog1py(n, -chance), xlogy(n, chance))
    return np.exp(np.where(at_end, ends, log))


def _stirling_lack(n: Floats) -> Floats:
    """Returns log n! - log(sqrt(2 pi n) (n/e)^n) for n >= 1."""
    small = np.minimum(n, 15.0)
    exact = gammaln(small + 1) - (small + 0.5) * np.log(small) + small - 0.5 * np.log(2 * np.pi)
    s = n * n
    tail_terms = 1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / s) / s) / s) / s
    return np.where(n <= 15, exact, tail_terms / n)


def _deviance(x: Floats, mean: Floats) -> Floats:
    """Returns x log(x / mean) + mean - x for x > 0, without cancellation where the two are
    close."""
    with np.errstate(divide="ignore", over="ignore"):  # a mean of 0, or close to it
        far = x * np.log(x / mean) + mean - x
    v = (x - mean) / (x + mean)
    near = 2 * x * v * _atanh_rest(v) + (x - mean) * v
    return np.where(np.abs(v) < 0.1, near, far)


def _atanh_rest(v: Floats) -> Floats:
    """Returns (atanh(v) - v) / v for |v| < 0.1: v^2/3 + v^4/5 + ..."""
    square = v * v
    total = np.zeros_like(v)
    for odd in (15, 13, 11, 9, 7, 5, 3):
        total = (total + 1 / odd) * square
    return total


def slope_max(n: int, m: int) -> float:
    """Returns the largest G'; 0 where G is constant."""
    return float(m * pmf(n, m, m / n)) * SAFETY if 1 <= m <= n else 0.0


def curvature(n: int, m: ArrayLike, log_p: ArrayLike) -> Floats:
    """Returns G''(L) for 1 <= m <= n, L <= 0; m and L are broadcast."""
    need, p = np.asarray(m, dtype=np.float64), np.exp(np.asarray(log_p, dtype=np.float64))
    # b / (1 - p) is a binomial chance again, of n - 1: it is finite at p = 1.
    inner = pmf(n - 1, np.minimum(need, n - 1), p) * n / np.maximum(n - need, 1)
    return np.where(need == n, n * n * p**n, need * inner * (need - n * p))


def curvature_range(n: int, m: ArrayLike, log_max: float) -> tuple[float, float]:
    """Returns (inf, sup) of G'' over L <= log_max, over all of m: a lower bound <= 0 and an upper
    >= 0.

    G'' vanishes as L -> -inf, and is stationary where (m - np)^2 = (n - m)p.
    """
    need = np.atleast_1d(np.asarray(m, dtype=np.float64))
    need = need[(need >= 1) & (need <= n)]
    if need.size == 0:
        return 0.0, 0.0
    middle = 2 * need * n + n - need
    root = np.sqrt((n - need) * (4 * need * n + n - need))
    low = 2 * need**2 / (middle + root)
    high = np.minimum((middle + root) / (2.0 * n * n), 1.0)
    ends = np.minimum(np.log(np.stack([low, high, np.ones_like(low)])), log_max)
    values = curvature(n, need, ends) * SAFETY
    return min(float(values.min()), 0.0), max(float(values.max()), 0.0)


def log_p_reaching(n: int, m: int, value: float) -> float:
    """Returns an L with G(L) <= value and about equal, for 1 <= m <= n and 0 < value < 1."""
    low, high = -2000.0, 0.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if float(tail(n, m, np.exp(middle))) <= value:
            low = middle
        else:
            high = middle
    return low


def tail_of_sum(n: tuple[int, ...], m: int, p: Floats) -> Floats:
    """Returns P[Σ_c Bin(n_c, p_c) >= m] for each row of p, shape (R, C); terms are positive
    throughout.

    The result has shape (R,). About R (C-2) m^2 + R m steps.
    """
    if m <= 0:
        return np.ones(len(p))
    rows = max(CELLS // (m + 1), 1)
    parts = [_tail_of_sum(n, m, p[at : at + rows]) for at in range(0, len(p), rows)]
    return np.concatenate(parts) if parts else np.zeros(0)


def _tail_of_sum(n: tuple[int, ...], m: int, p: Floats) -> Floats:
    """Adds one class after the other to the sum; column t - 1 is P[sum >= t], t = 1 to m."""
    total = np.zeros((len(p), m))
    for i, (size, chance) in enumerate(zip(n, p.T, strict=True)):
        last = i == len(n) - 1
        counts = min(size, m - 1)
        weights = pmf(size, np.arange(counts + 1)[np.newaxis, :], chance[:, np.newaxis])
        grown = np.zeros_like(total)
        for t in range(m if last else 1, m + 1):
            grown[:, t - 1] = tail(size, t, chance)
            if i > 0:
                below = min(t, counts + 1)
                parts = weights[:, :below] * total[:, t - below : t][:, ::-1]
                grown[:, t - 1] += parts.sum(axis=1)
        total = grown
    return np.minimum(total[:, -1], 1.0)
