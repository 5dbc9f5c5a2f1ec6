# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Names in ClientHellos through the whole engine: in pieces, twice, behind other things."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import wire
from support.engine import run
from support.examples import each, examples
from support.h2 import (
    PREFACE,
    SETTINGS,
    Client,
    fields,
    frame,
)
from support.packets import (
    ACK,
    CLIENT,
    PSH,
    SERVER,
    SYN,
    Tcp,
    hello,
    request,
)
from support.proxy_starttls_prefix import PREFIXES
from support.stream import (
    CUT,
    DNS,
    HELLO,
    LONG_HELLO,
    NAME,
    OTHER,
    message,
    names,
    one_user,
    place,
    segments,
    talk_of,
)

# ---- before the hello ---------------------------------------------------------------------------


@each("payload", [HELLO, request(NAME)])
@each("what", [name for name in PREFIXES if name[:5] in ("PROXY", "SOCKS")])
def test_a_proxy_prefix(what: str, payload: bytes) -> None:
    before = PREFIXES[what]
    for talk in (
        talk_of(before + payload, ports=(40000, 1080)),
        talk_of(before, payload, ports=(40000, 1080)),
        talk_of(before + payload[:70], payload[70:], ports=(40000, 1080)),
    ):
        assert one_user(talk).released() == {NAME.decode()}


@each("before", PREFIXES.values())
def test_a_request_for_tls(before: bytes) -> None:
    for talk in (
        talk_of(before + HELLO),
        talk_of(before + HELLO[:70], HELLO[70:]),
        Tcp().handshake().say(b"220 ready\r\n", SERVER).say(before).say(b"S", SERVER).say(HELLO),
    ):
        assert one_user(talk).released() == {NAME.decode()}


def test_everything_a_socks_client_says_at_once() -> None:
    greeting, password = b"\5\2\0\2", b"\1\4user\6secret"
    data = greeting + password + PREFIXES["SOCKS 5 name"] + HELLO
    assert names(talk_of(data)) == [NAME.decode()]


@pytest.mark.parametrize("lines", [6, 13, 14, 20])
def test_a_long_conversation_before_starttls(lines: int) -> None:
    """The hello is looked for in the client's first 15 segments with data."""
    talk = Tcp(ports=(40000, 143)).handshake().say(b"* OK ready\r\n", SERVER)
    for i in range(lines):
        talk.say(b"a%d CAPABILITY\r\n" % i).say(b"a OK\r\n", SERVER)
    found = [NAME.decode()] if lines + 2 <= 15 else []
    assert names(talk.say(b"a7 STARTTLS\r\n").say(HELLO)) == found


def test_a_hello_inside_other_bytes_is_none() -> None:
    for before in (b"x", b"DATA\r\n", bytes(20), b"STARTTLS"):
        assert names(talk_of(before + HELLO)) == []
    body = b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 600\r\n\r\n" + HELLO
    assert names(talk_of(body)) == ["a.example"]


def test_behind_connect() -> None:
    talk = talk_of(request(b"proxy.example", b"CONNECT").replace(b" / ", b" www.example.net:443 "))
    assert names(talk.say(HELLO)) == [OTHER.decode(), NAME.decode()]


# ---- ClientHellos -------------------------------------------------------------------------------

CHANGE_CIPHER = b"\x14\3\3\0\1\1"
RETRY_REQUEST = wire.record(b"\2\0\0\x26\3\3" + bytes(36))


def retried(second: bytes, before: bytes = b"") -> Tcp:
    """A hello, a HelloRetryRequest, and another hello."""
    return Tcp().handshake().say(HELLO).say(RETRY_REQUEST, SERVER).say(before + second)


@pytest.mark.parametrize("before", [b"", CHANGE_CIPHER])
def test_a_second_hello_for_the_same_host(before: bytes) -> None:
    outcome = one_user(retried(hello(NAME.upper(), wire.extension(wire.KEY_SHARE)), before))
    assert outcome.seen().total() == 1
    assert outcome.flows[-1]["name_status"] == "released"
    assert outcome.stats["names_repeated"] == 1
    apart = Tcp().handshake().say(HELLO).say(CHANGE_CIPHER).say(HELLO[:50]).say(HELLO[50:])
    assert run(apart.frames, z=1).stats["names_repeated"] == 1


@pytest.mark.parametrize("before", [b"", CHANGE_CIPHER])
def test_a_second_hello_for_another_host_is_suppressed(before: bytes) -> None:
    outcome = run(retried(hello(OTHER), before).frames, z=1)
    assert outcome.released() == {NAME.decode()}
    assert OTHER not in outcome.everything()
    assert outcome.stats["suppressed_conflict"] == 1


def test_neither_counts_when_the_first_was_not_decided_yet() -> None:
    talk = Tcp().segment(CLIENT, SYN).segment(CLIENT, PSH | ACK, HELLO)
    talk.segment(CLIENT, PSH | ACK, hello(OTHER)).segment(SERVER, SYN | ACK, ack=1001)
    outcome = run(talk.segment(CLIENT, ACK).frames, z=1)
    assert not outcome.observations
    assert outcome.stats["suppressed_conflict"] == 2
    assert outcome.flow["name_status"] == "suppressed"


def test_what_follows_a_hello_is_no_second_one() -> None:
    for rest in (b"\x17\3\3\0\x20" + bytes(32), b"\x16\3\3\0\4\x10\0\0\0", b"\x15\3\3\0\2\1\0"):
        talk = Tcp().handshake().say(HELLO).say(CHANGE_CIPHER + rest).say(hello(OTHER))
        assert names(talk) == [NAME.decode()]


@pytest.mark.parametrize("size", [1, 5, 64, 1000])
def test_a_hello_over_records_and_segments(size: int) -> None:
    pieces = segments(LONG_HELLO, size)[:200]
    whole = sum(map(len, pieces)) == len(LONG_HELLO)
    assert names(talk_of(*pieces)) == ([NAME.decode()] if whole else [])


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 12))
def test_a_hello_over_records_in_any_order_and_again(seed: int, count: int) -> None:
    dice = random.Random(seed)
    cuts = sorted(dice.sample(range(1, len(LONG_HELLO)), count))
    pieces = list(zip([0, *cuts], [*cuts, len(LONG_HELLO)], strict=True))
    pieces += dice.choices(pieces, k=3)
    dice.shuffle(pieces)
    assert names(place(Tcp().handshake(), LONG_HELLO, pieces)) == [NAME.decode()]


def test_a_hello_up_to_16_kib() -> None:
    def sized(extra: int) -> bytes:
        filler = wire.extension(wire.PADDING, bytes(extra))
        return wire.records(wire.client_hello(filler, wire.server_name(NAME)), [4096])

    for extra, expected in [(16000, [NAME.decode()]), (16384, [])]:
        outcome = run(talk_of(*segments(sized(extra), 1448)).frames, z=1)
        assert [o["name"] for o in outcome.observations] == expected
        assert outcome.stats["suppressed_invalid"] == (not expected)


def test_a_stream_that_changes_its_bytes_taints_what_is_being_read() -> None:
    client = Client()
    data = PREFACE + frame(SETTINGS) + client.headers(client.encoder.encode(fields(NAME)))
    forged = data[:-4] + b"abcd"
    for genuine, copy in (
        (data, forged),
        (message(NAME), message(OTHER)),
        (CUT, CUT[:-3] + b"abc"),
    ):
        talk = Tcp(ports=DNS).handshake()
        place(talk, genuine, [(0, len(genuine) - 2)])
        talk.segment(CLIENT, PSH | ACK, copy[-6:-2], seq=1001 + len(copy) - 6)
        outcome = run(place(talk, genuine, [(len(genuine) - 2, len(genuine))]).frames, z=1)
        assert not outcome.observations
        assert outcome.stats["suppressed_conflict"] == 1
