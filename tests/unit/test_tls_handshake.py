# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Facts of a handshake beside the server name, and the name in a certificate (RFC 8446, 5280)."""

import struct

import pytest
from cryptography import x509
from support import wire
from support.handshake import certificate, flight, message, named, server_hello

from zanon_net import _core

ALPN, NPN, PSK, EARLY_DATA = 0x0010, 0x3374, 0x0029, 0x002A
NPN_EMPTY, NPN_HTTP, NPN_SPDY, NPN_H2 = 1, 2, 4, 8
ALPN_EMPTY, ALPN_HTTP, ALPN_SPDY, ALPN_H2 = 16, 32, 64, 128
RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")

COMMON = x509.NameOID.COMMON_NAME


def alpn(*names: bytes) -> bytes:
    return wire.extension(ALPN, wire.vector(2, b"".join(wire.vector(1, n) for n in names)))


def npn(*names: bytes) -> bytes:
    return wire.extension(NPN, b"".join(wire.vector(1, n) for n in names))


def versions(*numbers: int) -> bytes:
    listed = b"".join(struct.pack(">H", number) for number in numbers)
    return wire.extension(wire.SUPPORTED_VERSIONS, wire.vector(1, listed))


def details(*messages: bytes) -> tuple[list[int], int, bool, bool, bool, bool]:
    return _core.parse_tls_details(wire.record(b"".join(messages)))


# ---- hellos -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extensions", "found", "bits"),
    [
        ((), [0x0303], 0),
        ((versions(0x0304, 0x0303),), [0x0304, 0x0303], 0),
        ((versions(0x6A6A, 0x0304),), [0x6A6A, 0x0304], 0),
        ((wire.extension(wire.SUPPORTED_VERSIONS),), [0x0303], 0),
        ((versions(*range(40)),), list(range(15)), 0),
        ((alpn(b"h2", b"http/1.1"),), [0x0303], ALPN_H2 | ALPN_HTTP),
        ((alpn(b"h2-14", b"spdy/3", b"h3", b"h2x"),), [0x0303], ALPN_H2 | ALPN_SPDY),
        ((wire.extension(ALPN),), [0x0303], ALPN_EMPTY),
        ((npn(),), [0x0303], NPN_EMPTY),
        ((npn(b"h2", b"spdy/3.1", b"http/1.0"),), [0x0303], NPN_H2 | NPN_SPDY | NPN_HTTP),
        ((npn(), alpn(b"http/1.1")), [0x0303], NPN_EMPTY | ALPN_HTTP),
    ],
)
def test_client_hello(extensions: tuple[bytes, ...], found: list[int], bits: int) -> None:
    assert details(wire.client_hello(*extensions))[:2] == (found, bits)


def test_resumption() -> None:
    hello = wire.client_hello(wire.extension(EARLY_DATA), session_id=bytes(32))
    assert details(hello)[2:] == (True, False, True, False)
    hello = wire.client_hello(wire.extension(PSK, b"\0\0"))
    assert details(hello)[2:] == (False, True, False, False)
    assert details(server_hello(wire.extension(PSK, b"\0\0")))[2:] == (False, True, False, False)
    assert details(server_hello(random=RETRY))[5]
    assert not details(wire.client_hello())[5]


def test_server_hello() -> None:
    chosen = wire.extension(wire.SUPPORTED_VERSIONS, b"\3\4")
    assert details(server_hello(chosen))[0] == [0x0304]
    assert details(server_hello(alpn(b"h2")))[:2] == ([0x0303], ALPN_H2)
    assert details(server_hello(version=0x0301))[0] == [0x0301]


def test_a_hello_may_span_records_and_be_cut() -> None:
    hello = wire.client_hello(versions(0x0304), alpn(b"h2"))
    whole = wire.records(hello, [7])
    assert _core.parse_tls_details(whole)[:2] == ([0x0304], ALPN_H2)
    seen = {_core.parse_tls_details(cut)[0] != [] for cut in wire.prefixes(wire.record(hello))}
    assert seen == {True, False}
    for cut in wire.prefixes(whole):
        assert _core.parse_tls_details(cut)[0] in ([], [0x0303], [0x0304])


def test_what_is_no_hello() -> None:
    nothing = ([], 0, False, False, False, False)
    assert _core.parse_tls_details(b"") == nothing
    assert details(b"\x0b\0\0\0") == nothing
    assert _core.parse_tls_details(wire.record(wire.client_hello(), kind=23)) == nothing
    assert _core.parse_tls_details(wire.record(wire.client_hello(), version=0x0201)) == nothing


# ---- certificates -------------------------------------------------------------------------------


def test_the_subject_of_the_first_certificate_counts() -> None:
    chain = flight(named("www.example.org"), named("other.example"))
    assert _core.parse_certificate(wire.record(chain)) == ("done", b"www.example.org")
    assert _core.parse_certificate(wire.records(chain, [100])) == ("done", b"www.example.org")
    printable = x509.NameAttribute(COMMON, "a.example", _type=x509.name._ASN1Type.PrintableString)
    assert _core.parse_certificate(wire.record(flight(certificate(printable))))[1] == b"a.example"


def test_a_certificate_without_a_name() -> None:
    assert _core.parse_certificate(wire.record(flight(certificate()))) == ("other", b"")
    wide = x509.NameAttribute(COMMON, "ab", _type=x509.name._ASN1Type.BMPString)
    assert _core.parse_certificate(wire.record(flight(certificate(wide)))) == ("other", b"")


def test_no_certificate_comes() -> None:
    done = server_hello() + b"\x0e\0\0\0"
    assert _core.parse_certificate(wire.record(done)) == ("other", b"")
    assert _core.parse_certificate(wire.record(server_hello())) == ("need_more", b"")
    assert _core.parse_certificate(wire.record(server_hello() + message())) == ("other", b"")


def test_every_prefix_needs_more_until_the_certificate_is_whole() -> None:
    whole = wire.record(flight(named("www.example.org")))
    answers = [_core.parse_certificate(cut) for cut in wire.prefixes(whole)]
    first = answers.index(("done", b"www.example.org"))
    assert set(answers[:first]) == {("need_more", b"")}
    assert set(answers[first:]) == {("done", b"www.example.org")}


def test_a_changed_byte_never_reads_beyond_the_certificate() -> None:
    whole = named("www.example.org")
    for _place, changed in wire.off_by_one(whole[:160]):
        rest = changed + whole[160:]
        state, name = _core.parse_certificate(wire.record(flight(rest)))
        assert state in ("done", "other", "malformed")
        assert len(name) <= len(whole)
