# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""bench/instructions_record.py: the comparison of counted instructions with committed figures."""

import importlib
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.paths import ROOT

pytestmark = pytest.mark.source

COMMITTED = {"start-up": 300_000_000, "isp": 1200.0, "filter": 2000.0}


@pytest.fixture(scope="module")
def module() -> ModuleType:
    """The module, which is imported as scripts import it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "bench")
        return importlib.import_module("instructions_record")


@pytest.fixture(scope="module")
def program() -> ModuleType:
    """The program that counts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "bench")
        return importlib.import_module("instructions")


def record(module: ModuleType, **changes: float | None) -> Any:
    """Returns the committed record with figures changed. None removes a figure."""
    values = COMMITTED | {name.replace("_", "-"): value for name, value in changes.items()}
    return module.Record(
        module.Tools({"compiler": "gcc 12.2", "python": "3.11"}, {"numpy": "2.1"}),
        {
            name: module.Figure(value, "packet", "digest")
            for name, value in values.items()
            if value is not None
        },
    )


def remarks(lines: list[str]) -> dict[str, str]:
    """Returns the end of each row of the table, which has a remark if the row needs a remark."""
    return {line.split()[0]: line[69:].strip() for line in lines[1 : 1 + len(COMMITTED)]}


def judged(module: ModuleType, strict: bool = True, **changes: float | None) -> Any:
    return module.judge(record(module), record(module, **changes), strict)


@pytest.mark.parametrize("strict", [True, False])
def test_equal_figures(module: ModuleType, strict: bool) -> None:
    lines, failed = judged(module, strict)
    assert not failed
    assert set(remarks(lines).values()) == {""}
    assert "1.0000" in lines[2]


@pytest.mark.parametrize("strict", [True, False])
def test_a_figure_above_the_tolerance_fails(module: ModuleType, strict: bool) -> None:
    lines, failed = judged(module, strict, isp=1212.1)
    assert failed
    assert remarks(lines)["isp"] == "more than 1% above the committed figure"
    assert "1.0101" in lines[2]
    assert lines[-1].startswith("error: if the cost has a reason, commit it")


def test_a_figure_within_the_tolerance(module: ModuleType) -> None:
    lines, failed = judged(module, isp=1211.9, filter=1980.1, start_up=314_900_000)
    assert not failed
    assert set(remarks(lines).values()) == {""}


def test_start_up_has_a_tolerance_of_its_own(module: ModuleType) -> None:
    lines, failed = judged(module, start_up=315_100_000)
    assert failed
    assert remarks(lines)["start-up"] == "more than 5% above the committed figure"


def test_a_figure_below_is_to_be_committed(module: ModuleType) -> None:
    lines, failed = judged(module, isp=1187.9)
    assert not failed
    assert "commit the new figure, make instructions UPDATE=1" in remarks(lines)["isp"]


def test_figures_that_only_one_side_has(module: ModuleType) -> None:
    old, new = record(module, isp=None), record(module, filter=None)
    lines, failed = module.judge(old, new, True)
    assert failed
    assert remarks(lines)["isp"].endswith("not in the file: make instructions UPDATE=1")
    assert "no longer counted" in remarks(lines)["filter"]


def test_another_input_fails(module: ModuleType) -> None:
    new = record(module)
    new.figures["isp"] = replace(new.figures["isp"], input="other")
    lines, failed = module.judge(record(module), new, False)
    assert failed
    assert "the input differs" in remarks(lines)["isp"]


@pytest.mark.parametrize("strict", [True, False])
def test_another_compiler(module: ModuleType, strict: bool) -> None:
    """Nothing is compared, so a continuous integration fails and a person is warned."""
    old, new = record(module), record(module, isp=5000.0)
    new.tools.fixed["compiler"] = "gcc 13.1"
    lines, failed = module.judge(old, new, strict)
    assert failed is strict
    assert remarks(lines)["isp"] == ""
    assert lines[-1].startswith("error: " if strict else "warning: ")
    assert "compiler 'gcc 12.2', here 'gcc 13.1'" in lines[-1]
    assert "python" not in lines[-1]


def test_other_packages_are_compared(module: ModuleType) -> None:
    new = record(module, isp=1300.0)
    new.tools.others["numpy"] = "2.9"
    assert module.judge(record(module), new, True)[1]


def test_the_file_comes_back(module: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "instructions.json"
    path.write_text(record(module).to_json(), encoding="utf-8")
    assert module.Record.read(path) == record(module)


def test_an_update_prints_the_replaced_figures(
    module: ModuleType,
    program: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, new = tmp_path / "instructions.json", record(module, isp=1500.0)
    path.write_text(record(module, filter=None).to_json(), encoding="utf-8")
    new.tools.fixed["compiler"] = "gcc 13.1"
    monkeypatch.setattr(program, "RECORD", path)
    monkeypatch.setattr(program, "measure", lambda: new.figures)
    monkeypatch.setattr(program, "tools_here", lambda: new.tools)
    monkeypatch.setattr("sys.argv", ["instructions.py", "--update"])
    assert program.main() == 0
    assert module.Record.read(path) == new
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["isp", "packet", "1,200.0", "1,500.0", "1.2500"]
    assert lines[3].split() == ["filter", "packet", "2,000.0"]
    assert lines[4].endswith("of other tools: compiler 'gcc 12.2', here 'gcc 13.1'")
    assert "error" not in lines[4]


def test_the_committed_file(module: ModuleType) -> None:
    committed = module.Record.read(ROOT / "bench/instructions.json")
    assert list(committed.figures)[:2] == ["start-up", "isp"]
    assert module.judge(committed, committed, True)[1] is False
    assert committed.tools.fixed.keys() == {"processor", "compiler", "flags", "python", "valgrind"}
