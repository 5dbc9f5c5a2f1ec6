# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The form of an answer: two bounds and an estimate between them."""

from typing import NamedTuple


class Bounds(NamedTuple):
    """A probability known to lie in [lower, upper]; `estimate` is the best guess in between."""

    lower: float
    upper: float
    estimate: float

    @property
    def width(self) -> float:
        """upper - lower."""
        return self.upper - self.lower


def bounds_around(lower: float, upper: float, estimate: float) -> Bounds:
    """Bounds cut to [0, 1], the estimate between them.

    Raises ArithmeticError for a NaN, which would otherwise pass through min and max into a
    plausible answer.
    """
    if not lower <= upper or estimate != estimate:
        raise ArithmeticError(f"no bounds: {lower} to {upper} around {estimate}")
    low, high = min(max(lower, 0.0), 1.0), min(max(upper, 0.0), 1.0)
    return Bounds(low, high, min(max(estimate, low), high))
