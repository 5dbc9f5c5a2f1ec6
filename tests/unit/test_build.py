# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The build: what the environment changes about it, what a missing library says, the C library."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from support.paths import ROOT

from zanon_net import Config, run

pytestmark = pytest.mark.source


@pytest.fixture(scope="module")
def setup_py() -> dict[str, Any]:
    """The names that setup.py defines; it builds only when run as a script."""
    return runpy.run_path(str(ROOT / "setup.py"), run_name="setup_under_test")


@pytest.fixture
def flags(setup_py: dict[str, Any]) -> Callable[..., tuple[list[str], list[str]]]:
    """Compiler and linker flags for the given variables."""
    return lambda **environ: setup_py["flags_from_env"](environ)


def test_release_has_no_variant_flags(flags: Callable[..., tuple[list[str], list[str]]]) -> None:
    cflags, ldflags = flags(PATH="/bin", ZANON_DEBUG="", ZANON_MARCH="", ZANON_SANITIZE="")
    assert {"-std=c11", "-O2", "-D_GNU_SOURCE", "-fvisibility=hidden"} <= set(cflags)
    assert not [flag for flag in cflags if flag.startswith(("-march", "-fsanitize", "-DZN_"))]
    assert ldflags == []


def test_march(flags: Callable[..., tuple[list[str], list[str]]]) -> None:
    cflags, ldflags = flags(ZANON_MARCH="native")
    assert "-march=native" in cflags
    assert "-O2" in cflags
    assert ldflags == []


def test_debug(flags: Callable[..., tuple[list[str], list[str]]]) -> None:
    cflags, ldflags = flags(ZANON_DEBUG="1")
    assert cflags.index("-O1") > cflags.index("-O2"), "the last -O counts"
    assert {"-g", "-DZN_DEBUG"} <= set(cflags)
    assert ldflags == []
    assert flags(ZANON_DEBUG="0") == flags()


def test_sanitize_implies_debug(flags: Callable[..., tuple[list[str], list[str]]]) -> None:
    cflags, ldflags = flags(ZANON_SANITIZE="address,undefined")
    assert set(flags(ZANON_DEBUG="1")[0]) < set(cflags)
    assert {"-fsanitize=address,undefined", "-fno-wrapv"} <= set(cflags)
    assert ldflags == ["-fsanitize=address,undefined"]


def test_coverage_counts_lines(flags: Callable[..., tuple[list[str], list[str]]]) -> None:
    cflags, ldflags = flags(ZANON_COVERAGE="1")
    assert cflags.index("-O1") > cflags.index("-O2"), "the last -O counts"
    assert "--coverage" in cflags
    assert ldflags == ["--coverage"]
    assert flags(ZANON_COVERAGE="0") == flags()


def test_each_variant_is_built_in_its_own_folder(setup_py: dict[str, Any]) -> None:
    environs = [
        {},
        {"ZANON_DEBUG": "1"},
        {"ZANON_MARCH": "native"},
        {"ZANON_SANITIZE": "address,undefined"},
        {"ZANON_SANITIZE": "thread"},
        {"ZANON_SANITIZE": "thread", "ZANON_MARCH": "x86-64-v3"},
        {"ZANON_COVERAGE": "1"},
    ]
    folders = [setup_py["build_base"](environ) for environ in environs]
    assert len(set(folders)) == len(folders)
    assert folders[0] == "build/release"
    # The Makefile empties these.
    assert folders[3] == "build/address-undefined"
    assert folders[-1] == "build/coverage"
    assert all(folder.startswith("build/") and ".." not in folder for folder in folders)


def test_missing_library_ends_with_the_line_to_type(tmp_path: Path) -> None:
    environ = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "setup.py", "--version"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.endswith("apt-get install -y libpcap-dev libssl-dev pkg-config")


def test_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["dynamic"] == ["version"]
    version = runpy.run_path(str(ROOT / "zanon_net" / "_version.py"))["__version__"]
    assert metadata.version("zanon-net") == version


def test_the_makefile_lists_tests_that_exist() -> None:
    """pytest would leave out a file that is not there without a word."""
    command = ["make", "--no-print-directory", "-n", "asan", "dist"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    named = set(re.findall(r"\btests/[\w/]+(?:\.py)?", said))
    assert len(named) > 30
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_no_extra_asks_for_what_every_installation_has() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    always = {re.split(r"\W", wanted)[0] for wanted in project["dependencies"]}
    for extra, requirements in project["optional-dependencies"].items():
        assert always.isdisjoint(re.split(r"\W", wanted)[0] for wanted in requirements), extra


def library_flags(library: Path, *packages: str) -> list[str]:
    """What pkg-config says to compile with."""
    return subprocess.run(
        ["pkg-config", "--cflags", "--libs", "zanon", *packages],
        env={**os.environ, "PKG_CONFIG_PATH": str(library / "lib" / "pkgconfig")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()


@pytest.mark.slow
def test_library_links_without_python(c_library: Path, tmp_path: Path) -> None:
    program = tmp_path / "use.c"
    program.write_text(
        '#include "engine/engine.h"\n'
        '#include "anonymity/ztable.h"\nint main(void)\n{\n    return 0;\n}\n'
    )
    command = ["cc", "-std=c11", str(program), *library_flags(c_library)]
    command += ["-o", str(tmp_path / "use")]
    # Every object of the archive has to find what it calls, not only those that main() needs.
    whole = ["-Wl,--whole-archive", str(c_library / "lib" / "libzanon.a"), "-Wl,--no-whole-archive"]
    subprocess.run([*command, *whole, "-lcrypto", "-lpcap", "-lm"], check=True)
    subprocess.run([str(tmp_path / "use")], check=True)


@pytest.mark.slow
def test_the_monitor_in_c(c_library: Path, tmp_path: Path, demo_pcap: Path) -> None:
    """It prints what the command prints, line by line, but for the pseudonyms."""
    source = ROOT / "examples" / "c" / "monitor.c"
    assert len(source.read_text("utf-8").splitlines()) <= 60
    monitor = str(tmp_path / "monitor")
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Werror"]
    flags = library_flags(c_library, "libpcap")
    subprocess.run(
        ["cc", "-std=c11", *warnings, str(source), *flags, "-o", monitor],
        check=True,
    )
    done = subprocess.run([monitor, "5", str(demo_pcap)], capture_output=True, check=True)
    config = Config().replace(z=5, internal="10.0.0.0/8", format=["observations"])
    run(demo_pcap, config, out=tmp_path / "out")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    text = (tmp_path / "out" / "observations.jsonl").read_text("utf-8")
    wanted = [json.loads(line) for line in text.splitlines()]
    assert len(found) > 100
    for line in (*found, *wanted):
        assert line.pop("client")
    assert found == wanted
    for z in ("0", "-1", "x", str(2**32 + 1), str(2**64 + 1)):
        assert subprocess.run([monitor, z, str(demo_pcap)], capture_output=True).returncode == 2
    (tmp_path / "cut.pcap").write_bytes(demo_pcap.read_bytes()[:-1])
    for path in ("no-such-thing", "cut.pcap"):
        failed = subprocess.run([monitor, "5", path], capture_output=True, cwd=tmp_path)
        assert (failed.returncode, failed.stderr.count(b"\n")) == (1, 1)
    with Path("/dev/full").open("wb") as full:
        failed = subprocess.run([monitor, "5", str(demo_pcap)], stdout=full, stderr=subprocess.PIPE)
    assert (failed.returncode, failed.stderr) == (1, b"standard output: No space left on device\n")


MODULES = """
import sys
from zanon_net.cli import main
assert main(sys.argv[1:]) == 0
print(*({"numpy", "rich", "scipy", "pyarrow"} & sys.modules.keys()), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["inspect", "DEMO"], ["run", "DEMO", "--out", "o"]]
)
def test_large_libraries_are_imported_only_where_they_are_used(
    arguments: list[str], demo_pcap: Path, tmp_path: Path
) -> None:
    """NumPy for arrays, rich on a terminal."""
    given = [str(demo_pcap) if word == "DEMO" else word for word in arguments]
    command = [sys.executable, "-c", MODULES, *given]
    done = subprocess.run(command, capture_output=True, check=True, text=True, cwd=tmp_path)
    assert done.stderr.splitlines()[-1] == ""


@pytest.mark.parametrize("has_runtime", [True, False])
def test_what_clang_fuzzes_with_is_asked_for(tmp_path: Path, has_runtime: bool) -> None:
    """Where Debian's clang came without it; no apt-get is found, so the line to type is printed."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "cc", "echo", "find", "id", "make", "pkg-config", "xargs"):
        program = shutil.which(name)
        assert program is not None
        (programs / name).symlink_to(program)
    (programs / "clang").write_text(f"#!/bin/sh\necho {tmp_path}\n")
    (programs / "clang").chmod(0o755)
    (tmp_path / "lib").mkdir()
    if has_runtime:
        (tmp_path / "lib" / "libclang_rt.fuzzer-x86_64.a").touch()
    done = subprocess.run(
        [programs / "bash", "scripts/setup-system", sys.executable, "clang", "libclang-rt-dev"],
        cwd=ROOT,
        env=os.environ | {"PATH": str(programs)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = (
        "zanon-net needs some system packages. As root, type: apt-get install -y libclang-rt-dev\n"
    )
    expected = (0, "") if has_runtime else (1, said)
    assert (done.returncode, done.stderr) == expected


def test_other_processors_are_refused_in_a_line() -> None:
    command = ["cc", "-fsyntax-only", "-U__SIZEOF_INT128__", "-x", "c", ROOT / "csrc/util/base.h"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "zanon_net needs a 64-bit processor" in done.stderr
