# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A test that takes too long fails, and no other test: support/time_limits.py."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import ROOT

# The last test that never ends ignores the signal, as C does that waits.
TESTS = """
import signal, time
import pytest
from hypothesis import given, settings, strategies as st

def forever():
    while True:
        time.sleep(0.01)

def test_before(): pass
def test_python(): forever()

@settings(deadline=None, database=None)
@given(st.integers())
def test_hypothesis(number): forever()

@pytest.fixture
def never(): forever()

def test_fixture(never): pass

def test_deaf():
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    forever()

def test_behind(): pass
"""
HOOKS = "from support.time_limits import *  # noqa: F403\n"
PASSING = "".join(f"def test_{n}(): pass\n" for n in range(20))
NEVER_END = {"test_python", "test_hypothesis", "test_fixture", "test_deaf"}


@pytest.mark.slow
def test_the_run_continues_behind_a_test_that_never_ends(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(HOOKS)
    (tmp_path / "test_never.py").write_text(TESTS)
    (tmp_path / "test_others.py").write_text(PASSING)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\ntimeout = 2\ntimeout_method = signal\n"
        "faulthandler_timeout = 5\nfaulthandler_exit_on_timeout = true\n"
    )
    # Without --basetemp, pytest takes the rights of other users from the folder that all its runs
    # share. A test that runs at the same time may need these rights.
    basetemp = f"--basetemp={tmp_path / 'inner'}"
    command = [sys.executable, "-m", "pytest", "-v", "-n", "2", "--dist", "loadfile"]
    done = subprocess.run(
        [*command, "--no-loadscope-reorder", "-p", "no:cacheprovider", basetemp],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    failed = re.findall(r"^(?:FAILED|ERROR) \S+::(\w+)", done.stdout, re.M)
    assert sorted(failed) == sorted(NEVER_END), done.stdout
    counts = dict(re.findall(r"(\d+) (failed|passed|error)\b", done.stdout.splitlines()[-1]))
    assert counts == {"3": "failed", "22": "passed", "1": "error"}, done.stdout
    assert done.stdout.count("the test took more than 2 s") >= 3
    assert "crashed while running 'test_never.py::test_deaf'" in done.stdout
