# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Packets in other file formats and inside other headers, next to a pcap of Ethernet frames."""

import json
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from measuring import Measure, Size, peer
from traces import CLOCK, Trace, kept, trace_of
from turns import TOOLS, own

OCTETS = 50_000_000
WRITE_BYTES = 1 << 22
ETHERNET, RAW, SLL = 1, 101, 113
OUTER = bytes([192, 0, 2, 1, 192, 0, 2, 2])
PCAP = "pcap"
Record = tuple[int, int, bytes]


def records(trace: Path) -> Iterator[Record]:
    """Yields seconds, microseconds and frame of each record of a little-endian pcap."""
    with trace.open("rb", buffering=WRITE_BYTES) as file:
        file.seek(24)
        while len(header := file.read(16)) == 16:
            seconds, fraction, captured, _ = struct.unpack("<4I", header)
            yield seconds, fraction, file.read(captured)


def in_ipv4(frame: bytes, protocol: int, payload: bytes) -> bytes:
    """Returns the payload in IPv4 between two routers, with the frame's Ethernet addresses."""
    header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 0, 0, 64, protocol, 0)
    return frame[:12] + b"\x08\x00" + header + OUTER + payload


def in_udp(frame: bytes, port: int, payload: bytes) -> bytes:
    """Returns the payload in UDP to a tunnel's port."""
    return in_ipv4(frame, 17, struct.pack(">4H", 40000, port, 8 + len(payload), 0) + payload)


def in_pppoe(frame: bytes) -> bytes:
    """Returns a frame of a PPPoE session."""
    protocol = b"\x00\x21" if frame[12:14] == b"\x08\x00" else b"\x00\x57"
    length = struct.pack(">H", len(frame) - 12)
    return frame[:12] + b"\x88\x64\x11\x00\x00\x01" + length + protocol + frame[14:]


def in_gtp(frame: bytes) -> bytes:
    """Returns the frame's packet in GTP-U without a sequence number."""
    return in_udp(frame, 2152, struct.pack(">BBHI", 48, 255, len(frame) - 14, 7) + frame[14:])


# Each form: its link type, and the function that changes a frame.
HEADERS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "VLAN": (ETHERNET, lambda f: f[:12] + b"\x81\x00\x00\x05" + f[12:]),
    "QinQ": (ETHERNET, lambda f: f[:12] + b"\x88\xa8\x00\x05\x81\x00\x00\x07" + f[12:]),
    "MPLS": (ETHERNET, lambda f: f[:12] + b"\x88\x47\x00\x01\x01\x40" + f[14:]),
    "PPPoE": (ETHERNET, in_pppoe),
    "raw IP": (RAW, lambda f: f[14:]),
    "Linux cooked": (SLL, lambda f: b"\x00\x00\x00\x01\x00\x06" + f[6:12] + b"\x00\x00" + f[12:]),
    "GRE": (ETHERNET, lambda f: in_ipv4(f, 47, b"\x00\x00" + f[12:])),
    "GTP-U": (ETHERNET, in_gtp),
    "VXLAN": (ETHERNET, lambda f: in_udp(f, 4789, b"\x08\x00\x00\x00\x00\x00\x05\x00" + f)),
}


def pcap_record(seconds: int, fraction: int, frame: bytes) -> bytes:
    """Returns a record of a pcap file."""
    return struct.pack("<4I", seconds, fraction, len(frame), len(frame)) + frame


def pcapng_record(seconds: int, fraction: int, frame: bytes) -> bytes:
    """Returns an enhanced packet block."""
    ticks, padding = seconds * 1_000_000 + fraction, bytes(-len(frame) % 4)
    length = 32 + len(frame) + len(padding)
    times = (ticks >> 32, ticks & 0xFFFFFFFF)
    head = struct.pack("<7I", 6, length, 0, *times, len(frame), len(frame))
    return head + frame + padding + struct.pack("<I", length)


def write(trace: Path, form: str, out: Path) -> None:
    """Writes the trace in another form."""
    link, change = HEADERS.get(form, (ETHERNET, lambda f: f))
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, link)
    record = pcap_record
    if form == "pcapng":
        header = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
        header += struct.pack("<IIHHII", 1, 20, link, 0, 1 << 18, 20)
        record = pcapng_record
    with out.open("wb", buffering=WRITE_BYTES) as file:
        file.write(header)
        for seconds, fraction, frame in records(trace):
            file.write(record(seconds, fraction, change(frame)))


@pytest.mark.benchmark(timer=CLOCK.now)
@pytest.mark.parametrize("who", ["pcapng", *HEADERS, peer(PCAP)])
def test_form(who: str, size: Size, measure: Measure) -> None:
    octets = size.of(OCTETS)
    plain = trace_of("isp", octets)

    def make(path: Path) -> dict[str, object]:
        write(plain.path, who, path)
        return {"packets": plain.packets, "names_sha256": plain.names_sha256}

    trace: Trace = plain if who == PCAP else kept(f"isp-{octets}-{who.replace(' ', '-')}", make)
    command = own("ours")(trace.path)
    measure("captures: isp in other forms", lambda: CLOCK.spend(command, True), trace.packets)
    names = [sys.executable, str(TOOLS), "names", str(trace.path)]
    found = json.loads(CLOCK.spend(names).splitlines()[-1])
    assert found["names_sha256"] == plain.names_sha256
