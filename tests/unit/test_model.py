# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The model: values computed elsewhere, and what no value may be."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import model as oracle_model

from zanon_net.model import (
    entropy,
    exposure_probs,
    information_loss,
    k_anonymity,
    k_anonymity_classes,
    k_anonymity_exact,
    k_anonymity_pairwise,
    publish_probs,
    publish_probs_classes,
    smallest_z,
    z_by_window,
    zipf_rates,
)

USERS, WINDOW, K = 1000, 12, 2
RATES = zipf_rates(20, 0.2)  # 2022, Table 2
PX = exposure_probs(RATES, WINDOW)
CHANCE = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))

# 2020, Table II: U, A, λ_1, Δt, N, z
PY_2020 = publish_probs(exposure_probs(zipf_rates(5000, 0.05), 1), 50_000, 20, periods=24)


@pytest.mark.parametrize(
    ("z", "value"),
    [
        (1, 0.171315200),
        (100, 0.173973715),
        (150, 0.424691623),
        (200, 0.765316678),
        (250, 0.930808151),
        (300, 0.979005350),
        (350, 0.991965423),
        (400, 0.997066023),
    ],
)
def test_defaults_of_2022(z: int, value: float) -> None:
    py = publish_probs(PX, USERS, z)
    assert k_anonymity_exact(py, USERS, K) == pytest.approx(value, abs=1e-9)
    bounds = k_anonymity(py, USERS, K)
    assert bounds.lower <= value + 1e-9
    assert value - 1e-9 <= bounds.upper
    assert bounds.width <= 1e-6
    assert bounds.estimate == pytest.approx(value, abs=1e-7)


@pytest.mark.parametrize(("k", "value"), [(3, 0.24855), (4, 0.16304)])
def test_larger_k(k: int, value: float) -> None:
    assert k_anonymity(publish_probs(PX, USERS, 150), USERS, k).estimate == pytest.approx(
        value, abs=1e-5
    )


def test_a_thousand_attributes() -> None:
    py = publish_probs(exposure_probs(zipf_rates(1000, 0.2), WINDOW), USERS, 50)
    assert k_anonymity(py, USERS, K).estimate == pytest.approx(0.0054938, abs=1e-6)


@pytest.mark.parametrize(("k", "value"), [(2, 0.125652), (3, 0.08537), (4, 0.06851)])
def test_table_ii_of_2020(k: int, value: float) -> None:
    assert k_anonymity(PY_2020, 50_000, k).estimate == pytest.approx(value, abs=1e-5)


def test_the_formula_of_2020_is_far_above() -> None:
    assert k_anonymity_pairwise(PY_2020, 50_000, 2) == pytest.approx(0.86921, abs=1e-5)
    px = exposure_probs(zipf_rates(5000, 0.05), 1)
    py = publish_probs(px, 22_000, 9, periods=24)
    assert k_anonymity_pairwise(py, 22_000, 2) == pytest.approx(0.52111, abs=1e-5)


def test_entropy_and_loss() -> None:
    py = publish_probs(PX, USERS, 150)
    assert entropy(py) == pytest.approx(8.045191291572616, abs=1e-12)
    assert entropy(py, base=2) == pytest.approx(8.045191291572616 / math.log(2), abs=1e-12)
    assert information_loss(PX, py) == pytest.approx(entropy(PX) - 8.045191291572616, abs=1e-12)


def test_entropy_is_that_of_all_sets() -> None:
    p = [0.0, 1.0, 0.5, 0.2, 0.9, 1e-9]
    sets = [1.0]
    for chance in p:
        sets = [one * part for one in sets for part in (chance, 1 - chance)]
    assert entropy(p) == pytest.approx(-sum(one * math.log(one) for one in sets if one), abs=1e-12)


@pytest.mark.parametrize(("target", "z"), [(0.8, 208), (0.9, 236), (0.99, 325), (0.999, 425)])
def test_smallest_z(target: float, z: int) -> None:
    assert smallest_z(PX, USERS, K, target=target) == z


def test_first_and_stable() -> None:
    assert smallest_z(PX, USERS, K, target=0.999, mode="stable") == 496
    crowd = [0.99] * 20
    assert smallest_z(crowd, 200, K, target=0.9) == 1
    assert smallest_z(crowd, 200, K, target=0.9, mode="stable") == 201


def test_z_by_window() -> None:
    windows = [1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 36, 48]
    known = [1, 28, 75, 121, 163, 201, 236, 294, 346, 392, 498, 572]
    assert z_by_window(RATES, windows, USERS, K, target=0.9) == known


@given(
    st.lists(CHANCE, min_size=1, max_size=6),
    st.integers(2, 24),
    st.integers(1, 3),
    st.floats(0.05, 0.999),
    st.integers(1, 4),
)
def test_smallest_z_is_what_trying_each_finds(
    px: list[float], users: int, k: int, target: float, periods: int
) -> None:
    k = min(k, users)
    values = [
        k_anonymity_exact(publish_probs(px, users, z, periods), users, k)
        for z in range(1, users + 2)
    ]
    if any(abs(value - target) < 1e-7 for value in values):
        return
    reached = [value >= target for value in values]
    first = smallest_z(px, users, k, target=target, periods=periods)
    stable = smallest_z(px, users, k, target=target, periods=periods, mode="stable")
    assert first == 1 + reached.index(True)
    assert stable == 1 + max((z for z, one in enumerate(reached, 1) if not one), default=0)


# ---- classes ------------------------------------------------------------------------------------


def test_classes_that_are_the_same_are_one() -> None:
    single = publish_probs(PX, USERS, 150)
    both = publish_probs_classes(np.stack([PX, PX], axis=1), [300, 700], 150)
    assert both == pytest.approx(np.stack([single, single], axis=1), abs=1e-12)
    value = k_anonymity_exact(single, USERS, K)
    for bounds in k_anonymity_classes(both, [300, 700], K, method="exact"):
        assert bounds.estimate == pytest.approx(value, abs=1e-12)
    for bounds in k_anonymity_classes(both, [300, 700], K):
        assert bounds == k_anonymity(single, USERS, K)


def test_interests_that_do_not_differ_halve_the_rates() -> None:
    """2022 section 6.2 at η = 0.5: both classes have half the rates."""
    px = exposure_probs(0.5 * RATES, WINDOW)
    py = publish_probs_classes(np.stack([px, px], axis=1), [500, 500], 50)
    for bounds in k_anonymity_classes(py, [500, 500], K):
        assert bounds.estimate == pytest.approx(0.494342, abs=1e-6)


def test_methods_agree() -> None:
    px = np.stack([exposure_probs(zipf_rates(20, first), WINDOW) for first in (0.3, 0.1)], axis=1)
    py = publish_probs_classes(px, [500, 500], 50)
    exact = k_anonymity_classes(py, [500, 500], K, method="exact")
    grid = k_anonymity_classes(py, [500, 500], K)
    sampled = k_anonymity_classes(py, [500, 500], K, method="mc", width=4e-3)
    for one, certified, interval in zip(exact, grid, sampled, strict=True):
        assert certified.lower <= one.estimate <= certified.upper
        assert certified.width <= 1e-3
        assert interval.lower <= one.estimate <= interval.upper
        assert interval.width <= 4e-3


def test_three_classes() -> None:
    py = [[0.5, 0.2, 1.0], [0.1, 0.0, 0.7], [0.9, 0.3, 0.3]]
    users = [3, 1, 4]
    for own in range(3):
        value = float(oracle_model.k_anonymity(py, users, 3, own))
        exact = k_anonymity_classes(py, users, 3, method="exact")[own]
        sampled = k_anonymity_classes(py, users, 3, width=0.02)[own]
        assert exact.estimate == pytest.approx(value, abs=1e-12)
        assert sampled.lower <= value <= sampled.upper


def test_a_name_that_only_the_other_class_has() -> None:
    """p = (1, 0): everyone is alike within a class, and nobody across."""
    found = k_anonymity_classes([[1.0, 0.0]], [1, 5], 2)
    assert found[0].upper < 1e-3
    assert found[1].lower > 1 - 1e-3
    exact = k_anonymity_classes([[1.0, 0.0]], [1, 5], 2, method="exact")
    assert [bounds.estimate for bounds in exact] == [0, 1]


def test_publishing_by_classes_is_by_the_letter() -> None:
    """P[B1 + B2 >= z - 1], the own user left out of the own class."""
    px, users, z = [0.3, 0.8], [3, 4], 4
    found = publish_probs_classes([px], users, z)[0]
    for own in range(2):
        sizes = [n - (c == own) for c, n in enumerate(users)]
        total = sum(
            math.comb(sizes[0], i) * px[0] ** i * (1 - px[0]) ** (sizes[0] - i)
            * math.comb(sizes[1], j) * px[1] ** j * (1 - px[1]) ** (sizes[1] - j)
            for i in range(sizes[0] + 1)
            for j in range(sizes[1] + 1)
            if i + j >= z - 1
        )  # fmt: skip
        assert found[own] == pytest.approx(px[own] * total, rel=1e-12)


# ---- against exact fractions --------------------------------------------------------------------


@given(st.lists(CHANCE, max_size=4), st.integers(1, 9), st.integers(1, 10))
def test_enumeration_is_the_paper(py: list[float], users: int, k: int) -> None:
    value = float(oracle_model.k_anonymity(py, [users], k))
    assert k_anonymity_exact(py, users, k) == pytest.approx(value, abs=1e-13)


@given(CHANCE, st.integers(1, 30), st.integers(1, 32))
def test_publishing_is_the_paper(px: float, users: int, z: int) -> None:
    value = float(oracle_model.publish_prob(px, users, z))
    assert publish_probs([px], users, z)[0] == pytest.approx(value, rel=1e-11, abs=1e-300)


@given(st.floats(0, 1), st.integers(1, 50))
def test_periods(py: float, periods: int) -> None:
    found = publish_probs([py], 1, 1, periods)[0]
    assert found == pytest.approx(1 - (1 - py) ** periods, abs=1e-12)


def test_tiny_chances_are_not_nothing() -> None:
    """1 - cdf would be 0."""
    assert publish_probs([1e-3], 1000, 40)[0] == pytest.approx(1e-3 * 2.2466e-47, rel=1e-3)


# ---- corners ------------------------------------------------------------------------------------


def test_corners() -> None:
    py = publish_probs(PX, USERS, 150)
    assert k_anonymity(py, USERS, 1) == (1, 1, 1)
    assert k_anonymity(py, USERS, USERS + 1) == (0, 0, 0)
    assert not publish_probs(PX, USERS, USERS + 1).any()
    assert k_anonymity(publish_probs(PX, USERS, USERS + 1), USERS, USERS) == (1, 1, 1)
    assert k_anonymity(np.ones(30), USERS, USERS).estimate == 1
    assert k_anonymity(np.zeros(0), USERS, 2).estimate == 1
    assert publish_probs(PX, USERS, 1) == pytest.approx(PX)


def test_order_does_not_matter() -> None:
    py = publish_probs(exposure_probs(zipf_rates(300, 0.2), WINDOW), USERS, 60)
    turned = k_anonymity(py[::-1], USERS, 2)
    assert k_anonymity(py, USERS, 2).estimate == pytest.approx(turned.estimate, abs=1e-9)
    assert smallest_z(PX[::-1], USERS, K, target=0.9) == 236


def test_width_is_met() -> None:
    for attributes, users in ((1000, 10**3), (27_482, 9670), (10**5, 10**6)):
        px = exposure_probs(zipf_rates(attributes, 0.4), 1)
        for z in (1, 20, 300):
            for width in (1e-3, 1e-6, 1e-8):
                bounds = k_anonymity(publish_probs(px, users, z), users, 2, width=width)
                assert 0 <= bounds.lower <= bounds.estimate <= bounds.upper <= 1
                assert bounds.width <= width


def test_wide_bounds_hold_and_narrow_ones_lie_within() -> None:
    px = exposure_probs(zipf_rates(3000, 0.4), 1)
    py = publish_probs(px, 5000, 30)
    for k in (2, 5, 50, 2500, 5000):
        narrow = k_anonymity(py, 5000, k, width=1e-8)
        wide = k_anonymity(py, 5000, k, width=1e-2)
        assert wide.lower <= narrow.upper
        assert narrow.lower <= wide.upper
        assert wide.width <= 1e-2


def test_where_the_grid_would_be_too_fine_the_bounds_say_so() -> None:
    py = np.full(30, 1e-9)
    bounds = k_anonymity(py, 2**31, 2**30, width=1e-12)
    assert bounds.lower <= bounds.estimate <= bounds.upper
