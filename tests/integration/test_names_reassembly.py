# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Names in several segments: any order, conflicting copies, captures that cut them."""

import random

import pytest
from support import wire
from support.engine import after_another_user, run
from support.examples import each
from support.packets import ACK, CLIENT, SECOND, START, Frame, Tcp, hello, merged, request, user
from support.stream import names

NAME = wire.HOST
HELLO = hello(NAME)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0), (2, 1, 0)])
def test_the_same_bytes_said_differently_suppress_a_name(order: tuple[int, ...]) -> None:
    """Which copy the server believed cannot be known: neither name counts.

    The conflict comes before the hello is whole; after that the name is decided.
    """
    forged = hello(b"www.example.net")
    at = HELLO.index(NAME) + len(NAME) - 3
    pieces = [(0, HELLO[: at + 1]), (at - 5, forged[at - 5 : at + 2]), (at + 1, HELLO[at + 1 :])]
    talk = Tcp().handshake()
    for i in order:
        talk.segment(CLIENT, ACK, pieces[i][1], seq=1001 + pieces[i][0])
    outcome = after_another_user(talk)
    assert not outcome.seen()
    assert NAME not in outcome.everything()
    assert b"www.example.net" not in outcome.everything()
    assert outcome.last_status == "suppressed"
    assert outcome.stats["suppressed_conflict"] == 1


@each("seed", range(12))
def test_a_hello_in_pieces_in_any_order(seed: int) -> None:
    dice = random.Random(seed)
    long_hello = hello(NAME, wire.extension(wire.KEY_SHARE, bytes(1500)))
    cuts = sorted(dice.sample(range(1, len(long_hello)), 6))
    bounds = list(zip([0, *cuts], [*cuts, len(long_hello)], strict=True))
    dice.shuffle(bounds)
    talk = Tcp().handshake()
    for start, end in bounds:
        before = max(0, start - dice.randrange(3))
        talk.segment(CLIENT, ACK, long_hello[before:end], seq=1001 + before)
    assert after_another_user(talk).released() == {NAME.decode()}
    missing = Tcp().handshake()
    for start, end in bounds[1:]:
        missing.segment(CLIENT, ACK, long_hello[start:end], seq=1001 + start)
    outcome = after_another_user(missing)
    assert not outcome.seen()
    assert outcome.last_status == "suppressed"
    assert outcome.stats["suppressed_incomplete"] == 1


@each("seed", range(12))
def test_a_later_request_in_pieces_in_any_order(seed: int) -> None:
    dice = random.Random(seed)
    first, later = request(b"first.example"), request(b"later.example")
    cuts = sorted(dice.sample(range(1, len(later)), dice.randrange(1, 6)))
    bounds = list(zip([0, *cuts], [*cuts, len(later)], strict=True))
    dice.shuffle(bounds)
    talk = Tcp(ports=(40000, 80)).handshake().say(first)
    for start, end in bounds:
        talk.segment(CLIENT, ACK, later[start:end], seq=1001 + len(first) + start)
    assert names(talk) == ["first.example", "later.example"]


def test_early_pieces_that_find_half_of_the_streams_taken_are_not_waited_for() -> None:
    flows, spare = 40, 32
    first, later = request(b"first.example"), request(b"later.example")
    talks = [
        Tcp(user(n), ports=(40000, 80), t_ns=START).handshake().say(first) for n in range(flows)
    ]
    for start, end in ((9, len(later)), (0, 9)):
        for talk in talks:
            talk.wait(SECOND).segment(CLIENT, ACK, later[start:end], seq=1001 + len(first) + start)
    outcome = run(merged([talk.frames for talk in talks]), z=1, max_flows=flows)
    lost = flows - (flows + spare) // 2
    seen = [o["name"] for o in outcome.observations]
    assert (seen.count("first.example"), seen.count("later.example")) == (flows, flows - lost)
    assert outcome.stats["streams_half_full"] == lost
    assert outcome.stats["names_after_gaps"] == lost


def test_behind_a_body_that_lost_a_chunk_s_size_no_request_is_read() -> None:
    head = b"POST / HTTP/1.1\r\nHost: first.example\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"c8\r\n" + b"\r\n\r\n".join([b"x" * 90, request(b"in-the-body.example"), b"y" * 40])
    later = request(b"later.example")
    talk = Tcp(ports=(40000, 80)).handshake().say(head)
    talk.segment(CLIENT, ACK, body[10:], seq=1001 + len(head) + 10)
    talk.segment(CLIENT, ACK, later, seq=1001 + len(head) + len(body))
    outcome = run(talk.frames, z=1)
    assert outcome.released() == {"first.example"}
    assert outcome.stats["bodies_lost"] == 1


@pytest.mark.parametrize(("ack", "found"), [(1 << 30, ["later.example"]), (None, [])])
def test_a_segment_far_ahead_ends_the_wait_if_it_is_its_client_s(
    ack: int | None, found: list[str]
) -> None:
    first, later = request(b"first.example"), request(b"later.example")
    talk = Tcp(ports=(40000, 80)).handshake().say(first)
    start = 1001 + len(first)
    talk.segment(CLIENT, ACK, later[9:], seq=start + 9)
    talk.segment(CLIENT, ACK, b"strayed", seq=start + (1 << 20), ack=ack)
    for at, data in ((0, later[:9]), (9, later[9:])):
        talk.segment(CLIENT, ACK, data, seq=start + at)
    assert names(talk) == ["first.example", *found]
    outcome = run(talk.frames, z=2)
    assert outcome.stats["names_after_gaps"] == (not found)
    assert outcome.stats["suppressed_unconfirmed"] == len(found)


def test_a_capture_cut_in_the_name_does_not_vote() -> None:
    talk = Tcp().handshake().say(HELLO)
    data = talk.frames[3].data
    end = data.index(NAME) + len(NAME)
    for length in range(data.index(HELLO), end):
        talk.frames[3] = Frame(talk.frames[3].t_ns, data, len(data)).cut(length)
        outcome = after_another_user(talk)
        assert not outcome.seen()
        assert NAME[:6] not in outcome.everything()
    talk.frames[3] = Frame(talk.frames[3].t_ns, data, len(data)).cut(end)
    assert after_another_user(talk).released() == {NAME.decode()}
