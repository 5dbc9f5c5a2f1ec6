# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The contract's model reads a capture: from frames to TCP and UDP, however deep they lie.

Headers are well-formed: VLAN tags, IPv4 and IPv6, tunnels, extension headers, fragments.
"""

import ipaddress
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from support import wire
from support.packets import SECOND, Frame, Unit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Pair = tuple[Address, Address]  # source and destination

TAGS = (0x8100, 0x88A8)
HOP_BY_HOP, IP_IN_IP, IPV6_IN_IP, ROUTING, FRAGMENT, GRE, AH, OPTIONS = 0, 4, 41, 43, 44, 47, 51, 60
VXLAN_PORT, GTP_PORT = 4789, 2152
PATIENCE_NS = 30 * SECOND  # after which an incomplete datagram is given up


class End(NamedTuple):
    """One side of a flow."""

    address: Address
    port: int


@dataclass(frozen=True, slots=True)
class Packet(Unit):
    """A packet; `ports` only tells flows apart, `sender` is an index into it and into `ends`."""

    ends: tuple[End, End] = (End(ipaddress.IPv4Address(0), 0),) * 2
    payload: bytes = b""
    outer: tuple[Pair, ...] = ()  # of the IP headers around it, the outermost first


class Ip(NamedTuple):
    """An IP packet; a fragment's place and number say where it belongs."""

    ends: Pair
    protocol: int
    rest: bytes
    place: int = 0  # in eights, and whether more come
    number: int = 0


def behind_extensions(protocol: int, rest: bytes) -> tuple[int, bytes]:
    """(protocol, bytes) after extension headers, or after the first fragment header (RFC 8200, 4;
    RFC 4302, 2)."""
    while protocol in (HOP_BY_HOP, ROUTING, AH, OPTIONS):
        size = 8 + (4 if protocol == AH else 8) * rest[1]
        protocol, rest = rest[0], rest[size:]
    return protocol, rest


def ip_of(packet: bytes) -> Ip:
    """Reads a packet's IP headers."""
    if packet[0] >> 4 == 4:
        total, number, place = struct.unpack(">HHH", packet[2:8])
        addresses, header = (packet[12:16], packet[16:20]), 4 * (packet[0] & 15)
        protocol, rest = packet[9], packet[header:total]
        fragment = (place & 0x1FFF) << 1 | place >> 13 & 1
    else:
        addresses = (packet[8:24], packet[24:40])
        (size,) = struct.unpack(">H", packet[4:6])
        protocol, rest = behind_extensions(packet[6], packet[40 : 40 + size])
        fragment = number = 0
        if protocol == FRAGMENT:
            protocol, _, place, number = struct.unpack(">BBHI", rest[:8])
            rest, fragment = rest[8:], (place >> 3) << 1 | place & 1
    ends = ipaddress.ip_address(addresses[0]), ipaddress.ip_address(addresses[1])
    if not fragment:
        protocol, rest = behind_extensions(protocol, rest)
    return Ip(ends, protocol, rest, fragment, number)


def in_ethernet(frame: bytes) -> bytes:
    """The IP packet of a frame, behind its VLAN tags."""
    at = 12
    while int.from_bytes(frame[at : at + 2]) in TAGS:
        at += 4
    return frame[at + 2 :]


def carried(ip: Ip) -> bytes | None:
    """The IP packet inside a tunnel's packet; None if `ip` is no tunnel's."""
    if ip.protocol in (IP_IN_IP, IPV6_IN_IP):
        return ip.rest
    if ip.protocol == GRE:
        return ip.rest[4:]
    if ip.protocol == wire.UDP and int.from_bytes(ip.rest[2:4]) == VXLAN_PORT:
        return in_ethernet(ip.rest[16:])
    if ip.protocol == wire.UDP and int.from_bytes(ip.rest[2:4]) == GTP_PORT:
        return ip.rest[16:]
    return None


@dataclass(slots=True)
class Parts:
    """Fragments of a datagram, by place; the first one came at t_ns."""

    t_ns: int
    known: dict[int, bytes] = field(default_factory=dict)
    end: int | None = None

    def add(self, place: int, data: bytes) -> bytes | None:
        """The datagram, once it is whole."""
        self.known[place >> 1 << 3] = data
        if not place & 1:
            self.end = (place >> 1 << 3) + len(data)
        at, whole = 0, b""
        while self.known.get(at):
            whole += self.known[at]
            at = len(whole)
        return whole if at == self.end else None


class Reader:
    """Frames in order of time."""

    def __init__(self) -> None:
        self.parts: dict[object, Parts] = {}

    def read(self, frames: Sequence[Frame]) -> Iterator[Packet]:
        """The packets of TCP and UDP; one in fragments comes with its last one."""
        for frame in frames:
            packet = self._peel(frame)
            if packet is not None:
                yield packet

    def _peel(self, frame: Frame) -> Packet | None:
        inside: bytes | None = in_ethernet(frame.data)
        outer: list[Pair] = []
        while inside is not None:
            ip = ip_of(inside)
            if ip.place:
                whole = self._join(frame.t_ns, ip, tuple(outer))
                if whole is None:
                    return None
                ip = whole
            inside = carried(ip)
            outer.append(ip.ends)
        return transport(frame.t_ns, ip, tuple(outer[:-1]))

    def _join(self, t_ns: int, ip: Ip, outer: tuple[Pair, ...]) -> Ip | None:
        """Joins fragments by their ends, number, protocol, and the tunnels they came through."""
        which = (outer, ip.ends, ip.number, ip.protocol)
        parts = self.parts.get(which)
        if parts is None or t_ns - parts.t_ns > PATIENCE_NS:
            parts = self.parts[which] = Parts(t_ns)
        whole = parts.add(ip.place, ip.rest)
        if whole is None:
            return None
        del self.parts[which]
        return Ip(ip.ends, *behind_extensions(ip.protocol, whole))


def transport(t_ns: int, ip: Ip, outer: tuple[Pair, ...]) -> Packet | None:
    """Reads TCP, past its options, or UDP."""
    if ip.protocol not in (wire.TCP, wire.UDP):
        return None
    rest = ip.rest
    ends = [End(a, p) for a, p in zip(ip.ends, struct.unpack(">HH", rest[:4]), strict=True)]
    keys = [int(end.address) << 16 | end.port for end in ends]
    sender = int(keys[0] > keys[1])
    placed = (ends[sender], ends[1 - sender])
    flow = (keys[sender], keys[1 - sender])
    if ip.protocol == wire.UDP:
        udp = (flow, sender, False, 0, 0, 0, len(rest) - 8)
        return Packet(t_ns, *udp, placed, rest[8:], outer)
    seq, ack, bits = struct.unpack(">IIH", rest[4:14])
    payload = rest[4 * (bits >> 12) :]
    tcp = (flow, sender, True, bits & 0x3F, seq, ack, len(payload))
    return Packet(t_ns, *tcp, placed, payload, outer)
