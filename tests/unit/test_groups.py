# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Groups of a window's rows: examples, limits and errors."""

from random import Random
from typing import Any

import numpy as np
import pytest
from oracle.suhdsa import Grouper, Row, Rule, Tree
from support.examples import each

from zanon_net import _core
from zanon_net.errors import CapacityError, ConfigError

A, B, ROOT = 0, 1, 2
LESS, MORE = 0, 1
TWO = [[b"a", b"*"], [b"b", b"*"]]
HOST = [[b"%05d" % i, b"%03d" % (i // 4), b"%d" % (i // 40), b"*"] for i in range(800)]


def taxonomy(lines: list[list[bytes]]) -> _core.Taxonomy:
    return _core.Taxonomy(lines)


def tree(of: _core.Taxonomy) -> Tree:
    return Tree([int(up) for up in of.arrays()[0]])


def groups_of(of: np.ndarray) -> list[list[int]]:
    return [np.flatnonzero(of == group).tolist() for group in range(of.max(initial=-1) + 1)]


def column(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def test_the_papers_example_with_the_right_result() -> None:
    """3.1: {<=, <=, <=} and {<=, >, >} swap one row. Two rows of > become no three, as printed."""
    income = column(LESS, LESS, LESS, LESS, MORE, MORE)
    groups = _core.Groups([taxonomy(TWO)], rows=6, k=3, l=2)
    of, nodes = groups.window(column(A, A, B, B, B, B)[:, None], income)
    assert [sorted(income[group].tolist()) for group in groups_of(of)] == [[LESS, LESS, MORE]] * 2
    assert groups_of(of) == [[0, 1, 4], [2, 3, 5]]
    assert nodes.tolist() == [[ROOT], [B]]
    assert groups.stats == {"windows": 1, "groups": 2, "swaps": 1, "merges": 0, "pairs": 9}


def test_one_group_a_window_has_no_neighbour() -> None:
    """(10, 10): the paper's method is the one without repairs."""
    random = Random(10)
    rows = [(random.randrange(4), random.random() < 0.24) for _ in range(2000)]
    quasi = np.array([[row[0]] for row in rows])
    income = np.array([row[1] for row in rows], np.int64)
    lines = [[b"%d" % i, b"%d" % (i // 2) * 2, b"*"] for i in range(4)]
    options: dict[str, Any] = {"rows": 10, "k": 10, "l": 2, "strict": False}
    repaired = _core.Groups([taxonomy(lines)], **options).window(quasi, income, rows=10)
    plain = _core.Groups([taxonomy(lines)], repair=False, **options).window(quasi, income, rows=10)
    assert repaired[0].tolist() == plain[0].tolist()
    assert repaired[1].tolist() == plain[1].tolist()
    assert len(repaired[1]) == 200


def test_a_group_that_cannot_be_repaired_stays_or_is_dissolved() -> None:
    quasi, income = np.zeros((6, 1), np.int64), np.zeros(6, np.int64)
    options: dict[str, Any] = {"rows": 6, "k": 3, "l": 2}
    letter = _core.Groups([taxonomy(TWO)], strict=False, **options).window(quasi, income)
    strict = _core.Groups([taxonomy(TWO)], **options).window(quasi, income)
    assert groups_of(letter[0]) == [[0, 1, 2], [3, 4, 5]]
    assert strict[0].tolist() == [-1] * 6
    assert len(strict[1]) == 0


def test_strict_merges_past_the_growth() -> None:
    """The only other value is three groups away."""
    quasi = column(*[A] * 9, *[B] * 3)[:, None]
    income = column(*[LESS] * 11, MORE)
    strict = _core.Groups([taxonomy(TWO)], rows=12, k=3, l=2, growth=1)
    assert strict.window(quasi, income)[0].tolist() == [0] * 12
    letter = _core.Groups([taxonomy(TWO)], rows=12, k=3, l=2, growth=1, strict=False)
    assert len(letter.window(quasi, income)[1]) == 4


def test_a_user_is_in_a_group_once_while_it_forms() -> None:
    user = column(7, 7, 7, 8, 9, 9)
    groups = _core.Groups([taxonomy(TWO)], rows=6, sensitive=0, k=2)
    of, _ = groups.window(np.zeros((6, 1), np.int64), None, user)
    assert groups_of(of) == [[0, 3], [1, 4], [2, 5]]
    alone = groups.window(np.zeros((6, 1), np.int64), None, column(*[7] * 6))
    assert alone[0].tolist() == [-1] * 6


def test_too_few_rows_make_no_group() -> None:
    groups = _core.Groups([taxonomy(TWO)], rows=5, sensitive=0, k=5)
    of, nodes = groups.window(np.zeros((4, 1), np.int64))
    assert of.tolist() == [-1] * 4
    assert len(nodes) == 0
    of, nodes = groups.window(np.zeros((0, 1), np.int64))
    assert len(of) == len(nodes) == 0


def test_a_taxonomy_without_a_table_of_distances() -> None:
    """Beyond some hundred nodes it would not stay in the processor's cache."""
    random, of = Random(3), taxonomy(HOST)
    assert of.nodes > 512
    rows = [Row((random.randrange(800),), (random.randrange(3),)) for _ in range(150)]
    oracle = Grouper([tree(of)], Rule(4, 2))
    groups = _core.Groups([of], rows=150, k=4, l=2)
    got, nodes = groups.window(
        np.array([row.quasi for row in rows]), np.array([row.sensitive for row in rows])
    )
    assert groups_of(got) == oracle.window(rows)
    assert len(nodes) == len(groups_of(got))


def test_a_large_window_is_split_by_its_taxonomies_first() -> None:
    """4,001 rows of two branches: no group has rows of both."""
    random = Random(4)
    lines = [[b"%02d" % i, b"%d*" % (i // 8), b"*"] for i in range(16)]
    quasi = np.array([[random.randrange(16)] for _ in range(4001)])
    values = np.array([random.randrange(2) for _ in range(4001)])
    of, nodes = _core.Groups([taxonomy(lines)], rows=4001, k=7, l=2).window(quasi, values)
    assert of.min() == 0
    assert np.bincount(of).min() >= 7
    branch = quasi[:, 0] // 8
    assert all(len(set(branch[of == group].tolist())) == 1 for group in range(len(nodes)))


def test_one_value_is_split_by_rows() -> None:
    quasi = np.zeros((9000, 1), np.int64)
    of, nodes = _core.Groups([taxonomy(TWO)], rows=9000, sensitive=0, k=10).window(quasi)
    assert of.min() == 0
    assert np.bincount(of).min() >= 10
    assert len(nodes) == 900


@each(
    "wrong",
    [
        {"k": 0},
        {"k": 6},
        {"l": 0},
        {"t": 0.5},
        {"rows": 0},
        {"rows": 1 << 25},
        {"neighbours": 0},
        {"growth": 0},
        {"weight": 1.1},
        {"weight": float("nan")},
        {"kind": 3},
        {"sensitive": 17},
    ],
)
def test_numbers_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        _core.Groups([taxonomy(TWO)], **({"rows": 5, "k": 2} | wrong))
    with pytest.raises(ConfigError):
        _core.Groups([], rows=5)
    with pytest.raises(ConfigError):
        _core.Groups([taxonomy(TWO)] * 17, rows=5)


def test_arrays_that_do_not_fit_are_refused() -> None:
    groups = _core.Groups([taxonomy(TWO)], rows=5, k=2)
    good, values = np.zeros((3, 1), np.int64), np.zeros(3, np.int64)
    for quasi, sensitive, user in (
        (np.zeros((3, 2), np.int64), values, None),
        (good + 3, values, None),
        (good - 1, values, None),
        (good.astype(float), values, None),
        (good, values[:2], None),
        (good, values, values[:2]),
        (good, values.astype(np.int32), None),
    ):
        with pytest.raises(ValueError, match=r"quasi|sensitive|user"):
            groups.window(quasi, sensitive, user)
    with pytest.raises(ConfigError):
        groups.window(np.zeros((6, 1), np.int64), np.zeros(6, np.int64))
    with pytest.raises(TypeError):
        _core.Groups([None], rows=5)


def test_adaptive_l_goes_both_ways_and_refuses_nonsense() -> None:
    even, skewed = np.log(4), 0.2
    up, down = (_core.AdaptiveL(2, 4, way, alpha=1, band=0, dwell=0) for way in ("up", "down"))
    assert [up.next(even, 4), up.next(skewed, 4)] == [2, 3]
    assert [down.next(even, 4), down.next(skewed, 4)] == [4, 2]
    for wrong in (
        {"l_min": 0},
        {"l_max": 1},
        {"way": "sideways"},
        {"alpha": 0},
        {"alpha": 1.5},
        {"band": -0.1},
    ):
        with pytest.raises(ConfigError):
            _core.AdaptiveL(**({"l_min": 2, "l_max": 4} | wrong))


def test_a_slow_drift_gets_through_the_band() -> None:
    """As printed, each step is compared with the one before, and l would never move."""
    adaptive = _core.AdaptiveL(1, 9, "down", alpha=1, band=0.1, dwell=0)
    got = [adaptive.next(np.log(2) * share, 2) for share in np.linspace(0, 1, 41)]
    assert got[0] == 1
    assert got[-1] >= 8
    assert len(set(got)) > 5


@pytest.mark.source
def test_no_memory_is_an_error() -> None:
    try:
        for n in (1, 2):
            _core.fail_allocation(n)
            with pytest.raises(CapacityError):
                _core.Groups([taxonomy(TWO)], rows=5)
    finally:
        _core.fail_allocation(0)
