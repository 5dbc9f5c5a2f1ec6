# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""bench/cryptopan.py runs, at a tiny size, and has every row. Nothing here is timed."""

import importlib.util
import os
import shutil
import subprocess
import sys

import pytest
from support.paths import ROOT

pytestmark = [pytest.mark.source, pytest.mark.slow]

SCRIPT = ROOT / "bench" / "cryptopan.py"
ROWS = ["zanon-net, arrays", "zanon-net, one address a call from C"]
ROWS += ["plain, one libcrypto call an address"]
ROWS += ["yacryptopan"] if importlib.util.find_spec("yacryptopan") else []
ROWS += ["blocks alone"]


@pytest.mark.skipif("ZANON_SANITIZE" in os.environ, reason="it has its own C, without sanitizer")
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_it_runs() -> None:
    # A script finds the modules beside it.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--size", "0.001", "--repeat", "1"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    tables = done.stdout.split("### ")[1:]
    assert [table.split()[0] for table in tables] == ["IPv4", "IPv6", "--pseudonyms,"]
    assert sum(line.startswith("| ") for line in tables[2].splitlines()) == 1 + 2 * 4
    for table in tables[:2]:
        lines = [line for line in table.splitlines() if line.startswith("| ")]
        assert [line.split("|")[1].strip() for line in lines][1:] == ROWS
