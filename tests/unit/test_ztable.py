# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The z-table's promises one by one: the paper's walk-through, limits, caps, the clock, memory.

Each is asked of the table that people use, and of one where few users make a list.
"""

import numpy as np
import pytest
from support.small_ztable import TABLES, AnyTable

from zanon_net import ZTable
from zanon_net.errors import ConfigError

SECOND = 10**9
DAY = 86_400 * SECOND
YEAR = 365 * DAY
NOW = 1_700_000_000 * SECOND
LAST_NS = 2**63 - 1  # in the year 2262


@pytest.fixture(autouse=True, params=TABLES)
def layout(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test of this file once for each layout: `ZTable` is what it says here."""
    monkeypatch.setitem(globals(), "ZTable", request.param)


def expose(
    table: AnyTable, t_ns: int, users: int, attribute: str = "a", first: int = 0
) -> list[bool]:
    """Decisions on `users` users that expose the attribute at once."""
    decisions = [table.observe(t_ns, f"user {first + i}", attribute) for i in range(users)]
    table.check()
    return decisions


def batch(table: AnyTable, t_ns: int, user: np.ndarray, attribute: np.ndarray) -> np.ndarray:
    """Decisions on observations that all carry the same time."""
    t = np.full(len(user), t_ns, np.int64)
    return table.observe_batch(t, user.astype(np.uint64), attribute.astype(np.uint64))


class TestWindow:
    @pytest.mark.parametrize("window", [1, 2, SECOND, DAY, 10 * YEAR])
    @pytest.mark.parametrize("keep", [None, 2, 5])
    def test_the_border_stays_and_a_nanosecond_older_goes(
        self, window: int, keep: int | None
    ) -> None:
        for age, released in ((window, True), (window + 1, False)):
            table = ZTable(2, window, keep=keep)
            table.observe(NOW, "u0", "a")
            assert table.observe(NOW + age, "u1", "a") == released
            table.check()

    def test_a_stale_user_does_not_count(self) -> None:
        """Nine users today and a tenth a year later are one user (a defect of α-MON)."""
        table = ZTable(10, DAY)
        assert not any(expose(table, NOW, 9))
        assert not table.observe(NOW + YEAR, "user 9", "a")
        assert table.count("a") == 1

    def test_a_refresh_keeps_a_user_in(self) -> None:
        table = ZTable(2, 10)
        table.observe(NOW, "u0", "a")
        for i in range(1, 100):
            assert not table.observe(NOW + 9 * i, "u0", "a")
        assert table.observe(NOW + 9 * 99 + 10, "u1", "a")

    @pytest.mark.parametrize("keep", [None, 5000, 6000])
    def test_five_thousand_users(self, keep: int | None) -> None:
        table = ZTable(5000, DAY, keep=keep)
        assert expose(table, NOW, 5000) == [False] * 4999 + [True]
        assert table.count("a") == 5000
        assert table.observe(NOW + DAY, "user 0", "a")
        assert not table.observe(NOW + DAY + 1, "user 0", "a")
        table.check()

    @pytest.mark.parametrize("t_ns", [0, LAST_NS - 20])
    def test_first_and_last_times(self, t_ns: int) -> None:
        table = ZTable(2, 20)
        assert not table.observe(t_ns, "u0", "a")
        assert table.observe(t_ns + 20, "u1", "a")
        assert not table.observe(t_ns + 20, "u1", "b")
        table.check()

    def test_from_1970_to_2262_and_the_longest_window(self) -> None:
        table = ZTable(2, 10 * YEAR)
        assert not table.observe(0, "u0", "a")
        assert not table.observe(LAST_NS, "u1", "a")
        assert table.observe(LAST_NS, "u2", "a")
        table.check()

    def test_z_of_one_releases_all(self) -> None:
        assert expose(ZTable(1, 1), NOW, 3) == [True] * 3

    def test_the_largest_z(self) -> None:
        table = ZTable(2**31, DAY)
        assert not any(expose(table, NOW, 100))
        assert table.count("a") == 100


class TestKeep:
    def test_the_count_saturates_and_memory_stays(self) -> None:
        table = ZTable(3, DAY, keep=4)
        expose(table, NOW, 100)
        assert table.count("a") == 4
        assert table.stats["tuples"] == 4

    def test_who_fell_behind_keep_is_a_new_user_again(self) -> None:
        table = ZTable(2, DAY, keep=2)
        expose(table, NOW, 3)  # users 1 and 2 remain
        assert table.observe(NOW + 1, "user 0", "a")
        assert table.count("a") == 2

    def test_a_late_user_behind_keep_is_not_kept(self) -> None:
        table = ZTable(2, DAY, keep=2)
        expose(table, NOW, 2)
        assert not table.observe(NOW - 1, "late", "a")
        assert table.stats["tuples"] == 2
        table.check()


class TestLate:
    def test_users_seen_later_do_not_help(self) -> None:
        table = ZTable(2, 100)
        table.observe(NOW, "u0", "a")
        assert not table.observe(NOW - 1, "u1", "a")  # only u1 by then
        assert table.observe(NOW - 1, "u2", "a")  # u1 and u2
        assert table.observe(NOW, "u3", "a")
        table.check()

    def test_it_is_stored_at_its_true_time(self) -> None:
        table = ZTable(2, 100)
        table.observe(NOW, "clock", "b")
        table.observe(NOW - 50, "u0", "a")
        assert not table.observe(NOW + 51, "u1", "a")

    def test_a_users_time_is_the_larger_of_the_two(self) -> None:
        table = ZTable(2, 100)
        table.observe(NOW, "u0", "a")
        table.observe(NOW - 90, "u0", "a")
        assert table.observe(NOW + 100, "u1", "a")
        table.check()

    def test_one_user_is_one_on_both_sides_of_a_late_time(self) -> None:
        table = ZTable(2, 100)
        table.observe(NOW, "u0", "a")
        assert not table.observe(NOW - 1, "u0", "a")
        assert table.observe(NOW, "u1", "a")

    def test_the_edge_of_the_window_is_late_and_beyond_it_too_late(self) -> None:
        table = ZTable(1, 100)
        table.observe(NOW, "u0", "a")
        assert table.observe(NOW - 100, "u1", "a")
        assert not table.observe(NOW - 101, "u1", "a")
        assert (table.stats["late"], table.stats["too_late"]) == (1, 1)

    @pytest.mark.parametrize(("newer", "stored"), [(64, True), (65, False)])
    def test_sixty_four_steps_deep_and_no_deeper(self, newer: int, stored: bool) -> None:
        table = ZTable(1, DAY)
        expose(table, NOW, newer)
        assert table.observe(NOW - 1, "late", "a") == stored
        assert table.stats["late_deep"] == (not stored)
        assert table.count("a") == newer + stored
        table.check()

    def test_forty_five_late_packets_do_not_release(self) -> None:
        """Clamped to the clock, these would all fall into one window."""
        table = ZTable(5, 10)
        for i in range(45):
            assert not table.observe(NOW + 100 * i, f"u{i}", "a")
            assert not table.observe(NOW + 100 * i - 10, f"v{i}", "a")


class TestClock:
    def test_a_corrupt_time_costs_256_observations(self) -> None:
        table = ZTable(1, DAY)
        table.observe(NOW, "u", "a")
        table.observe(NOW + 50 * YEAR, "u", "a")
        decisions = [table.observe(NOW + i, f"u{i}", "a") for i in range(300)]
        assert decisions == [False] * 255 + [True] * 45
        assert table.stats["clock_jumps"] == 1
        assert table.count("a") == 45  # what was there before is forgotten
        table.check()

    def test_an_acceptable_time_between_starts_the_count_anew(self) -> None:
        table = ZTable(1, 100)
        table.observe(NOW + YEAR, "u", "a")
        for i in range(1000):
            t_ns = NOW + YEAR if i % 255 == 254 else NOW
            assert table.observe(t_ns, "u", "a") == (t_ns != NOW)
        assert table.stats["clock_jumps"] == 0

    def test_users_from_before_a_rebase_do_not_count(self) -> None:
        table = ZTable(3, DAY, rebase_after=2)
        expose(table, NOW, 2)
        table.observe(NOW + YEAR, "u", "a")
        expose(table, NOW, 1, first=5)  # refused
        assert not table.observe(NOW, "u6", "a")
        assert table.stats["clock_jumps"] == 1

    def test_max_jump(self) -> None:
        table = ZTable(1, DAY, max_jump_ns=SECOND, rebase_after=3)
        assert table.observe(NOW, "u", "a")
        assert table.observe(NOW + SECOND, "u", "a")
        far = NOW + 2 * SECOND + 1
        assert [table.observe(far, "u", "a") for _ in range(4)] == [False, False, True, True]
        assert table.stats["clock_jumps"] == 1
        assert table.stats["too_late"] == 2

    def test_clear_forgets_the_clock_and_keeps_the_counters(self) -> None:
        table = ZTable(2, DAY)
        expose(table, NOW, 2)
        table.clear()
        table.check()
        assert not table.observe(5, "u", "a")
        assert table.count("a") == 1
        assert table.stats["observations"] == 3
        assert table.stats["too_late"] == 0


class TestCaps:
    def test_the_oldest_attribute_goes_first(self) -> None:
        table = ZTable(1, DAY, max_attributes=3)
        for i, attribute in enumerate("abcad"):
            table.observe(NOW + i, "u", attribute)
            table.check()
        assert [table.count(attribute) for attribute in "abcd"] == [1, 0, 1, 1]
        assert table.stats["evicted"] == 1
        assert table.stats["attributes"] == 3

    def test_a_thousand_attributes_in_order(self) -> None:
        table = ZTable(1, DAY, max_attributes=1000)
        for i in range(2500):
            table.observe(NOW + i, "u", f"name {i}")
        assert [table.count(f"name {i}") for i in range(2500)] == [0] * 1500 + [1] * 1000
        table.check()

    def test_the_oldest_tuple_goes_first(self) -> None:
        table = ZTable(1, DAY, max_tuples=3)
        for i, (user, attribute) in enumerate(["ua", "va", "ub", "vb"]):
            table.observe(NOW + i, user, attribute)
            table.check()
        assert (table.count("a"), table.count("b")) == (1, 2)
        assert table.stats["evicted"] == 1

    @pytest.mark.parametrize("keep", [None, 10, 200])
    def test_one_attribute_larger_than_the_table(self, keep: int | None) -> None:
        table = ZTable(10, DAY, max_tuples=100, keep=keep)
        expose(table, NOW, 1000)
        assert table.count("a") == min(keep or 100, 100)

    def test_a_cap_only_suppresses(self) -> None:
        small, large = ZTable(3, DAY, max_tuples=4, max_attributes=2), ZTable(3, DAY)
        for i in range(2000):
            observation = NOW + i, f"u{i * i % 11}", f"a{i * i % 7 % 4}"
            assert small.observe(*observation) <= large.observe(*observation)
            small.check()

    def test_the_smallest_table(self) -> None:
        table = ZTable(1, DAY, max_tuples=1, max_attributes=1)
        assert all(table.observe(NOW + i, f"u{i % 3}", f"a{i % 2}") for i in range(20))
        assert table.stats["tuples"] == 1
        table.check()

    def test_expired_entries_thrown_out_are_not_called_evicted(self) -> None:
        table = ZTable(1, 10, max_tuples=2)
        for i in range(5):
            table.observe(NOW + 100 * i, "u", f"a{i}")
        assert table.stats["evicted"] == 0


class TestReclaim:
    def test_what_nobody_touches_goes(self) -> None:
        table = ZTable(2, 1000)
        for i in range(2000):
            table.observe(NOW, f"u{i}", f"idle {i % 500}")
        expose(table, NOW, 300, "crowd")
        for i in range(2000):
            table.observe(NOW + 1001 + i % 2, "u", "busy")
        table.check()
        assert table.stats["attributes"] == 1
        assert table.stats["tuples"] == 1

    def test_a_crowd_that_expired_is_forgotten_at_once_and_freed_later(self) -> None:
        table = ZTable(2, DAY, max_tuples=5_000)
        users = np.arange(5_000)
        batch(table, NOW, users, np.zeros_like(users))
        batch(table, NOW + DAY + 1, users[:1], users[:1])
        assert table.stats["tuples"] == 1
        for i in range(3_000):  # while there is hardly room
            assert table.observe(NOW + DAY + 1, f"u{i % 2}", f"a{i // 2}") == (i % 2 == 1)
            table.check()
        assert table.stats["tuples"] == 3_001
        assert table.stats["evicted"] == 0

    def test_a_gap_of_355_days_costs_no_time(self) -> None:
        table = ZTable(2, DAY)
        attributes = np.arange(200_000)
        batch(table, NOW, attributes, attributes)
        later = NOW + 355 * DAY
        assert not table.observe(later, "u", "a")
        assert table.stats["attributes"] > 199_900  # hardly one of them was looked at
        table.check()
        busy = np.zeros(200_000, np.uint64)
        batch(table, later, busy, busy)
        assert table.stats["attributes"] == 2
        table.check()

    def test_memory_does_not_grow_with_time(self) -> None:
        table = ZTable(2, 1000)
        sizes = []
        for step in range(60):
            attributes = np.arange(20_000) + 20_000 * step
            batch(table, NOW + 1001 * step, attributes, attributes)
            sizes.append(table.memory_bytes)
        assert max(sizes) <= 1.6 * sizes[1]


class TestArguments:
    @pytest.mark.parametrize(
        "arguments",
        [
            {"z": 0},
            {"z": 2**31 + 1},
            {"window_ns": 0},
            {"window_ns": 11 * YEAR},
            {"keep": 2},
            {"max_tuples": 0},
            {"max_attributes": 0},
            {"max_tuples": 2**31 + 1},
            {"rebase_after": 0},
        ],
    )
    def test_wrong_ones_are_refused(self, arguments: dict[str, int]) -> None:
        with pytest.raises(ConfigError):
            ZTable(**{"z": 3, "window_ns": DAY, **arguments})

    def test_set_z(self) -> None:
        table = ZTable(3, DAY, keep=5)
        expose(table, NOW, 5)
        table.set_z(5)
        assert table.observe(NOW, "user 0", "a")
        for z in (0, 6, 2**31 + 1):
            with pytest.raises(ConfigError):
                table.set_z(z)
        assert table.z == 5

    def test_counters_add_up(self) -> None:
        table = ZTable(2, 100)
        for i in range(500):
            table.observe(NOW + i * i % 251, f"u{i % 7}", f"a{i % 3}")
        stats = table.stats
        parts = ("released", "below_z", "too_late", "late_deep", "no_room")
        assert sum(stats[part] for part in parts) == stats["observations"] == 500
