# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Votes of several probes as files of messages, and what one table over all of them answers."""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from zanon_net._core import VOTE_WATERMARK_END, VoteShard, VoteWriter, read_answers, vote_settings
from zanon_net.count.frames import framed, messages_in, votes_header

SECOND = 1_000_000_000


@dataclass(frozen=True)
class VoteStream:
    """Zipf(1.15) names and 50,000 users at a steady rate from `probes` probes."""

    observations: int = 200_000
    probes: int = 4
    shards: int = 16
    z: int = 5
    window_ns: int = 600 * SECOND
    duration_ns: int = 1800 * SECOND
    interval_ns: int = 5 * SECOND
    messages_a_file: int = 12
    seed: int = 28

    @property
    def settings(self) -> int:
        return vote_settings(self.z, self.window_ns, self.window_ns)

    def columns(self):
        """Times in order, users, names and probes of all observations."""
        random = np.random.default_rng(self.seed)
        n = self.observations
        t_ns = np.sort(random.integers(SECOND, SECOND + self.duration_ns, n))
        user = random.integers(0, 50_000, n).astype(np.uint64)
        name = np.minimum(random.zipf(1.15, n), 1 << 40).astype(np.uint64)
        return t_ns, user, name, random.integers(0, self.probes, n)

    def messages(self):
        """Yields (probe, message): each interval of each probe, a message for every shard."""
        t_ns, user, name, probe_of = self.columns()
        lo, hi = _mixed(name, 1), _mixed(name, 2)
        words = _mixed(user, 3)
        shard_of = (
            hi >> np.uint64(64 - (self.shards - 1).bit_length()) if self.shards > 1 else hi * 0
        )
        place = (probe_of * self.shards + shard_of.astype(np.int64)).astype(np.int32)
        writers = [
            VoteWriter(0xABC0 + p, s, self.settings, max_votes=1 << 20)
            for p in range(self.probes) for s in range(self.shards)
        ]  # fmt: skip
        ends = np.arange(SECOND + self.interval_ns, SECOND + self.duration_ns, self.interval_ns)
        marks = [*ends.tolist(), VOTE_WATERMARK_END]
        cuts = [0, *np.searchsorted(t_ns, ends).tolist(), len(t_ns)]
        for mark, (first, last) in zip(marks, pairwise(cuts), strict=True):
            order = first + np.argsort(place[first:last], kind="stable")
            bounds = np.searchsorted(place[order], np.arange(len(writers) + 1))
            for i, writer in enumerate(writers):
                mine = order[bounds[i] : bounds[i + 1]]
                writer.add_columns(1, t_ns[mine], words[mine], lo[mine], hi[mine])
                yield 0xABC0 + i // self.shards, writer.finish(mark)

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
                    self.z, self.window_ns, rotate_ns=self.window_ns, shard=number
                )
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


def _mixed(numbers, salt: int):
    """Numbers as hashes of 64 bits (SplitMix64)."""
    x = numbers * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt * 0x632BE59BD9B4E019 % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
