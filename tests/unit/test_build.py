# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The build: variables of the environment, the message about a missing library, the C library."""

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
from support.c_build import use_installed_library
from support.capture_bytes import pcap_header, pcap_record
from support.paths import ROOT

from zanon_net import Config, packets, run

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


def test_only_a_sanitized_binding_is_not_optimized(setup_py: dict[str, Any]) -> None:
    binding_flags = setup_py["binding_flags"]
    assert binding_flags({"ZANON_SANITIZE": "address"}) == ["-O0"]
    assert binding_flags({"ZANON_SANITIZE": "", "ZANON_DEBUG": "1"}) == binding_flags({}) == []


def test_coverage_counts_lines(flags: Callable[..., tuple[list[str], list[str]]]) -> None:
    cflags, ldflags = flags(ZANON_COVERAGE="1")
    assert cflags.index("-O1") > cflags.index("-O2"), "the last -O counts"
    assert "--coverage" in cflags
    assert ldflags == ["--coverage"]
    assert flags(ZANON_COVERAGE="0") == flags()


def test_probes_are_asked_for(
    setup_py: dict[str, Any], flags: Callable[..., tuple[list[str], list[str]]]
) -> None:
    """A build that does not ask has none of the names, in Cython or C."""
    asked = {"ZANON_TESTING": "1"}
    assert flags(**asked)[0] == [*flags()[0], "-DZN_TESTING"]
    assert flags(ZANON_TESTING="0") == flags()
    names = {"decode_packet", "fail_allocation"}
    assert names <= defined(ROOT / setup_py["binding"](asked))
    assert names.isdisjoint(defined(ROOT / setup_py["binding"]({})))


def defined(root: Path) -> set[str]:
    """The functions of a Cython source and of those that it includes."""
    text = root.read_text("utf-8")
    own = set(re.findall(r"^def (\w+)", text, re.MULTILINE))
    included = re.findall(r'^include "(.+)"', text, re.MULTILINE)
    return own.union(*(defined(root.parent / name) for name in included))


@pytest.mark.parametrize("flag", [[], ["-DZN_TESTING"]], ids=["release", "testing"])
def test_allocations_fail_in_builds_for_tests_only(flag: list[str], tmp_path: Path) -> None:
    out = tmp_path / "arena.o"
    command = ["cc", "-std=c11", "-D_GNU_SOURCE", *flag, f"-I{ROOT}/csrc", f"-I{ROOT}/csrc/include"]
    subprocess.run([*command, "-c", ROOT / "csrc/util/arena.c", "-o", out], check=True)
    names = subprocess.run(["nm", out], capture_output=True, check=True, text=True).stdout
    assert ("zn_alloc_fail_after" in names) == bool(flag)


def test_the_page_of_the_package_has_no_link_that_leads_nowhere(setup_py: dict[str, Any]) -> None:
    """A relative one would: an index shows the README alone."""
    readme = (ROOT / "README.md").read_text("utf-8")
    links = re.compile(r"\]\(([^)]+)\)")
    assert any(link.startswith("docs/") for link in links.findall(readme))
    plain = setup_py["package_page"](readme, None, "1.2")
    assert "project_urls" not in plain
    left = links.findall(plain["long_description"])
    assert [link for link in left if not link.startswith(("https://", "#"))] == []
    assert "\n[First run]" not in plain["long_description"]
    assert "docs/demo.svg" not in plain["long_description"]
    home = "https://code.example/zanon"
    about = setup_py["package_page"](readme, home, "1.2")
    assert about["project_urls"] == {"Homepage": home}
    found = links.findall(about["long_description"])
    assert len(found) == len(links.findall(readme))
    assert all(link.startswith(("https://", "#")) for link in found)
    assert f"{home}/raw/v1.2/docs/demo.svg" in found
    assert f"{home}/blob/v1.2/docs/README.md" in found


def test_each_variant_is_built_in_its_own_folder(setup_py: dict[str, Any]) -> None:
    environs = [
        {},
        {"ZANON_DEBUG": "1"},
        {"ZANON_MARCH": "native"},
        {"ZANON_SANITIZE": "address,undefined", "ZANON_TESTING": "1"},
        {"ZANON_SANITIZE": "address,undefined"},
        {"ZANON_SANITIZE": "thread"},
        {"ZANON_SANITIZE": "thread", "ZANON_MARCH": "x86-64-v3"},
        {"ZANON_COVERAGE": "1"},
        {"ZANON_TESTING": "1"},
        {"ZANON_ABI3": "1"},
        {"ZANON_COVERAGE": "1", "ZANON_TESTING": "1"},
    ]
    folders = [setup_py["build_base"](environ) for environ in environs]
    assert len(set(folders)) == len(folders)
    assert folders[0] == "build/release"
    # The Makefile empties these.
    assert folders[3] == "build/address-undefined-testing"
    assert folders[-1] == "build/coverage-testing"
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
    assert project["dynamic"] == ["version", "readme", "urls"]
    version = runpy.run_path(str(ROOT / "zanon_net" / "_version.py"))["__version__"]
    assert metadata.version("zanon-net") == version


def test_the_makefile_lists_tests_that_exist() -> None:
    """pytest would leave out a file that is not there without a word."""
    command = ["make", "--no-print-directory", "-n", "asan-quick", "dist"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    named = set(re.findall(r"\btests/[\w/]+(?:\.py)?", said))
    assert len(named) > 30
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_the_quick_sanitizers_run_what_runs_nowhere_else() -> None:
    """`make test` leaves out the tests that are marked so."""
    command = ["make", "--no-print-directory", "-n", "asan-quick"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    ignored = [ROOT / name for name in re.findall(r"--ignore=(\S+)", said)]
    marked = [
        path
        for path in (ROOT / "tests").rglob("test_*.py")
        if "mark.sanitized" in path.read_text("utf-8") and path != Path(__file__)
    ]
    assert len(marked) > 2
    assert not [path for path in marked if {path, *path.parents} & set(ignored)]


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


USE = """
#include <string.h>
#include <zanon/zanon.h>
#include <zanon/ztable.h>

static int refused(void)
{
    zn_engine_config config = zn_engine_default_config();
    zn_engine *engine;
    zn_error error;
    config.outputs = 1u << 31;
    if (zn_engine_open(&engine, &config, &error) != -ZN_ERR_CONFIG || engine != NULL)
        return 0;
    config = zn_engine_default_config();
    config.split_ns = -1;
    if (zn_engine_open(&engine, &config, &error) != -ZN_ERR_CONFIG || engine != NULL)
        return 0;
    config = zn_engine_default_config();
    config.size = 0;
    return zn_engine_open(&engine, &config, &error) == -ZN_ERR_CONFIG && engine == NULL;
}

static int is_net(const char *text, uint32_t bits)
{
    zn_net net;
    return zn_net_parse(&net, text, NULL) == 0 ? net.bits == bits : bits > 128;
}

int main(void)
{
    zn_ztable_config config = zn_ztable_default_config(2, ZN_NS_PER_S);
    zn_ztable *table;
    zn_error error;
    zn_observation o = {1, 1, {1, 1}};
    int good = strcmp(zn_version(), ZN_VERSION) == 0 && refused();
    good &= is_net("10.0.0.0/8", 104) && is_net("192.0.2.1", 128) && is_net("0.0.0.0/0", 96);
    good &= is_net("2001:db8::/32", 32) && is_net("::1", 128) && is_net("::/0", 0);
    good &= is_net("10.1.0.0/8", 200) && is_net("10.0.0.0/33", 200) && is_net("10.0.0.0/", 200);
    good &= is_net("::ffff:10.0.0.0/104", 104) && is_net("::ffff:10.1.0.0/104", 200);
    good &= is_net("", 200) && is_net("x", 200) && is_net("10.0.0.0/08", 200);
    good &= is_net("2001:db8::/129", 200) && is_net("10.0.0.0/8 ", 200) && is_net("10/8", 200);
    config.max_tuples = config.max_attributes = 100;
    if (!good || zn_ztable_open(&table, &config, &error) != 0)
        return 1;
    good = zn_ztable_observe(table, &o) == ZN_BELOW_Z;
    o.user = 2;
    good &= zn_ztable_observe(table, &o) == ZN_RELEASE;
    zn_ztable_close(table);
    return good ? 0 : 1;
}
"""


def finding(library: Path) -> dict[str, str]:
    """The environment in which programs find the shared library."""
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    return {**environment, "LD_LIBRARY_PATH": str(library / "lib")}


@pytest.mark.slow
def test_library_links_without_python(c_library: Path, tmp_path: Path) -> None:
    program = tmp_path / "use.c"
    program.write_text(USE)
    command = ["cc", "-std=c11", "-Wpedantic", "-Werror", str(program)]
    command += [*library_flags(c_library), "-o", str(tmp_path / "use")]
    # Every object of the archive has to find what it calls, not only those that main() needs.
    whole = ["-Wl,--whole-archive", str(c_library / "lib" / "libzanon.a"), "-Wl,--no-whole-archive"]
    subprocess.run([*command, *whole, "-lcrypto", "-lpcap", "-lm"], check=True)
    subprocess.run([str(tmp_path / "use")], check=True, env=finding(c_library))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_headers_serve_cpp(c_library: Path, tmp_path: Path) -> None:
    program = tmp_path / "use.cpp"
    program.write_text(USE)
    command = ["c++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", str(program)]
    subprocess.run([*command, *library_flags(c_library), "-o", str(tmp_path / "use")], check=True)
    subprocess.run([str(tmp_path / "use")], check=True, env=finding(c_library))


@pytest.mark.slow
def test_what_the_library_installs_and_shows(c_library: Path) -> None:
    """Two headers; of the shared library the functions that they declare, under a soname."""
    headers = sorted(path for path in (c_library / "include").rglob("*") if path.is_file())
    assert [path.name for path in headers] == ["zanon.h", "ztable.h"]
    declared = {
        name
        for path in headers
        for name in re.findall(r"ZN_API [^;]*?\b(zn_\w+)\(", path.read_text("utf-8"))
    }
    library = c_library / "lib" / "libzanon.so"
    names = subprocess.run(
        ["nm", "-D", "--defined-only", library], capture_output=True, check=True, text=True
    ).stdout
    assert {line.split()[-1] for line in names.splitlines()} == declared
    dynamic = subprocess.run(
        ["readelf", "-d", library], capture_output=True, check=True, text=True
    ).stdout
    assert re.search(r"SONAME.*\[libzanon\.so\.0\]", dynamic)


@pytest.mark.slow
@pytest.mark.parametrize("folders", [[], ["LIBDIR=/opt/z/lib64"]], ids=["usual", "libdir"])
def test_make_install_stages_a_library(
    folders: list[str], c_library: Path, tmp_path: Path, demo_pcap: Path
) -> None:
    """A program is built with the staged files alone, and runs with the staged shared library."""
    command = ["make", "-s", "install", f"BUILD={c_library}", "OPTIMIZE=-O0", "PREFIX=/opt/z"]
    without = ("LD_PRELOAD", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    environment = {k: v for k, v in os.environ.items() if k not in without}
    staged = [f"DESTDIR={tmp_path}", *folders]
    subprocess.run([*command, *staged], cwd=ROOT, env=environment, check=True)
    libraries = tmp_path / "opt" / "z" / ("lib64" if folders else "lib")
    found = {path.relative_to(tmp_path / "opt/z").as_posix() for path in tmp_path.rglob("*.*")}
    lib = libraries.name
    names = ("libzanon.a", "libzanon.so", "libzanon.so.0", "pkgconfig/zanon.pc")
    assert found == {
        *(f"{lib}/{name}" for name in names),
        *("include/zanon/zanon.h", "include/zanon/ztable.h"),
    }
    assert len(use_installed_library(tmp_path, libraries.relative_to(tmp_path), demo_pcap)) > 100


def test_the_headers_say_the_version() -> None:
    text = (ROOT / "csrc" / "include" / "zanon" / "ztable.h").read_text("utf-8")
    macros = dict(re.findall(r"#define ZN_VERSION(\w*) (.*)", text))
    version = runpy.run_path(str(ROOT / "zanon_net" / "_version.py"))["__version__"]
    assert macros[""] == f'"{version}"'
    assert [macros["_MAJOR"], macros["_MINOR"], macros["_PATCH"]] == version.split(".")[:3]


@pytest.mark.slow
def test_the_monitor_in_c(c_library: Path, tmp_path: Path, demo_pcap: Path) -> None:
    """It prints what the command prints, line by line, but for the pseudonyms."""
    source = ROOT / "examples" / "c" / "monitor.c"
    assert len(source.read_text("utf-8").splitlines()) <= 60
    monitor = str(tmp_path / "monitor")
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Werror"]
    flags, env = library_flags(c_library, "libpcap"), finding(c_library)
    subprocess.run(
        ["cc", *warnings, str(source), *flags, "-o", monitor],
        check=True,
    )
    done = subprocess.run([monitor, "5", str(demo_pcap)], capture_output=True, check=True, env=env)
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
        done = subprocess.run([monitor, z, str(demo_pcap)], env=env, capture_output=True)
        assert done.returncode == 2
    small, large = pcap_record("<", 5, 0, b""), pcap_record("<", 5, 0, bytes(8 << 20))
    header = pcap_header(link_type=231)  # D-Bus, whose frames libpcap lets be longer than others
    header = header[:16] + (16 << 20).to_bytes(4, "little") + header[20:]
    (tmp_path / "long.pcap").write_bytes(header + 63 * small + large)
    subprocess.run([monitor, "5", str(tmp_path / "long.pcap")], env=env, check=True)
    (tmp_path / "cut.pcap").write_bytes(demo_pcap.read_bytes()[:-1])
    for path in ("no-such-thing", "cut.pcap"):
        failed = subprocess.run([monitor, "5", path], env=env, capture_output=True, cwd=tmp_path)
        assert (failed.returncode, failed.stderr.count(b"\n")) == (1, 1)
    with Path("/dev/full").open("wb") as full:
        failed = subprocess.run(
            [monitor, "5", str(demo_pcap)], env=env, stdout=full, stderr=subprocess.PIPE
        )
    assert (failed.returncode, failed.stderr) == (1, b"standard output: No space left on device\n")


@pytest.mark.slow
def test_the_flow_logs_in_c(
    c_library: Path, tmp_path: Path, demo_pcap: Path, key_file: str
) -> None:
    """It writes the files that the command writes with --split, under names of its own."""
    source = ROOT / "examples" / "c" / "flows.c"
    program = str(tmp_path / "flows")
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Werror"]
    subprocess.run(
        ["cc", *warnings, str(source), *library_flags(c_library, "libpcap"), "-o", program],
        check=True,
    )
    command, env = [program, "5", "1", str(demo_pcap), key_file], finding(c_library)
    ours = tmp_path / "ours"
    ours.mkdir()
    subprocess.run(command, check=True, env=env, cwd=ours)
    config = Config().replace(
        **{"z": 5, "internal": "10.0.0.0/8", "key_file": key_file, "split": "1m"},
        format=["csv", "observations"],
    )
    run(demo_pcap, config, out=tmp_path / "out")
    for begin, wanted in (("flows", "flows-*.csv"), ("names", "observations-*.jsonl")):
        found = [path.read_bytes() for path in sorted(ours.glob(f"{begin}-*"))]
        assert found == [path.read_bytes() for path in sorted((tmp_path / "out").glob(wanted))]
        assert len(found) > 2
    stamps = [int(path.stem.removeprefix("flows-")) for path in ours.glob("flows-*")]
    assert not any(stamp % 60 for stamp in stamps)
    again = subprocess.run(command, env=env, capture_output=True, cwd=ours)
    assert (again.returncode, again.stderr) == (1, b"flows or names: File exists\n")
    for z, minutes in (("0", "1"), (str(2**32 + 1), "1"), ("5", "0"), ("5", "x")):
        failed = subprocess.run([program, z, minutes, str(demo_pcap)], env=env, capture_output=True)
        assert failed.returncode == 2


@pytest.mark.slow
def test_the_packets_in_c(c_library: Path, tmp_path: Path, demo_pcap: Path, key_file: str) -> None:
    """It writes the file that the command writes, taken packet by packet."""
    source = ROOT / "examples" / "c" / "packets.c"
    program, env = str(tmp_path / "packets"), finding(c_library)
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Werror"]
    subprocess.run(
        ["cc", *warnings, str(source), *library_flags(c_library, "libpcap"), "-o", program],
        check=True,
    )
    ours, theirs = tmp_path / "ours.pcap", tmp_path / "theirs.pcap"
    subprocess.run([program, "2", str(demo_pcap), str(ours), key_file], check=True, env=env)
    report = packets(demo_pcap, theirs, z=2, internal="10.0.0.0/8", key_file=key_file)
    assert report.counters["packets_passed"] > 5_000
    assert ours.read_bytes() == theirs.read_bytes()
    failed = subprocess.run([program, "0", "a", "b"], env=env, capture_output=True)
    assert failed.returncode == 2


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
    command = ["cc", "-fsyntax-only", "-U__SIZEOF_INT128__", f"-I{ROOT}/csrc/include"]
    command += ["-x", "c", f"{ROOT}/csrc/util/base.h"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "zanon_net needs a 64-bit processor" in done.stderr
