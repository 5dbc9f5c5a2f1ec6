# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""bench/ztable.py runs, at a tiny size, and its tables have every row. Nothing here is timed."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from support.paths import ROOT

pytestmark = [
    pytest.mark.source,
    pytest.mark.slow,
    pytest.mark.skipif("ZANON_SANITIZE" in os.environ, reason="a sanitizer's memory is not ours"),
]

SCRIPT = ROOT / "bench" / "ztable.py"
SMALL, FULL, CPP = "zanon-net, keep=16", "zanon-net, keep=None", "C++ unordered_map + list"
ALL = [SMALL, FULL, CPP, "OrderedDict of OrderedDicts", "zanon 0.3.4"]
UNIQUE, ONE = "a new name each time, from one client", "one name, from a new client each time"
LOW, FNV = "names that are equal in their low 32 bits", "names with equal low 16 bits of FNV-1a"
REMAINDER = "names that are multiples of the C++ table's bucket count"

# The first words of each table's heading, and its rows' first cells.
ROWS = {
    "All tuples live": ALL,
    "A window of 10 s": ALL,
    "Memory follows": [SMALL, FULL],
    "z = 350": ["zanon-net, keep=350", CPP],
    "100 M live": [SMALL, FULL],
    "The same, not growing": [f"{FULL}, reserved"],
    "Cost an observation": [SMALL] * 5 + [FULL] * 5 + [CPP] * 4,
    "`observe`": ["zanon-net, `observe`, keep=16", "zanon-net, `observe`, keep=None"],
    "Single calls": [
        f"{one}, {part}" for one in ALL[:3] for part in ("filling", "steady", "a burst leaves")
    ],
    "Hostile input": [UNIQUE] * 4 + [ONE] * 3 + [LOW] * 2 + [FNV] * 2 + [REMAINDER] * 3,
}


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--patience", "0", *options]
    # A script finds the modules beside it, unlike what `make coverage` asks of Python.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def tables_of(text: str) -> dict[str, list[list[str]]]:
    """The cells of each table by its heading, its header and rule left out."""
    found: dict[str, list[list[str]]] = {}
    for line in text.splitlines():
        if line.startswith("### "):
            rows = found[line[4:]] = []
        elif line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return {heading: rows[2:] for heading, rows in found.items()}


@pytest.mark.skipif(
    not shutil.which("c++") or not shutil.which("cc"), reason="no C and C++ compiler"
)
@pytest.mark.family(0)  # `make test-all`: each table is measured once, which takes 20 s
def test_every_table_has_every_row() -> None:
    done = run("--size", "0.00005", "--repeat", "1")
    assert done.returncode == 0, done.stderr
    tables = tables_of(done.stdout)
    for words, expected in ROWS.items():
        (rows,) = [rows for heading, rows in tables.items() if heading.startswith(words)]
        assert [row[0] for row in rows] == expected
        for row in rows:
            numbers = [cell for cell in row[1:] if re.match(r"[0-9.,]+( \(|$)", cell)]
            assert len(numbers) >= 3 or "not installed" in row[1], row


@pytest.mark.parametrize("options", [["--only", "nothing"], ["--size", "2"], ["--repeat", "0"]])
def test_wrong_options_are_refused(options: list[str]) -> None:
    done = run(*options)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
