# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.x (RFC 9112), HTTP/2 in clear (RFC 9113) and HPACK (RFC 7541)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from zanon_net import _core
from zanon_net.parse.result import Parsed, State, hostname


@dataclass(frozen=True, slots=True)
class HttpHost(Parsed):
    """An HTTP/1.x request.

    method: Tstat's number (1 GET, 2 POST, ...). head_bytes: length of its head. target: of the
    request line, as sent. target_offset: its offset in the data. body_bytes: Content-Length, 0 if
    absent; None if the body comes in chunks, or if its end is unknown. chunked: true if the body
    comes in chunks. dns_body: true if the body is a DNS message (RFC 8484).
    """

    head_bytes: int
    method: int
    target: bytes
    target_offset: int | None
    body_bytes: int | None
    chunked: bool
    dns_body: bool


@dataclass(frozen=True, slots=True)
class HttpChunk:
    """A chunk of a body. used: its length with its frame, which may exceed the data; last: true if
    it ends the body."""

    state: State
    used: int
    last: bool


@dataclass(frozen=True, slots=True)
class HttpBody:
    """The content of a body that comes in chunks. whole: false if it is longer than what was
    asked for."""

    state: State
    content: bytes
    whole: bool


@dataclass(frozen=True, slots=True)
class Http2Hosts:
    """The requests of an HTTP/2 client in clear, up to the first that is cut or malformed.

    raw: the host of each as sent, empty if it names no host. names: each in the form that counts,
    None if raw is not a hostname. offsets: offset of the first frame of each request. used: bytes
    of the data up to the end of the last frame. state: how the reading ended.
    """

    state: State
    raw: tuple[bytes, ...]
    names: tuple[str | None, ...]
    offsets: tuple[int, ...]
    used: int


@dataclass(frozen=True, slots=True)
class HeaderBlock:
    """The fields of a header block up to its end or to the first malformed field, as (name, value);
    texts are cut after 4,096 bytes."""

    state: State
    fields: tuple[tuple[bytes, bytes], ...]


def http_host(data: bytes, *, cut: bool = False) -> HttpHost:
    """Parses an HTTP/1.x request head (RFC 9112, 3.2).

    data: the client's bytes, from the request line on, whose method may be any token. cut: true if
    no more bytes can come; a request line that names the host, or a whole Host field that nothing
    after it contradicts, is then enough. Returns the host of an absolute target, else of the Host
    field.
    """
    state, raw, offset, *fields = _core.read_http(data, cut=cut)
    return HttpHost(state, raw, hostname(raw), offset, *fields)


def http_chunk(data: bytes) -> HttpChunk:
    """Parses the chunk at the start of the data (RFC 9112, 7.1), whose content is not looked at."""
    state, used, last = _core.read_http_chunk(data)
    return HttpChunk(state, used, last)


def http_chunks(data: bytes, *, most: int = 1024) -> HttpBody:
    """Joins the content of a body that comes in chunks (RFC 9112, 7.1).

    data: from the first chunk on. most: bytes of content that are wanted.
    """
    return HttpBody(*_core.read_http_chunks(data, most))


def h2_hosts(data: bytes) -> Http2Hosts:
    """Parses a client's side of an HTTP/2 connection in clear (RFC 9113, 8.3.1; RFC 7541).

    data: the client's bytes, from its preface on. Returns the host of each request, in order.
    """
    state, used = _core.http2_preface(data)
    if state != "done":
        return Http2Hosts(cast(State, state), (), (), (), 0)
    table = _core.HeaderTable()
    raw: list[bytes] = []
    offsets: list[int] = []
    while state in ("done", "other") and used < len(data):
        state, taken, request, host, _method = table.next_unit(data[used:])
        if state == "done" and request:
            raw.append(host)
            offsets.append(used)
        used += taken if state in ("done", "other") else 0
    whole = "need_more" if used > len(data) else "done"
    state = whole if state in ("done", "other") else state
    names = tuple(map(hostname, raw))
    return Http2Hosts(cast(State, state), tuple(raw), names, tuple(offsets), min(used, len(data)))


def hpack_blocks(blocks: Iterable[bytes]) -> tuple[HeaderBlock, ...]:
    """Decodes the header blocks of one side of an HTTP/2 connection, from its first one on.

    blocks: each put together from its frames. Ends after the first malformed block, because the
    table's state is then unknown.
    """
    table = _core.HeaderTable()
    found: list[HeaderBlock] = []
    for block in blocks:
        state, fields = table.decode(block)
        found.append(HeaderBlock(cast(State, state), tuple(fields)))
        if state != "done":
            break
    return tuple(found)
