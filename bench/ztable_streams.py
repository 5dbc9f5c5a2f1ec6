# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Observations for bench/test_ztable.py: Zipf streams, and streams of an adversary."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

STEP_NS = 100_000  # between two observations: 10,000 a second
START_NS = 10**18
CHUNK = 50_000
BURST_NS = 10 * 10**9  # the window of a burst,
BURST_TAIL = 1_000  # and the observations after it has left

FNV_PRIME = 0x100000001B3
FNV_BASIS = 0xCBF29CE484222325

Numbers = npt.NDArray[np.uint64]


class Kind(Enum):
    """The kinds of names and users of a stream."""

    ZIPF = "Zipf(1) names, uniform users"
    UNIQUE_NAMES = "a new name each time, from one client"
    ONE_NAME = "one name, from a new client each time"
    LOW_BITS = "names that are equal in their low 32 bits"
    REMAINDER = "names that are multiples of the C++ table's bucket count"
    BURST = "one name, users who all leave the window at once but one"
    FNV = "names with equal low 16 bits of FNV-1a"


@dataclass(frozen=True, slots=True)
class Columns:
    """Observations as three arrays of one length."""

    t_ns: npt.NDArray[np.int64]
    user: Numbers
    name: Numbers

    def __len__(self) -> int:
        return len(self.t_ns)

    def chunks(self, start: int, stop: int) -> Iterator["Columns"]:
        """Slices of observations start to stop."""
        for at in range(start, stop, CHUNK):
            part = slice(at, min(at + CHUNK, stop))
            yield Columns(self.t_ns[part], self.user[part], self.name[part])

    def distinct(self, last: int) -> int:
        """Distinct pairs of user and name among the last observations: the live tuples.

        Names are below 2^32, or there is but one user, 0.
        """
        pairs = self.user[-last:] << np.uint64(32) ^ self.name[-last:]
        pairs.sort()
        return 1 + int(np.count_nonzero(pairs[1:] != pairs[:-1]))


def zipf(rng: np.random.Generator, n: int, ranks: int) -> Numbers:
    """n ranks from 0, the r-th as frequent as 1 / (r + 1), exactly.

    The floor of a log-uniform number has rank r with a probability of log(1 + 1/r); the excess, at
    most 31 %, is rejected.
    """
    parts: list[Numbers] = []
    missing = n
    while missing > 0:
        draw = int(missing * 1.45) + 100
        rank = np.floor(np.exp(rng.random(draw) * np.log(ranks + 1)))
        accepted = rng.random(draw) * np.log1p(1 / rank) * rank <= np.log(2)
        parts.append(rank[accepted].astype(np.uint64)[:missing] - np.uint64(1))
        missing -= len(parts[-1])
    return np.concatenate(parts)


def fnv_names(n: int) -> Numbers:
    """Returns different eight-byte numbers whose FNV-1a hashes (of their bytes) end in sixteen
    zeros.

    The last two bytes are searched for: the last sets the lower eight bits, so one in 256 values of
    the byte before it serves.
    """
    mask = np.uint64(0xFFFF)
    prime = np.uint64(FNV_PRIME & 0xFFFF)
    stem = np.arange(3 * n, dtype=np.uint64)  # six bytes; about 37 % have no such end
    state = np.full(len(stem), FNV_BASIS & 0xFFFF, dtype=np.uint64)
    for byte in range(6):
        state = ((state ^ (stem >> np.uint64(8 * byte) & np.uint64(0xFF))) * prime) & mask
    end = np.zeros(len(stem), dtype=np.uint64)
    found = np.zeros(len(stem), dtype=bool)
    for byte in range(256):
        last = ((state ^ np.uint64(byte)) * prime) & mask  # its low byte remains to be set
        good = (last >> np.uint64(8) == 0) & ~found
        end[good] = np.uint64(byte) | last[good] << np.uint64(8)
        found |= good
    return (stem | end << np.uint64(48))[found][:n]


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream: the number of observations, their kind, the numbers of names and users."""

    observations: int
    names: int = 0
    users: int = 0
    kind: Kind = Kind.ZIPF
    multiple_of: int = 1  # for REMAINDER

    def _names(self, rng: np.random.Generator) -> Numbers:
        n = self.observations
        count = np.arange(n, dtype=np.uint64)
        match self.kind:
            case Kind.ZIPF:
                return zipf(rng, n, self.names)
            case Kind.ONE_NAME | Kind.BURST:
                return np.zeros(n, np.uint64)
            case Kind.UNIQUE_NAMES:
                return rng.permutation(count)
            case Kind.LOW_BITS:
                return count << np.uint64(32)
            case Kind.REMAINDER:
                return count * np.uint64(self.multiple_of)
            case Kind.FNV:
                return fnv_names(n)

    def columns(self) -> Columns:
        """Returns the observations, equal in each call."""
        rng = np.random.default_rng(1)
        n = self.observations
        t_ns = START_NS + np.arange(n, dtype=np.int64) * STEP_NS
        name = self._names(rng)
        if self.kind is Kind.ZIPF:
            user = rng.integers(0, self.users, n, dtype=np.uint64)
        elif self.kind in (Kind.ONE_NAME, Kind.BURST):
            user = rng.permutation(np.arange(n, dtype=np.uint64))
        else:
            user = np.zeros(n, np.uint64)
        if self.kind is Kind.BURST:
            t_ns = START_NS + np.arange(n, dtype=np.int64)
            t_ns[-BURST_TAIL - 1] += BURST_NS - n  # the user who stays
            t_ns[-BURST_TAIL:] += BURST_NS
        return Columns(t_ns, user, name)
