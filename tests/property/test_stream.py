# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The head of a stream against a dict of bytes: any order, overlaps, holes, conflicts."""

import itertools
import random

from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.stream import RANGES_MAX, STREAM_MAX, StreamOracle
from support.examples import examples

from zanon_net._core import Stream

BASES = st.one_of(st.integers(0, 2**32 - 1), st.integers(2**32 - 300, 2**32 - 1))
CONTENT = bytes((7 * i + i // 251) % 256 for i in range(STREAM_MAX + 3000))

OFFSETS = st.one_of(
    st.integers(0, 120),
    st.integers(0, 3000),
    st.integers(STREAM_MAX - 60, STREAM_MAX + 3),
    st.sampled_from([2**31 - 1, 2**31, 2**32 - 1, 2**32 - 20]),
)
PIECES = st.tuples(OFFSETS, st.one_of(st.integers(0, 40), st.integers(0, 2000)))


def genuine(offset: int, length: int) -> bytes:
    return CONTENT[offset : offset + length] if offset < len(CONTENT) else bytes(length)


def compare(base: int, pieces: list[tuple[int, bytes]]) -> StreamOracle:
    """Adds the pieces to both; every answer and every head must agree."""
    stream, oracle = Stream(base), StreamOracle()
    for offset, data in pieces:
        answer = stream.add((base + offset) % 2**32, data)
        assert answer == oracle.add(offset, data), (offset, len(data))
        if answer != "conflict":
            assert stream.head() == oracle.head()
    return oracle


@given(base=BASES, pieces=st.lists(PIECES, max_size=40))
def test_pieces_of_one_content(base: int, pieces: list[tuple[int, int]]) -> None:
    oracle = compare(base, [(offset, genuine(offset, length)) for offset, length in pieces])
    assert not oracle.tainted
    assert oracle.head() == CONTENT[: len(oracle.head())]


@given(
    base=BASES, pieces=st.lists(st.tuples(st.integers(0, 60), st.binary(max_size=3)), max_size=60)
)
def test_pieces_of_any_content(base: int, pieces: list[tuple[int, bytes]]) -> None:
    compare(base, pieces)


@given(
    base=BASES,
    starts=st.lists(st.integers(0, 30), min_size=15, max_size=60),
    length=st.integers(1, 4),
)
def test_more_holes_than_there_is_room_for(base: int, starts: list[int], length: int) -> None:
    pieces = [(5 * start, genuine(5 * start, length)) for start in starts]
    oracle = compare(base, pieces)
    assert oracle.ranges(set(oracle.byte)) <= RANGES_MAX


@settings(max_examples=examples(50))
@given(base=BASES, cuts=st.sets(st.integers(1, 2999), max_size=14), order=st.randoms())
def test_any_cut_in_any_order_gives_the_whole(
    base: int, cuts: set[int], order: random.Random
) -> None:
    bounds = sorted({0, 3000, *cuts})
    pieces = [(a, CONTENT[a:b]) for a, b in itertools.pairwise(bounds)]
    order.shuffle(pieces)
    assert compare(base, pieces).head() == CONTENT[:3000]


def test_a_conflict_taints_for_good() -> None:
    stream = Stream(0)
    assert stream.add(0, b"abc") == "grew"
    assert stream.add(2, b"xd") == "conflict"
    assert stream.add(3, b"d") == "conflict"
    assert stream.add(0, b"abc") == "conflict"


def test_the_bound_is_exact() -> None:
    stream = Stream(9)
    assert stream.add(9, CONTENT[: STREAM_MAX - 1]) == "grew"
    assert stream.add(9 + STREAM_MAX, b"x") == "outside"
    assert stream.add(9 + STREAM_MAX - 1, CONTENT[STREAM_MAX - 1 :][:5]) == "grew"
    assert stream.head() == CONTENT[:STREAM_MAX]
    assert Stream(9).add(8, b"xy") == "outside"


@given(base=BASES, steps=st.lists(st.one_of(PIECES, st.integers(0, 3000)), max_size=30))
def test_what_was_read_makes_room_and_the_rest_stays(
    base: int, steps: list[tuple[int, int] | int]
) -> None:
    """A piece of the content, or a move of the base."""
    stream, oracle, origin = Stream(base), StreamOracle(), 0
    for step in steps:
        if isinstance(step, int):
            stream.consume(step)
            origin += step
            oracle.byte = {p - step: b for p, b in oracle.byte.items() if p >= step}
        else:
            offset, length = step
            data = genuine(origin + offset, length) if offset < STREAM_MAX else b"x"
            answer = stream.add((base + origin + offset) % 2**32, data)
            assert answer == oracle.add(offset, data)
        assert stream.head() == oracle.head()
        assert stream.first == min(oracle.byte, default=STREAM_MAX)
        holes = oracle.ranges(set(oracle.byte)) > 1 or stream.first != 0
        assert stream.has_hole == (bool(oracle.byte) and holes)
