# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Answers over UDP that a capture shows before their questions: which of them prove a client."""

import pytest
from support import quic_wire as quic
from support.engine import Outcome
from support.examples import each
from support.packets import MS, SERVER, START, Udp, dns
from support.quic_flow import ANSWER, FLIGHT, LONG_FLIGHT, NAME, PORTS, RETURNS, status
from support.quic_wire import DCID, SCID, SERVER_ID, Initial, crypto
from support.stream import one_user

RESPONSE = dns(NAME, response=True)


def proves(talk: Udp, **more: object) -> bool:
    """Returns whether the talk proves its client, whose vote has the time of the last packet."""
    outcome: Outcome = one_user(talk, **more)
    if outcome.seen():
        assert outcome.seen() == {
            (talk.frames[-1].t_ns, NAME.decode(), outcome.flows[-1]["name_source"]): 1
        }
    else:
        assert outcome.last_status == "unconfirmed"
    return bool(outcome.seen())


# ---- DNS ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wait_ns", "counts"), [(0, True), (999 * MS, True), (1001 * MS, False)])
def test_a_response_may_come_a_second_before_its_question(wait_ns: int, counts: bool) -> None:
    talk = Udp(step_ns=0).send(RESPONSE, SERVER).wait(wait_ns).send(dns(NAME))
    assert proves(talk) is counts


def test_responses_to_several_questions_of_a_port() -> None:
    talk = Udp()
    for n in range(20):
        talk.send(dns(b"n%d.example" % n, ident=n, response=True), SERVER)
    talk.send(RESPONSE, SERVER)
    for n in range(20):
        talk.send(dns(b"n%d.example" % n, ident=n))
    assert proves(talk.send(dns(NAME)))


OTHERS = {
    "another id": dns(NAME, ident=8, response=True),
    "another name": dns(b"www.example.com", response=True),
    "another type": dns(NAME, kind=28, response=True),
    "a question": dns(NAME),
}


@pytest.mark.parametrize("what", OTHERS)
def test_only_the_response_to_the_question_counts(what: str) -> None:
    assert not proves(Udp().send(OTHERS[what], SERVER).send(dns(NAME)))


def test_a_response_of_the_client_is_no_answer() -> None:
    """A response of the client proves nothing, even while the roles are unknown."""
    for ports in ((40000, 53), (53, 53)):
        for client in ("10.7.0.1", "198.51.100.1"):
            talk = Udp(client, ports=ports).send(RESPONSE).send(dns(NAME))
            assert not proves(talk)


def test_a_response_to_another_port_is_no_answer() -> None:
    talk = Udp(ports=(40001, 53)).send(RESPONSE, SERVER)
    question = Udp(ports=(40000, 53), t_ns=talk.t_ns).send(dns(NAME))
    talk.frames += question.frames
    assert not proves(talk)


# ---- QUIC ---------------------------------------------------------------------------------------


def early(*datagrams: bytes, ports: tuple[int, int] = PORTS, answer: bytes = ANSWER) -> Udp:
    """The server's answer, and then all that the client sends."""
    talk = Udp(ports=ports).send(answer, SERVER)
    for datagram in datagrams:
        talk.send(datagram)
    return talk


@each("what", RETURNS)
@each("ports", [PORTS, (40000, 8443), (443, 8443)])
def test_an_answer_may_come_before_the_hello(what: str, ports: tuple[int, int]) -> None:
    outcome = one_user(early(*FLIGHT, RETURNS[what], ports=ports), keep_client_port=True)
    assert outcome.seen() == {(START + 2 * MS, NAME.decode(), "quic"): 1}
    assert status(outcome) == ("quic", "released")
    flow = outcome.flows[-1]
    assert (flow["client_port"], flow["c_pkts"], flow["s_pkts"]) == (ports[0], 2, 1)


def test_an_answer_may_come_before_a_hello_in_two_datagrams() -> None:
    assert proves(early(*LONG_FLIGHT, RETURNS["a Handshake packet"]))


@pytest.mark.parametrize(("wait_ns", "counts"), [(999 * MS, True), (1001 * MS, False)])
def test_an_answer_more_than_a_second_before_the_hello_is_none(wait_ns: int, counts: bool) -> None:
    talk = Udp(ports=PORTS, step_ns=0).send(ANSWER, SERVER).wait(wait_ns)
    talk.send(FLIGHT[0]).send(RETURNS["a Handshake packet"])
    assert proves(talk) is counts


@pytest.mark.parametrize(("wait_ns", "counts"), [(999 * MS, True), (1001 * MS, False)])
@pytest.mark.parametrize(
    "what", ["an Initial", "a Handshake packet", "a 1-RTT packet", "coalesced"]
)
def test_a_packet_to_the_servers_id_may_come_before_the_answer(
    what: str, wait_ns: int, counts: bool
) -> None:
    talk = Udp(ports=PORTS, step_ns=0).send(FLIGHT[0]).send(RETURNS[what]).wait(wait_ns)
    assert proves(talk.send(ANSWER, SERVER)) is counts


def forged(server_id: bytes = SERVER_ID) -> bytes:
    """Makes the answer of a server. The sender of the hello can make the same answer."""
    return quic.server_answer(SCID, server_id)


@pytest.mark.parametrize("what", RETURNS)
def test_an_echo_before_the_hello_proves_nothing(what: str) -> None:
    """A sender in the client's name makes an answer up, which a server of another protocol sends
    back; whatever the capture shows first."""
    for order in ("made, echo", "echo, made"):
        talk = Udp(ports=PORTS)
        for part in order.split(", "):
            talk.send(forged(), SERVER if part == "echo" else 0)
        assert not proves(talk.send(FLIGHT[0]).send(RETURNS[what]))
    assert not proves(early(*FLIGHT, forged(), RETURNS[what]))


@pytest.mark.parametrize("port", [80, 40000])
def test_an_echo_proves_nothing_whoever_is_taken_for_the_client(port: int) -> None:
    """From a well-known port, a forger is taken for the server at first."""
    talk = Udp(ports=(port, 8443)).send(forged()).send(forged(), SERVER).send(FLIGHT[0])
    talk.send(forged(), SERVER).send(RETURNS["a Handshake packet"])
    assert not one_user(talk).seen()


def test_guesses_before_the_answer_prove_nothing() -> None:
    """Only the last of several IDs counts, and no ID that resembles an ID of the client counts."""
    likely = bytes([DCID[0] ^ 1]) + DCID[1:]
    for server_id in (likely, DCID):
        talk = Udp(ports=PORTS).send(FLIGHT[0])
        talk.send(quic.opaque(quic.HANDSHAKE, server_id, SCID)).send(quic.short(server_id))
        assert not proves(talk.send(forged(server_id), SERVER))
    talk = Udp(ports=PORTS).send(FLIGHT[0])
    for guess in (SERVER_ID, b"guess 1!", b"guess 2!"):
        talk.send(quic.opaque(quic.HANDSHAKE, guess, SCID))
    assert not proves(talk.send(ANSWER, SERVER))


def test_another_connection_needs_an_answer_of_its_own() -> None:
    """The early answer to the first connection does not prove a second one."""
    second = Initial(crypto(quic.hello(host=NAME)), dcid=b"second id", scid=SCID).seal()
    first = quic.first_flight(quic.hello(host=b"other.example"))[0]
    outcome = one_user(early(first, second, RETURNS["a Handshake packet"]))
    assert not outcome.seen()
    assert outcome.stats["suppressed_unconfirmed"] == 1
