# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the time that the model takes, and the width of its bounds.

Usage: python bench/model.py

Process time of the slowest of several z from 1 to U, best of three runs each; the enumeration of
2^A sets is timed at A = 20 and named in multiples of that elsewhere.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

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

CASES = [
    (20, 0.2, 12.0, (10**3, 10**4, 10**5, 10**6)),
    (1000, 0.2, 12.0, (10**3, 10**4, 10**5, 10**6)),
    (27_482, 0.4, 1.0, (9670, 10**5, 10**6)),
    (10**6, 0.4, 1.0, (10**3, 10**4, 10**5, 10**6)),
]
WIDTH = 1e-6
K = 2


def timed(call: Callable[[], object], repeat: int = 3) -> float:
    """Returns the least process time of a call, in seconds."""
    times = []
    for _ in range(repeat):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times)


def thresholds(users: int) -> list[int]:
    """z from 1 to U, about three a decade."""
    steps = [1, 2, 5, *(10**e * m for e in range(1, 7) for m in (1, 2, 5))]
    return [z for z in steps if z <= users]


def row(attributes: int, first: float, window: float, users: int) -> str:
    """One line of the table."""
    px = exposure_probs(zipf_rates(attributes, first), window)
    slowest, widest = 0.0, 0.0
    for z in thresholds(users):
        py = publish_probs(px, users, z)
        slowest = max(slowest, timed(lambda py=py: k_anonymity(py, users, K, width=WIDTH)))
        widest = max(widest, k_anonymity(py, users, K, width=WIDTH).width)
    published = timed(lambda: publish_probs(px, users, max(users // 10, 1)))
    enumeration = f"2^{attributes - 20} times that of A = 20"
    if attributes == 20:
        py = publish_probs(px, users, 100)
        enumeration = f"{timed(lambda: k_anonymity_exact(py, users, K)):.2f} s"
    return (
        f"| {attributes} | {users} | {slowest * 1e3:.1f} | {widest:.1e} | {published * 1e3:.1f} "
        f"| {enumeration} |"
    )


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


def main() -> None:
    """Prints the tables."""
    argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0]).parse_args()
    print("| A | U | slowest z, ms | widest | publish_probs, ms | enumeration |")
    print("|---:|---:|---:|---:|---:|---|")
    for attributes, first, window, sizes in CASES:
        for users in sizes:
            print(row(attributes, first, window, users), flush=True)
    px = exposure_probs(zipf_rates(20, 0.2), 12)
    pair = [[a, b] for a, b in zip(px, exposure_probs(zipf_rates(20, 0.1), 12), strict=True)]
    print()
    many = exposure_probs(zipf_rates(10**6, 0.4), 1)
    seen = popularity(9670, 27_482)
    others: dict[str, Callable[[], object]] = {
        "two classes, A = 20, U = 2 x 500, width 1e-3": lambda: k_anonymity_classes(
            pair, [500, 500], K
        ),
        "smallest_z, A = 20, U = 1000, target .9": lambda: smallest_z(px, 1000, K, target=0.9),
        "smallest_z, stable, A = U = 10^6, target .95": lambda: smallest_z(
            many, 10**6, K, target=0.95, mode="stable"
        ),
        "fit of 6 windows, A = 27482, U = 9670": lambda: fit(seen),
        "1000 simulated streams, A = 20, U = 1000": lambda: simulate(
            zipf_rates(20, 0.2), 1000, 12, 150, K, seeds=1000
        ),
    }
    print("| what | s |")
    print("|---|---:|")
    for name, call in others.items():
        print(f"| {name} | {timed(call, 1):.3f} |", flush=True)


if __name__ == "__main__":
    main()
