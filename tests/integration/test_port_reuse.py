# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A SYN between the ports of an open flow: of the same connection, or of another one."""

import pytest
from support import wire
from support.engine import TCP_COMPLETE, TCP_NOCOMPLETE, after_another_user, run
from support.examples import each
from support.packets import (
    ACK,
    CLIENT,
    FIN,
    PSH,
    SECOND,
    SERVER,
    SYN,
    Tcp,
    hello,
    request,
)

NAME = wire.HOST
OTHER = b"other.example.org"
ISN = 1000  # of the client, in a talk that begins
AGAIN = 3_000_000_000  # of the client in the next connection
RECORD = b"\x17\x03\x03\0\x01x"


def said(segments: list[tuple[int, int, bytes]], ports: tuple[int, int] = (40000, 443)) -> Tcp:
    """A talk of these segments: side, flags and payload."""
    talk = Tcp(ports=ports)
    for segment in segments:
        talk.segment(*segment)
    return talk


def then_another(talk: Tcp, payload: bytes = b"") -> Tcp:
    """The next connection between the same ports."""
    talk.wait(SECOND).next = [AGAIN, 700_000]
    talk.handshake()
    return talk.say(payload) if payload else talk


STRAYS = {
    "a FIN of the server": [(SERVER, FIN | ACK, b"")],
    "data of the server": [(SERVER, PSH | ACK, RECORD)],
    "a FIN of the client": [(CLIENT, FIN | ACK, b"")],
    "data of the client": [(CLIENT, PSH | ACK, RECORD)],
    "data of both": [(SERVER, PSH | ACK, RECORD), (CLIENT, PSH | ACK, RECORD)],
    "more than is searched": [(CLIENT, PSH | ACK, RECORD)] * 20,
}


@each("ports", [(40000, 443), (443, 40000), (40000, 50000)])
@each("what", STRAYS)
def test_strays_of_an_older_connection_do_not_hide_the_next(
    what: str, ports: tuple[int, int]
) -> None:
    talk = said(STRAYS[what], ports)
    outcome = after_another_user(then_another(talk, hello(NAME)).close())
    assert outcome.released() == {NAME.decode()}
    line = outcome.log(TCP_COMPLETE)[-1]
    assert len(outcome.log(TCP_COMPLETE)) == 2
    assert (line["c_syn_cnt"], line["c_pkts_all"], line["s_pkts_all"]) == ("1", "5", "3")


FORGED = {
    "without a SYN": [(CLIENT, PSH | ACK, request(NAME))],
    "behind a SYN": [(CLIENT, SYN, b""), (CLIENT, PSH | ACK, request(NAME))],
    "in a SYN": [(CLIENT, SYN, request(NAME))],
}


@pytest.mark.parametrize("what", FORGED)
def test_a_handshake_proves_no_name_of_before_it(what: str) -> None:
    """Somebody else may have sent it, in the name of a client that connects later."""
    outcome = after_another_user(then_another(said(FORGED[what])))
    assert not outcome.observations
    assert outcome.stats["suppressed_unconfirmed"] == 1
    assert NAME not in outcome.everything()


@pytest.mark.parametrize("banner", [False, True])
@pytest.mark.parametrize("in_syn", [False, True])
def test_a_syn_with_another_number_has_no_part_in_the_handshake(banner: bool, in_syn: bool) -> None:
    """The client has shaken hands, and has not said anything yet."""
    talk = Tcp().handshake()
    if banner:
        talk.say(b"220 ready\r\n", SERVER)
    talk.next = [AGAIN, 700_000]
    talk.segment(CLIENT, SYN, request(NAME) if in_syn else b"")
    if not in_syn:
        talk.segment(CLIENT, PSH | ACK, request(NAME))
    assert not after_another_user(talk).observations


@pytest.mark.parametrize("ahead", [1, 5000, 60_000, 70_000])
def test_a_handshake_proves_nothing_of_before_it_wherever_that_was(ahead: int) -> None:
    talk = Tcp()
    talk.segment(CLIENT, PSH | ACK, request(NAME), seq=ISN + ahead)
    talk.next = [ISN, 500_000]
    talk.handshake()
    assert not after_another_user(talk).observations


def test_one_direction_of_connections_between_the_same_ports() -> None:
    """The server's FIN is not seen, so that the first flow stays open."""
    talk = then_another(Tcp().handshake().say(hello(NAME)).close(), hello(OTHER)).close()
    frames = [frame for frame in talk.frames if frame.data[26:30] == bytes([10, 7, 0, 1])]
    outcome = run(frames, z=1, established=False)
    assert outcome.released() == {NAME.decode(), OTHER.decode()}
    assert [line["c_syn_cnt"] for line in outcome.log(TCP_NOCOMPLETE)] == ["1", "1"]


def test_a_connection_that_nobody_closed() -> None:
    talk = then_another(Tcp().handshake().say(hello(NAME)), hello(OTHER)).close()
    outcome = run(talk.frames, z=1)
    assert outcome.released() == {NAME.decode(), OTHER.decode()}
    assert [line["c_syn_cnt"] for line in outcome.log(TCP_COMPLETE)] == ["1", "1"]


def test_a_syn_sent_again_with_another_number_is_of_the_same_flow() -> None:
    talk = then_another(Tcp().segment(CLIENT, SYN), hello(NAME)).close()
    (line,) = run(talk.frames, z=1).log(TCP_COMPLETE)
    assert (line["c_syn_cnt"], line["c_tls_SNI"]) == ("2", NAME.decode())


@each("isn", [ISN, 2**32 - 1, 2**32 - 40])
@each("order", [(1, 0, 2, 3), (1, 2, 0, 3), (2, 0, 1, 3), (3, 2, 0, 1)])
def test_a_late_syn_is_of_the_same_flow(order: tuple[int, ...], isn: int) -> None:
    talk = Tcp(next=[isn, 500_000]).handshake().segment(CLIENT, PSH | ACK, hello(NAME))
    outcome = run([talk.frames[i] for i in order], z=1, established=False)
    assert outcome.released() == {NAME.decode()}
    assert outcome.stats["flows_tcp"] == 1


def test_a_server_may_answer_a_syn_with_its_own() -> None:
    """A split handshake: the server's acknowledgement, of any number, and then its SYN."""
    talk = Tcp().segment(CLIENT, SYN).segment(SERVER, ACK, seq=7).segment(SERVER, SYN)
    talk.segment(CLIENT, SYN | ACK, seq=ISN).segment(SERVER, ACK).say(hello(NAME)).close()
    (line,) = run(talk.frames, z=1, established=False).log(TCP_COMPLETE)
    assert (line["s_syn_cnt"], line["c_tls_SNI"]) == ("1", NAME.decode())
