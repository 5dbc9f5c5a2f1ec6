# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Long runs and long connections: table entries that are no longer needed are free for others, and
counters and sequence numbers wrap."""

import numpy as np
import pytest
from support import handshake, wire
from support.engine import Taker, feed, make_engine, run
from support.packets import (
    ACK,
    CLIENT,
    MS,
    PSH,
    SECOND,
    SERVER,
    START,
    SYN,
    Frame,
    Tcp,
    hello,
    user,
)

from zanon_net import _core

WINDOW = 3600 * SECOND
GIB = 1 << 30
BODY = b"\0\1\2\3body"


def by_time(talks: list[Tcp]) -> list[Frame]:
    """Their frames so far, which they forget."""
    frames = sorted((frame for talk in talks for frame in talk.frames), key=lambda f: f.t_ns)
    for talk in talks:
        talk.frames.clear()
    return frames


def test_bytes_that_were_lost_leave_room_for_those_out_of_order() -> None:
    """Each long connection lost a segment once; short ones bring theirs in another order."""
    engine = make_engine(z=2, max_flows=1024)
    talks = [Tcp(user(i), t_ns=START + i * MS).handshake().say(b"a" * 100) for i in range(250)]
    for talk in talks:
        talk.next[0] += 100
        talk.say(b"b" * 100)
    feed(engine, by_time(talks))
    for n in range(50):
        other = Tcp(user(1000 + n), t_ns=START + SECOND).handshake()
        at = other.next[0]
        other.segment(CLIENT, ACK, b"2" * 100, seq=at + 100)
        other.segment(CLIENT, ACK, b"1" * 100, seq=at)
        feed(engine, other.frames)
    assert engine.stats["gaps_full"] == 0


def test_flows_with_a_certificate_each_have_room_for_both_names() -> None:
    engine = make_engine(z=1, max_flows=200)
    flight = wire.record(handshake.flight(handshake.named("c.example.org")), 0x0303)
    for i in range(190):
        talk = Tcp(user(i), t_ns=START + i * 10 * MS).handshake()
        talk.say(hello(b"n%d.example.org" % i)).say(flight, SERVER)
        feed(engine, talk.say(b"\x17\x03\x03\0\x04data").frames)
    assert engine.stats["names_full"] == 0
    assert engine.stats["certificates"] == 190


@pytest.mark.parametrize("syns", [65_535, 65_536])
def test_a_client_is_known_after_however_many_syns(syns: int) -> None:
    taker = Taker(make_engine(z=1))
    (syn,) = Tcp().segment(CLIENT, SYN).frames
    feed(taker.engine, [Frame(START + n, syn.data, syn.wire) for n in range(syns)])
    rest = Tcp(t_ns=START + SECOND)
    rest.next[0] += 1
    rest.segment(SERVER, SYN | ACK).segment(CLIENT, ACK).say(hello(b"www.example.org")).close()
    feed(taker.engine, rest.frames)
    taker.take()
    outcome = taker.outcome()
    assert outcome.flow["c_syn_cnt"] == 65_535
    assert outcome.released() == {"www.example.org"}


def test_pieces_of_one_hole_leave_room_for_the_segments_of_others() -> None:
    engine = make_engine(z=2, columns=("core", "e2e"), max_flows=64)
    talk, pieces = Tcp(user(0)).handshake(), 2000
    at = talk.next[0]
    talk.segment(CLIENT, ACK | PSH, b"x", seq=at + 4 * pieces)
    for n in range(pieces):
        talk.segment(CLIENT, ACK, b"y", seq=at + 2 * n)
    feed(engine, talk.frames)
    for n in range(20):
        other = Tcp(user(1 + n), t_ns=talk.t_ns + n * MS).handshake()
        feed(engine, other.say(b"question").say(b"answer", SERVER).close().frames)
    assert engine.stats["segments_full"] == 0


POST = b"POST / HTTP/1.1\r\nHost: first.example.org\r\nTransfer-Encoding: chunked\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: second.example.org\r\n\r\n"
BOTH = {"first.example.org", "second.example.org"}


@pytest.mark.parametrize("quarters", [1, 4, 7, 8, 9, 12, 15, 16, 17, 18, 40])
def test_no_request_is_read_behind_a_lost_body_of_any_length(quarters: int) -> None:
    """Nobody knows where its last chunk ended. Sequence numbers come round behind 4 GiB, and are
    compared within 2. quarters: of a GiB."""
    talk = Tcp(ports=(40000, 80)).handshake().say(POST)
    for _part in range(quarters * 5):
        talk.segment(CLIENT, ACK | PSH, BODY)
        talk.next[0] += GIB // 20  # which the capture lost
    talk.say(GET).say(b"HTTP/1.1 200 OK\r\n\r\n", SERVER).close()
    outcome = run(talk.frames, z=1)
    assert outcome.released() == {"first.example.org"}
    assert outcome.stats["names_after_gaps"] + outcome.stats["bodies_lost"] > 0


@pytest.mark.parametrize("beyond", [1 << 20, GIB - 5, GIB + (1 << 27), GIB * 2 - 20])
def test_behind_a_segment_far_ahead_nothing_is_read(beyond: int) -> None:
    """It may be a body, of whose request nothing was seen."""
    talk = Tcp(ports=(40000, 80)).handshake().say(GET.replace(b"second", b"first"))
    talk.segment(CLIENT, ACK | PSH, BODY, seq=(talk.next[0] + beyond) % 2**32)
    talk.say(GET).say(b"HTTP/1.1 200 OK\r\n\r\n", SERVER).close()
    outcome = run(talk.frames, z=1)
    assert outcome.released() == {"first.example.org"}
    assert outcome.stats["names_after_gaps"] == 1


def test_a_segment_of_long_ago_hides_no_request() -> None:
    talk = Tcp(ports=(40000, 80)).handshake().say(GET.replace(b"second", b"first"))
    talk.segment(CLIENT, ACK | PSH, BODY, seq=(talk.next[0] + 3 * GIB) % 2**32)
    talk.say(GET).say(b"HTTP/1.1 200 OK\r\n\r\n", SERVER).close()
    assert run(talk.frames, z=1).released() == BOTH


def released_of_new_names(once_popular: bool) -> int:
    """Of names that 30 users share, beside names that one user comes back to each minute; these
    were as popular once, or never."""
    z, tuples = 20, 2000
    names = tuples // (z - 3) + 5
    table = _core.ZTable(z, WINDOW, keep=z, max_tuples=tuples, max_attributes=tuples)
    now = START

    def come_back() -> None:
        for n in range(names):
            table.observe(now, b"regular", b"old%d" % n)

    for n in range(names):
        for k in range(z if once_popular else 1):
            now += SECOND
            table.observe(now, b"u%d" % k, b"old%d" % n)
        now += 5 * 60 * SECOND
        for seen in range(n):
            table.observe(now, b"regular", b"old%d" % seen)
    for _minute in range(130):
        now += 60 * SECOND
        come_back()
    released = 0
    for n in range(50):
        for k in range(30):
            now += SECOND
            released += table.observe(now, b"v%d" % k, b"new%d" % n)
        come_back()
    table.check()
    return released


def test_names_that_were_popular_once_leave_room_for_others() -> None:
    assert released_of_new_names(once_popular=True) == released_of_new_names(once_popular=False)


def released_at_the_cap(after_a_scan: bool) -> int:
    """Of 1,500 names shared by 100 users, which is more than there is room for."""
    tuples = 20_000
    table = _core.ZTable(20, WINDOW, keep=20, max_tuples=tuples, max_attributes=tuples)
    now = START
    if after_a_scan:
        for n in range(tuples):
            table.observe(now + n * 1000, b"s", b"scan%d" % n)
        for _round in range(2):
            now += 3 * WINDOW
            for n in range(2 * tuples):
                table.observe(now + n * SECOND // 10, b"x", b"y")
    assert table.stats["attributes"] <= 1
    now += 10 * WINDOW
    draw = np.random.default_rng(5)
    count = 200_000
    times = now + np.arange(count, dtype=np.int64) * (SECOND // 100)
    users = draw.integers(0, 100, count).astype(np.uint64)
    names = draw.integers(0, 1500, count).astype(np.uint64)
    released = int(table.observe_batch(times, users, names).sum())
    table.check()
    return released


def test_what_a_scan_left_behind_does_not_keep_the_oldest() -> None:
    """At a cap old names go, also where many places are free between them."""
    assert released_at_the_cap(after_a_scan=True) > 0.8 * released_at_the_cap(after_a_scan=False)
