# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The hash of a packet's 5-tuple, next to FNV-1a and to a walk over the same bytes."""

import ctypes
from collections.abc import Callable

import numpy as np
import pytest
from measuring import Measure, Size, peer

TUPLES = 1_000_000
MAPPED = 0xFFFF << 16  # the middle of an IPv4 address in IPv6, as a word of a little-endian machine
FUNCTIONS = {"csrc": "tuples_hash", "FNV-1a": "tuples_fnv", "memory walk": "tuples_walk"}


def tuples_of(count: int, version: int) -> np.ndarray:
    """Returns random tuples as tuple_calls.c takes them: five words each."""
    words = np.random.default_rng(version).integers(0, 1 << 63, (count, 5), dtype=np.uint64)
    if version == 4:
        words[:, (0, 2)] = 0
        words[:, (1, 3)] = words[:, (1, 3)] << np.uint64(32) | np.uint64(MAPPED)
    words[:, 4] = words[:, 4] & np.uint64(0xFFFFFFFF) | np.uint64(6 << 32)
    return words


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("who", ["csrc", peer("FNV-1a"), peer("memory walk")])
def test_hash(
    version: int, who: str, size: Size, build_c: Callable[..., ctypes.CDLL], measure: Measure
) -> None:
    words = tuples_of(size.of(TUPLES), version)
    function = getattr(build_c("tuple_calls.c"), FUNCTIONS[who])
    function.restype = ctypes.c_uint64
    arguments = (ctypes.c_void_p(words.ctypes.data), ctypes.c_size_t(len(words)))
    group = f"5-tuples: hash of IPv{version}"
    measure(group, function, len(words), prepare=lambda: arguments)
