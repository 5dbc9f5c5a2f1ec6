# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Groups of a window's rows beside Algorithm 1 in plain Python, window for window."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.adaptive_l import adaptive_l, entropy
from oracle.suhdsa import Grouper, Row, Rule, Tree
from support.examples import examples

from zanon_net import _core

KINDS = {"distinct": (0, 1.0), "entropy": (1, 1.0)} | {
    f"recursive:{c}": (2, c) for c in (0.5, 1.0, 2.5, 6.0)
}


@dataclass
class Case:
    """A window, and what groups it."""

    lines: list[list[list[bytes]]]  # of the taxonomy of each column
    rows: list[Row]
    rule: Rule
    settings: dict[str, Any]
    aim: int
    has_users: bool

    @property
    def taxonomies(self) -> list[_core.Taxonomy]:
        return [_core.Taxonomy(lines) for lines in self.lines]

    def oracle(self) -> Grouper:
        trees = [Tree([int(up) for up in taxonomy.arrays()[0]]) for taxonomy in self.taxonomies]
        return Grouper(trees, self.rule, **self.settings)

    def groups(self) -> _core.Groups:
        kind, c = KINDS[self.rule.l_kind]
        return _core.Groups(
            self.taxonomies,
            rows=max(len(self.rows), self.rule.k),
            sensitive=len(self.rows[0].sensitive),
            k=self.rule.k,
            l=self.rule.l,
            kind=kind,
            c=c,
            max_share=self.rule.max_share,
            **self.settings,
        )

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        n = len(self.rows)
        return (
            np.array([row.quasi for row in self.rows], np.int64).reshape(n, -1),
            np.array([row.sensitive for row in self.rows], np.int64).reshape(n, -1),
            np.array([row.user for row in self.rows], np.int64) if self.has_users else None,
        )


@st.composite
def hierarchies(draw: st.DrawFn, most: int = 12) -> list[list[bytes]]:
    """Lines of up to `most` leaves: each level puts the nodes of the one below together."""
    leaves = draw(st.integers(1, most))
    columns, above = [[b"%03d" % leaf for leaf in range(leaves)]], list(range(leaves))
    for level in range(draw(st.integers(0, 2))):
        into = draw(st.lists(st.integers(0, 4), min_size=most, max_size=most))
        above = [into[node] for node in above]
        columns.append([b"%d-%d" % (level, node) for node in above])
    columns.append([b"*"] * leaves)
    return [list(line) for line in zip(*columns, strict=True)]


def nodes_of(lines: Sequence[Sequence[bytes]]) -> int:
    return sum(len(set(level)) for level in zip(*lines, strict=True))


@st.composite
def cases(draw: st.DrawFn, *, strict: bool | None = None) -> Case:
    """Windows of few values, so that ties and lacks are common."""
    lines = draw(st.lists(hierarchies(), min_size=1, max_size=3))
    has_users = draw(st.booleans())
    skew = draw(st.integers(1, 6))
    quasi = st.tuples(
        *(st.integers(0, len(of) - 1) | st.integers(0, nodes_of(of) - 1) for of in lines)
    )
    values = st.tuples(
        *[st.integers(0, 9).map(lambda v: max(v - skew, 0))] * draw(st.integers(0, 2))
    )
    users = st.integers(0, 15) if has_users else st.none()
    rows = draw(st.lists(st.builds(Row, quasi, values, users), min_size=1, max_size=40))
    rule = Rule(
        draw(st.integers(1, 6)),
        draw(st.integers(1, 4)),
        draw(st.sampled_from(sorted(KINDS))),
        draw(st.sampled_from([1.0, 0.75])),
    )
    settings = {
        "repair": draw(st.sampled_from([True, True, True, False])),
        "strict": draw(st.booleans()) if strict is None else strict,
        "neighbours": draw(st.integers(1, 4)),
        "growth": draw(st.integers(1, 4)),
        "weight": draw(st.sampled_from([0.0, 0.3, 0.7, 1.0])),
        "part": draw(st.sampled_from([4000, 4000, 12])),
    }
    return Case(lines, rows, rule, settings, draw(st.sampled_from([0, 0, 3])), has_users)


def members(of: np.ndarray, count: int) -> list[list[int]]:
    return [np.flatnonzero(of == group).tolist() for group in range(count)]


@settings(max_examples=examples(250), deadline=None)
@given(cases())
def test_groups_are_those_of_the_oracle(case: Case) -> None:
    oracle, groups = case.oracle(), case.groups()
    of, nodes = groups.window(*case.arrays(), l=case.aim)
    expected = oracle.window(case.rows, case.aim)
    assert members(of, len(nodes)) == expected
    assert nodes.tolist() == [list(oracle.nodes(group)) for group in expected]
    stats = groups.stats
    counted = (stats["swaps"], stats["merges"], stats["pairs"], stats["groups"])
    assert counted == (oracle.swaps, oracle.merges, oracle.pairs, len(expected))


def _common(random: Random) -> Case:
    """A window in which many groups lack a value and have neighbours that can give it."""
    lines = [
        [[b"%d" % leaf, b"of %d" % (leaf // 3), b"*"] for leaf in range(random.choice([9, 15]))]
        for _ in range(3)
    ]
    rows = [
        Row(
            tuple(min(int(random.expovariate(0.3)), len(of) - 1) for of in lines),
            (random.choices(range(4), (0.7, 0.15, 0.1, 0.05))[0],),
        )
        for _ in range(50)
    ]
    settings = {
        "strict": random.choice([False, True]),
        "growth": random.choice([1, 2, 3]),
        "weight": random.choice([0.3, 0.7, 1.0]),
    }
    return Case(
        lines, rows, Rule(random.randint(3, 7), random.choice([2, 2, 3])), settings, 0, False
    )


def test_swaps_and_merges_are_those_of_the_oracle() -> None:
    swaps = merges = 0
    for seed in range(120):
        case = _common(Random(seed))
        oracle, groups = case.oracle(), case.groups()
        of, nodes = groups.window(*case.arrays())
        assert members(of, len(nodes)) == oracle.window(case.rows)
        assert groups.stats["pairs"] == oracle.pairs
        swaps += oracle.swaps
        merges += oracle.merges
    assert min(swaps, merges) > 100


@settings(max_examples=examples(120), deadline=None)
@given(cases())
def test_the_oldest_row_gets_the_group_of_the_oracle(case: Case) -> None:
    of, nodes = case.groups().oldest(*case.arrays())
    group = np.flatnonzero(of == 0).tolist()
    assert group == case.oracle().oldest(case.rows)
    assert len(nodes) == (1 if group else 0)
    assert set(of.tolist()) <= {0, -1}
    if group:
        assert nodes.tolist() == [list(_rows_of(case).nodes(group))]


def _rows_of(case: Case) -> Grouper:
    oracle = case.oracle()
    oracle.rows = case.rows
    return oracle


@settings(max_examples=examples(120), deadline=None)
@given(cases(strict=True))
def test_a_strict_group_has_all_that_the_rule_asks_for(case: Case) -> None:
    """Said without the oracle's algorithm: by its definition of a good group."""
    of, nodes = case.groups().window(*case.arrays(), l=case.aim)
    oracle = _rows_of(case)
    oracle.aim = case.rule.l
    for group, of_group in zip(members(of, len(nodes)), nodes.tolist(), strict=True):
        assert oracle.good(group)
        for row in group:
            for tree, node, own in zip(oracle.trees, of_group, case.rows[row].quasi, strict=True):
                assert node in tree.path(own)


@settings(max_examples=examples(60), deadline=None)
@given(cases(), st.integers(1, 20))
def test_windows_in_one_call_are_the_same_one_by_one(case: Case, rows: int) -> None:
    rows = min(rows, max(len(case.rows), case.rule.k))
    quasi, sensitive, user = case.arrays()
    of, nodes = case.groups().window(quasi, sensitive, user, l=case.aim, rows=rows)
    groups, count = case.groups(), 0
    for at in range(0, len(quasi), rows):
        here = slice(at, at + rows)
        own = None if user is None else user[here]
        one, one_nodes = groups.window(quasi[here], sensitive[here], own, l=case.aim)
        assert of[here].tolist() == np.where(one < 0, -1, one + count).tolist()
        assert nodes[count : count + len(one_nodes)].tolist() == one_nodes.tolist()
        count += len(one_nodes)
    assert len(nodes) == count


@settings(max_examples=examples(60), deadline=None)
@given(cases(strict=True), st.randoms(use_true_random=False))
def test_names_of_values_and_users_change_nothing(case: Case, random: Any) -> None:
    quasi, sensitive, user = case.arrays()
    of, nodes = case.groups().window(quasi, sensitive, user)
    mask = np.uint64(random.getrandbits(64))
    others = None if user is None else user.view(np.uint64) ^ mask
    renamed = case.groups().window(quasi, sensitive.view(np.uint64) ^ mask, others)
    assert of.tolist() == renamed[0].tolist()
    assert nodes.tolist() == renamed[1].tolist()


@settings(max_examples=examples(120), deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=8), min_size=1, max_size=20),
    st.integers(1, 3),
    st.integers(0, 4),
    st.sampled_from(["up", "down"]),
    st.sampled_from([0.1, 0.5, 1.0]),
    st.sampled_from([0.0, 0.05, 0.4]),
    st.integers(0, 4),
)
def test_l_adapts_as_the_oracle_says(
    windows: list[list[int]],
    l_min: int,
    more: int,
    way: str,
    alpha: float,
    band: float,
    dwell: int,
) -> None:
    adaptive = _core.AdaptiveL(l_min, l_min + more, way, alpha=alpha, band=band, dwell=dwell)
    got = [adaptive.next(entropy(values), len(set(values))) for values in windows]
    expected = adaptive_l(
        windows, l_min, l_min + more, rises=way == "up", alpha=alpha, band=band, dwell=dwell
    )
    assert got == list(expected)
    assert all(l_min <= one <= l_min + more for one in got)


@settings(max_examples=examples(50), deadline=None)
@given(cases())
def test_entropy_is_that_of_users_values(case: Case) -> None:
    oracle = _rows_of(case)
    got = case.groups().entropy(*case.arrays())
    for column, (h, values) in enumerate(got):
        counts = oracle.counts(range(len(case.rows)), column)
        assert h == pytest.approx(entropy(list(counts.elements())), abs=1e-12)
        assert values == len(counts)
