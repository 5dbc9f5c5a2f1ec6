# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Compressed captures: their output is that of the captures in them."""

import gzip
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.capture_bytes import pcap_header, pcap_record

import zanon_net
from zanon_net import Config, FormatError
from zanon_net.bench.trace import Scale, generate
from zanon_net.keys import new_key
from zanon_net.system import decompress
from zanon_net.system.decompress import Unpacker


def records_of(path: Path, out: Path, config: Config) -> dict[str, bytes]:
    """The files with records that a run writes, by name."""
    zanon_net.run(path, config, out=out)
    files = (p for p in out.rglob("*") if p.is_file() and p.name != "manifest.json")
    return {p.relative_to(out).as_posix(): p.read_bytes() for p in files}


def pack(tmp_path: Path) -> tuple[Path, Path]:
    """A capture, and the same packed."""
    plain, packed = tmp_path / "x.pcap", tmp_path / "x.pcap.gz"
    generate(plain, "isp", Scale(octets=4_000_000, homes=50, names=100))
    packed.write_bytes(gzip.compress(plain.read_bytes(), 1))
    return plain, packed


@pytest.mark.parametrize("part", [7_000, 1_000_000])
@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_is_written_however_slowly_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int, part: int
) -> None:
    """A batch, at whose end records wait, ends where it does in the file itself."""
    plain, packed = pack(tmp_path)
    waits = iter([0.5])  # so long that the reader looks for signals

    def write_slowly(unpacker: Unpacker, data: bytes) -> None:
        for at in range(0, len(data), part):
            time.sleep(next(waits, 0.001) if at > len(data) // 2 else 0)
            os.write(unpacker._out, data[at : at + part])

    monkeypatch.setattr(Unpacker, "_write", write_slowly)
    monkeypatch.setattr(decompress, "STEP_MIN", 8_000_000)
    new_key(tmp_path / "zanon.key")
    config = Config().replace(
        z=2,
        key_file=tmp_path / "zanon.key",
        evidence="any",
        max_flows=8,
        workers=workers,
        format="tstat,jsonl",
        split_size="50k",
    )
    found = [records_of(path, tmp_path / path.suffix, config) for path in (plain, packed)]
    assert found[0] == found[1]
    assert len(found[0]) > 6


def test_how_far_it_is_is_told_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _plain, packed = pack(tmp_path)

    def write_slowly(unpacker: Unpacker, data: bytes) -> None:
        for at in range(0, len(data), 100_000):
            time.sleep(0.01)
            os.write(unpacker._out, data[at : at + 100_000])

    monkeypatch.setattr(Unpacker, "_write", write_slowly)
    monkeypatch.setattr(decompress, "STEP_MIN", 8_000_000)
    told: list[int] = []
    config = Config().replace(z=2, format="jsonl", status="10ms")
    report = zanon_net.run(
        packed, config, out=tmp_path / "out", on_status=lambda status: told.append(status.packets)
    )
    (source,) = report.manifest["sources"]
    assert any(0 < packets < source["frames"] // 2 for packets in told)


def unpack_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """All is unpacked before the first byte is read."""
    begin = Unpacker.__init__

    def begin_and_wait(unpacker: Unpacker, *arguments: Any) -> None:
        begin(unpacker, *arguments)
        unpacker._thread.join()

    monkeypatch.setattr(Unpacker, "__init__", begin_and_wait)


def read_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies behind the first 20,000 bytes is unpacked when the reader has seen those."""
    write = Unpacker._write

    def write_late(unpacker: Unpacker, data: bytes) -> None:
        if unpacker.unpacked_bytes > 20_000:
            time.sleep(0.1)
        write(unpacker, data)

    monkeypatch.setattr(Unpacker, "_write", write_late)


def damaged_twice(head: bytes) -> bytes:
    """A gzip stream whose content begins with `head` and is no capture behind that; its checksum is
    wrong, too."""
    packed = bytearray(gzip.compress(head + b"\xff" * 100_000))
    packed[-8] ^= 1
    return bytes(packed)


@pytest.mark.parametrize("order", [unpack_first, read_first])
def test_a_file_damaged_in_two_ways_has_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """That of the record, which comes first, whichever thread does."""
    records = [pcap_record("<", 1_700_000_000, n, b"x" * 60) for n in range(3)]
    (tmp_path / "x.pcap.gz").write_bytes(damaged_twice(pcap_header("<") + b"".join(records)))
    order(monkeypatch)
    report = zanon_net.run(tmp_path / "x.pcap.gz", Config(), out=tmp_path / "out")
    assert report.warnings == [
        "x.pcap.gz: record 4 at byte 252: a frame of 4294967295 bytes, more than 262144"
    ]


@pytest.mark.parametrize("order", [unpack_first, read_first])
def test_a_damaged_file_that_is_no_capture_is_refused_for_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Callable[[pytest.MonkeyPatch], None]
) -> None:
    (tmp_path / "x.pcap.gz").write_bytes(damaged_twice(b"no capture"))
    order(monkeypatch)
    with pytest.raises(FormatError, match=r"x\.pcap\.gz is not a capture"):
        zanon_net.run(tmp_path / "x.pcap.gz", Config(), out=tmp_path / "out")


@pytest.mark.parametrize("order", [unpack_first, read_first])
def test_a_bound_behind_a_damaged_record_is_not_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Callable[[pytest.MonkeyPatch], None]
) -> None:
    head = pcap_header("<") + pcap_record("<", 1_700_000_000, 0, b"x" * 60)
    (tmp_path / "x.pcap.gz").write_bytes(gzip.compress(head + b"\xff" * 100_000))
    order(monkeypatch)
    config = Config(max_bytes=50_000)
    report = zanon_net.run(tmp_path / "x.pcap.gz", config, out=tmp_path / "out")
    assert report.warnings == [
        "x.pcap.gz: record 2 at byte 100: a frame of 4294967295 bytes, more than 262144"
    ]
