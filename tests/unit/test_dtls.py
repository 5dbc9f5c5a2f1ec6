# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""DTLS records, handshake fragments and hellos: RFC 6347 4, RFC 9147 4 and 5."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import wire
from support.quic_wire import dtls_fragment, dtls_hello, dtls_record, verify_request
from support.wire import HOST

from zanon_net import _core

BODY = dtls_hello(wire.extension(wire.SUPPORTED_VERSIONS, b"\2\xfe\xfc"), cookie=b"cookie")
HELLO = dtls_record(dtls_fragment(BODY))


def test_a_hello_in_one_record() -> None:
    assert _core.parse_dtls(HELLO) == ("done", [(1, 0, len(BODY), 0, BODY)])
    assert _core.parse_dtls_hello(BODY) == ("done", HOST, False, b"cookie")


def test_fragments_and_records_of_a_datagram() -> None:
    parts = [dtls_fragment(BODY, a, b, message=3) for a, b in ((40, None), (0, 7), (7, 40))]
    expected = [(1, 3, len(BODY), a, BODY[a:b]) for a, b in ((40, len(BODY)), (0, 7), (7, 40))]
    for datagram in (
        b"".join(map(dtls_record, parts)),
        dtls_record(b"".join(parts)),
        dtls_record(b"\2\x28", kind=21) + dtls_record(parts[0] + parts[1]) + dtls_record(parts[2]),
        dtls_record(b"sealed", epoch=1) + dtls_record(b"".join(parts), version=0xFEFD),
        dtls_record(b"") + dtls_record(b"".join(parts)) + dtls_record(b"x", kind=23, epoch=1),
    ):
        assert _core.parse_dtls(datagram) == ("done", expected)


def test_records_of_dtls_1_3_end_the_search() -> None:
    assert _core.parse_dtls(HELLO + b"\x2f\0\1\0\4abcd") == _core.parse_dtls(HELLO)


@pytest.mark.parametrize(
    "datagram",
    [
        b"",
        b"\x16",
        wire.record(HELLO),
        b"\x16\xfd\xff" + bytes(40),
        b"\x16\xfe\xfb" + bytes(40),
        b"\x17\xfe\xff" + bytes(40),
        b"\x80" + bytes(40),
        dtls_record(BODY, epoch=2),
    ],
)
def test_other_datagrams(datagram: bytes) -> None:
    assert _core.parse_dtls(datagram) == ("other", [])


def test_lengths_that_lie() -> None:
    fragment = dtls_fragment(BODY)
    for lie in (
        fragment[:1] + b"\0\0\5" + fragment[4:],
        fragment[:6] + b"\0\0\1" + fragment[9:],
        fragment[:9] + b"\xff\xff\xff" + fragment[12:],
        fragment[:-1],
        fragment[:11],
    ):
        assert _core.parse_dtls(dtls_record(lie)) == ("malformed", [])
    assert _core.parse_dtls(HELLO[:-1]) == ("malformed", [])


def test_prefixes() -> None:
    for prefix in wire.prefixes(HELLO):
        state, parts = _core.parse_dtls(prefix)
        assert parts == []
        state, parts = _core.parse_dtls(prefix, whole=False)
        if len(prefix) > 25:
            assert (state, parts) == ("need_more", [(1, 0, len(BODY), 0, prefix[25:])])
        elif len(prefix) > 13:
            assert (state, parts in ([], [(1, 0, len(BODY), 0, b"")])) == ("need_more", True)


def test_a_prefix_of_a_hello_gives_its_name_or_none() -> None:
    end = BODY.index(HOST) + len(HOST)
    for prefix in wire.prefixes(BODY):
        state, host, *_ = _core.parse_dtls_hello(prefix, declared=len(BODY))
        assert host == (HOST if len(prefix) >= end else b"")
        assert state == ("done" if host else "need_more")
        assert _core.parse_dtls_hello(prefix)[1] == b""


def test_a_byte_off_by_one_gives_no_other_name() -> None:
    at = BODY.index(HOST)
    for place, changed in wire.off_by_one(BODY):
        if not at <= place < at + len(HOST):
            assert _core.parse_dtls_hello(changed)[1] in (HOST, b"")


def test_bodies_that_are_no_dtls_hello() -> None:
    tls = wire.client_hello(wire.server_name(HOST))[4:]
    assert _core.parse_dtls_hello(tls)[0] == "other"
    for body in (b"", b"\xfe", b"\xfe\xfd" + bytes(30), b"\xfe\xfd" + bytes(17000)):
        assert _core.parse_dtls_hello(body)[0] == "malformed"
    ech = wire.extension(wire.ECH, bytes(40))
    assert _core.parse_dtls_hello(dtls_hello(ech)) == ("done", HOST, True, b"")


def test_the_cookie_of_a_verify_request() -> None:
    for cookie in (b"", b"x", bytes(range(255))):
        ((kind, _, _, _, body),) = _core.parse_dtls(verify_request(cookie))[1]
        assert kind == 3
        assert _core.parse_dtls_cookie(body) == ("done", cookie)
        for prefix in wire.prefixes(body):
            assert _core.parse_dtls_cookie(prefix) == ("malformed", b"")


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_end_in_a_state(data: bytes, whole: bool) -> None:
    for head in (b"", b"\x16\xfe\xfd" + bytes(8), HELLO[:13], HELLO[:25], HELLO):
        _core.parse_dtls(head + data, whole=whole)
    _core.parse_dtls_hello(b"\xfe\xfd" + data)
    _core.parse_dtls_cookie(data)
