# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Conversations of a client and a server, made with scapy, and the list of all of them."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet, Raw
from support import wire

FIRST_PORT = 10000  # the client's in the first case; each case has its own port and addresses


class Case(NamedTuple):
    """IP packets in order, and (source, name) of each name that a client shows."""

    packets: list[Packet]
    names: set[tuple[str, str]]


Builder = Callable[["Ends"], Iterable[Packet]]
BUILDERS: dict[str, tuple[Builder, set[tuple[str, str]]]] = {}


def shows(
    name: str, *names: tuple[str, str], nameless: bool = False
) -> Callable[[Builder], Builder]:
    """Registers a builder with each (source, name) that its conversation shows; by default the
    first word of the case's name and <name>.example.org."""

    def register(builder: Builder) -> Builder:
        source = name.partition("-")[0]
        own = {("tls" if source == "dtls" else source, f"{label(name)}.example.org")}
        BUILDERS[name] = builder, set() if nameless else set(names) or own
        return builder

    return register


def label(name: str) -> str:
    """A case's name as a label of a hostname."""
    return name.replace(".", "-")


@dataclass(slots=True)
class Ends:
    """A client and a server, and the bytes that they sent so far."""

    number: int
    host: bytes
    v6: bool = False
    server_port: int = 443
    sent: list[int] = field(default_factory=lambda: [1000, 77_000])

    def ip(self, side: int = 0) -> Packet:
        """The IP header of a packet from the client (0) or the server (1)."""
        high, low = self.number >> 8, self.number & 255
        if self.v6:
            ends = f"fd00::{high:x}:{low:x}", f"2001:db8::{high:x}:{low:x}"
            return IPv6(src=ends[side], dst=ends[1 - side])
        ends = f"10.9.{high}.{low}", f"198.18.{high}.{low}"
        return IP(src=ends[side], dst=ends[1 - side])

    def ports(self, side: int = 0) -> dict[str, int]:
        """The ports of a packet from that side."""
        pair = FIRST_PORT + self.number, self.server_port
        return {"sport": pair[side], "dport": pair[1 - side]}

    def tcp(self, flags: str, data: bytes = b"", side: int = 0, seq: int | None = None) -> Packet:
        """A segment; a given `seq` is relative to the side's first byte and moves nothing."""
        first = (1001, 77_001)[side]
        at = self.sent[side] if seq is None else first + seq
        ack = self.sent[1 - side] if "A" in flags else 0
        header = TCP(**self.ports(side), seq=at % 2**32, ack=ack % 2**32, flags=flags)
        if seq is None:
            self.sent[side] += len(data) + ("S" in flags) + ("F" in flags)
        return self.ip(side) / header / Raw(data) if data else self.ip(side) / header

    def handshake(self) -> list[Packet]:
        """SYN, SYN-ACK, ACK."""
        return [self.tcp("S"), self.tcp("SA", side=1), self.tcp("A")]

    def close(self) -> list[Packet]:
        """FIN both ways."""
        return [self.tcp("FA"), self.tcp("FA", side=1), self.tcp("A")]

    def talk(self, *client: bytes) -> list[Packet]:
        """A connection in which the client sends these payloads, a segment each."""
        opening = self.handshake()
        data = [self.tcp("PA", part) for part in client]
        return [*opening, *data, self.tcp("A", side=1), *self.close()]

    def at(self, *pieces: tuple[int, bytes]) -> list[Packet]:
        """A connection with segments at these offsets, in this order."""
        opening = self.handshake()
        segments = [self.tcp("PA", data, seq=offset) for offset, data in pieces]
        self.sent[0] = 1001 + max(offset + len(data) for offset, data in pieces)
        return [*opening, *segments, self.tcp("A", side=1), *self.close()]

    def udp(self, data: bytes, side: int = 0) -> Packet:
        """A datagram."""
        return self.ip(side) / UDP(**self.ports(side)) / Raw(data)

    def hello(self, *extensions: bytes, **fields: int) -> bytes:
        """A ClientHello message."""
        return wire.client_hello(wire.server_name(self.host), *extensions, **fields)

    def tls(self, *extensions: bytes) -> bytes:
        """The same in a record."""
        return wire.record(self.hello(*extensions))


def split(data: bytes, *cuts: int) -> list[bytes]:
    """The data cut at these places."""
    bounds = [0, *cuts, len(data)]
    return [data[a:b] for a, b in itertools.pairwise(bounds)]


def placed(data: bytes, *cuts: int) -> list[tuple[int, bytes]]:
    """(offset, bytes) of the data cut at these places."""
    bounds = [0, *cuts, len(data)]
    return [(a, data[a:b]) for a, b in itertools.pairwise(bounds)]


def build(name: str, number: int) -> Case:
    """The case, with ports and addresses of its number."""
    builder, names = BUILDERS[name]
    e = Ends(number, f"{label(name)}.example.org".encode())
    return Case([packet.__class__(bytes(packet)) for packet in builder(e)], names)
