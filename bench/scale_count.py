# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the CPU time of `zanon-net count` and `zanon-net filter` on equal observations.

Usage: python bench/scale_count.py [--votes N] [--probes N] [--shards N] [--repeat N]

Zipf(1.15) names of 50,000 users, z = 5, a window of 10 min, an hour of packet time; messages of a
probe cover a second. `count` reads them from files, with its state sealed on disk and without;
`filter` reads the rows as CSV. CPU is the time of the whole process, user and system, without its
start; the median of the rounds, which take turns.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from zanon_net._core import VoteWriter, vote_settings
from zanon_net.count.folders import CounterFolder
from zanon_net.count.frames import ENDED, Key, framed

COMMAND = (sys.executable, "-m", "zanon_net")
SECOND = 10**9
START = 10**18  # of the stream, in ns since the epoch
LENGTH_S = 3600
Z, WINDOW_S, USERS = 5, 600, 50_000


class Stream:
    """Observations in the order of their times."""

    def __init__(self, votes: int, length_s: int) -> None:
        rng = np.random.default_rng(1)
        self.length_s = length_s
        self.t_ns = np.sort(rng.integers(0, length_s * SECOND, votes)) + START
        self.user = rng.integers(0, USERS, votes)
        self.name = np.minimum(rng.zipf(1.15, votes), 10_000_000)

    def hashed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """user, lo and hi as a probe's keyed hashes would look."""
        return mixed(self.user + 1), mixed(self.name), mixed(self.name + (1 << 40))


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Numbers spread over 64 bits (the finalizer of SplitMix64)."""
    x = numbers.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


def write_csv(stream: Stream, path: Path) -> None:
    """The rows for `filter`."""
    with path.open("w") as file:
        file.write("time,user,attribute\n")
        rows = zip(stream.t_ns.tolist(), stream.user.tolist(), stream.name.tolist(), strict=True)
        file.writelines(f"{t},u{user},n{name}\n" for t, user, name in rows)


def write_votes(stream: Stream, folder: Path, probes: int, shards: int) -> int:
    """Returns the messages for `count`; returns their bytes."""
    settings = vote_settings(Z, WINDOW_S * SECOND, WINDOW_S * SECOND)
    user, lo, hi = stream.hashed()
    bits = shards.bit_length() - 1
    shard = (hi >> np.uint64(64 - bits)).astype(int) if bits else np.zeros(len(hi), int)
    second = (stream.t_ns - START) // SECOND
    length = stream.length_s
    place = (stream.user % probes * shards + shard) * length + second
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(probes * shards * length), "right")
    files, total, begin = CounterFolder(folder), 0, 0
    for probe in range(probes):
        files.votes_of(probe).mkdir(parents=True)
        for number in range(shards):
            writer = VoteWriter(probe, number, settings)
            for at in range(length):
                end = ends[(probe * shards + number) * length + at]
                rows = order[begin:end]
                writer.add_columns(1, stream.t_ns[rows], user[rows], lo[rows], hi[rows])
                begin, key = end, Key(number, writer.sequence)
                mark = START + (at + 1) * SECOND if at + 1 < length else ENDED
                message = framed(writer.finish(mark))
                (files.votes_of(probe) / files.votes_name(key)).write_bytes(message)
                total += len(message)
    return total


def cpu_of(*arguments: object) -> float:
    """Returns CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [*COMMAND, *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Round:
    """The commands that are compared, in a folder of their own."""

    def __init__(self, folder: Path, votes: int, probes: int, shards: int) -> None:
        self.folder, self.probes, self.shards = folder, probes, shards
        for name, number, length_s in (("empty", 1000, 1), ("full", votes, LENGTH_S)):
            stream = Stream(number, length_s)
            write_csv(stream, folder / f"{name}.csv")
            self.bytes = write_votes(stream, folder / name, probes, shards)
        subprocess.run([*COMMAND, "key", "new", folder / "key"], check=True, capture_output=True)
        self._runs = 0

    def filter(self, name: str) -> float:
        """Returns CPU of `filter`."""
        settings = ("--z", Z, "--window", f"{WINDOW_S}s", "--time-unit", "ns", "-q")
        return cpu_of("filter", *settings, self.folder / f"{name}.csv")

    def count(self, name: str) -> float:
        """Returns CPU of `count`."""
        return self._count(name)

    def count_with_state(self, name: str) -> float:
        """Returns CPU of `count` with its state on disk."""
        self._runs += 1
        folder = self.folder / f"state{self._runs}"
        return self._count(name, "--state", folder, "--state-key-file", self.folder / "key")

    def _count(self, name: str, *more: object) -> float:
        settings = ("--z", Z, "--window", f"{WINDOW_S}s", "--shards", self.shards, "-q")
        probes = ("--expect-probes", self.probes, "--until-done")
        return cpu_of("count", f"file:{self.folder / name}", *settings, *probes, *more)


def measured(run: Callable[[str], float], votes: int) -> float:
    """Microseconds a vote, without the start of the process."""
    return (run("full") - run("empty")) / votes * 1e6


def main() -> None:
    """Prints a line for each command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--votes", type=int, default=4_000_000)
    parser.add_argument("--probes", type=int, default=4)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        rounds = Round(Path(folder), options.votes, options.probes, options.shards)
        print(f"{options.votes:,} votes, {rounds.bytes / options.votes:.1f} B a vote")
        runs = {"filter": rounds.filter, "count": rounds.count, "state": rounds.count_with_state}
        costs: dict[str, list[float]] = {name: [] for name in runs}
        for _round in range(options.repeat):
            for name, run in runs.items():
                costs[name].append(measured(run, options.votes))
        base = statistics.median(costs["filter"])
        for name, found in costs.items():
            cost = statistics.median(found)
            print(
                f"{name:8} {cost:.3f} us a vote ({min(found):.3f} to {max(found):.3f}),"
                f" {1 / cost:.2f} M a core, {cost / base:.2f} x filter"
            )


if __name__ == "__main__":
    main()
