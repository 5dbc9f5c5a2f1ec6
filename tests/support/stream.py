# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""TCP streams for the engine, and the names read from them."""

import struct

from support import wire
from support.engine import ALL, Outcome, run
from support.packets import (
    ACK,
    CLIENT,
    PSH,
    SECOND,
    Tcp,
    Udp,
    dns,
    hello,
    user,
    visit,
)

NAME, OTHER = b"www.example.org", b"www.example.net"
HELLO = hello(NAME)


def talk_of(*payloads: bytes, ports: tuple[int, int] = (40000, 443)) -> Tcp:
    """A connection whose client sends one payload a segment."""
    talk = Tcp(ports=ports).handshake()
    for payload in payloads:
        talk.say(payload)
    return talk


def names(talk: Tcp, **more: object) -> list[str]:
    """The names the talk exposes, sorted, each as often as it was released at z = 1."""
    return sorted(o["name"] for o in run(talk.frames, **({"z": 1} | more)).observations)


def one_user(talk: Tcp | Udp, name: bytes = NAME, **more: object) -> Outcome:
    """The talk after another user's visit: z = 2 releases `name` iff the talk votes for it, by DNS
    as well."""
    before = visit(user(9999), name, talk.frames[0].t_ns - SECOND)
    return run([*before, *talk.frames], **({"z": 2, "dns_votes": ALL} | more))


def segments(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def place(talk: Tcp, data: bytes, pieces: list[tuple[int, int]]) -> Tcp:
    """Sends data[from:to] of each piece at its place."""
    for start, end in pieces:
        talk.segment(CLIENT, PSH | ACK, data[start:end], seq=1001 + start)
    return talk


def message(name: bytes, **more: int) -> bytes:
    data = dns(name, **more)
    return struct.pack(">H", len(data)) + data


DNS = (40000, 53)
CUT = b"GET / HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: x"
LONG_HELLO = wire.records(
    wire.client_hello(wire.extension(wire.KEY_SHARE, bytes(1200)), wire.server_name(NAME)),
    [1, 3, 700, 90],
)
