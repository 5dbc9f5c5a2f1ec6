# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Packets out of `zanon-net packets`, next to a copy of the file and to dpkt.

`all flows` releases every name at z = 1, so every packet leaves. The job on dpkt decodes each
packet, replaces both addresses, and writes the packet. bench/packets.py compares with programs.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from measuring import Measure, Size, peer
from traces import trace_of
from turns import cut

import zanon_net

OCTETS = 30_000_000
DPKT_PART = 20
COPY, DPKT = "copy of the file", "dpkt"
ALL = {"z": 1, "evidence": "any"}
WAYS: dict[str, dict[str, object]] = {
    "cut": {"payload": "cut"},
    "zeros": {"payload": "zero"},
    "cut, all flows": {"payload": "cut", **ALL},
    "zeros, all flows": {"payload": "zero", **ALL},
}


@pytest.fixture
def folder(memory: Path) -> Iterator[Path]:
    """Yields a folder in memory for the output."""
    with TemporaryDirectory(dir=memory) as name:
        yield Path(name)


def rewrite(source: Path, out: Path) -> None:
    """Replaces the addresses of each packet with dpkt."""
    import dpkt  # type: ignore[import-untyped]

    known: dict[bytes, bytes] = {}
    with source.open("rb") as reader, out.open("wb") as file:
        writer = dpkt.pcap.Writer(file)
        for t, frame in dpkt.pcap.Reader(reader):
            ethernet = dpkt.ethernet.Ethernet(frame)
            ip = ethernet.data
            for end in ("src", "dst"):
                old = getattr(ip, end)
                new = known.setdefault(old, len(known).to_bytes(len(old), "big"))
                setattr(ip, end, new)
            writer.writepkt(bytes(ethernet), t)


@pytest.mark.parametrize("profile", ["isp", "modern"])
@pytest.mark.parametrize("who", [*WAYS, peer(COPY), peer(DPKT)])
def test_packets(profile: str, who: str, size: Size, folder: Path, measure: Measure) -> None:
    octets = size.of(OCTETS)
    trace = trace_of(profile, octets)
    source, packets = trace.path, trace.packets
    out = folder / "out.pcap"
    if who == DPKT:
        source = folder / "part.pcap"
        packets, _octets = cut(trace.path, source, octets // DPKT_PART)

    def ours(source: Path, out: Path) -> None:
        zanon_net.packets(source, out, **WAYS[who])

    def prepare() -> tuple[Path, Path]:
        for old in folder.glob("out.*"):
            old.unlink()
        return source, out

    jobs: dict[str, Callable[[Path, Path], object]] = {COPY: shutil.copyfile, DPKT: rewrite}
    facts = {"MB out:": lambda: f"{out.stat().st_size / 1e6:.1f}"}
    measure(f"packets: {profile}", jobs.get(who, ours), packets, prepare=prepare, **facts)
