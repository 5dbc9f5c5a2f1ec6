# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of equal packets in another file format, or inside other headers.

Usage: python bench/formats.py [--bytes 300M] [--repeat 5]

Browsing traffic is generated once, as a pcap of Ethernet frames, and written again in each form.
The whole job (`ours` of throughput_tools.py) reads them in turn; medians of CPU time. Ends with 1
if a form shows other names than the plain form.
"""

import argparse
import json
import os
import platform
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from throughput import own, spend

HERE = Path(__file__).resolve().parent
WRITE_BYTES = 1 << 22
ETHERNET, RAW, SLL = 1, 101, 113
OUTER = bytes([192, 0, 2, 1, 192, 0, 2, 2])
Record = tuple[int, int, bytes]


def records(trace: Path) -> Iterator[Record]:
    """Seconds, microseconds and frame of each record of a little-endian pcap."""
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
    """Returns the frame's packet as a mobile network carries it: in GTP-U without a sequence
    number."""
    return in_udp(frame, 2152, struct.pack(">BBHI", 48, 255, len(frame) - 14, 7) + frame[14:])


# Each form: its link type, and the function that changes a frame.
HEADERS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "pcap": (ETHERNET, lambda f: f),
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


def pcap(seconds: int, fraction: int, frame: bytes) -> bytes:
    """Returns a record."""
    return struct.pack("<4I", seconds, fraction, len(frame), len(frame)) + frame


def pcapng(seconds: int, fraction: int, frame: bytes) -> bytes:
    """Returns an enhanced packet block."""
    ticks, padding = seconds * 1_000_000 + fraction, bytes(-len(frame) % 4)
    length = 32 + len(frame) + len(padding)
    times = (ticks >> 32, ticks & 0xFFFFFFFF)
    head = struct.pack("<7I", 6, length, 0, *times, len(frame), len(frame))
    return head + frame + padding + struct.pack("<I", length)


def write(trace: Path, form: str, out: Path) -> int:
    """Writes the trace in another form, in the page cache and on the disk; returns its packets."""
    link, change = HEADERS.get(form, HEADERS["pcap"])
    header, record = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, link), pcap
    if form == "pcapng":
        header = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
        header += struct.pack("<IIHHII", 1, 20, link, 0, 1 << 18, 20)
        record = pcapng
    packets = 0
    with out.open("wb", buffering=WRITE_BYTES) as file:
        file.write(header)
        for seconds, fraction, frame in records(trace):
            file.write(record(seconds, fraction, change(frame)))
            packets += 1
        file.flush()
        os.fsync(file.fileno())
    return packets


def names_of(trace: Path) -> str:
    """Returns the digest of the trace's names."""
    _, text = spend(own("names")(trace), reports=False)
    return str(json.loads(text.splitlines()[-1])["names_sha256"])


def measure(trace: Path, repeat: int) -> bool:
    """Prints a row for each form; returns true if the names are equal in all."""
    wanted, same, plain_ns = names_of(trace), True, 0.0
    print("| form | ns a packet | ratio |\n|---|---:|---:|")
    for form in ("pcap", "pcapng", *list(HEADERS)[1:]):
        form_trace = trace.with_name("form")
        packets = write(trace, form, form_trace)
        turns = [spend(own("ours")(form_trace), reports=True)[0] for _ in range(repeat)]
        each_ns = statistics.median(turn.cpu_s for turn in turns) / packets * 1e9
        plain_ns = plain_ns or each_ns
        right = names_of(form_trace) == wanted
        same &= right
        print(f"| {form} | {each_ns:.0f} | {each_ns / plain_ns:.2f} |"
              + ("" if right else " OTHER NAMES"), flush=True)  # fmt: skip
    return same


def main() -> int:
    """Measures; returns 1 if a form shows other names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bytes", default="300M", metavar="300M")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} cores, {platform.platform()}\n")
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "isp.pcap"
        command = [sys.executable, str(HERE / "gen_trace.py"), str(trace)]
        subprocess.run([*command, "--bytes", arguments.bytes], check=True)
        return 0 if measure(trace, arguments.repeat) else 1


if __name__ == "__main__":
    sys.exit(main())
