# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Files left after a full disk, or a run that breaks off: whole ones, and a true manifest."""

import errno
import gzip
import json
import os
import signal
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import zstandard
from support.packets import SECOND, START
from support.parts import PROGRAM, check_accounts, files_in
from support.small_disk import can_mount

from zanon_net import Config, OutputError, run
from zanon_net.keys import new_key
from zanon_net.output import files, folder, parquet, whole_records
from zanon_net.output.files import CaptureFile, TextFile
from zanon_net.output.folder import FolderSink
from zanon_net.output.sink import Plan
from zanon_net.output.whole_records import Checkpoints
from zanon_net.pipeline import runner
from zanon_net.pipeline.manifest import CUT


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def is_full_after(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """Makes text files fail with ENOSPC once they hold `limit` bytes together."""
    written = 0
    put = TextFile._put

    def failing(self: TextFile, data: bytes) -> None:
        nonlocal written
        written += len(data)
        if written > limit:
            raise OutputError(f"cannot write {self.path}: {os.strerror(errno.ENOSPC)}")
        put(self, data)

    monkeypatch.setattr(TextFile, "_put", failing)


@pytest.mark.parametrize("limit", [300_000, 4_000_000, 5_500_000])
@pytest.mark.parametrize("split_size", [None, "200k"])
def test_a_full_disk_leaves_a_true_manifest(
    many: Path, out: Path, monkeypatch: pytest.MonkeyPatch, limit: int, split_size: str | None
) -> None:
    is_full_after(monkeypatch, limit)
    with pytest.raises(OutputError, match="No space left on device"):
        run(many, Config().replace(z=1, format="csv", split_size=split_size), out=out)
    manifest = check_accounts(out)
    assert not manifest["complete"]
    assert "No space left on device" in manifest["error"]
    told = manifest["records"]["csv"]
    assert told["lost"] > 0
    assert (told["written"] > 0) == (split_size is not None and limit > 300_000)


@pytest.mark.parametrize(("form", "size"), [("csv", "4m"), ("jsonl", "5m"), ("parquet", "700k")])
def test_a_small_file_system_runs_full(form: str, size: str, many: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if not can_mount(small, size):
        pytest.skip("mounting a tmpfs takes privileges")
    try:
        command = [*PROGRAM, str(many), "--z", "1", "--format", form, "--split", "1m"]
        done = subprocess.run(
            [*command, "--out", str(small / "out")], check=False, capture_output=True
        )
        assert done.returncode == 1
        lines = done.stderr.splitlines()
        assert b"No space left on device; free some space and run again" in lines[-1]
        manifest = check_accounts(small / "out")
        assert not manifest["complete"]
        assert manifest["records"][form]["written"] > 0
        assert manifest["records"][form]["lost"] > 0
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_there_is_room_for_the_manifest_on_a_full_disk(out: Path) -> None:
    sink = FolderSink(out, Plan(("csv",)))
    assert (out / "manifest.json.reserved.partial").stat().st_size == 1 << 16
    sink.abandon(lambda: b"{}")
    assert files_in(out) == {"manifest.json": b"{}"}


def test_the_room_for_the_manifest_grows_with_the_files_it_lists(out: Path) -> None:
    sink = FolderSink(out, Plan(("csv", "jsonl")))
    for n in range(200):
        sink.rotate(START, START + (n + 1) * SECOND)
    size = (out / "manifest.json.reserved.partial").stat().st_size
    assert size > (1 << 16) + len(json.dumps(sink.files, indent=4))
    sink.abandon(lambda: json.dumps(sink.files).encode())
    assert len(json.loads((out / "manifest.json").read_bytes())) == 400


# The last part's files get their names, the manifest behind them; before, that was written once.
@pytest.mark.parametrize(
    ("owner", "call", "nth"),
    [(Path, "rename", n) for n in range(3)] + [(os, "ftruncate", 0), (os, "fsync", 0)],
)
def test_an_error_at_the_very_end_leaves_a_true_manifest(
    many: Path, out: Path, monkeypatch: pytest.MonkeyPatch, owner: object, call: str, nth: int
) -> None:
    """Of the parts before. It has been written already, or its writing is what failed."""
    publish, intact, uses = FolderSink.publish, getattr(owner, call), iter(range(1000))

    def once(*arguments: object) -> object:
        if next(uses) == nth:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return intact(*arguments)

    def failing(sink: FolderSink, manifest: bytes) -> None:
        monkeypatch.setattr(owner, call, once)
        publish(sink, manifest)

    monkeypatch.setattr(FolderSink, "publish", failing)
    config = Config().replace(z=1, format=["csv", "jsonl"], split_size="200k")
    with pytest.raises(OutputError, match="Input/output error"):
        run(many, config, out=out)
    manifest = check_accounts(out)
    assert not manifest["complete"]
    assert "Input/output error" in manifest["error"]
    assert manifest["records"]["csv"]["written"] > 0
    assert manifest["records"]["csv"]["lost"] > 0


@pytest.mark.parametrize("name", ["flows.csv.partial", "manifest.json.reserved.partial"])
@pytest.mark.parametrize("theirs", [True, False])
def test_a_signal_right_before_a_file_is_made_takes_away_no_other(
    out: Path, monkeypatch: pytest.MonkeyPatch, name: str, theirs: bool
) -> None:
    """Somebody else's, which came since the folder was found to be empty."""

    def interrupted(intact: Callable[..., Any]) -> Callable[..., Any]:
        def opening(path: Path, *arguments: Any, **more: Any) -> Any:
            if path.name == name:
                if theirs:
                    path.touch()
                signal.raise_signal(signal.SIGINT)
            return intact(path, *arguments, **more)

        return opening

    out.mkdir()
    monkeypatch.setattr(Path, "open", interrupted(Path.open))
    monkeypatch.setattr(folder, "create_private", interrupted(folder.create_private))
    with pytest.raises(KeyboardInterrupt):
        FolderSink(out, Plan(("csv",)))
    monkeypatch.undo()
    assert files_in(out) == ({name: b""} if theirs else {})


def test_an_input_error_after_a_part_leaves_that_part(many: Path, out: Path) -> None:
    def broken(*told: int) -> None:
        if told[2] > 30_000:
            raise MemoryError

    config = Config().replace(z=1, format="csv", split_size="200k")
    with pytest.raises(MemoryError):
        run(many, config, out=out, progress=broken)
    assert check_accounts(out)["error"] == "MemoryError"
    with pytest.raises(MemoryError):
        run(many, config.replace(split_size=None), out=out.with_name("two"), progress=broken)
    assert not out.with_name("two").exists()


def test_a_signal_right_before_signals_wait_leaves_none_waiting(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its handler runs in the very call that has the others wait."""
    mask = signal.pthread_sigmask
    before = mask(signal.SIG_BLOCK, ())

    def interrupted(how: int, which: Sequence[int]) -> set[int]:
        former = mask(how, which)
        if how == signal.SIG_BLOCK and which:
            raise KeyboardInterrupt
        return former

    monkeypatch.setattr(signal, "pthread_sigmask", interrupted)
    with pytest.raises(KeyboardInterrupt):
        FolderSink(out, Plan(("csv",)))
    monkeypatch.undo()
    left = mask(signal.SIG_SETMASK, before)
    assert left == before
    assert not out.exists()


FULL = {  # sizes of file systems in which the output below does not fit
    ("csv", "none"): "4m",
    ("jsonl", "none"): "5m",
    ("tstat", "none"): "2m",
    ("observations", "none"): "1200k",
    ("csv", "gzip"): "300k",
    ("jsonl", "zstd"): "300k",
}


@pytest.mark.parametrize(("form", "compress"), FULL)
def test_whole_records_of_the_open_part_outlive_a_full_disk(
    form: str, compress: str, many: Path, tmp_path: Path
) -> None:
    """They are what a run with enough room begins with."""
    small, whole, key = tmp_path / "small", tmp_path / "whole", tmp_path / "zanon.key"
    small.mkdir()
    new_key(key)
    if not can_mount(small, FULL[form, compress]):
        pytest.skip("mounting a tmpfs takes privileges")
    command = [*PROGRAM, str(many), "--z", "1", "--format", form, "--compress", compress]
    command += ["--key-file", str(key), "--evidence", "any", "--out"]
    try:
        subprocess.run([*command, str(whole)], check=True, capture_output=True)
        done = subprocess.run([*command, str(small / "out")], check=False, capture_output=True)
        assert done.returncode == 1
        said = done.stderr.decode().splitlines()
        assert "No space left on device; free some space and run again" in said[-1]
        found, expected = files_in(small / "out"), files_in(whole)
        manifest = json.loads(found.pop("manifest.json"))
        del expected["manifest.json"]
        assert set(found) == set(expected)
        records = {name: unpacked(content) for name, content in found.items()}
        for name, content in records.items():
            assert content.endswith(b"\n")
            assert unpacked(expected[name]).startswith(content)
        assert any(len(content) > len(unpacked(expected[n])) // 4 for n, content in records.items())
        assert not manifest["complete"]
        assert "No space left on device" in manifest["error"]
        assert manifest["notes"][-1] == CUT
        for file in manifest["outputs"]:
            headers = 0 if "json" in file["file"] else 1
            assert file["bytes"] == len(found[file["file"]])
            lines = records[file["file"]].count(b"\n")
            assert file["records"] == lines - headers * (form != "observations")
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def unpacked(content: bytes) -> bytes:
    """A text, of the bytes of a file that may be compressed."""
    if content.startswith(b"\x1f\x8b"):
        return gzip.decompress(content)
    if content.startswith(b"\x28\xb5\x2f\xfd"):
        with zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True) as file:
            return file.read()
    return content


@pytest.mark.parametrize("compress", ["none", "gzip", "zstd"])
def test_a_file_is_cut_to_whole_lines(tmp_path: Path, compress: str) -> None:
    """However little of it is on the disk, and whatever lies behind that in a buffer."""
    lines = [b"%d," % n + os.urandom(8).hex().encode() + b"\n" for n in range(60_000)]
    written = b"h\n" + b"".join(lines)
    whole = TextFile(tmp_path / "whole", b"h\n", compress)
    whole.write(b"".join(lines), len(lines))
    whole.to_disk()
    content = whole.partial.read_bytes()
    for part in (0, 1, 30, 5000, 400_000, len(content) - 1, len(content)):
        file = TextFile(tmp_path / f"cut{part}", b"h\n", compress)
        file.write(b"".join(lines[:9]), 9)  # in the buffer
        file.partial.write_bytes(content[:part])
        size = file.cut(0)
        left = file.partial.read_bytes()
        assert size == len(left)
        assert unpacked(left) == b"".join([b"h\n", *lines[: file.records]])
        if compress == "none":
            assert len(left) == max(2, written.rfind(b"\n", 0, part) + 1)
        elif part >= 400_000:
            assert len(left) > part * 0.6
    file = TextFile(tmp_path / "spare", b"h\n", compress)
    file.partial.write_bytes(content)
    assert file.cut(1000) is not None
    if compress == "none":
        assert 1000 <= len(content) - file.partial.stat().st_size < 1030


@pytest.mark.parametrize("compress", ["gzip", "zstd"])
def test_a_file_is_cut_before_what_the_disk_did_not_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: str
) -> None:
    """Though the system had said that it was written."""
    monkeypatch.setattr(files, "BUFFER_BYTES", 1 << 14)
    monkeypatch.setattr(files, "ENDING_BYTES", 1 << 10)
    lines = [b"%d," % n + os.urandom(8).hex().encode() + b"\n" for n in range(60_000)]
    file = TextFile(tmp_path / "cut", b"h\n", compress)
    sizes = []
    for half in (lines[:30_000], lines[30_000:]):
        file.write(b"".join(half), len(half))
        file.flush(blocks=True)
        sizes.append(file.partial.stat().st_size)
    with file.partial.open("r+b") as damaged:
        damaged.seek(sizes[0])
        damaged.write(b"\xff" * (sizes[1] - sizes[0]))
    size = file.cut(0)
    left = file.partial.read_bytes()
    assert size == len(left)
    assert 1000 < file.records <= 30_000
    assert unpacked(left) == b"".join([b"h\n", *lines[: file.records]])


PCAP_PACKET = struct.pack("=IIII5s", 1, 2, 5, 9, b"\xff" * 5)
PCAPNG_PACKET = struct.pack("=IIIIIII4sI", 6, 36, 0, 0, 0, 1, 1, b"\xff" * 4, 36)


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
@pytest.mark.parametrize(
    ("header", "packet"), [(b"h" * 24, PCAP_PACKET), (b"\n\r\r\n" + b"h" * 44, PCAPNG_PACKET)]
)
def test_a_capture_is_cut_to_whole_packets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: bytes, packet: bytes, piece: int
) -> None:
    """Wherever it ends, and in whatever pieces it is read."""
    monkeypatch.setattr(files, "BUFFER_BYTES", piece)
    content = header + packet * 4
    for there in range(len(content) + 1):
        file = CaptureFile(tmp_path / f"cut{there}", header, "none")
        file.write(packet * 4, 4)
        file.flush(blocks=False)
        os.truncate(file.partial, there)
        whole = max(0, there - len(header)) // len(packet)
        assert file.cut(0) == len(header) + whole * len(packet)
        assert file.records == whole
        assert file.partial.read_bytes() == content[: len(header) + whole * len(packet)]


def test_places_near_the_end_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file of any size; whatever is cut off, the search begins before that."""
    monkeypatch.setattr(whole_records, "NEAR_BYTES", 100)
    places = Checkpoints(10)
    for n in range(1000):
        places.add(30, n + 1)
    assert len(places._near) <= 5
    end = 10 + 30 * 1000
    for limit in range(end - 100, end + 1):
        begin, records = places.before(limit)
        assert begin <= limit < begin + 30 or begin == end
        assert begin == 10 + 30 * records
    assert places.before(11) == (10, 0)


@pytest.mark.parametrize("split", [None, "2m"])
def test_partitions_outlive_a_full_disk(
    split: str | None, many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The capture begins in one hour and ends in the next."""
    small = tmp_path / "small"
    small.mkdir()
    config = Config(z=1, evidence="any", format="parquet", partition="day,hour", split=split)
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 1000)
    monkeypatch.setattr(runner, "FULL_ROWS", 1000)
    if not can_mount(small, "700k"):
        pytest.skip("mounting a tmpfs takes privileges")
    try:
        with pytest.raises(OutputError, match="No space left on device"):
            run(many, config, out=small / "out")
        manifest = check_accounts(small / "out")
        assert manifest["records"]["parquet"]["lost"] > 0
        assert manifest["records"]["parquet"]["written"] > 0
        rows = [pq.read_table(path) for path in (small / "out" / "flows").rglob("*.parquet")]
        assert sum(map(len, rows)) == manifest["records"]["parquet"]["written"]
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


@pytest.mark.family(2)
@pytest.mark.parametrize("compress", ["none", "zstd"])
@pytest.mark.parametrize("split", [None, "1d"])
def test_whole_row_groups_of_the_open_part_outlive_a_full_disk(
    compress: str, split: str | None, many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, whole = tmp_path / "small", tmp_path / "whole"
    small.mkdir()
    new_key(tmp_path / "zanon.key")
    config = Config(z=1, evidence="any", format="parquet", key_file=tmp_path / "zanon.key")
    config = config.replace(compress=compress, split=split)
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 1000)
    monkeypatch.setattr(runner, "FULL_ROWS", 1000)
    run(many, config, out=whole)
    if not can_mount(small, "400k"):
        pytest.skip("mounting a tmpfs takes privileges")
    try:
        with pytest.raises(OutputError, match="No space left on device"):
            run(many, config, out=small / "out")
        manifest = check_accounts(small / "out")
        assert not manifest["complete"]
        assert manifest["notes"][-1] == CUT
        assert manifest["records"]["parquet"]["lost"] > 0
        last = max(path.name for path in (small / "out" / "flows").glob("*.parquet"))
        found, expected = (pq.read_table(out / "flows" / last) for out in (small / "out", whole))
        assert 0 < found.num_rows <= expected.num_rows
        assert found.num_rows % 1000 == 0
        assert found.equals(expected.slice(0, found.num_rows))
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
