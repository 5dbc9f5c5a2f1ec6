# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""examples/c/ztable.c, built as its comment says, on lines whose answer the oracle knows."""

import os
import random
import shlex
import subprocess
from pathlib import Path

import pytest
from oracle.ztable import ZOracle
from support.c_build import run
from support.examples import each
from support.paths import ROOT

pytestmark = [pytest.mark.source, pytest.mark.slow]

EXAMPLE = ROOT / "examples" / "c" / "ztable.c"
SECOND = 10**9
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wstrict-prototypes", "-Werror"]


@pytest.fixture(scope="module")
def program(c_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built with the flags of the library's pkg-config file, from outside the source tree."""
    folder = tmp_path_factory.mktemp("example")
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "zanon"],
        env={**os.environ, "PKG_CONFIG_PATH": str(c_library / "lib" / "pkgconfig")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    command = ["cc", "-std=c11", "-D_GNU_SOURCE", *WARNINGS, EXAMPLE, *shlex.split(flags)]
    command += [f"-Wl,-rpath,{c_library / 'lib'}"]
    run([*command, "-o", folder / "ztable"], cwd=folder)
    return folder / "ztable"


def refusal(program: Path, stdin: bytes, *options: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    done = subprocess.run([program, *options], input=stdin, capture_output=True, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize(("z", "seconds"), [(1, 60), (2, 1), (3, 60), (10, 3600)])
def test_it_releases_what_the_oracle_releases(program: Path, z: int, seconds: int) -> None:
    rng, t_ns = random.Random(z), 1_700_000_000 * SECOND
    oracle = ZOracle(z, seconds * SECOND)
    lines, released = [], []
    for _ in range(3_000):
        t_ns += rng.choice([0, 1, seconds * SECOND // 100, rng.randrange(seconds * SECOND // 10)])
        user, name = f"2001:db8::{rng.randrange(20):x}", f"{int(rng.paretovariate(1))}.example.org"
        blank, end = rng.choice([" ", "\t", "   "]), rng.choice(["\n", "\r\n", " \n"])
        lines.append(f"{t_ns}{blank}{user}{blank}{name}{end}")
        if oracle.observe(t_ns, user, name):
            released.append(lines[-1])
    code, out, err = refusal(program, "".join(lines).encode(), "-z", str(z), "-w", str(seconds))
    assert (code, err) == (0, "")
    assert out == "".join(released)
    assert 0 < len(released) <= len(lines)
    assert (len(released) < len(lines)) == (z > 1)


def test_its_defaults_are_twenty_users_in_an_hour(program: Path) -> None:
    times = [0] * 19 + [3600 * SECOND, 3600 * SECOND + 1]
    lines = [f"{t} user{i} a\n" for i, t in enumerate(times)]
    assert run([program], "".join(lines)) == lines[19]


def test_the_last_line_may_lack_its_end(program: Path) -> None:
    assert run([program, "-z", "1"], "1 u a\n2 u a") == "1 u a\n2 u a"
    assert run([program, "-z", "1"], "") == ""


@each(
    "bad",
    [
        b"",
        b" ",
        b"5",
        b"5 u",
        b"5 u a more",
        b"-5 u a",
        b"+5 u a",
        b"5.5 u a",
        b"0x5 u a",
        b"five u a",
        b"9223372036854775808 u a",
        b"99999999999999999999999 u a",
        b"5 u a\0",
        b"5 u\0 a",
        b"\x005 u a",
    ],
)
def test_a_bad_line_ends_it(program: Path, bad: bytes) -> None:
    code, out, err = refusal(program, b"1 u a\n2 u a\n" + bad + b"\n3 u a\n", "-z", "1")
    assert code == 1
    assert out == "1 u a\n2 u a\n"
    assert err == "ztable: line 3 is not `t user attribute`\n"


@pytest.mark.parametrize(
    "options", [["-x"], ["-z"], ["-z", "few"], ["-z", "-1"], ["-z", "3x"], ["-w", "1h"], ["file"]]
)
def test_bad_options(program: Path, options: list[str]) -> None:
    code, out, err = refusal(program, b"", *options)
    assert (code, out) == (2, "")
    assert "usage: ztable [-z Z] [-w SECONDS]" in err


@pytest.mark.parametrize("options", [["-z", "0"], ["-w", "0"]])
def test_values_the_table_refuses(program: Path, options: list[str]) -> None:
    code, out, err = refusal(program, b"", *options)
    assert (code, out) == (1, "")
    assert err.startswith("ztable: ")
    assert err.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(program: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [program, "-z", "1"], input=b"1 u a\n", stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert b"No space left" in done.stderr
