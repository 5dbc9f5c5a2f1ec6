# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Prefixes that a client sends before its hello: PROXY, SOCKS, STARTTLS and the like."""

from hypothesis import given
from hypothesis import strategies as st
from support.examples import each
from support.packets import hello
from support.proxy_starttls_prefix import PREFIXES, PROXY_SIGNATURE
from support.wire import HOST, prefixes

from zanon_net._core import skip_proxy_or_starttls_prefix

HELLO = hello(HOST)


@each("before", PREFIXES.values())
def test_a_prefix_ends_where_the_hello_begins(before: bytes) -> None:
    assert skip_proxy_or_starttls_prefix(before + HELLO) == len(before)


@each("before", PREFIXES.values())
def test_half_a_prefix_is_none(before: bytes) -> None:
    for prefix in prefixes(before):
        used = skip_proxy_or_starttls_prefix(prefix)
        assert used == 0 or used <= len(before)


@each(
    "data",
    [
        b"",
        HELLO,
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PROXY TCP4 " + b"1" * 107 + b"\r\n",
        b"PROXY SCTP 1\r\n",
        PROXY_SIGNATURE + b"\x11\x11\0\x0c" + bytes(12),
        b"\4\1\0\0\xc0\0\2\1user\0",
        b"\4\3\1\xbb\xc0\0\2\1user\0",
        b"\5\0",
        b"MAIL FROM:<a@b>\r\nSTARTTLS\r\nNOOP\r\n" + HELLO,
        b"NOOP\r\n" + HELLO,
        b"STARTTLS" + HELLO,
        b"\1\2\3STARTTLS\r\n" + HELLO,
        bytes.fromhex("20000001 85a6ff19 00000001 21") + bytes(23),
        bytes.fromhex("3000001a 25 e0"),
        bytes.fromhex("301d 020101 6018 8016") + b"1.3.6.1.4.1.1466.20037",
        bytes.fromhex("1201 0100 0000 0100 17"),
        b"SSH-2.0-x\r\n",
    ],
)
def test_other_bytes(data: bytes) -> None:
    assert skip_proxy_or_starttls_prefix(data) == 0


@given(st.binary(max_size=80))
def test_any_bytes_end(data: bytes) -> None:
    for start in (b"", b"\5", b"\4\1", b"\x30", b"\3\0", b"PROXY TCP4 "):
        skip_proxy_or_starttls_prefix(start + data)
