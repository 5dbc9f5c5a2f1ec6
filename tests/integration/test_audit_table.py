# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net audit` of a table: figures on paper, in plain Python, in `table risk`; errors."""

import csv
import json
import math
from collections import Counter
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cli import run_main
from support.examples import examples

from zanon_net.audit import Report, audit

Captured = pytest.CaptureFixture[str]
HEAD = ("age", "zip, code", "illness", "left")
PAPER = [
    ("30", "10", "flu", "a"),
    ("30", "10", "flu", "b"),
    ("30", "10", "cold", "c"),
    ("40", "10", "flu", "d"),
    ("40", "10", "flu", "e"),
    ("50", "20", "", "f"),
]
COLUMNS = {"quasi": ["age", "zip, code"], "sensitive_columns": ["illness"]}


def write(path: Path, rows: list[tuple[str, ...]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEAD, *rows])
    return path


def figures(report: Report) -> dict[str, float]:
    named = {metric.name: metric.figure for metric in report.metrics}
    return {name: figure for name, figure in named.items() if figure is not None}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_figures_on_paper(tmp_path: Path, suffix: str) -> None:
    """Classes of 3, 2 and 1 rows. In the first, flu is guessed right for two of three."""
    path = write(tmp_path / "table.csv", PAPER)
    table = pyarrow.csv.read_csv(path)
    if suffix == ".parquet":
        pq.write_table(table, path := tmp_path / "table.parquet")
    if suffix == ".jsonl":
        path = tmp_path / "table.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    report = audit(path, **COLUMNS)
    found = figures(report)
    assert found == pytest.approx(
        {"rows_k": 1 / 6, "rows_reid": 3 / 6, "rows_l": 3 / 6, "rows_disclosure": 5 / 6}
    )
    by_name = {metric.name: metric for metric in report.metrics}
    assert by_name["rows_disclosure"].baseline == pytest.approx(4 / 6)
    assert by_name["rows_k"].parts["rows by power of 2 of k"] == {"0": 1, "1": 5}
    assert report.exit_code == 4
    assert report.facts["least_k"] == 1


@settings(max_examples=examples(30))
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(("1", "2", "3")),
            st.sampled_from(("x", "y")),
            st.sampled_from(("flu", "cold", "")),
            st.just("z"),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_figures_are_those_of_plain_python(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, ...]]
) -> None:
    path = write(tmp_path_factory.mktemp("tables") / "table.csv", rows)
    found = figures(audit(path, **COLUMNS))
    size = Counter(row[:2] for row in rows)
    values = Counter(row[:3] for row in rows)
    most = {key: max(n for row, n in values.items() if row[:2] == key) for key in size}
    expected = {
        "rows_k": sum(n for n in size.values() if n == 1),
        "rows_reid": len(size),
        "rows_l": sum(n for key, n in size.items() if most[key] == n),
        "rows_disclosure": sum(most.values()),
    }
    for name, count in expected.items():
        assert math.isclose(found[name], count / len(rows)), name


def test_figures_are_those_of_table_risk(tmp_path: Path, capfd: Captured) -> None:
    """An engine of its own computes re-ID and disclosure for `table risk`."""
    rows = [(*row[:3], "x") for row in PAPER[:5]]
    path = write(tmp_path / "table.csv", rows)
    options = ("--quasi", 'age,"zip, code"', "--sensitive", "illness", "--json")
    assert run_main("table", "risk", path, "--original", path, *options) == 0
    said = json.loads(capfd.readouterr().out)
    found = audit(path, **COLUMNS)
    parts = {metric.name: metric for metric in found.metrics}
    text = json.dumps(said)
    assert str(round(parts["rows_reid"].parts["@1"], 3)) in text
    assert str(round(parts["rows_disclosure"].figure or 0, 3)) in text


def test_a_table_without_risk_passes(tmp_path: Path, capfd: Captured) -> None:
    rows = [("30", "10", illness, "x") for illness in ("flu", "cold") for _ in range(20)]
    path = write(tmp_path / "table.csv", rows)
    page = tmp_path / "page.html"
    options = ("--quasi", 'age,"zip, code"', "--sensitive-columns", "illness")
    assert run_main("audit", path, *options, "--for", "public", "--html", page) == 0
    said = capfd.readouterr().out
    assert "40 rows in 1 classes" in said
    text = page.read_text()
    assert "Passed: no figure is above its threshold." in text
    assert "flu" not in said + text


def test_without_sensitive_columns_two_figures_are_absent(tmp_path: Path) -> None:
    path = write(tmp_path / "table.csv", PAPER)
    report = audit(path, quasi=["age"])
    assert set(figures(report)) == {"rows_k", "rows_reid"}


@pytest.mark.parametrize(
    ("name", "content", "options", "code", "problem"),
    [
        ("t.csv", "age\n1\n", ("--quasi", "zip"), 2, "t.csv: it has no column 'zip'"),
        ("t.csv", "age\n", ("--quasi", "age"), 1, "t.csv: it has no rows"),
        ("t.csv", "age,b\ncanary,1,2,3\n", ("--quasi", "age"), 1, "t.csv: it cannot be read"),
        ("t.parquet", "canary", ("--quasi", "age"), 1, "t.parquet: it cannot be read"),
        ("t.txt", "age\n1\n", ("--quasi", "age"), 2, "t.txt: a table is a .csv"),
        ("t.csv", "age\n1\n", ("--quasi", "age", "--z", "5"), 2, "--z: is for logs"),
        ("t.csv", "age\n1\n", ("--sensitive-columns", "age"), 2, "--sensitive-columns: is for"),
        ("t.csv", None, ("--quasi", "age"), 1, "t.csv: No such file"),
    ],
)
def test_an_error_is_one_line_without_data(
    tmp_path: Path,
    capfd: Captured,
    name: str,
    content: str | None,
    options: tuple[str, ...],
    code: int,
    problem: str,
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    assert run_main("audit", path, *options) == code
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert problem in said.err
    assert "canary" not in said.err
