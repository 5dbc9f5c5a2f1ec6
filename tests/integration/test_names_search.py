# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Hellos and requests in the middle of a connection, behind segments that begin nothing."""

import pytest
from support.examples import each
from support.h2 import opening
from support.packets import ACK, CLIENT, PSH, SERVER, Tcp, request
from support.proxy_starttls_prefix import PREFIXES
from support.stream import HELLO, NAME, names

NOTHING = b"\xff\xfe\xfd\xfc"  # no text: recognised by its first byte
TEXT = b"0000"  # recognised by none of its bytes alone
LAST = 15  # the client's segment that is the last one looked at

BEGINNINGS = {"TLS": HELLO, "HTTP": request(NAME), "HTTP/2": opening(NAME)}
BEGINNINGS |= {what: before + HELLO for what, before in PREFIXES.items()}


def behind(count: int, nothing: bytes, payload: bytes) -> list[str]:
    """The names found behind so many segments of each side."""
    talk = Tcp(ports=(40000, 50000)).handshake()
    for _ in range(count):
        talk.segment(CLIENT, PSH | ACK, nothing).segment(SERVER, PSH | ACK, nothing)
    return names(talk.say(payload))


@each("payload", BEGINNINGS.values())
@each("nothing", [NOTHING, TEXT])
def test_a_name_behind_segments_that_begin_nothing(payload: bytes, nothing: bytes) -> None:
    for count in (1, 7, LAST - 1):
        assert behind(count, nothing, payload) == [NAME.decode()]


@pytest.mark.parametrize("first", [b"", b"\0", b"\0\0\0\x08", b"\x02", b"\x1f", b"\x7f", b"\xff"])
def test_where_the_search_ends_does_not_depend_on_the_bytes(first: bytes) -> None:
    nothing = first + TEXT[len(first) :]
    assert behind(LAST - 1, nothing, HELLO) == [NAME.decode()]
    assert behind(LAST, nothing, HELLO) == []


@pytest.mark.parametrize("nothing", [NOTHING, TEXT], ids=["bytes", "text"])
def test_what_overlaps_begins_nothing_and_what_is_missing_is_waited_for(nothing: bytes) -> None:
    for shift, found in ((0, [NAME.decode()]), (-2, []), (2, [NAME.decode()])):
        talk = Tcp(ports=(40000, 50000)).handshake()
        for _ in range(4):
            talk.segment(CLIENT, PSH | ACK, nothing).segment(SERVER, PSH | ACK, nothing)
        talk.segment(CLIENT, PSH | ACK, HELLO, seq=talk.next[CLIENT] + shift)
        assert names(talk.segment(SERVER, ACK)) == found
