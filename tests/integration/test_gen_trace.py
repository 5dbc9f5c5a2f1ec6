# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The generator of traffic under a Python that lacks what it needs."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import ENVIRONMENT
from support.paths import ROOT

pytestmark = pytest.mark.source

WITHOUT = """
import runpy, sys
sys.modules[sys.argv[1]] = None
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("missing", ["numpy", "zanon_net"])
def test_what_is_missing_is_said_in_a_line(tmp_path: Path, missing: str) -> None:
    target = tmp_path / "trace.pcap"
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, missing, ROOT / "bench" / "gen_trace.py", target],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"gen_trace.py: {missing}")
    assert done.stderr.count("\n") == 1
    assert not target.exists()
