# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What can be read of a run while it goes on, and when it is killed: its state and its records."""

import errno
import gzip
import json
import os
import re
import subprocess
import sys
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import zstandard
from support.cli import COMMAND, DEMO, ENVIRONMENT, Captured, run_main
from support.parts import check_accounts, files_in
from support.waiting import running, wait_until

from zanon_net import Config, packets, run
from zanon_net.output.folder import FolderSink
from zanon_net.output.sink import Plan
from zanon_net.output.state_file import StateFile
from zanon_net.pipeline import upkeep

STATE = "manifest.json.partial"
KEYS = ["time", "seconds", "packets", "packets_per_s", "bits_per_s", "flows", "flows_open"]
KEYS += ["observations", "names_decided", "names_released", "capture_drops", "interfaces_away"]
KEYS += ["interface", "memory_bytes"]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def state_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / STATE).read_bytes()))


# ---- status lines -------------------------------------------------------------------------------


def is_now(stamp: str) -> bool:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", stamp)
    age = datetime.now(UTC) - datetime.fromisoformat(stamp)
    return -1 <= age.total_seconds() < 600


def test_a_status_line_says_when(out: Path, capsys: Captured) -> None:
    assert run_main("run", DEMO, "--out", out, "-q", "--status", "1ns") == 0
    for line in capsys.readouterr().err.splitlines():
        stamp, _comma, figures = line.removeprefix("zanon-net: status: ").partition(", ")
        assert is_now(stamp)
        assert figures.startswith("running ")


@pytest.mark.parametrize("command", ["run", "packets"])
def test_a_status_line_as_json(tmp_path: Path, capsys: Captured, command: str) -> None:
    target = ["--out", tmp_path / "out"] if command == "run" else [tmp_path / "out.pcap"]
    options = ["-q", "--status", "1ns", "--status-format", "json"]
    assert run_main(command, DEMO, *target, *options) == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert all(list(line) == KEYS and is_now(line["time"]) for line in lines)
    assert lines[-1]["packets"] == 15629
    assert lines[-1]["capture_drops"] == {"ring": 0, "interface": 0, "us": 0}


# ---- the manifest so far ------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_the_state_lists_each_part_that_is_over(many: Path, out: Path, workers: int) -> None:
    seen: list[dict[str, Any]] = []
    config = Config().replace(z=1, format="csv", split_size="200k", workers=workers)
    run(many, config, out=out, progress=lambda *_told: seen.append(state_of(out)))
    assert all(state["running"] and not state["complete"] for state in seen)
    assert len(seen[-1]["outputs"]) > 2
    for state in seen:
        told = state["records"]["csv"]
        assert told["written"] == sum(file["records"] for file in state["outputs"])
        assert told["written"] + told["unfinished"] == state["records"]["records"]
        assert told["lost"] == 0
    manifest = check_accounts(out)
    assert (manifest["running"], manifest["complete"]) == (False, True)
    assert not list(out.rglob("*.partial"))


@pytest.mark.parametrize("command", ["run", "packets"])
def test_the_state_is_as_new_as_the_last_status(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(upkeep, "STATE_SHARE", 1e9)
    seen: list[int] = []
    target = tmp_path / ("out" if command == "run" else "out.pcap")
    path = target / STATE if command == "run" else tmp_path / f"out.pcap.{STATE}"

    def look(*_told: int) -> None:
        seen.append(json.loads(path.read_bytes())["counters"]["read"]["frames"])

    config = Config().replace(z=1, format="csv", status="1ns")
    {"run": run, "packets": packets}[command](many, out=target, config=config, progress=look)
    assert seen[0] < seen[-1] == 40_000


def test_there_is_a_whole_state_whenever_a_run_is_killed(out: Path) -> None:
    """Readers that come at any moment, the last after SIGKILL, find one."""
    fifo = out.with_name("fifo")
    os.mkfifo(fifo)
    command = [*COMMAND, "run", str(fifo), "--out", str(out), "--status", "1ns", "-q"]
    with running(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL) as process:
        with fifo.open("wb", buffering=0) as pipe:
            content = DEMO.read_bytes()
            reads = 0
            for at in range(0, len(content) // 2, 4096):
                pipe.write(content[at : at + 4096])
                if reads or (out / STATE).exists():
                    assert state_of(out)["running"]
                    reads += 1
            wait_until((out / STATE).exists)
            process.kill()
            process.wait()
        assert reads > 20
    state = state_of(out)
    assert (state["running"], state["complete"], state["error"]) == (True, False, None)
    assert not (out / "manifest.json").exists()
    assert all(name.endswith(".partial") for name in files_in(out))


def test_a_state_that_cannot_be_written_is_told_once(
    many: Path, out: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It ends no run."""

    def full(_file: StateFile, _by: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    intact = StateFile.replace_by

    def failing(file: StateFile, by: Path) -> None:
        (full if by.name.endswith(".next.partial") else intact)(file, by)

    monkeypatch.setattr(StateFile, "replace_by", failing)
    run(many, Config().replace(z=1, format="csv", status="1ns"), out=out)
    expected = f"warning: cannot write {out / STATE}: No space left on device"
    assert caplog.messages == [expected]
    assert check_accounts(out)["complete"]
    assert not list(out.rglob("*.partial"))


# ---- the records so far -------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("flush", "read"), [("1ns", True), ("1h", False)])
def test_records_can_be_read_while_a_run_goes_on(
    many: Path, out: Path, flush: str, read: bool, workers: int
) -> None:
    seen: list[bytes] = []
    config = Config().replace(z=1, format="csv", split_size="1T", flush=flush, workers=workers)
    partial = out / "flows.csv.partial"
    run(many, config, out=out, progress=lambda *_told: seen.append(partial.read_bytes()))
    whole = check_accounts(out)["outputs"][0]["file"]
    assert all((out / whole).read_bytes().startswith(content) for content in seen)
    assert all(content.endswith(b"\n") for content in seen if content)
    assert (len(seen[0]) > 0) == read
    assert len(seen[-1]) > (1 << 20)


def unpacked(content: bytes, compress: str) -> bytes:
    """What can be read of a file that goes on."""
    if compress == "gzip":
        return zlib.decompressobj(31).decompress(content)
    if compress == "zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(content)
    return content


@pytest.mark.parametrize("compress", ["none", "gzip", "zstd"])
def test_a_flush_leaves_whole_records_in_files(out: Path, compress: str) -> None:
    """Also in those that are compressed, which go on as the same stream."""
    sink = FolderSink(out, Plan(("csv",), headers={"csv": b"h\n"}, compress=compress))
    (partial,) = out.glob("flows.csv*.partial")
    expected = b"h\n"
    for n in range(5):
        line = b"%d\n" % n
        sink.take([(None, {"csv": (line, 1)}, {})], {})
        expected += line
        sink.flush(blocks=True)
        assert unpacked(partial.read_bytes(), compress) == expected
        size = partial.stat().st_size
        sink.flush(blocks=True)
        assert partial.stat().st_size == size  # nothing waited
    sink.finish(1)
    sink.publish(b"{}")
    (whole,) = out.glob("flows.csv*")
    assert unpacked(whole.read_bytes(), compress) == expected
    if compress == "gzip":
        assert gzip.decompress(whole.read_bytes()) == expected


@pytest.mark.parametrize("compress", ["gzip", "zstd"])
def test_of_a_capture_the_same_input_gives_the_same_bytes(
    many: Path, out: Path, key_file: str, compress: str
) -> None:
    """However often buffers were flushed, which depends on the time that a run takes."""
    config = Config().replace(z=1, format="csv", compress=compress, key_file=key_file)
    for name, flush in (("often", "1ns"), ("never", "1h")):
        run(many, config.replace(flush=flush), out=out.with_name(name))
    assert files_in(out.with_name("often")) == files_in(out.with_name("never"))


TO_STDOUT = """
import time
from zanon_net.output.sink import Plan
from zanon_net.output.stdout import StdoutSink
sink = StdoutSink(Plan(("jsonl",), compress="gzip"))
sink.take([(None, {"jsonl": (b"{}", 1)}, {})], {})
sink.flush(blocks=True)
time.sleep(60)
"""


def test_a_compressed_stream_is_flushed_too() -> None:
    command = [sys.executable, "-c", TO_STDOUT]
    with running(command, env=ENVIRONMENT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        content = b""
        while unpacked(content, "gzip") != b"{}":
            content += (more := os.read(process.stdout.fileno(), 4096))
            assert more
