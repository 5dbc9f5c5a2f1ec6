# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A forger of a client's address and ports, who does not see its connection, casts no vote."""

import random

import pytest
from support import wire
from support.engine import after_another_user
from support.examples import each
from support.packets import ACK, CLIENT, PSH, SERVER, SYN, Tcp, hello, request

NAME = wire.HOST
OTHER = b"other.example.org"
MIB = 1 << 20
SERVER_NEXT = 500_001


def opened(payload: bytes) -> Tcp:
    """A connection whose client has sent `payload`, and got an answer."""
    return Tcp(ports=(40000, 80)).handshake().say(payload).say(b"HTTP/1.1 200 OK\r\n\r\n", SERVER)


BLIND = {  # the forged payload, and the connection so far
    "a request behind a request": (request(NAME), lambda: opened(request(OTHER))),
    "a hello before the hello": (hello(NAME), lambda: Tcp().handshake()),
    "a hello before the handshake": (hello(NAME), lambda: Tcp().segment(CLIENT, SYN)),
    "a hello before the handshake is acknowledged": (
        hello(NAME),
        lambda: Tcp().segment(CLIENT, SYN).segment(SERVER, SYN | ACK),
    ),
}


@each("what", BLIND)
@each("beyond", [MIB, 1 << 30, (1 << 31) - 2000, 1 << 31, (1 << 32) - MIB])
def test_guessed_numbers_prove_nobody(what: str, beyond: int) -> None:
    dice = random.Random(beyond)
    payload, begin = BLIND[what]
    talk = begin()
    seq = (talk.next[CLIENT] + beyond) % 2**32
    ack = (SERVER_NEXT + dice.randrange(2 * MIB, 2**32 - 2 * MIB)) % 2**32
    talk.segment(SERVER, ACK, b"forged, too", seq=(ack - 11) % 2**32)
    talk.segment(CLIENT, PSH | ACK, payload, seq=seq, ack=ack)
    talk.segment(CLIENT, PSH, payload, seq=seq)
    if len(talk.frames) < 6:
        talk.segment(SERVER, SYN | ACK, ack=1001)
    talk.segment(CLIENT, ACK, seq=1001, ack=SERVER_NEXT)
    outcome = after_another_user(talk)
    assert not outcome.seen()
    assert NAME not in outcome.everything()


@pytest.mark.parametrize("what", ["a request behind a request", "a hello before the hello"])
def test_a_forged_syn_of_the_server_does_not_say_what_proves(what: str) -> None:
    payload, begin = BLIND[what]
    talk = begin().segment(SERVER, SYN | ACK, seq=0x12345678, ack=77)
    talk.segment(CLIENT, PSH | ACK, payload, seq=1 << 30, ack=0x12345679)
    outcome = after_another_user(talk)
    assert not outcome.seen()
    assert NAME not in outcome.everything()


@pytest.mark.parametrize("lost", [0, 1000, MIB - 1000])
def test_a_client_whose_server_was_heard_in_part_is_proven(lost: int) -> None:
    """Behind bytes of both that the capture lost."""
    talk = opened(request(OTHER))
    talk.next[CLIENT] += 1 << 30
    talk.next[SERVER] += lost
    assert after_another_user(talk.say(request(NAME))).released() == {NAME.decode()}


def test_what_is_not_proven_is_counted_and_makes_the_record_coarse() -> None:
    talk = opened(request(OTHER))
    for _again in range(3):
        talk.segment(CLIENT, PSH | ACK, request(NAME), seq=1 << 30, ack=1 << 30)
    outcome = after_another_user(talk)
    assert outcome.stats["suppressed_unconfirmed"] == 1
    assert outcome.last_status == "suppressed"
    assert after_another_user(talk, established=False).released() == {NAME.decode()}


def test_bytes_of_a_long_body_lead_nobody_to_where_a_request_counts() -> None:
    """Where a body goes on and on, the place that a request may start at follows it."""
    talk = opened(request(OTHER))
    for start in range(0, 1 << 32, 1 << 26):
        talk.segment(CLIENT, PSH | ACK, b"body", seq=start, ack=1 << 30)
        talk.segment(CLIENT, PSH | ACK, request(NAME), seq=start - (1 << 30), ack=1 << 30)
    outcome = after_another_user(talk)
    assert not outcome.seen()
    assert NAME not in outcome.everything()


@pytest.mark.parametrize("acknowledged", [True, False])
def test_a_syn_into_an_open_connection_moves_no_numbers(acknowledged: bool) -> None:
    """A forged segment that is a SYN, too, would say itself where its sender's stream starts."""
    talk = Tcp().segment(CLIENT, SYN).segment(SERVER, SYN | ACK)
    if acknowledged:
        talk.segment(CLIENT, ACK)
    talk.segment(CLIENT, SYN | ACK, hello(NAME), seq=1 << 30, ack=1 << 30)
    talk.segment(SERVER, SYN | ACK, seq=1 << 29, ack=1 << 30)
    talk.segment(CLIENT, PSH | ACK, hello(NAME), seq=1 << 28, ack=(1 << 29) + 1)
    talk.segment(CLIENT, ACK, seq=1001, ack=SERVER_NEXT)
    assert not after_another_user(talk).seen()


def test_a_server_that_answers_again_with_another_number() -> None:
    """As with SYN cookies, where its first answer was lost."""
    talk = Tcp().segment(CLIENT, SYN).segment(SERVER, SYN | ACK)
    talk.segment(SERVER, SYN | ACK, seq=900_000)
    talk.next[SERVER] = 900_001
    outcome = after_another_user(talk.segment(CLIENT, ACK).say(hello(NAME)))
    assert outcome.released() == {NAME.decode()}
