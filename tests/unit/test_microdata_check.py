# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What holds in a table: plans, examples of known results, and reports."""

import json
import math
import pickle
import subprocess
import sys
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from oracle import microdata as oracle
from support.cli import ENVIRONMENT
from support.examples import each

from zanon_net import microdata as md
from zanon_net.errors import ConfigError, FormatError
from zanon_net.microdata.arrow import as_table
from zanon_net.microdata.measures import check_feasible, measure

# ---- plans --------------------------------------------------------------------------------------


def test_a_plan() -> None:
    plan = md.Plan(
        quasi={"age": md.Round(10), "zip": None},
        sensitive="disease",
        user="id",
        k=5,
        l=3,
        l_kind="recursive:2.5",
        passed=["note"],
    )
    assert plan.read_columns == ("age", "zip", "disease", "id", "note")
    assert plan.written_columns == ("age", "zip", "disease", "note")
    assert plan.rule == {"k": 5, "l": 3, "kind": 2, "c": 2.5, "max_share": 1.0, "t": 1.0}
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert md.Plan(quasi=["a"]).rule["kind"] == 0


@each(
    "problem, wrong",
    [
        ("quasi: name 1 to 16 columns", {"quasi": []}),
        ("quasi: 'a' is named twice", {"quasi": ["a", "a"]}),
        ("quasi: 'a' is not a Hierarchy, Round", {"quasi": {"a": 10}}),
        ("quasi: must be names of columns", {"quasi": [5]}),
        ("sensitive: 'a' is named already", {"sensitive": "a"}),
        ("user: 's' is named already", {"sensitive": "s", "user": "s"}),
        ("passed: 's' is named already", {"sensitive": "s", "passed": ["s"]}),
        ("k: must be from 1", {"k": 0}),
        ("k: must be a whole number", {"k": 2.0}),
        ("l: is about sensitive values", {"l": 2}),
        ("max_share: is about sensitive values", {"max_share": 0.5}),
        ("l_kind: is about sensitive values", {"l_kind": "recursive:2"}),
        ("l_kind: must be distinct", {"l_kind": "recursive:0"}),
        ("max_share: must be above 0", {"sensitive": "s", "max_share": 0}),
        ("t: must be from 0", {"sensitive": "s", "t": 1.5}),
        ("t: must be a number", {"sensitive": "s", "t": math.nan}),
        ("unknown: must be one of", {"unknown": "drop"}),
    ],
)
def test_a_wrong_plan_names_the_field(problem: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"^{problem}"):
        md.Plan(**({"quasi": ["a", "b"]} | wrong))


# ---- the chapter on k-anonymity -----------------------------------------------------------------

SCORES = {
    "age": [42, 52, 36, 24, 73],
    "preTestScore": [4, 24, 31, 2, 3],
    "postTestScore": [25, 94, 57, 62, 70],
}


def without_digits(column: list[int], digits: int) -> list[int]:
    """The chapter's generalization: the last digits become zeros, truncated towards 0."""
    return [int(number / 10**digits) * 10**digits for number in column]


@pytest.mark.parametrize(("digits", "k"), [(0, 1), (1, 1), (2, 5)])
def test_the_five_rows_of_the_chapter(digits: int, k: int) -> None:
    table = {name: without_digits(column, digits) for name, column in SCORES.items()}
    assert md.check(table, md.Plan(quasi=list(SCORES), k=k)).holds
    assert not md.check(table, md.Plan(quasi=list(SCORES), k=k + 1)).holds
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    assert oracle.k_of(rows, list(SCORES)) == k
    if digits == 1:
        assert table == {
            "age": [40, 50, 30, 20, 70],
            "preTestScore": [0, 20, 30, 0, 0],
            "postTestScore": [20, 90, 50, 60, 70],
        }
    if digits == 2:
        assert {number for column in table.values() for number in column} == {0}


def test_truncation_makes_a_class_of_twice_the_width_around_zero() -> None:
    """Why --round takes the floor: -9 to 9 are one class of the chapter's, others have ten."""
    assert set(without_digits(list(range(-9, 10)), 1)) == {0}
    hierarchy = md.Round(10).hierarchy(pa.chunked_array([list(range(-9, 10))]))
    assert {hierarchy.labels[code] for code in hierarchy.codes(pa.array([-9, -1, 0, 9]))} == {
        "[-10,0)",
        "0-9",
    }


# ---- known results ------------------------------------------------------------------------------


def of_counts(*classes: dict[str, int]) -> dict[str, list[Any]]:
    rows = [
        (number, value)
        for number, counts in enumerate(classes)
        for value, count in counts.items()
        for _ in range(count)
    ]
    return {"q": [row[0] for row in rows], "s": [row[1] for row in rows]}


PLAN = md.Plan(quasi="q", sensitive="s")


def test_recursive_diversity_of_6_3_1() -> None:
    """The example that pycanon 1.3.5 gets wrong: counts 6, 3, 1 need c > 6 at l = 3."""
    table = of_counts({"x": 6, "y": 3, "z": 1})
    facts = md.check(table, PLAN).to_dict()["sensitive"]["s"]
    assert facts["recursive_c"] == {"2": 1.5, "3": 6.0}
    for c, holds in ((6, False), (6.01, True)):
        plan = md.Plan(quasi="q", sensitive="s", l=3, l_kind=f"recursive:{c}")
        assert md.check(table, plan).holds is holds


@pytest.mark.parametrize("values", [2, 3, 5, 10])
def test_the_entropy_of_equal_counts_is_their_number(values: int) -> None:
    """A sum of rounded terms may miss it by a little, and still holds."""
    table = of_counts({str(i): 7 for i in range(values)})
    for l, holds in ((values, True), (values + 1, False)):  # noqa: E741
        plan = md.Plan(quasi="q", sensitive="s", l=l, l_kind="entropy")
        assert md.check(table, plan).holds is holds
    assert md.check(table, PLAN).to_dict()["sensitive"]["s"]["entropy_l"] == pytest.approx(values)


def test_missing_values_are_values() -> None:
    """A row with a missing quasi-identifier that no other row shares is alone."""
    table = {"q": ["a", "a", "b", "b", None], "s": ["x", None, "x", None, "x"]}
    report = md.check(table, PLAN)
    assert (report.k, report.to_dict()["rows_alone"]) == (1, 1)
    with_two = {name: column[:4] for name, column in table.items()}
    assert md.check(with_two, md.Plan(quasi="q", sensitive="s", k=2, l=2)).holds


def test_k_counts_people() -> None:
    table = {"q": ["a"] * 5, "s": list("xxyxx"), "u": [1, 1, 2, 2, 2]}
    assert md.check(table, md.Plan(quasi="q", sensitive="s")).k == 5
    report = md.check(table, md.Plan(quasi="q", sensitive="s", user="u"))
    assert (report.k, report.to_dict()["users"]) == (2, 2)
    # x has two users, y one, however many rows.
    assert report.to_dict()["sensitive"]["s"]["share"]["max"] == pytest.approx(2 / 3)


def test_distance_to_the_whole() -> None:
    table = of_counts({"x": 3, "y": 1}, {"x": 1, "y": 3})
    assert md.check(table, PLAN).to_dict()["sensitive"]["s"]["t"]["max"] == pytest.approx(0.25)
    for t, holds in ((0.25, True), (0.24, False)):
        assert md.check(table, md.Plan(quasi="q", sensitive="s", t=t)).holds is holds


def test_failures_are_counted_by_what_is_lacking_first() -> None:
    table = of_counts({"x": 1}, {"x": 4}, {"x": 3, "y": 1}, {"x": 2, "y": 2})
    plan = md.Plan(quasi="q", sensitive="s", k=2, l=2, max_share=0.5)
    facts = md.check(table, plan).to_dict()
    assert not facts["holds"]
    assert facts["failed"] == {
        "users": {"classes": 1, "rows": 1},
        "diversity": {"classes": 1, "rows": 4},
        "share": {"classes": 1, "rows": 4},
        "distance": {"classes": 0, "rows": 0},
    }


def test_the_first_fault_is_that_of_any_column() -> None:
    table = {"q": [1, 1, 1, 1], "s": list("xxxy"), "r": list("zzzz")}
    plan = md.Plan(quasi="q", sensitive=["s", "r"], l=2, max_share=0.5)
    failed = md.check(table, plan).to_dict()["failed"]
    assert [name for name, found in failed.items() if found["classes"]] == ["diversity"]


def test_a_value_that_the_hierarchy_does_not_have_is_in_its_root_alone() -> None:
    zips = md.Hierarchy.from_lines([["1", "low", "*"], ["2", "low", "*"], ["3", "high", "*"]])
    original = {"zip": ["1", "9"], "s": ["x", "x"]}
    released = {"zip": ["1", "low", "*"], "s": ["x", "x", "x"]}
    report = md.risk(original, released, md.Plan(quasi={"zip": zips}, sensitive="s")).to_dict()
    # "1" is found first, in one of three rows that may be its own; "9" can only be the last one.
    assert report["attack"]["release"]["re_id_1"] == pytest.approx((1 / 3 + 1) / 2)


def test_whole_numbers_are_explained_as_anonymize_writes_them() -> None:
    original = {"age": [30, 31, 32, 33], "s": list("xxxx")}
    released = {"age": ["30-31", "30-31", "32-33", "32-33"], "s": list("xxxx")}
    report = md.risk(original, released, md.Plan(quasi="age", sensitive="s")).to_dict()
    assert report["attack"]["release"]["re_id_1"] == pytest.approx(1 / 2)
    assert report["notes"] == []


def test_the_loss_of_what_is_written() -> None:
    ages = md.Round(10, low=0, high=39)  # <10, 10-19, 20-29, 30+, and a missing value
    written = {"<10": 0, "10-19": 0, "<20": 1 / 4, "*": 1}
    plan = md.Plan(quasi={"age": ages}, sensitive="s")
    loss = md.check({"age": list(written), "s": list("xxxx")}, plan).to_dict()["loss"]
    assert loss == {"mean": 1.25 / 4, "columns": {"age": 1.25 / 4}, "unknown_rows": {}}
    loss = md.check({"age": [*written, "0-9"], "s": list("xxxxx")}, plan).to_dict()["loss"]
    assert (loss["mean"], loss["unknown_rows"]) == (None, {"age": 1})
    # Without its range a rounding says nothing of what is written.
    assert md.check({"age": ["*"]}, md.Plan(quasi={"age": md.Round(10)})).to_dict()["loss"] is None


# ---- requests that nothing can meet -------------------------------------------------------------


def five_rows() -> pa.Table:
    columns = {"q": list("aabbc"), "s": list("xxxxy"), "u": list("11223")}
    return as_table(columns, list(columns))


@pytest.mark.parametrize(
    ("problem", "asked"),
    [
        ("k: 6 is more than the 5 rows that there are", {"k": 6}),
        ("k: 4 is more than the 3 users that there are", {"k": 4, "user": "u"}),
        ("l: 3 is more than the 2 values of column 's'", {"l": 3}),
        ("l: column 's' as a whole is not so diverse", {"l": 2, "l_kind": "entropy"}),
        ("l: column 's' as a whole is not so diverse", {"l": 2, "l_kind": "recursive:4"}),
        ("max_share: one value of column 's' has 80.0% of the whole", {"max_share": 0.75}),
    ],
)
def test_what_no_release_can_do_is_an_error(problem: str, asked: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"^{problem}"):
        check_feasible(five_rows(), md.Plan(quasi="q", sensitive="s", **asked))


@pytest.mark.parametrize(
    "asked",
    [
        {"k": 5, "l": 2},
        {"k": 3, "user": "u"},
        {"l": 2, "l_kind": "recursive:4.1"},
        {"max_share": 0.8, "t": 0},
    ],
)
def test_what_one_class_of_all_rows_has_is_none(asked: dict[str, Any]) -> None:
    plan = md.Plan(quasi="q", sensitive="s", **asked)
    check_feasible(five_rows(), plan)
    whole = measure(five_rows(), plan, ())
    assert whole.faults(plan.rule).tolist() == [0]


# ---- reports ------------------------------------------------------------------------------------


def test_a_report_holds_no_value_of_the_table() -> None:
    table = {"q": ["SECRET1"] * 3, "s": ["SECRET2", "SECRET2", "SECRET3"], "u": list("abc")}
    plan = md.Plan(quasi="q", sensitive="s", user="u", k=2, l=2)
    checked, attacked = md.check(table, plan), md.risk(table, table, plan)
    for report in (checked, attacked):
        texts = [json.dumps(report.to_dict()), str(report), report._repr_html_()]
        assert not any("SECRET" in text for text in texts)
        assert "<td>" in texts[2]
    assert "3 of 3 users" in str(checked)


def test_names_of_columns_do_not_steer_a_notebook() -> None:
    html = md.check({"q": [1], "<b>": [1]}, md.Plan(quasi="q", sensitive="<b>"))._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_tables_of_other_libraries(make: Any) -> None:
    table = make({"q": ["a", "a", None], "s": [1.5, 2.5, None]})
    report = md.check(table, PLAN).to_dict()
    assert (report["k"], report["sensitive"]["s"]["values"]) == (1, 3)


class _Odd:
    """An object that Arrow cannot convert."""


@pytest.mark.parametrize("odd", [[1, "text"], [_Odd(), 2], [{1: 2}, "x"]])
@pytest.mark.parametrize("make", [pd.DataFrame, dict])
def test_a_column_that_no_role_names_need_not_be_readable(make: Any, odd: list[Any]) -> None:
    table = make({"q": ["x", "x"], "d": ["a", "b"], "notes": odd})
    plan = md.Plan(quasi=["q"], sensitive="d", k=2)
    assert md.check(table, plan).k == 2
    assert md.anonymize(table, plan).table.num_rows == 2
    with pytest.raises(ConfigError, match="column 'notes' has values of several kinds"):
        md.check(table, md.Plan(quasi=["q", "notes"]))


def test_columns_twice_and_odd_indices() -> None:
    plan = md.Plan(quasi=["q"], sensitive="d", k=2)
    frame = pd.DataFrame([[1, 2, 3, "a"], [1, 2, 3, "b"]], columns=["q", "x", "x", "d"])
    assert md.check(frame, plan).k == 2
    with pytest.raises(ConfigError, match="there are 2 columns 'x'"):
        md.check(frame, md.Plan(quasi=["x"]))
    assert md.check(frame.set_axis([1, "text"]), plan).k == 2
    assert md.check(frame.set_index("q"), plan).k == 2  # the name of an index is a column's
    objects = pl.DataFrame({"q": ["x", "x"], "d": ["a", "b"], "o": [_Odd(), 2]}, strict=False)
    assert md.check(objects, plan).k == 2


def test_suppressed_records_are_noted() -> None:
    rows = {"age": ["<50", "<50", "*", ">=50", ">=50"], "zip": ["8*", "8*", "*", "8*", "8*"]}
    report = md.check(rows, md.Plan(quasi=["age", "zip"], k=2))
    assert not report.holds
    assert "1 of 5 (20.0%) rows have only '*'" in report.facts["notes"][0]
    assert report.facts["notes"][0].endswith("without them, k is 2")
    assert "k is 2" in str(md.check(rows, md.Plan(quasi=["age", "zip"])))
    for harmless in ({**rows, "zip": ["8*"] * 5}, {"age": ["*"] * 5, "zip": ["*"] * 5}):
        assert not md.check(harmless, md.Plan(quasi=["age", "zip"])).facts["notes"]


def test_a_certain_value_has_an_entropy_of_zero() -> None:
    report = md.check({"q": ["a", "a"], "s": ["x", "x"]}, PLAN)
    assert "-0" not in str(report)


def test_a_table_without_rows() -> None:
    empty = pa.table({"q": pa.array([], pa.string()), "s": pa.array([], pa.int64())})
    report = md.check(empty, md.Plan(quasi="q", sensitive="s", k=5, l=2))
    assert (report.holds, report.k) == (False, 0)
    assert "the table has no row" in str(report)
    assert md.check(empty, md.Plan(quasi="q", sensitive="s")).holds
    with pytest.raises(FormatError, match="one of the tables has no row"):
        md.risk(empty, empty, PLAN)


def test_importing_loads_nothing_large() -> None:
    program = (
        "import sys; from zanon_net import microdata; assert 'check' in dir(microdata);"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'pyarrow')))"
    )
    assert (
        subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, check=False).returncode
        == 0
    )
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = md.nothing


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"^the table: there is no column 'quasi'$"):
        md.check({"q": [1]}, md.Plan(quasi="quasi"))
    with pytest.raises(ConfigError, match=r"^the release: there is no column 's'$"):
        md.risk({"q": [1], "s": [1]}, {"q": [1]}, PLAN)


def test_an_empty_text_is_a_missing_value() -> None:
    """As in CSV, where both are an empty field: they are one sensitive value, and one class."""
    table = {"q": ["", None, "", None], "s": ["", None, "", None]}
    report = md.check(table, md.Plan(quasi=["q"], sensitive="s", k=4, l=2))
    assert report.k == 4
    assert not report.holds
    assert report.to_dict()["sensitive"]["s"]["values"] == 1


def test_a_text_that_is_none_is_not_quoted() -> None:
    bad = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\x07\0\0\0"), pa.py_buffer(b"SECRET\xff")]
    )
    table = pa.table({"q": bad, "s": ["a"]})
    with pytest.raises(ConfigError) as caught:
        md.check(table, md.Plan(quasi=["q"], sensitive="s"))
    assert "SECRET" not in repr(caught.value)
    assert caught.value.__cause__ is None
