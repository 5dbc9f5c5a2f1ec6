# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A figure of a paper and the paper's claims about it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from zanon_net.model import (
    publish_probs,
)
from zanon_net.model.charts import Line, Panel

WIDTH = 1e-5
KS = (2, 3, 4)
PROBABILITY = "p_k-anon (probability)"
SEEDS, BIAS_SEEDS = 3000, 1000


@dataclass(frozen=True)
class Claim:
    """A paper's claim, our result, and whether the claim holds."""

    where: str
    says: str
    found: str
    holds: bool


@dataclass(frozen=True)
class Figure:
    """One figure: its file, caption, panels, and the claims around it."""

    name: str
    caption: str
    panels: Sequence[Panel]
    claims: Sequence[Claim]


def spread(low: float, high: float, points: int) -> list[int]:
    """Whole numbers, evenly on a logarithmic scale."""
    return sorted({round(x) for x in np.geomspace(low, high, points).tolist()})


def y_by_rank(px: np.ndarray, users: int, zs: Iterable[int]) -> list[Line]:
    """p^Y over rank, one line a z."""
    ranks = spread(1, len(px), 120)
    lines = []
    for z in zs:
        py = publish_probs(px, users, z)
        shown = [r for r in ranks if py[r - 1] >= 1e-8]
        lines.append(Line(f"z = {z}", shown, [float(py[r - 1]) for r in shown]))
    return lines
