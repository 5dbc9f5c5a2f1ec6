# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Packets without tshark: pcap and pcapng, Ethernet, IP, TCP, UDP, and names of TLS, HTTP and DNS.

The reader reports fragments, tunnels and other links as dark frames. Flows of QUIC have no name.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

from zanon_net.audit.raw.messages import Stream, dns_message
from zanon_net.audit.raw.packets import RST, SYN, TCP, UDP, Frame, Packet, Query, Read, Said
from zanon_net.errors import FormatError

MICRO, NANO = 0xA1B2C3D4, 0xA1B23C4D
SECTION, INTERFACE, SIMPLE, ENHANCED = 0x0A0D0D0A, 1, 3, 6
RESOLUTION, OFFSET = 9, 14  # options of an interface
BLOCK_MAX = 16 << 20
ETHERNET, RAW_LINKS, LINUX = 1, (12, 14, 101, 228, 229), 113
TAGS = (0x8100, 0x88A8, 0x9100)
IPV4, IPV6 = 0x0800, 0x86DD
EXTENSIONS = (0, 43, 60)  # hop by hop, routing, options
SILENT_TYPES = (0x0806, 0x88CC, 0x9000, 0x888E)  # ARP, LLDP, loop, EAPOL
SILENT_PROTOCOLS = (1, 2, 58, 89)  # ICMP, IGMP, ICMPv6, OSPF
DNS_PORT = 53
STREAMS_MOST = 1 << 16

Raw = tuple[int, int, bytes, bool]  # time, link, bytes, whether all were captured
CUT = -1  # link of a frame that is missing
AT_CUT: Raw = (0, CUT, b"", False)
SEGMENT = struct.Struct(">HHIIBB")


def read(path: Path) -> Iterator[Read]:
    """Yields the packets of a capture. Raises FormatError for another format."""
    decoder = Decoder()
    with path.open("rb") as file:
        last_ns = 0
        for t_ns, link, data, whole in frames(file, path):
            if link == CUT:
                yield Frame(last_ns, dark=False, cut=True)
                return
            last_ns = t_ns
            yield decoder.packet(t_ns, link, data, whole)


def frames(file: BinaryIO, path: Path) -> Iterator[Raw]:
    """Yields the frames of a capture, and AT_CUT where the capture is cut."""
    head = file.read(24)
    for order in "<", ">":
        if len(head) < 24:
            break
        (magic,) = struct.unpack_from(f"{order}I", head)
        if magic in (MICRO, NANO):
            unit = 1000 if magic == MICRO else 1
            yield from pcap_frames(file, order, unit, struct.unpack_from(f"{order}I", head, 20)[0])
            return
    if head[:4] != b"\n\r\r\n":
        raise FormatError(f"{path} is neither pcap nor pcapng; install tshark to read it")
    file.seek(0)
    yield from pcapng_frames(file)


def pcap_frames(file: BinaryIO, order: str, unit: int, link: int) -> Iterator[Raw]:
    """Yields the frames of a pcap file."""
    record = struct.Struct(f"{order}IIII")
    while len(head := file.read(16)) == 16:
        seconds, fraction, size, wire = record.unpack(head)
        data = file.read(size) if size <= BLOCK_MAX else b""
        if len(data) < size:
            yield AT_CUT
            return
        yield seconds * 10**9 + fraction * unit, link & 0xFFFF, data, size >= wire
    if head:
        yield AT_CUT


def pcapng_frames(file: IO[bytes]) -> Iterator[Raw]:
    """Yields the frames of a pcapng file."""
    order, interfaces = "<", list[tuple[int, int, int]]()
    while len(head := file.read(8)) == 8:
        mark = b""
        if head[:4] == b"\n\r\r\n":
            mark = file.read(4)
            order = "<" if mark == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces = []
        kind, size = struct.unpack(f"{order}II", head)
        left = size - 12 - len(mark)
        body = mark + file.read(left) if 0 <= left <= BLOCK_MAX else b""
        if len(body) + 12 != size or len(file.read(4)) < 4:
            yield AT_CUT
            return
        if kind == INTERFACE:
            interfaces.append(interface(body, order))
        elif kind == ENHANCED and len(body) >= 20:
            number, high, low, captured, wire = struct.unpack_from(f"{order}IIIII", body)
            if number < len(interfaces):
                link, per_second, offset = interfaces[number]
                t_ns = (high << 32 | low) * 10**9 // per_second + offset * 10**9
                yield t_ns, link, body[20 : 20 + captured], captured >= wire
    if head:
        yield AT_CUT


def interface(body: bytes, order: str) -> tuple[int, int, int]:
    """Returns an interface's link, ticks per second, and offset in seconds."""
    (link,) = struct.unpack_from(f"{order}H", body)
    per_second, offset, at = 10**6, 0, 8
    while at + 4 <= len(body):
        code, size = struct.unpack_from(f"{order}HH", body, at)
        value = body[at + 4 : at + 4 + size]
        if code == RESOLUTION and value:
            per_second = 2 ** (value[0] & 127) if value[0] & 128 else 10 ** value[0]
        elif code == OFFSET and len(value) == 8:
            (offset,) = struct.unpack(f"{order}q", value)
        at += 4 + size + -size % 4
        if code == 0:
            break
    return link, per_second, offset


class Decoder:
    """From frames to packets. It keeps the streams in which a message has begun."""

    def __init__(self) -> None:
        self._streams: dict[tuple[bytes, int, bytes, int], Stream | None] = {}

    def packet(self, t_ns: int, link: int, data: bytes, whole: bool) -> Read:
        """Returns what a frame says."""
        try:
            kind, at = network(link, data)
            if kind == IPV4:
                return self._four(t_ns, data, at, whole)
            if kind == IPV6:
                return self._six(t_ns, data, at, whole)
        except (IndexError, struct.error):
            return Frame(t_ns, dark=True)
        return Frame(t_ns, dark=kind not in SILENT_TYPES and kind >= 0x600)

    def _four(self, t_ns: int, data: bytes, at: int, whole: bool) -> Read:
        size = int.from_bytes(data[at + 2 : at + 4])
        protocol, end = data[at + 9], at + size if size else len(data)
        if int.from_bytes(data[at + 6 : at + 8]) & 0x3FFF or protocol not in (TCP, UDP):
            return Frame(t_ns, dark=protocol not in SILENT_PROTOCOLS)
        source, target = data[at + 12 : at + 16], data[at + 16 : at + 20]
        return self._transport(t_ns, protocol, source, target, data, at + 4 * (data[at] & 15), end)

    def _six(self, t_ns: int, data: bytes, at: int, whole: bool) -> Read:
        protocol, end = data[at + 6], at + 40 + int.from_bytes(data[at + 4 : at + 6])
        source, target = data[at + 8 : at + 24], data[at + 24 : at + 40]
        at += 40
        while protocol in EXTENSIONS:
            protocol, at = data[at], at + 8 + 8 * data[at + 1]
        if protocol not in (TCP, UDP):
            return Frame(t_ns, dark=protocol not in SILENT_PROTOCOLS)
        return self._transport(t_ns, protocol, source, target, data, at, end)

    def _transport(
        self,
        t_ns: int,
        protocol: int,
        source: bytes,
        target: bytes,
        data: bytes,
        at: int,
        end: int,
    ) -> Read:
        if protocol == UDP:
            source_port, target_port, size = struct.unpack_from(">HHH", data, at)
            queries: tuple[Query, ...] = ()
            if DNS_PORT in (source_port, target_port):
                query = dns_message(data[at + 8 : at + size])
                queries = (query,) if query is not None else ()
            return Packet(
                t_ns, UDP, source, source_port, target, target_port, length=max(size - 8, 0),
                queries=queries,
            )  # fmt: skip
        source_port, target_port, sequence, ack, offset, flags = SEGMENT.unpack_from(data, at)
        start = at + (offset >> 4) * 4
        length = max(end - start, 0)
        said: tuple[Said, ...] = ()
        queries = ()
        key = (source, source_port, target, target_port)
        if flags & (SYN | RST):
            self._streams.pop(key, None)
            if flags & SYN and len(self._streams) < STREAMS_MOST:
                self._streams[key] = Stream((sequence + 1) % 2**32, target_port == DNS_PORT)
        elif length:
            stream = self._stream(key, sequence)
            if stream is not None:
                said, queries = stream.take(sequence, data[start:end])
                if stream.over:
                    self._streams[key] = None
        return Packet(
            t_ns, TCP, source, source_port, target, target_port, flags, sequence, ack, length,
            said=said, queries=queries,
        )  # fmt: skip

    def _stream(self, key: tuple[bytes, int, bytes, int], sequence: int) -> Stream | None:
        if key not in self._streams:
            if len(self._streams) >= STREAMS_MOST:
                self._streams.pop(next(iter(self._streams)))
            self._streams[key] = Stream(sequence, key[3] == DNS_PORT)
        return self._streams[key]


def network(link: int, data: bytes) -> tuple[int, int]:
    """Returns the kind of the packet in a frame, and its place; 0: none."""
    if link == ETHERNET:
        kind, at = int.from_bytes(data[12:14]), 14
        while kind in TAGS:
            kind, at = int.from_bytes(data[at + 2 : at + 4]), at + 4
        return kind, at
    if link in RAW_LINKS:
        return (IPV6 if data[0] >> 4 == 6 else IPV4), 0
    if link == LINUX:
        return int.from_bytes(data[14:16]), 16
    return 0xFFFF, 0
