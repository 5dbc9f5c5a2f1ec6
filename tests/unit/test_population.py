# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Risk of a sample: published examples, definitions, and populations whose uniques are known."""

import math
import random
from collections import Counter

import numpy as np
import pytest
from support.examples import each

from zanon_net.microdata.population import (
    counted,
    estimated,
    individual_risk,
    pitman,
    pitman_uniques,
    unique_rows,
    zayatz,
)

# The example of Capobianchi, Polettini and Lucarelli, which sdcMicro's manual repeats (francdat).
WEIGHTS = [18, 45.5, 39, 17, 541, 8, 5, 92]
CLASSES = [0, 1, 1, 2, 3, 4, 5, 0]
PUBLISHED = {
    "fk": [2, 2, 2, 1, 1, 1, 1, 2],
    "Fk": [110, 84.5, 84.5, 17, 541, 8, 5, 110],
    "risk": [
        *(0.01714426, 0.02204233, 0.02204233, 0.17707583),
        *(0.01165448, 0.29706308, 0.40238324, 0.01714426),
    ],
}


def test_the_example_of_sdcmicro() -> None:
    rows = np.bincount(CLASSES)[CLASSES]
    people = np.bincount(CLASSES, WEIGHTS)[CLASSES]
    assert rows.tolist() == PUBLISHED["fk"]
    assert people.tolist() == PUBLISHED["Fk"]
    # sdcMicro approximates the risk at f = 1, p = 0.2, which is log(5) / 4 = 0.40235948.
    assert individual_risk(rows, rows / people) == pytest.approx(PUBLISHED["risk"], abs=3e-5)
    assert individual_risk([1], 0.2)[0] == pytest.approx(math.log(5) / 4)


@each("f", [1, 2, 3, 10, 63, 64, 65, 300])
@each("p", [0.01, 0.2, 0.5, 0.51, 0.9, 1.0])
def test_individual_risk_is_the_mean_of_the_distribution(f: int, p: float) -> None:
    """The sum of 1/F over the negative binomial distribution."""
    total, people, log = 0.0, f, f * math.log(p)
    while people < f / p * 4 + 3000:
        total += math.exp(log) / people
        if p == 1:
            break
        log += math.log(people / (people + 1 - f) * (1 - p))
        people += 1
    assert individual_risk([f], p)[0] == pytest.approx(total, rel=1e-6)


def log_likelihood(sizes: list[int], theta: float, alpha: float) -> float:
    total = sum(math.log(theta + i * alpha) for i in range(1, len(sizes)))
    total -= sum(math.log(theta + i) for i in range(1, sum(sizes)))
    return total + sum(math.log(i - alpha) for size in sizes for i in range(1, size))


def sample_of_pitman(theta: float, alpha: float, rows: int, seed: int) -> list[int]:
    """Class sizes of Pitman's process: a new class with (theta + u alpha)/(theta + n)."""
    generator = random.Random(seed)
    sizes: list[int] = []
    of_row: list[int] = []
    for n in range(rows):
        if generator.random() * (theta + n) < theta + len(sizes) * alpha:
            of_row.append(len(sizes))
            sizes.append(1)
            continue
        while True:  # an old class with probability (size - alpha)
            chosen = of_row[generator.randrange(n)]
            if generator.random() * sizes[chosen] < sizes[chosen] - alpha:
                break
        of_row.append(chosen)
        sizes[chosen] += 1
    return sizes


@pytest.mark.parametrize(("theta", "alpha"), [(20.0, 0.3), (100.0, 0.6), (5.0, 0.8)])
def test_pitman_is_the_most_likely(theta: float, alpha: float) -> None:
    sizes = sample_of_pitman(theta, alpha, 1500, 7)
    found = pitman(np.array(sizes))
    best = log_likelihood(sizes, *found)
    for other in (0.98, 1.02):
        assert log_likelihood(sizes, found[0] * other, found[1]) < best
        assert log_likelihood(sizes, found[0], found[1] * other) < best
    assert found[1] == pytest.approx(alpha, abs=0.15)


def test_uniques_of_pitman() -> None:
    assert pitman_uniques(20.0, 0.3, 1) == pytest.approx(1)
    large = 10**9
    assert pitman_uniques(20.0, 0.3, large) == pytest.approx(
        math.gamma(21) / math.gamma(20.3) * large**0.3, rel=1e-4
    )
    means = [sample_of_pitman(20.0, 0.3, 400, seed).count(1) for seed in range(200)]
    assert pitman_uniques(20.0, 0.3, 400) == pytest.approx(np.mean(means), rel=0.05)


def test_zayatz_by_its_definition() -> None:
    sizes = np.array([1, 1, 1, 2, 2, 5])
    rows, people = 12, 48

    def one(size: int) -> float:
        found = size * math.comb(people - size, rows - 1)
        return found / math.comb(people, rows)

    expected = 3 * one(1) / (3 * one(1) + 2 * one(2) + one(5))
    assert zayatz(sizes, 0.25) == pytest.approx(expected)


@pytest.mark.parametrize("p", [0.05, 0.1, 0.3, 0.6])
def test_estimates_are_near_the_truth(p: float) -> None:
    """A sample of a population of which all is known."""
    generator = random.Random(3)
    population = sample_of_pitman(300.0, 0.4, 20_000, 5)
    people = [number for number, size in enumerate(population) for _person in range(size)]
    sample = Counter(generator.sample(people, int(p * len(people))))
    sizes = np.array(list(sample.values()))
    truth = sum(1 for number, rows in sample.items() if rows == population[number] == 1)
    found, model = unique_rows(sizes, p)
    assert model == ("pitman" if p <= 0.1 else "zayatz")
    assert truth / 2 < found < truth * 2 + 20
    of_rows = sum(rows / population[number] for number, rows in sample.items())
    mean = of_rows / sizes.sum()
    assert mean / 3 < estimated(sizes, p)["mean"] < mean * 3


def test_edges() -> None:
    assert unique_rows(np.array([2, 3]), 0.1) == (0.0, "sample")
    assert unique_rows(np.array([1, 1]), 0.1) == (2.0, "sample")
    assert unique_rows(np.array([1, 4]), 1.0) == (1.0, "sample")
    whole = estimated(np.array([1, 4]), 1.0)
    assert (whole["max"], whole["k_map"], whole["population"]) == (1.0, 1.0, 5)
    found = counted(np.array([1, 4, 1]), np.array([1, 10, 0]), 60)
    assert (found["k_map"], found["unique_rows"], found["rows_beyond"]) == (1, 2.0, 1)
    assert found["mean"] == pytest.approx((1 + 4 / 10 + 1) / 6)
