# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The z-table against brute force, with time going every way."""

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from oracle import ZOracle

from zanon_net._core import ZTable

SECOND = 10**9
DAY = 86_400 * SECOND
YEAR = 365 * DAY
LAST_NS = 2**63 - 1  # in the year 2262

WINDOWS = st.one_of(
    st.integers(1, 20),
    st.sampled_from([SECOND, 3600 * SECOND, DAY, 10 * YEAR]),
    st.integers(1, 10 * YEAR),
)
ZS = st.integers(1, 6)
ATTRIBUTES = st.integers(0, 3)
USERS = st.integers(0, 9)


def clamp(t_ns: int) -> int:
    """The nearest time the table takes."""
    return min(max(t_ns, 0), LAST_NS)


def jumps(window_ns: int) -> st.SearchStrategy[int]:
    """Steps of time: none, tiny, human, and just around the window."""
    steps = st.one_of(
        st.integers(0, 3),
        st.sampled_from([SECOND, 60 * SECOND, 3600 * SECOND, DAY, YEAR, 20 * YEAR]),
        st.integers(window_ns - 1, window_ns + 1),
        st.integers(0, 2 * window_ns),
        st.integers(0, window_ns // 4),
    )
    return steps | steps.map(lambda step: -step)


@st.composite
def streams(draw: st.DrawFn, *, ordered: bool) -> tuple[int, list[tuple[int, int, int]]]:
    """(window, observations): a random walk in time, or in time order."""
    window_ns = draw(WINDOWS)
    step = jumps(window_ns).map(abs) if ordered else jumps(window_ns)
    t_ns = draw(st.sampled_from([0, window_ns, 1_700_000_000 * SECOND, LAST_NS - window_ns]))
    observations = []
    for delta in draw(st.lists(step, max_size=80)):
        t_ns = clamp(t_ns + delta)
        observations.append((t_ns, draw(USERS), draw(ATTRIBUTES)))
    return window_ns, observations


def feed(table: ZTable, observation: tuple[int, int, int]) -> bool:
    """One observation with user and attribute spelled as bytes, and the table checked after it."""
    t_ns, user, attribute = observation
    released = table.observe(t_ns, b"user %d" % user, b"name %d" % attribute)
    table.check()
    return released


@given(streams(ordered=True), ZS, st.integers(0, 8) | st.none())
def test_in_order_it_is_the_oracle_for_every_keep(
    stream: tuple[int, list[tuple[int, int, int]]], z: int, more: int | None
) -> None:
    window_ns, observations = stream
    table = ZTable(z, window_ns, keep=None if more is None else z + more)
    oracle = ZOracle(z, window_ns)
    for observation in observations:
        assert feed(table, observation) == oracle.observe(*observation)
        t_ns, _, attribute = observation
        users = oracle.users(t_ns, attribute)
        known = table.count(b"name %d" % attribute)
        assert known == (users if more is None else min(users, z + more))


@given(
    streams(ordered=False),
    ZS,
    st.integers(0, 8) | st.none(),
    st.integers(1, 50),
    st.integers(1, 50),
    st.sampled_from([None, 1, SECOND, DAY]),
    st.sampled_from([1, 2, 3, 256]),
)
def test_no_input_makes_it_release_what_the_oracle_suppresses(
    stream: tuple[int, list[tuple[int, int, int]]],
    z: int,
    more: int | None,
    max_tuples: int,
    max_attributes: int,
    max_jump_ns: int | None,
    rebase_after: int,
) -> None:
    window_ns, observations = stream
    table = ZTable(
        z,
        window_ns,
        keep=None if more is None else z + more,
        max_tuples=max_tuples,
        max_attributes=max_attributes,
        max_jump_ns=max_jump_ns,
        rebase_after=rebase_after,
    )
    oracle = ZOracle(z, window_ns)
    for observation in observations:
        expected = oracle.observe(*observation)
        assert not feed(table, observation) or expected
    stats = table.stats
    refused = stats["too_late"] + stats["late_deep"] + stats["no_room"]
    assert stats["released"] + stats["below_z"] + refused == len(observations)
    assert stats["tuples"] <= max_tuples
    assert stats["attributes"] <= max_attributes


@given(streams(ordered=False), ZS)
def test_late_observations_count_for_those_on_time(
    stream: tuple[int, list[tuple[int, int, int]]], z: int
) -> None:
    """Each user seen once and no list deeper than the limit: on time, the oracle's decision."""
    window_ns, observations = stream
    table, oracle, clock = ZTable(z, window_ns), ZOracle(z, window_ns), 0
    for i, (t_ns, _, attribute) in enumerate(observations[:60]):
        if t_ns < clock - window_ns:
            continue
        on_time = t_ns >= clock
        clock = max(clock, t_ns)
        expected = oracle.observe(t_ns, i, attribute)
        released = feed(table, (t_ns, i, attribute))
        assert released <= expected
        if on_time:
            assert released == expected


class AnyOrder(RuleBasedStateMachine):
    """Whatever comes: no over-release, no broken invariant, true counters."""

    @initialize(
        z=ZS,
        window_ns=WINDOWS,
        more=st.integers(0, 6) | st.none(),
        max_tuples=st.integers(1, 50),
        max_attributes=st.integers(1, 50),
        max_jump_ns=st.sampled_from([None, None, SECOND, YEAR]),
        rebase_after=st.integers(1, 4),
    )
    def open(
        self,
        z: int,
        window_ns: int,
        more: int | None,
        max_tuples: int,
        max_attributes: int,
        max_jump_ns: int | None,
        rebase_after: int,
    ) -> None:
        self.window_ns, self.rebase_after, self.max_jump_ns = window_ns, rebase_after, max_jump_ns
        self.keep = None if more is None else z + more
        self.table = ZTable(
            z,
            window_ns,
            keep=self.keep,
            max_tuples=max_tuples,
            max_attributes=max_attributes,
            max_jump_ns=max_jump_ns,
            rebase_after=rebase_after,
        )
        self.oracle = ZOracle(z, window_ns)
        self.caps = max_tuples, max_attributes
        self.t_ns = 1_700_000_000 * SECOND
        self.fed = 0

    @rule(data=st.data(), user=USERS, attribute=ATTRIBUTES)
    def observe(self, data: st.DataObject, user: int, attribute: int) -> None:
        self.t_ns = clamp(self.t_ns + data.draw(jumps(self.window_ns)))
        self._observe(self.t_ns, user, attribute)

    @rule(user=USERS, attribute=ATTRIBUTES)
    def repeat(self, user: int, attribute: int) -> None:
        self._observe(self.t_ns, user, attribute)

    @rule(first=st.integers(0, 100), attribute=ATTRIBUTES, n=st.integers(1, 80))
    def crowd(self, first: int, attribute: int, n: int) -> None:
        for user in range(first, first + n):
            self.t_ns = clamp(self.t_ns + 1)
            self._observe(self.t_ns, user, attribute)

    @rule(z=ZS)
    def change_z(self, z: int) -> None:
        if self.keep is None or z <= self.keep:
            self.table.set_z(z)
            self.oracle.z = z

    @rule()
    def clear(self) -> None:
        self.table.clear()
        assert self.table.stats["tuples"] == self.table.stats["attributes"] == 0

    def _observe(self, t_ns: int, user: int, attribute: int) -> None:
        self.fed += 1
        expected = self.oracle.observe(t_ns, user, attribute)
        assert not feed(self.table, (t_ns, user, attribute)) or expected

    @invariant()
    def counters(self) -> None:
        if not hasattr(self, "table"):
            return
        self.table.check()
        stats = self.table.stats
        assert stats["observations"] == self.fed
        assert stats["tuples"] <= self.caps[0]
        assert stats["attributes"] <= self.caps[1]


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(
    max_examples=150,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@given(st.data(), ZS, st.integers(0, 8) | st.none())
@settings(max_examples=30, deadline=None)
def test_a_batch_decides_as_one_by_one(data: st.DataObject, z: int, more: int | None) -> None:
    n = data.draw(st.integers(0, 600))
    seed = random.Random(data.draw(st.integers(0, 2**32)))
    window_ns = data.draw(st.integers(1, 300))
    t = np.cumsum([seed.choice([0, 0, 1, 2, 5, -3]) for _ in range(n)], dtype=np.int64) + 10_000
    user = np.array([seed.randrange(30) for _ in range(n)], np.uint64)
    attribute = np.array([min(seed.randrange(40), seed.randrange(40)) for _ in range(n)], np.uint64)
    keep = None if more is None else z + more
    batch, single = ZTable(z, window_ns, keep=keep), ZTable(z, window_ns, keep=keep)
    cut = data.draw(st.integers(0, n))
    decisions = [
        *batch.observe_batch(t[:cut], user[:cut], attribute[:cut]),
        *batch.observe_batch(t[cut:], user[cut:], attribute[cut:]),
    ]
    batch.check()
    for i in range(n):
        one = single.observe_batch(t[i : i + 1], user[i : i + 1], attribute[i : i + 1])
        assert one[0] == decisions[i]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_long_ordered_streams_equal_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    z, window_ns = rng.choice([2, 5, 20]), rng.choice([50, 1_000, 10_000])
    tables = [ZTable(z, window_ns, keep=keep) for keep in (None, z, z + 3, 4 * z)]
    oracle, t_ns = ZOracle(z, window_ns), 1_700_000_000 * SECOND
    for _ in range(3_000):
        t_ns += rng.choice([0, 0, 1, 1, 7, window_ns // 10])
        observation = (t_ns, rng.randrange(200), int(rng.paretovariate(0.6)) % 60)
        expected = oracle.observe(*observation)
        assert [feed(table, observation) for table in tables] == [expected] * len(tables)
