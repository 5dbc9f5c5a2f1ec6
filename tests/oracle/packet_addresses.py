# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Every address that anonymized packets hold, and what each may be.

Reads Ethernet, what is around a packet, IP, the packets that ICMP errors quote, and the addresses
in DNS answers. Whatever else a frame has is an error here: nothing but the listed fields may be in
a packet.
"""

import contextlib
import ipaddress
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from oracle import packet_layers

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
TCP, UDP, ICMP, ICMP6 = 6, 17, 1, 58
QUOTING, QUOTING6 = (3, 4, 5, 11, 12), (1, 2, 3, 4)  # types of ICMP errors
A, AAAA = 1, 28

BLOCKS = {
    "client": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"),
    "outside client": ("248.0.0.0/5", "3fff:800::/21"),
    "pair": ("240.0.0.0/5", "3fff::/21"),
    "special": ("224.0.0.0/4", "255.255.255.255/32", "ff00::/8"),
}
NETWORKS = [
    (ipaddress.ip_network(text), block)
    for block, texts in reversed(BLOCKS.items())
    for text in texts
]  # special ones first, as 255.255.255.255 lies in 248.0.0.0/5


class Held(NamedTuple):
    """An address and its place: "ip", "quote", "dns", or "outer" around the packet."""

    place: str
    address: Address


class Ip(NamedTuple):
    """An IP packet without its header."""

    ends: tuple[Address, Address]
    protocol: int
    rest: bytes


def ip_packet(data: bytes) -> Ip:
    """Reads a header of IP. Raises ValueError for one with options or extension headers."""
    version = data[0] >> 4
    if version == 4:
        if data[0] != 0x45:
            raise ValueError("options of IPv4")
        ends = (data[12:16], data[16:20])
        protocol, rest = data[9], data[20 : struct.unpack_from(">H", data, 2)[0]]
    elif version == 6:
        ends, protocol = (data[8:24], data[24:40]), data[6]
        rest = data[40 : 40 + struct.unpack_from(">H", data, 4)[0]]
    else:
        raise ValueError(f"IP of version {version}")
    source, target = map(ipaddress.ip_address, ends)
    return Ip((source, target), protocol, rest)


def quoted(ip: Ip) -> bytes | None:
    """The packet that an ICMP error quotes."""
    errors = QUOTING if ip.protocol == ICMP else QUOTING6 if ip.protocol == ICMP6 else ()
    return ip.rest[8:] if ip.rest and ip.rest[0] in errors else None


def skip_name(data: bytes, at: int) -> int:
    """The place behind a name of DNS (RFC 1035, 4.1.4)."""
    while data[at]:
        if data[at] >= 0xC0:
            return at + 2
        at += 1 + data[at]
    return at + 1


def answers(data: bytes) -> Iterator[Address]:
    """The addresses in the records of a DNS message, as far as it can be read."""
    _ident, flags, questions, *counts = struct.unpack_from(">6H", data)
    if not flags & 0x8000:
        return
    at = 12
    for _ in range(questions):
        at = skip_name(data, at) + 4
    for _ in range(sum(counts)):
        at = skip_name(data, at)
        kind, _class, _ttl, size = struct.unpack_from(">HHIH", data, at)
        value = data[at + 10 : at + 10 + size]
        at += 10 + size
        if (kind, len(value)) in ((A, 4), (AAAA, 16)):
            yield ipaddress.ip_address(value)


def in_dns(ip: Ip) -> list[Address]:
    """The addresses that an IP packet's DNS answer gives."""
    if len(ip.rest) < 20 or 53 not in struct.unpack_from(">HH", ip.rest):
        return []
    message = ip.rest[8:] if ip.protocol == UDP else b""
    if ip.protocol == TCP:
        message = ip.rest[4 * (ip.rest[12] >> 4) + 2 :]
    found: list[Address] = []
    with contextlib.suppress(IndexError, struct.error):  # zeros, or a part of a message
        found.extend(answers(message))
    return found


def held(frame: bytes, *, cut: bool = False) -> Iterator[Held]:
    """The addresses of a frame. Raises ValueError if it is not what may leave."""
    layers, packet = packet_layers.read(frame, cut=cut)
    ip = ip_packet(packet)
    yield from (Held("ip", one) for one in ip.ends)
    yield from (Held("dns", one) for one in in_dns(ip))
    inner = quoted(ip)
    if inner and any(inner[:20]):
        yield from (Held("quote", one) for one in ip_packet(inner).ends)
    yield from (Held("outer", one) for layer in layers for one in layer.ends)


def block_of(address: Address) -> str | None:
    """The block in which an address lies."""
    inside = (block for net, block in NETWORKS if address.version == net.version and address in net)
    return next(inside, None)


class Closure(NamedTuple):
    """How often addresses of each block were held, and all that nobody allows, with their frame."""

    places: Counter[str]
    others: list[tuple[int, Held]]


def closure(frames: Iterable[bytes], released: Collection[Address] = ()) -> Closure:
    """Looks at every address of every frame; `released`: those that z users share."""
    places: Counter[str] = Counter()
    others = []
    for n, frame in enumerate(frames):
        for one in held(frame):
            block = block_of(one.address)
            if block is None and one.address in released:
                block = "released"
            if block is None and one.place == "dns" and one.address.is_unspecified:
                block = "zeros"  # a record whose address is not shown
            places[f"{one.place}: {block}"] += 1
            if block is None:
                others.append((n, one))
    return Closure(places, others)
