# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Wrong input of every kind: one line on stderr, the right exit code, no file of a final name."""

import gzip
import lzma
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest
from support.capture_bytes import pcap_header, pcap_record
from support.cli import COMMAND, ENVIRONMENT, limited
from support.paths import ROOT

from zanon_net.cli import main

DEMO = ROOT / "pcaps" / "demo.pcap"
KEY_LINE = b"rK3bSQ7z7VlyEJqYXKgP8n7AAjSes7tPeoJV9gyZ0v4=\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with what the cases below are about."""
    monkeypatch.chdir(tmp_path)
    whole = DEMO.read_bytes()
    Path("good.pcap").write_bytes(whole[:20_000])
    Path("empty.pcap").touch()
    Path("text.pcap").write_text("This is a text, and no capture at all.\n")
    Path("stub.pcap").write_bytes(pcap_header()[:10])
    Path("cut-first.pcap").write_bytes(pcap_header() + pcap_record("<", 1, 0, bytes(60))[:40])
    huge = struct.pack("<IIII", 1, 0, 0x7FFFFFFF, 0x7FFFFFFF)
    Path("absurd.pcap").write_bytes(pcap_header() + huge + bytes(100))
    Path("gzip.pcap.gz").write_bytes(b"\x1f\x8b\x08\0" + bytes(30))
    Path("text.gz").write_bytes(gzip.compress(Path("text.pcap").read_bytes()))
    Path("cut.pcap.xz").write_bytes(lzma.compress(whole[:20_000])[:40])
    Path("captures").mkdir()
    Path("captures/text").write_text("no capture")
    Path("full").mkdir()
    Path("full/precious").write_text("mine")
    Path("file").touch()
    for name, content, mode in (
        ("good.key", KEY_LINE, 0o600),
        ("short.key", KEY_LINE[:20], 0o600),
        ("long.key", KEY_LINE * 2, 0o600),
        ("readable.key", KEY_LINE, 0o640),
    ):
        Path(name).write_bytes(content)
        Path(name).chmod(mode)
    Path("bad-nets").write_text("10.0.0.0/8\n10.0.0.0/40\n")
    Path("bad-names").write_text("fine.example\nnot a name\n")
    Path("key.toml").write_text("[anonymity]\nzz = 5\n")
    Path("section.toml").write_text("[anonimity]\nz = 5\n")
    Path("user.toml").write_text('[live]\ndrop_to = "nobody-there"\n')
    Path("counts.toml").write_text('[output]\npopularity = "out/p.json"\n')
    Path("window.toml").write_text("[anonymity]\nwindow = 3600\n")
    Path("never.toml").write_text('[anonymity]\nnever = "missing"\n')
    Path("broken.toml").write_text("[anonymity\n")
    return tmp_path


def tree(folder: Path) -> dict[str, bytes | None]:
    found = sorted(folder.rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}


OPERATIONAL = {
    "empty.pcap": "empty.pcap is empty",
    "text.pcap": "text.pcap is not a capture",
    "stub.pcap": "stub.pcap is too short",
    "cut-first.pcap": "not one packet can be read",
    "absurd.pcap": "not one packet can be read",
    "gzip.pcap.gz": "gzip.pcap.gz: the gzip data is damaged",
    "cut.pcap.xz": "cut.pcap.xz: the xz data ends early",
    "text.gz": "text.gz is not a capture",
    "missing.pcap": "missing.pcap cannot be opened: No such file",
    "eth7 --internal any": "eth7 cannot be opened: No such file or directory, and no network int",
    "lo0 --internal any": "and no network interface; did you mean 'lo'?",
    "captures": "captures is a folder without a capture in it",
    "captures/": "captures is a folder without a capture in it",
    "good.pcap captures": "captures is a folder without a capture in it",
    "no/such/folder/x.pcap": "No such file",
    "good.pcap --out no/such": "cannot make no/such: No such file",
    "good.pcap --out good.pcap/x": "cannot make good.pcap/x: Not a directory",
    "good.pcap missing.pcap": "missing.pcap cannot be opened",
    "good.pcap --key-file missing.key": "missing.key cannot be opened",
    "good.pcap --never missing": "--never: cannot read missing: No such file",
    "good.pcap --config missing.toml": "cannot read missing.toml: No such file",
    "good.pcap --config captures": "cannot read captures: Is a directory",
    "good.pcap --config never.toml": "never.toml: [anonymity] never: cannot read missing: No such",
    "/proc/self/mem": "/proc/self/mem cannot be read: Input/output error",
}

USAGE = {
    "": "Missing argument",
    "good.pcap --z": "Option '--z' requires an argument (see 'zanon-net run --help')",
    "good.pcap --z-max 50": "--z-max: is for a z that follows the stream; give target_p (--target",
    "good.pcap --out full": "full is not empty, and nothing is ever overwritten",
    "good.pcap --out file": "file exists and is not a folder",
    "good.pcap --key-file short.key": "does not hold exactly one line of 32 bytes",
    "good.pcap --key-file long.key": "does not hold exactly one line of 32 bytes",
    "good.pcap --key-file readable.key": "is open to other users",
    "good.pcap --key-file captures": "is not a regular file",
    "good.pcap --z 0": "--z: must be from 1 to",
    "good.pcap --z -5": "--z: must be from 1 to",
    "good.pcap --z 99999999999": "--z: must be from 1 to",
    "good.pcap --z many": "'many' is not a valid integer",
    "good.pcap --window 0s": "--window: must be longer than zero",
    "good.pcap --window 3600": "--window: '3600' is not a duration; write it like 1h",
    "good.pcap --rotate -1h": "--rotate: '-1h' is not a duration",
    "good.pcap --internal 10.0.0.0/40": "--internal: the text after '/'",
    "good.pcap --internal 10.0.0.0": "--internal: no prefix length",
    "good.pcap --internal 10.0.0.0/8,": "--internal: entry 2: not a network",
    "good.pcap --internal bad-nets": "--internal: bad-nets line 2: the text after '/'",
    "good.pcap --internal file": "--internal: the file holds no network",
    "good.pcap --never bad-names": "--never: bad-names line 2 is not a hostname suffix",
    "good.pcap --user-prefix 40,64": "--user-prefix: must be two lengths",
    "good.pcap --columns core,p3p": "--columns: 'p3p' is not one of",
    "good.pcap --format pdf": "'pdf' is not one of",
    "good.pcap --evidence none": "'none' is not one of",
    "good.pcap --dns-votes maybe": "--dns-votes: must be own, all or no, not 'maybe'",
    "good.pcap --dns-votes yes": "--dns-votes: say own or all, not 'yes'",
    "good.pcap --dns-votes true": "--dns-votes: say own or all, not 'true'",
    "good.pcap --max-bytes 0": "--max-bytes: must be a number of bytes such as 500M or 20G",
    "good.pcap --max-bytes 5X": "--max-bytes: must be a number of bytes such as 500M or 20G",
    "good.pcap --tunnel-port vxlan": "--tunnel-port: must be a tunnel and a port such as vxlan:",
    "good.pcap --tunnel-port vxlam:4": "--tunnel-port: 'vxlam' is not a tunnel that is read; did",
    "good.pcap --tunnel-port q:4": "'q' is not a tunnel that is read; known are vxlan, geneve",
    "good.pcap --tunnel-port vxlan:0": "--tunnel-port: a port must be from 1 to 65535, not '0'",
    "good.pcap --tunnel-port tzsp:53": "--tunnel-port: port 53 carries DNS",
    "good.pcap --tunnel-port tzsp:7 --tunnel-port lisp:7": "port 7 is given to tzsp and to lisp",
    "good.pcap --fail-on-loss 1": "--fail-on-loss: is for network interfaces; leave it out",
    "good.pcap --ring 8M": "--ring: is for network interfaces; leave it out for captures",
    "good.pcap --snaplen 96": "--snaplen: is for network interfaces",
    "good.pcap --promiscuous no": "--promiscuous: is for network interfaces",
    "good.pcap --fail-on-loss 101": "--fail-on-loss: must be a number from 0 to 100",
    "good.pcap --filter port": "the filter is not valid",
    "good.pcap --widow 1h": "No such option '--widow'.",
    "good.pcap --config key.toml": "[anonymity] unknown key 'zz'; did you mean 'z'?",
    "good.pcap --config section.toml": "unknown section [anonimity]; did you mean 'anonymity'?",
    "good.pcap --config broken.toml": "broken.toml is not valid TOML",
    "good.pcap --config /dev/zero": "/dev/zero is not valid TOML: it has more than 64 MiB",
    "good.pcap --never /dev/zero": "--never: /dev/zero cannot be read: it has more than 64 MiB",
    "good.pcap --internal /dev/zero": "/dev/zero cannot be read: it has more than 64 MiB",
    "good.pcap --config window.toml": "window.toml: [anonymity] window: has no unit; write it like",
    "good.pcap --out - ": "tstat logs are three files and need a folder",
    "good.pcap --out - --format jsonl --format observations": "--out - takes one format",
    "good.pcap -q -v": "choose one of -q and -v",
    "good.pcap --drop-to nobody-there": "--drop-to: there is no user 'nobody-there'",
    "good.pcap --drop-to root": "--drop-to: 'root' is root; name a user without privileges",
    "good.pcap --config user.toml": "user.toml: [live] drop_to: there is no user 'nobody-there'",
    "good.pcap --config user.toml --drop-to root": "--drop-to: 'root' is root; name a user",
    "good.pcap --out out --config counts.toml": "counts.toml: [output] popularity: out/p.json",
    "good.pcap --out out --popularity out/p.json": "--popularity: out/p.json would lie in out",
    "- -": "standard input only once",
}


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root, who may read and write everything, is nobody inside."""
    if os.geteuid() != 0:
        yield
        return
    Path.cwd().chmod(0o755)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def assert_refused(
    arguments: list[str],
    code: int,
    problem: str,
    captured: pytest.CaptureFixture[str],
    privileges: AbstractContextManager[None] | None = None,
) -> None:
    before = tree(Path.cwd())
    with privileges or nullcontext():
        assert main(arguments) == code
    said = captured.readouterr()
    assert said.out == ""
    assert said.err.startswith("zanon-net: ")
    assert problem in said.err
    assert said.err.count("\n") == 1
    assert said.err.endswith("\n")
    assert tree(Path.cwd()) == before


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [(text, 1, problem) for text, problem in OPERATIONAL.items()]
    + [(text, 2, problem) for text, problem in USAGE.items()],
)
def test_a_run_refuses(
    arguments: str, code: int, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(["run", *arguments.split()], code, problem, capsys)


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        ("walk", 2, "No such command 'walk'"),
        ("--bogus", 2, "No such option '--bogus'"),
        ("key new good.key", 2, "good.key exists, and no key is ever overwritten"),
        ("key new no/such/key", 1, "cannot make no/such/key: No such file"),
        ("key check short.key", 2, "does not hold exactly one line of 32 bytes"),
        ("key check readable.key", 2, "is open to other users"),
        ("key check missing.key", 1, "cannot be opened: No such file"),
        ("inspect text.pcap", 1, "is not a capture"),
        ("inspect missing.pcap", 1, "No such file"),
        ("tune --popularity /proc/self/mem", 1, "/proc/self/mem: Input/output error"),
        ("inspect captures", 1, "is a folder"),
    ],
)
def test_other_commands_refuse(
    arguments: str, code: int, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(arguments.split(), code, problem, capsys)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([""], "a source without a name"),
        (["good.pcap", ""], "a source without a name"),
        (["good.pcap", "--out", ""], "--out names no folder"),
        (["missing.pcap", "--out", ""], "--out names no folder"),
        (["good.pcap", "--config", ""], "the settings' file has no name"),
        (["good.pcap", "--never", ""], "--never: must be the path of a file"),
        (["good.pcap", "--internal", ""], "--internal: names no network"),
    ],
)
def test_an_empty_name_is_no_folder(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script's variable that is not set is not the folder where it runs."""
    assert_refused(["run", *arguments], 2, problem, capsys)


def test_a_network_interface(capsys: pytest.CaptureFixture[str]) -> None:
    name = socket.if_nameindex()[0][1]
    assert_refused(["run", name], 2, f"{name} is a network interface: say with --internal", capsys)
    assert_refused(["inspect", name], 1, "which only `zanon-net run` reads", capsys)


def test_a_file_name_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "a\x1b[2J\nb"]) == 1
    said = capsys.readouterr().err
    assert (said.count("\n"), "\x1b" in said) == (1, False)


def test_an_unreadable_capture(capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").chmod(0)
    problem = "file cannot be opened: Permission denied"
    assert_refused(["run", "file"], 1, problem, capsys, unprivileged())


def test_a_folder_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    Path("captures").chmod(0o500)
    problem = "cannot make captures/out: Permission denied; choose a folder you may write to"
    assert_refused(
        ["run", "good.pcap", "--out", "captures/out"], 1, problem, capsys, unprivileged()
    )


def test_cut_in_the_middle(capsys: pytest.CaptureFixture[str]) -> None:
    """Data before the cut is processed, a warning names the cut, and that is no failure."""
    assert main(["run", "good.pcap", "--out", "out", "-q"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("zanon-net: warning: good.pcap: record ")
    assert said.err.endswith(" left; what comes before that is in the output\n")
    assert said.err.count("\n") == 1
    assert Path("out/manifest.json").exists()


@pytest.mark.parametrize("formats", [[], ["--format", "jsonl", "--format", "observations"]])
def test_no_room_for_the_output(folder: Path, formats: list[str]) -> None:
    before = tree(folder)
    done = subprocess.run(
        limited(50_000, *COMMAND, "run", str(DEMO), "--z", "1", "--out", "out", *formats),
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("zanon-net: cannot write out/")
    assert "File too large" in done.stderr
    assert done.stderr.count("\n") == 1
    assert tree(folder) == before


@pytest.mark.parametrize("unbuffered", ["", "1"])  # Python's streams
@pytest.mark.parametrize(
    "arguments",
    [
        ["run", DEMO, "--out", "-", "--format", "jsonl", "-q"],
        ["inspect", DEMO],
        ["inspect", DEMO, "--json"],
        ["config"],
        ["run", "--help"],
    ],
    ids=lambda arguments: "-".join(map(str, arguments[::2])),
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_no_room_on_standard_output(arguments: list[str | Path], unbuffered: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "zanon_net", *arguments],
            env=ENVIRONMENT | {"PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    expected = "zanon-net: cannot write standard output: No space left on device; free some space"
    assert done.stderr.startswith(expected)
    assert done.stderr.count("\n") == 1
