# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Votes of several probes, what a counter has to answer, and counters of their own processes."""

import json
import random
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from support.cli import COMMAND, ENVIRONMENT
from zanon_net._core import VoteWriter, read_answers, read_votes, vote_settings
from zanon_net.count.folders import CounterFolder, write_whole
from zanon_net.count.frames import ENDED, Key, framed, messages_in
from zanon_net.keys import new_key

SECOND = 10**9
START = 1_700_000_000 * SECOND
NAME = 1  # the kind of a vote
USER_BITS = 0xFF000000FFFFFFFF  # that decide

Release = tuple[int, int, int, int]


@dataclass(frozen=True)
class Votes:
    """A stream that probes have seen parts of, as messages of a second each.

    Its answers are those of a list of all votes, walked through in order.
    """

    z: int = 5
    window_s: int = 20
    probes: int = 3
    shards: int = 4
    seconds: int = 60
    a_second: int = 40
    users: int = 60
    names: int = 3000
    seed: int = 1
    start_ns: int = START
    messages: dict[int, list[bytes]] = field(default_factory=dict)
    answers: dict[tuple[int, Key], list[bool]] = field(default_factory=dict)
    releases: list[Release] = field(default_factory=list)

    def __post_init__(self) -> None:
        for probe in range(1, self.probes + 1):
            self.messages[probe] = list(self._messages_of(probe))
        self._decide()

    @property
    def window_ns(self) -> int:
        return self.window_s * SECOND

    @property
    def settings(self) -> int:
        return int(vote_settings(self.z, self.window_ns, self.window_ns))

    @property
    def options(self) -> list[str]:
        """Of a counter."""
        known = {"z": self.z, "window": f"{self.window_s}s", "shards": self.shards}
        return [text for name, value in known.items() for text in (f"--{name}", str(value))]

    def _messages_of(self, probe: int) -> Iterator[bytes]:
        rng = random.Random(f"{self.seed} {probe}")
        writers = [VoteWriter(probe, shard, self.settings) for shard in range(self.shards)]
        for second in range(self.seconds):
            times = sorted(rng.randrange(SECOND) for _vote in range(self.a_second))
            for t_ns in times:
                name = min(int(rng.paretovariate(0.3)), self.names)
                lo, hi = hashed(name), hashed(name + 1000)
                shard = hi * self.shards >> 64
                t_ns += self.start_ns + second * SECOND
                writers[shard].add(NAME, t_ns, hashed(rng.randrange(self.users)), lo, hi)
            is_last = second + 1 == self.seconds
            mark = ENDED if is_last else self.start_ns + (second + 1) * SECOND
            yield from (writer.finish(mark) for writer in writers)

    def _decide(self) -> None:
        votes = []
        for probe, messages in self.messages.items():
            for message in messages:
                read = read_votes(message)
                key = Key(read["shard"], read["sequence"])
                self.answers[probe, key] = [False] * len(read["t_ns"])
                columns = (read[name].tolist() for name in ("t_ns", "user", "lo", "hi"))
                for place, vote in enumerate(zip(*columns, strict=True)):
                    votes.append((vote[0], probe, key.sequence, place, key, vote))
        exposures: dict[tuple[int, int], dict[int, int]] = {}
        for t_ns, probe, _sequence, place, key, vote in sorted(votes):
            last = exposures.setdefault(vote[2:], {})
            last[vote[1]] = t_ns
            if sum(at >= t_ns - self.window_ns for at in last.values()) >= self.z:
                self.answers[probe, key][place] = True
                self.releases.append(vote)
        self.releases.sort()

    def in_turns(self) -> list[tuple[int, bytes]]:
        """(probe, message) of all, second by second."""
        by_second = zip(*(self._seconds_of(probe) for probe in self.messages), strict=True)
        return [item for second in by_second for part in second for item in part]

    def _seconds_of(self, probe: int) -> list[list[tuple[int, bytes]]]:
        own = [(probe, message) for message in self.messages[probe]]
        return [own[at : at + self.shards] for at in range(0, len(own), self.shards)]


def hashed(number: int) -> int:
    """64 bits that look random."""
    return random.Random(number).getrandbits(64)


def key_of(message: bytes) -> Key:
    read = read_votes(message)
    return Key(read["shard"], read["sequence"])


def put_file(folder: Path, probe: int, message: bytes, attached: bytes | None = None) -> None:
    """As a probe does that shares the folder. attached: the message with rows."""
    files = CounterFolder(folder)
    files.votes_of(probe).mkdir(parents=True, exist_ok=True)
    path = files.votes_of(probe) / files.votes_name(key_of(message))
    write_whole(path, framed(message if attached is None else attached))


def answered(messages: Iterable[bytes]) -> dict[tuple[int, Key], list[bool]]:
    """The answers, each of which has to be there once."""
    found: dict[tuple[int, Key], list[bool]] = {}
    for message in messages:
        read = read_answers(message)
        place = read["probe"], Key(read["shard"], read["sequence"])
        assert place not in found
        found[place] = read["answers"].tolist()
    return found


def answers_in(folder: Path) -> dict[tuple[int, Key], list[bool]]:
    """Those in the files of a folder."""
    files = sorted((folder / "answers").glob("*/*.zna"))
    return answered(message for path in files for message in messages_in(path.read_bytes()))


def releases_in(folder: Path) -> list[Release]:
    """What a counter has released, sorted."""
    rows = [np.load(path) for path in sorted(folder.glob("*.npy"))]
    return sorted(row for table in rows for row in table.tolist())


def key_file(folder: Path) -> Path:
    """A new key for a state."""
    path = folder / "state.key"
    new_key(path)
    return path


def start_counter(*arguments: object, command: Sequence[str] = COMMAND) -> subprocess.Popen[str]:
    """A counter in a process of its own."""
    whole = [*command, "count", *map(str, arguments)]
    return subprocess.Popen(
        whole, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@contextmanager
def counter(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """The same, ended if it did not end by itself."""
    process = start_counter(*arguments)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def counts_of(process: subprocess.Popen[str], seconds: float = 60) -> dict[str, int]:
    """What it says at its end, with --json."""
    out, err = process.communicate(timeout=seconds)
    assert process.returncode == 0, err
    counts: dict[str, int] = json.loads(out)
    return counts
