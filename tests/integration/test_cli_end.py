# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The command: how it ends."""

import os
import re
import select
import signal
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from support.capture_bytes import pcap_header
from support.cli import COMMAND, DEMO, ENVIRONMENT, Captured, manifest_of, run_main
from support.waiting import PATIENCE_S, is_empty, running, wait_until

import zanon_net
from zanon_net.cli import run_command


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_internal_error_says_nothing_of_the_data(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_more: object) -> None:
        raise RuntimeError("secret.example")

    monkeypatch.setattr(run_command, "run", broken)
    assert run_main("run", DEMO) == 1
    said = capsys.readouterr().err
    assert re.fullmatch(
        r"zanon-net: internal error: RuntimeError at zanon_net/cli/run_command\.py:\d+"
        r" \(run_command\); please report it\n",
        said,
    )
    monkeypatch.setenv("ZANON_DEBUG", "1")
    assert run_main("run", DEMO) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("named", ["x.pcap", ".", "-"])
def test_a_capture_that_takes_the_output_is_no_source(named: str) -> None:
    """Each line would be read as a part of the capture, without an end."""
    whole = DEMO.read_bytes()
    Path("x.pcap").write_bytes(whole)
    with Path("x.pcap").open("ab") as output, Path("x.pcap").open("rb") as capture:
        done = subprocess.run(
            [*COMMAND, "run", named, "--out", "-", "--format", "jsonl"],
            stdin=capture,
            stdout=output,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            check=False,
        )
    assert done.returncode == 2
    name = b"standard input" if named == "-" else b"x.pcap"
    assert done.stderr == (
        b"zanon-net: %s is also where standard output goes; choose another file\n" % name
    )
    assert Path("x.pcap").read_bytes() == whole


def test_output_beside_the_captures_of_its_folder() -> None:
    Path("x.pcap").write_bytes(DEMO.read_bytes())
    for _ in range(2):  # the second goes behind what is no capture
        with Path("x.jsonl").open("ab") as output:
            command = [*COMMAND, "run", ".", "--out", "-", "--format", "jsonl"]
            subprocess.run(command, stdout=output, env=ENVIRONMENT, check=True)
    lines = Path("x.jsonl").read_bytes().splitlines()
    assert lines
    assert len(lines) % 2 == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["config"],
        ["inspect", DEMO],
        ["inspect", DEMO, "--json"],
        ["model", "--users", "10"],
        ["run", DEMO, "--out", "out", "--json"],
        ["run", DEMO, "--out", "-", "--format", "jsonl"],
        ["--version"],
    ],
)
def test_data_for_a_closed_standard_output_is_an_error(arguments: list[str]) -> None:
    """As for a full disk: who asked for it does not have it."""
    words = [*COMMAND, *map(str, arguments)]
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *words]
    done = subprocess.run(shell, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "zanon-net: standard output is closed"


@pytest.mark.parametrize("asked", [["--json"], []])
@pytest.mark.parametrize(
    "words",
    [
        ["run", str(DEMO), "--out", "-", "--format", "jsonl"],
        ["filter", "rows.csv", "--z", "1", "--time-unit", "s"],
    ],
)
def test_a_manifest_for_a_closed_standard_error_is_an_error(
    words: list[str], asked: list[str]
) -> None:
    """A summary is for people; a manifest is data like any other."""
    Path("rows.csv").write_text("time,user,attribute\n1,ann,tea\n")
    shell = ["sh", "-c", 'exec "$@" 2>&-', "sh", *COMMAND, *words, *asked]
    done = subprocess.run(shell, stdout=subprocess.PIPE, env=ENVIRONMENT, check=False)
    assert done.returncode == (1 if asked else 0)
    assert done.stdout


def test_what_a_locale_cannot_show_is_no_error() -> None:
    """The name of a file, and the plus-minus sign of the model."""
    Path("captures").mkdir()
    for name in ("caf\u00e9.pcap", os.fsdecode(b"\xff.pcap"), "\x1b[31m\nred.pcap"):
        Path("captures", name).symlink_to(DEMO)
    strict = {**ENVIRONMENT, "PYTHONIOENCODING": "ascii:strict"}
    for arguments in (["inspect", "captures"], ["model", "--users", "10"]):
        words = [*COMMAND, *arguments]
        done = subprocess.run(words, capture_output=True, text=True, env=strict, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert "\x1b" not in done.stdout
    words = [*COMMAND, "run", str(DEMO), "--out", "\x1b[31mlogs"]
    done = subprocess.run(words, capture_output=True, text=True, env=strict, check=False)
    assert done.returncode == 0
    assert "\x1b" not in done.stderr


def test_a_run_needs_no_standard_output() -> None:
    words = [*COMMAND, "run", str(DEMO), "--out", "out", "-q"]
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *words]
    done = subprocess.run(shell, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path("out/manifest.json").exists()


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError(), "out of memory"),
        (zanon_net.CapacityError("no memory for a table"), "no memory for a table"),
        (OSError(5, "Input/output error", "x.pcap"), "x.pcap: Input/output error"),
        (OSError("odd"), "input or output error"),
        (KeyboardInterrupt(), "interrupted; only files that are whole are left"),
    ],
)
def test_errors_of_the_system(
    error: BaseException, line: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_more: object) -> None:
        raise error

    monkeypatch.setattr(run_command, "run", broken)
    assert run_main("run", DEMO) == 1
    assert capsys.readouterr().err == f"zanon-net: {line}\n"


def test_a_reader_that_goes_away() -> None:
    command = [*COMMAND, "run", str(DEMO), "--out", "-", "--format", "jsonl", "-q"]
    with running(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.wait(PATIENCE_S)
        said = process.stderr.read()
    assert (process.returncode, said) == (1, b"")


def start_run_on_a_pipe(*arguments: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    return running(
        [*COMMAND, "run", "-", "--out", "out", *arguments],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_reading_and_keeps_what_was_read(number: signal.Signals) -> None:
    with start_run_on_a_pipe("-q") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(DEMO.read_bytes())
        process.stdin.flush()
        pipe, status = process.stdin.fileno(), Path(f"/proc/{process.pid}/status")
        # Once it has emptied the pipe and sleeps, it waits for more.
        wait_until(lambda: is_empty(pipe) and "State:\tS" in status.read_text())
        process.send_signal(number)
        process.wait(PATIENCE_S)
        said = process.stderr.read().decode()
    assert process.returncode == 1
    assert said == "zanon-net: interrupted: what had been read is complete\n"
    manifest = manifest_of("out")
    assert (manifest["complete"], manifest["interrupted"]) == (False, True)
    sources = manifest["sources"]
    assert isinstance(sources, list)
    assert sources[0]["frames"] == 15629
    assert sources[0]["name"] == "stdin"
    assert not list(Path("out").rglob("*.partial"))


def test_a_signal_before_anything_was_read() -> None:
    with start_run_on_a_pipe() as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(pcap_header()[:4])
        process.stdin.flush()
        status = Path(f"/proc/{process.pid}/status")
        # SigCgt has SIGTERM's bit once the handler is in place.
        wait_until(
            lambda: bool(int(status.read_text().split("SigCgt:")[1].split()[0], 16) >> 14 & 1)
        )
        process.terminate()
        process.wait(PATIENCE_S)
        said = process.stderr.read().decode()
    assert (process.returncode, said) == (
        1,
        "zanon-net: interrupted; only files that are whole are left\n",
    )
    assert not Path("out").exists()


def test_no_core_dumps() -> None:
    with start_run_on_a_pipe() as process:
        limits = Path(f"/proc/{process.pid}/limits")
        wait_until(lambda: re.search(r"core file size +0 ", limits.read_text()) is not None)
        process.communicate(DEMO.read_bytes(), timeout=PATIENCE_S)
    assert process.returncode == 0


@pytest.mark.parametrize("status", [(), ("--status", "1ns")])
def test_a_run_goes_on_when_nobody_hears_it(status: tuple[str, ...]) -> None:
    """Messages are for people, and who reads them may go: the logs are what counts."""
    reading, writing = os.pipe()
    os.close(reading)
    arguments = ["run", str(DEMO), "--z", "2", *status]
    with Path("/dev/full").open("wb") as full:
        for out, stderr in (("pipe", writing), ("full", full)):
            command = [*COMMAND, *arguments, "--out", out]
            assert (
                subprocess.run(command, env=ENVIRONMENT, stderr=stderr, check=False).returncode == 0
            )
            assert manifest_of(out)["complete"]
    os.close(writing)


@pytest.mark.parametrize("status", [(), ("--status", "1ns")])
def test_a_run_goes_on_when_its_terminal_goes(status: tuple[str, ...]) -> None:
    master, slave = os.openpty()
    reading, writing = os.pipe()
    command = [*COMMAND, "run", "-", "--out", "out", *status]
    with running(command, env=ENVIRONMENT, stdin=reading, stderr=slave) as process:
        os.close(slave)
        os.close(reading)
        content = DEMO.read_bytes()
        os.write(writing, content[:60000])
        assert select.select([master], [], [], 120)[0]
        assert os.read(master, 65536)
        os.close(master)
        with os.fdopen(writing, "wb") as rest:
            rest.write(content[60000:])
        process.wait(PATIENCE_S)
    assert process.returncode == 0
    assert manifest_of("out")["complete"]


SIGNALLED = """
import atexit, os, runpy, signal, sys
def interrupt(*_): os.kill(os.getpid(), signal.SIGINT)
class Interrupting:
    def find_spec(self, name, *_):
        if name == where: interrupt()
import zanon_net
where = sys.argv.pop(1)
sys.meta_path.insert(0, Interrupting())
if where == "exit": atexit.register(interrupt)
runpy.run_module("zanon_net", run_name="__main__")
"""


@pytest.mark.parametrize("where", ["zanon_net.cli.entry", "exit"])
def test_a_signal_where_nobody_handles_it_shows_no_traceback(where: str) -> None:
    """While the command is loaded, and when it has ended."""
    command = [COMMAND[0], "-c", SIGNALLED, where, "config"]
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


LOADED = "import zanon_net.__main__, sys; print(*(m for m in sys.modules if 'zanon' in m))"
NAMED = """
import importlib, pkgutil, types, zanon_net
for module in pkgutil.walk_packages(zanon_net.__path__, "zanon_net."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:  # Flink has an environment of its own
        assert error.name.split(".")[0] == "pyflink" and module.name.startswith("zanon_net.flink.")
public = {name: getattr(zanon_net, name) for name in zanon_net.__all__}
assert [n for n in public if isinstance(public[n], types.ModuleType)] == ["parse"]
from zanon_net import *
run, parse.tls_client_hello, zanon_net.errors.ZanonError
assert set(zanon_net.__all__) <= set(dir(zanon_net))
assert all(hasattr(zanon_net, name) for name in zanon_net.__all__)
assert not hasattr(zanon_net, "nothing")
"""


def test_nothing_is_loaded_before_a_signal_is_heard() -> None:
    """The package itself took most of the time, with Python's own handler and its traceback."""
    done = subprocess.run([COMMAND[0], "-c", LOADED], capture_output=True, check=True)
    ours = {name for name in done.stdout.decode().split() if not name.startswith("__editable__")}
    assert ours == {"zanon_net", "zanon_net._version", "zanon_net.__main__"}


def test_all_that_the_package_names_is_there() -> None:
    """Also when every submodule is imported, of which only `parse` bears one of these names."""
    subprocess.run([COMMAND[0], "-c", NAMED], check=True)
