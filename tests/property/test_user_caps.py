# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Caps against invented users, against brute force, with time going every way."""

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.user_caps import REBASE_AFTER, CappedVote, CapsOracle
from support.engine import make_engine
from support.examples import examples
from support.user_caps import UserCaps

from zanon_net import CapacityError, _core

CAPS = st.fixed_dictionaries({
    "max_per_prefix": st.integers(0, 4),
    "max_names": st.integers(0, 4),
    "min_age_ns": st.sampled_from([0, 0, 0, 1, 5, 30]),
})  # fmt: skip


def a_vote(t_ns: int, user: int, attribute: int, *, is_name: bool = True) -> CappedVote:
    """A vote of one of a network's eight users."""
    return CappedVote(t_ns, user, user // 8, attribute, is_name)


@st.composite
def streams(draw: st.DrawFn) -> tuple[int, list[CappedVote]]:
    """A window, and votes whose times walk forwards and backwards. A vote that comes
    REBASE_AFTER times in a row sets the clock back."""
    window_ns = draw(st.integers(1, 20))
    step = st.sampled_from([0, 0, 0, 1, -1]) | st.integers(-3 * window_ns, 3 * window_ns)
    t_ns, votes = 1000, []
    for delta, user, attribute, is_name, comes_again in draw(
        st.lists(
            st.tuples(step, st.integers(0, 15), st.integers(0, 5).map(lambda n: n // 3 * n),
                      st.integers(0, 9).map(bool), st.integers(0, 40)),
            max_size=100,
        )
    ):  # fmt: skip
        t_ns = max(0, t_ns + delta)
        one = a_vote(t_ns, user, attribute, is_name=is_name)
        votes += [one] * (REBASE_AFTER if comes_again == 40 else 1)
    return window_ns, votes


def most_of_a_network(counted: Sequence[CappedVote], window_ns: int) -> int:
    """The most users of one network in any window."""
    most = 0
    for end in {vote.t_ns for vote in counted}:
        users = defaultdict(set)
        for vote in counted:
            if end - window_ns <= vote.t_ns <= end:
                users[vote.network].add(vote.user)
        most = max([most, *map(len, users.values())])
    return most


def most_names(counted: Sequence[CappedVote], window_ns: int) -> int:
    """The most names of one user in any window."""
    turned = [CappedVote(v.t_ns, v.attribute, v.user, 0) for v in counted if v.is_name]
    return most_of_a_network(turned, window_ns)


@given(streams(), CAPS)
@settings(max_examples=examples(400, 8))
def test_caps_are_the_oracles(stream: tuple[int, list[CappedVote]], caps: dict[str, int]) -> None:
    window_ns, votes = stream
    real, oracle = UserCaps(window_ns, **caps), CapsOracle(window_ns, **caps)
    for vote in votes:
        asked, got = real.ask(vote), real.vote(vote)
        late = oracle.clock_ns is not None and vote.t_ns < oracle.clock_ns - window_ns
        assert late or asked == got
        assert got == oracle.vote(vote)
    # The z-table gets no more in any window, also for late votes: an oracle's own check.
    counted = oracle.counted
    if most := caps["max_per_prefix"]:
        assert max((most_of_a_network(v, window_ns) for v in counted.values()), default=0) <= most
    if most := caps["max_names"]:
        every = [vote for votes in counted.values() for vote in votes]
        assert most_names(every, window_ns) <= most


@pytest.mark.parametrize("layout", ["default", "small"])
def test_caps_on_many_users_and_names(layout: str) -> None:
    """Users beyond the largest record of each layout, in long streams with late votes."""
    chance = random.Random(5)
    caps = {"max_per_prefix": 60, "max_names": 50, "min_age_ns": 5}
    real, oracle = UserCaps(400, **caps, layout=layout), CapsOracle(400, **caps)
    refused = defaultdict(int)
    for i in range(20_000):
        user = chance.randrange(100) if chance.random() < 0.7 else chance.randrange(3)
        late = chance.randrange(20) if chance.random() < 0.1 else 0
        attribute = chance.randrange(4) if chance.random() < 0.5 else chance.randrange(80)
        vote = CappedVote(1000 + i // 8 - late, user, 1, attribute)
        got = real.vote(vote)
        assert got == oracle.vote(vote), i
        refused[got] += 1
    assert min(refused[cap] for cap in ("none", "prefix", "names", "age")) > 20, refused


def test_a_member_counts_again_while_its_network_is_full() -> None:
    caps = UserCaps(100, max_per_prefix=2)
    assert [caps.vote(a_vote(t, user, 0)) for t, user in [(0, 0), (1, 1), (2, 2), (90, 0)]] == [
        "none", "none", "prefix", "none",
    ]  # fmt: skip
    assert caps.vote(a_vote(101, 2, 0)) == "prefix"  # user 1 was seen at 1 and counts at 101
    assert caps.vote(a_vote(102, 2, 0)) == "none"


def test_a_late_vote_after_a_gap_sees_the_users_before_the_gap() -> None:
    caps = UserCaps(10, max_per_prefix=1)
    assert caps.vote(a_vote(100, 0, 0)) == caps.vote(a_vote(115, 8, 1)) == "none"
    assert caps.vote(a_vote(105, 1, 0)) == "prefix"  # as late as a vote can be
    assert caps.vote(a_vote(111, 1, 0)) == "none"


def test_a_clock_that_is_set_back_starts_the_caps_anew() -> None:
    caps = UserCaps(10, max_per_prefix=1, max_names=1)
    assert caps.vote(a_vote(1000, 0, 0)) == "none"
    assert {caps.vote(a_vote(20, 1, 0)) for _ in range(REBASE_AFTER)} == {"none"}
    assert caps.vote(a_vote(21, 2, 0)) == "prefix"  # user 1 counts
    assert caps.vote(a_vote(21, 1, 1)) == "names"
    assert caps.vote(a_vote(21, 1, 0)) == "none"  # user 0 does not


def test_a_full_table_refuses_and_evicts_nobody() -> None:
    """Users beyond the memory cannot be subtracted later. After two windows without a vote that
    counts, the table is empty again."""
    caps = UserCaps(100, max_per_prefix=1, max_tuples=4, max_attributes=3)
    assert [caps.vote(a_vote(0, 0, attribute)) for attribute in range(3)] == ["none"] * 3
    assert caps.vote(a_vote(1, 0, 3)) == caps.ask(a_vote(1, 0, 3)) == "full"
    assert caps.vote(a_vote(2, 0, 1)) == "none"  # a user that counts already
    assert caps.vote(a_vote(3, 1, 1)) == "prefix"
    assert caps.vote(a_vote(202, 1, 4)) == "full"
    assert caps.vote(a_vote(203, 1, 4)) == "none"


def test_a_full_table_keeps_its_caps() -> None:
    """Whatever is refused for lack of memory, no window has more users of a network."""
    chance = random.Random(7)
    caps = {"max_per_prefix": 3, "max_names": 3}
    real = UserCaps(60, **caps, max_tuples=90, max_attributes=60)
    counted, got = [], defaultdict(int)
    for i in range(6000):
        t_ns = 1000 + i // 10 + (i // 2000) * 300 - chance.choice([0, 0, 0, 30])
        vote = a_vote(t_ns, chance.randrange(64), chance.randrange(8))
        verdict = real.vote(vote)
        got[verdict] += 1
        if verdict == "none":
            counted.append(vote)
    assert min(got[verdict] for verdict in ("none", "prefix", "names", "full")) > 20, got
    for attribute in range(8):
        of_it = [vote for vote in counted if vote.attribute == attribute]
        assert most_of_a_network(of_it, 60) <= 3
    assert most_names(counted, 60) <= 3


def test_a_user_that_is_forgotten_is_new_again() -> None:
    caps = UserCaps(100, min_age_ns=10, max_users=2)
    assert [caps.vote(a_vote(0, user, 0)) for user in (0, 1)] == ["age", "age"]
    assert caps.vote(a_vote(10, 0, 0)) == "none"
    assert caps.vote(a_vote(10, 2, 0)) == "age"  # users 0 and 1 are the older generation now
    assert caps.vote(a_vote(11, 0, 0)) == "none"  # moves to the younger generation
    assert caps.vote(a_vote(12, 3, 0)) == "age"  # user 1 is forgotten
    assert [caps.vote(a_vote(13, user, 0)) for user in (0, 1)] == ["none", "age"]


def test_a_user_is_new_for_a_window() -> None:
    caps = UserCaps(100, min_age_ns=10)
    assert caps.is_new(0, 7)
    caps.vote(a_vote(5, 0, 0))
    assert [caps.is_new(0, t_ns) for t_ns in (0, 5, 104, 105)] == [True, True, True, False]
    assert not UserCaps(100, max_names=1).is_new(0, 7)  # the age of no user is known


def test_caps_take_memory_for_what_they_count() -> None:
    assert UserCaps(100, max_per_prefix=1).memory < 1 << 20
    ages = UserCaps(100, min_age_ns=1, max_users=1 << 10)
    assert ages.memory >= 2 * (1 << 11) * 16


@pytest.mark.source
def test_memory_that_cannot_be_had_is_an_error() -> None:
    """Every allocation of an engine with all caps fails once."""
    caps = {"max_per_prefix": (24, 48, 1), "max_names_per_user": 1, "min_user_age_ns": 1}

    def failures(**settings: Any) -> int:
        failed = 0
        for n in range(1, 150):
            _core.fail_allocation(n)
            try:
                make_engine(**settings).close()
            except CapacityError:
                failed += 1
            finally:
                _core.fail_allocation(0)
        return failed

    assert failures(**caps) > failures() + 4  # two tables, two generations, and the caps
