# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Frames longer than a link carries: counted, and told once, as a receive offload merged them."""

import json
from pathlib import Path

import pytest
from support import wire
from support.capture_bytes import pcap_header, pcap_record

from zanon_net import Config
from zanon_net import run as run_captures
from zanon_net.cli import main
from zanon_net.pipeline.diagnostics import MERGED

LONGEST = 9242
ETHERNET, RAW, COOKED, COOKED2, LOOPBACK, NFLOG = 1, 101, 113, 276, 0, 239


def frame(size: int) -> bytes:
    """A TCP segment in a frame of so many bytes."""
    segment = wire.tcp(bytes(size - 54))
    data = wire.ethernet(wire.ipv4(segment, wire.TCP))
    assert len(data) == size
    return data


def write(path: Path, sizes: list[int], link: int = ETHERNET, cut: int = 1 << 18) -> Path:
    records = (
        pcap_record("<", 1_700_000_000 + n, 0, frame(size)[:cut], wire=size)
        for n, size in enumerate(sizes)
    )
    path.write_bytes(pcap_header(link_type=link) + b"".join(records))
    return path


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("cut", [96, 1 << 18])
def test_long_frames_are_counted_and_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: int, cut: int
) -> None:
    sizes = [60, 1514, 9000, LONGEST, LONGEST + 1, 1514, 20_000, 65_549] * 20
    path = write(tmp_path / "x", sizes, cut=cut)
    out = ["--out", str(tmp_path / "out"), "--format", "jsonl", "--workers", str(workers)]
    assert main(["run", str(path), "--internal", "10.0.0.0/8", *out]) == 0
    assert capsys.readouterr().err.count(f"warning: {MERGED}") == 1
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["counters"]["read"]["frames_merged"] == 60
    assert f"60 {MERGED}" in manifest["notes"]
    assert manifest["complete"] is True


def test_jumbo_frames_are_no_merged_ones(tmp_path: Path) -> None:
    path = write(tmp_path / "x", [60, 1514, 4096, 8192, 9014, 9018, 9216, 9234, LONGEST] * 40)
    report = run_captures(path, Config(), out=tmp_path / "out")
    assert report.totals.counters["frames_merged"] == 0
    assert not [note for note in report.manifest["notes"] if "offload" in note]


@pytest.mark.parametrize(
    ("link", "counts"),
    [(ETHERNET, 1), (RAW, 1), (COOKED, 1), (COOKED2, 1), (LOOPBACK, 0), (NFLOG, 0)],
)
def test_links_that_merge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], link: int, counts: int
) -> None:
    path = write(tmp_path / "x", [60, 30_000], link)
    assert main(["inspect", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["read"].get("frames_merged", 0) == counts
    assert ("merged" in [hint["reason"] for hint in facts["hints"]]) == bool(counts)
