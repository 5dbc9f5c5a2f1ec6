# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Votes of several probes as files of messages, and what one table over all of them answers."""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from zanon_net._core import (
    VOTE_KINDS,
    VOTE_WATERMARK_END,
    VoteShard,
    VoteWriter,
    read_answers,
    vote_settings,
)
from zanon_net.count.frames import framed, messages_in, votes_header

SECOND = 1_000_000_000
NAME, ONLY = VOTE_KINDS["name"], VOTE_KINDS["only"]


@dataclass(frozen=True)
class VoteStream:
    """Zipf(1.15) names and 50,000 users at a steady rate from `probes` probes.

    count_rotate_ns: of a generation of hashes. A vote within the last window of one counts in the
    next one too, as the votes of a probe do.
    """

    observations: int = 200_000
    probes: int = 4
    shards: int = 16
    z: int = 5
    window_ns: int = 600 * SECOND
    duration_ns: int = 1800 * SECOND
    interval_ns: int = 5 * SECOND
    messages_a_file: int = 12
    seed: int = 28
    begin_ns: int = SECOND
    count_rotate_ns: int | None = None

    @property
    def settings(self) -> int:
        return vote_settings(self.z, self.window_ns, self.window_ns, self.count_rotate_ns)

    def columns(self):
        """Times in order, users, names and probes of all observations."""
        random = np.random.default_rng(self.seed)
        n = self.observations
        t_ns = np.sort(random.integers(self.begin_ns, self.begin_ns + self.duration_ns, n))
        user = random.integers(0, 50_000, n).astype(np.uint64)
        name = np.minimum(random.zipf(1.15, n), 1 << 40).astype(np.uint64)
        return t_ns, user, name, random.integers(0, self.probes, n)

    def messages(self):
        """Yields (probe, message): each interval of each probe, a message for every shard."""
        votes = [self._votes(NAME), *([self._votes(ONLY)] if self.count_rotate_ns else [])]
        writers = [
            VoteWriter(0xABC0 + p, s, self.settings, max_votes=1 << 20)
            for p in range(self.probes) for s in range(self.shards)
        ]  # fmt: skip
        first_ns, end_ns = self.begin_ns + self.interval_ns, self.begin_ns + self.duration_ns
        ends = np.arange(first_ns, end_ns, self.interval_ns).tolist()
        for before, mark in pairwise([0, *ends, VOTE_WATERMARK_END]):
            for kind, place, t_ns, *columns in votes:
                first, last = np.searchsorted(t_ns, [before, mark])
                order = first + np.argsort(place[first:last], kind="stable")
                bounds = np.searchsorted(place[order], np.arange(len(writers) + 1))
                for i, writer in enumerate(writers):
                    mine = order[bounds[i] : bounds[i + 1]]
                    writer.add_columns(kind, t_ns[mine], *(column[mine] for column in columns))
            for i, writer in enumerate(writers):
                yield 0xABC0 + i // self.shards, writer.finish(mark)

    def _votes(self, kind: int):
        """Kind, and columns of the votes of that kind: place among the writers, time, user and both
        halves of the name."""
        t_ns, user, name, probe_of = self.columns()
        generation = 0 * t_ns
        if self.count_rotate_ns:
            generation = t_ns // self.count_rotate_ns + 1
        if kind == ONLY:
            later = (t_ns + self.window_ns) // self.count_rotate_ns + 1
            again = later > generation
            t_ns, user, name, probe_of = t_ns[again], user[again], name[again], probe_of[again]
            generation = later[again]
        salt = generation.astype(np.uint64) << np.uint64(8)
        words = _mixed(user, salt + np.uint64(3))
        lo, hi = _mixed(name, salt + np.uint64(1)), _mixed(name, salt + np.uint64(2))
        shard_of = (
            hi >> np.uint64(64 - (self.shards - 1).bit_length()) if self.shards > 1 else hi * 0
        )
        place = (probe_of * self.shards + shard_of.astype(np.int64)).astype(np.int32)
        return kind, place, t_ns, words, lo, hi

    def write(self, folder: Path) -> None:
        """Files of messages below folder/votes, a folder a probe, named by their first sequence."""
        waiting: dict[tuple[int, int], list[bytes]] = {}
        for probe, message in self.messages():
            frames = waiting.setdefault((probe, votes_header(message).shard), [])
            frames.append(framed(message))
            if len(frames) >= self.messages_a_file:
                _write(folder, probe, frames)
        for (probe, _shard), frames in waiting.items():
            _write(folder, probe, frames)

    def expected(self, messages=None) -> Counter[bytes]:
        """The messages of answers of one shard after the other, each decided as it comes."""
        shards: dict[int, VoteShard] = {}
        answers: Counter[bytes] = Counter()
        for message in (m for _probe, m in self.messages()) if messages is None else messages:
            number = votes_header(message).shard
            if number not in shards:
                shards[number] = VoteShard(
                    self.z, self.window_ns, rotate_ns=self.window_ns, shard=number,
                    count_rotate_ns=self.count_rotate_ns,
                )  # fmt: skip
            shards[number].put(message)
            if len(shards[number].probes) == self.probes:
                answers.update(shards[number].decide())
        for shard in shards.values():
            answers.update(shard.decide())
        return answers


def answers_below(folder: Path) -> Counter[bytes]:
    """The messages in all files of answers that are whole; a hidden file is not."""
    return Counter(
        message for path in folder.rglob("*.zna") if not path.name.startswith(".")
        for message in messages_in(path.read_bytes())
    )  # fmt: skip


def releases(answers: Counter[bytes]) -> int:
    """How many votes are answered by yes."""
    return sum(int(read_answers(message)["answers"].sum()) * n for message, n in answers.items())


def _write(folder: Path, probe: int, frames: list[bytes]) -> None:
    if not frames:
        return
    first = votes_header(frames[0][4:])
    path = folder / "votes" / f"{probe:016x}" / f"{first.shard:03d}-{first.sequence:020d}.znv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(frames))
    frames.clear()


def _mixed(numbers, salt):
    """Numbers as hashes of 64 bits (SplitMix64)."""
    x = numbers * np.uint64(0x9E3779B97F4A7C15) + salt * np.uint64(0x632BE59BD9B4E019)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
