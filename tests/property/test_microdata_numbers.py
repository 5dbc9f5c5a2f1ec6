# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers that split at medians: each class and range is judged by the definitions."""

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from oracle import microdata as oracle
from support.examples import examples
from support.microdata import arrow_table

from zanon_net import microdata as md

QUASI = ("n", "q")
COLUMNS = (*QUASI, "s", "u", "id")
FORM = re.compile(r"\[(-?[\d.]+),(-?[\d.]+)\)|<(-?[\d.]+)|(-?[\d.]+)\+|(\d+)-(\d+)|(-?[\d.]+)")

Rows = list[dict[str, Any]]

# Many equal numbers, numbers far from all others, and missing values.
NUMBERS = st.one_of(
    st.integers(0, 9), st.integers(-30, 30), st.sampled_from([0, 7, 1000, -(10**6), 10**9, None])
)


@st.composite
def tables(draw: st.DrawFn) -> Rows:
    rows = draw(st.integers(2, 30))
    users = draw(st.integers(2, 12))
    decimals = draw(st.sampled_from([0, 0, 0, 2]))
    found = []
    for i in range(rows):
        number = draw(NUMBERS)
        text = None if number is None else str(number)
        if decimals and number is not None:
            text = f"{number}.{draw(st.integers(0, 99)):02}"
        found.append(
            {
                "n": text,
                "q": draw(st.sampled_from("ab")),
                "s": draw(st.sampled_from("xyz")),
                "u": str(draw(st.integers(0, users - 1))),
                "id": str(i),
            }
        )
    return found


RULES = st.fixed_dictionaries(
    {
        "k": st.integers(1, 5),
        "l": st.sampled_from([1, 1, 2]),
        "t": st.sampled_from([None, None, 0.3]),
        "user": st.sampled_from([None, None, "u"]),
    }
)
ROUNDS = st.sampled_from([None, (1,), (10,), (10, 0, 20), (0.5,), (2.5, None, 100)])


def range_of(text: str) -> tuple[float | Fraction, float | Fraction]:
    """The lowest number of a range, and the number that it ends before."""
    match = FORM.fullmatch(text)
    assert match is not None, text
    low, end, below, above, first, last, only = match.groups()
    if only is not None:
        return Fraction(only), Fraction(only) + Fraction(1, 10**9)
    if first is not None:
        return Fraction(first), Fraction(last) + 1
    return (
        Fraction(low or above) if low or above else -math.inf,
        Fraction(end or below) if end or below else math.inf,
    )


def contains(text: str | None, raw: str | None) -> bool:
    if text == "*" or raw is None or text is None:
        return text == "*" or text == raw
    low, end = range_of(text)
    return low <= Fraction(raw) < end


def asked_of(members: Mapping[str, Any]) -> dict[str, Any]:
    return {**members, "t": 1 if members["t"] is None else members["t"], "l_kind": "distinct"} | {
        "max_share": 1
    }


def everything(rows: Sequence[Mapping[str, Any]], user: str | None) -> dict[str, Any]:
    return {"s": oracle.counts(rows, "s", user)}


@settings(max_examples=examples(120))
@given(tables(), RULES, ROUNDS, st.sampled_from([0.0, 0.1, 0.4]))
def test_ranges(
    rows: Rows, members: dict[str, Any], rounded: tuple[Any, ...] | None, suppress: float
) -> None:
    whole = not any(row["n"] is not None and "." in row["n"] for row in rows)
    assume(whole or rounded is None or isinstance(rounded[0], float))
    assume(any(row["n"] is not None for row in rows))
    rule, user = asked_of(members), members["user"]
    assume(oracle.is_good(rows, everything(rows, user), **rule))
    recoding = None if rounded is None else md.Round(*rounded)
    plan = md.Plan(quasi={"n": recoding, "q": None}, sensitive="s", passed=["id"], **members)
    table = arrow_table(rows, COLUMNS)
    result = md.anonymize(table, plan, suppress=suppress)
    raw = {row["id"]: row for row in rows}
    written = [{**row, "u": raw[row["id"]]["u"]} for row in result.table.to_pylist()]
    event(f"suppressed: {len(written) < len(rows)}")
    event(f"classes: {min(3, len(oracle.classes(written, QUASI)))}")
    assert len({row["id"] for row in written}) == len(written)
    assert all(contains(row["n"], raw[row["id"]]["n"]) for row in written)
    for group in oracle.classes(written, QUASI):
        assert oracle.is_good(group, everything(written, user), **rule)
    if user is None:
        assert len(rows) - len(written) <= suppress * len(rows)
        bare = md.anonymize(table, plan)
        assert result.report.mean_loss <= bare.report.mean_loss + 1e-9
    if recoding is not None and written:
        again = md.risk(table, result.table, plan).to_dict()
        assert again["loss"]["unknown_rows"] == {}
        left_out = len(rows) - len(written)
        if left_out == 0:
            assert again["loss"]["columns"]["n"] == pytest.approx(result.report.loss["n"])


@settings(max_examples=examples(60))
@given(tables(), st.integers(1, 4), ROUNDS, st.integers(0, 20))
def test_the_people_of_a_population(
    rows: Rows, k: int, rounded: tuple[Any, ...] | None, dropped: int
) -> None:
    """A release of some rows, whose classes count the people of all rows that they contain."""
    sample = rows[dropped % len(rows) :]
    numbers = [row["n"] for row in sample]
    assume(len(sample) >= k and any(numbers))
    assume(
        rounded is None or isinstance(rounded[0], float) or not any("." in n for n in numbers if n)
    )
    plan = md.Plan(quasi={"n": None if rounded is None else md.Round(*rounded), "q": None}, k=k)
    released = md.anonymize(arrow_table(sample, COLUMNS), plan).table
    asked = md.Plan(quasi=["n", "q"], k=k)
    facts = md.risk(None, released, asked, population=arrow_table(rows, COLUMNS)).to_dict()
    found = facts["journalist"]
    people, risk, unique = [], 0.0, 0
    for group in oracle.classes(released.to_pylist(), QUASI):
        written = group[0]
        fits = [
            row
            for row in rows
            if contains(written["n"], row["n"]) and written["q"] in (row["q"], "*")
        ]
        people.append(max(len(fits), len(group)))
        risk += len(group) / people[-1]
        unique += people[-1] == 1
    assert (found["k_map"], found["unique_rows"], found["rows_beyond"]) == (min(people), unique, 0)
    assert found["max"] == pytest.approx(1 / min(people))
    assert found["mean"] == pytest.approx(risk / len(released))
    assert found["k_map"] >= facts["k"] >= k


@settings(max_examples=examples(60))
@given(tables(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_attack_finds_the_rows_that_contain_a_target(
    rows: Rows, k: int, generator: Any
) -> None:
    """With one sensitive value and k = 1, re-ID@1 is at least the mean of 1/candidates."""
    assume(len(rows) >= k)
    rows = [{**row, "s": "x"} for row in rows]
    plan = md.Plan(quasi={"n": None, "q": None}, sensitive="s", k=k)
    released = md.anonymize(arrow_table(rows, COLUMNS), plan).table
    shuffled = generator.sample(rows, len(rows))
    facts = md.risk(arrow_table(shuffled, COLUMNS), released, plan).to_dict()
    if facts["loss"]["unknown_rows"]:
        return  # codes that are written as "*" alone
    assert facts["attack"]["release"]["targets"] == len(rows)
    assert facts["attack"]["release"]["re_id_1"] <= 1 / k + 1e-9
    expected = 0.0
    for row in rows:
        found = [
            other
            for other in released.to_pylist()
            if contains(other["n"], row["n"]) and other["q"] in (row["q"], "*")
        ]
        expected += 1 / len(found) if k == 1 else 0
    if k == 1:
        assert facts["attack"]["release"]["re_id_1"] >= expected / len(rows) - 1e-9
