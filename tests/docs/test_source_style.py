# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Format, lint and types as tests, where the tools of the `lint` extra are installed.

`make lint` installs and runs the same tools, and the compilers' warnings besides.
"""

import subprocess
import sysconfig
from pathlib import Path

import pytest
from support.paths import ROOT

pytestmark = pytest.mark.source

C_FILES = sorted(
    str(path.relative_to(ROOT))
    for folder in ("csrc", "examples", "tests")
    for path in (ROOT / folder).rglob("*.[ch]")
)
COMMANDS = {
    "ruff-check": ["ruff", "check"],
    "ruff-format": ["ruff", "format", "--check"],
    "mypy": ["mypy", "zanon_net", "tests/typecheck"],
    "clang-format": ["clang-format", "--dry-run", "-Werror", *C_FILES],
    "codespell": ["codespell"],
    "cython-lint": ["cython-lint", "--no-pycodestyle", "zanon_net"],
    "stubtest": [
        "stubtest",
        "--mypy-config-file",
        "pyproject.toml",
        "--ignore-missing-stub",
        "zanon_net._core",
    ],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_style(name: str) -> None:
    program, *arguments = COMMANDS[name]
    # The pinned one of this environment, not another version that the system may have.
    installed = Path(sysconfig.get_path("scripts"), program)
    if not installed.exists():
        pytest.skip(f"{program} is not in this environment; `make lint` installs and runs it")
    done = subprocess.run(
        [str(installed), *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
