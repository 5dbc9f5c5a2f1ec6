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
from functools import lru_cache
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
    "group": ("239.0.0.0/8", "ff0e::/16"),
}
BROADCAST = ipaddress.IPv4Address("255.255.255.255")
UNREGISTERED = (38, 124, *range(191, 256))  # last bytes in 224.0.1.0/24 (IANA, 2026)
NETWORKS = [
    (ipaddress.ip_network(text), block) for block, texts in BLOCKS.items() for text in texts
]


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


def is_known_group(address: Address) -> bool:
    """Return whether a group is registered for all hosts: 224.0.0.0/24, what IANA registered in
    224.0.1.0/24, and permanent groups of one link or node with small numbers (RFC 4291, 2.7.1)."""
    number = int(address)
    if address.version == 4:
        return number >> 8 == 0xE00000 or (
            number >> 8 == 0xE00001 and number & 0xFF not in UNREGISTERED
        )
    if number >> 112 not in (0xFF01, 0xFF02):
        return False
    group = number % 2**112
    return 0 < group < 0x100 or 0x10000 < group < 0x10008


def is_derived_group(address: Address) -> bool:
    """Return whether a group holds a part of another address: a prefix (RFC 6034, 3306, 3956), or
    bits of a host's address or of its name's hash (RFC 4291, 2.7.1; RFC 4620, 5)."""
    number = int(address)
    if address.version == 4:
        return number >> 24 == 234
    return number >> 120 == 0xFF and (
        bool(number >> 112 & 0x60) or number >> 24 in (0xFF02 << 88 | 0x1FF, 0xFF02 << 88 | 0x2FF)
    )


def is_open(address: Address) -> bool:
    """Return whether each packet shows the address."""
    return address == BROADCAST or is_known_group(address)


@lru_cache(1 << 16)
def block_of(address: Address) -> str | None:
    """The block in which an address lies."""
    if is_open(address):
        return "special"
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
