# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Counting over many probes: vote messages, the counter of a shard, and snapshots of tables."""

from typing import Any

import numpy as np
import pytest
from measuring import Measure, Size, peer
from vote_stream import MESSAGE, PROBES, WINDOW_NS, Votes, Z, messages_of, observe, stream

from zanon_net._core import VoteShard, ZTable, read_answers

VOTES = 200_000
NUMPY, TABLE, OBSERVE = "NumPy copying 29 bytes a vote", "the bare table", "observe"


def copied(votes: Votes) -> int:
    """Writes the smallest possible messages: 29 bytes a vote. Returns their bytes."""
    form = np.dtype([("t_ns", "<i8"), ("user", "u1", 5), ("lo", "<u8"), ("hi", "<u8")])
    written = 0
    for at in range(0, len(votes), MESSAGE):
        v = votes.part(slice(at, at + MESSAGE))
        out = np.empty(len(v), form)
        out["t_ns"], out["lo"], out["hi"] = v.t_ns, v.lo, v.hi
        out["user"] = v.user.view(np.uint8).reshape(-1, 8)[:, :5]
        written += len(out.tobytes())
    return written


@pytest.mark.parametrize("who", ["ours", peer(NUMPY)])
def test_messages(who: str, size: Size, measure: Measure) -> None:
    votes = stream(size.of(VOTES))
    group = "votes: messages of four probes"
    if who == NUMPY:
        measure(group, copied, len(votes), prepare=lambda: (votes,))
        return
    each = sum(map(len, messages_of(votes))) / len(votes)
    facts = {"bytes a vote:": f"{each:.1f}"}
    measure(group, messages_of, len(votes), prepare=lambda: (votes,), **facts)


@pytest.mark.parametrize("who", ["ours", peer(TABLE)])
def test_shard(who: str, size: Size, measure: Measure) -> None:
    """One shard takes the messages of four probes and decides."""
    votes = stream(size.of(VOTES))
    group = "votes: a shard decides"

    def table() -> tuple[Any, ...]:
        return ZTable(Z, WINDOW_NS, keep=Z), votes, 0, len(votes)

    if who == TABLE:
        measure(group, observe, len(votes), prepare=table)
        return
    messages = messages_of(votes)

    def job(counter: VoteShard) -> list[bytes]:
        answers: list[bytes] = []
        for at in range(0, len(messages), PROBES):
            for data in messages[at : at + PROBES]:
                counter.put(data)
            answers.extend(counter.decide())
        return answers

    answers = measure(group, job, len(votes), prepare=lambda: (VoteShard(Z, WINDOW_NS),))
    yes = sum(int(read_answers(answer)["answers"].sum()) for answer in answers)
    assert yes == observe(*table()).sum()


@pytest.mark.parametrize("keep", [None, Z, 1000])
@pytest.mark.parametrize("who", ["dump", "load", peer(OBSERVE)])
def test_snapshot(keep: int | None, who: str, size: Size, measure: Measure) -> None:
    """Time for a tuple, next to the time for an observation. A restored table decides alike."""
    votes = stream(size.of(VOTES))
    group = f"votes: snapshot of a table with keep={keep}"
    half = len(votes) // 2

    def empty() -> tuple[Any, ...]:
        return ZTable(Z, WINDOW_NS, keep=keep), votes, 0, half

    if who == OBSERVE:
        measure(group, observe, half, prepare=empty)
        return
    table = empty()[0]
    observe(table, votes, 0, half)
    tuples = table.stats["tuples"]
    data = table.dump()
    if who == "load":
        restored = measure(group, ZTable.load, tuples, prepare=lambda: (data,))
        later = [observe(each, votes, half, len(votes)) for each in (table, restored)]
        assert np.array_equal(*later)
        return
    measure(group, table.dump, tuples, **{"bytes a tuple:": f"{len(data) / tuples:.1f}"})
