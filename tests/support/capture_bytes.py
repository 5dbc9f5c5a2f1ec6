# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Captures byte by byte, right or wrong, for tests of the reader: pcap records, pcapng blocks."""

import struct
from collections.abc import Sequence
from pathlib import Path

from zanon_net import _core

Frames = list[tuple[int, int, int, bytes]]

SECTION, INTERFACE, PACKET, SIMPLE, ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
TSRESOL, TSOFFSET = 9, 14
PCAP_MICROSECONDS, PCAP_NANOSECONDS = 0xA1B2C3D4, 0xA1B23C4D


def pcap_header(
    order: str = "<",
    *,
    magic: int = PCAP_MICROSECONDS,
    version: tuple[int, int] = (2, 4),
    link_type: int = 1,
) -> bytes:
    return struct.pack(order + "IHHiIII", magic, *version, 0, 0, 65535, link_type)


def pcap_record(
    order: str,
    seconds: int,
    fraction: int,
    data: bytes,
    *,
    captured: int | None = None,
    wire: int | None = None,
) -> bytes:
    """A record; `captured` and `wire` default to the length of its data."""
    captured = len(data) if captured is None else captured
    wire = len(data) if wire is None else wire
    return struct.pack(order + "IIII", seconds, fraction, captured, wire) + data


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def block(order: str, kind: int, body: bytes, *, after: int | None = None) -> bytes:
    """A pcapng block; `after` is the trailing length where it is not the leading one."""
    length = len(body) + 12
    after = length if after is None else after
    return struct.pack(order + "II", kind, length) + body + struct.pack(order + "I", after)


def section(order: str = "<", *, version: tuple[int, int] = (1, 0), options: bytes = b"") -> bytes:
    body = struct.pack(order + "IHHq", 0x1A2B3C4D, *version, -1)
    return block(order, SECTION, body + options)


def option(order: str, code: int, value: bytes) -> bytes:
    return struct.pack(order + "HH", code, len(value)) + padded(value)


def interface(
    order: str = "<", *, link_type: int = 1, snaplen: int = 0, options: bytes = b""
) -> bytes:
    return block(order, INTERFACE, struct.pack(order + "HHI", link_type, 0, snaplen) + options)


def enhanced(
    order: str,
    ticks: int,
    data: bytes,
    *,
    number: int = 0,
    wire: int | None = None,
    options: bytes = b"",
) -> bytes:
    """An enhanced packet block of interface `number`, `ticks` in its unit of time."""
    wire = len(data) if wire is None else wire
    head = struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), wire)
    return block(order, ENHANCED, head + padded(data) + options)


def obsolete(order: str, ticks: int, data: bytes, *, number: int = 0) -> bytes:
    size = len(data)
    head = struct.pack(order + "HHIIII", number, 0, ticks >> 32, ticks & 0xFFFFFFFF, size, size)
    return block(order, PACKET, head + padded(data))


def simple(order: str, data: bytes, *, wire: int | None = None) -> bytes:
    wire = len(data) if wire is None else wire
    return block(order, SIMPLE, struct.pack(order + "I", wire) + padded(data))


def read_all(capture: _core.Capture, batch: int = 64) -> tuple[Frames, str | None]:
    """All frames of an open capture, and the warning that it ends with."""
    frames: Frames = []
    while more := capture.frames(batch):
        frames += more
    return frames, capture.warning


def read_bytes(data: bytes, batch: int = 64) -> tuple[Frames, str | None]:
    with _core.Capture(data=data) as capture:
        return read_all(capture, batch)


def write_capture(path: Path, frames: Sequence[bytes], links: Sequence[int]) -> None:
    """A pcapng file with an interface for each link type, a frame a second."""
    interfaces = sorted(set(links))
    blocks = [section(), *(interface(link_type=link) for link in interfaces)]
    for second, (frame, link) in enumerate(zip(frames, links, strict=True)):
        blocks.append(enhanced("<", second * 10**6, frame, number=interfaces.index(link)))
    path.write_bytes(b"".join(blocks))
