# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net table anonymize`: columns without an option, numbers, dates, and many values."""

import datetime
import json
import re
from pathlib import Path
from typing import Any

import pytest

from zanon_net.cli import main

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def table(*arguments: object) -> int:
    return main(["table", *map(str, arguments)])


def manifest_of(capsys: Captured) -> dict[str, Any]:
    said = capsys.readouterr().err
    return dict(json.loads(said[said.index("{") :]))


def outlier_rows(column: str, least: int, most: int, odd: int) -> str:
    """1,001 rows of numbers, one of which is far from all others."""
    rows = [f"{least + i * 7 % (most - least)},{'mf'[i % 2]}" for i in range(1000)]
    return f"{column},sex\n" + "\n".join([*rows, f"{odd},f"]) + "\n"


@pytest.mark.parametrize(
    ("column", "least", "most", "odd", "width"),
    [("age", 20, 80, 130, 10), ("income", 1000, 9000, 900_000, 500), ("t", -40, 40, -5000, 5)],
)
@pytest.mark.parametrize("rounded", [True, False])
def test_one_outlier_costs_little(
    column: str, least: int, most: int, odd: int, width: int, rounded: bool, capsys: Captured
) -> None:
    Path("o.csv").write_text(outlier_rows(column, least, most, odd))
    options = ("--round", f"{column}={width}") if rounded else ()
    command = ("anonymize", "o.csv", "--k", 5, *options, "--json")
    for quasi in (column, f"{column},sex"):
        assert table(*command, "--quasi", quasi) == 0
        found = manifest_of(capsys)
        # All numbers of the outermost range share the outlier's class.
        assert found["loss"]["mean"] < (0.1 if rounded else 0.02)
        assert found["rows_out"] == 1001
        side = "..HIGH" if odd > most else "LOW.."
        (note,) = [note for note in found["warnings"] if "far" in note]
        assert f"column {column!r}: 1 of 1,001" in note
        assert f"--clip {column}={side}" in note
        assert str(odd) not in note
        assert table(*command, "--quasi", quasi, "--suppress", "1%") == 0
        less = manifest_of(capsys)
        assert less["suppressed"]["users"] in range(1, 11)
        assert less["loss"]["mean"] < found["loss"]["mean"]


@pytest.mark.parametrize("codes", [(1, 2, 9), (0, 1), (1, 2, 3, 8, 9), (1, 2, 3, 4, 5, 97, 99)])
def test_codes_of_a_survey_are_categories(codes: tuple[int, ...], capsys: Captured) -> None:
    rare = codes[-1]
    rows = [f"{code},{'ab'[i % 2]}" for code in codes for i in range(1 if code == rare else 4)]
    Path("s.csv").write_text("q,d\n" + "\n".join(rows) + "\n")
    assert table("anonymize", "s.csv", "--quasi", "q", "--sensitive", "d", "--k", 2) == 0
    said = capsys.readouterr()
    written = {line.partition(",")[0] for line in said.out.splitlines()[1:]}
    assert written <= {"*", *map(str, codes)}
    assert len(written) >= len(codes) - 1
    assert "column 'q'" in said.err
    assert "taken as categories" in said.err
    assert table("anonymize", "s.csv", "--quasi", "q", "--k", 2, "--round", "q=1", "-q") == 0
    assert ("*" in capsys.readouterr().out) == (len(codes) == 2)


def many_times(rows: int) -> str:
    begin = datetime.datetime(2024, 1, 1)
    steps = (begin + datetime.timedelta(milliseconds=397_123 * i) for i in range(rows))
    return "ts,sex\n" + "".join(f"{t.isoformat()},{'mf'[i % 2]}\n" for i, t in enumerate(steps))


def test_more_values_than_a_hierarchy_has(capsys: Captured) -> None:
    Path("t.csv").write_text(many_times(70_000))
    options = ("anonymize", "t.csv", "--quasi", "ts,sex", "--k", 5, "-q")
    forms = (((), r"\d{4}-\d\d-\d\d"), (("--dates", "ts=month,year"), r"\d{4}-\d\d"))
    for dates, form in forms:
        assert table(*options, *dates) == 0
        rows = capsys.readouterr().out.splitlines()[1:]
        assert len(rows) == 70_000
        assert all(re.fullmatch(rf"{form},[mf]", row) for row in rows)
    assert table("hierarchy", "t.csv", "--column", "ts", "--dates", "day,month") == 2
    assert "column 'ts': it has 70,000 different values" in capsys.readouterr().err
    Path("t.csv").write_text("name,age\n" + "".join(f"n{i},{i}\n" for i in range(70_000)))
    assert table("anonymize", "t.csv", "--quasi", "name", "--k", 5) == 2
    problem = "column 'name': it has 70,000 different values, and a hierarchy has at most 65,535"
    assert capsys.readouterr().err.startswith(f"zanon-net: {problem}")
    assert table("anonymize", "t.csv", "--quasi", "age", "--k", 5, "-q") == 0
    assert capsys.readouterr().out.splitlines()[1] == "0-7"


def test_dates(capsys: Captured) -> None:
    days = ["2024-03-05", "2024-03-06", "2024-04-01", "2025-01-01"]
    rows = [f"{day},{day},x{i}\n" for day in days for i in range(2)]
    Path("d.csv").write_text("born,died,name\n" + "".join(rows))
    options = ("anonymize", "d.csv", "--quasi", "born,died,name", "--method", "fixed", "-q")
    levels = ("--level", "born=1", "--level", "died=1", "--k", 1)
    assert table(*options, "--dates", "born=month,year", "--dates", "day,year", *levels) == 0
    assert capsys.readouterr().out.splitlines()[1] == "2024-03,2024,x0"
    for wrong, problem in (
        ("born=month,day", "--dates: must be in the order day, month"),
        ("name=month", "column 'name': 2 of its values are no dates"),
        ("age=month", "--dates: 'age' is not among the quasi-identifiers"),
    ):
        assert table(*options, "--dates", wrong) == 2
        assert capsys.readouterr().err.startswith(f"zanon-net: {problem}")


def test_a_name_that_is_no_table_lists_the_formats(capsys: Captured) -> None:
    Path("t.csv").write_text("age\n1\n")
    assert table("anonymize", "t.csv", "--quasi", "age", "--out", "t.xlsx") == 2
    said = capsys.readouterr().err
    assert said.startswith("zanon-net: t.xlsx: its name does not end in .csv, .tsv, .jsonl")
    assert "give the format" not in said


@pytest.mark.parametrize(
    ("values", "prefix", "labels"),
    [
        (["Nuenen", "Nuernberg", "Nuits"], "2", {"Nu*"}),
        (["13053", "13068", "14850"], "3,2", {"130**", "148**"}),
        (["10.0.1.7", "10.0.10.7", "10.0.101.7"], "/16", {"10.0.0.0/16"}),
    ],
)
def test_labels_of_prefixes(
    values: list[str], prefix: str, labels: set[str], capsys: Captured
) -> None:
    Path("p.csv").write_text("\n".join(["q", *values, ""]))
    assert table("hierarchy", "p.csv", "--column", "q", "--prefix", prefix) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split(";")[1] for line in lines} == labels
    assert table("hierarchy", "p.csv", "--column", "q", "--prefix", "/16,24") == 2
    assert capsys.readouterr().err.startswith("zanon-net: --prefix: ")
