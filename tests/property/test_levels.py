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
from oracle.generalization import BROKEN, STREAMS, Cascade, Literal, Naive, Rule, World, judge
from support.examples import EVERY_CASE, each, examples

from zanon_net._core import Levels

EXPOSURES = 10_000_000 // len(STREAMS) if EVERY_CASE else 9_000
FIRST = 100_000  # exposures in which a wrong rule has to isolate a user
SHARE = 0.95  # of the labels of the check to the letter
Z_MAX = 8


@pytest.mark.parametrize("kind", STREAMS)
def test_at_least_z_users_stand_behind_each_label(kind: str) -> None:
    """Ten million exposures in `make test-all`."""
    found = judge(Rule, kind, EXPOSURES)
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
        )
        core.check()
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
@settings(max_examples=examples(200))
@given(data=st.data(), window=st.sampled_from([7, 10, 21]), world=worlds())
def test_the_core_decides_as_the_rule(
    size: int, ordered: bool, data: st.DataObject, window: int, world: World
) -> None:
    """Exposures may be late or only peek, z moves, and clocks are set back."""
    compare(world, window, data.draw(actions(window, ordered=ordered)), size, rebase_after=3)


@pytest.mark.parametrize("size", SIZES)
@settings(max_examples=examples(200))
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
