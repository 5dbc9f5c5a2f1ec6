# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""SciPy's special functions with types, and one clear error without SciPy."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zanon_net.errors import MissingExtraError

try:
    from scipy import fft as _fft
    from scipy import special as _special
except ImportError:
    raise MissingExtraError(
        "the model needs SciPy; install it with: pip install 'zanon-net[model]'"
    ) from None

Floats = NDArray[np.float64]


def _floats(array: object) -> Floats:
    return np.asarray(array, dtype=np.float64)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Floats:
    """Returns the regularised incomplete beta function I_x(a, b), a > 0, b > 0, 0 <= x <= 1."""
    return _floats(_special.betainc(a, b, x))


def gammaln(x: ArrayLike) -> Floats:
    """Returns the logarithm of the gamma function, x > 0."""
    return _floats(_special.gammaln(x))


def xlogy(x: ArrayLike, y: ArrayLike) -> Floats:
    """Returns x log y, and 0 where x is 0."""
    return _floats(_special.xlogy(x, y))


def xlog1py(x: ArrayLike, y: ArrayLike) -> Floats:
    """Returns x log(1 + y), and 0 where x is 0."""
    return _floats(_special.xlog1py(x, y))


def chi_square_tail(freedom: int, value: float) -> float:
    """Returns P[chi-square with `freedom` degrees of freedom >= value]."""
    return float(_special.chdtrc(freedom, value))


def convolve_truncated(left: Floats, right: Floats) -> Floats:
    """Returns the first cells of the convolution of two arrays of one shape, which the result has,
    too.

    One or two dimensions, by FFT: the error of a cell is about 2e-16 log2(cells) |left| |right|, in
    Euclidean norms.
    """
    shape = [_fft.next_fast_len(2 * n, real=True) for n in left.shape]
    product = _fft.rfftn(left, shape) * _fft.rfftn(right, shape)
    whole = _fft.irfftn(product, shape)
    return _floats(whole[tuple(slice(n) for n in left.shape)])
