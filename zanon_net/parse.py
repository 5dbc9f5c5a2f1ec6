# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The parsers one by one: bytes in, a typed result out, no flow and no decision.

Results are as the client sent them and not anonymized. No bytes raise an error: the result's
`state` says what is wrong with them.
"""

from dataclasses import dataclass
from typing import Literal, cast

from zanon_net import _core

State = Literal["done", "need_more", "malformed", "other"]
"""done: complete; need_more: well-formed, but bytes are missing; malformed: an inner length or
value is wrong; other: not this protocol."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The result that all parsers have in common.

    state: see State. raw: the name as sent, empty if there is no name or the state is not done.
    name: the hostname in the form that counts (lower case, no port, no trailing dot), None if raw
    is empty or not a hostname.
    """

    state: State
    raw: bytes
    name: str | None


@dataclass(frozen=True, slots=True)
class ClientHello(Parsed):
    """A TLS ClientHello. ech_offered: true if it has the extension of Encrypted ClientHello."""

    ech_offered: bool


@dataclass(frozen=True, slots=True)
class HttpHost(Parsed):
    """An HTTP/1.x request. method: Tstat's number (1 GET, 2 POST, ...). head_bytes: length of its
    head."""

    method: int
    head_bytes: int


@dataclass(frozen=True, slots=True)
class Http2Hosts:
    """The requests of an HTTP/2 client in clear, up to the first that is cut or malformed.

    raw: the host of each as sent, empty if it names no host. names: each in the form that counts,
    None if raw is not a hostname. state: how the reading ended.
    """

    state: State
    raw: tuple[bytes, ...]
    names: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class DnsQuestion(Parsed):
    """A DNS message's first question; type: its QTYPE."""

    response: bool
    id: int
    type: int


@dataclass(frozen=True, slots=True)
class QuicInitial(Parsed):
    """The client's QUIC Initials of one datagram.

    state is need_more if Initials opened and the ClientHello continues in another datagram. crypto
    then has its parts: (offset in bytes, bytes) of each CRYPTO frame, by offset in each packet.
    version, dcid and scid are the last Initial's.
    """

    ech_offered: bool
    version: int
    dcid: bytes
    scid: bytes
    crypto: tuple[tuple[int, bytes], ...]


def _hostname(raw: bytes) -> str | None:
    kind, text = _core.normalize_host(raw)
    return text if kind in ("name", "home") else None


def tls_client_hello(data: bytes, *, cut: bool = False) -> ClientHello:
    """Parses the first bytes of a client's TLS stream (RFC 8446, 4.1.2 and 5.1; RFC 6066, 3).

    data: records from the first one on. cut: true if no more bytes can come, because a snapshot
    length cut them off; a whole server_name extension is then enough.
    """
    state, raw, ech_offered = _core.parse_tls(data, cut=cut)
    return ClientHello(cast(State, state), raw, _hostname(raw), ech_offered)


def http_host(data: bytes, *, cut: bool = False) -> HttpHost:
    """Parses an HTTP/1.x request head (RFC 9112, 3.2).

    data: the client's bytes, from the request line on, whose method may be any token. cut: true if
    no more bytes can come; a request line that names the host, or a whole Host field that nothing
    after it contradicts, is then enough. Returns the host of an absolute target, else of the Host
    field.
    """
    state, raw, method, head_bytes = _core.parse_http(data, cut=cut, any_method=True)
    return HttpHost(cast(State, state), raw, _hostname(raw), method, head_bytes)


def h2_hosts(data: bytes) -> Http2Hosts:
    """Parses a client's side of an HTTP/2 connection in clear (RFC 9113, 8.3.1; RFC 7541).

    data: the client's bytes, from its preface on. Returns the host of each request, in order.
    """
    state, used = _core.http2_preface(data)
    table = _core.HeaderTable()
    raw: list[bytes] = []
    if state != "done":
        return Http2Hosts(cast(State, state), (), ())
    while state in ("done", "other") and used < len(data):
        state, taken, request, host, _method = table.next_unit(data[used:])
        used += taken
        if state == "done" and request:
            raw.append(host)
    whole = "need_more" if used > len(data) else "done"
    state = whole if state in ("done", "other") else state
    return Http2Hosts(cast(State, state), tuple(raw), tuple(map(_hostname, raw)))


def dns_question(data: bytes, *, whole: bool = True) -> DnsQuestion:
    """Parses the first question of a DNS message (RFC 1035, 4.1).

    data: the message, without the length that precedes it over TCP. whole: true if all of it is
    there; otherwise missing bytes are need_more.
    """
    state, raw, response, number, kind = _core.parse_dns(data, whole=whole)
    return DnsQuestion(cast(State, state), raw, _hostname(raw), response, number, kind)


def quic_initial(data: bytes, first_dcid: bytes | None = None) -> QuicInitial:
    """Opens the client's Initials in a UDP payload and parses the ClientHello in them.

    Versions 1 (RFC 9001, 5), 2 (RFC 9369), drafts 22 to 34 and mvfst.

    data: the payload of a datagram. first_dcid: the Destination Connection ID of the client's first
    Initial (after a Retry: the Retry's Source Connection ID), from which the keys are derived;
    None: the Initial's own. Returns the hello, or its parts. Raises ValueError if first_dcid is
    longer than 20 bytes.
    """
    state, version, dcid, scid, crypto = _core.parse_quic(data, first_dcid)
    raw, ech_offered = b"", False
    if state == "done":
        state, raw, ech_offered = _hello_of(crypto)
    return QuicInitial(
        cast(State, state), raw, _hostname(raw), ech_offered, version, dcid, scid, tuple(crypto)
    )


def _hello_of(crypto: list[tuple[int, bytes]]) -> tuple[str, bytes, bool]:
    """Parses the ClientHello that the CRYPTO frames make up; a contradiction is malformed."""
    message = b""
    for offset, piece in sorted(crypto):
        if offset != len(message):
            return _hello_of_any(crypto)
        message += piece
    return _core.parse_hello(message)


def _hello_of_any(crypto: list[tuple[int, bytes]]) -> tuple[str, bytes, bool]:
    """Parses as `_hello_of`, but frames that overlap or leave holes."""
    stream = _core.Stream(0)
    for offset, piece in crypto:
        if stream.add(min(offset, 0xFFFFFFFF), piece) == "conflict":
            return "malformed", b"", False
    return _core.parse_hello(stream.head())
