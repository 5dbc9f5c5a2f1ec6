# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Every command, used once by a shell, as tests of packages use it. `make test-all` runs it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import DEMO, ENVIRONMENT
from support.every_command import use_every_command

FUNCTION = 'zanon-net() { "$PYTHON" -m zanon_net "$@"; }\n'


@pytest.mark.family(0)
def test_every_command_works(tmp_path: Path) -> None:
    shutil.copy(DEMO, tmp_path / "demo.pcap")
    environ = {**ENVIRONMENT, "PYTHON": sys.executable}

    def shell(line: str) -> None:
        command = ["bash", "-e", "-c", FUNCTION + line]
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)

    use_every_command(shell)
