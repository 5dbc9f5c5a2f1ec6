# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The pages about data in other tools: their programs and queries print what the pages show.

`make site` runs the notebooks, and an error in one ends it.
"""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import DEMO, ENVIRONMENT
from support.examples import EVERY_CASE
from support.howtos import HOWTOS
from support.paths import ROOT

pytestmark = [
    pytest.mark.source,
    pytest.mark.slow,
    pytest.mark.skipif(
        not EVERY_CASE and "ZANON_SITE" not in os.environ, reason="`make site` tests these pages"
    ),
]

BLOCK = re.compile(
    r"^```(sh|sql|python)\n(.*?)^```$(?:\n+```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
COMMAND = 'zanon-net() { "$PYTHON" -m zanon_net "$@"; }; set -e\n'


def in_duckdb() -> Callable[[str], str]:
    """Returns a function that runs a statement and returns its result as the command shows it."""
    connection = pytest.importorskip("duckdb").connect()
    connection.sql("SET TimeZone = 'UTC'")

    def run(statement: str) -> str:
        result = connection.sql(statement)
        return "" if result is None else str(result)

    return run


def in_clickhouse() -> Callable[[str], str]:
    """Returns a function that runs a query in ClickHouse's engine and returns its table."""
    chdb = pytest.importorskip("chdb", reason="chdb is not installed; `make site` installs it")
    return lambda query: str(chdb.query(query, "PrettyCompactMonoBlock"))


def in_python() -> Callable[[str], str]:
    """Returns a function that runs a program after earlier ones and returns what it prints."""
    for library in ("pandas", "polars", "pyarrow"):
        pytest.importorskip(library)
    variables: dict[str, Any] = {}

    def run(program: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(program, variables)
        return printed.getvalue()

    return run


PAGES = {"duckdb.md": in_duckdb, "clickhouse.md": in_clickhouse, "dataframes.md": in_python}
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def lines(text: str) -> list[str]:
    """Returns the lines without blanks at their ends, and without empty lines."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_comes(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = PAGES[page]()
    shutil.copy(DEMO, tmp_path / "capture.pcap")
    monkeypatch.chdir(tmp_path)
    compared = 0
    for kind, block, shown in BLOCK.findall((HOWTOS / page).read_text(encoding="utf-8")):
        if kind == "sh":
            command = ["bash", "-c", COMMAND + block]
            environment = {**ENVIRONMENT, "PYTHON": sys.executable}
            subprocess.run(command, env=environment, check=True, capture_output=True)
            continue
        printed = run(block)
        if shown:
            compared += 1
            assert lines(printed) == lines(shown)
    assert compared >= 3


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_stores_no_output(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    programs = [cell for cell in cells if cell["cell_type"] == "code"]
    assert programs
    assert not any(cell["outputs"] or cell["execution_count"] for cell in programs)


def test_both_notebooks_are_found() -> None:
    assert len(NOTEBOOKS) == 2
