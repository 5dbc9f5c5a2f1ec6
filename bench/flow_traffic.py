# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Frames for bench/engines.py: flows that stay open, thousands at a time, from templates in numpy.

`openings`: a SYN each. `conversations`: short visits. Of four flows three are TLS over TCP (SYN,
SYN-ACK, the client's hello, a segment of an answer, an acknowledgement) and one is a datagram each
way. Clients, servers, names, sizes and times differ from flow to flow. `much_later`: a datagram so
late that all flows before it are idle.
"""

import struct
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from zanon_net.bench.messages import Dice, HelloShape, hello_record

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[Any]
Batch = tuple[bytes, Ints, Ints, Ints]
"""Frames back to back, their times in ns, their captured lengths, their lengths."""
Steps = Iterator[tuple[Bytes, Ints]]
"""A frame of each flow, with its length on the link; then the next frame of each."""

START_NS = 1_700_000_000 * 10**9
STEP_NS = 20_000_000  # from the packets of one step to the packets of the next
BATCH = 1 << 13
CLIENTS, SERVERS, NAMES = 20_000, 10_000, 10_000
NAME = b"n00000.www.example.org"
SYN, ACK, PUSH = 2, 16, 8
IP, L4 = 14, 34  # offsets of the headers


def put(frames: Bytes, at: int, values: Ints, width: int) -> None:
    """Writes a big-endian number into each frame."""
    for i in range(width):
        frames[:, at + width - 1 - i] = (values >> (8 * i)) & 0xFF


def _frame(proto: int, transport: bytes) -> bytes:
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(transport), 7, 0x4000, 64, proto, 0)
    return bytes(12) + b"\x08\x00" + ip + bytes(8) + transport


def segment(flags: int, payload: bytes = b"") -> bytes:
    """Returns a TCP segment in IPv4 in Ethernet, without ports, addresses and numbers."""
    return _frame(6, struct.pack(">HHIIHHHH", 0, 443, 0, 0, 5 << 12 | flags, 8192, 0, 0) + payload)


def set_ends(frames: Bytes, number: Ints, port: int, *, back: bool) -> None:
    """Addresses and ports: flow i is client i % CLIENTS, on a port of its own."""
    client = (10 << 24) + number % CLIENTS
    server = (198 << 24 | 18 << 16) + number * 7919 % SERVERS
    client_port = 20_000 + number // CLIENTS
    put(frames, IP + 12, server if back else client, 4)
    put(frames, IP + 16, client if back else server, 4)
    put(frames, L4, np.full_like(number, port) if back else client_port, 2)
    put(frames, L4 + 2, client_port if back else np.full_like(number, port), 2)


def copies(template: bytes, count: int) -> Bytes:
    """Returns the frame `count` times."""
    return np.tile(np.frombuffer(template, dtype=np.uint8), (count, 1))


def _tcp(number: Ints) -> Steps:
    """Returns the segments of each flow."""
    hello = hello_record(NAME, HelloShape(), Dice("flows"))
    isn = number * 2_654_435_761
    other = number * 2_246_822_519
    answer = 200 + number * 31 % 1_200
    steps = [
        (segment(SYN), False, isn, isn * 0, 0),
        (segment(SYN | ACK), True, other, isn + 1, 0),
        (segment(ACK | PUSH, hello), False, isn + 1, other + 1, 0),
        (segment(ACK | PUSH), True, other + 1, isn + 1 + len(hello), answer),
        (segment(ACK), False, isn + 1 + len(hello), other + 1 + answer, 0),
    ]
    for template, back, seq, ack, payload in steps:
        rows = copies(template, len(number))
        set_ends(rows, number, 443, back=back)
        put(rows, L4 + 4, seq & 0xFFFFFFFF, 4)
        put(rows, L4 + 8, ack & 0xFFFFFFFF, 4)
        length = number * 0 + len(template) + payload
        put(rows, IP + 2, length - IP, 2)
        if hello in template:
            where = template.index(NAME) + 1
            for digit in range(5):
                shown = number * 3 % NAMES // 10 ** (4 - digit) % 10
                rows[:, where + digit] = ord("0") + shown
        yield rows, length


def _udp(number: Ints) -> Steps:
    """Returns the datagrams of each flow."""
    payload = 40 + number * 17 % 1_000
    for back in (False, True):
        rows = copies(_frame(17, bytes(8)), len(number))
        set_ends(rows, number, 4_500, back=back)
        put(rows, IP + 2, 28 + payload, 2)
        put(rows, L4 + 4, 8 + payload, 2)
        yield rows, rows.shape[1] + payload


def _batch(rows: Bytes, lengths: Ints, times: Ints) -> Batch:
    captured = np.full(len(rows), rows.shape[1], dtype=np.uint32)
    return rows.tobytes(), times, captured, lengths.astype(np.uint32)


def openings(flows: int) -> Iterator[Batch]:
    """Yields a SYN of each flow, each from another client."""
    for first in range(0, flows, BATCH):
        number = np.arange(first, min(flows, first + BATCH), dtype=np.int64)
        rows = copies(segment(SYN), len(number))
        set_ends(rows, number * 0, 443, back=False)
        put(rows, IP + 12, (10 << 24) + number, 4)
        yield _batch(rows, number * 0 + rows.shape[1], START_NS + number)


def conversations(flows: int) -> Iterator[Batch]:
    """Flows of five segments, and of two datagrams, which all stay open; a batch is one step."""
    rng = np.random.default_rng(1)
    now = START_NS
    for first in range(0, flows, BATCH):
        number = np.arange(first, min(flows, first + BATCH), dtype=np.int64)
        udp = number % 4 == 3
        for rows, lengths in chain(_tcp(number[~udp]), _udp(number[udp])):
            yield _batch(rows, lengths, now + np.sort(rng.integers(0, STEP_NS, len(rows))))
            now += STEP_NS


def much_later() -> Batch:
    """One datagram, so late that every flow is idle."""
    (rows, lengths), _answer = _udp(np.array([3], dtype=np.int64))
    return _batch(rows, lengths, np.array([START_NS + 10**12], dtype=np.int64))
