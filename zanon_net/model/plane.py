# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Two classes: the law of (log p_y,own, log p_y,other) on a grid in the plane.

The method is the one of grid and single, in two directions. Both logarithms start from their most
likely value and only fall. The outcome that is less likely for a class costs it D = |log(p/(1-p))|.
If the classes agree on that outcome, it costs both, else each outcome costs one of them. Splitting
a loss bilinearly over four cells keeps the means; the error is the sum of the errors of the two
directions. Beyond the window in a direction, p lies between 0 and its value at the window's end.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zanon_net.model.binomial import curvature_range, log_p_reaching, pmf, slope_max, tail
from zanon_net.model.bounds import Bounds, bounds_around
from zanon_net.model.grid import (
    CONVOLUTION_ERROR,
    EPSILON,
    POWERS_MAX,
    RARE,
    Jumps,
    Law,
    law_on_grid,
)
from zanon_net.model.special import Floats, convolve_truncated

CELLS_MIN, CELLS_MAX = 16, 1 << 22
OF_WIDTH = 0.9
CUT = 1 / 64
BLOCK = 4096
Shape = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Pair:
    """The chances of both classes, for a user of one; `needed` others have to be alike."""

    own: Floats
    other: Floats
    own_others: int
    other_users: int
    needed: int


@dataclass(frozen=True, slots=True)
class _Axis:
    """One class's direction: the loss of log p_y, from log_max down to a window's end."""

    users: int
    jumps: Jumps  # the costs of the outcomes for this class: its marginal law
    step: float
    cells: int
    log_max: float
    low: float  # of the curvature along this direction
    high: float

    @property
    def chances(self) -> tuple[Floats, Floats]:
        """p of each cell, then of all beyond the last cell: (0 there, the p of the end there)."""
        p = np.exp(self.log_max - self.step * np.arange(self.cells + 1))
        return np.append(p[:-1], 0.0), p


def _axis(p: Floats, mass: Floats, users: int, needed: int, width: float) -> _Axis:
    log_max = float(np.sum(np.log1p(-np.minimum(p, 1 - p))))
    if users == 0:
        return _Axis(0, Jumps.of(mass, _losses(p), 1.0, 1), 1.0, 1, log_max, 0.0, 0.0)
    low, high = curvature_range(users, np.arange(1, min(needed, users) + 1), log_max)
    window = max(log_max - log_p_reaching(users, 1, CUT * width), 1.0)
    size = _losses(p)
    spread = float(mass[size < window].sum()) / 8
    finest = window * math.sqrt(spread * (high - low) / (OF_WIDTH * width / 2))
    cells = max(math.ceil(min(finest, CELLS_MAX)), CELLS_MIN)
    step = window / cells
    return _Axis(users, Jumps.of(mass, size, step, cells), step, cells, log_max, low, high)


def _losses(p: Floats) -> Floats:
    """Returns D = |log(p / (1-p))|, infinite for 0 and 1."""
    rare = np.minimum(p, 1 - p)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log1p(-rare) - np.log(rare))


def k_anonymity_of_pair(pair: Pair, width: float) -> Bounds:
    """Returns p_k-anon of the own class, certified; wider than `width` if that takes too many
    cells."""
    own, other = _axes(pair, width)
    return _bounds(own, other, _agree(pair), pair.needed)


def steps_of_pair(pair: Pair, width: float) -> int:
    """Returns an estimate of the steps that k_anonymity_of_pair takes."""
    own, other = _axes(pair, width)
    return own.cells * other.cells * (len(pair.own) + min(pair.needed, pair.own_others + 1))


def _agree(pair: Pair) -> NDArray[np.bool_]:
    """Marks attributes of which both classes have the same likely outcome."""
    return np.asarray((pair.own < 0.5) == (pair.other < 0.5))


def _axes(pair: Pair, width: float) -> tuple[_Axis, _Axis]:
    unlikely = np.minimum(pair.own, 1 - pair.own)
    masses = unlikely, np.where(_agree(pair), unlikely, 1 - unlikely)
    own = _axis(pair.own, masses[0], pair.own_others, pair.needed, width)
    other = _axis(pair.other, masses[1], pair.other_users, pair.needed, width)
    coarser = math.sqrt(max(own.cells * other.cells / CELLS_MAX, 1.0))
    if coarser == 1:
        return own, other
    return _coarser(own, pair.own, coarser), _coarser(other, pair.other, coarser)


def _coarser(axis: _Axis, p: Floats, factor: float) -> _Axis:
    cells = max(int(axis.cells / factor), CELLS_MIN)
    step = axis.step * axis.cells / cells
    return replace(
        axis, jumps=Jumps.of(axis.jumps.mass, _losses(p), step, cells), step=step, cells=cells
    )


def _bounds(own: _Axis, other: _Axis, agree: NDArray[np.bool_], needed: int) -> Bounds:
    inside = _law(own.jumps, other.jumps, agree, (own.cells, other.cells))
    sides = law_on_grid(own.jumps, own.cells), law_on_grid(other.jumps, other.cells)
    law = _with_margins(inside.mass, sides[0].mass, sides[1].mass)
    rounding = inside.rounding + sides[0].rounding + sides[1].rounding
    values = [
        float(np.sum(law * _gain(own.users, other.users, needed, *chances)))
        for chances in zip(own.chances, other.chances, strict=True)
    ]
    errors = [axis.jumps.spread() * axis.step**2 for axis in (own, other)]
    steepest = max(slope_max(axis.users, min(needed, axis.users)) for axis in (own, other))
    off = 3 * rounding + 256 * EPSILON * steepest + 1e-12
    lower = values[0] - errors[0] * own.high - errors[1] * other.high - off
    upper = values[1] - errors[0] * own.low - errors[1] * other.low + off
    return bounds_around(lower, upper, (lower + upper) / 2)


def _with_margins(inside: Floats, own: Floats, other: Floats) -> Floats:
    """Returns the law with a last row and column for the probability beyond the windows."""
    row = np.maximum(other - inside.sum(axis=0), 0.0)
    column = np.maximum(own - inside.sum(axis=1), 0.0)
    corner = max(1.0 - float(inside.sum() + row.sum() + column.sum()), 0.0)
    return np.block([[inside, column[:, np.newaxis]], [row[np.newaxis, :], np.array([[corner]])]])


def _gain(n_own: int, n_other: int, needed: int, own: Floats, other: Floats) -> Floats:
    """Returns P[Bin(n_own, p) + Bin(n_other, q) >= needed] for each p of own and q of other."""
    missing = np.zeros((len(own), len(other)))
    terms = min(needed - 1, n_own) + 1
    for at in range(0, terms, BLOCK):
        some = np.arange(at, min(at + BLOCK, terms))
        left = pmf(n_own, some[np.newaxis, :], own[:, np.newaxis])
        right = np.stack([1 - tail(n_other, needed - int(i), other) for i in some])
        missing += left @ right
    return 1 - np.minimum(missing, 1.0)


def _law(own: Jumps, other: Jumps, agree: NDArray[np.bool_], shape: Shape) -> Law:
    """Returns P[both sums = (c, d)] within the window of both."""
    short = (own.cell * POWERS_MAX >= shape[0]) & (own.cell > 0)
    short |= (other.cell * POWERS_MAX >= shape[1]) & (other.cell > 0)
    rare = agree & (own.mass < RARE) & short
    chosen = rare & (own.mass > 0)
    law = _law_of_rare(own.select(chosen), other.select(chosen), shape)
    mass = law.mass
    common = np.flatnonzero(~rare & ((own.mass > 0) | (other.mass > 0)))
    for a in common.tolist():
        ways = _ways(own, other, a, bool(agree[a]))
        mass = sum((weight * _shifted(mass, *to) for to, weight in ways), np.zeros(shape))
    return Law(mass, law.rounding + 16 * EPSILON * (len(common) + 4))


def _ways(own: Jumps, other: Jumps, a: int, agree: bool) -> list[tuple[Shape, float]]:
    """Returns the cells that an attribute may lead to, with their probabilities."""
    m = float(own.mass[a])
    stay = [(0, 1.0)]
    lose = [
        [(int(jumps.cell[a]), 1 - jumps.part[a]), (int(jumps.cell[a]) + 1, jumps.part[a])]
        for jumps in (own, other)
    ]
    if agree:
        outcomes = [(1 - m, stay, stay), (m, lose[0], lose[1])]
    else:
        outcomes = [(m, lose[0], stay), (1 - m, stay, lose[1])]
    return [
        ((to, across), weight * part * share)
        for weight, down, right in outcomes
        for to, part in down
        for across, share in right
        if weight * part * share > 0
    ]


def _shifted(law: Floats, down: int, right: int) -> Floats:
    rows, columns = law.shape
    moved = np.zeros_like(law)
    if down < rows and right < columns:
        moved[down:, right:] = law[: rows - down, : columns - right]
    return moved


def _law_of_rare(own: Jumps, other: Jumps, shape: Shape) -> Law:
    """See grid: the exponential of a series, by Horner's rule."""
    law = np.zeros(shape)
    law[0, 0] = 1.0
    if own.mass.size == 0:
        return Law(law, 0.0)
    series, powers = _log_series(own, other, shape)
    stay = float(np.sum(np.log1p(-own.mass)))
    for i in range(powers, 0, -1):
        law = convolve_truncated(series / i, law)
        law[0, 0] += 1.0
    cells = shape[0] * shape[1]
    growth = math.exp(float(np.abs(series).sum()) + stay)
    error = CONVOLUTION_ERROR * math.log2(4 * cells) * math.sqrt(cells) * max(powers, 1) * growth
    return Law(law * math.exp(stay), error)


def _log_series(own: Jumps, other: Jumps, shape: Shape) -> tuple[Floats, int]:
    """Returns the series within the window, and the number of its powers that are not 0 there."""
    series = np.zeros(shape[0] * shape[1])
    odds = own.mass / (1 - own.mass)
    power = 1
    while True:
        down, right = own.cell * power, other.cell * power
        inside = (down < shape[0]) & (right < shape[1])
        if not inside.any():
            return series.reshape(shape), power - 1
        scale = (-1.0) ** (power + 1) / power * odds[inside] ** power
        for up in range(power + 1):
            for across in range(power + 1):
                weight = scale * _binomial_part(own.part[inside], power, up)
                weight = weight * _binomial_part(other.part[inside], power, across)
                rows, columns = down[inside] + up, right[inside] + across
                fits = (rows < shape[0]) & (columns < shape[1])
                at = rows[fits] * shape[1] + columns[fits]
                series += np.bincount(at, weight[fits], minlength=len(series))
        power += 1


def _binomial_part(part: Floats, power: int, ups: int) -> Floats:
    return math.comb(power, ups) * part**ups * (1 - part) ** (power - ups)
