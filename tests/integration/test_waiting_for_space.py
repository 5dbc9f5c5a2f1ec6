# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs that wait on a full disk: of captures nothing is lost, of interfaces what came meanwhile."""

import errno
import gzip
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.packet_output import packets
from support.parts import PROGRAM, check_accounts, manifest_of
from support.small_disk import SmallDisk, small_disk
from support.waiting import running, wait_until

from zanon_net import Config, OutputError, run
from zanon_net.keys import new_key
from zanon_net.output import files, parquet, room
from zanon_net.output.disk import DiskRules
from zanon_net.output.folder import FolderSink
from zanon_net.output.room import Room
from zanon_net.output.sink import Plan
from zanon_net.output.waiting_folder import WaitingFolderSink
from zanon_net.pipeline import reader, runner, upkeep

FREE = 60_000  # less than any format takes
ROOM_TO_BEGIN = 200_000  # and for the manifest, too


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", "24m") as found:
        yield found


@pytest.fixture
def config(tmp_path: Path) -> Config:
    new_key(tmp_path / "zanon.key")
    return Config(z=1, evidence="any", key_file=tmp_path / "zanon.key", internal="10.0.0.0/8")


# ---- captures: nothing is lost ------------------------------------------------------------------


@pytest.mark.parametrize(("form", "workers"), [("csv", "2"), ("parquet", "1"), ("tstat", "1")])
def test_a_run_of_captures_waits_until_there_is_space(
    many: Path, disk: SmallDisk, config: Config, tmp_path: Path, form: str, workers: str
) -> None:
    run(many, config, format=form, split="5m", on_full="wait", out=tmp_path / "whole")
    disk.fill(ROOM_TO_BEGIN)
    command = [*PROGRAM, str(many), "--z", "1", "--evidence", "any", "--internal", "10.0.0.0/8"]
    command += ["--key-file", str(config.addresses.key_file), "--format", form, "--split", "5m"]
    command += ["--on-full", "wait", "--workers", workers, "--out", str(disk.path / "out")]
    with running(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        first = process.stderr.readline().decode()
        assert "No space left on device; waiting for space" in first
        disk.free()
        said = process.stderr.read().decode()
        assert process.wait() == 0
    assert "there is space again: the run continues" in said
    manifest = check_accounts(disk.path / "out")
    assert manifest["complete"]
    assert manifest["full_disk"]["records_lost"] == {}
    assert manifest["full_disk"]["times"] >= 1
    files = manifest["outputs"]
    assert files == manifest_of(tmp_path / "whole")["outputs"]
    for file in files:
        name = file["file"]
        assert (disk.path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_signal_ends_the_wait(many: Path, disk: SmallDisk, workers: str) -> None:
    """The run then ends as it does without one."""
    disk.fill(ROOM_TO_BEGIN)
    command = [*PROGRAM, str(many), "--z", "1", "--format", "csv", "--on-full", "wait"]
    command += ["--workers", workers, "--out", str(disk.path / "out")]
    with running(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        said = process.stderr.read().decode().splitlines()
        assert process.wait() == 1
    assert "No space left on device; free some space and run again" in said[-1]
    manifest = check_accounts(disk.path / "out")
    assert manifest["records"]["csv"]["written"] > 100
    assert not manifest["complete"]


def test_no_wait_for_what_no_space_mends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "CHECK_S", 0.0)
    calls: list[int] = []

    def failing(number: int) -> Callable[[], int]:
        def call() -> int:
            calls.append(number)
            if len(calls) < 3:
                raise OSError(number, os.strerror(number))
            return len(calls)

        return call

    waits = Room(DiskRules(waits=True))
    for number in (errno.EFBIG, errno.EIO):
        calls.clear()
        with pytest.raises(OSError, match=os.strerror(number)):
            waits.do(Path("f"), failing(number))
        assert len(calls) == 1
    for number in (errno.ENOSPC, errno.EDQUOT):
        calls.clear()
        assert waits.do(Path("f"), failing(number)) == 3
    assert waits.times == 2
    calls.clear()
    with pytest.raises(OSError, match="space"):
        Room(DiskRules()).do(Path("f"), failing(errno.ENOSPC))


# ---- interfaces: what comes meanwhile is lost ---------------------------------------------------


@pytest.fixture
def as_if_live(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture is read as an interface is, in small pieces, and looked after all the time."""
    monkeypatch.setattr(
        runner, "disk_rules", lambda *_arguments, **_options: DiskRules(waits=True, is_live=True)
    )
    monkeypatch.setattr(reader.Reader, "is_live", True)
    monkeypatch.setattr(reader, "BATCH_FRAMES", 1000)
    monkeypatch.setattr(upkeep, "TEND_S", 0.0)
    monkeypatch.setattr(files, "BUFFER_BYTES", 1 << 14)
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 1000)
    monkeypatch.setattr(runner, "FULL_ROWS", 1000)


def ends_at(disk: SmallDisk, *spells: tuple[int, int]) -> Callable[..., None]:
    """Progress that has the disk be full from one number of packets to another."""

    def progress(_done: int, _all: int, packets: int) -> None:
        for begin, end in spells:
            if packets in range(begin, begin + 1000):
                disk.fill(FREE)
            if packets in range(end, end + 1000):
                disk.free()

    return progress


PARQUET_COLUMNS = ("t_start_ns", "client", "client_port", "name", "c_bytes")


def records_of(path: Path) -> list[Hashable]:
    """The records of a file, without its header; of Parquet some columns."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content, path = gzip.decompress(content), path.with_suffix("")
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return list(zip(*(table[name].to_pylist() for name in PARQUET_COLUMNS), strict=True))
    if path.suffix.startswith(".pcap"):
        return list(packets(content))
    lines = content.splitlines(keepends=True)
    assert all(line.endswith(b"\n") for line in lines)
    return lines if path.suffix == ".jsonl" else lines[1:]


@pytest.mark.parametrize(
    ("form", "compress", "workers"),
    [
        ("csv", "none", 2),
        ("csv", "gzip", 1),
        ("jsonl", "none", 1),
        ("observations", "none", 1),
        ("tstat", "none", 2),
        ("parquet", "none", 2),
        ("pcap", "none", 1),
        ("pcapng", "gzip", 2),
    ],
)
def test_writing_begins_anew_with_a_new_part(
    many: Path,
    disk: SmallDisk,
    config: Config,
    tmp_path: Path,
    as_if_live: None,
    form: str,
    compress: str,
    workers: int,
) -> None:
    """Twice the disk is full. Decisions are those of a run with enough room, all files are whole,
    and each record is in a file or counted."""
    config = config.replace(format=form, compress=compress, workers=workers)
    out, whole = disk.path / "out", tmp_path / "whole"
    progress = ends_at(disk, (2000, 18_000), (20_000, 36_000))
    report = run(many, config, out=out, progress=progress)
    expected = run(many, config, out=whole)
    assert report.manifest["decisions"] == expected.manifest["decisions"]
    assert report.manifest["counters"] == expected.manifest["counters"]
    manifest = manifest_of(out)
    assert not manifest["complete"]
    assert manifest["error"] is None
    lost, written = manifest["full_disk"]["records_lost"][form], 0
    assert manifest["full_disk"]["times"] == 2
    assert any(note.startswith("the disk was full 2 times") for note in manifest["notes"])
    assert not list(out.rglob("*.partial"))
    everything = [records_of(whole / file["file"]) for file in expected.manifest["outputs"]]
    known = {record for records in everything for record in records}
    last = {records[-1] for records in everything if records}
    for file in manifest["outputs"]:
        records = records_of(out / file["file"])
        assert len(records) == file["records"]
        assert (out / file["file"]).stat().st_size == file["bytes"]
        assert known.issuperset(records)
        written += len(records)
        last -= set(records[-1:])
    assert written + lost == sum(map(len, everything))
    assert lost > 1000
    assert written > 1000
    assert not last  # writing went on to the end
    if form in manifest["records"]:
        assert manifest["records"][form]["lost"] == lost


def test_a_disk_that_stays_full_ends_as_a_run_does(
    many: Path, disk: SmallDisk, config: Config, as_if_live: None
) -> None:
    out = disk.path / "out"
    report = run(
        many, config, format="csv", out=out, progress=ends_at(disk, (2000, 10**9)), split="5m"
    )
    manifest = check_accounts(out)
    assert manifest == json.loads(json.dumps(report.manifest))
    assert manifest["full_disk"]["times"] == 1
    assert manifest["records"]["csv"]["lost"] > 10_000
    assert manifest["full_disk"]["records_lost"] == {"csv": manifest["records"]["csv"]["lost"]}


def test_the_state_tells_of_the_wait(
    many: Path,
    disk: SmallDisk,
    config: Config,
    as_if_live: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In the log; and in the manifest so far, once it can be written."""
    caplog.set_level("INFO", "zanon_net")
    states: list[dict[str, Any]] = []
    spells = ends_at(disk, (2000, 18_000))

    def progress(*counts: int) -> None:
        spells(*counts)
        states.append(json.loads((disk.path / "out/manifest.json.partial").read_bytes()))

    run(many, config, format="csv", out=disk.path / "out", progress=progress)
    said = [line for line in caplog.messages if "space" in line]
    assert len(said) >= 2
    assert "No space left on device; records are lost until there is space" in said[0]
    assert said[-1].startswith("there is space again: a new part begins; the disk was full once")
    lost = states[-1]["records"]["csv"]
    assert lost["lost"] == states[-1]["full_disk"]["records_lost"]["csv"] > 1000
    assert lost["written"] + lost["lost"] + lost["unfinished"] == states[-1]["records"]["records"]


def test_old_parts_make_room(disk: SmallDisk) -> None:
    """A part that is due while the disk is full: its space is that of the next one."""
    rules = DiskRules(waits=True, is_live=True, max_bytes=2 << 20)
    out = disk.path / "out"
    sink = WaitingFolderSink(out, Plan(("jsonl",), disk=rules))
    line = b"x" * 1023 + b"\n"
    sink.take([(None, {"jsonl": (line * 2000, 2000)}, {})], {})
    sink.rotate(0, 60 * 10**9)
    disk.fill(FREE)
    sink.take([(None, {"jsonl": (line * 1500, 1500)}, {})], {})
    assert sink.disk.waits
    assert sink.tend()
    assert not sink.disk.waits
    assert sink.disk.removed.parts == 1
    sink.take([(None, {"jsonl": (line, 1)}, {})], {})
    sink.finish(0)
    sink.publish(b"{}")
    assert sink.lost == {"jsonl": 1500 - (sink.written["jsonl"] - 2001)}


@pytest.mark.parametrize("kind", [FolderSink, WaitingFolderSink])
def test_old_parts_of_earlier_runs_make_room_to_begin(
    disk: SmallDisk, kind: type[FolderSink]
) -> None:
    """As after a restart on a full disk, which is no reason to start in vain for ever."""
    before = disk.path / "zanon-20260101T000000Z"
    before.mkdir()
    (before / "flows-20260101T000000Z.jsonl").write_bytes(bytes(1 << 20))
    manifest = {
        "name": "zanon-net",
        "configuration": {"output": {"keep": None, "max_disk": 1000}},
        "sources": [{"format": "interface"}],
        "removed": {"parts": 0, "bytes": 0, "records": {}},
        "outputs": [
            {"file": "flows-20260101T000000Z.jsonl", "bytes": 1 << 20, "records": 0, "part": 1}
        ],
    }
    (before / "manifest.json").write_text(json.dumps(manifest))
    disk.fill()
    rules = DiskRules(waits=True, is_live=True, max_bytes=1000)
    sink = kind(disk.path / "zanon-20260102T000000Z", Plan(("jsonl",), disk=rules))
    assert sink.disk.earlier.parts == 1
    assert [path.name for path in before.iterdir()] == ["manifest.json"]
    sink.discard()


@pytest.fixture
def full(disk: SmallDisk) -> WaitingFolderSink:
    """A sink that waits for space."""
    plan = Plan(("jsonl",), disk=DiskRules(waits=True, is_live=True))
    sink = WaitingFolderSink(disk.path / "out", plan)
    disk.fill(FREE)
    line = b"x" * 1023 + b"\n"
    sink.take([(None, {"jsonl": (line * 2000, 2000)}, {})], {})
    assert not sink.tend()
    assert sink.disk.waits
    disk.free()
    return sink


def test_no_wait_for_a_folder_that_is_gone(full: WaitingFolderSink) -> None:
    """It never comes back: all records would be lost without a word."""
    shutil.rmtree(full.folder)
    with pytest.raises(OutputError, match="No such file or directory"):
        full.tend()
    full.discard()


def test_a_file_system_that_reserves_nothing_is_not_full(
    full: WaitingFolderSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_arguments: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "posix_fallocate", unsupported)
    assert full.tend()
    assert not full.disk.waits
    full.discard()


def test_a_disk_that_is_full_from_the_start_ends_the_run(disk: SmallDisk) -> None:
    disk.fill()
    rules = DiskRules(waits=True, is_live=True)
    with pytest.raises(OutputError, match="No space left on device"):
        WaitingFolderSink(disk.path / "out", Plan(("jsonl",), disk=rules))
    assert not (disk.path / "out").exists()


def test_a_capture_that_runs_out_of_room_twice_loses_nothing(
    disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a part ends meanwhile."""
    monkeypatch.setattr(room, "CHECK_S", 0.0)
    attempts: list[int] = []

    def gives_up() -> bool:
        attempts.append(1)
        if len(attempts) % 5 == 0:
            disk.free()
        return False

    rules = DiskRules(waits=True, gives_up=gives_up)
    sink = FolderSink(disk.path / "out", Plan(("jsonl",), disk=rules))
    for n in range(3):
        disk.fill(FREE)
        sink.take([(None, {"jsonl": (b"x\n" * 1_000_000, 1_000_000)}, {})], {})
        disk.fill()
        sink.rotate(0, (n + 1) * 60 * 10**9)
    sink.finish(0)
    sink.publish(b"{}")
    assert sink.written == {"jsonl": 3_000_000}
    assert sum(len(path.read_bytes()) for path in (disk.path / "out").glob("*.jsonl")) == 6_000_000
    wait_until(lambda: sink.disk.times_full >= 3)
