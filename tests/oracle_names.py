# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The names in packets, as the model of the contract reads them: section 4."""

import ipaddress
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

import wire

HOMES = ("in-addr.arpa", "ip6.arpa", "local", "home.arpa")
LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")


def under(name: str, suffixes: tuple[str, ...]) -> bool:
    """The name is one of the suffixes, or below it."""
    return any(name == suffix or name.endswith("." + suffix) for suffix in suffixes)


def normal(raw: bytes) -> tuple[str, str]:
    """(kind, name) of what was said: "name", "home", "address" or "invalid"."""
    text = re.sub(r":\d*$", "", raw.decode("latin-1").lower()).removesuffix(".")
    try:
        ipaddress.ip_address(text)
    except ValueError:
        pass
    else:
        return "address", ""
    if all(re.fullmatch("[0-9]+|0x[0-9a-f]*", label) for label in text.split(".")):
        return "address", ""
    if len(text) > 253 or not all(LABEL.fullmatch(label) for label in text.split(".")):
        return "invalid", ""
    return "home" if under(text, HOMES) else "name", text


class Said(NamedTuple):
    """A hello, a request or a question in a stream: where it ends, and whom it names, if anybody;
    ech: the name is one that hides another."""

    end: int
    source: str
    raw: bytes | None
    ech: bool = False


def extensions(hello: bytes) -> Iterator[tuple[int, bytes]]:
    """(type, data) of each extension of a ClientHello (RFC 8446, 4.1.2)."""
    at = 4 + 2 + 32
    for width in (1, 2, 1):  # session, ciphers, compression
        at += width + int.from_bytes(hello[at : at + width])
    rest = hello[at + 2 :]
    while rest:
        kind, size = struct.unpack(">HH", rest[:4])
        yield kind, rest[4 : 4 + size]
        rest = rest[4 + size :]


def server_name(hello: bytes) -> bytes | None:
    """The only name in a ClientHello (RFC 6066, 3)."""
    return next((data[5:] for kind, data in extensions(hello) if kind == wire.SERVER_NAME), None)


def record_in(head: bytes) -> Said:
    """A hello in one TLS record."""
    end = 5 + int.from_bytes(head[3:5])
    hello = head[5:end]
    if end > len(head):
        return Said(end, "tls", None)
    return Said(end, "tls", server_name(hello), hides(hello))


def request_in(head: bytes) -> Said:
    """A request without a body."""
    lines, found, _rest = head.partition(b"\r\n\r\n")
    end = len(lines) + 4 if found else len(head) + 1
    return Said(end, "http", lines.partition(b"\r\nHost: ")[2])


def question_in(head: bytes) -> Said:
    """A DNS message behind its length (RFC 1035, 4.2.2)."""
    end = 2 + int.from_bytes(head[:2])
    return Said(end, "dns", question(head[2:end]).name if end <= len(head) else None)


READERS = {22: record_in, 0: question_in}  # by the first byte: whatever else begins a request


def said_in(head: bytes) -> Iterator[Said]:
    """The hellos, requests and questions that are whole, from a stream's first byte on."""
    while head:
        said = READERS.get(head[0], request_in)(head)
        if said.end > len(head):
            return
        yield said
        head = head[said.end :]


def hides(hello: bytes) -> bool:
    """It offers Encrypted Client Hello (RFC 9849): its name is the outer one."""
    return any(kind == wire.ECH for kind, _data in extensions(hello))


class Question(NamedTuple):
    """What a DNS message asks, or answers."""

    response: bool
    ident: int
    kind: int
    name: bytes


def question(payload: bytes) -> Question:
    """The only question of a message without compression."""
    ident, flags = struct.unpack(">HH", payload[:4])
    labels, at = [], 12
    while payload[at]:
        labels.append(payload[at + 1 : at + 1 + payload[at]])
        at += 1 + payload[at]
    (kind,) = struct.unpack(">H", payload[at + 1 : at + 3])
    return Question(flags & 0x8000 > 0, ident, kind, b".".join(labels))
