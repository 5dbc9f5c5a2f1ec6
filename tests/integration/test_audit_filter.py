# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net audit` on what `filter` really writes, with its manifest."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.cli import Captured, run_main
from support.filter import COMMAND, ENVIRONMENT

from zanon_net.audit import audit

START = 1_715_677_200  # 09:00 UTC
ROWS = [(10 * i, i * 7 % 60, f"item {i * i % 7}", i % 3) for i in range(300)]
"""Seconds after START, user, item, place."""
AGES = "".join(f"{place};*\n" for place in range(3))


def table_of(form: str, delimiter: str) -> str:
    """The rows as CSV, with times of a form."""
    lines = ["t,who,item,place"]
    for t, who, item, place in ROWS:
        at = datetime.fromtimestamp(START + t, UTC)
        time = str(START + t) if form == "s" else at.isoformat().replace("+00:00", "Z")
        lines.append(f"{time},u{who},{item},{place}")
    return "\n".join(lines).replace(",", delimiter) + "\n"


def share(folder: Path, name: str, text: str, *options: str) -> Path:
    """A folder with what `filter` writes, and its manifest."""
    folder.mkdir()
    (folder.parent / "places.csv").write_text(AGES)
    command = [*COMMAND, "--z", "3", "--time", "t", "--user", "who", "--json", *options]
    done = subprocess.run(
        command,
        input=text.encode(),
        capture_output=True,
        env=ENVIRONMENT,
        check=False,
        cwd=folder.parent,
    )
    assert done.returncode == 0, done.stderr
    (folder / name).write_bytes(done.stdout)
    (folder / "manifest.json").write_bytes(done.stderr)
    return folder


ITEM = ("--attribute", "item")
LEVELS = ("--attribute", "item,place", "--levels", "chain", "--hierarchy", "place=places.csv")
HIERARCHY = ("--hierarchy", "item=items.csv")
CASES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "ISO times": ("a.csv", "iso", ",", ITEM),
    "seconds": ("a.csv", "s", ",", (*ITEM, "--time-unit", "s")),
    "tabs": ("a.csv", "iso", "\t", (*ITEM, "--delimiter", "tab")),
    "semicolons": ("a.csv", "iso", ";", (*ITEM, "--delimiter", ";")),
    "JSON Lines": ("a.jsonl", "iso", ",", (*ITEM, "--to", "jsonl")),
    "Parquet": ("a.parquet", "iso", ",", (*ITEM, "--to", "parquet")),
    "blank": ("a.csv", "iso", ",", (*ITEM, "--suppressed", "blank")),
    "no header": ("a.csv", "iso", ",", (*ITEM, "--header", "t,who,item,place")),
    "a passed column": ("a.csv", "iso", ",", (*ITEM, "--pass", "place")),
}


@pytest.mark.family(5)
@pytest.mark.parametrize("case", CASES)
def test_what_filter_writes_is_read(tmp_path: Path, case: str) -> None:
    name, form, delimiter, options = CASES[case]
    text = table_of(form, delimiter)
    if "--header" in options:
        text = text.partition("\n")[2]
    report = audit(share(tmp_path / "shared", name, text, *options), purpose="internal")
    facts = report.facts
    released = len(ROWS) if "blank" in options else facts["records_with_a_name"]
    assert facts["records"] == released
    assert len(ROWS) > facts["records_with_a_name"] > len(ROWS) - 3 * 7
    assert (facts["names"], facts["pseudonyms"], facts["z"]) == (4, 60, 3)
    assert any("--pass" in note for note in report.notes) == ("--pass" in options)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_attributes_that_are_released_together_are_one_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "items.csv").write_text("".join(f"item {i};*\n" for i in range(7)))
    to = ("--to", Path(name).suffix[1:])
    folder = share(tmp_path / "shared", name, table_of("iso", ","), *LEVELS, *HIERARCHY, *to)
    report = audit(folder, purpose="internal")
    assert report.facts["records"] == report.facts["records_with_a_name"] > 200
    assert 4 <= report.facts["names"] <= 4 * 3 + 4 + 3 + 1


def test_without_a_user_no_figure_needs_one(tmp_path: Path) -> None:
    folder = share(tmp_path / "shared", "a.csv", table_of("iso", ","), *ITEM, "--no-user")
    report = audit(folder, purpose="public")
    assert (report.facts["pseudonyms"], report.exit_code) == (0, 0)


def test_a_release_of_publish_is_a_table(tmp_path: Path, capfd: Captured) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "manifest.json").write_text('{"name": "zanon-net publish"}')
    assert run_main("audit", folder) == 1
    assert "is a table; give its file, and --quasi" in capfd.readouterr().err
