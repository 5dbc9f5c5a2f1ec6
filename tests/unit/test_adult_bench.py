# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What bench/adult.py adds to UCI Adult: hierarchies and synthetic columns, without the data."""

import sys
from collections import Counter
from math import prod
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
