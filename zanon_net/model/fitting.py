# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Fits the model's parameters to counts of windows, with their uncertainty.

The histograms give the number of names that had at least 2^j users. That pins the rank at which the
curve of exposures over rank passes each 2^j; in between the curve is taken as a power law (see
curve). Draws are other parameters that would fit: ranks moved by the noise of this number of
windows and by rounding, names anywhere between the pinned ranks, users anywhere within their
rounding. A quantity's uncertainty is its spread over the draws.
"""

import math
import os
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from zanon_net.config.rules import COUNT_MAX
from zanon_net.errors import ConfigError
from zanon_net.model import checks
from zanon_net.model.bounds import Bounds, bounds_around
from zanon_net.model.curve import (
    ROUNDS,
    TAIL_MAX,
    Curve,
    chance_of_at_least,
    exposures_of,
)
from zanon_net.model.exposure import not_negligible, publish_probs
from zanon_net.model.levels import Levels
from zanon_net.model.observed import all_users
from zanon_net.model.single import k_anonymity
from zanon_net.model.special import Floats
from zanon_net.model.stationarity import find_problems
from zanon_net.popularity import Popularity, PopularityWindow, rounding_unit

DRAWS, DRAWS_MIN = 100, 40
NUMBERS = 10**8  # most numbers in all draws together, unless DRAWS_MIN draws need more
NAMES_MAX = 1 << 22
DRAW_WIDTH = 1e-3
RISK = 0.05
EVERY_RANK = 400  # beyond this rank, a rank represents its neighbours, too
CROWD = 5000


class Estimate(NamedTuple):
    """A number known to lie in [lower, upper] with 95 %; `estimate` is the best guess."""

    lower: float
    upper: float
    estimate: float


@dataclass(frozen=True, slots=True)
class Draw:
    """A set of parameters that fits.

    exposures: λ_a Δt, shape (A,), falling; in single precision, because there are a hundred draws.
    """

    users: int
    exposures: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Fit:
    """Parameters of the model that fit a popularity file.

    users, attributes: U and A. A includes an estimate of the names that no window showed. If some
        names were seen with one user only, the number of unseen names has no bound, and A's upper
        bound is infinite.
    exposures: λ_a Δt, shape (A,), falling. window_ns: the window Δt in ns.
    windows: number of windows used.
    stationary: true if the windows are as alike as constant rates and independent users make them;
        None if there are too few windows to decide.
    problems: each assumption that fails, in a sentence. draws: other parameters that would fit.
    levels: shares published by level, counted and not fitted; None if the file has no such counts.
    """

    users: Estimate
    attributes: Estimate
    exposures: Floats
    window_ns: int
    windows: int
    stationary: bool | None
    problems: tuple[str, ...]
    draws: tuple[Draw, ...] = field(repr=False)
    levels: Levels | None = field(default=None, repr=False)

    @property
    def px(self) -> Floats:
        """p^X_a, shape (A,), falling."""
        return np.asarray(-np.expm1(-self.exposures))

    def px_bounds(self) -> tuple[Floats, Floats]:
        """Returns lower and upper bounds of each rank's p^X, which contain 95 % of the draws:
        shapes (A,).

        The bounds of the last ranks are guesses, because the file has least information about them.
        """
        ranks = len(self.exposures)
        drawn = np.zeros((len(self.draws), ranks), dtype=np.float32)
        for row, draw in zip(drawn, self.draws, strict=True):
            row[: len(draw.exposures)] = draw.exposures[:ranks]
        low, high = np.quantile(drawn, [RISK / 2, 1 - RISK / 2], axis=0)
        low, high = np.minimum(low, self.exposures), np.maximum(high, self.exposures)
        return np.asarray(-np.expm1(-low)), np.asarray(-np.expm1(-high))

    def k_anonymity(
        self, z: int, k: int, *, periods: int = 1, window_ns: int | None = None
    ) -> Bounds:
        """Returns p_k-anon with the uncertainty of the fit: the bounds contain 95 % of the draws.

        z, k: users. periods: N windows an attacker collects. window_ns: a window other than the
        file's.

        At z = 1 names that no window showed are released, too. If some names were seen with one
        user, the number of unseen names is unknown, and the lower bound is 0. Raises ConfigError.
        """
        length = (window_ns or self.window_ns) / self.window_ns

        def value(users: int, exposures: Floats) -> Bounds:
            px = not_negligible(-np.expm1(-exposures * length), users, z)
            return k_anonymity(publish_probs(px, users, z, periods), users, k, width=DRAW_WIDTH)

        values = [value(draw.users, draw.exposures.astype(np.float64)) for draw in self.draws]
        low, high = np.quantile([one.estimate for one in values], [RISK / 2, 1 - RISK / 2])
        best = value(int(self.users.estimate), self.exposures)
        low, high = min(low, best.lower), max(high, best.upper)
        if z == 1 and math.isinf(self.attributes.upper):
            low = 0.0
        return bounds_around(float(low) - DRAW_WIDTH, float(high) + DRAW_WIDTH, best.estimate)


def fit(popularity: Popularity | str | os.PathLike[str], *, seed: int = 0) -> Fit:
    """Fits U, A and p^X to a popularity file, with their uncertainty.

    popularity: the content of a file of `zanon-net run --popularity FILE`, or its path. seed: of
    the draws, from which the uncertainty is computed. Raises ConfigError if the file has too little
    data, FormatError if it is not a popularity file.
    """
    data = popularity if isinstance(popularity, Popularity) else Popularity.load(popularity)
    whole = [window for window in data.windows if window.whole]
    used = whole or list(data.windows)
    if not used or not any(any(window.bins) for window in used):
        raise ConfigError("popularity: no window holds a name; there is nothing to fit")
    seen = _Seen.of(used)
    if seen.tails[0] > NAMES_MAX:
        raise ConfigError(f"popularity: {seen.tails[0]:.3g} names a window are too many to fit")
    users, exposures, correction = seen.best()
    if users > COUNT_MAX:
        raise ConfigError(f"popularity: {users:.3g} users are too many to fit")
    rng = np.random.default_rng(checks.count("seed", seed, 0, 2**63))
    spread = seen.noise(users, exposures)
    many = min(max(NUMBERS // len(exposures), DRAWS_MIN), DRAWS)
    draws = tuple(seen.draw(rng, spread, correction) for _ in range(many))
    stationary, problems = find_problems(used, users, _grouped(exposures))
    if not whole:
        problems = (*problems, "no window was read from its start to its end: exposures are low")
        stationary = None
    attributes = _range([len(draw.exposures) for draw in draws], len(exposures))
    if seen.open_ended:
        attributes = attributes._replace(upper=math.inf)
    return Fit(
        users=_range([draw.users for draw in draws], users),
        attributes=attributes,
        exposures=exposures,
        window_ns=data.window_ns,
        windows=len(used),
        stationary=stationary,
        problems=problems,
        draws=draws,
        levels=Levels.of(used),
    )


def _range(values: list[int], best: int) -> Estimate:
    low, high = np.quantile(values, [RISK / 2, 1 - RISK / 2])
    return Estimate(min(float(low), best), max(float(high), best), float(best))


@dataclass(frozen=True, slots=True)
class _Seen:
    """Means over the windows. tails: names with at least 2^j users, by j."""

    users: float
    users_unit: float
    tails: Floats
    tails_unit: Floats
    windows: int

    @classmethod
    def of(cls, windows: list[PopularityWindow]) -> "_Seen":
        depth = max(len(window.bins) for window in windows)
        bins = np.array([[*w.bins, *[0] * (depth - len(w.bins))] for w in windows], dtype=float)
        units = np.vectorize(rounding_unit)(bins.astype(np.int64)).astype(float)
        tails = np.cumsum(bins[:, ::-1], axis=1)[:, ::-1].mean(axis=0)
        tails_unit = np.sqrt(np.cumsum(units[:, ::-1] ** 2, axis=1))[:, ::-1].mean(axis=0)
        last = int(np.flatnonzero(tails > 0)[-1]) + 1
        return cls(
            users=float(np.mean([window.users for window in windows])),
            users_unit=float(np.mean([rounding_unit(window.users) for window in windows])),
            tails=tails[:last],
            tails_unit=np.where(tails_unit > 1, tails_unit, 0.0)[:last],
            windows=len(windows),
        )

    @property
    def open_ended(self) -> bool:
        """True if names were seen with one user only: further names may then be unseen."""
        return bool(self.tails[0] > self.tails[1:2].sum())

    def best(self) -> tuple[int, Floats, Floats]:
        """Returns (U, λΔt of each name at its rank, without noise, the correction factors of the
        pins)."""
        users, pins = self.users, self.tails
        for _ in range(4):
            shape = _Shape(self.tails, users)
            pins = shape.matched()
            exposures = shape.exposures(pins, 1.0, None)
            users = all_users(self.users, users, exposures)
        return max(round(users), 1), exposures, pins / shape.goal

    def noise(self, users: int, exposures: Floats) -> Floats:
        """Returns the standard deviation of each tail's mean, for independent users."""
        some, weights = _grouped(exposures)
        chances = [chance_of_at_least(1 << j, users, some) for j in range(len(self.tails))]
        return np.sqrt([float(weights @ (p * (1 - p))) / self.windows for p in chances])

    def draw(self, rng: np.random.Generator, noise: Floats, correction: Floats) -> Draw:
        """Draws parameters that would fit as well."""
        active = max(self.users + self.users_unit * rng.uniform(-0.5, 0.5), 1.0)
        tails = self.tails + noise * rng.standard_normal(len(noise))
        tails = tails + self.tails_unit * rng.uniform(-0.5, 0.5, len(noise))
        tails = np.maximum.accumulate(np.maximum(tails, 0.0)[::-1])[::-1]
        if tails[0] < 0.5:
            tails = self.tails
        users, end = active, float(rng.uniform(0, 1.5))
        for _ in range(2):
            shape = _Shape(tails, users)
            exposures = shape.exposures(shape.goal * correction, end, rng)
            users = all_users(active, users, exposures)
        return Draw(max(round(users), 1), exposures.astype(np.float32))


def _anywhere(ranks: Floats, curve: Curve, rng: np.random.Generator) -> Floats:
    """Moves ranks to random places between the pinned ranks around them.

    Many ranks between two pins, and the ranks beyond the last pin, stay: many random places are
    evenly spread.
    """
    pins = np.concatenate([[0.25], curve.ranks])
    ends = np.searchsorted(ranks, pins)
    moved = ranks.copy()
    for i in range(len(pins) - 1):
        part = slice(int(ends[i]), int(ends[i + 1]))
        if 0 < part.stop - part.start <= CROWD:
            moved[part] = np.sort(rng.uniform(pins[i], pins[i + 1], part.stop - part.start))
    return moved


class _Shape:
    """Curves through tails.

    goal: names with at least 2^j users, above 0. pins: ranks for them. If all names have at least
    2^j users, the catalogue ends within that power of two: with end = 1 the curve is continued up
    to there, with 0 it falls to 2^j.
    """

    def __init__(self, tails: Floats, users: float) -> None:
        self.goal = np.maximum(tails, 0.25)
        self.users = users
        self.complete = int(np.flatnonzero(tails >= tails[0] - 1e-9)[-1])
        self.levels = np.arange(min(max(self.complete, 1), len(tails) - 1), len(tails))

    def exposures(self, pins: Floats, end: float, rng: np.random.Generator | None) -> Floats:
        """Returns λΔt of all names; with rng, at ranks anywhere between the pinned ranks."""
        curve = self.curve(pins, end)
        ranks = np.arange(1, self.names(curve) + 1, dtype=np.float64)
        if rng is not None:
            ranks = _anywhere(ranks, curve, rng)
        return np.minimum(curve.at(ranks), exposures_of(np.array(self.users), self.users))

    def matched(self) -> Floats:
        """Finds pins for which the expected tails equal the tails that were seen."""
        pins = self.goal.copy()
        for _ in range(ROUNDS):
            curve = self.curve(pins, 1.0)
            ranks, weights = _sample_ranks(self.names(curve))
            exposures = curve.at(ranks)
            for j in self.levels.tolist():
                expected = float(weights @ chance_of_at_least(1 << j, self.users, exposures))
                pins[j] *= np.clip((self.goal[j] + 0.1) / (expected + 0.1), 0.5, 2.0)
        return np.clip(pins, 0.1, 1e9)

    def names(self, curve: Curve) -> int:
        """Returns the number of names, seen or not."""
        if self.complete > 0:
            return max(round(float(self.goal[0])), 1)
        return _names_behind(curve, float(self.goal[0]), self.users)

    def curve(self, pins: Floats, end: float) -> Curve:
        """Returns the curve from the most popular names, which belong to the last pin, down."""
        counts = np.minimum(2.0**self.levels - 0.5, self.users - 0.5)[::-1]
        step = np.arange(len(counts))
        ranks = np.maximum.accumulate(pins[self.levels][::-1] + 0.5) * (1 + 1e-6 * step)
        exposures = np.maximum(exposures_of(np.maximum(counts, 0.25), self.users), 1e-12)
        exposures = np.minimum.accumulate(exposures) * (1 - 1e-6 * step)
        if self.complete > 0 and len(ranks) > 1:
            gone_on = float(Curve(ranks[:-1], exposures[:-1]).at(ranks[-1:])[0])
            last = float(exposures[-1]) * max(gone_on / float(exposures[-1]), 1.0) ** end
            exposures[-1] = min(last, float(exposures[-2]) * (1 - 1e-6))
        return Curve(ranks, exposures)


def _names_behind(curve: Curve, seen: float, users: float) -> int:
    """Returns the number of names of which `seen` are expected in a window."""
    ranks, weights = _sample_ranks(min(int(TAIL_MAX * seen) + 1, NAMES_MAX))
    expected = np.cumsum(weights * chance_of_at_least(1, users, curve.at(ranks)))
    at = min(int(np.searchsorted(expected, seen)), len(ranks) - 1)
    return max(round(float(ranks[at])), 1)


def _grouped(exposures: Floats) -> tuple[Floats, Floats]:
    """Returns a selection of the exposures, and the number of names that each represents."""
    ranks, weights = _sample_ranks(len(exposures))
    return exposures[np.floor(ranks - 0.5).astype(np.int64)], weights


def _sample_ranks(names: int) -> tuple[Floats, Floats]:
    """Returns ranks 1 to `names`, the later ranks in groups: their middles and sizes."""
    few = min(names, EVERY_RANK)
    edges = np.arange(few + 1, dtype=np.float64)
    if names > few:
        steps = int(np.ceil(np.log(names / few) / 0.02))
        edges = np.concatenate(
            [edges, np.unique(np.round(np.geomspace(few, names, steps + 1)))[1:]]
        )
    return (edges[:-1] + edges[1:] + 1) / 2, np.diff(edges)
