# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The host of an HTTP/2 request in clear: RFC 9113 6 and 8.3.1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import each
from support.h2 import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    HEADERS,
    PADDED,
    PREFACE,
    PRIORITIZED,
    PRIORITY,
    PUSH_PROMISE,
    SETTINGS,
    WINDOW_UPDATE,
    Client,
    frame,
)
from support.wire import HOST, prefixes

from zanon_net._core import HeaderTable, http2_preface


def host(data: bytes) -> bytes:
    state, used, request, name, method = HeaderTable().next_unit(data)
    assert (state, used, request, method) == ("done", len(data), True, 1)
    return name


def test_the_preface() -> None:
    assert http2_preface(PREFACE) == http2_preface(PREFACE + b"x") == ("done", 24)
    for prefix in prefixes(PREFACE):
        assert http2_preface(prefix) == ("need_more" if prefix else "other", 0)
    assert http2_preface(PREFACE.lower()) == ("other", 0)


def block() -> bytes:
    return Client().block(HOST)


HEADERS_OF_A_REQUEST = {
    "plain": Client().request(HOST),
    "continued": Client().request(HOST, cuts=[3]),
    "continued in single bytes": Client().request(HOST, cuts=range(1, len(block()))),
    "empty frames": Client().request(HOST, cuts=[0, 0, 3]),
    "padded": frame(HEADERS, b"\x05" + block() + bytes(5), flags=END_HEADERS | PADDED, stream=1),
    "priority": frame(HEADERS, bytes(5) + block(), flags=END_HEADERS | PRIORITIZED, stream=1),
    "both": frame(
        HEADERS,
        b"\1" + bytes(5) + block() + b"\0",
        flags=END_HEADERS | PADDED | PRIORITIZED,
        stream=1,
    ),
    "host alone": Client().request(None, (b"host", HOST)),
    "host that agrees": Client().request(HOST, (b"host", HOST.upper())),
    "reserved bit": frame(HEADERS, block(), flags=END_HEADERS, stream=1 << 31 | 1),
}


@pytest.mark.parametrize("data", HEADERS_OF_A_REQUEST.values(), ids=HEADERS_OF_A_REQUEST)
def test_host(data: bytes) -> None:
    assert host(data) == HOST
    for prefix in prefixes(data):
        state, _used, _request, name, _method = HeaderTable().next_unit(prefix)
        assert (state, name) == ("need_more", b"")


@pytest.mark.parametrize("kind", [DATA, PRIORITY, 3, SETTINGS, 6, 7, WINDOW_UPDATE, 10, 200])
def test_other_frames_are_passed_over(kind: int) -> None:
    data = frame(kind, bytes(70), stream=1)
    assert HeaderTable().next_unit(data)[:4] == ("done", 79, False, b"")
    assert HeaderTable().next_unit(data[:9])[:2] == ("done", 79)
    assert HeaderTable().next_unit(data[:8])[0] == "need_more"


def test_trailers_and_requests_without_a_name() -> None:
    client = Client()
    trailers = client.headers(client.encoder.encode([(b"grpc-status", b"0")]))
    assert HeaderTable().next_unit(trailers)[:4] == ("done", len(trailers), False, b"")
    assert host(Client().request(None)) == b""


@pytest.mark.parametrize(
    "more",
    [
        [(b"host", b"other.example")],
        [(b":authority", HOST)],
        [(b"host", HOST), (b"host", HOST)],
        [(b"host", b"")],
    ],
)
def test_a_request_that_servers_refuse_names_nothing(more: list[tuple[bytes, bytes]]) -> None:
    data = Client().request(HOST, *more)
    assert HeaderTable().next_unit(data)[:4] == ("other", len(data), True, b"")


@each(
    "data",
    [
        frame(CONTINUATION, block(), flags=END_HEADERS, stream=1),
        frame(PUSH_PROMISE, block(), flags=END_HEADERS, stream=1),
        frame(HEADERS, block(), flags=END_HEADERS),
        frame(DATA, b"x"),
        frame(HEADERS, block(), stream=1) + frame(DATA, b"", stream=1),
        frame(HEADERS, block(), stream=1) + frame(CONTINUATION, b"", stream=3),
        frame(HEADERS, b"\x09" + bytes(8), flags=END_HEADERS | PADDED, stream=1),
        frame(HEADERS, b"", flags=END_HEADERS | PADDED, stream=1),
        frame(HEADERS, bytes(4), flags=END_HEADERS | PRIORITIZED, stream=1),
        frame(HEADERS, b"\x80", flags=END_HEADERS, stream=1),
        frame(HEADERS, bytes(16385), stream=1),
        frame(HEADERS, bytes(16384), stream=1) + frame(CONTINUATION, b"x", stream=1),
    ],
)
def test_malformed(data: bytes) -> None:
    assert HeaderTable().next_unit(data)[0] == "malformed"


@given(st.binary(max_size=60))
def test_any_bytes_end(data: bytes) -> None:
    for start in (b"", data[:3] + b"\1\4\0\0\0\1"):
        state, *_rest = HeaderTable().next_unit(start + data)
        assert state in ("done", "need_more", "malformed", "other")
