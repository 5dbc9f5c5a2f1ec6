# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Generalization: the rule in Python against brute force, and the core against the rule."""

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.generalization import (
    BROKEN,
    STREAMS,
    Cascade,
    Chain,
    Literal,
    Naive,
    Rule,
    World,
    judge,
    network_of,
)
from support.examples import EVERY_CASE, each, examples

from zanon_net._core import Levels, ZTable
from zanon_net.errors import ConfigError

EXPOSURES = 10_000_000 // len(STREAMS) if EVERY_CASE else 9_000
FIRST = 100_000  # exposures in which a wrong rule has to isolate a user
SHARE = 0.95  # of the labels of the check to the letter
Z_MAX = 8


class Core:
    """The core. Each decision must be the decision of the rule in Python."""

    def __init__(self, world: World, window: int) -> None:
        self.core, self.rule = core_of(world, window, Z_MAX), Rule(world, window, z_max=Z_MAX)
        self.z = Z_MAX

    def observe(self, t: int, user: int, chain: Chain, z: int) -> int | None:
        """Returns the level at which the core publishes the exposure, or None."""
        if z != self.z:
            self.core.set_z(z)
            self.z = z
        decision, level, users = self.core.decide(
            np.array([t], np.int64), np.array([user], np.uint64), np.array([chain], np.uint64)
        )
        found = int(level[0]) if decision[0] == 0 else None
        expected = self.rule.observe(t, user, chain, z, released=found == 0)
        assert (found, int(users[0])) == (expected, self.rule.users)
        return found

    def passes(self, label: int, level: int, t: int, z: int) -> bool:
        """Returns true if the count of a label is at least z."""
        return self.rule.passes(label, level, t, z)


@pytest.mark.parametrize("kind", STREAMS)
def test_at_least_z_users_stand_behind_each_label(kind: str) -> None:
    """Ten million exposures in `make test-all`."""
    found = judge(Core, kind, EXPOSURES)
    assert found.short == 0
    assert found.worst >= 0
    assert found.labels > found.exposures / 20, "the streams ask little of the rule"


@each("make", [Naive, Cascade])
@each("kind", ["names", "moving", "addresses", "rows"])
def test_simpler_rules_isolate_users(make: Any, kind: str) -> None:
    assert judge(make, kind, FIRST, first=True).short > 0


@each("part", BROKEN)
def test_each_part_of_the_rule_is_needed(part: str) -> None:
    assert judge(partial(Rule, without=part), BROKEN[part], FIRST, first=True).short > 0


def test_the_rule_publishes_most_labels_of_the_check_to_the_letter() -> None:
    exposures = 10 * EXPOSURES if EVERY_CASE else EXPOSURES
    ours, literal = (judge(make, "two levels", exposures) for make in (Rule, Literal))
    print(f"labels: {ours.labels:,} of {literal.labels:,} of the check to the letter")
    assert literal.short == 0
    assert ours.labels >= SHARE * literal.labels


# ---- the core -----------------------------------------------------------------------------------

Action = tuple[int, int, int, int]
"""(step of time, user, value, flags)"""


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A small world of any kind but the larger rows."""
    make = STREAMS[draw(st.sampled_from(["names", "gaps", "addresses", "rows"]))].world
    return make(random.Random(draw(st.integers(0, 1000))))


def actions(window: int, *, ordered: bool) -> st.SearchStrategy[list[Action | int]]:
    """Exposures, and numbers: a new z."""
    steps = st.one_of(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2 * window))
    if not ordered:
        steps |= st.integers(-2 * window, 0)
    flags = st.sampled_from([0, 0, 0, 0, 0, 0, 1, 2]) if not ordered else st.just(0)
    exposure = st.tuples(steps, st.integers(0, 9), st.integers(0, 1000), flags)
    return st.lists(st.one_of(*[exposure] * 12, st.sampled_from([2, 3, 5, 8])), max_size=150)


def core_of(world: World, window: int, z: int, **limits: Any) -> Levels:
    """The core with the world's parents."""
    level_of = {label: i for chain in world.chains for i, label in enumerate(chain)}
    parents = {
        (level_of[label], label): {level: sorted(labels) for level, labels in above.items()}
        for label, above in world.above.items()
        if level_of[label] > 0
    }
    return Levels(z, window, world.levels, z_max=Z_MAX, parents=parents, **limits)


def batches(given: list[Action | int], size: int) -> Iterator[list[Action] | int]:
    """Joins exposures to batches of at most `size`; a new z stands between batches."""
    batch: list[Action] = []
    for one in given:
        if isinstance(one, int) or len(batch) == size:
            if batch:
                yield batch
            batch = []
        if isinstance(one, int):
            yield one
        else:
            batch.append(one)
    if batch:
        yield batch


def compare(world: World, window: int, given: list[Action | int], size: int, **limits: Any) -> None:
    """Asserts that the core decides as the rule, and keeps its invariants."""
    z, early_z, t = 3, 6, 10 * window
    core = core_of(world, window, z, **limits)
    rule = Rule(world, window, z_max=Z_MAX, **limits)
    core.set_early_z(early_z)
    for batch in batches(given, size):
        if isinstance(batch, int):
            z = batch
            early_z = min(2 * z, Z_MAX)
            rule.set_z(z)
            core.set_z(z)
            core.set_early_z(early_z)
            continue
        rows = []
        for step, user, number, flags in batch:
            t = max(t + step, 0)
            rows.append((t, user, world.chains[number % len(world.chains)], flags))
        decided = core.decide(
            np.array([row[0] for row in rows], np.int64),
            np.array([row[1] for row in rows], np.uint64),
            np.array([row[2] for row in rows], np.uint64),
            np.array([row[3] for row in rows], np.uint8),
            np.array([network_of(row[1]) for row in rows], np.uint32),
        )
        core.check()
        if "max_labels" in limits and core.stats["paused"]:
            return  # a mark was lost: the rule has room for all marks
        found = [
            (int(level) if decision == 0 else None, int(users))
            for decision, level, users in zip(*decided, strict=True)
        ]
        for (at, user, chain, flags), (level, users) in zip(rows, found, strict=True):
            early = early_z if flags & 2 else 0
            expected = rule.observe(
                at, user, chain, z, peek=bool(flags & 1), early_z=early, released=level == 0
            )
            assert (level, users) == (expected, rule.users)


SIZES = [1, 7, 1 << 20]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ordered", [True, False])
@settings(max_examples=examples(200, 8))
@given(data=st.data(), window=st.sampled_from([7, 10, 21]), world=worlds())
def test_the_core_decides_as_the_rule(
    size: int, ordered: bool, data: st.DataObject, window: int, world: World
) -> None:
    """Exposures may be late or only peek, z moves, and clocks are set back."""
    compare(world, window, data.draw(actions(window, ordered=ordered)), size, rebase_after=3)


@pytest.mark.parametrize("size", SIZES)
@settings(max_examples=examples(200, 8))
@given(
    data=st.data(),
    window=st.sampled_from([7, 10, 21]),
    world=worlds(),
    max_votes=st.integers(1, 40),
    max_labels=st.integers(1, 6),
)
def test_the_core_decides_as_the_rule_at_its_caps(
    size: int, data: st.DataObject, window: int, world: World, max_votes: int, max_labels: int
) -> None:
    given_ = data.draw(actions(window, ordered=True))
    compare(world, window, given_, size, max_votes=max_votes, max_labels=max_labels)


@pytest.mark.parametrize("size", SIZES)
@settings(max_examples=examples(200, 8))
@given(
    data=st.data(),
    window=st.sampled_from([7, 10, 21]),
    world=worlds(),
    most=st.integers(1, 3),
)
def test_the_core_decides_as_the_rule_with_a_cap_on_networks(
    size: int, data: st.DataObject, window: int, world: World, most: int
) -> None:
    given_ = data.draw(actions(window, ordered=True))
    compare(world, window, given_, size, max_per_network=most)


@pytest.mark.parametrize("kind", ["names", "moving"])
def test_at_least_z_users_stand_behind_each_label_under_a_cap_on_networks(kind: str) -> None:
    found = judge(partial(Rule, max_per_network=1), kind, EXPOSURES)
    assert found.short == 0
    assert found.labels < judge(Rule, kind, EXPOSURES).labels


def test_a_label_needs_users_of_several_networks() -> None:
    """Users 0 to 3 are one network: the cap of 2 refuses the third vote, and no later one."""
    core = Levels(4, 1000, 1, max_per_network=2)
    users = [0, 1, 2, 3, 1, 4, 2, 5, 6]
    n = len(users)
    decision, level, _users = core.decide(
        np.arange(n, dtype=np.int64),
        np.array(users, np.uint64),
        np.array([[10 + i, 1] for i in range(n)], np.uint64),
        None,
        np.array([network_of(user) for user in users], np.uint32),
    )
    below, over = 1, max(decision)
    assert list(decision) == [below, below, over, over, below, below, over, 0, over]
    assert list(level) == [0] * 7 + [1, 0]


# ---- marks --------------------------------------------------------------------------------------


def exposures(core: Levels, *given: tuple[int, int, int, int]) -> list[int | None]:
    """Decides (time, user, name, domain), and returns the levels that are published."""
    columns = [np.array([one[i] for one in given]) for i in (0, 1)]
    chain = np.array([one[2:] for one in given], np.uint64)
    decided = core.decide(columns[0].astype(np.int64), columns[1].astype(np.uint64), chain)
    return [
        int(level) if decision == 0 else None
        for decision, level, _users in zip(*decided, strict=True)
    ]


@pytest.mark.parametrize("how", ["vote", "peek", "evicted", "swept"])
@given(
    window=st.one_of(st.integers(7, 100), st.integers(100, 10**15)),
    start=st.integers(0, 10**18),
    part=st.one_of(st.integers(0, 1300), st.integers(990, 1150)),
    data=st.data(),
)
def test_a_mark_lasts_a_window_and_at_most_a_slice_more(
    how: str, window: int, start: int, part: int, data: st.DataObject
) -> None:
    """A user of a marked name casts no vote, so the domain lacks one user.

    vote: the name is released by votes. peek: by a look-up, of users who are older. evicted: the
    name's record goes at a cap. swept: the record is freed when its users are out of the window.
    """
    slice_ = -(-window // 7)
    cap = 8 if how == "evicted" else 1 << 20
    core = Levels(2, window, 1, z_max=8, max_attributes=cap)
    published, before = start + 2 * window, start + window + data.draw(st.integers(0, window))
    if how == "peek":
        core.set_z(3)
        assert exposures(core, (before, 1, 1, 1), (before, 2, 1, 1)) == [None, None]
        core.set_z(2)
        flags = np.array([1], np.uint8)
        chain = np.array([[1, 1]], np.uint64)
        times, users = np.array([published], np.int64), np.array([9], np.uint64)
        shared = before >= published - window
        assert (core.decide(times, users, chain, flags)[0][0] == 0) == shared
        if not shared:
            return
    else:
        assert exposures(core, (published, 1, 1, 1), (published, 2, 1, 1)) == [None, 0]
    core.set_z(4)
    later = published + window * part // 1000
    others = [(later, 10 + i, 10 + i, 2) for i in range(300 if how == "swept" else 20)]
    if how in ("evicted", "swept"):
        exposures(core, *others)
    core.check()
    assert exposures(core, (later, 3, 1, 1))[0] is None
    named = [(later, user, user, 1) for user in (4, 5, 6)]
    voted = exposures(core, *named)[-1] == 1
    lasts = later // slice_ - published // slice_ <= 7
    assert voted == (not lasts)
    assert not voted or later > published + window
    assert voted or later < published + 8 * slice_


def test_without_room_for_a_mark_labels_are_off_for_a_window() -> None:
    window = 700
    core = Levels(2, window, 1, max_attributes=4, max_labels=1)
    for name in (1, 2, 3):  # two of these marks have to be kept in one place
        assert exposures(core, (name, 1, name, 0), (name, 2, name, 0)) == [None, 0]
    exposures(core, *((10, user, user, 0) for user in range(10, 40)))
    assert exposures(core, (20, 1, 50, 9), (20, 2, 51, 9)) == [None, None]
    assert core.stats["paused"] > 0
    late = 20 + 3 * window
    assert exposures(core, (late, 1, 50, 9), (late, 2, 51, 9)) == [None, 1]


def test_levels_are_empty_after_their_table_is_cleared() -> None:
    """Votes of before do not count, and labels stay off for a window, because readers have seen
    values that are no longer marked."""
    window = 100
    core = Levels(3, window, 1)
    assert exposures(core, (1000, 1, 1, 9), (1000, 2, 2, 9)) == [None, None]
    core.clear()
    core.check()
    assert core.stats["levels"][1]["votes"] == 0
    again = [(1000 + i, 10 + i, 10 + i, 9) for i in (1, 2, 3, 4)]
    assert exposures(core, *again) == [None] * 4
    assert core.stats["paused"] == 4
    later = [(1001 + window, 20 + i, 20 + i, 9) for i in range(3)]
    assert exposures(core, *later) == [None, None, 1]


def test_a_snapshot_is_refused() -> None:
    core = Levels(2, 100, 1)
    with pytest.raises(ConfigError, match="a snapshot has no votes for labels: start without it"):
        core.restore(ZTable(2, 100, keep=2).dump())


def test_settings_that_do_not_fit_are_refused() -> None:
    for arguments, text in (
        ((1001, 10, 1), "with levels, z must be from 1 to 1000"),
        ((2, 10, 64), "at most 63 levels are possible, not 64"),
    ):
        with pytest.raises(ConfigError, match=text):
            Levels(*arguments)
    core = Levels(2, 10, 1, z_max=3)
    with pytest.raises(ConfigError, match="z must be from 1 to 3, not 4"):
        core.set_z(4)
