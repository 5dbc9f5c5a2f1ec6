# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Forms of payload that a run writes into anonymized packets, as the reference of packets says.

A reader of a form returns the spans of a payload that no form explains. Such bytes must be zeros.
"""

import re
from collections.abc import Iterator

Span = tuple[int, int]

OTHER = re.compile(rb"[^\0]")
ZEROS = re.compile(rb"\0{4}")
EMPTY = re.compile(rb"(?:\r*\n)+")
REQUEST = re.compile(
    rb"(?:[A-Z][A-Z-]*|x+) +(?:[a-z]+://)?(?:x*@)?[-a-z0-9_.:]*(?:/x*)? +HTTP/1\.[0-9] *\r*\n"
)
STATUS = re.compile(rb"HTTP/1\.[0-9] [1-5][0-9]{2}(?: x+| [A-Z][A-Za-z' -]{1,32})? *\r*\n")
STARTS = re.compile(rb"HTTP/1\.|[A-Zx][A-Z-]* ")
FIELDS = re.compile(
    rb"(?:Host: ?[-a-z0-9_.:]*\r?\n)?(?:Content-Length: ?[0-9]*\r?\n)?"
    rb"(?:Transfer-Encoding: ?chunked\r?\n)?(?:Upgrade: ?\r?\n)?"
    rb"(?:X-Padding: x*\r\n|x(?::x*)?\n)?(?:\r*\n)?"
)
OF_HEADS = re.compile(
    rb"HTTP/1\.[0-9][^\n]*\n|Host: ?[-a-z0-9_.:]*\r?\n|Content-Length: ?[0-9]*\r?\n"
    rb"|Transfer-Encoding: ?chunked\r?\n|Upgrade: ?\r?\n|X-Padding: x*"
)
"""Texts that heads have before and after the run, also where a repeated segment cuts a head."""

DNS_HEAD, FIXED_OF_RECORD = 12, 10
ADDRESS_BYTES = {1: 4, 28: 16}
CNAME, OPT, PRIVATE = 5, 41, 65280

QUIC_SHORT, QUIC_LONG, QUIC_ID_MOST, RETRY_TAG = 0x40, 0x80, 20, 16
VERSIONS = {1: (0, 3), 0x6B3343CF: (1, 0)}  # types of Initial and of Retry
OLDER = re.compile(rb"\xff\0\0.|\xfa\xce\xb0.", re.DOTALL)  # versions with the types of version 1

HANDSHAKE, CLIENT_HELLO, DTLS_MAJOR = 22, 1, 0xFE
DTLS_HEAD, FRAGMENT_HEAD = 13, 12
ICMP_HEAD, QUOTED = 8, 20  # bytes of a message's header, and of a quoted header of TCP
ECHOES, ERRORS = (0, 8, 128, 129), {4: (3, 4, 5, 11, 12), 6: (1, 2, 3, 4)}


def runs(data: bytes, first: int = 0, end: int | None = None) -> Iterator[Span]:
    """Yields the spans of a part of some bytes that are not zeros. Fewer than four zeros do not end
    a span."""
    end = len(data) if end is None else min(end, len(data))
    while (start := OTHER.search(data, first, end)) is not None:
        zeros = ZEROS.search(data, start.start(), end)
        first = zeros.start() if zeros is not None else end
        yield start.start(), first


def outside(data: bytes, free: list[Span]) -> Iterator[Span]:
    """Yields the spans that are not zeros outside of parts. free: these parts, in order."""
    at = 0
    for start, end in free:
        yield from runs(data, at, start)
        at = max(at, end)
    yield from runs(data, at)


def of_datagram(data: bytes, *, kept: bool) -> list[Span]:
    """Returns the spans of a datagram that no form explains. kept: true if packets of QUIC with a
    short header are unchanged."""
    first = next(runs(data), None)
    if first is None:
        return []
    if kept and QUIC_SHORT <= data[0] < QUIC_LONG:
        return []
    best: list[Span] = [first]
    for read in (dns_parts, quic_parts, dtls_parts):
        try:
            found = list(outside(data, read(data)))
        except (IndexError, ValueError):
            continue
        if not found:
            return []
        best = found
    return best


def of_icmp(data: bytes, version: int) -> list[Span]:
    """Returns the spans of a message of ICMP that no form explains. version: of IP."""
    end = 4
    if data and data[0] in ECHOES:
        end = ICMP_HEAD
    elif data and data[0] in ERRORS[version]:
        end = ICMP_HEAD + (20 if version == 4 else 40) + QUOTED
    return list(runs(data, end))


def dns_parts(data: bytes) -> list[Span]:
    """Returns the parts of a message of DNS. Raises IndexError or ValueError for other bytes."""
    counts = [int.from_bytes(data[at : at + 2]) for at in range(4, DNS_HEAD, 2)]
    parts, at = [(0, DNS_HEAD)], DNS_HEAD
    for _ in range(counts[0]):
        end = name_end(data, at) + 4
        parts.append((at, end))
        at = end
    for _ in range(sum(counts[1:])):
        fixed = name_end(data, at) + FIXED_OF_RECORD
        parts.append((at, fixed))
        kind = int.from_bytes(data[fixed - 10 : fixed - 8])
        at = fixed + int.from_bytes(data[fixed - 2 : fixed])
        if at > len(data):
            raise ValueError("a record is cut")
        parts += values(data, kind, fixed, at)
    return parts


def values(data: bytes, kind: int, first: int, end: int) -> Iterator[Span]:
    """Yields the parts of a record's value."""
    if ADDRESS_BYTES.get(kind) == end - first:
        yield first, end
    elif kind == CNAME:
        yield first, min(name_end(data, first), end)
    elif kind == OPT:
        while first + 4 <= end:
            yield first, first + 4
            first += 4 + int.from_bytes(data[first + 2 : first + 4])


def name_end(data: bytes, at: int) -> int:
    """Returns the end of a name in a message. Raises IndexError or ValueError for other bytes."""
    while size := data[at]:
        if size >= 0xC0:
            return at + 2
        if size > 63:
            raise ValueError("no label")
        at += 1 + size
    return at + 1


def quic_parts(data: bytes) -> list[Span]:
    """Returns the parts of the packets of QUIC in a datagram."""
    parts: list[Span] = []
    at = 0
    while at < len(data) and data[at] & QUIC_LONG:
        version = int.from_bytes(data[at + 1 : at + 5])
        types = VERSIONS.get(1 if OLDER.match(data, at + 1) else version)
        start, ids = at, [at + 5]
        for _ in range(2):
            ids.append(ids[-1] + 1 + data[ids[-1]])
        at = ids[-1]
        if max(data[ids[0]], data[ids[1]]) > QUIC_ID_MOST:
            return [*parts, (start, start + 5)]
        kind = data[start] >> 4 & 3
        if version == 0 or types is None:
            return [*parts, (start, at if types is None and version else len(data))]
        parts.append((start, at))
        if kind == types[1]:
            return [*parts, (len(data) - RETRY_TAG, len(data))]
        if kind == types[0]:
            begin, at = at, varint(data, at)[1]
            parts.append((begin, at))
            at += varint(data, begin)[0]
        size, body = varint(data, at)
        parts.append((at, body + size if kind == types[0] else body))
        at = body + size
    return [*parts, (at, at + 1)]


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Returns a number of QUIC and the place behind it."""
    size = 1 << (data[at] >> 6)
    return int.from_bytes(data[at : at + size]) & (1 << 8 * size - 2) - 1, at + size


def dtls_parts(data: bytes) -> list[Span]:
    """Returns the parts of a datagram's records that have a client's hello."""
    parts: list[Span] = []
    at = 0
    while at < len(data) and data[at] == HANDSHAKE and data[at + 1] == DTLS_MAJOR:
        end = at + DTLS_HEAD + int.from_bytes(data[at + 11 : at + 13])
        parts.append((at, at + DTLS_HEAD))
        at += DTLS_HEAD
        while at < end and data[at] == CLIENT_HELLO:
            size = int.from_bytes(data[at + 9 : at + 12])
            parts.append((at, at + FRAGMENT_HEAD + size))
            at += FRAGMENT_HEAD + size
        at = end
    return parts


def head_end(data: bytes, at: int) -> int | None:
    """Returns the end of a head of HTTP, of its whole lines; None: no head begins here."""
    empty = EMPTY.match(data, at)
    first = empty.end() if empty is not None else at
    line = REQUEST.match(data, first) or STATUS.match(data, first)
    if line is None:
        return None
    fields = FIELDS.match(data, line.end())
    assert fields is not None  # it may be empty
    return fields.end()
