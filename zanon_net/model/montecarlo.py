# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""p_k-anon of three classes and more: sampled sets, with an exact answer for each."""

import math
from dataclasses import dataclass

import numpy as np

from zanon_net.model.binomial import tail_of_sum
from zanon_net.model.bounds import Bounds, bounds_around
from zanon_net.model.special import Floats

RISK = 0.01
PILOT = 4096
SAMPLES_MAX = 1 << 22
NUMBERS = 1 << 21  # drawn at once
IMPOSSIBLE = -2000.0  # represents log 0: its exponential is 0, and it can be subtracted again


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampled sets of users of the class `own`, and the number of other users in each class."""

    py: Floats
    own: int
    others: tuple[int, ...]
    needed: int

    def bounds(self, width: float, seed: int) -> Bounds:
        """Returns E_y[P[Σ_c Bin(n_c, p_y,c) >= needed]] within a 99 % interval.

        The interval is the empirical Bernstein bound (Maurer, Pontil 2009): it holds for any number
        of samples of a variable in [0, 1]. A pilot sample sets their number for the width, up to
        2^22.
        """
        rng = np.random.default_rng([seed, self.own])
        pilot = self._gains(rng, PILOT)
        samples = _samples_for(width / 2, float(pilot.var(ddof=1)))
        gains = self._gains(rng, samples)
        mean, half = float(gains.mean()), _half_width(samples, float(gains.var(ddof=1)))
        return bounds_around(mean - half, mean + half, mean)

    def _gains(self, rng: np.random.Generator, samples: int) -> Floats:
        rows = max(NUMBERS // max(len(self.py), 1), 1)
        parts = []
        for at in range(0, samples, rows):
            draw = min(rows, samples - at)
            sets = rng.random((draw, len(self.py))) < self.py[:, self.own]
            parts.append(tail_of_sum(self.others, self.needed, _chances(sets, self.py)))
        return np.concatenate(parts)


def _half_width(samples: int, variance: float) -> float:
    log = math.log(4 / RISK)  # two sides, and the variance is itself a sample's
    return math.sqrt(2 * variance * log / samples) + 7 * log / (3 * (samples - 1))


def _samples_for(half: float, variance: float) -> int:
    samples = PILOT
    while samples < SAMPLES_MAX and _half_width(samples, 1.1 * variance + 1e-6) > half:
        samples = samples * 5 // 4
    return min(samples, SAMPLES_MAX)


def _chances(sets: "np.ndarray[tuple[int, int], np.dtype[np.bool_]]", py: Floats) -> Floats:
    """Returns p_y of each sampled set in each class, shape (R, C); 0 where a class cannot have the
    set."""
    with np.errstate(divide="ignore"):
        yes, no = np.log(py), np.log1p(-py)
    yes, no = np.maximum(yes, IMPOSSIBLE), np.maximum(no, IMPOSSIBLE)
    return np.asarray(np.exp(sets @ (yes - no) + no.sum(axis=0)))
