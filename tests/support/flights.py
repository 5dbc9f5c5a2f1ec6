# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Handshake messages of servers, each with what an anonymized packet has in its place."""

import struct

from support.handshake import message, named
from support.hellos import NOTHING, Part, protocols, public, secret, vector, zeroed
from zanon_net import _core

RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")


def opaque(kind: int, n: int) -> Part:
    head = bytes([kind]) + n.to_bytes(3, "big")
    return public(head) + zeroed(secret(n))


def server(*extensions: tuple[int, Part], chance: bytes | None = None, session: int = 32) -> Part:
    """A ServerHello; its random and session ID are secrets."""
    listed = [public(struct.pack(">H", kind)) + vector(2, d) for kind, d in extensions]
    body = public(b"\3\3")
    body += zeroed(secret(32)) if chance is None else public(chance)
    body += vector(1, zeroed(secret(session))) + public(b"\xc0\x2f\0")
    return public(b"\2") + vector(3, body + vector(2, *listed))


def certificates(name: bytes, *sent: bytes) -> Part:
    names = (name, *[b""] * len(sent))
    built = [_core.build_x509(len(der), n) for der, n in zip(sent, names, strict=False)]
    return Part(message(*sent), message(*built))


OLD = server(
    (0xFF01, vector(1, zeroed(secret(24)))),
    (11, vector(1, public(b"\0\1"))),
    (35, NOTHING),
    (16, protocols(b"h2")),
    (18, vector(2, *[vector(2, zeroed(secret(119)))] * 2)),
    (28, public(b"\x40\1")),
    (0x9999, zeroed(secret(11))),
)
NEW = server(
    (43, public(b"\3\4")),
    (51, public(b"\0\x1d") + vector(2, zeroed(secret(32)))),
    (41, zeroed(b"\0\1")),
)
AGAIN = server(
    (43, public(b"\3\4")),
    (51, public(b"\0\x17")),
    (44, vector(2, zeroed(secret(40)))),
    chance=RETRY,
)


def flight(name: bytes) -> Part:
    """Up to TLS 1.2; the certificates are the synthetic ones, the first with `name`."""
    chain = certificates(name, named("www.example.org"), named("An issuer"))
    return OLD + chain + opaque(22, 90) + opaque(12, 300) + opaque(13, 40) + opaque(14, 0)
