# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""bench/compare.py: the interval of the pairs, and the functions that it names."""

import sys
from types import ModuleType

import pytest
from support.paths import ROOT

pytestmark = pytest.mark.source

NAME = ("filter: rows of csv", "filter")


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(ROOT / "bench"), *sys.path])
    import compare

    return compare


def test_the_interval_holds_nine_of_ten_pairs(compare: ModuleType) -> None:
    assert compare.interval([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)
    assert compare.interval([float(n) for n in range(1, 22)]) == (11.0, 2.0, 20.0)


@pytest.mark.parametrize(
    ("news", "line", "is_slower"),
    [
        ([2.1, 2.08, 2.06], "1.040 (1.030 to 1.050)", True),
        ([2.1, 2.08, 1.9], "1.040 (0.950 to 1.050)", True),
        ([2.04, 2.06, 2.08], "1.030 (1.020 to 1.040)", False),
        ([1.0, 1.0, 1.0], "0.500 (0.500 to 0.500)", False),
    ],
)
def test_what_became_slower_is_named(
    news: list[float], line: str, is_slower: bool, compare: ModuleType
) -> None:
    lines, slower = compare.judged([{NAME: 2.0}] * 3, [{NAME: new} for new in news])
    shown = f"filter: rows of csv; filter: {line}"
    assert lines == [shown]
    noise = ", which may be noise" if min(news) < 2 else ""
    assert slower == ([shown + noise] if is_slower else [])


def test_a_function_that_one_revision_lacks(compare: ModuleType) -> None:
    lines, slower = compare.judged([{}, {("gone", "before"): 1.0}], [{NAME: 1.0}, {NAME: 1.0}])
    assert (lines, slower) == (["filter: rows of csv; filter: new"], [])
