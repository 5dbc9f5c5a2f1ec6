# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The systemd units: systemd's own opinion of them, where systemd is."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import ROOT

pytestmark = pytest.mark.source

COMMANDS = {"zanon-net.service": "run", "zanon-net-counter.service": "count"}
PACKAGING = ROOT / "packaging"
UNIT = PACKAGING / "zanon-net.service"


def analyze(*arguments: str) -> str:
    """What systemd-analyze says on both streams; it must succeed."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not on this machine")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(params=COMMANDS)
def name(request: pytest.FixtureRequest) -> str:
    """Of each unit."""
    return str(request.param)


@pytest.fixture
def lines(name: str) -> list[str]:
    """Those of the unit."""
    return (PACKAGING / name).read_text("utf-8").splitlines()


@pytest.fixture
def unit(name: str, tmp_path: Path) -> Path:
    """The unit with a program that is there."""
    text = (PACKAGING / name).read_text("utf-8")
    assert f"ExecStart=/usr/bin/zanon-net {COMMANDS[name]} " in text
    path = tmp_path / name
    path.write_text(text.replace("/usr/bin/zanon-net", sys.executable), "utf-8")
    return path


def test_systemd_understands_it(unit: Path) -> None:
    said = analyze("verify", "--man=no", str(unit))
    assert unit.name not in said


def test_verify_notices(unit: Path) -> None:
    unit.write_text(unit.read_text("utf-8").replace("ProtectSystem=strict", "ProtectSystm=x"))
    assert "ProtectSystm" in analyze("verify", "--man=no", str(unit))


def test_what_it_may_not_do_fails(lines: list[str]) -> None:
    """NumPy's library calls mbind when it is loaded, which the filter refuses: not by a signal."""
    assert "SystemCallErrorNumber=EPERM" in lines


def test_it_goes_on_when_its_interface_is_back() -> None:
    """The exit code is 0 when that is removed, and 2 for a setting that no new start mends."""
    lines = UNIT.read_text("utf-8").splitlines()
    assert "Restart=always" in lines
    assert "RestartPreventExitStatus=2" in lines


def test_it_says_when_it_is_ready_and_that_it_is_alive(lines: list[str]) -> None:
    """The socket of the service manager is of the family AF_UNIX."""
    assert "Type=notify" in lines
    assert any(line.startswith("WatchdogSec=") for line in lines)
    (families,) = (line for line in lines if line.startswith("RestrictAddressFamilies="))
    assert "AF_UNIX" in families.partition("=")[2].split()


def test_the_counter_goes_on_after_a_failure_and_has_no_capability() -> None:
    lines = (PACKAGING / "zanon-net-counter.service").read_text("utf-8").splitlines()
    assert {"Restart=on-failure", "RestartPreventExitStatus=2", "CapabilityBoundingSet="} <= {
        *lines
    }


def test_it_may_do_little(unit: Path) -> None:
    said = analyze("security", "--offline=true", str(unit))
    level = re.search(r"exposure level for .*: ([0-9.]+)", said)
    assert level is not None
    assert float(level[1]) < 2.0  # systemd calls this "OK"; a plain service has 9.6
