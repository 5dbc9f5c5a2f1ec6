# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Information in the stream before and after, in closed form: attributes are independent."""

import math

import numpy as np
from numpy.typing import ArrayLike

from zanon_net.errors import ConfigError
from zanon_net.model import checks
from zanon_net.model.special import xlog1py, xlogy


def entropy(py: ArrayLike, *, base: float = math.e) -> float:
    """Returns I = -Σ_y p_y log p_y = Σ_a H(p^Y_a) of one user's released set (Eq. 6).

    py: shape (A,). base: of the logarithm; e gives nats, 2 bits. Raises ConfigError.
    """
    if not (math.isfinite(base) and base > 1):
        raise ConfigError(f"base: must be above 1 and finite, not {base}")
    p = checks.probabilities("py", py)
    total = float(np.sum(xlogy(p, p) + xlog1py(1 - p, -p)))
    return max(0.0, -total) / math.log(base)  # avoids -0.0


def information_loss(px: ArrayLike, py: ArrayLike, *, base: float = math.e) -> float:
    """Returns the entropy of the stream before less the entropy of the stream after (2022 section
    4.2), by `base`.

    px, py: shape (A,). It can be negative: an attribute that nearly everyone exposes (p^X near 1)
    has most information if about half of the exposures leave. Raises ConfigError.
    """
    before, after = checks.probabilities("px", px), checks.probabilities("py", py)
    if before.shape != after.shape:
        raise ConfigError(f"px, py: differ in length, {len(before)} and {len(after)}")
    return entropy(before, base=base) - entropy(after, base=base)
