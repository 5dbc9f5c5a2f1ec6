# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Certified bounds against enumeration, in thousands of random cases with every corner."""

import os

import numpy as np
import pytest
from scipy.special import gammaln

from zanon_net.model import k_anonymity, k_anonymity_classes, k_anonymity_exact, publish_probs
from zanon_net.model.binomial import tail
from zanon_net.model.plane import Pair, k_anonymity_of_pair

SINGLE_CASES = 2500
PAIR_CASES = GRID_CASES = 2500 if "ZANON_SOAK" in os.environ else 500
ORACLE_ERROR = 1e-12


def random_chances(rng: np.random.Generator, attributes: int) -> np.ndarray:
    kind = rng.integers(7)
    if kind == 0:
        return rng.random(attributes)
    if kind == 1:
        return 10 ** rng.uniform(-9, 0, attributes)
    if kind == 2:
        return 1 - 10 ** rng.uniform(-9, 0, attributes)
    if kind == 3:
        return rng.choice([0, 0.5, 1, 0.3], attributes)
    if kind == 4:
        return np.full(attributes, rng.random())
    if kind == 5:
        return rng.choice([0, 5e-324, 1e-300, 0.5, 1, 1e-4, 1 - 1e-4, 1 - 2**-53, 0.2], attributes)
    return rng.choice(rng.random(2), attributes)


def random_k(rng: np.random.Generator, users: int, most: int) -> int:
    few = 1 + int(10 ** rng.uniform(0, 2))
    choices = [1, 2, 3, 4, users // 2, users - 1, users, users + 1, few, int(users * rng.random())]
    return min(max(int(rng.choice(choices)), 1), max(most, 1))


@pytest.mark.family(1)
@pytest.mark.parametrize("part", range(5))
def test_single_class(part: int) -> None:
    rng = np.random.default_rng([1, part])
    for _ in range(SINGLE_CASES // 5):
        py = random_chances(rng, int(rng.integers(1, 14)))
        users = int(10 ** rng.uniform(0, 6))
        if rng.random() < 0.3:
            py = publish_probs(py, users, int(rng.choice([1, 2, users, users + 1])))
        k = random_k(rng, users, 2**31)
        width = float(rng.choice([1e-3, 1e-6]))
        bounds, exact = k_anonymity(py, users, k, width=width), k_anonymity_exact(py, users, k)
        case = (py.tolist(), users, k, width, bounds, exact)
        assert bounds.lower <= exact + ORACLE_ERROR, case
        assert exact - ORACLE_ERROR <= bounds.upper, case
        assert bounds.lower <= bounds.estimate <= bounds.upper, case
        assert bounds.width <= width, case


def random_pair(rng: np.random.Generator) -> tuple[np.ndarray, list[int], int]:
    """py of shape (A, 2), users and k."""
    attributes = int(rng.integers(1, 8))
    py = np.stack([random_chances(rng, attributes) for _ in range(2)], axis=1)
    users = [int(10 ** rng.uniform(0, 5)) for _ in range(2)]
    return py, users, random_k(rng, sum(users), 40)


@pytest.mark.family(1)
@pytest.mark.parametrize("part", range(5))
def test_two_classes(part: int) -> None:
    rng = np.random.default_rng([2, part])
    for _ in range(PAIR_CASES // 5):
        py, users, k = random_pair(rng)
        found = k_anonymity_classes(py, users, k)
        exact = k_anonymity_classes(py, users, k, method="exact")
        for bounds, value in zip(found, exact, strict=True):
            case = (py.tolist(), users, k, bounds, value)
            assert bounds.lower <= value.estimate + ORACLE_ERROR, case
            assert value.estimate - ORACLE_ERROR <= bounds.upper, case
            assert bounds.width <= 1e-3, case


@pytest.mark.family(1)
@pytest.mark.parametrize("part", range(5))
def test_the_grid_of_two_classes(part: int) -> None:
    """Which k_anonymity_classes takes for more attributes than these."""
    rng = np.random.default_rng([3, part])
    for _ in range(GRID_CASES // 5):
        py, users, k = random_pair(rng)
        if not 1 < k <= sum(users):
            continue
        width = 1e-2 if rng.random() < 0.1 else 1e-1
        exact = k_anonymity_classes(py, users, k, method="exact")
        for own, value in enumerate(exact):
            pair = Pair(py[:, own], py[:, 1 - own], users[own] - 1, users[1 - own], k - 1)
            bounds = k_anonymity_of_pair(pair, width)
            case = (py.tolist(), users, k, own, width, bounds, value)
            assert bounds.lower <= value.estimate + ORACLE_ERROR, case
            assert value.estimate - ORACLE_ERROR <= bounds.upper, case
            assert bounds.width <= width, case


def by_multiplicity(chances: list[float], counts: list[int], users: int, k: int) -> float:
    """p_k-anon when counts[i] attributes have chances[i] each: a sum over how many of each kind
    are in the set."""
    value = np.zeros(1)
    weight = np.zeros(1)
    for p, count in zip(chances, counts, strict=True):
        have = np.arange(count + 1)
        log = np.log(p) * have + np.log1p(-p) * (count - have)
        ways = gammaln(count + 1) - gammaln(have + 1) - gammaln(count - have + 1)
        value = np.add.outer(value, log).ravel()
        weight = np.add.outer(weight, log + ways).ravel()
    return float(np.sum(np.exp(weight) * tail(users - 1, k - 1, np.exp(value))))


def test_thousands_of_attributes() -> None:
    """Too many to enumerate, but of few kinds."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        kinds = int(rng.integers(1, 4))
        counts = [int(10 ** rng.uniform(0, 3.5 / kinds)) for _ in range(kinds)]
        chances = [
            float(
                rng.choice([rng.random(), 10 ** rng.uniform(-9, 0), 1 - 10 ** rng.uniform(-9, 0)])
            )
            for _ in range(kinds)
        ]
        users = int(10 ** rng.uniform(0.4, 6))
        k = min(max(random_k(rng, users, users), 2), users)
        py = rng.permutation(np.repeat(chances, counts))
        bounds, value = k_anonymity(py, users, k), by_multiplicity(chances, counts, users, k)
        case = (chances, counts, users, k, bounds, value)
        assert bounds.lower <= value + 1e-9, case
        assert value - 1e-9 <= bounds.upper, case
        assert bounds.width <= 1e-6, case
