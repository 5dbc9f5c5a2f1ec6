# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The model beside simulated streams (2022 Appendix C), and where the two must differ."""

import os

import numpy as np

from zanon_net.model import (
    exposure_probs,
    k_anonymity_exact,
    publish_probs,
    sample_iid,
    simulate,
    zipf_rates,
)

SEEDS = 3000 if "ZANON_SOAK" in os.environ else 400
RATES, USERS, WINDOW, Z, K = zipf_rates(20, 0.2), 1000, 12, 150, 2
PY = publish_probs(exposure_probs(RATES, WINDOW), USERS, Z)
MODEL = k_anonymity_exact(PY, USERS, K)


def test_streams_are_a_little_above_the_model() -> None:
    """Users share one trajectory of the counters; the model takes them as independent."""
    shares = simulate(RATES, USERS, WINDOW, Z, K, seeds=SEEDS)
    assert 0 < shares.mean() - MODEL < 0.012
    assert 0.035 <= shares.std() <= 0.055


def test_independent_users_are_the_model() -> None:
    shares = sample_iid(PY, USERS, K, seeds=SEEDS)
    assert abs(shares.mean() - MODEL) < 0.002


def test_two_windows_are_fewer_alike() -> None:
    shares = simulate(RATES, USERS, WINDOW, Z, K, periods=2, seeds=100)
    model = k_anonymity_exact(publish_probs(exposure_probs(RATES, WINDOW), USERS, Z, 2), USERS, K)
    assert abs(shares.mean() - model) < 0.02


def test_a_seed_is_a_stream() -> None:
    first = simulate(RATES, USERS, WINDOW, Z, K, seeds=[5, 6, 5])
    assert first[0] == first[2]
    assert first[0] == simulate(RATES, USERS, WINDOW, Z, K, seeds=6)[5]
    assert np.array_equal(
        sample_iid(PY, USERS, K, seeds=3), sample_iid(PY, USERS, K, seeds=range(3))
    )


def test_with_nothing_released_all_are_alike() -> None:
    assert simulate(RATES, 50, 1, 51, 50, seeds=2).tolist() == [1.0, 1.0]
    assert sample_iid([0.0], 50, 50, seeds=1).tolist() == [1.0]


def test_with_everything_released_nobody_is() -> None:
    assert simulate(np.full(60, 1.0), 50, 1, 1, 2, seeds=2).tolist() == [0.0, 0.0]
