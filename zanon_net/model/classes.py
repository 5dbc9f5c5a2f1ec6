# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Classes of users who expose different attributes (2022 section 6)."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zanon_net.errors import ConfigError
from zanon_net.model import checks
from zanon_net.model.binomial import tail_of_sum
from zanon_net.model.bounds import Bounds, bounds_around
from zanon_net.model.enumeration import ATTRIBUTES_MAX, realizations, undecided
from zanon_net.model.montecarlo import Sampling
from zanon_net.model.plane import Pair, k_anonymity_of_pair, steps_of_pair
from zanon_net.model.single import k_anonymity
from zanon_net.model.special import Floats

Method = Literal["grid", "mc", "exact"]
SINGLE_WIDTH = 1e-6
ENUMERATION_ERROR = 1e-12
ENUMERATION_STEP = 75  # the cost of a step of enumeration, in steps of the grid


def publish_probs_classes(px: ArrayLike, users: ArrayLike, z: int) -> Floats:
    """Returns p^Y_{a,c} = p^X_{a,c} P[Σ_i Bin(U_i - δ_ic, p^X_{a,i}) >= z-1] (2022 section 6).

    px: shape (A, C). users: U_c, length C. Returns shape (A, C). Raises ConfigError.
    """
    chance = checks.probabilities("px", px, dimensions=2)
    sizes = checks.class_sizes(users, chance.shape[1])
    needed = checks.count("z", z) - 1
    kinds, kind_of, kind_sizes = _merged(chance, sizes)
    columns = [
        kinds[:, own] * tail_of_sum(_others(kind_sizes, own), needed, kinds)
        for own in range(len(kind_sizes))
    ]
    return np.stack(columns, axis=1)[:, kind_of]


def k_anonymity_classes(
    py: ArrayLike,
    users: ArrayLike,
    k: int,
    *,
    method: Method | None = None,
    width: float = 1e-3,
    seed: int = 0,
) -> list[Bounds]:
    """Returns p_k-anon,c of each class c: enough others of any class have the same set (2022
    section 6).

    py: p^Y, shape (A, C). users: U_c, length C. width: largest distance of the bounds.
    method: "grid", certified bounds for one or two different classes, from a grid or, if that takes
        less, from enumeration; "mc", sampled sets with an exact answer for each, between the bounds
        of a 99 % confidence interval that holds for any sample size, for any number of classes;
        "exact", enumeration of at most 22 attributes. None: grid for up to two classes, else mc.
    seed: of the samples.

    Returns the bounds of each class, in order. Raises ConfigError.
    """
    p = checks.probabilities("py", py, dimensions=2)
    sizes = checks.class_sizes(users, p.shape[1])
    needed = checks.count("k", k) - 1
    width = checks.positive("width", width)
    if method not in (None, "grid", "mc", "exact"):
        raise ConfigError(f"method: must be grid, mc or exact, not {method!r}")
    if needed == 0 or needed >= sum(sizes):
        certain = float(needed == 0)
        return [Bounds(certain, certain, certain)] * len(sizes)
    kinds, kind_of, kind_sizes = _merged(p, sizes)
    if method == "exact":
        bounds_of = _by_enumeration(kinds, kind_sizes, needed)
    elif method == "mc" or (method is None and len(kind_sizes) > 2):
        bounds_of = [
            Sampling(kinds, own, _others(kind_sizes, own), needed).bounds(width, seed)
            for own in range(len(kind_sizes))
        ]
    else:
        bounds_of = _on_grid(kinds, kind_sizes, needed, width)
    return [bounds_of[kind] for kind in kind_of.tolist()]


def _merged(p: Floats, sizes: tuple[int, ...]) -> tuple[Floats, NDArray[np.intp], tuple[int, ...]]:
    """Returns (the different columns, the index of each class's column, the users of each
    column)."""
    kinds, kind_of = np.unique(p, axis=1, return_inverse=True)
    users = np.bincount(kind_of.ravel(), weights=sizes)
    return kinds, kind_of.ravel(), tuple(int(n) for n in users)


def _others(sizes: tuple[int, ...], own: int) -> tuple[int, ...]:
    """Returns the users of each class without one user of the class `own`: the Kronecker delta of
    the paper."""
    return tuple(size - (c == own) for c, size in enumerate(sizes))


def _by_enumeration(p: Floats, sizes: tuple[int, ...], needed: int) -> list[Bounds]:
    sets = realizations(undecided(p))
    bounds_of = []
    for own in range(len(sizes)):
        value = float(np.sum(sets[:, own] * tail_of_sum(_others(sizes, own), needed, sets)))
        bounds_of.append(bounds_around(value - ENUMERATION_ERROR, value + ENUMERATION_ERROR, value))
    return bounds_of


def _on_grid(p: Floats, sizes: tuple[int, ...], needed: int, width: float) -> list[Bounds]:
    if len(sizes) == 1:
        return [k_anonymity(p[:, 0], sizes[0], needed + 1, width=min(width, SINGLE_WIDTH))]
    if len(sizes) > 2:
        raise ConfigError(f"method: grid is for two classes, not {len(sizes)}; use mc")
    pairs = [
        Pair(p[:, own], p[:, 1 - own], _others(sizes, own)[own], sizes[1 - own], needed)
        for own in range(2)
    ]
    few = len(p) <= ATTRIBUTES_MAX
    if few and (needed << len(p)) * ENUMERATION_STEP < sum(steps_of_pair(q, width) for q in pairs):
        return _by_enumeration(p, sizes, needed)
    bounds_of = [k_anonymity_of_pair(pair, width) for pair in pairs]
    if few and any(bounds.width > width for bounds in bounds_of):
        return _by_enumeration(p, sizes, needed)
    return bounds_of
