# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Hierarchies and synthetic columns of bench/adult.py, and the comparison of bench/ladder.py with
the rule in Python, without the data of UCI Adult."""

import sys
from collections import Counter
from math import prod
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
from support.paths import ROOT

pytestmark = pytest.mark.source


@pytest.fixture
def adult(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(ROOT / "bench"), *sys.path])
    import adult

    return adult


def test_hierarchies(adult: ModuleType) -> None:
    found = adult.hierarchies()
    assert tuple(found) == adult.QUASI
    assert prod(hierarchy.levels for hierarchy in found.values()) == 36
    assert [hierarchy.leaves for hierarchy in found.values()] == [16, 15, 42]


def test_brackets_keep_the_income_s_proportions(adult: ModuleType) -> None:
    income = ["<=50K", ">50K", "<=50K", "<=50K"] * 90
    for name, parts in (("bracket3", (135, 45)), ("bracket5", (90, 30))):
        of = adult.BRACKETS[name]
        found = adult.brackets(income, of)
        assert found == adult.brackets(income, of)
        counts = Counter(zip(income, found, strict=True))
        for stratum, part in zip(("<=50K", ">50K"), parts, strict=True):
            assert {bracket: counts[stratum, bracket] for bracket in of[stratum]} == dict.fromkeys(
                of[stratum], part
            )


def test_the_bench_finds_rows_that_differ_from_the_rule_in_python(
    adult: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On made-up rows of Adult's values; then with a rule that asks for one user less."""
    import ladder

    rng = Random(1)
    table = {}
    for name, path in adult.HIERARCHIES.items():
        values = [line[0] for line in adult.lines_of(path)]
        table[name] = [values[min(rng.choices(range(len(values)), k=3))] for _ in range(1500)]
    few = tmp_path / "steps.txt"
    few.write_text(ladder.FEW)
    for levels in ("chain", str(few)):
        assert ladder.differing(table, "made", levels) == 0
    rule = ladder.oracle.Ladder
    monkeypatch.setattr(ladder.oracle, "Ladder", lambda *a: rule(*a[:2], a[2] - 1, a[3]))
    assert ladder.differing(table, "made", "chain") > 0
