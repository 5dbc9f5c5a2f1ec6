# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Interfaces: what is refused, and what becomes of privileges."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import rich
from support.capture_bytes import pcap_header, pcap_record
from support.live import (
    COMMAND,
    ENVIRONMENT,
    PATIENCE_S,
    USUAL,
    data_of,
    datagrams,
    let_anybody_pass,
    only,
)
from support.netns import Namespace
from support.packets import visit

import zanon_net

# ---- what is refused ----------------------------------------------------------------------------


def refused(
    net: Namespace, *arguments: str, before: tuple[str, ...] = (), **more: Any
) -> tuple[int, str]:
    """Exit code and words of a run that does not come to anything."""
    with net.inside():
        done = subprocess.run(
            [*before, *COMMAND, *arguments],
            env=ENVIRONMENT,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
            **more,
        )
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["a"], 2, "say with --internal which addresses are users"),
        (["a", "missing.pcap", "--internal", "any"], 2, "cannot be read with captures"),
        (["a", "a", "--internal", "any"], 2, "give each interface once"),
        (["a", "any", "--internal", "any"], 2, "any is every interface: give it alone"),
        (["any", "--internal", "any", "--on-lost", "wait"], 2, "--on-lost: any never goes away"),
        (["a", "--internal", "any", "--filter", "bogus words"], 2, "the filter is not valid"),
        (["a", "--internal", "any", "--ring", "1K"], 2, "--ring: must be from 1M"),
        (["a", "--internal", "any", "--snaplen", "10"], 2, "--snaplen: must be from 64"),
        (["a", "--internal", "any", "--drop-to", "nobody-at-all"], 2, "there is no user"),
        (["a", "--internal", "any", "--drop-to", "root"], 2, "is root"),
        (["e", "--internal", "any"], 1, "interface e is down; bring it up: ip link set dev e up"),
    ],
)
def test_refused(
    net: Namespace, tmp_path: Path, arguments: list[str], code: int, problem: str
) -> None:
    net.ip("link add name e type veth peer name f")
    got, said = refused(net, *arguments, cwd=tmp_path)
    assert problem in said
    assert got == code
    assert not list(tmp_path.iterdir())


def test_without_the_capability(net: Namespace, tmp_path: Path) -> None:
    before = ("setpriv", "--bounding-set", "-net_raw")
    code, said = refused(net, "a", "--internal", "any", before=before, cwd=tmp_path)
    assert code == 1
    assert "CAP_NET_RAW is missing" in said
    assert "sudo zanon-net run" in said
    assert f"sudo setcap cap_net_raw=ep {Path(sys.executable).resolve()}" in said
    assert not list(tmp_path.iterdir())


# ---- other names of an interface -------------------------------------------------------------


LONG_NAME = "enx" + "0123456789abcdef" * 6


@pytest.mark.parametrize("other", ["enp9s0f1", LONG_NAME])
def test_another_name_of_an_interface(net: Namespace, live: Any, other: str) -> None:
    """The interface is read, also by a name that is longer than those of interfaces may be."""
    net.ip(f"link property add dev a altname {other}")
    run = live(other, "--status", "200ms")
    net.send("b", datagrams(5))
    run.wait_for_packets(5)
    manifest = run.end()
    assert [source["name"] for source in manifest["sources"]] == ["a"]
    assert manifest["counters"]["read"]["frames"] == 5


def test_another_name_is_the_same_interface(net: Namespace, tmp_path: Path) -> None:
    net.ip("link property add dev a altname enp9s0f1")
    code, said = refused(net, "a", "enp9s0f1", "--internal", "any", cwd=tmp_path)
    assert (code, "give each interface once" in said) == (2, True)
    code, said = refused(net, "enp9s0f2", "--internal", "any", cwd=tmp_path)
    assert (code, "no network interface" in said) == (1, True)
    (tmp_path / "enp9s0f1").write_bytes(b"")  # a file goes before an interface
    code, said = refused(net, "enp9s0f1", "--internal", "any", cwd=tmp_path)
    assert (code, "enp9s0f1 is empty" in said) == (1, True)


# ---- privileges ---------------------------------------------------------------------------------


def fields(path: Path) -> dict[str, str]:
    """The lines of a file in /proc/PID, by their first word."""
    pairs = (line.partition(":") for line in path.read_text().splitlines())
    return {name: " ".join(value.split()) for name, _colon, value in pairs}


def test_privileges_are_dropped(
    net: Namespace, live: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is made for the user; what only root may read is read before, and not missed."""
    sealed, folder = tmp_path / "sealed", tmp_path / "logs"
    for package in (zanon_net, rich):
        assert package.__file__ is not None
        source = Path(package.__file__).parent
        shutil.copytree(source, sealed / source.name)
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", str(sealed))
    folder.mkdir()
    let_anybody_pass(folder)
    sealed.chmod(0o700)
    options = ("--status", "100ms", "--workers", "3")
    run = live("a", "--drop-to", "nobody", "--out", folder / "run", *options)
    run.out = folder / "run"
    process = Path(f"/proc/{run.process.pid}")
    run.wait_for("status:")
    threads = [fields(thread / "status") for thread in (process / "task").iterdir()]
    assert len(threads) >= 3
    for status in threads:  # each has rights of its own
        assert status["Uid"].split() == ["65534"] * 4
        assert (int(status["CapEff"], 16), status["NoNewPrivs"]) == (0, "1")
    status = fields(process / "status")
    assert status["Uid"].split() == ["65534"] * 4
    assert status["Gid"].split() == ["65534"] * 4
    assert "0" not in status["Groups"].split()
    assert {int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "1"
    if "ZANON_SANITIZE" not in os.environ:  # AddressSanitizer locks nothing
        assert int(status["VmLck"].split()[0]) > 0  # the keys
    limits = (process / "limits").read_text()
    assert re.search(r"Max core file size +0 +0 ", limits)
    assert (
        process / "environ"
    ).stat().st_uid == 0  # what /proc shows of a process that must not be dumped
    net.send("b", datagrams(100))
    run.wait_for("packets 100 ")
    manifest = run.end()
    assert only(manifest)["frames"] == 100
    assert manifest["capture_drops"] == {"ring": 0, "interface": 0, "us": 0}
    assert {path.stat().st_uid for path in folder.rglob("*")} == {65534}
    assert "lost packets" in run.said


def test_a_folder_that_the_user_may_not_write_to(net: Namespace, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    let_anybody_pass(folder)
    arguments = ["a", "--internal", "any", "--drop-to", "nobody", "--out", str(folder)]
    code, said = refused(net, *arguments)
    assert code == 1
    assert "choose a folder you may write to" in said
    assert list(folder.iterdir()) == []
    assert folder.stat().st_uid == 0


def test_captures_are_opened_before_the_user_changes(net: Namespace, tmp_path: Path) -> None:
    """Several files, of which only root may read any."""
    folder, out = tmp_path / "captures", tmp_path / "logs"
    folder.mkdir()
    for i in range(3):
        frames = data_of(visit(f"10.7.0.{i + 1}", b"a.example", 0))
        records = (pcap_record("<", 1_700_000_000 + i, n, data) for n, data in enumerate(frames))
        (folder / f"{i}.pcap").write_bytes(pcap_header() + b"".join(records))
    let_anybody_pass(tmp_path)
    folder.chmod(0o700)
    command = [*COMMAND, folder, *USUAL, "--drop-to", "nobody", "--out", out]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((out / "manifest.json").read_text())
    assert [source["warning"] for source in manifest["sources"]] == [None] * 3
    assert manifest["counters"]["flow"]["flows_tcp"] == 3


@pytest.mark.parametrize(
    ("name", "code", "problem"),
    [
        ("counts.json", 2, b"counts.json exists"),
        ("missing/counts.json", 1, b"make the folder it is to lie in first"),
    ],
)
def test_counts_that_cannot_be_are_told_before_the_user_changes(
    demo_pcap: Path, tmp_path: Path, name: str, code: int, problem: bytes
) -> None:
    """Who is no longer root cannot take back the folder that root made for the logs."""
    counts = tmp_path / "counts.json"
    counts.touch()
    command = [*COMMAND, demo_pcap, *USUAL, "--popularity", tmp_path / name]
    command += ["--drop-to", "nobody", "--out", tmp_path / "out"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False)
    assert (done.returncode, problem in done.stderr) == (code, True), done.stderr
    assert list(tmp_path.iterdir()) == [counts]


NOTHING_TO_LOAD = """
import sys
from zanon_net import cli
from zanon_net.pipeline import privileges
def go_on_as(user, out, stack, **keeps):
    sys.meta_path.clear()
    return out
privileges.find_user, privileges.go_on_as = str, go_on_as
sys.exit(cli.main())
"""


@pytest.mark.parametrize(
    "options",
    [
        ["--format", "tstat", "--compress", "zstd", "--status", "1ms"],
        ["--format", "parquet", "--format", "csv", "--compress", "gzip"],
        ["--format", "parquet", "--split", "10m"],
        ["--format", "observations", "--target-p", "0.5", "--window", "1s"],
    ],
)
def test_libraries_are_loaded_before_the_user_changes(
    demo_pcap: Path, tmp_path: Path, options: list[str]
) -> None:
    """Who may not read root's folders cannot load a module from there."""
    command = [sys.executable, "-c", NOTHING_TO_LOAD, "run", demo_pcap, *USUAL, *options]
    command += ["--drop-to", "nobody", "--out", tmp_path / "out"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False)
    assert (done.returncode, b"released" in done.stderr) == (0, True), done.stderr
