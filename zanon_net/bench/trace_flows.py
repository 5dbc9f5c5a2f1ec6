# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Flows of a generated trace: their kinds, names, clients and packets.

A flow is a *script*: a fixed list of packets (direction, TCP flags, payload) that depends on its
kind and on its number of data blocks. Scripts are laid end to end as numpy columns, so no Python
runs per packet. Payloads are either *special* (bytes of their own: hellos, requests, DNS, QUIC
handshakes) or slices of one pool of noise.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from zanon_net.bench.messages import (
    Dice,
    HelloShape,
    client_hello,
    dns_labels,
    dns_query,
    dns_response,
    hello_record,
    http_request,
    record,
    server_flight_tls13,
    server_hello,
    server_name_extension,
)
from zanon_net.bench.quic_packets import (
    DATAGRAM_BYTES,
    LongHeader,
    Side,
    ack_frame,
    client_initials,
    crypto_frame,
    handshake_packet,
    initial_packet,
    short_packet,
)

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

# Payload codes of a script; 0 and up is the index of one of the flow's special payloads.
NONE, OPENING, FULL, PART, SHORT, TINY = -1, -2, -3, -4, -5, -6
FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10
MSS = 1460
QUIC_DATAGRAM = 1250
TLS, QUIC, DNS, HTTP = range(4)
SOURCES = ("tls", "quic", "dns", "http")
SERVER_PORTS = (443, 443, 53, 80)
QUIC_POOL = 2048  # protected Initials are slow to make; flows take theirs from a pool of this size
SERVERS = 20000
MAX_BLOCKS = 400
HELLO_TEMPLATES = 32
USUAL_HELLO = HelloShape()
RECORD_HEAD = 5  # bytes of a TLS record before the protected data

Step = tuple[int, int, int]  # direction (0 client), TCP flags (0 for UDP), payload code


@dataclass(frozen=True, slots=True)
class Profile:
    """A traffic mix: shares of the four kinds in percent, data blocks of a flow, the block.

    `blocks` draws the number of blocks of n flows. `unique` is the percentage of flows whose name
    occurs only once. If `opening` is not None, a flow ends with its hello, `opening` lists the
    packets before the hello, and `opening_bytes` is about the size of the flow. `bursts` are the
    segments of a block, up to each ACK. `mlkem` is the percentage of hellos with an ML-KEM key
    share, in steps of 20. `hello` is the form of each hello otherwise. `ipv6` is the percentage of
    homes with IPv6. `vlan` is the VLAN of all frames; 0 means no tag.
    """

    shares: tuple[int, int, int, int]
    blocks: Callable[[np.random.Generator, int], Ints]
    payload: int = FULL
    unique: int = 0
    opening: tuple[Step, ...] | None = None
    opening_bytes: int = 0
    bursts: tuple[int, ...] = (2,)
    mlkem: int = 40
    hello: HelloShape = USUAL_HELLO
    ipv6: int = 20
    vlan: int = 0

    def times(self, data: int) -> "Profile":
        """Returns the mix with `data` times as many blocks a flow, up to MAX_BLOCKS each."""
        if data == 1:
            return self
        return replace(
            self, blocks=lambda rng, count: np.minimum(self.blocks(rng, count) * data, MAX_BLOCKS)
        )


def _heavy_tailed(mean: float) -> Callable[[np.random.Generator, int], Ints]:
    """Returns a law of sizes: most are small, few make most of the sum; `mean` of the logarithm."""

    def draw(rng: np.random.Generator, count: int) -> Ints:
        drawn = rng.lognormal(mean=mean, sigma=1.3, size=count)
        return np.minimum(drawn, MAX_BLOCKS).astype(np.int64)

    return draw


def _long_blocks(rng: np.random.Generator, count: int) -> Ints:
    return rng.choice(np.array([500, 1000, 2000, 4000]), size=count)


def _no_blocks(rng: np.random.Generator, count: int) -> Ints:
    return np.zeros(count, dtype=np.int64)


PROFILES = {
    "isp": Profile((55, 15, 25, 5), _heavy_tailed(1.52)),
    "isplong": Profile((72, 13, 10, 5), _heavy_tailed(1.86), bursts=(2, 1, 1)),
    "modern": Profile(
        (35, 40, 22, 3),
        _heavy_tailed(1.15),
        mlkem=100,
        hello=HelloShape(ech=True, padding=110),
        ipv6=50,
        vlan=100,
    ),
    "min64": Profile((100, 0, 0, 0), _long_blocks, payload=TINY),
    "storm": Profile(
        (100, 0, 0, 0),
        _no_blocks,
        unique=90,
        opening=((0, SYN, OPENING), (1, SYN | ACK, OPENING)),
        opening_bytes=1085,
    ),
    "storm1": Profile(
        (100, 0, 0, 0), _no_blocks, unique=90, opening=(), opening_bytes=330, mlkem=0
    ),
}


# --- scripts -----------------------------------------------------------------------------------


def _block(profile: Profile, segment: Step, answer: Step) -> list[Step]:
    """Returns the packets of a data block: bursts from the server, each acknowledged."""
    return [step for burst in profile.bursts for step in [*[segment] * burst, answer]]


def _tcp_script(hello_parts: int, answer_parts: int, blocks: int, profile: Profile) -> list[Step]:
    """Returns a whole connection: handshake, request, answer, data blocks, FIN both ways."""
    steps: list[Step] = [(0, SYN, OPENING), (1, SYN | ACK, OPENING), (0, ACK, NONE)]
    steps += [(0, ACK | PSH, i) for i in range(hello_parts)]
    steps += [(1, ACK, NONE)]
    steps += [(1, ACK | PSH, hello_parts + i) for i in range(answer_parts)]
    steps += [(0, ACK, NONE)]
    if profile.payload == TINY:
        steps += [(0, ACK | PSH, TINY), (1, ACK | PSH, TINY)] * blocks
    else:
        steps += [(0, ACK | PSH, PART), (1, ACK, NONE)] if answer_parts > 1 else []
        steps += _block(profile, (1, ACK, FULL), (0, ACK, NONE)) * blocks
        steps += [(1, ACK | PSH, PART), (0, ACK, NONE)]
    return [*steps, (0, FIN | ACK, NONE), (1, FIN | ACK, NONE), (0, ACK, NONE)]


def script(kind: int, parts: int, blocks: int, profile: Profile) -> list[Step]:
    """Returns the packets of one flow; `parts` is how many segments (datagrams) its hello takes."""
    if profile.opening is not None:
        return [*profile.opening, *((0, ACK | PSH, i) for i in range(parts))]
    if kind == TLS:
        return _tcp_script(parts, 3, blocks, profile)
    if kind == HTTP:
        return _tcp_script(1, 1, blocks, profile)
    if kind == DNS:
        return [(0, 0, 0), (1, 0, 1)]
    steps: list[Step] = [(0, 0, i) for i in range(parts)]
    steps += [(1, 0, parts), (0, 0, parts + 1)]
    return steps + _block(profile, (1, 0, SHORT), (0, 0, parts + 2)) * blocks


# --- special payloads --------------------------------------------------------------------------


class HelloTemplate:
    """A ClientHello in its record into which any name can be put without a new build."""

    def __init__(self, shape: HelloShape, dice: Dice) -> None:
        marker = b"m"
        self._data = hello_record(marker, shape, dice)
        extension = server_name_extension(marker)
        self._at = self._data.index(extension)
        self._name_at = self._at + len(extension) - len(marker)
        # Extensions start after version, random, session ID, cipher suites and compression.
        session = self._data[43]
        ciphers = int.from_bytes(self._data[44 + session : 46 + session], "big")
        self._extensions_at = 46 + session + ciphers + 2

    def fill(self, name: bytes, random: bytes) -> bytes:
        """Returns the record with `name` as SNI and `random` (32 bytes) as client random."""
        grown = len(name) - 1
        head = bytearray(self._data[: self._name_at])
        head[11:43] = random
        for offset in (3, 7, self._extensions_at, self._at + 2, self._at + 4, self._at + 7):
            (value,) = struct.unpack_from(">H", head, offset)
            struct.pack_into(">H", head, offset, value + grown)
        return bytes(head) + name + self._data[self._name_at + 1 :]


def _segments(data: bytes) -> list[bytes]:
    return [data[i : i + MSS] for i in range(0, len(data), MSS)]


def _quic_payloads(name: bytes, shape: HelloShape, dice: Dice) -> list[bytes]:
    """Returns the handshake datagrams of one connection and the ACK packet of its data phase."""
    first_id, server_id = dice.bytes(8), dice.bytes(8)
    cuts = [900] if shape.mlkem else []
    hello = client_hello(name, replace(shape, quic_scid=b""), dice)
    flight = client_initials(hello, LongHeader(first_id, b"", 0), cuts, dice)
    frames = ack_frame(len(flight) - 1) + crypto_frame(0, server_hello(True, dice))
    side = Side(first_id, server=True)
    answer = initial_packet(LongHeader(b"", server_id, 0), side, frames)
    answer += handshake_packet(b"", server_id, DATAGRAM_BYTES - len(answer), dice)
    returned = handshake_packet(server_id, b"", 90, dice) + short_packet(server_id, 200, dice)
    return [*flight, answer, returned, short_packet(server_id, 36, dice)]


def _http_payloads(name: bytes, noise: bytes) -> list[bytes]:
    request = http_request(b"GET", b"/" + noise.hex().encode(), name)
    return [request, b"HTTP/1.1 200 OK\r\nServer: trace\r\nConnection: close\r\n\r\n"]


def _dns_payloads(name: bytes, ident: int, address: bytes) -> list[bytes]:
    labels = dns_labels(name)
    qtype = 28 if len(address) == 16 else 1
    query = dns_query(ident, labels, qtype, edns=bool(ident & 1))
    return [query, dns_response(ident, labels, qtype, [address])]


def trace_name(index: int) -> bytes:
    """Returns the hostname of a popularity rank; unique for each index."""
    host = ("www", "api", "cdn", "img", "static", "edge-7", "login", "a.b")[index % 8]
    zone = ("example", "test", "example.com", "example.net")[index // 8 % 4]
    return f"{host}.site-{index:x}.{zone}".encode()


# --- flows -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Flows:
    """Columns with one entry a flow, and the special payloads they refer to."""

    kind: Ints
    blocks: Ints
    name: Ints
    home: Ints
    temporary: Ints
    parts: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    first_special: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    specials: list[bytes] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.kind)


def draw_flows(rng: np.random.Generator, profile: Profile, sizes: tuple[int, int, int]) -> Flows:
    """Draws `sizes` = (flows, homes, names): kinds, block counts, Zipf names, homes."""
    count, homes, names = sizes
    kind = rng.choice(4, size=count, p=np.array(profile.shares) / 100)
    weights = np.cumsum(1 / np.arange(1, names + 1))
    name = np.searchsorted(weights, rng.random(count) * weights[-1])
    fresh = rng.integers(0, 100, size=count) < profile.unique
    name[fresh] = names + np.flatnonzero(fresh)
    blocks = profile.blocks(rng, count)
    blocks[kind == DNS] = 0
    home = rng.integers(0, homes, size=count)
    return Flows(kind, blocks, name, home, rng.integers(0, 4, size=count))


def _tls_answer(dice: Dice) -> bytes:
    """Returns a TLS 1.3 server's first three segments: its flight and a record of noise."""
    flight = server_flight_tls13(dice)
    size = 2 * MSS + 300 - len(flight) - RECORD_HEAD
    return flight + record(23, dice.bytes(size))


class PayloadMaker:
    """Builds the special payloads of flows, drawing on templates and pools made once."""

    def __init__(self, seed: int, flows: Flows, profile: Profile, rng: np.random.Generator) -> None:
        dice = Dice(f"trace {seed}")
        self._rng = rng
        looks = ("", "renegotiation", "grease", "")
        self._hellos = [
            HelloTemplate(
                replace(profile.hello, mlkem=i % 5 < profile.mlkem // 20, after_sni=looks[i % 4]),
                dice,
            )
            for i in range(HELLO_TEMPLATES)
        ]
        self._answers = [_segments(_tls_answer(dice)) for _ in range(16)]
        quic = np.flatnonzero(flows.kind == QUIC)
        # The pool repeats when there are more QUIC flows; then they repeat its names as well.
        flows.name[quic] = flows.name[quic[np.arange(len(quic)) % QUIC_POOL]]
        self._quic = [
            _quic_payloads(
                trace_name(name), replace(profile.hello, mlkem=dice.chance(profile.mlkem)), dice
            )
            for name in flows.name[quic[:QUIC_POOL]].tolist()
        ]
        self._quic_turn = 0

    def payloads(self, kind: int, name: int, address: bytes) -> tuple[int, list[bytes]]:
        """Returns (hello parts, special payloads) of the next flow."""
        if kind == QUIC:
            datagrams = self._quic[self._quic_turn % QUIC_POOL]
            self._quic_turn += 1
            return len(datagrams) - 3, datagrams
        draw = int(self._rng.integers(0, 1 << 62))
        text = trace_name(name)
        if kind == DNS:
            return 1, _dns_payloads(text, draw & 0xFFFF, address)
        if kind == HTTP:
            return 1, _http_payloads(text, draw.to_bytes(8, "big"))
        hello = self._hellos[draw % HELLO_TEMPLATES].fill(text, draw.to_bytes(8, "big") * 4)
        parts = _segments(hello)
        return len(parts), parts + self._answers[draw >> 8 & 15]


def fill_payloads(flows: Flows, maker: PayloadMaker, addresses: Callable[[int], bytes]) -> None:
    """Makes the special payloads of all flows; `addresses` maps a flow to its server's address."""
    parts, first = [], []
    for i, (kind, name) in enumerate(zip(flows.kind.tolist(), flows.name.tolist(), strict=True)):
        count, payloads = maker.payloads(kind, name, addresses(i))
        parts.append(count)
        first.append(len(flows.specials))
        flows.specials += payloads
    flows.parts, flows.first_special = np.array(parts), np.array(first)
