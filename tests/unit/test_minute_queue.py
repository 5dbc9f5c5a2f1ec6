# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""engine/minute_queue: entries leave by minute, then by rank, then by arrival, as Python sorts."""

import random

from hypothesis import given
from hypothesis import strategies as st
from support.examples import each

from zanon_net import _core

Entry = tuple[int, int, bytes]  # minute, rank, content

NOW = 29_000_000  # minutes since the epoch
RANK_MAX = 2**64 - 1
# Equal ranks, ranks that differ in the lowest or the highest bits, and any ranks.
RANKS = st.sampled_from([0, 1, 2, 2**44, 2**54, 2**63, RANK_MAX]) | st.integers(0, RANK_MAX)
MINUTES = st.integers(NOW, NOW + 3) | st.integers(-(2**31), 2**31 - 1)


class Pair:
    """A queue, and a list of the entries that it contains."""

    def __init__(self) -> None:
        self.queue = _core.MinuteQueue()
        self.waiting: list[Entry] = []

    def add(self, minute: int, rank: int, content: bytes) -> None:
        self.queue.add(minute, rank, content)
        self.waiting.append((minute, rank, content))

    def check_leave(self, before: int) -> None:
        leaving = [entry for entry in self.waiting if entry[0] < before]
        self.waiting = [entry for entry in self.waiting if entry[0] >= before]
        leaving.sort(key=lambda entry: entry[:2])  # which keeps the order of arrival
        assert self.queue.leave(before) == [content for _, _, content in leaving]


@given(st.lists(st.lists(st.tuples(MINUTES, RANKS, st.integers(0, 40))), max_size=4), st.data())
def test_rounds(rounds: list[list[tuple[int, int, int]]], data: st.DataObject) -> None:
    pair, number = Pair(), 0
    for entries in rounds:
        for minute, rank, padding in entries:
            pair.add(minute, rank, b"%d " % number + bytes(padding))
            number += 1
        pair.check_leave(data.draw(MINUTES))
    pair.check_leave(2**31)
    assert pair.waiting == []


@each("count", [1, 2, 3, 300, 5000])
@each("minutes", [1, 2, 2000, 2**32])
@each("ranks", [1, 2, 7, 2**64])
def test_many(count: int, minutes: int, ranks: int) -> None:
    """Ranks are multiples of a large number, so the digits that are sorted first differ."""
    draw = random.Random(f"{count} {minutes} {ranks}")
    pair, step = Pair(), 2**64 // ranks
    for number in range(count):
        minute = draw.randrange(minutes) - minutes // 2
        pair.add(minute, draw.randrange(ranks) * step, b"%d" % number)
    pair.check_leave(0)
    pair.check_leave(2**31)
    assert pair.queue.leave(2**31) == []
