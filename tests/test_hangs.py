# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Tests that hang are named."""

import subprocess
import sys
from pathlib import Path

import pytest
from cli_help import ENVIRONMENT

HOOKS = """
from hang_help import pytest_configure, pytest_runtest_logfinish, pytest_runtest_logstart
"""
HUNG = {
    "in C": """
import ctypes
def test_it():
    lock = ctypes.create_string_buffer(64)
    for _ in range(2):
        ctypes.CDLL(None).pthread_mutex_lock(lock)
""",
    "in an example": """
import time
from hypothesis import given, strategies
@given(strategies.integers(0, 9))
def test_it(n):
    time.sleep(100)
""",
}


@pytest.mark.skipif(sys.platform != "linux", reason="made of Linux's mutex")
@pytest.mark.parametrize("where", HUNG)
def test_a_test_that_nothing_can_fail_is_named_at_the_end(where: str, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(HOOKS)
    (tmp_path / "test_hung.py").write_text(f"def test_before():\n    pass\n{HUNG[where]}")
    settings = "timeout = 1\nfaulthandler_timeout = 4\nfaulthandler_exit_on_timeout = true\n"
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {Path(__file__).parent}\n{settings}"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == b"test_hung.py::test_it hangs"
