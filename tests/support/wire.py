# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Bytes on the wire, built by hand: nothing here checks or repairs a test's values."""

import ipaddress
import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

HOST = b"www.example.org"

LINK_ETHERNET = 1
TCP, UDP = 6, 17
ETHERTYPE_IPV4, ETHERTYPE_IPV6 = 0x0800, 0x86DD
MACS = bytes.fromhex("020000000001020000000002")

# ---- TLS ----------------------------------------------------------------------------------------

SERVER_NAME, SUPPORTED_VERSIONS, ALPS, ECH = 0x0000, 0x002B, 0x4469, 0xFE0D
GREASE, KEY_SHARE, PADDING = 0x1A1A, 0x0033, 0x0015
RANDOM = bytes(range(32))


def vector(width: int, data: bytes) -> bytes:
    """`data` behind its length in `width` bytes."""
    return len(data).to_bytes(width, "big") + data


def extension(kind: int, data: bytes = b"") -> bytes:
    return struct.pack(">H", kind) + vector(2, data)


def server_name(*hosts: bytes) -> bytes:
    return extension(SERVER_NAME, vector(2, b"".join(b"\0" + vector(2, h) for h in hosts)))


def client_hello(
    *extensions: bytes,
    session_id: bytes = b"",
    ciphers: bytes = b"\x13\x01\x13\x02\xc0\x2f",
    compression: bytes = b"\0",
    version: int = 0x0303,
) -> bytes:
    """A handshake message; without extensions it has no extension block at all."""
    body = struct.pack(">H", version) + RANDOM + vector(1, session_id) + vector(2, ciphers)
    body += vector(1, compression)
    if extensions:
        body += vector(2, b"".join(extensions))
    return b"\1" + vector(3, body)


def record(fragment: bytes, version: int = 0x0301, kind: int = 22) -> bytes:
    return struct.pack(">BHH", kind, version, len(fragment)) + fragment


def records(message: bytes, sizes: Iterable[int]) -> bytes:
    """The message over records of the given sizes; the last size repeats."""
    out, at = [], 0
    sizes = iter(sizes)
    size = next(sizes)
    while at < len(message):
        out.append(record(message[at : at + size]))
        at += size
        size = next(sizes, size)
    return b"".join(out)


# ---- DNS ----------------------------------------------------------------------------------------


@lru_cache(1 << 12)
def dns_name(*labels: bytes) -> bytes:
    return b"".join(vector(1, label) for label in labels) + b"\0"


def dns_message(
    name: bytes,
    *,
    flags: int = 0x0100,
    counts: Sequence[int] = (1, 0, 0, 0),
    kind: int = 1,
    dns_class: int = 1,
    rest: bytes = b"",
) -> bytes:
    header = struct.pack(">6H", 0xABCD, flags, *counts)
    return header + name + struct.pack(">HH", kind, dns_class) + rest


# ---- packets ------------------------------------------------------------------------------------

CLIENT, SERVER = "10.0.0.1", "192.0.2.7"
CLIENT6, SERVER6 = "2001:db8::1", "2001:db8:1::7"


def tcp(
    payload: bytes = b"",
    *,
    ports: tuple[int, int] = (40000, 443),
    options: bytes = b"",
    offset: int | None = None,
    flags: int = 0x18,
) -> bytes:
    words = 5 + len(options) // 4 if offset is None else offset
    fields = (*ports, 0x01020304, 0x05060708, words << 12 | flags, 0x2000, 0, 0)
    return struct.pack(">HHIIHHHH", *fields) + options + payload


def udp(
    payload: bytes = b"", *, ports: tuple[int, int] = (40000, 53), length: int | None = None
) -> bytes:
    length = 8 + len(payload) if length is None else length
    return struct.pack(">HHHH", *ports, length, 0) + payload


@lru_cache(1 << 16)
def packed_ipv4(address: str) -> bytes:
    return ipaddress.IPv4Address(address).packed


@lru_cache(1 << 16)
def packed_ipv6(address: str) -> bytes:
    return ipaddress.IPv6Address(address).packed


def ipv4(
    payload: bytes,
    protocol: int = TCP,
    *,
    addresses: tuple[str, str] = (CLIENT, SERVER),
    options: bytes = b"",
    total: int | None = None,
    words: int | None = None,
    place: int = 0x4000,
) -> bytes:
    """`place`: the 16 bits with the fragment offset and its flags; `words`: the IHL field."""
    total = 20 + len(options) + len(payload) if total is None else total
    words = 5 + len(options) // 4 if words is None else words
    header = struct.pack(">BBHHHBBH", 0x40 | words, 0, total, 7, place, 64, protocol, 0)
    packed = packed_ipv4(addresses[0]) + packed_ipv4(addresses[1])
    return header + packed + options + payload


def ipv6(
    payload: bytes,
    next_header: int = TCP,
    *,
    addresses: tuple[str, str] = (CLIENT6, SERVER6),
    length: int | None = None,
) -> bytes:
    length = len(payload) if length is None else length
    packed = packed_ipv6(addresses[0]) + packed_ipv6(addresses[1])
    return struct.pack(">IHBB", 0x60000000, length, next_header, 64) + packed + payload


def ipv6_option_header(next_header: int, units: int = 0) -> bytes:
    """A hop-by-hop or destination options header, or a routing header with no segments left."""
    return bytes([next_header, units, 1, 4]) + bytes(4 + 8 * units)


def ipv6_fragment(next_header: int, offset: int = 0, more: bool = False) -> bytes:
    return struct.pack(">BBHI", next_header, 0, offset << 3 | more, 99)


def ah(next_header: int, icv: int = 12) -> bytes:
    return struct.pack(">BBHII", next_header, 1 + icv // 4, 0, 1, 1) + bytes(icv)


def ethernet(payload: bytes, kind: int = ETHERTYPE_IPV4, tags: Sequence[int] = ()) -> bytes:
    """`tags`: the TPIDs of the VLAN tags, outermost first."""
    vlan = b"".join(struct.pack(">HH", tpid, 100 + n) for n, tpid in enumerate(tags))
    return MACS + vlan + struct.pack(">H", kind) + payload


def llc_snap(payload: bytes, kind: int = ETHERTYPE_IPV4, organization: int = 0) -> bytes:
    """An IEEE 802.3 frame."""
    llc = b"\xaa\xaa\x03" + organization.to_bytes(3, "big") + struct.pack(">H", kind) + payload
    return MACS + vector(2, llc)


# ---- changes ------------------------------------------------------------------------------------


def prefixes(data: bytes) -> Iterator[bytes]:
    """Every prefix but the whole."""
    return (data[:n] for n in range(len(data)))


def off_by_one(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(place, data with the byte there one more or one less), for every byte."""
    for place, step in itertools.product(range(len(data)), (1, -1)):
        changed = bytearray(data)
        changed[place] = (changed[place] + step) & 0xFF
        yield place, bytes(changed)
