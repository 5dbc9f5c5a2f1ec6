# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The model: bounds next to enumeration, and other parts next to the least that they compute.

An enumeration takes 2^A sets, which is possible up to A = 22. Above that the limit is
publish_probs, because the bounds begin with it.
"""

from collections.abc import Callable

import numpy as np
import pytest
from measuring import Measure, Size, peer

from zanon_net.model import (
    exposure_probs,
    fit,
    k_anonymity,
    k_anonymity_classes,
    k_anonymity_exact,
    publish_probs,
    simulate,
    smallest_z,
    zipf_rates,
)
from zanon_net.popularity import Popularity, PopularityWindow

K = 2
STREAMS = 50
USERS = 1000
BOUNDS = {  # attributes, rate of the first one, window, users
    "A = 20": (20, 0.2, 12.0, USERS),
    "A = 27,482": (27_482, 0.4, 1.0, 9670),
    "A = 10^6": (10**6, 0.4, 1.0, 10**6),
}

Call = Callable[[], object]


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("who", ["k_anonymity", peer("limit")])
def test_bounds(name: str, who: str, measure: Measure) -> None:
    """Bounds of a width of 1e-6."""
    attributes, first, window, users = BOUNDS[name]
    px = exposure_probs(zipf_rates(attributes, first), window)
    py = publish_probs(px, users, users // 10)
    group = f"model: bounds, {name}"
    if who == "k_anonymity":
        found = measure(group, lambda: k_anonymity(py, users, K, width=1e-6), 1)
        assert found.width <= 1e-6
    elif attributes == 20:
        measure(group, lambda: k_anonymity_exact(py, users, K), 1, who="enumeration")
    else:
        measure(group, lambda: publish_probs(px, users, users // 10), 1, who="publish_probs")


@pytest.mark.parametrize("who", ["k_anonymity_classes", peer("enumeration")])
def test_classes(who: str, measure: Measure) -> None:
    """Two classes of 500 users, 16 attributes."""
    px = [exposure_probs(zipf_rates(16, first), 12) for first in (0.2, 0.1)]
    pair = np.stack(px, axis=1)
    method = "grid" if who == "k_anonymity_classes" else "exact"
    call = lambda: k_anonymity_classes(pair, [500, 500], K, method=method)  # noqa: E731
    measure("model: two classes", call, 1)


@pytest.mark.parametrize("who", ["smallest_z", peer("enumeration")])
def test_smallest_z(who: str, measure: Measure) -> None:
    """The peer enumerates for the z that is found and for the z below it."""
    px = exposure_probs(zipf_rates(20, 0.2), 12)
    z = smallest_z(px, USERS, K, target=0.9)

    def enumerated() -> list[float]:
        return [k_anonymity_exact(publish_probs(px, USERS, at), USERS, K) for at in (z - 1, z)]

    below, reached = enumerated()
    assert below < 0.9 <= reached
    ours = lambda: smallest_z(px, USERS, K, target=0.9)  # noqa: E731
    measure("model: smallest z", ours if who == "smallest_z" else enumerated, 1)


def popularity(users: int, attributes: int) -> Popularity:
    """Returns the counts of six windows of independent users."""
    rng, px = np.random.default_rng(0), exposure_probs(zipf_rates(attributes, 0.4), 1)
    windows = []
    for number in range(6):
        counts = rng.binomial(users, px)
        bins = np.bincount(np.frexp(counts[counts > 0].astype(float))[1] - 1)
        active = int(rng.binomial(users, -np.expm1(np.log1p(-px).sum())))
        windows.append(PopularityWindow(number, True, active, tuple(bins.tolist())))
    return Popularity.of(1, 1, windows)


@pytest.mark.parametrize("who", ["fit", peer("drawing such windows")])
def test_fit(who: str, measure: Measure) -> None:
    seen = popularity(9670, 27_482)
    calls: dict[str, Call] = {
        "fit": lambda: fit(seen),
        "drawing such windows": lambda: popularity(9670, 27_482),
    }
    measure("model: fit of six windows", calls[who], 1)


@pytest.mark.parametrize("who", ["simulate", peer("drawing the exposures")])
def test_simulation(who: str, size: Size, measure: Measure) -> None:
    streams = size.of(STREAMS)
    rates = zipf_rates(20, 0.2)
    rng = np.random.default_rng(0)

    def draw() -> None:
        for _ in range(streams):
            for n in rng.poisson(rates * 12 * USERS * 2):
                np.sort(rng.random(n))
                rng.integers(0, USERS, n)

    calls: dict[str, Call] = {
        "simulate": lambda: simulate(rates, USERS, 12, 150, K, seeds=streams),
        "drawing the exposures": draw,
    }
    measure("model: simulated streams", calls[who], streams)
