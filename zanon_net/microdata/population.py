# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Risk of a table that is a sample of a population.

A class of the table has f rows, and F people of the population have its quasi-identifiers. An
attacker who does not know whether a person is in the table (a journalist) is right with probability
1/F (El Emam and Dankar, "Protecting privacy using k-anonymity", JAMIA 15(5), 2008). A table is a
k-map if each class has F >= k (Sweeney 2002).

With the population, F is counted. With only the sampling fraction p, F is estimated.

- The risk of a row is the mean of 1/F, if F given f has a negative binomial distribution with
  success probability p (Benedetti and Franconi 1998; Polettini and Seri 2003 give the formulas).
- The rows that are unique in the population: by Pitman's model for p <= 0.1, else by Zayatz's
  estimate (rule of Dankar et al., BMC Medical Informatics and Decision Making 12:66, 2012). For
  larger p the rule takes the smaller of Zayatz's estimate and of another one, which we leave out,
  so that our figure is not smaller than the rule's.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PITMAN_MAX = 0.1  # largest sampling fraction at which Pitman's model is the best
RECURSION_MAX = 64  # largest f for which the recursion is used
BISECTIONS = 200
ALPHA_MIN = 1e-9


def individual_risk(f: npt.ArrayLike, p: npt.ArrayLike) -> Floats:
    """Returns the mean of 1/F of classes with f rows, if each person is sampled with probability p.

    With q = 1 - p the mean is p I(f), where I(f) is the integral of u^(f-1) / (p + q u) over 0 <= u
    <= 1. I(1) = -log(p)/q and I(f + 1) = (1/f - p I(f))/q. I(f) is also the sum over j >= 0 of q^j
    B(f, j + 1), with the beta function B.

    f: int64[n], at least 1. p: float64[n] or one number, above 0 and at most 1; with survey
    weights, f over the sum of the class's weights.

    Source: Polettini and Seri, "Guidelines for the protection of social micro-data using individual
    risk methodology" (CASC 1.2-D3, 2003), of Benedetti and Franconi (1998).
    """
    rows, chance = np.broadcast_arrays(np.asarray(f, np.int64), np.asarray(p, np.float64))
    pairs, place = np.unique(np.stack([rows, chance], axis=-1), axis=0, return_inverse=True)
    found = np.array([_risk_of(int(of), float(with_p)) for of, with_p in pairs], np.float64)
    return found[place.reshape(rows.shape)]


def _risk_of(f: int, p: float) -> float:
    q = 1 - p
    if q <= 0:
        return 1 / f
    if p <= 0.5 and f <= RECURSION_MAX:  # errors shrink by p/q in each step
        integral = -math.log(p) / q
        for of in range(1, f):
            integral = (1 / of - p * integral) / q
        return p * integral
    term, total, j = 1 / f, 0.0, 0
    while term > total * 1e-17:
        total += term
        j += 1
        term *= q * j / (f + j)
    return p * total


def zayatz(f: Ints, p: float) -> float:
    """Returns the share of the rows alone in their class that are unique in the population.

    The share is s1 P(1|1) / sum over j of s_j P(1|j). s_j is the number of classes of j rows, and
    P(1|j) the probability that a sample of n of N people has one person of a class of j people, by
    the hypergeometric distribution.

    f: int64[n], rows of each class, one of which has 1. p: sampling fraction.

    Source: Zayatz, "Estimation of the number of unique population elements using a sample" (US
    Bureau of the Census, 1991).
    """
    sizes, count = np.unique(f, return_counts=True)
    n = int(f.sum())
    people = max(n, round(n / p))
    chances = np.array([_one_of(int(size), n, people) for size in sizes])
    return float(count[0] * chances[0] / (count @ chances))


def _one_of(size: int, n: int, people: int) -> float:
    """Returns the probability that n of `people` people have one of `size` of them."""
    others = people - size
    if others < n - 1:
        return 0.0
    log = _log_choose(others, n - 1) - _log_choose(people, n)
    return size * math.exp(log)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def pitman(f: Ints) -> tuple[float, float]:
    """Returns the most likely (theta, alpha) of Pitman's sampling formula.

    The log-likelihood of u classes and n rows is the sum of log(theta + i alpha) for 0 < i < u,
    less the sum of log(theta + i) for 0 < i < n, plus the sum of log(i - alpha) for 0 < i < f of
    each class. For each alpha the derivative by theta has one root. alpha is bisected between.

    f: int64[n], rows of each class, not all 1.

    Source: Hoshino, "Applying Pitman's sampling formula to microdata disclosure risk assessment"
    (Journal of Official Statistics 17(4), 2001).
    """
    sizes, count = np.unique(f, return_counts=True)
    classes, rows = len(f), int(f.sum())

    def theta_of(alpha: float) -> float:
        low, high = math.log(1e-12), math.log(1e15)  # of theta + alpha
        for _step in range(BISECTIONS):
            middle = (low + high) / 2
            theta = math.exp(middle) - alpha
            rise = _harmonic(theta, alpha, classes) - _harmonic(theta, 1.0, rows)
            low, high = (middle, high) if rise > 0 else (low, middle)
        return math.exp((low + high) / 2) - alpha

    low, high = ALPHA_MIN, 1 - ALPHA_MIN
    for _step in range(BISECTIONS // 2):
        alpha = (low + high) / 2
        theta = theta_of(alpha)
        joining = (classes - 1 - theta * _harmonic(theta, alpha, classes)) / alpha
        inside = np.array([_digamma(size - alpha) for size in sizes]) - _digamma(1 - alpha)
        low, high = (alpha, high) if joining > count @ inside else (low, alpha)
    alpha = (low + high) / 2
    return theta_of(alpha), alpha


def _harmonic(theta: float, alpha: float, n: int) -> float:
    """Returns the sum of 1/(theta + i alpha) for 0 < i < n."""
    return (_digamma(theta / alpha + n) - _digamma(theta / alpha + 1)) / alpha


def _digamma(x: float) -> float:
    """Returns the derivative of log gamma at x > 0 (Abramowitz and Stegun 6.3.5 and 6.3.18)."""
    shifted = 0.0
    while x < 12:
        shifted -= 1 / x
        x += 1
    square = 1 / (x * x)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))
    return shifted + math.log(x) - 0.5 / x - series


def pitman_uniques(theta: float, alpha: float, people: int) -> float:
    """Returns the mean number of unique people: N (theta + alpha)_(N-1) / (theta + 1)_(N-1), with
    rising factorials. For large N it is Gamma(theta + 1) / Gamma(theta + alpha) N^alpha."""
    log = math.lgamma(theta + alpha + people - 1) - math.lgamma(theta + people)
    return people * math.exp(log + math.lgamma(theta + 1) - math.lgamma(theta + alpha))


def unique_rows(f: Ints, p: float) -> tuple[float, str]:
    """Returns (the estimated rows that are unique in the population, the estimate's name).

    f: int64[n], rows of each class. p: sampling fraction, above 0 and at most 1.
    """
    alone, rows = int((f == 1).sum()), int(f.sum())
    if alone in (0, rows) or p == 1:
        return float(alone), "sample"
    if p > PITMAN_MAX:
        return alone * zayatz(f, p), "zayatz"
    people = max(rows, round(rows / p))
    return min(float(alone), pitman_uniques(*pitman(f), people) * p), "pitman"


def counted(f: Ints, people: Ints, population: int) -> dict[str, Any]:
    """Returns the facts on a table and its population.

    f, people: int64[n], the rows of each class, and the people of the population that its
    quasi-identifiers fit. population: all people. A class with more rows than people counts its
    rows: they are people, too.
    """
    known, rows = np.maximum(f, people), int(f.sum())
    return {
        "population": population,
        "k_map": int(known.min()),
        "max": float(1 / known.min()),
        "mean": float((f / known).sum() / rows),
        "unique_rows": float(((f == 1) & (known == 1)).sum()),
        "model": "population",
        "rows_beyond": int(np.maximum(f - people, 0).sum()),
    }


def estimated(f: Ints, p: float) -> dict[str, Any]:
    """Returns the estimated facts on a table that is a sample; members as of `counted`.

    f: int64[n], rows of each class. p: sampling fraction.
    """
    rows, risk = int(f.sum()), individual_risk(f, p)
    uniques, model = unique_rows(f, p)
    return {
        "population": round(rows / p),
        "k_map": float(f.min() / p),
        "max": float(risk.max()),
        "mean": float((f * risk).sum() / rows),
        "unique_rows": uniques,
        "model": model,
        "rows_beyond": 0,
    }
