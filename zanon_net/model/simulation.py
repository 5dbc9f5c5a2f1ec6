# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Streams drawn at random and passed through the z-table itself, and sets drawn from the model."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zanon_net._core import ZTable
from zanon_net.errors import ConfigError
from zanon_net.model import checks
from zanon_net.model.special import Floats

WINDOW_NS = 1 << 40  # Δt in the table's time, for rates in any unit
OBSERVATIONS_MAX = 1 << 27
Seeds = int | Iterable[int]


def simulate(
    rates: ArrayLike,
    users: int,
    window: float,
    z: int,
    k: int,
    *,
    periods: int = 1,
    seeds: Seeds,
) -> Floats:
    """Returns the share of users who are k-anonymous in simulated streams (2022 Appendix C).

    Each user exposes attribute a as a Poisson process of rate λ_a. Algorithm 1 starts on [0, Δt];
    then each user's set of released attributes is collected over (Δt, (1+N)Δt]. Users with an empty
    set count like all others.

    rates: shape (A,). window: Δt in their unit. periods: N. seeds: their number (0, 1, ...), or the
    seeds; one stream each.

    Returns shape (S,), equal for equal seeds on any machine. Runs on all cores. Raises ConfigError.

    Its mean is a little above the model's value: users share one trajectory of the counters, which
    the model takes as independent.
    """
    per_user = checks.rates(rates)
    people = checks.count("users", users, high=OBSERVATIONS_MAX)
    length = checks.positive("window", window)
    checks.count("z", z)
    needed = checks.count("k", k)
    count = checks.count("periods", periods)
    expected = people * float(per_user.sum()) * length * (1 + count)
    if expected > OBSERVATIONS_MAX:
        raise ConfigError(f"rates: {expected:.3g} observations are too many to simulate")
    stream = _Stream(per_user * length, people, z, count)
    one = partial(_simulate_one, stream, needed)
    with ThreadPoolExecutor(_cores()) as pool:
        return np.array(list(pool.map(one, checks.seed_list(seeds))))


def sample_iid(py: ArrayLike, users: int, k: int, *, seeds: Seeds) -> Floats:
    """Returns the share of users who are k-anonymous when each draws its set from the model (Eq.
    4).

    py: p^Y, shape (A,). Other arguments and the answer are as in simulate; its mean is the model's
    value. Raises ConfigError.
    """
    chance = checks.probabilities("py", py)
    people = checks.count("users", users, high=OBSERVATIONS_MAX)
    needed = checks.count("k", k)
    expected = people * float(chance.sum())
    if expected > OBSERVATIONS_MAX:
        raise ConfigError(f"py: {expected:.3g} attributes of all users are too many to draw")
    one = partial(_sample_one, chance, people, needed)
    with ThreadPoolExecutor(_cores()) as pool:
        return np.array(list(pool.map(one, checks.seed_list(seeds))))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class _Stream:
    """The parameters of a random stream; exposures: λ_a Δt."""

    exposures: Floats
    users: int
    z: int
    periods: int


def _simulate_one(stream: _Stream, k: int, seed: int) -> float:
    exposures, users, periods = stream.exposures, stream.users, stream.periods
    rng = np.random.default_rng(seed)
    counts = rng.poisson(exposures * users * (1 + periods))
    attribute = np.repeat(np.arange(len(exposures), dtype=np.uint64), counts)
    n = len(attribute)
    user = rng.integers(0, users, n, dtype=np.uint64)
    t_ns = rng.integers(0, WINDOW_NS * (1 + periods), n, dtype=np.int64)
    order = np.argsort(t_ns)
    t_ns, user, attribute = t_ns[order], user[order], attribute[order]
    z = stream.z
    table = ZTable(z, WINDOW_NS, keep=z, max_tuples=max(n, 1), max_attributes=max(len(counts), 1))
    released = table.observe_batch(t_ns, user, attribute)
    released &= t_ns > WINDOW_NS
    return _share_alike(rng, user[released], attribute[released], users, k)


def _sample_one(py: Floats, users: int, k: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    who, what = [], []
    for attribute in np.flatnonzero(py):
        owners = rng.choice(users, rng.binomial(users, py[attribute]), replace=False, shuffle=False)
        who.append(owners)
        what.append(np.full(len(owners), attribute))
    if not who:
        return _share_alike(rng, np.zeros(0, np.int64), np.zeros(0, np.int64), users, k)
    return _share_alike(rng, np.concatenate(who), np.concatenate(what), users, k)


def _share_alike(
    rng: np.random.Generator,
    user: NDArray[np.generic],
    attribute: NDArray[np.generic],
    users: int,
    k: int,
) -> float:
    """Returns the share of users whose set of attributes at least k users have. Pairs may be
    repeated."""
    pairs = np.unique(user.astype(np.int64) << 32 | attribute.astype(np.int64))
    owner, owned = pairs >> 32, pairs & 0xFFFFFFFF
    names = rng.integers(0, 2**63, int(owned.max(initial=0)) + 1, dtype=np.uint64)
    sets = np.zeros(users, dtype=np.uint64)  # a hash: the sum of the attributes' random numbers
    np.add.at(sets, owner, names[owned])
    _, alike = np.unique(sets, return_counts=True)
    return float(alike[alike >= k].sum()) / users
