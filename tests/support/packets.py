# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Conversations for tests of the whole engine, segment by segment, with times."""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self

from support import wire

MS, SECOND, MINUTE, HOUR = 10**6, 10**9, 60 * 10**9, 3600 * 10**9
DAY = 24 * HOUR
START = 472_222 * HOUR  # in November 2023, at a full hour
IPV4_SOURCE = 26  # its offset in an Ethernet frame

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
CLIENT, SERVER = 0, 1
SERVER_ADDRESS = "198.51.100.7"
NAMED_AFTER_NS = 3 * MS  # after the start of a visit


@dataclass(frozen=True, slots=True)
class Frame:
    """Bytes on the link at a time; `wire` is their length before a snapshot length cut them."""

    t_ns: int
    data: bytes
    wire: int

    def cut(self, length: int) -> "Frame":
        """The frame as a capture with this snapshot length has it."""
        return Frame(self.t_ns, self.data[:length], self.wire)


@dataclass(frozen=True, slots=True)
class Unit:
    """A packet as a flow sees it; `sender` is an index into `ports`, numbers do not wrap."""

    t_ns: int
    ports: tuple[int, int]
    sender: int
    tcp: bool
    flags: int = 0
    seq: int = 0
    ack: int = 0
    length: int = 0


def user(n: int) -> str:
    """The address of the n-th client; n < 2**16."""
    return f"10.7.{n >> 8}.{n & 255}"


@lru_cache(1 << 12)
def hello(host: bytes | None, *more: bytes, record_version: int = 0x0301) -> bytes:
    """A TLS record with a ClientHello for `host`; `more`: further extensions."""
    names = () if host is None else (wire.server_name(host),)
    return wire.record(wire.client_hello(*names, *more), record_version)


def request(host: bytes | None, method: bytes = b"GET") -> bytes:
    """An HTTP request head."""
    host_line = b"" if host is None else b"Host: " + host + b"\r\n"
    return method + b" / HTTP/1.1\r\n" + host_line + b"\r\n"


def dns(
    name: bytes,
    *,
    ident: int = 7,
    kind: int = 1,
    response: bool = False,
    answers: Sequence[bytes] = (),
) -> bytes:
    """A DNS message with one question for `name`, its labels separated by dots."""
    flags = 0x8180 if response else 0x0100
    counts, rest = (1, len(answers), 0, 0), b"".join(answers)
    question = wire.dns_name(*name.split(b"."))
    message = wire.dns_message(question, flags=flags, counts=counts, kind=kind, rest=rest)
    return struct.pack(">H", ident) + message[2:]


def to_ip(
    transport: bytes, protocol: int, addresses: tuple[str, str], options: bytes = b""
) -> tuple[bytes, int]:
    """(the IP packet of either family, its ethertype)."""
    if ":" not in addresses[0]:
        packet = wire.ipv4(transport, protocol, addresses=addresses, options=options)
        return packet, wire.ETHERTYPE_IPV4
    return wire.ipv6(transport, protocol, addresses=addresses), wire.ETHERTYPE_IPV6


def tcp_segment(
    ports: tuple[int, int], flags: int, seq: int, ack: int = 0, payload: bytes = b""
) -> bytes:
    """A segment; numbers wrap at 2**32."""
    numbers = seq % 2**32, ack % 2**32 if flags & ACK else 0
    return struct.pack(">HHIIHHHH", *ports, *numbers, 5 << 12 | flags, 8192, 0, 0) + payload


@dataclass(slots=True)
class _Talk:
    """Two endpoints; each packet they send moves time by `step_ns`."""

    client: str = "10.7.0.1"
    server: str = SERVER_ADDRESS
    ports: tuple[int, int] = (40000, 443)
    t_ns: int = START
    step_ns: int = MS
    tags: Sequence[int] = ()
    options: bytes = b""
    frames: list[Frame] = field(default_factory=list)

    def _send(self, side: int, transport: bytes, protocol: int) -> None:
        ends = (self.client, self.server)
        packet, kind = to_ip(transport, protocol, (ends[side], ends[1 - side]), self.options)
        data = wire.ethernet(packet, kind, self.tags)
        self.frames.append(Frame(self.t_ns, data, len(data)))
        self.t_ns += self.step_ns

    def wait(self, ns: int) -> Self:
        """Moves time."""
        self.t_ns += ns
        return self


@dataclass(slots=True)
class Tcp(_Talk):
    """A TCP connection, as whole or as broken as a test wants it."""

    next: list[int] = field(default_factory=lambda: [1000, 500_000])

    def segment(
        self,
        side: int,
        flags: int,
        payload: bytes = b"",
        *,
        seq: int | None = None,
        ack: int | None = None,
    ) -> Self:
        """One segment. A given `seq` leaves the side's next sequence number as it is."""
        seq_no = self.next[side] if seq is None else seq
        ack_no = self.next[1 - side] if ack is None else ack
        ports = self.ports if side == CLIENT else self.ports[::-1]
        self._send(side, tcp_segment(ports, flags, seq_no, ack_no, payload), wire.TCP)
        if seq is None:
            self.next[side] += len(payload) + (flags & SYN != 0) + (flags & FIN != 0)
        return self

    def handshake(self) -> Self:
        """SYN, SYN-ACK, ACK."""
        return self.segment(CLIENT, SYN).segment(SERVER, SYN | ACK).segment(CLIENT, ACK)

    def say(self, payload: bytes, side: int = CLIENT) -> Self:
        """Data that the other side acknowledges."""
        return self.segment(side, PSH | ACK, payload).segment(1 - side, ACK)

    def close(self) -> Self:
        """FIN both ways, acknowledged."""
        self.segment(CLIENT, FIN | ACK).segment(SERVER, FIN | ACK)
        return self.segment(CLIENT, ACK)


@dataclass(slots=True)
class Udp(_Talk):
    """Datagrams between two ports."""

    ports: tuple[int, int] = (40000, 53)

    def send(self, payload: bytes, side: int = CLIENT) -> Self:
        """One datagram."""
        ports = self.ports if side == CLIENT else self.ports[::-1]
        self._send(side, wire.udp(payload, ports=ports), wire.UDP)
        return self

    def lookup(self, name: bytes, *, ident: int = 7, kind: int = 1) -> Self:
        """A question and its answer."""
        self.send(dns(name, ident=ident, kind=kind))
        return self.send(dns(name, ident=ident, kind=kind, response=True), SERVER)


def patched(frame: Frame, at: int, value: bytes, t_ns: int) -> Frame:
    """The frame with other bytes in one place, at another time."""
    data = frame.data[:at] + value + frame.data[at + len(value) :]
    return Frame(t_ns, data, frame.wire)


def visit(client: str, host: bytes, t_ns: int, server: str = SERVER_ADDRESS) -> list[Frame]:
    """A whole TLS connection; its name counts at NAMED_AFTER_NS."""
    talk = Tcp(client, server, t_ns=t_ns).handshake().say(hello(host))
    return talk.say(b"\x17\x03\x03\0\x04data", SERVER).close().frames


def crowd(
    host: bytes, n: int, t_ns: int = START, *, first: int = 0, server: str = SERVER_ADDRESS
) -> list[Frame]:
    """n clients that visit `host` one after the other, 20 ms apart."""
    return merged(visit(user(first + i), host, t_ns + 20 * i * MS, server) for i in range(n))


def merged(talks: Iterable[Sequence[Frame]]) -> list[Frame]:
    """All frames in order of time."""
    return sorted((frame for talk in talks for frame in talk), key=lambda frame: frame.t_ns)
