# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Files of anonymized packets, read by a few lines of their own."""

import struct
from collections.abc import Iterator

from support.packets import SECOND, Frame

PCAP_NS, PCAP_US = 0xA1B23C4D, 0xA1B2C3D4
SECTION, INTERFACE, ENHANCED = 0x0A0D0D0A, 1, 6
ETHERNET, TIME_UNIT, END = 1, 9, 0
HEADER_BYTES = 24  # of a pcap file


def records(data: bytes, unit_ns: int = 1) -> Iterator[Frame]:
    """The records behind the header of a pcap file of this machine."""
    at = 0
    while at < len(data):
        seconds, fraction, captured, wire = struct.unpack_from("=IIII", data, at)
        at += 16 + captured
        assert at <= len(data), "a record ends behind the file"
        yield Frame(seconds * SECOND + fraction * unit_ns, data[at - captured : at], wire)


def blocks(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(type, body) of the blocks of a pcapng file of this machine."""
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("=II", data, at)
        assert length % 4 == 0
        assert data[at + length - 4 : at + length] == struct.pack("=I", length)
        yield kind, data[at + 8 : at + length - 4]
        at += length


def options(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(code, value) of a block's options."""
    while data:
        code, length = struct.unpack_from("=HH", data)
        if code == END:
            return
        yield code, data[4 : 4 + length]
        data = data[4 + length + -length % 4 :]


def packets(data: bytes) -> list[Frame]:
    """The frames of a file, pcap with nanoseconds or pcapng, of which any other kind fails."""
    magic = int.from_bytes(data[:4], "little")
    if magic in (PCAP_NS, PCAP_US):
        assert struct.unpack_from("=HHiII", data, 4)[:4] == (2, 4, 0, 0)
        assert struct.unpack_from("=I", data, 20)[0] == ETHERNET
        return list(records(data[HEADER_BYTES:], 1 if magic == PCAP_NS else 1000))
    return list(enhanced(data))


def enhanced(data: bytes) -> Iterator[Frame]:
    """The frames of a pcapng file with one section and one interface of Ethernet."""
    unit = 10**6
    for n, (kind, body) in enumerate(blocks(data)):
        assert (kind == SECTION) == (n == 0)
        if kind == INTERFACE:
            assert n == 1
            assert struct.unpack_from("=H", body)[0] == ETHERNET
            told = dict(options(body[8:]))
            assert told.keys() <= {TIME_UNIT}
            unit = 10 ** told.get(TIME_UNIT, b"\6")[0]
        elif kind == ENHANCED:
            number, high, low, captured, wire = struct.unpack_from("=IIIII", body)
            assert number == 0
            assert len(body) == 20 + captured + -captured % 4
            ticks = high << 32 | low
            yield Frame(ticks * (SECOND // unit), body[20 : 20 + captured], wire)
        else:
            assert kind == SECTION, f"a block of type {kind}"
