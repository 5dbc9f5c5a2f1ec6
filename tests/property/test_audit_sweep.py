# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The audit's count of users next to brute force over all pairs, and next to the z-table."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.ztable import ZOracle
from support.examples import examples

from zanon_net import ConfigError, ZTable
from zanon_net.audit.raw import sweep
from zanon_net.audit.raw.sweep import NOBODY, Observations, count_users

WINDOW = 1000
# Times that are equal, exactly a window apart, or one ns more or less.
TIMES = st.builds(
    lambda windows, more: windows * WINDOW + more, st.integers(0, 5), st.integers(-1, 1)
)
ROWS = st.lists(
    st.tuples(TIMES | st.integers(0, 5 * WINDOW), st.integers(0, 12), st.integers(0, 3)),
    max_size=200,
)


def observations(rows: list[tuple[int, int, int]]) -> Observations:
    times, users, names = zip(*rows, strict=True) if rows else ((), (), ())
    return Observations(
        np.array(times, np.int64), np.array(users, np.uint32), np.array(names, np.uint32)
    )


def brute_force(rows: list[tuple[int, int, int]]) -> list[int]:
    oracle = ZOracle(1, WINDOW)
    for t_ns, user, name in rows:
        if user != NOBODY:
            oracle.seen[name].append((t_ns, user))
    return [oracle.users(t_ns, name) for t_ns, _user, name in rows]


@settings(max_examples=examples(150, 8))
@given(rows=ROWS, asked=st.lists(st.tuples(TIMES, st.just(NOBODY), st.integers(0, 3)), max_size=9))
def test_counts_are_those_of_all_pairs(
    rows: list[tuple[int, int, int]], asked: list[tuple[int, int, int]]
) -> None:
    every = rows + asked
    counts = count_users(observations(every), WINDOW)
    assert counts.tolist() == brute_force(every)
    for z in range(1, 11):
        assert [n >= z for n in counts] == [n >= z for n in brute_force(every)]


@settings(max_examples=examples(30))
@given(rows=ROWS, most=st.integers(1, 40))
def test_counts_do_not_depend_on_the_parts(rows: list[tuple[int, int, int]], most: int) -> None:
    memory = len(rows) * sweep.ROW_BYTES + most * sweep.SWEPT_BYTES
    with suppress(ConfigError):
        counts = count_users(observations(rows), WINDOW, memory=memory)
        assert counts.tolist() == brute_force(rows)


def test_a_large_name_is_counted_in_stretches() -> None:
    rows = [(t * 100, t % 7, 0) for t in range(300)] + [(t, t, 1) for t in range(5)]
    memory = len(rows) * sweep.ROW_BYTES + 30 * sweep.SWEPT_BYTES
    parts = list(sweep.parts_of(observations(rows), WINDOW, 30))
    assert sum(part.earlier > 0 for part in parts) > 10
    assert count_users(observations(rows), WINDOW, memory=memory).tolist() == brute_force(rows)


def test_too_little_memory_is_an_error() -> None:
    rows = [(0, user, 0) for user in range(100)]
    with pytest.raises(ConfigError, match="--memory"):
        count_users(observations(rows), WINDOW, memory=len(rows) * sweep.ROW_BYTES)


@pytest.mark.parametrize("z", [1, 2, 5, 20])
def test_counts_decide_as_the_z_table_does(z: int) -> None:
    draw, size = np.random.default_rng(z), 50_000
    times = np.cumsum(draw.integers(1, 50, size)).astype(np.int64)
    users = draw.integers(0, 500, size, dtype=np.uint32)
    names = (draw.zipf(1.3, size) % 5000).astype(np.uint32)
    window = 100_000
    table = ZTable(z, window, keep=None)
    nothing = np.zeros(size, np.uint64)
    released = table.observe_hashed_batch(
        times, users.astype(np.uint64) + 1, names.astype(np.uint64) + 1, nothing
    )
    counts = count_users(Observations(times, users, names), window, memory=64 << 20)
    assert (counts >= z).tolist() == released.tolist()
    assert released.any()
