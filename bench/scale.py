# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of counting over many probes: snapshots, vote messages, the counter of a shard.

Usage: python bench/scale.py [--votes N] [PART ...]

Parts: snapshot, message, shard; all without an argument. The stream is the stream of the design:
names by Zipf's law with exponent 1.15 from a million, 50,000 users, four probes, z = 5 within ten
minutes, 1,000 votes a message. Every figure is CPU time, with a limit that was measured in the same
run.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from zanon_net._core import VoteShard, VoteWriter, ZTable, read_answers, vote_settings

SECOND = 10**9
Z, WINDOW_NS = 5, 600 * SECOND
RATE = 10_000  # votes a second, over all probes
NAMES, USERS, PROBES = 10**6, 50_000, 4
MESSAGE = 1000  # votes
BATCH = 50_000  # observations a call
END = 2**63 - 1

Words = npt.NDArray[np.uint64]
Result = TypeVar("Result")


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


def timed(work: Callable[..., Result], *arguments: object) -> tuple[Result, float]:
    """Returns the result of a call, and its CPU seconds."""
    start = time.process_time()
    result = work(*arguments)
    return result, time.process_time() - start


def observe(table: ZTable, votes: Votes, start: int, stop: int) -> npt.NDArray[np.bool_]:
    """Decisions of a table on some of the votes."""
    answers = [
        table.observe_hashed_batch(v.t_ns, v.user, v.lo, v.hi) for v in votes.batches(start, stop)
    ]
    return np.concatenate(answers) if answers else np.empty(0, bool)


def row(name: str, value: float, unit: str, bar: str, limit: str = "") -> None:
    """One line of the result."""
    print(f"| {name} | {value:,.2f} {unit} | {bar} | {limit} |", flush=True)


# ---- parts --------------------------------------------------------------------------------------


def snapshot(votes: Votes) -> None:
    """Tables of every kind, restored in the middle of the stream."""
    half = len(votes) // 2
    for keep in (None, Z, 16, 20, 1000):
        table = ZTable(Z, WINDOW_NS, keep=keep)
        _, seconds = timed(observe, table, votes, 0, half)
        seconds /= half
        data, dumped = timed(table.dump)
        restored, loaded = timed(ZTable.load, data)
        tuples = restored.stats["tuples"]
        first, second = (
            observe(table, votes, half, len(votes)),
            observe(restored, votes, half, len(votes)),
        )
        kind = f"keep {keep or 'all'}, {tuples:,} tuples"
        row(f"snapshot, {kind}", len(data) / tuples, "B a tuple", "<= 26")
        row(
            f"dump, {kind}",
            dumped / tuples * 1e9,
            "ns a tuple",
            "",
            f"{dumped / tuples / seconds:.1f} x observe",
        )
        ratio = loaded / tuples / seconds
        row(
            f"load, {kind}",
            loaded / tuples * 1e9,
            "ns a tuple",
            "<= 4 x observe",
            f"{ratio:.1f} x observe ({seconds * 1e9:.0f} ns)",
        )
        row(f"decisions that differ, {kind}", (first != second).sum(), f"of {len(first):,}", "0")


def messages_of(votes: Votes) -> tuple[list[bytes], float]:
    """Returns the messages of all probes, ordered by interval, and the CPU seconds."""
    settings = vote_settings(Z, WINDOW_NS)
    writers = [VoteWriter(probe, 0, settings) for probe in range(PROBES)]
    messages: list[bytes] = []
    seconds = 0.0
    for at in range(0, len(votes), MESSAGE * PROBES):
        stop = min(at + MESSAGE * PROBES, len(votes))
        watermark = int(votes.t_ns[stop]) if stop < len(votes) else END
        for probe, writer in enumerate(writers):
            v = votes.part(slice(at + probe, stop, PROBES))
            start = time.process_time()
            writer.add_columns(1, v.t_ns, v.user, v.lo, v.hi)
            messages.append(writer.finish(watermark))
            seconds += time.process_time() - start
    return messages, seconds


def plain(votes: Votes) -> float:
    """Returns the CPU seconds of the smallest possible message: 29 bytes a vote, copied."""
    form = np.dtype([("t_ns", "<i8"), ("user", "u1", 5), ("lo", "<u8"), ("hi", "<u8")])
    seconds = 0.0
    for at in range(0, len(votes), MESSAGE):
        v = votes.part(slice(at, at + MESSAGE))
        start = time.process_time()
        out = np.empty(len(v), form)
        out["t_ns"], out["lo"], out["hi"] = v.t_ns, v.lo, v.hi
        out["user"] = v.user.view(np.uint8).reshape(-1, 8)[:, :5]
        out.tobytes()
        seconds += time.process_time() - start
    return seconds


def message(votes: Votes) -> None:
    """Bytes and CPU of the probes' side."""
    messages, seconds = messages_of(votes)
    n = len(votes)
    row("vote message", sum(map(len, messages)) / n, "B a vote", "<= 16")
    row(
        "encode",
        seconds / n * 1e9,
        "ns a vote",
        "<= 200",
        f"{seconds / plain(votes):.1f} x NumPy copying 29 B a vote",
    )


def shard(votes: Votes) -> None:
    """One shard that takes the messages of four probes and decides."""
    messages, _ = messages_of(votes)
    counter = VoteShard(Z, WINDOW_NS)
    table = ZTable(Z, WINDOW_NS, keep=Z)
    _, alone = timed(observe, table, votes, 0, len(votes))
    answers: list[bytes] = []

    def count() -> None:
        for at in range(0, len(messages), PROBES):
            for data in messages[at : at + PROBES]:
                counter.put(data)
            answers.extend(counter.decide())

    _, seconds = timed(count)
    yes = sum(int(read_answers(answer)["answers"].sum()) for answer in answers)
    if yes != table.stats["released"] or counter.stats["decided"] != len(votes):
        raise SystemExit("the shard did not decide as the table")
    n = len(votes)
    row(
        "put and decide",
        n / seconds / 1e6,
        "M votes/CPU-s",
        ">= 1.5",
        f"{seconds / alone:.1f} x the bare table",
    )
    row("answers", sum(map(len, answers)) / n, "B a vote", "")
    data = counter.dump()
    tuples = counter.stats["table"]["tuples"]
    row(f"dump of the shard, {tuples:,} tuples", len(data) / tuples, "B a tuple", "<= 26")


PARTS = {"snapshot": snapshot, "message": message, "shard": shard}


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART")
    parser.add_argument("--votes", type=int, default=2_000_000, metavar="N")
    options = parser.parse_args()
    votes = stream(options.votes)
    print("| what | here | bar | limit in this run |\n|---|---:|---:|---|")
    for name in options.parts or PARTS:
        PARTS[name](votes)


if __name__ == "__main__":
    main()
