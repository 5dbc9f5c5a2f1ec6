# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`md.anonymize`: what it takes, what it refuses, and small tables by hand."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from zanon_net import microdata as md
from zanon_net.errors import ConfigError
from zanon_net.microdata.anonymizing import loss_curve
from zanon_net.microdata.arrow import as_table

TREE = md.Hierarchy.from_lines(
    [["a", "ab", "*"], ["b", "ab", "*"], ["c", "cd", "*"], ["d", "cd", "*"]]
)


def quasi_of(values: list[Any], **asked: Any) -> list[Any]:
    """The quasi-identifier that is written of a column of values."""
    table = pa.table({"q": values, "s": [str(i % 3) for i in range(len(values))]})
    plan = md.Plan(quasi={"q": asked.pop("tree", TREE)}, sensitive="s", k=asked.pop("k", 2))
    return list(md.anonymize(table, plan, **asked).table.column("q").to_pylist())


def test_only_what_has_to_be_coarser_is() -> None:
    assert sorted(quasi_of([*"aabbccdd"])) == [*"aabbccdd"]
    assert sorted(quasi_of([*"aaabccdd"])) == ["ab"] * 4 + [*"ccdd"]
    assert sorted(quasi_of([*"abcccdd"])) == ["ab"] * 2 + [*"cccdd"]
    assert set(quasi_of([*"acccc"])) == {"*"}


def test_a_missing_value_is_one_like_any_other() -> None:
    tree = md.Hierarchy.from_lines([["a", "*"], ["b", "*"], ["", "*"]])
    assert quasi_of(["a", "a", None, None], tree=tree).count(None) == 2
    assert quasi_of(["a", "a", None, ""], tree=tree).count(None) == 2
    assert quasi_of(["a", "b", "b", None], tree=tree) == ["*", "*", "b", "b"]


def test_columns_get_hierarchies_by_their_values() -> None:
    assert "4-7" in quasi_of([4, 5, 6, 7, 8, 9, 10, 11], tree=None, k=4)
    assert "4-7" in quasi_of(["4", "5", "6", "7", "8", "9", "10", "11"], tree=None, k=4)
    assert set(quasi_of(["04", "05", "06", "07"], tree=None, k=4)) == {"*"}
    assert set(quasi_of([1, 1 << 40], tree=None)) == {"*"}


def test_levels_of_fixed() -> None:
    assert sorted(quasi_of([*"aabb"], method="fixed")) == [*"aabb"]
    assert quasi_of([*"aabb"], method="fixed", levels={"q": 1}) == ["ab"] * 4
    assert sorted(quasi_of([*"aaab"], method="fixed", suppress=0.25)) == [*"aaa"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"method": "mondrian"}, "^method: must be one of topdown, lattice, fixed"),
        ({"suppress": -0.1}, "^suppress: must be a number from 0 to 1"),
        ({"suppress": True}, "^suppress: must be a number from 0 to 1"),
        ({"levels": {"q": 1}}, "^levels: are for the method fixed"),
        ({"method": "fixed", "levels": {"z": 1}}, "^levels: 'z' is not among"),
        ({"method": "fixed", "levels": {"q": 3}}, "^levels: 'q' needs a .* 0 to 2"),
        ({"method": "fixed", "levels": {"q": True}}, "^levels: 'q' needs a"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        quasi_of([*"aabb"], **options)


def test_an_unknown_value_is_named_by_its_row_alone() -> None:
    with pytest.raises(ConfigError, match=r"^column 'q': row 3 has a value that") as caught:
        quasi_of(["a", "a", "secret", "a"])
    assert "secret" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"^column 'q': 2 rows, the first one row 3, have a"):
        quasi_of(["a", "a", "secret", "other"])


def test_too_many_combinations_of_levels() -> None:
    table = pa.table({f"q{i}": ["1", "2", "3", "4"] for i in range(16)})
    deep = md.Hierarchy.from_lines([[str(i), *"abc", "*"] for i in range(1, 5)])
    plan = md.Plan(quasi=dict.fromkeys(table.column_names, deep), k=2)
    with pytest.raises(ConfigError, match="combinations of levels, more than 1,048,576"):
        md.anonymize(table, plan, method="lattice")
    assert md.anonymize(table, plan).report.mean_loss == 1


def test_the_report() -> None:
    table = pa.table({"q": [*"aaabx"], "s": [*"01012"]})
    plan = md.Plan(quasi={"q": TREE}, sensitive="s", k=3, unknown="suppress")
    report = md.anonymize(table, plan, method="lattice", suppress=0.25).report
    assert (report.rows_in, report.rows_out, report.refused) == (5, 3, 0)
    assert report.suppressed == {
        "unknown": 1,
        "users": 1,
        "diversity": 0,
        "share": 0,
        "distance": 0,
    }
    assert report.loss == {"q": 2 / 5}
    facts = report.to_dict()
    assert (facts["levels"], facts["k"], facts["loss"]["mean"]) == ({"q": 0}, 3, 2 / 5)
    assert "1 (20.00%): fewer than k users" in str(report)


@pytest.mark.parametrize(("method", "suppress"), [("topdown", 0.0), ("lattice", 0.2)])
def test_the_curve_has_the_losses_of_anonymize(method: str, suppress: float) -> None:
    values = [*"aaaabbbccdaaabx"]
    table = pa.table({"q": values, "s": [str(i % 3) for i in range(len(values))]})
    plan = md.Plan(quasi={"q": TREE}, sensitive="s", k=2, l=2, unknown="suppress")
    rows = as_table(table, plan.read_columns)
    points = loss_curve(rows, plan, [2, 3, 5, 9, 14, 15], method=method, suppress=suppress)
    assert [k for k, _loss in points] == [2, 3, 5, 9, 14]
    for k, loss in points:
        asked = replace(plan, k=k)
        report = md.anonymize(table, asked, method=method, suppress=suppress).report
        assert loss == pytest.approx(report.mean_loss)


@pytest.mark.parametrize("sensitive", [(), "b"])
def test_more_users_than_there_are_are_refused(sensitive: Any) -> None:
    """Also where nothing but the quasi-identifiers tells rows apart."""
    table = {"a": ["x", "y", "x"], "b": [1, 2, 2]}
    with pytest.raises(ConfigError, match="k: 4 is more than the 3 rows"):
        md.anonymize(table, md.Plan(quasi=["a"], sensitive=sensitive, k=4))
