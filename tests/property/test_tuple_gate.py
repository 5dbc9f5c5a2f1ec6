# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The gate of rows, beside the definitions of k-anonymity, l-diversity and t-closeness."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from zanon_net import _core
from zanon_net.errors import CapacityError

NOTHING = {"k": 1, "l": 1, "kind": 0, "c": 1.0, "max_share": 1.0, "t": 1.0}
DISTINCT, ENTROPY, RECURSIVE = range(3)
GOOD, USERS, DIVERSITY, SHARE, DISTANCE = range(5)
WORDS = [b"a", b"b", b"c", b"", None]

Row = tuple[tuple[int, ...], tuple[int, ...], int]  # quasi, sensitive: of WORDS; user


def counts(rows: Sequence[Row], column: int) -> dict[int, int]:
    """Of each sensitive value: how many users have it."""
    users = defaultdict(set)
    for _, sensitive, user in rows:
        users[sensitive[column]].add(user)
    return {value: len(of_value) for value, of_value in users.items()}


def shares(of: dict[int, int]) -> dict[int, float]:
    return {value: count / sum(of.values()) for value, count in of.items()}


def is_diverse(rule: dict[str, Any], of: dict[int, int]) -> bool:
    ordered, level, c = sorted(of.values(), reverse=True), int(rule["l"]), float(rule["c"])
    if rule["kind"] == DISTINCT:
        return len(of) >= level
    if rule["kind"] == ENTROPY:
        entropy = -sum(share * math.log(share) for share in shares(of).values())
        return entropy >= math.log(level) - 1e-9
    return ordered[0] < c * sum(ordered[level - 1 :])


def fault(rule: dict[str, Any], rows: Sequence[Row], whole: Sequence[Row]) -> int:
    """What is wrong with a class, beside the whole."""
    if len({user for *_, user in rows}) < rule["k"]:
        return USERS
    for column in range(len(rows[0][1])):
        of = counts(rows, column)
        if not is_diverse(rule, of):
            return DIVERSITY
        if max(shares(of).values()) > rule["max_share"] + 1e-9:
            return SHARE
        there = shares(counts(whole, column))
        distance = sum(abs(shares(of).get(v, 0) - p) for v, p in there.items()) / 2
        if distance > rule["t"] + 1e-9:
            return DISTANCE
    return GOOD


def expected(rule: dict[str, Any], rows: Sequence[Row]) -> list[int]:
    """The fault of each row: classes are dropped until those that are left hold."""
    classes = defaultdict(list)
    for row in rows:
        classes[row[0]].append(row)
    faults = {key: fault({**rule, "t": 1.0}, of, rows) for key, of in classes.items()}
    while True:
        left = [row for row in rows if faults[row[0]] == GOOD]
        bad = [key for key, of in classes.items() if not faults[key] and fault(rule, of, left)]
        if not bad:
            return [faults[row[0]] for row in rows]
        faults |= dict.fromkeys(bad, DISTANCE)


def decide(gate: _core.TupleGate, rows: Sequence[Row], *, users: bool) -> list[int]:
    quasi = np.array([row[0] for row in rows], np.int32).reshape(len(rows), -1)
    sensitive = np.array([row[1] for row in rows], np.int32).reshape(len(rows), -1)
    of_users = np.array([row[2] for row in rows], np.int64) if users else None
    faults = gate.decide(
        [(WORDS, column) for column in quasi.T],
        [(WORDS, column) for column in sensitive.T],
        of_users,
        len(rows),
    )
    return [int(fault) for fault in faults]


RULES = st.fixed_dictionaries(
    {
        "k": st.integers(1, 4),
        "l": st.integers(1, 3),
        "kind": st.sampled_from([DISTINCT, ENTROPY, RECURSIVE]),
        "c": st.sampled_from([0.5, 1.0, 2.0, 3.5]),
        "max_share": st.sampled_from([0.4, 0.5, 2 / 3, 1.0]),
        "t": st.sampled_from([0.1, 0.25, 0.5, 1.0]),
    }
)


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    width, depth = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    row = st.tuples(
        st.tuples(*[st.sampled_from([0, 0, 0, 1, 3, 4])] * width),
        st.tuples(*[st.integers(0, len(WORDS) - 1)] * depth),
        st.integers(0, 9),
    )
    return draw(st.lists(row, min_size=1, max_size=40))


@settings(max_examples=examples(300))
@given(RULES, tables(), st.booleans())
def test_a_class_may_be_written_when_the_definitions_hold(
    rule: dict[str, Any], rows: list[Row], users: bool
) -> None:
    gate = _core.TupleGate(rule, len(rows[0][1]))
    own = rows if users else [(*row[:2], i) for i, row in enumerate(rows)]
    assert decide(gate, rows, users=users) == expected(rule, own)


@settings(max_examples=examples(50, 8))
@given(RULES, st.lists(tables(), min_size=1, max_size=4))
def test_a_gate_forgets_what_it_decided(rule: dict[str, Any], batches: list[list[Row]]) -> None:
    rows = [[(quasi, sensitive[:1], user) for quasi, sensitive, user in b] for b in batches]
    gate = _core.TupleGate(rule, 1)
    for batch in rows:
        assert decide(gate, batch, users=True) == expected(rule, batch)


def test_large_and_small_batches_alternate() -> None:
    gate = _core.TupleGate({**NOTHING, "k": 3, "l": 2}, 1)
    generator = np.random.default_rng(5)
    for n in (3000, 10, 1, 0, 5000, 10):
        quasi = generator.integers(0, max(n // 3, 1), n).astype(np.int32)
        sensitive = generator.integers(0, 2, n).astype(np.int32)
        users = generator.integers(0, n + 1, n)
        words = [b"%d" % i for i in range(max(n // 3, 1))]
        found = gate.decide([(words, quasi)], [(WORDS, sensitive)], users, n)
        rows = [
            ((int(q),), (int(s),), int(u)) for q, s, u in zip(quasi, sensitive, users, strict=True)
        ]
        assert found.tolist() == expected({**NOTHING, "k": 3, "l": 2}, rows)


def test_the_same_bytes_are_one_value_under_two_codes() -> None:
    gate = _core.TupleGate({**NOTHING, "k": 2}, 0)
    codes = np.array([0, 1], np.int32)
    assert gate.decide([([b"x", b"x"], codes)], [], None, 2).tolist() == [GOOD, GOOD]
    assert gate.decide([([b"x", b"y"], codes)], [], None, 2).tolist() == [USERS, USERS]


def test_an_empty_text_is_not_a_missing_value() -> None:
    gate = _core.TupleGate({**NOTHING, "k": 2}, 0)
    codes = np.array([0, 1], np.int32)
    assert gate.decide([([b"", None], codes)], [], None, 2).tolist() == [USERS, USERS]


def test_diversity_without_a_sensitive_column_lets_nothing_out() -> None:
    gate = _core.TupleGate({**NOTHING, "l": 2}, 0)
    assert gate.decide([([b"x"], np.zeros(3, np.int32))], [], None, 3).tolist() == [DIVERSITY] * 3


def test_a_code_without_a_value_is_refused() -> None:
    gate = _core.TupleGate(NOTHING, 0)
    for code in (-1, 1):
        with pytest.raises(ValueError, match="no value"):
            gate.decide([([b"x"], np.array([code], np.int32))], [], None, 1)


@pytest.mark.source
def test_without_memory_nothing_may_be_written() -> None:
    rows = [((i % 5,), (i % 4,), i) for i in range(400)]
    failed = 0
    for nth in range(1, 60):
        gate = _core.TupleGate({**NOTHING, "k": 2, "t": 0.5}, 1)
        _core.fail_allocation(nth)
        try:
            assert decide(gate, rows, users=True) == [GOOD] * len(rows)
        except CapacityError:
            failed += 1
        finally:
            _core.fail_allocation(0)
        assert decide(gate, rows[:10], users=True) == expected(
            {**NOTHING, "k": 2, "t": 0.5}, rows[:10]
        )
    assert failed > 10
