# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What `anonymize` writes of random tables: judged by the definitions, row by row."""

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from oracle import microdata as oracle
from support.examples import examples
from support.microdata import arrow_table, rows_of

from zanon_net import microdata as md
from zanon_net.errors import ConfigError, ZanonError
from zanon_net.microdata.topdown import Column

QUASI, SENSITIVE = ("q1", "q2"), ("s1", "s2")
COLUMNS = (*QUASI, *SENSITIVE, "u", "id")
LEAVES = ["a", "b", "c", "d", "e", None]
UNKNOWN = "nobody's"

Lines = list[list[str | None]]
Rows = list[dict[str, Any]]

RULES = st.fixed_dictionaries(
    {
        "k": st.integers(1, 4),
        "l": st.sampled_from([1, 1, 1, 2, 2, 3]),
        "l_kind": st.sampled_from(["distinct", "distinct", "distinct", "entropy", "recursive:3"]),
        "max_share": st.sampled_from([None, None, None, 0.6, 0.75]),
        "t": st.sampled_from([None, None, None, 0.2, 0.4]),
    }
)


@st.composite
def hierarchies(draw: st.DrawFn) -> Lines:
    """Lines from each of LEAVES to the root: each level joins nodes of the one below."""
    lines: Lines = [[leaf] for leaf in LEAVES]
    nodes: list[Any] = list(LEAVES)
    for level in range(draw(st.integers(0, 2))):
        joined = {node: draw(st.integers(0, 2)) for node in dict.fromkeys(nodes)}
        nodes = [f"{level}:{joined[node]}" for node in nodes]
        for line, node in zip(lines, nodes, strict=True):
            line.append(node)
    return [[*line, "*"] for line in lines]


@st.composite
def tables(draw: st.DrawFn) -> Rows:
    cells: dict[str, Sequence[Any]] = {
        name: draw(st.lists(st.sampled_from(LEAVES), min_size=1, max_size=4)) for name in QUASI
    }
    cells |= {name: ["x", "x", "y", "z", None] for name in SENSITIVE}
    cells |= {"u": [str(i) for i in range(draw(st.integers(2, 12)))]}
    rows = draw(rows_of(cells, least=draw(st.sampled_from([1, 8])), most=24))
    return [{**row, "id": str(i)} for i, row in enumerate(rows)]


@st.composite
def plans(draw: st.DrawFn) -> tuple[dict[str, Lines], dict[str, Any]]:
    """(the hierarchies' lines, other members of a plan)."""
    lines = {name: draw(hierarchies()) for name in QUASI}
    names = SENSITIVE[: draw(st.integers(1, 2))]
    members = {**draw(RULES), "sensitive": names, "user": draw(st.sampled_from(["u", None]))}
    return lines, members


def plan_of(lines: Mapping[str, Lines], members: Mapping[str, Any]) -> md.Plan:
    quasi = {name: md.Hierarchy.from_lines(of) for name, of in lines.items()}
    return md.Plan(quasi=quasi, passed=["id"], **members)


def asked_of(members: Mapping[str, Any]) -> dict[str, Any]:
    rule = {name: members[name] for name in ("k", "l", "l_kind", "max_share", "t", "user")}
    return {name: 1 if value is None and name != "user" else value for name, value in rule.items()}


def everything(rows: Sequence[Mapping[str, Any]], members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: oracle.counts(rows, name, members["user"]) for name in members["sensitive"]}


def ancestors(lines: Lines) -> dict[str | None, list[str | None]]:
    return {line[0]: line for line in lines}


def written_rows(result: Any, rows: Rows) -> Rows:
    """The rows that were written, with their users, and the raw rows' ids."""
    raw = {row["id"]: row for row in rows}
    written = result.table.to_pylist()
    assert len({row["id"] for row in written}) == len(written)
    return [{**row, "u": raw[row["id"]]["u"]} for row in written]


def check_written(
    result: Any, rows: Rows, lines: Mapping[str, Lines], members: Mapping[str, Any]
) -> None:
    """The invariants of a release."""
    raw = {row["id"]: row for row in rows}
    written = written_rows(result, rows)
    for group in oracle.classes(written, QUASI):
        assert oracle.is_good(group, everything(written, members), **asked_of(members))
    total = [0.0, 0.0]
    for row in written:
        for place, name in enumerate(QUASI):
            line = ancestors(lines[name])[raw[row["id"]][name]]
            assert row[name] in line
            total[place] += float(oracle.loss(ancestors(lines[name]), row[name]))
        assert all(row[name] == raw[row["id"]][name] for name in members["sensitive"])
    report = result.report
    suppressed = sum(report.suppressed.values())
    assert (report.rows_in, report.rows_out) == (len(rows), len(written))
    assert len(written) + suppressed == len(rows)
    # A label that stands at two levels has the loss of the higher one for the oracle.
    for of, name in zip(total, QUASI, strict=True):
        assert report.loss[name] * len(rows) <= of + suppressed + 1e-6
    if not suppressed and members["user"] is None:
        assert report.classes["holds"]


def is_feasible(rows: Rows, members: Mapping[str, Any]) -> bool:
    return oracle.is_good(rows, everything(rows, members), **asked_of(members))


@settings(max_examples=examples(80))
@given(tables(), plans(), st.sampled_from([0.0, 0.1, 0.5]))
def test_top_down(
    rows: Rows, plan: tuple[dict[str, Lines], dict[str, Any]], suppress: float
) -> None:
    lines, members = plan
    if not is_feasible(rows, members):
        with pytest.raises(ConfigError, match=r"^(k|l|max_share): |^the table as a whole"):
            md.anonymize(arrow_table(rows, COLUMNS), plan_of(*plan))
        return
    result = md.anonymize(arrow_table(rows, COLUMNS), plan_of(*plan), suppress=suppress)
    event(f"{result.report.classes['classes'] > 1}, {result.report.rows_out < len(rows)}")
    check_written(result, rows, lines, members)
    if members["user"] is None:
        assert len(rows) - result.report.rows_out <= suppress * len(rows)
        whole = md.anonymize(arrow_table(rows, COLUMNS), plan_of(*plan))
        assert result.report.mean_loss <= whole.report.mean_loss + 1e-9


def survivors(rows: Rows, members: Mapping[str, Any]) -> Rows:
    """What may be written of generalized rows: without the classes that fail, then without those
    that are too far from what is left, until all hold."""
    rule = asked_of(members)
    groups = oracle.classes(rows, QUASI)
    near = {**rule, "t": 1}
    groups = [group for group in groups if oracle.is_good(group, everything(rows, members), **near)]
    while True:
        left = [row for group in groups for row in group]
        good = [
            group for group in groups if oracle.is_good(group, everything(left, members), **rule)
        ]
        if len(good) == len(groups):
            return left
        groups = good


def recoded(rows: Rows, lines: Mapping[str, Lines], levels: Mapping[str, int]) -> Rows:
    trees = {name: ancestors(of) for name, of in lines.items()}
    return [
        {**row, **{name: trees[name][row[name]][levels[name]] for name in QUASI}} for row in rows
    ]


def exhaustive(
    rows: Rows, lines: Mapping[str, Lines], members: Mapping[str, Any], suppress: float
) -> float | None:
    """The least loss over all levels."""
    best = None
    trees = {name: ancestors(of) for name, of in lines.items()}
    for chosen in itertools.product(*(range(len(lines[name][0])) for name in QUASI)):
        levels = dict(zip(QUASI, chosen, strict=True))
        left = survivors(recoded(rows, lines, levels), members)
        suppressed = len(rows) - len(left)
        if suppressed > suppress * len(rows) + 1e-9:
            continue
        lost = float(suppressed)
        for row in left:
            raw = next(other for other in rows if other["id"] == row["id"])
            for name in QUASI:
                below = {
                    line[0]
                    for line in lines[name]
                    if line[levels[name]] == trees[name][raw[name]][levels[name]]
                }
                lost += (len(below) - 1) / (len(LEAVES) - 1) / len(QUASI)
        best = lost if best is None else min(best, lost)
    return None if best is None else best / len(rows)


@settings(max_examples=examples(50))
@given(tables(), plans(), st.sampled_from([0.0, 0.1, 0.5]))
def test_the_lattice_has_the_least_loss(
    rows: Rows, plan: tuple[dict[str, Lines], dict[str, Any]], suppress: float
) -> None:
    lines, members = plan
    assume(is_feasible(rows, members))
    result = md.anonymize(
        arrow_table(rows, COLUMNS), plan_of(*plan), method="lattice", suppress=suppress
    )
    check_written(result, rows, lines, members)
    assert len(rows) - result.report.rows_out <= suppress * len(rows) + 1e-9
    assert result.report.mean_loss == pytest.approx(exhaustive(rows, lines, members, suppress))


@settings(max_examples=examples(50))
@given(tables(), plans(), st.sampled_from([0.0, 0.3, 1.0]), st.randoms(use_true_random=False))
def test_fixed_levels(
    rows: Rows,
    plan: tuple[dict[str, Lines], dict[str, Any]],
    suppress: float,
    generator: random.Random,
) -> None:
    lines, members = plan
    assume(is_feasible(rows, members))
    levels = {name: generator.randrange(len(of[0])) for name, of in lines.items()}
    left = survivors(recoded(rows, lines, levels), members)

    def run() -> Any:
        return md.anonymize(
            arrow_table(rows, COLUMNS),
            plan_of(*plan),
            method="fixed",
            suppress=suppress,
            levels=levels,
        )

    if len(rows) - len(left) > suppress * len(rows) + 1e-9:
        with pytest.raises(ZanonError, match=r"rows .* are in classes that do not meet"):
            run()
        return
    result = run()
    check_written(result, rows, lines, members)
    assert sorted(row["id"] for row in result.table.to_pylist()) == sorted(
        row["id"] for row in left
    )


@settings(max_examples=examples(40))
@given(
    tables(),
    plans(),
    st.sampled_from(["topdown", "lattice"]),
    st.randoms(use_true_random=False),
)
def test_neither_the_order_of_lines_nor_of_rows_matters(
    rows: Rows,
    plan: tuple[dict[str, Lines], dict[str, Any]],
    method: str,
    generator: random.Random,
) -> None:
    lines, members = plan
    assume(is_feasible(rows, members))
    shuffled = {name: generator.sample(of, len(of)) for name, of in lines.items()}
    others = generator.sample(rows, len(rows))
    first, second = (
        md.anonymize(
            arrow_table(of, COLUMNS), plan_of(by, members), method=method, suppress=0.3
        ).table
        for of, by in ((rows, lines), (others, shuffled))
    )
    assert first.equals(second)


@settings(max_examples=examples(40))
@given(tables(), plans(), st.sampled_from(["suppress", "top"]), st.integers(0, 3))
def test_unknown_values(
    rows: Rows, plan: tuple[dict[str, Lines], dict[str, Any]], unknown: str, count: int
) -> None:
    lines, members = plan
    strange = {row["id"] for row in rows[:count]}
    told = [{**row, "q1": UNKNOWN} if row["id"] in strange else row for row in rows]
    kept = rows[count:] if unknown == "suppress" else rows
    assume(kept and is_feasible(kept, members))
    result = md.anonymize(
        arrow_table(told, COLUMNS), plan_of(lines, {**members, "unknown": unknown})
    )
    written = {row["id"]: row for row in result.table.to_pylist()}
    assert UNKNOWN not in str(result.table.to_pylist()) + str(result.report.to_dict())
    if unknown == "suppress":
        assert not strange & written.keys()
        assert result.report.suppressed["unknown"] == min(count, len(rows))
    else:
        assert all(written[name]["q1"] == "*" for name in strange & written.keys())


def test_the_gate_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that a faulty method chose cost rows, and no more."""
    rows = [{**dict.fromkeys(COLUMNS, "a"), "id": str(i)} for i in range(5)]
    rows[0]["q1"] = "b"
    lines = [[leaf, "*"] for leaf in LEAVES]
    plan = plan_of(dict.fromkeys(QUASI, lines), {"k": 2})
    place = "zanon_net.microdata.anonymizing.top_down"

    def faulty(tuples: Any, trees: Any, _judge: Any, _most: int) -> Any:
        columns = zip(tuples.codes, trees, strict=True)
        kept = np.zeros(len(tuples), np.int64)
        return [Column(codes, tree.labels, tree.loss) for codes, tree in columns], kept

    monkeypatch.setattr(place, faulty)
    report = md.anonymize(arrow_table(rows, COLUMNS), plan).report
    assert (report.rows_out, report.refused, report.suppressed["users"]) == (4, 1, 1)


def test_a_table_without_rows() -> None:
    lines = [[leaf, "*"] for leaf in LEAVES]
    plan = plan_of(dict.fromkeys(QUASI, lines), {"k": 2, "l": 2, "sensitive": "s1"})
    for method in ("topdown", "lattice", "fixed"):
        result = md.anonymize(pa.table({name: [] for name in COLUMNS}), plan, method=method)
        assert (len(result.table), result.report.rows_in) == (0, 0)
        assert result.table.column_names == [*QUASI, "s1", "id"]
