# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""bench/flows.py runs, at a tiny size, and its tables have every row. Nothing here is timed."""

import os
import subprocess
import sys

import pytest
from support.paths import ROOT

pytestmark = [
    pytest.mark.source,
    pytest.mark.skipif("ZANON_SANITIZE" in os.environ, reason="a sanitizer's memory is not ours"),
]

SCRIPT = ROOT / "bench" / "flows.py"


def test_the_tables_are_whole() -> None:
    command = [sys.executable, str(SCRIPT), "--flows", "2000", "--records", "3000", "--runs", "1"]
    # A script finds the modules beside it, unlike what `make coverage` asks of Python.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.strip("|").split("|") for line in done.stdout.splitlines() if line[:1] == "|"]
    names = [row[0].strip() for row in rows]
    assert names[2:4] == ["core", "all sets"]
    assert names[6:] == [
        f"{form}, {sets}"
        for sets in ("core", "all sets")
        for form in ("tstat", "csv", "jsonl", "parquet")
    ]
    columns = {row[0].strip(): row[1].strip() for row in rows}
    assert columns["tstat, all sets"] == "134 and 25"
    bytes_a_flow = {row[0].strip(): float(row[2]) for row in rows[2:4]}
    assert bytes_a_flow["core"] < bytes_a_flow["all sets"]
