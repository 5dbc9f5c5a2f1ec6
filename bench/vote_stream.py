# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A stream of votes, its messages and a table's decisions, for benchmarks of counting over probes.

The stream has names by Zipf's law with exponent 1.15 from a million, 50,000 users, four probes, z =
5 within ten minutes, and 1,000 votes a message.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zanon_net._core import VoteWriter, ZTable, vote_settings

SECOND = 10**9
Z, WINDOW_NS = 5, 600 * SECOND
RATE = 10_000  # votes a second, over all probes
NAMES, USERS, PROBES = 10**6, 50_000, 4
MESSAGE = 1000  # votes
BATCH = 50_000  # observations a call
END = 2**63 - 1

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Votes:
    """Votes as arrays, in time order."""

    t_ns: npt.NDArray[np.int64]
    user: Words
    lo: Words
    hi: Words

    def __len__(self) -> int:
        return len(self.t_ns)

    def part(self, which: slice) -> "Votes":
        """Some of them, each array in one piece."""
        t_ns, *words = (
            np.ascontiguousarray(c[which]) for c in (self.t_ns, self.user, self.lo, self.hi)
        )
        return Votes(t_ns, *words)

    def batches(self, start: int, stop: int) -> Iterator["Votes"]:
        """Parts of a size that a table takes at once."""
        for at in range(start, stop, BATCH):
            yield self.part(slice(at, min(at + BATCH, stop)))


def mixed(numbers: Words, seed: int) -> Words:
    """64 bits that look random, different for each number."""
    x = numbers + np.uint64(seed * 0x9E3779B97F4A7C15 & END)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        x = (x ^ x >> np.uint64(shift)) * np.uint64(factor)
    return x


def stream(n: int, most: int = NAMES) -> Votes:
    """Returns n votes for the first `most` names, equal in each call."""
    rng = np.random.default_rng(1)
    names = rng.zipf(1.15, int(n * 1.2) + 1000)
    names = names[names <= most][:n].astype(np.uint64)
    n = len(names)
    user = mixed(rng.integers(0, USERS, n, dtype=np.uint64), 1)
    t_ns = 10**18 + np.arange(n, dtype=np.int64) * (SECOND // RATE)
    return Votes(t_ns, user, mixed(names, 2), mixed(names, 3))


def observe(table: ZTable, votes: Votes, start: int, stop: int) -> npt.NDArray[np.bool_]:
    """Decisions of a table on some of the votes."""
    answers = [
        table.observe_hashed_batch(v.t_ns, v.user, v.lo, v.hi) for v in votes.batches(start, stop)
    ]
    return np.concatenate(answers) if answers else np.empty(0, bool)


def messages_of(votes: Votes) -> list[bytes]:
    """Returns the messages of all probes, ordered by interval."""
    settings = vote_settings(Z, WINDOW_NS)
    writers = [VoteWriter(probe, 0, settings) for probe in range(PROBES)]
    messages: list[bytes] = []
    for at in range(0, len(votes), MESSAGE * PROBES):
        stop = min(at + MESSAGE * PROBES, len(votes))
        watermark = int(votes.t_ns[stop]) if stop < len(votes) else END
        for probe, writer in enumerate(writers):
            v = votes.part(slice(at + probe, stop, PROBES))
            writer.add_columns(1, v.t_ns, v.user, v.lo, v.hi)
            messages.append(writer.finish(watermark))
    return messages
