# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The z-table against brute force, with time going every way.

All of it twice: with the table that people use, and with one whose records are so small that the
few users of a test bring an attribute to every form it can take.
"""

import itertools
import random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from oracle.ztable import ZOracle
from support.examples import examples
from support.small_ztable import TABLES, AnyTable, SmallZTable

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
MORE = st.integers(0, 8) | st.none()  # how much `keep` is above z; None: all users are kept

both = pytest.mark.parametrize("new", TABLES)


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


def feed(table: AnyTable, observation: tuple[int, int, int]) -> bool:
    """One observation with user and attribute spelled as bytes, and the table checked after it."""
    t_ns, user, attribute = observation
    released = table.observe(t_ns, b"user %d" % user, b"name %d" % attribute)
    table.check()
    return released


@both
@given(streams(ordered=True), ZS, MORE)
def test_in_order_it_is_the_oracle_for_every_keep(
    new: type[AnyTable], stream: tuple[int, list[tuple[int, int, int]]], z: int, more: int | None
) -> None:
    window_ns, observations = stream
    table = new(z, window_ns, keep=None if more is None else z + more)
    oracle = ZOracle(z, window_ns)
    for observation in observations:
        assert feed(table, observation) == oracle.observe(*observation)
        t_ns, _, attribute = observation
        users = oracle.users(t_ns, attribute)
        known = table.count(b"name %d" % attribute)
        assert known == (users if more is None else min(users, z + more))


@pytest.mark.source  # nothing but C counts at another time than the clock
@given(streams(ordered=True), ZS, MORE, st.integers(1, 3))
@example((1, [(0, 0, 0), (0, 2, 0), (0, 3, 0), (1, 1, 0)]), 1, None, 1)  # a list with a later user
def test_a_count_at_any_time_never_is_too_high(
    stream: tuple[int, list[tuple[int, int, int]]], z: int, more: int | None, step: int
) -> None:
    """From the clock on it is the oracle's; before, those who came again since are not known."""
    window_ns, observations = stream
    table = SmallZTable(z, window_ns, keep=None if more is None else z + more)
    oracle, most = ZOracle(z, window_ns), 10 if more is None else z + more
    for observation in observations:
        feed(table, observation)
        oracle.observe(*observation)
    clock = observations[-1][0] if observations else 0
    times = {t for t, _, _ in observations[::step]}
    for t_ns in {clamp(t + by) for t in times for by in (-1, 0, 1, window_ns, window_ns + 1)}:
        for attribute in range(4):
            known = table.count_at(b"name %d" % attribute, t_ns)
            users = oracle.users(t_ns, attribute)
            assert known == min(users, most) if t_ns >= clock else known <= users


@both
@given(streams(ordered=False), ZS)
def test_late_observations_count_for_those_on_time(
    new: type[AnyTable], stream: tuple[int, list[tuple[int, int, int]]], z: int
) -> None:
    """Each user seen once and no list deeper than the limit: on time, the oracle's decision."""
    window_ns, observations = stream
    table, oracle, clock = new(z, window_ns), ZOracle(z, window_ns), 0
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


# ---- every time there is ------------------------------------------------------------------------


def edges(window_ns: int) -> list[int]:
    """Times at which a sum or a difference could go wrong, and some in between."""
    near = {0, 1, window_ns - 1, window_ns, window_ns + 1, 2 * window_ns, 2 * window_ns + 1}
    near |= {clamp(2**bits + more) for bits in (31, 32, 53, 62) for more in (-1, 0, 1)}
    return sorted({clamp(t) for t in near} | {LAST_NS - clamp(t) for t in near})


@both
@pytest.mark.family(11)
@pytest.mark.parametrize("keep", [None, 2])
@pytest.mark.parametrize("window_ns", [1, 2, SECOND, DAY, 10 * YEAR, 3660 * DAY])
def test_every_edge_of_time_against_every_other(
    new: type[AnyTable], window_ns: int, keep: int | None
) -> None:
    table = new(2, window_ns, keep=keep, max_tuples=100, max_attributes=10, rebase_after=2)
    for first, second in itertools.product(edges(window_ns), repeat=2):
        table.clear()
        oracle = ZOracle(2, window_ns)
        assert not feed(table, (first, 0, 0))
        oracle.observe(first, 0, 0)
        expected = oracle.observe(second, 1, 0)
        if second >= first:
            assert feed(table, (second, 1, 0)) == expected
        else:
            assert feed(table, (second, 1, 0)) <= expected
        for t_ns, user in ((first, 2), (second, 3), (0, 4), (LAST_NS, 5), (0, 0), (0, 6), (0, 7)):
            expected = oracle.observe(t_ns, user, 0)
            assert feed(table, (t_ns, user, 0)) <= expected


# ---- state machines -----------------------------------------------------------------------------


class AnyOrder(RuleBasedStateMachine):
    """Whatever comes: no over-release, no broken invariant, true counters."""

    new: type[AnyTable] = ZTable

    @initialize(
        z=ZS,
        window_ns=WINDOWS,
        more=MORE,
        max_tuples=st.integers(1, 50) | st.just(1000),
        max_attributes=st.integers(1, 50),
        max_jump_ns=st.sampled_from([None, None, 1, SECOND, YEAR, LAST_NS]),
        rebase_after=st.sampled_from([1, 2, 3, 4, 256]),
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
        self.window_ns = window_ns
        self.keep = None if more is None else z + more
        self.table = self.new(
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
        self.seen: list[tuple[int, int, int]] = []
        self.fed = 0

    @rule(data=st.data(), user=USERS, attribute=ATTRIBUTES)
    def observe(self, data: st.DataObject, user: int, attribute: int) -> None:
        self.t_ns = clamp(self.t_ns + data.draw(jumps(self.window_ns)))
        self._observe(self.t_ns, user, attribute)

    @rule(user=USERS, attribute=ATTRIBUTES)
    def at_once(self, user: int, attribute: int) -> None:
        self._observe(self.t_ns, user, attribute)

    @rule(data=st.data())
    def duplicate(self, data: st.DataObject) -> None:
        if self.seen:
            self._observe(*data.draw(st.sampled_from(self.seen[-20:])))

    @rule(first=st.integers(0, 100), attribute=ATTRIBUTES, n=st.integers(1, 80))
    def crowd(self, first: int, attribute: int, n: int) -> None:
        for user in range(first, first + n):
            self.t_ns = clamp(self.t_ns + 1)
            self._observe(self.t_ns, user, attribute)

    @rule(first=st.integers(0, 1000), n=st.integers(1, 60))
    def many_attributes(self, first: int, n: int) -> None:
        for attribute in range(first, first + n):
            self._observe(self.t_ns, 0, attribute)

    @rule(t_ns=st.sampled_from([0, 1, LAST_NS - 1, LAST_NS]), user=USERS)
    def end_of_time(self, t_ns: int, user: int) -> None:
        self._observe(t_ns, user, 0)

    @rule(z=ZS)
    def change_z(self, z: int) -> None:
        if self.keep is None or z <= self.keep:
            self.table.set_z(z)
            self.oracle.z = z

    @rule()
    def clear(self) -> None:
        self.table.clear()
        self.oracle = ZOracle(self.oracle.z, self.window_ns)  # what was forgotten must not count
        assert self.table.stats["tuples"] == self.table.stats["attributes"] == 0

    def _observe(self, t_ns: int, user: int, attribute: int) -> None:
        self.fed += 1
        self.seen.append((t_ns, user, attribute))
        expected = self.oracle.observe(t_ns, user, attribute)
        assert feed(self.table, (t_ns, user, attribute)) <= expected

    def teardown(self) -> None:
        if not hasattr(self, "table"):
            return
        stats = self.table.stats
        reasons = ("released", "below_z", "too_late", "late_deep", "no_room")
        assert sum(stats[reason] for reason in reasons) == stats["observations"] == self.fed
        assert stats["tuples"] <= self.caps[0]
        assert stats["attributes"] <= self.caps[1]


class InOrder(RuleBasedStateMachine):
    """Time never goes back: tables with every keep decide alike, and as the oracle does."""

    new: type[AnyTable] = ZTable

    @initialize(z=ZS, window_ns=WINDOWS, t_ns=st.sampled_from([0, 1_700_000_000 * SECOND]))
    def open(self, z: int, window_ns: int, t_ns: int) -> None:
        self.z, self.window_ns, self.t_ns = z, window_ns, t_ns
        self.keeps = [z, z + 1, z + 2, 2 * z, 10, 40, None]
        self.tables = [self.new(z, window_ns, keep=keep) for keep in self.keeps]
        self.oracle = ZOracle(z, window_ns)

    @rule(data=st.data(), user=USERS, attribute=ATTRIBUTES)
    def observe(self, data: st.DataObject, user: int, attribute: int) -> None:
        self.t_ns = clamp(self.t_ns + abs(data.draw(jumps(self.window_ns))))
        self._observe(user, attribute)

    @rule(user=USERS, attribute=ATTRIBUTES)
    def at_once(self, user: int, attribute: int) -> None:
        self._observe(user, attribute)

    @rule(first=st.integers(0, 30), attribute=ATTRIBUTES, n=st.integers(1, 40))
    def crowd(self, first: int, attribute: int, n: int) -> None:
        for user in range(first, first + n):
            self.t_ns = clamp(self.t_ns + 1)
            self._observe(user, attribute)

    @rule(data=st.data())
    def change_z(self, data: st.DataObject) -> None:
        self.oracle.z = data.draw(st.integers(1, self.z))
        for table in self.tables:
            table.set_z(self.oracle.z)

    def _observe(self, user: int, attribute: int) -> None:
        expected = self.oracle.observe(self.t_ns, user, attribute)
        users = self.oracle.users(self.t_ns, attribute)
        for keep, table in zip(self.keeps, self.tables, strict=True):
            assert feed(table, (self.t_ns, user, attribute)) == expected
            known = users if keep is None else min(users, keep)
            assert table.count(b"name %d" % attribute) == known


def machines(machine: type[AnyOrder] | type[InOrder], max_examples: int) -> dict[str, type]:
    """A test case of a machine for each layout."""
    found = {}
    for new in TABLES:
        case = type(machine.__name__, (machine,), {"new": new}).TestCase
        case.settings = settings(
            max_examples=examples(max_examples), stateful_step_count=50, deadline=None
        )
        found[f"Test{machine.__name__}{new.__name__}"] = case
    return found


globals().update(machines(AnyOrder, 120) | machines(InOrder, 60))

# ---- more ---------------------------------------------------------------------------------------


@given(st.data(), ZS, MORE)
@settings(max_examples=examples(30), deadline=None)
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
@both
@pytest.mark.parametrize("seed", range(4))
def test_long_ordered_streams_equal_the_oracle(new: type[AnyTable], seed: int) -> None:
    rng = random.Random(seed)
    z, window_ns = rng.choice([2, 5, 20]), rng.choice([50, 1_000, 10_000])
    tables = [new(z, window_ns, keep=keep) for keep in (None, z, z + 3, 4 * z)]
    oracle, t_ns = ZOracle(z, window_ns), 1_700_000_000 * SECOND
    for _ in range(3_000):
        t_ns += rng.choice([0, 0, 1, 1, 7, window_ns // 10])
        observation = (t_ns, rng.randrange(200), int(rng.paretovariate(0.6)) % 60)
        expected = oracle.observe(*observation)
        assert [feed(table, observation) for table in tables] == [expected] * len(tables)
