# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Requests whose attributes are read: SIP and STUN."""

import struct

COOKIE = 0x2112A442
SOFTWARE, INTEGRITY = 0x8022, 0x0008


def sip(
    uri: bytes = b"sip:bob@example.org",
    method: bytes = b"REGISTER",
    *,
    call: bytes = b"a84b4c76e66710@pc33",
    sequence: bytes = b"1 REGISTER",
    status: bytes = b"",
    ending: bytes = b"\r\n",
) -> bytes:
    """A request, or with a status such as b"200 OK" the response to it."""
    lines = [
        b"SIP/2.0 " + status if status else method + b" " + uri + b" SIP/2.0",
        b"Via: SIP/2.0/UDP pc33.example.net;branch=z9hG4bK776asdhds",
        b"Max-Forwards: 70",
        b"To: Bob <sip:bob@example.org>",
        b"From: Alice <sip:alice@example.net>;tag=1928301774",
        b"Call-ID: " + call,
        b"CSeq: " + sequence,
        b"Content-Length: 0",
    ]
    return b"".join(line + ending for line in [*lines, b""])


def stun_attribute(kind: int, value: bytes) -> bytes:
    return struct.pack(">HH", kind, len(value)) + value + bytes(-len(value) % 4)


def stun(*attributes: bytes, kind: int = 1, transaction: bytes = b"transaction!") -> bytes:
    """A message; kinds: 1 Binding request, 0x101 its success, 0x111 its error."""
    body = b"".join(attributes)
    return struct.pack(">HHI", kind, len(body), COOKIE) + transaction + body


def binding(software: bytes, transaction: bytes = b"transaction!") -> bytes:
    """A Binding request that names the client's software."""
    return stun(stun_attribute(SOFTWARE, software), transaction=transaction)


def bound(transaction: bytes = b"transaction!", kind: int = 0x101) -> bytes:
    """The response to a Binding request."""
    return stun(stun_attribute(0x0020, bytes(8)), kind=kind, transaction=transaction)
