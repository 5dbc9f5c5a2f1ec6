# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Requests with a chunked body (RFC 9112 7.1): requests inside it are not its sender's."""

import pytest
from support.engine import run
from support.examples import each
from support.packets import ACK, CLIENT, PSH, Tcp, request
from support.stream import NAME, OTHER, names, segments, talk_of

FIRST = "first.example"
HEAD = b"POST / HTTP/1.1\r\nHost: first.example\r\nTransfer-Encoding: %s\r\n\r\n"
CHUNKED = HEAD % b"Chunked"
INSIDE = request(b"inside.example")
BOTH = sorted([FIRST, NAME.decode()])


def chunk(data: bytes, size: bytes = b"%x\r\n") -> bytes:
    return size % len(data) + data + b"\r\n"


LAST = b"0\r\n\r\n"
ENDS = {
    "plain": LAST,
    "zeros": b"000\r\n\r\n",
    "extension": b"0 ; a=b\r\n\r\n",
    "trailers": b"0\r\nA: b\r\nHost: inside.example\r\n\r\n",
    "bare LF": b"0\n\n",
}


@each("size", [b"%x\r\n", b"%X\r\n", b"%04x;n=v\r\n", b"%x \r\n", b"%x\n"])
@each("end", ENDS.values())
def test_a_request_inside_a_chunk_names_nothing(size: bytes, end: bytes) -> None:
    parts = chunk(INSIDE, size).partition(INSIDE)
    assert names(talk_of(CHUNKED, *parts, *parts, end, request(NAME))) == BOTH
    assert names(talk_of(CHUNKED + b"".join(parts) * 3 + end + request(NAME))) == BOTH
    assert names(talk_of(CHUNKED, chunk(INSIDE * 200, size) + end, request(NAME))) == BOTH


@pytest.mark.parametrize("size", [1, 2, 3, 7, 20])
def test_chunks_in_segments_of_any_size(size: int) -> None:
    stream = CHUNKED + chunk(INSIDE) + chunk(b"x" * 17) + LAST + request(NAME)
    assert names(talk_of(*segments(stream, size))) == BOTH


def test_chunks_out_of_order() -> None:
    stream = CHUNKED + chunk(b"x" * 30) + chunk(b"y" * 20) + LAST + request(NAME)
    talk, cut = Tcp().handshake().say(stream[: len(CHUNKED) + 10]), len(CHUNKED) + 10
    for start, end in ((cut + 30, len(stream)), (cut, cut + 30)):
        talk.segment(CLIENT, PSH | ACK, stream[start:end], seq=1001 + start)
    assert names(talk) == BOTH


@each("body", [b"no chunk", b"12345678\r\n", b"\r\n", b"-1\r\n", b"5" * 300])
@each("coding", [b"chunked", b"identity", b"gzip, chunked"])
def test_behind_what_is_no_chunk_no_request_is_read(body: bytes, coding: bytes) -> None:
    """Nobody knows where the next one begins: what looks like one may be in the body."""
    assert names(talk_of(HEAD % coding + body, request(NAME))) == [FIRST]
    assert names(talk_of(HEAD % coding, body, request(NAME))) == [FIRST]


@pytest.mark.parametrize("coding", [b"chunked", b"identity"])
def test_a_request_in_place_of_a_body_is_not_read(coding: bytes) -> None:
    deleting = request(NAME, b"DELETE")
    assert names(talk_of(HEAD % coding, deleting)) == [FIRST]
    assert names(talk_of(HEAD % coding + deleting)) == [FIRST]


def test_behind_lost_chunks_no_request_is_read() -> None:
    talk = Tcp().handshake().say(CHUNKED + chunk(b"x" * 10))
    talk.next[CLIENT] += 5000
    talk.say(request(NAME)).say(request(OTHER))
    assert names(talk) == [FIRST]


def test_trailers_without_end_are_no_body() -> None:
    endless = chunk(b"x") + b"0\r\n" + b"A: b\r\n" * 1000
    talk = talk_of(CHUNKED, *segments(endless, 1000), request(NAME))
    assert names(talk) == [FIRST]
    stats = run(talk.frames, z=1).stats
    assert (stats["suppressed_incomplete"], stats["bodies_lost"]) == (0, 1)


@pytest.mark.parametrize(
    ("stream", "lost"),
    [
        (CHUNKED + chunk(b"x", b"%x;" + b"e" * 250 + b"\r\n") + LAST, 0),
        (CHUNKED + chunk(b"x", b"%x;" + b"e" * 300 + b"\r\n") + LAST, 1),
        (CHUNKED + b"12345678\r\n", 1),
        (HEAD.replace(b"Transfer-Encoding: %s", b"Content-Length: %d") % (1 << 30), 0),
        (HEAD.replace(b"Transfer-Encoding: %s", b"Content-Length: %d") % (1 << 31), 1),
    ],
)
def test_a_body_whose_end_is_not_found_is_counted(stream: bytes, lost: int) -> None:
    assert run(talk_of(stream).frames, z=1).stats["bodies_lost"] == lost
