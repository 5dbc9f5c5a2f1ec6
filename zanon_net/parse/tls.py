# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""TLS (RFC 8446) and DTLS (RFC 9147)."""

from dataclasses import dataclass
from typing import cast

from zanon_net import _core
from zanon_net.parse.result import Parsed, State, hostname


@dataclass(frozen=True, slots=True)
class ClientHello(Parsed):
    """A TLS ClientHello.

    used: bytes of the data up to the end of the hello. ech_offered: true if it has the extension of
    Encrypted ClientHello; the name is then that of the outer hello. versions: numbers of the
    versions that are offered, at most 15; empty if the hello is cut. session_id: true if it resumes
    or imitates a session. pre_shared_key, early_data: true if it has these extensions.
    """

    used: int
    ech_offered: bool
    versions: tuple[int, ...]
    session_id: bool
    pre_shared_key: bool
    early_data: bool


@dataclass(frozen=True, slots=True)
class ServerHello:
    """A TLS ServerHello.

    state: see State. used: bytes of the data up to its end. version: number of the version that the
    server chose (0x0304: TLS 1.3). suite: IANA's number of the cipher suite. suite_encrypts: true
    for a suite that IANA has registered and that encrypts. retry: true for a HelloRetryRequest.
    """

    state: State
    used: int
    version: int
    suite: int
    suite_encrypts: bool
    retry: bool


@dataclass(frozen=True, slots=True)
class CommonName(Parsed):
    """The first common name of a certificate's subject. The state is other if the subject
    has no common name."""


@dataclass(frozen=True, slots=True)
class Certificate(Parsed):
    """The first certificate of a server's flight, and the first common name of its subject.

    certificate: in DER. certificate_offset: its offset in the data, None if several records carry
    it. The state is other if there is no certificate in clear, as in TLS 1.3, or if it has no
    common name.
    """

    certificate: bytes
    certificate_offset: int | None


@dataclass(frozen=True, slots=True)
class DtlsFragment:
    """A part of a handshake message.

    type: the message's (1 ClientHello, 2 ServerHello, 3 HelloVerifyRequest). message: its number.
    length: of the whole message's body. start: offset of this part in the body. offset: offset of
    this part in the datagram, None if it is empty. data: this part.
    """

    type: int
    message: int
    length: int
    start: int
    offset: int | None
    data: bytes


@dataclass(frozen=True, slots=True)
class DtlsFragments:
    """The handshake fragments in clear of a datagram. state: how the reading ended."""

    state: State
    fragments: tuple[DtlsFragment, ...]


@dataclass(frozen=True, slots=True)
class DtlsClientHello(ClientHello):
    """The body of a DTLS ClientHello. cookie: the server's, which the client sends back."""

    cookie: bytes


@dataclass(frozen=True, slots=True)
class DtlsCookie:
    """A HelloVerifyRequest. cookie: the cookie that the client has to send back."""

    state: State
    cookie: bytes


def tls_client_hello(data: bytes, *, cut: bool = False) -> ClientHello:
    """Parses the first bytes of a client's TLS stream (RFC 8446, 4.1.2 and 5.1; RFC 6066, 3).

    data: records from the first one on. cut: true if no more bytes can come, because a snapshot
    length cut them off; a whole server_name extension is then enough.
    """
    state, raw, offset, *fields = _core.read_hello(data, cut=cut)
    return ClientHello(state, raw, hostname(raw), offset, *fields)


def tls_server_hello(data: bytes) -> ServerHello:
    """Parses the ServerHello at the start of a server's TLS stream (RFC 8446, 4.1.3).

    data: records from the first one on.
    """
    state, *fields = _core.read_server_hello(data)
    return ServerHello(state, *fields)


def tls_certificate(data: bytes) -> Certificate:
    """Parses the first certificate at the start of a server's TLS stream (RFC 5246, 7.4.2).

    data: records from the first one on, of which the first 16,384 handshake bytes are read.
    """
    state, raw, offset, certificate, place = _core.read_certificate(data)
    return Certificate(state, raw, hostname(raw), offset, certificate, place)


def x509_common_name(data: bytes) -> CommonName:
    """Parses the common name in a certificate's subject (RFC 5280, 4.1).

    data: the certificate in DER.
    """
    state, raw, offset = _core.read_common_name(data)
    return CommonName(state, raw, hostname(raw), offset)


def dtls_fragments(data: bytes, *, whole: bool = True) -> DtlsFragments:
    """Parses the handshake fragments in clear of a datagram (RFC 6347, 4; RFC 9147, 4).

    data: the payload of a datagram. whole: true if all of it is there.
    """
    state, fragments = _core.read_dtls(data, whole=whole)
    return DtlsFragments(state, tuple(DtlsFragment(*part) for part in fragments))


def dtls_client_hello(data: bytes, *, declared: int | None = None) -> DtlsClientHello:
    """Parses the body of a DTLS ClientHello (RFC 6347, 4.2.1; RFC 9147, 5.3).

    data: the body, put together from its fragments. declared: length of the whole body if the
    capture cut it.
    """
    length = len(data) if declared is None else declared
    state, raw, offset, *fields = _core.read_hello_body(data, declared=length)
    return DtlsClientHello(state, raw, hostname(raw), offset, *fields)


def dtls_cookie(data: bytes) -> DtlsCookie:
    """Parses the body of a HelloVerifyRequest (RFC 6347, 4.2.1)."""
    state, cookie = _core.parse_dtls_cookie(data)
    return DtlsCookie(cast(State, state), cookie)
