# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Modules that each command has imported at its end, compared with the modules that it needs."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import DEMO, ENVIRONMENT, run_main

from zanon_net.cli.commands import COMMANDS
from zanon_net.keys import new_key, new_reader_key

# Modules that take long to import, each of which belongs to few commands.
SLOW = {
    *("asyncio", "confluent_kafka", "ctypes", "duckdb", "lz4", "matplotlib", "nats", "numpy"),
    "polars",
    *("prometheus_client", "pyarrow", "pyflink", "rich", "scipy", "ssl", "textual", "tomllib"),
    *("zstandard",),
}
# Modules that SciPy, pyarrow and others import on their own.
OF_LIBRARIES = {"ctypes", "ssl"}
TABLES = {"numpy", "pyarrow"}
MODEL = {"numpy", "scipy"}
AUDIT = {"duckdb", "numpy", "scipy", "zstandard"}
PROGRAM = """
import sys
path = sys.argv.pop(1)
from zanon_net.__main__ import start
try:
    start()
finally:
    with open(path, "w") as file:
        print(*sys.modules, file=file)
"""
DATA = "time,who,age\n1,a,30\n2,b,31\n3,c,32\n"
CLASSES = ("--quasi", "age", "--round", "age=10", "--clip", "age=0..99", "--k", "2")
STREAM = ("--users", "50", "--attributes", "20", "--rate", "0.3")
INTERNAL = ("--internal", "10.0.0.0/8")
# For each command: a line of arguments, and the slow modules that it needs.
USES: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "run": (("run", "demo.pcap", *INTERNAL, "--out", "logs"), set()),
    "packets": (("packets", "demo.pcap", "shared.pcapng", *INTERNAL), set()),
    "filter": (
        (
            "filter",
            "data.csv",
            "--user",
            "who",
            "--attribute",
            "age",
            "--z",
            "2",
            "--time-unit",
            "s",
        ),
        set(),
    ),
    "publish": (("publish", "data.csv", "--user", "who", "--time-unit", "s", *CLASSES), {"numpy"}),
    "table check": (("table", "check", "data.csv", "--quasi", "age"), TABLES),
    "table risk": (
        ("table", "risk", "data.csv", "--original", "data.csv", "--quasi", "age"),
        TABLES,
    ),
    "table hierarchy": (("table", "hierarchy", "data.csv", "--column", "age"), TABLES),
    "table anonymize": (("table", "anonymize", "data.csv", *CLASSES), TABLES),
    "key new": (("key", "new", "new.key"), set()),
    "key check": (("key", "check", "old.key"), set()),
    "config": (("config",), set()),
    "inspect": (("inspect", "demo.pcap"), set()),
    "model": (("model", *STREAM, "--z", "5"), MODEL),
    "tune": (("tune", *STREAM), MODEL),
    "bench": (("bench", "--traffic", "isp", "--bytes", "1M", "--repeat", "1"), {"numpy"}),
}
# Uses of `run` that need more.
FURTHER = {
    "config": (("--config", "zanon.toml"), {"tomllib"}),
    "zstd": (("--compress", "zstd"), {"zstandard"}),
    "parquet": (("--format", "parquet"), TABLES),
    "metrics": (("--metrics-file", "run.prom"), {"prometheus_client"}),
    "adaptive": (("--target-p", "0.9"), {"numpy", "scipy"}),
}


def start(name: str, arguments: tuple[str, ...]) -> "subprocess.Popen[bytes]":
    """Starts a command, which writes the names of its modules into the file NAME.modules."""
    program = [sys.executable, "-c", PROGRAM, f"{name}.modules", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(program, env=ENVIRONMENT, stdout=pipe, stderr=pipe)


def modules_of(name: str, process: "subprocess.Popen[bytes]", code: int = 0) -> set[str]:
    """Waits for a command, and returns the names of its modules."""
    out, err = process.communicate()
    assert process.returncode == code, (out, err)
    return set(Path(f"{name}.modules").read_text().split())


def check(command: str, found: set[str], needed: set[str]) -> None:
    """Checks which slow modules and which modules of commands were imported."""
    slow = found & SLOW
    assert slow == needed or (needed and slow - OF_LIBRARIES == needed)
    of_commands = {place.partition(":")[0] for place, _help in COMMANDS.values() if place}
    own = COMMANDS[command][0].partition(":")[0]
    assert {name for name in of_commands if f"zanon_net.cli.{name}" in found} == {own}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(DEMO, "demo.pcap")
    Path("data.csv").write_text(DATA)
    Path("zanon.toml").write_text("[anonymity]\nz = 10\n")
    new_key(Path("old.key"))


@pytest.mark.parametrize("command", USES)
def test_a_command_imports_what_it_uses(command: str) -> None:
    arguments, needed = USES[command]
    check(command, modules_of("used", start("used", arguments)), needed)


@pytest.mark.parametrize("use", FURTHER)
def test_a_run_imports_what_its_options_use(use: str) -> None:
    arguments, needed = FURTHER[use]
    arguments = ("run", "demo.pcap", *INTERNAL, "--out", "logs", *arguments)
    check("run", modules_of("used", start("used", arguments)), needed)


def test_a_counter_its_probe_and_a_reader_import_what_they_use() -> None:
    Path("sealed").mkdir()
    new_reader_key(Path("reader.key"))
    counting = ("--z", "5", "--mode", "sealed", "--sealed-out", "released")
    until = ("--expect-probes", "1", "--until-done")
    counter = start("counter", ("count", "file:sealed", *counting, *until))
    at = ("--probe", "north", "--count-at", "file:sealed", "--count-mode", "sealed")
    keys = ("--key-file", "old.key", "--reader-key", "reader.key.pub")
    run = ("run", "-q", "demo.pcap", *INTERNAL, "--z", "5", *at, *keys)
    probe = start("probe", (*run, "--format", "jsonl", "--out", "rows"))
    check("run", modules_of("probe", probe), set())
    check("count", modules_of("counter", counter), {"numpy"})
    unseal = ("unseal", "--reader-key", "reader.key", "released", "--out", "rows.jsonl")
    check("unseal", modules_of("unseal", start("unseal", unseal)), set())


@pytest.mark.parametrize("more", [(), ("--html", "report.html")])
def test_a_report_imports_what_it_uses(more: tuple[str, ...]) -> None:
    run = ("run", "-q", "demo.pcap", *INTERNAL, "--out", "logs")
    assert run_main(*run) == 0
    check("report", modules_of("report", start("report", ("report", "logs", *more))), TABLES)


def test_an_audit_imports_what_it_uses() -> None:
    run = ("run", "-q", "demo.pcap", *INTERNAL, "--format", "csv", "--out", "logs")
    assert start("run", run).wait() == 0
    audit = start("audit", ("audit", "logs", "--for", "internal"))
    check("audit", modules_of("audit", audit), AUDIT)


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("table", "--help"), ()])
def test_the_list_of_commands_imports_none(arguments: tuple[str, ...]) -> None:
    found = modules_of("help", start("help", arguments), 0 if arguments else 2)
    assert found & SLOW == set()
    assert not {name for name in found if name.endswith("_command")}
    assert "zanon_net.config.parse" not in found


def test_the_package_imports_nothing_until_it_is_used() -> None:
    program = "import sys, zanon_net; before = set(sys.modules); zanon_net.Config(z=5);"
    program += "print(*before); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, stdout=subprocess.PIPE)
    before, after = (set(line.split()) for line in done.stdout.decode().splitlines())
    ours = {name for name in before if name.startswith("zanon_net")}
    assert ours == {"zanon_net", "zanon_net._version"}
    assert after & SLOW == set()
    assert "zanon_net._core" not in after
