# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Coarse packets of connections that lose, repeat and turn round segments: each byte beside a
second implementation, and what must hold of the numbers whoever made them."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.coarse import BLOCK
from oracle.packets import MASKED, Checker, Fates, found_in, inner, payload_of
from oracle.rules import Rules
from scenario.crowd import KEY
from scenario.transfers import Plan, Transfer
from support.examples import examples
from support.packet_run import Emitted, emitted
from support.packets import ACK, FIN, SECOND, SERVER_ADDRESS, SYN, Frame, merged

pytestmark = pytest.mark.source

HOLD = 10 * SECOND  # more than the connections last: what becomes of them is known at their start
RULES = Rules(z=2, window_ns=60 * SECOND, rotate_ns=60 * SECOND, key=KEY, coarse=True)
SIX = {"client": "fd00:7::1", "server": "2001:db8:7::53"}


def left_of(frames: Sequence[Frame], **more: Any) -> Emitted:
    """What leaves where the name is withheld."""
    chosen = {"z": 2, "hold_ns": HOLD, "coarse_suppressed": True, "window_ns": 60 * SECOND}
    return emitted(frames, **(chosen | more))


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment's place, its numbers not made relative to anything."""

    sender: int
    flags: int
    seq: int
    ack: int
    length: int
    sacks: tuple[int, ...]


def segment_of(frame: Frame, port: int = 443) -> Segment:
    """The segment in a frame."""
    n, packet = found_in(frame.data), inner(frame.data)
    rest = packet[20 if packet[0] >> 4 == 4 else 40 :]
    sender = int(n.ports[0] == port)
    return Segment(sender, rest[13], n.seq, n.ack, len(payload_of(frame.data)), n.sacks)


def random_plan(dice: random.Random) -> Plan:
    """A connection, whose numbers wrap or not."""
    near = 2**32 - dice.randrange(1, 60_000)
    return Plan(
        sizes=(dice.choice((0, 3000, 40_000)), dice.choice((0, BLOCK, 50_000, 5 * BLOCK))),
        starts=(dice.choice((near, dice.randrange(2**32))), dice.choice((near, 7, 2**31))),
        segment=dice.choice((536, 1460, 1460, 9000, 40_000)),
        faults=dice.choice((0.0, 0.1, 0.4)),
        whole=dice.random() < 0.8,
        closes=dice.random() < 0.8,
        **(SIX if dice.random() < 0.3 else {}),
    )


def check_consistent(given: Iterable[Frame], left: Iterable[Frame]) -> None:
    """A number stands for the same one everywhere, and their order stays; but for what is behind a
    FIN they are multiples of a block apart."""
    places: list[dict[int, int]] = [{}, {}]
    fins: list[set[int]] = [set(), set()]
    origin: dict[int, int] = {}

    def same(side: int, number: int, shown: int) -> None:
        origin.setdefault(side, number)
        at = (number - origin[side] + 2**31) % 2**32 - 2**31
        assert places[side].setdefault(at, shown) == shown

    for before, after in zip(map(segment_of, given), map(segment_of, left), strict=True):
        own, other, syn = before.sender, 1 - before.sender, int(before.flags & SYN != 0)
        assert (own, before.flags) == (after.sender, after.flags)
        same(own, before.seq + syn, (after.seq + syn) % 2**32)
        end = before.seq + syn + before.length
        same(own, end, (after.seq + syn + after.length) % 2**32)
        if before.flags & ACK:
            same(other, before.ack, after.ack)
        if before.flags & FIN:
            fins[own].add((end + 1 - origin[own] + 2**31) % 2**32 - 2**31)
    for side in (0, 1):
        at = sorted(places[side])
        shown = [places[side][one] for one in at]
        steps = [(b - a) % 2**32 for a, b in pairwise(shown)]
        assert sum(steps) < at[-1] - at[0] + BLOCK + 1
        assert all(
            step % BLOCK == (one in fins[side]) for one, step in zip(at[1:], steps, strict=True)
        )


@settings(max_examples=examples(60, 8))
@given(seed=st.integers(0, 1 << 32))
def test_connections_beside_the_oracle(key_file: str, seed: int) -> None:
    dice = random.Random(seed)
    plan = random_plan(dice)
    frames = Transfer(plan, dice).frames
    fates = Fates(RULES, HOLD, frames).run()
    run = left_of(frames, key_file=key_file, batch=dice.choice((1, 50, 1 << 14)))
    leaving = [(fate, frame) for fate, frame in zip(fates, frames, strict=True)
               if fate.what == MASKED]  # fmt: skip
    assert [frame.t_ns for _fate, frame in leaving] == [frame.t_ns for frame in run.frames]
    checker = Checker(RULES, cut=False)
    for (fate, frame), left in zip(leaving, run.frames, strict=True):
        checker.check(fate, frame, left)
    check_consistent((frame for _fate, frame in leaving), run.frames)


def sent_in(frames: Iterable[Frame]) -> set[tuple[int, int, int, int]]:
    """(side, flags, number from its first one on, bytes) of each segment that is not empty, or
    begins or ends a stream."""
    first: dict[int, int] = {}
    found = set()
    for one in map(segment_of, frames):
        at = (one.seq - first.setdefault(one.sender, one.seq)) % 2**32
        if one.length or one.flags & (SYN | FIN):
            found.add((one.sender, one.flags, at, one.length))
    return found


@settings(max_examples=examples(30))
@given(
    seed=st.integers(0, 1 << 32),
    blocks=st.integers(1, 5),
    less=st.tuples(st.integers(0, BLOCK - 1), st.integers(0, BLOCK - 1)),
)
def test_sizes_that_round_alike_look_alike(seed: int, blocks: int, less: tuple[int, int]) -> None:
    """But for empty segments, acknowledgements of a block that come later or not, and times."""
    plan = random_plan(random.Random(seed))
    found = []
    for missing in less:
        sizes = (3000, blocks * BLOCK - missing)
        frames = Transfer(replace(plan, sizes=sizes, faults=0.0), random.Random(seed)).frames
        found.append(sent_in(left_of(frames).frames))
    assert found[0] == found[1]
    sizes_shown = [sum(one[3] for one in found[0] if one[0] == side) for side in (0, 1)]
    assert sizes_shown == [BLOCK, blocks * BLOCK]


@settings(max_examples=examples(10))
@given(seed=st.integers(0, 1 << 32))
def test_batches_and_workers_change_no_byte(key_file: str, seed: int) -> None:
    dice = random.Random(seed)
    ends = [{"client": f"10.7.0.{n}", "server": SERVER_ADDRESS} for n in range(1, 6)]
    plans = [
        replace(random_plan(dice), host=b"%d.example" % n, **one) for n, one in enumerate(ends)
    ]
    talks = [Transfer(plan, dice) for plan in plans]
    frames = merged(talk.frames for talk in talks)
    chosen = {"key_file": key_file, "hold_ns": dice.choice((0, SECOND // 10, HOLD))}
    first = left_of(frames, **chosen)
    assert first.stats["packets_masked"] > 0
    for more in ({"batch": 1}, {"batch": 13}, {"workers": 2}, {"workers": 3, "batch": 50}):
        run = left_of(frames, **chosen, **more)
        assert run.frames == first.frames
        assert run.dropped() == first.dropped()
