# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What `check` and `risk` say about random tables, beside the definitions by brute force."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import microdata as oracle
from support.microdata import WORDS, arrow_table, rows_of

from zanon_net import microdata as md
from zanon_net.microdata.arrow import as_table
from zanon_net.microdata.measures import measure

QUASI, SENSITIVE = ("q1", "q2"), ("s1", "s2")
COLUMNS = (*QUASI, *SENSITIVE, "u")


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows of few values in each column, a missing one among them."""
    values = st.lists(st.one_of(WORDS, st.none()), min_size=1, max_size=3, unique=True)
    return draw(rows_of({name: draw(values) for name in COLUMNS}))


rules = st.fixed_dictionaries(
    {
        "k": st.integers(1, 4),
        "l": st.integers(1, 4),
        "l_kind": st.sampled_from(["distinct", "entropy", "recursive:0.6", "recursive:2"]),
        "max_share": st.sampled_from([None, 0.5, 2 / 3]),
        "t": st.sampled_from([None, 0.0, 0.25, 0.5]),
    }
)


def as_written(table: pa.Table, form: str) -> pa.Table:
    """The same table in other types of Arrow, or in pieces."""
    if form == "words":
        return pa.table({name: table.column(name).dictionary_encode() for name in COLUMNS})
    if form == "large":
        return table.cast(pa.schema([(name, pa.large_string()) for name in COLUMNS]))
    if form == "pieces":
        return pa.concat_tables([table.slice(0, 2), table.slice(2, 0), table.slice(2)])
    return table


@given(
    tables(),
    rules,
    st.sampled_from(["u", None]),
    st.sampled_from(["plain", "words", "large", "pieces"]),
)
def test_classes(
    rows: list[dict[str, Any]], asked: dict[str, Any], user: str | None, form: str
) -> None:
    plan = md.Plan(quasi=QUASI, sensitive=SENSITIVE, user=user, **asked)
    table = as_written(arrow_table(rows, COLUMNS), form)
    report = md.check(table, plan).to_dict()
    groups = oracle.classes(rows, QUASI)
    parts = {name: [oracle.counts(group, name, user) for group in groups] for name in SENSITIVE}
    everything = {name: oracle.counts(rows, name, user) for name in SENSITIVE}

    assert (report["rows"], report["classes"]) == (len(rows), len(groups))
    assert report["k"] == oracle.k_of(rows, QUASI, user)
    assert report["users"] == (None if user is None else len({row["u"] for row in rows}))
    for name, part in parts.items():
        if not part:
            continue
        check_diversity(report["sensitive"][name], part, everything[name])

    ask = {key: 1 if value is None else value for key, value in asked.items()}
    bad = [group for group in groups if not oracle.is_good(group, everything, user=user, **ask)]
    assert report["holds"] == (not bad and (bool(rows) or not report["required"]))
    assert sum(failed["classes"] for failed in report["failed"].values()) == len(bad)
    assert sum(failed["rows"] for failed in report["failed"].values()) == sum(map(len, bad))


def check_diversity(
    found: Mapping[str, Any], part: Sequence[Mapping[Any, int]], everything: Mapping[Any, int]
) -> None:
    assert found["values"] == len(everything)
    assert found["l"] == min(map(len, part))
    assert found["entropy_l"] == pytest.approx(math.exp(min(map(oracle.entropy, part))))
    for l in range(2, found["l"] + 1):  # noqa: E741
        bounds = [oracle.recursive_c(of, l) for of in part]
        assert found["recursive_c"][str(l)] == pytest.approx(float(max(filter(None, bounds))))
    assert found["share"]["max"] == pytest.approx(float(max(map(oracle.share, part))))
    assert found["share"]["whole"] == pytest.approx(float(oracle.share(everything)))
    distances = [oracle.distance(of, everything) for of in part]
    assert found["t"]["max"] == pytest.approx(float(max(distances)))


@given(tables(), st.sampled_from(["u", None]))
def test_each_fault_is_of_its_class(rows: list[dict[str, Any]], user: str | None) -> None:
    """Class by class, since counts alone could be right by chance."""
    plan = md.Plan(quasi=QUASI, sensitive="s1", user=user, k=2, l=2)
    classes = measure(as_table(arrow_table(rows, COLUMNS), plan.read_columns), plan)
    for members, fault in zip(classes.quasi.to_pylist(), classes.faults(plan.rule), strict=True):
        group = [row for row in rows if oracle.same(row, members, QUASI)]
        is_small = oracle.users(group, user) < 2
        is_alike = len(oracle.counts(group, "s1", user)) < 2
        assert fault == (1 if is_small else 2 if is_alike else 0)


# ---- risk ---------------------------------------------------------------------------------------

LINES: dict[str, dict[Any, list[Any]]] = {
    "q1": {
        "a": ["a", "vowel", "*"],
        "e": ["e", "vowel", "*"],
        "b": ["b", "consonant", "*"],
        None: [None, "none", "*"],
    },
    "q2": {"1": ["1", "low", "*"], "2": ["2", "low", "*"], "3": ["3", "3", "*"]},
}


@st.composite
def releases(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(original rows, some of them generalized by any levels)."""
    values = {**{name: list(lines) for name, lines in LINES.items()}, "s1": ["x", "y", None]}
    rows = draw(rows_of({**values, "t": range(4)}, least=1, most=8))
    kept = draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=5, unique=True))
    released = []
    for i in kept:
        written = {
            name: lines[rows[i][name]][draw(st.integers(0, 2))] for name, lines in LINES.items()
        }
        left = rows[i]["t"] + draw(st.integers(0, 2))
        released.append({**written, "s1": rows[i]["s1"], "t": left})
    return rows, released


Rows = list[dict[str, Any]]


@given(releases())
def test_attack(tables: tuple[Rows, Rows]) -> None:
    original, released = tables
    columns = [*LINES, "s1"]
    quasi = {name: md.Hierarchy.from_lines(list(lines.values())) for name, lines in LINES.items()}
    plan = md.Plan(quasi=quasi, sensitive="s1")
    report = md.risk(arrow_table(original, columns), arrow_table(released, columns), plan).to_dict()
    check_attack(report["attack"]["release"], original, [released] * len(original), list(LINES))
    whole = [oracle.most_frequent(released, "s1", row["s1"]) for row in original]
    matched = [
        chance
        for chance, row in zip(whole, original, strict=True)
        if oracle.disclosed(row, released, LINES, "s1", list(LINES)) is not None
    ]
    left_out = len(original) - len(released)
    base = report["attack"]["release"]["attribute"]["s1"]["base"]
    assert base == pytest.approx(float(sum(matched) / len(matched)))
    loss = [
        (sum(oracle.loss(LINES[name], row[name]) for row in released) + left_out) / len(original)
        for name in LINES
    ]
    assert report["loss"]["mean"] == pytest.approx(float(sum(loss) / len(loss)))


@given(releases(), st.integers(1, 3))
def test_attack_in_the_window_of_each_target(tables: tuple[Rows, Rows], delay: int) -> None:
    original, released = tables
    columns = [*LINES, "s1"]
    quasi = {name: md.Hierarchy.from_lines(list(lines.values())) for name, lines in LINES.items()}
    plan = md.Plan(quasi=quasi, sensitive="s1")
    raw, shared = (
        arrow_table(rows, columns).append_column("t", pa.array([row["t"] for row in rows]))
        for rows in tables
    )
    report = md.risk(raw, shared, plan, time="t", delay=delay, time_unit="ns").to_dict()
    windows = [
        [left for left in released if row["t"] <= left["t"] <= row["t"] + delay] for row in original
    ]
    check_attack(report["attack"]["window"], original, windows, [*LINES, "t"])


def check_attack(found: dict[str, Any], original: Rows, seen: list[Rows], key: list[str]) -> None:
    """seen: the released rows that the attacker looks at, for each target. key: of classes."""
    pairs = list(zip(original, seen, strict=True))
    for k in (1, 5):
        chances = [oracle.re_id(row, rows, LINES, ["s1"], k) for row, rows in pairs]
        known = [chance for chance in chances if chance is not None]
        assert found["targets"] == len(known)
        assert found[f"re_id_{k}"] == pytest.approx(float(sum(known) / max(1, len(known))))
    hits = [oracle.disclosed(row, rows, LINES, "s1", key) for row, rows in pairs]
    right = [hit for hit in hits if hit is not None]
    assert found["attribute"]["s1"]["hit"] == pytest.approx(float(sum(right) / max(1, len(right))))
