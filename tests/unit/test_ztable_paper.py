# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The paper, step by step: Jha et al., "z-anonymity" (2022), Figure 1 and Appendix A.

t, u, a: time, user, attribute; c_a: the users of a in the last Δt; z-private: c_a < z.
"""

import random
from collections import OrderedDict

import pytest
from support.small_ztable import TABLES, AnyTable

Z = 3
DELTA_T = 1_000

both = pytest.mark.parametrize("new", TABLES)


def users_at(table: AnyTable, t: int, a: str) -> int:
    """c_a once time has come to t, which takes an observation of another attribute."""
    table.observe(t, "somebody", "something else")
    return table.count(a)


@both
def test_figure_1(new: type[AnyTable]) -> None:
    table = new(Z, DELTA_T)
    t0, t1, t2, t3 = 10_000, 10_200, 10_500, 10_900

    # "At time t0 user u0 is the first to expose a0. a0 is z-private, hence it shall be obfuscated."
    assert not table.observe(t0, "u0", "a0")
    assert table.count("a0") == 1

    # "At time t1, user u1 also exposes a0. The number in Δt is still smaller than 3: not released."
    assert not table.observe(t1, "u1", "a0")
    assert table.count("a0") == 2

    # "At time t2 user u0 re-exposes a0, extending the lifetime of the observation, but not changing
    # the number of unique users having exposed a0."
    assert not table.observe(t2, "u0", "a0")
    assert table.count("a0") == 2

    # "At time t3, user u2 exposes a0, making the total users in the past Δt equal to 3. Thus a0 is
    # not z-private at time t3 and the observation (t3, u2, a0) can be released."
    assert table.observe(t3, "u2", "a0")
    assert table.count("a0") == 3

    # Extending the lifetime: without t2, u0 would have gone at t0 + Δt.
    assert users_at(table, t0 + DELTA_T + 1, "a0") == 3

    # "At time t1 + Δt the attribute a0 related to user u1 expires, hence the total user count
    # decreases back to 2." It is evicted when t' < t - Δt, so at that very time it still counts.
    assert users_at(table, t1 + DELTA_T, "a0") == 3
    assert users_at(table, t1 + DELTA_T + 1, "a0") == 2

    # "The same happens when u0's observation expires (at t2 + Δt) ..."
    assert users_at(table, t2 + DELTA_T, "a0") == 2
    assert users_at(table, t2 + DELTA_T + 1, "a0") == 1

    # "... so that when u3 exposes a0 at t4 the observation can no more be released."
    t4 = t2 + DELTA_T + 2
    assert not table.observe(t4, "u3", "a0")
    assert table.count("a0") == 2  # u2 and u3


class Algorithm1:
    """The paper's pseudo code; the numbers are its lines."""

    def __init__(self, z: int, delta_t: int) -> None:
        self.z, self.delta_t = z, delta_t
        self.h: dict[str, OrderedDict[str, int]] = {}  # a -> LRU_a and V_a in one: u -> t

    def decide(self, t: int, u: str, a: str) -> bool:  # 1: Input: (t, u, a)
        if a not in self.h:  # 2
            self.h[a] = OrderedDict()  # 3: insert it for the first time
            self.h[a][u] = t  # 4, 5: insert new user u (6: c_a = 1 is its length)
        elif u not in self.h[a]:  # 7, 8
            self.h[a][u] = t  # 9, 11 (10: c_a = c_a + 1)
        else:  # 12
            self.h[a][u] = t  # 13: update timestamp of user u
            self.h[a].move_to_end(u)  # 14: on top of LRU_a
        while (last := next(iter(self.h[a].items())))[1] < t - self.delta_t:  # 18
            del self.h[a][last[0]]  # 19, 20, 21
        return len(self.h[a]) >= self.z  # 23, 24: OUTPUT (t, f(u, t), a)


@both
def test_appendix_a_walk_through(new: type[AnyTable]) -> None:
    """Each branch of Algorithm 1 once, with what it leaves behind."""
    table, paper = new(2, 100), Algorithm1(2, 100)
    walk = [
        # t, u, a, released, the LRU from its last to its top
        (0, "u0", "a", False, [("u0", 0)]),  # a new attribute (lines 2 to 6)
        (50, "u1", "a", True, [("u0", 0), ("u1", 50)]),  # a new user (8 to 11)
        (60, "u0", "a", True, [("u1", 50), ("u0", 60)]),  # moved on top (12 to 14)
        (150, "u0", "a", True, [("u1", 50), ("u0", 150)]),  # u1's 50 = t - Δt: it stays (18)
        (151, "u0", "a", False, [("u0", 151)]),  # u1's 50 < t - Δt: evicted (19 to 21)
        (151, "u0", "b", False, [("u0", 151)]),  # attributes do not share users
        (300, "u2", "a", False, [("u2", 300)]),  # all evicted but u2
        (400, "u3", "a", True, [("u2", 300), ("u3", 400)]),
    ]
    for t, u, a, released, lru in walk:
        assert paper.decide(t, u, a) == released
        assert list(paper.h[a].items()) == lru
        assert table.observe(t, u, a) == released
        assert table.count(a) == len(lru)
        table.check()


@both
@pytest.mark.parametrize("z", [1, 2, 3, 10])
@pytest.mark.parametrize("keep", [0, 2, None])
def test_appendix_a_on_random_input(new: type[AnyTable], z: int, keep: int | None) -> None:
    rng, t = random.Random(z), 0
    table = new(z, 100, keep=None if keep is None else z + keep)
    paper = Algorithm1(z, 100)
    decisions = set()
    for _ in range(3_000):
        t += rng.choice([0, 0, 0, 1, 3, 10])
        observation = t, f"u{rng.randrange(30)}", f"a{min(rng.randrange(9), rng.randrange(9))}"
        decision = paper.decide(*observation)
        assert table.observe(*observation) == decision
        decisions.add(decision)
    assert decisions == ({True} if z == 1 else {True, False})
    table.check()
