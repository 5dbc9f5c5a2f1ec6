# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Counts the messages of probes with leases, and decisions that differ from one table over all
votes.

Usage: python bench/scale_leases.py [--votes N] [--z Z ...]

The stream of bench/vote_stream.py has names by Zipf's law with exponent 1.15 from a million, 50,000
users, each mostly at one of four probes, a window of ten minutes, 10,000 votes a second. The
probes send a message a second; the counter decides after all have sent. A decision is right if it
equals the decision of one z-table over the votes of all probes in the order (time, probe, sequence,
place).
"""

import argparse
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from vote_stream import SECOND, WINDOW_NS, Votes, stream

from zanon_net._core import (
    VOTE_KINDS,
    VOTE_WATERMARK_END,
    OwnVotes,
    VoteShard,
    VoteWriter,
    ZTable,
    read_answers,
    vote_settings,
)

PROBES = 4
ROAMING = 0.05  # part of the votes that are cast at any probe instead of the user's own
START = 10**18

Bools = npt.NDArray[np.bool_]


def chosen(votes: Votes, which: npt.NDArray[Any]) -> Votes:
    """Some votes, each array in one piece."""
    return Votes(votes.t_ns[which], votes.user[which], votes.lo[which], votes.hi[which])


@dataclass
class Probe:
    """A probe: the votes that it sent, and the place of each vote in the stream."""

    number: int
    z: int
    settings: int
    sent: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("name", "lease", "only"), 0)
    )

    def __post_init__(self) -> None:
        """Opens all."""
        self.own = OwnVotes(self.z, WINDOW_NS)
        self.writer = VoteWriter(self.number, 0, self.settings, max_votes=1 << 20)
        self.asked: dict[int, npt.NDArray[np.int64]] = {}

    def message(
        self, votes: Votes, places: npt.NDArray[np.int64], released: Bools, w: int
    ) -> bytes:
        """Returns the message after some votes; notes in `released` the votes that own users
        suffice for."""
        here = self.own.observe_columns(votes.t_ns, votes.user, votes.lo, votes.hi)
        released[places] = here
        self.own.advance(w)
        asked = chosen(votes, ~here)
        self.writer.add_columns(VOTE_KINDS["name"], asked.t_ns, asked.user, asked.lo, asked.hi)
        self.sent["name"] += len(asked)
        kind, *columns = self.own.take_sent()
        for name in ("lease", "only"):
            of_kind = kind == VOTE_KINDS[name]
            self.writer.add_columns(
                VOTE_KINDS[name], *(np.ascontiguousarray(c[of_kind]) for c in columns)
            )
            self.sent[name] += int(of_kind.sum())
        sequence, message = self.writer.sequence, self.writer.finish(w)
        asked_at = np.full(len(self.writer.order), -1, np.int64)
        waiting = places[~here]
        is_name = self.writer.order < len(asked)
        asked_at[is_name] = waiting[self.writer.order[is_name]]
        self.asked[sequence] = asked_at
        return message

    def take(self, answer: dict[str, Any], released: Bools) -> None:
        """Notes the answers to a message."""
        places = self.asked.pop(answer["sequence"])
        released[places[places >= 0]] = answer["answers"][places >= 0]


def probes_of(votes: Votes, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Returns the probe that sees each vote: the user's own, or any."""
    home = (votes.user >> np.uint64(7)).astype(np.int64) % PROBES
    away = rng.random(len(votes)) < ROAMING
    return np.where(away, rng.integers(0, PROBES, len(votes)), home)


def ordered(votes: Votes, at: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns the order of decisions: several votes have the same time."""
    return np.lexsort((np.arange(len(votes)), at, votes.t_ns))


def simulate(votes: Votes, at: npt.NDArray[np.int64], z: int) -> tuple[Bools, dict[str, int], int]:
    """Returns the released votes, the counts of sent votes, and the leases at the end."""
    released = np.zeros(len(votes), bool)
    settings = vote_settings(z, WINDOW_NS)
    probes = [Probe(n, z, settings) for n in range(PROBES)]
    shard = VoteShard(z, WINDOW_NS)
    bounds = np.arange(START, int(votes.t_ns[-1]) + SECOND, SECOND)
    edges = np.searchsorted(votes.t_ns, bounds)
    most = 0
    for i, first in enumerate(edges):
        last = edges[i + 1] if i + 1 < len(edges) else len(votes)
        w = VOTE_WATERMARK_END if last == len(votes) else int(bounds[i]) + SECOND
        for probe in probes:
            places = first + np.flatnonzero(at[first:last] == probe.number)
            part = chosen(votes, places)
            shard.put(probe.message(part, places, released, w))
        for message in shard.decide():
            answer = read_answers(message)
            probes[answer["probe"]].take(answer, released)
        most = max(most, shard.stats["leases_now"])
        if w == VOTE_WATERMARK_END:
            break
    sent = {name: sum(probe.sent[name] for probe in probes) for name in probes[0].sent}
    return released, sent, most


def exact(votes: Votes, order: npt.NDArray[np.int64], z: int) -> Bools:
    """Returns the votes that one table over all votes releases."""
    table, released = ZTable(z, WINDOW_NS), np.empty(len(votes), bool)
    for start in range(0, len(order), 1 << 16):
        places = order[start : start + (1 << 16)]
        part = chosen(votes, places)
        released[places] = table.observe_hashed_batch(part.t_ns, part.user, part.lo, part.hi)
    return released


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--votes", type=int, default=10**7)
    parser.add_argument("--z", type=int, nargs="+", default=[5, 20])
    options = parser.parse_args()
    votes = stream(options.votes)
    # ten votes share a time, so that probe and place decide, too
    votes = Votes(votes.t_ns // 10**6 * 10**6, votes.user, votes.lo, votes.hi)
    at = probes_of(votes, np.random.default_rng(2))
    order = ordered(votes, at)
    print(f"{len(votes):,} votes at {PROBES} probes")
    for z in options.z:
        began = time.process_time()
        released, sent, most = simulate(votes, at, z)
        seconds = time.process_time() - began
        truth = exact(votes, order, z)
        parts = {name: n / len(votes) for name, n in sent.items()}
        print(
            f"z = {z:2}: {sum(parts.values()):.3f} messages a vote"
            f" (votes {parts['name']:.3f}, left-overs {parts['only']:.3f},"
            f" leases {parts['lease']:.3f});"
            f" {int(truth.sum()):,} released, {int((released != truth).sum())} decisions differ;"
            f" {most:,} leases at most; {seconds / len(votes) * 1e9:.0f} ns of CPU a vote"
        )


if __name__ == "__main__":
    main()
