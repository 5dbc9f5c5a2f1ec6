# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The contract's model reads names in packets: section 4."""

import ipaddress
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

import hpack
from support import wire
from support.h2 import CONTINUATION, END_HEADERS, HEADERS, PREFACE
from support.proxy_starttls_prefix import PREFIXES

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
HOMES = ("in-addr.arpa", "ip6.arpa", "local", "home.arpa")
LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")


def under(name: str, suffixes: tuple[str, ...]) -> bool:
    """Whether the name is one of the suffixes, or below it."""
    return any(name == suffix or name.endswith("." + suffix) for suffix in suffixes)


def normal(raw: bytes) -> tuple[str, str]:
    """(kind, name) of a text that a client sent: "name", "home", "address" or "invalid"."""
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
    """A hello, a request or a question in a stream: the place of the next one, and the host that it
    names, if any; ech: the name hides another; whole: it says whether it names a host."""

    end: int
    source: str
    raw: bytes | None
    ech: bool = False
    whole: bool = True


def extensions(hello: bytes) -> Iterator[tuple[int, bytes]]:
    """(type, data) of each extension of a ClientHello (RFC 8446, 4.1.2)."""
    at = 4 + 2 + 32
    for width in (1, 2, 1):  # session, ciphers, compression
        at += width + int.from_bytes(hello[at : at + width])
    yield from extensions_at(hello, at)


def extensions_at(hello: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """The extensions of a hello whose last part begins at `at`."""
    rest = hello[at + 2 :]
    while rest:
        kind, size = struct.unpack(">HH", rest[:4])
        yield kind, rest[4 : 4 + size]
        rest = rest[4 + size :]


def server_name(hello: bytes) -> bytes | None:
    """The only name in a ClientHello (RFC 6066, 3)."""
    return next((data[5:] for kind, data in extensions(hello) if kind == wire.SERVER_NAME), None)


def record_in(head: bytes) -> Said | None:
    """A hello in one TLS record."""
    end = 5 + int.from_bytes(head[3:5])
    hello = head[5:end]
    return Said(end, "tls", server_name(hello), hides(hello)) if end <= len(head) else None


def request_in(head: bytes) -> Said | None:
    """A request, whose host is known before its body has come (RFC 9112, 3.2)."""
    lines, found, rest = head.partition(b"\r\n\r\n")
    if not found:
        return None
    target = lines.split(b" ")[1]
    raw = lines.partition(b"\r\nHost: ")[2].partition(b"\r\n")[0]
    if lines.startswith(b"CONNECT "):
        raw = target
    elif target.startswith(b"http://"):
        raw = target.removeprefix(b"http://").partition(b"/")[0]
    return Said(len(lines) + 4 + body_bytes(lines, rest), "http", raw)


def body_bytes(lines: bytes, rest: bytes) -> int:
    """The length of the body behind a head, as far as it is known (RFC 9112, 6 and 7.1)."""
    if b"\r\nTransfer-Encoding: chunked" not in lines:
        return int(lines.partition(b"\r\nContent-Length: ")[2].partition(b"\r\n")[0] or 0)
    at, size = 0, 1
    while size and at < len(rest):
        line = rest[at:].partition(b"\r\n")[0]
        size = int(line.partition(b";")[0], 16)
        at += len(line) + 2 + size + 2
    return at


def question_in(head: bytes) -> Said | None:
    """A DNS message behind its length (RFC 1035, 4.2.2)."""
    end = 2 + int.from_bytes(head[:2])
    return Said(end, "dns", question(head[2:end]).name) if end <= len(head) else None


def frames_in(head: bytes) -> Iterator[Said]:
    """HTTP/2 behind its preface: a whole block of fields names a host (RFC 9113, 6.2)."""
    table, block = hpack.Decoder(), b""
    while len(head) >= 9 and 9 + int.from_bytes(head[:3]) <= len(head):
        end, kind, flags = 9 + int.from_bytes(head[:3]), head[3], head[4]
        raw = None
        if kind in (HEADERS, CONTINUATION):
            block += head[9:end]
            if flags & END_HEADERS:
                raw, block = dict(table.decode(block, raw=True))[b":authority"], b""
        yield Said(end, "http", raw, whole=raw is not None)
        head = head[end:]


def web_socket_in(head: bytes) -> Said | None:
    """A frame of fewer than 126 bytes (RFC 6455, 5.2), which names nobody."""
    end = 6 + (head[1] & 127) if len(head) > 1 else 2
    return Said(end, "http", None, whole=False) if end <= len(head) else None


# By the first byte: whatever else begins a request.
READERS = {22: record_in, 0: question_in, 0x81: web_socket_in}


def said_in(head: bytes) -> Iterator[Said]:
    """The hellos, requests and questions that are whole, from a stream's first byte on."""
    for before in PREFIXES.values():
        if head.startswith(before):
            yield Said(len(before), "tls", None, whole=False)
            head = head[len(before) :]
            break
    if head.startswith(PREFACE):
        yield Said(len(PREFACE), "http", None, whole=False)
        yield from frames_in(head[len(PREFACE) :])
        return
    while head:
        said = READERS.get(head[0], request_in)(head)
        if said is None:
            return
        yield said
        head = head[said.end :]


def hides(hello: bytes) -> bool:
    """Whether the hello offers Encrypted Client Hello (RFC 9849): its name is the outer one."""
    return any(kind == wire.ECH for kind, _data in extensions(hello))


class Question(NamedTuple):
    """The question of a DNS message, or of a response with its addresses."""

    response: bool
    ident: int
    kind: int
    name: bytes
    addresses: tuple[Address, ...] = ()


def question(payload: bytes) -> Question:
    """The only question of a message without compression."""
    ident, flags, _questions, answers = struct.unpack(">HHHH", payload[:8])
    labels, at = [], 12
    while payload[at]:
        labels.append(payload[at + 1 : at + 1 + payload[at]])
        at += 1 + payload[at]
    (kind,) = struct.unpack(">H", payload[at + 1 : at + 3])
    at, given = at + 5, []
    for _ in range(answers):
        (size,) = struct.unpack(">H", payload[at + 10 : at + 12])
        given.append(ipaddress.ip_address(payload[at + 12 : at + 12 + size]))
        at += 12 + size
    return Question(flags & 0x8000 > 0, ident, kind, b".".join(labels), tuple(given))
