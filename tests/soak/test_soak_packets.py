# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Names in packets that leave, in 60,000 conversations, against an exact oracle.

`make soak-packets` runs a hundred million with the same program.
"""

import os
import subprocess
from pathlib import Path

import pytest
from support.c_build import compile_c, run
from support.shared import made_once

pytestmark = [
    pytest.mark.source,
    pytest.mark.skipif("ZANON_SANITIZE" in os.environ, reason="a program of its own, as without"),
]

FOLDER = Path(__file__).resolve().parent / "packets"
WRONG = {"wrong": 0, "strange": 0}


@pytest.fixture(scope="module")
def program(c_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    libraries = subprocess.check_output(["pkg-config", "--libs", "libcrypto", "libpcap"], text=True)

    def build(folder: Path) -> None:
        library = c_library / "lib" / "libzanon.a"
        sources = [*sorted(FOLDER.glob("*.c")), library]
        flags = ["-O2", "-pthread", "-Wl,--no-as-needed", *libraries.split()]  # before the sources
        compile_c(folder / "soak_packets", sources, *flags)

    return made_once(tmp_path_factory, "soak_packets", build) / "soak_packets"


def numbers(printed: str) -> dict[str, float]:
    """What the program says of each thing it counts."""
    return {name: float(n) for name, n in (line.split(" ", 1) for line in printed.splitlines())}


@pytest.mark.slow
def test_no_name_that_the_oracle_holds_back(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = numbers(run([program, "-n", "60000", "-s", "1"]))
    with capsys.disabled():
        print("", *(f"{name} {told[name]:.0f}" for name in ("cases", "shown", "expected", *WRONG)))
    assert {name: told[name] for name in WRONG} == WRONG
    assert told["cases"] == 60_000
    assert told["rounds"] >= 24
    # An engine that shows nothing would never be wrong.
    assert told["expected"] > 15_000
    assert told["missed"] < 0.02 * told["expected"]
    for kind in ("dns", "dns-tcp", "http", "tls", "quic"):
        assert told[f"shown-{kind}"] > 500, kind


def test_it_notices_an_oracle_that_wants_one_user_more(program: Path) -> None:
    command: list[str | Path] = [program, "-n", "10000", "-s", "2", "-b"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    told = numbers(done.stdout)
    assert told["wrong"] > 500
    assert told["strange"] == 0
    assert "wrong: a label" in done.stderr


def test_the_same_seed_is_the_same_run(program: Path) -> None:
    def told(seed: str) -> str:
        return run([program, "-n", "2500", "-s", seed]).split("seconds")[0]

    assert told("4") == told("4") != told("5")
