# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Evidence of a TCP client whose directions a tap shows in any order."""

import pytest
from support import wire
from support.engine import TCP_COMPLETE, TCP_NOCOMPLETE, after_another_user, nets, run
from support.examples import each
from support.packets import (
    ACK,
    CLIENT,
    FIN,
    MS,
    PSH,
    RST,
    SECOND,
    SERVER,
    START,
    SYN,
    Frame,
    Tcp,
    hello,
    request,
    user,
    visit,
)
from support.tunnel import by_tunnel

NAME, OTHER = wire.HOST, b"other.example.org"
HELLO = hello(NAME)
ISN, SERVER_ISN = 1000, 500_000
DATA = b"\x17\x03\x03\0\x04data"
CLIENT_SOURCE = bytes([10, 7, 0, 1])


def seen_late(frames: list[Frame], side: int, late_ns: int) -> list[Frame]:
    """The frames as a tap shows them that is late with one side, whose own order stays."""
    shown = []
    for frame in frames:
        sender = CLIENT if frame.data[26:30] == CLIENT_SOURCE else SERVER
        t_ns = frame.t_ns + late_ns if sender == side else frame.t_ns
        shown.append(Frame(t_ns, frame.data, frame.wire))
    return sorted(shown, key=lambda frame: frame.t_ns)


def whole() -> Tcp:
    """A connection with round trips of 2 ms."""
    return Tcp().handshake().say(HELLO).say(DATA, SERVER).say(DATA).close()


LATE_BY = [MS // 2, MS + 1, 2 * MS + 1, 3 * MS + 1, 5 * MS + 1, 40 * MS]


@each("late_ns", LATE_BY)
@each("side", [CLIENT, SERVER])
def test_a_late_side_costs_neither_name_nor_record(side: int, late_ns: int) -> None:
    talk = whole()
    in_order = after_another_user(talk)
    talk.frames = seen_late(talk.frames, side, late_ns)
    outcome = after_another_user(talk)
    assert outcome.released() == {NAME.decode()}
    assert (outcome.stats["flows_tcp"], outcome.stats["flows_midstream"]) == (2, 0)
    assert not outcome.log(TCP_NOCOMPLETE)
    expected, line = in_order.log(TCP_COMPLETE)[-1], outcome.log(TCP_COMPLETE)[-1]
    for name in ("c_pkts_all", "s_pkts_all", "c_bytes_uniq", "s_bytes_uniq", "c_syn_cnt"):
        assert line[name] == expected[name]
    assert (line["s_fin_cnt"], line["c_tls_SNI"]) == ("1", NAME.decode())
    assert outcome.flows[-1]["midstream"] == 0


@pytest.mark.parametrize("side", [CLIENT, SERVER])
def test_requests_of_a_connection_whose_side_is_late_to_the_end(side: int) -> None:
    talk = Tcp(ports=(40000, 80)).handshake()
    for _ in range(5):
        talk.wait(100 * MS).say(request(NAME)).say(b"HTTP/1.1 200 OK\r\n\r\n", SERVER)
    talk.frames = seen_late(talk.close().frames, side, 7 * MS)
    outcome = after_another_user(talk)
    assert outcome.released() == {NAME.decode()}
    assert outcome.stats["names_repeated"] == 4


def test_the_vote_has_the_time_of_what_completes_it() -> None:
    """The SYN-ACK, if the name and the acknowledgement were captured before it."""
    talk = Tcp().segment(CLIENT, SYN).segment(CLIENT, ACK, ack=SERVER_ISN + 1)
    talk.segment(CLIENT, PSH | ACK, HELLO, ack=SERVER_ISN + 1).segment(
        SERVER, SYN | ACK, ack=ISN + 1
    )
    assert after_another_user(talk).seen() == {(START + 3 * MS, NAME.decode(), "tls"): 1}


# ---- what the order does not prove --------------------------------------------------------------


def early(*acks: int, answer: int = SERVER_ISN) -> Tcp:
    """A hello and acknowledgements of these numbers, captured before the SYN-ACK."""
    talk = Tcp().segment(CLIENT, SYN)
    for ack in acks:
        talk.segment(CLIENT, ACK, ack=ack)
    talk.segment(CLIENT, PSH | ACK, HELLO, ack=acks[-1])
    return talk.segment(SERVER, SYN | ACK, seq=answer, ack=ISN + 1)


RIGHT = SERVER_ISN + 1
GUESSED = {
    "one too little": early(RIGHT - 1),
    "one too much": early(RIGHT + 1),
    "right at the second guess": early(RIGHT - 1, RIGHT),
    "right among many guesses": early(*range(RIGHT - 300, RIGHT + 300)),
    "right at the last guess": early(*range(RIGHT - 300, RIGHT + 1)),
    "right for the second answer": early(RIGHT, answer=SERVER_ISN + 5).segment(
        SERVER, SYN | ACK, seq=SERVER_ISN, ack=ISN + 1
    ),
    "right, but the answer is to another SYN": Tcp()
    .segment(CLIENT, SYN)
    .segment(CLIENT, PSH | ACK, HELLO, ack=RIGHT)
    .segment(SERVER, SYN | ACK, ack=ISN + 2),
    "right, but in no handshake": Tcp()
    .segment(CLIENT, PSH | ACK, HELLO, ack=RIGHT)
    .segment(SERVER, SYN | ACK, ack=ISN + 1),
    "right, before the SYN": Tcp()
    .segment(CLIENT, PSH | ACK, HELLO, seq=ISN + 1, ack=RIGHT)
    .segment(CLIENT, SYN)
    .segment(SERVER, SYN | ACK),
    "right, but without ACK": Tcp()
    .segment(CLIENT, SYN)
    .segment(CLIENT, PSH, HELLO, ack=RIGHT)
    .segment(SERVER, SYN | ACK, ack=ISN + 1),
    "right, in the SYN": Tcp()
    .segment(CLIENT, SYN, HELLO, ack=RIGHT)
    .segment(SERVER, SYN | ACK, ack=ISN + 1),
    "right, but the answer is captured before and is to another SYN": Tcp()
    .segment(SERVER, SYN | ACK, ack=ISN + 2)
    .segment(CLIENT, SYN)
    .segment(CLIENT, PSH | ACK, HELLO, ack=RIGHT),
    "something of the client before its SYN": Tcp()
    .segment(SERVER, SYN | ACK, ack=ISN + 1)
    .segment(CLIENT, PSH | ACK, HELLO, seq=ISN + 1, ack=RIGHT)
    .segment(CLIENT, SYN, seq=ISN)
    .segment(CLIENT, ACK, seq=ISN + 1 + len(HELLO), ack=RIGHT),
}


@each("what", GUESSED)
def test_a_sender_who_sees_no_answer_has_one_guess(what: str) -> None:
    """Whoever forges the client's address cannot know the server's number. The first number that
    the client acknowledges counts for one answer, so more segments are no more guesses."""
    outcome = after_another_user(GUESSED[what])
    assert not outcome.seen()
    assert NAME not in outcome.everything()
    assert outcome.stats["suppressed_unconfirmed"] == 1


def test_wrong_guesses_do_not_cost_the_client_its_proof() -> None:
    """Somebody else sent the guesses; the client acknowledges once its server's SYN was seen."""
    for guesses in ([RIGHT - 1], [RIGHT - 1, RIGHT + 7, 1]):
        talk = early(*guesses)
        talk.next[SERVER] = RIGHT
        assert after_another_user(talk.segment(CLIENT, ACK)).released() == {NAME.decode()}


@pytest.mark.parametrize("nth", [0, 1, 2])
def test_a_part_of_the_handshake_from_another_tunnel_proves_nothing(nth: int) -> None:
    """Whoever owns the tunnel may have forged it."""
    for frames in (
        early(RIGHT).frames,
        seen_late(Tcp().handshake().say(HELLO).frames, CLIENT, 2 * MS),
    ):
        inside = by_tunnel(frames[nth : nth + 1], user(0), (user(5), "203.0.113.66"))
        forged = [*frames[:nth], *inside, *frames[nth + 1 : 4]]
        before = visit(user(9), NAME, START - SECOND)
        outcome = run([*before, *forged], z=2, internal=nets("10.0.0.0/8"))
        assert not outcome.seen()
        assert NAME not in outcome.everything()


@pytest.mark.parametrize("forged", ["a server's SYN", "no server's SYN"])
def test_bytes_from_before_the_answer_are_the_clients_only_in_their_place(forged: str) -> None:
    """A forger may send bytes far ahead of the client's stream before the server answers. The
    client's handshake does not prove them, whatever number of the server they acknowledge."""
    talk = Tcp().segment(CLIENT, SYN)
    number = 1 if forged == "no server's SYN" else 7001
    if number != 1:
        talk.segment(SERVER, SYN | ACK, seq=7000, ack=77)
    talk.segment(CLIENT, PSH | ACK, HELLO, seq=1 << 30, ack=number)
    talk.next[SERVER] = SERVER_ISN
    talk.segment(SERVER, SYN | ACK).segment(CLIENT, ACK)
    outcome = after_another_user(talk)
    assert not outcome.seen()
    assert NAME not in outcome.everything()


# ---- other connections between the ports --------------------------------------------------------


def test_a_stray_answer_does_not_hide_the_connection_behind_it() -> None:
    talk = Tcp().segment(SERVER, SYN | ACK, seq=77, ack=99)
    outcome = after_another_user(talk.handshake().say(HELLO).close())
    assert outcome.released() == {NAME.decode()}
    assert len(outcome.log(TCP_COMPLETE)) == 2
    assert outcome.stats["flows_midstream"] == 1


@pytest.mark.parametrize("ends", ["FIN", "RST"])
def test_an_answer_to_the_next_syn_between_ports_that_just_closed(ends: str) -> None:
    talk = Tcp().handshake().say(hello(OTHER))
    talk = talk.close() if ends == "FIN" else talk.segment(SERVER, RST)
    first = len(talk.frames)
    talk.segment(SERVER, SYN | ACK, seq=SERVER_ISN, ack=ISN + 1)  # the old one once more
    talk.next, talk.t_ns = [7_000_000, 900_000_000], talk.t_ns + SECOND
    talk.handshake().say(HELLO).close()
    talk.frames[first + 1 :] = seen_late(talk.frames[first + 1 :], CLIENT, MS + 1)
    outcome = after_another_user(talk)
    assert outcome.released() == {NAME.decode()}
    assert (outcome.stats["flows_tcp"], outcome.stats["flows_midstream"]) == (3, 0)
    assert outcome.log(TCP_COMPLETE)[-1]["c_tls_SNI"] == NAME.decode()


def test_a_connection_is_complete_whose_last_acknowledgement_overtakes_the_fin() -> None:
    talk = Tcp().handshake().say(HELLO)
    talk.segment(CLIENT, FIN | ACK).segment(CLIENT, ACK, ack=talk.next[SERVER] + 1)
    outcome = after_another_user(talk.segment(SERVER, FIN | ACK))
    assert len(outcome.log(TCP_COMPLETE)) == 2
    talk = Tcp().handshake().say(HELLO)
    talk.segment(CLIENT, FIN | ACK).segment(CLIENT, ACK)  # acknowledges data only
    outcome = after_another_user(talk.segment(SERVER, FIN | ACK))
    assert len(outcome.log(TCP_NOCOMPLETE)) == 1


# ---- TCP Fast Open ------------------------------------------------------------------------------


def fast_open(carried: int, accepted: int) -> Tcp:
    """A SYN with the hello's first bytes, of which the server accepts some at once."""
    talk = Tcp().segment(CLIENT, SYN, HELLO[:carried])
    talk.segment(SERVER, SYN | ACK, ack=ISN + 1 + accepted)
    talk.next[CLIENT] = ISN + 1 + accepted
    talk.segment(CLIENT, ACK)
    return talk.segment(CLIENT, PSH | ACK, HELLO[accepted:]) if accepted < len(HELLO) else talk


FAST = [(len(HELLO), len(HELLO)), (40, 40), (40, 0), (40, 17), (len(HELLO), 0), (1, 1)]


@each("carried, accepted", FAST)
@each("late", [(CLIENT, 0), (CLIENT, MS + 1), (SERVER, MS + 1), (SERVER, 9 * MS)])
def test_a_server_may_accept_bytes_of_the_syn(
    carried: int, accepted: int, late: tuple[int, int]
) -> None:
    talk = fast_open(carried, accepted)
    talk.frames = seen_late(talk.segment(SERVER, ACK).close().frames, *late)
    outcome = after_another_user(talk)
    assert outcome.released() == {NAME.decode()}
    assert outcome.stats["observations"] == 2
    assert len(outcome.log(TCP_COMPLETE)) == 2


def test_a_syn_sent_again_without_its_bytes() -> None:
    """As clients do that get no answer: the server may have got the first one all the same."""
    for accepted in (0, 40):
        talk = Tcp().segment(CLIENT, SYN, HELLO[:40]).segment(CLIENT, SYN, seq=ISN)
        talk.segment(SERVER, SYN | ACK, ack=ISN + 1 + accepted).segment(CLIENT, ACK)
        talk.segment(CLIENT, PSH | ACK, HELLO[accepted:], seq=ISN + 1 + accepted)
        assert after_another_user(talk).released() == {NAME.decode()}


@pytest.mark.parametrize("beyond", [41, 1 << 20, (1 << 32) - 1])
def test_an_answer_to_more_than_the_syn_carries_answers_another(beyond: int) -> None:
    """A client cannot send more before the server answers, even if a tap shows more."""
    talk = Tcp().segment(CLIENT, SYN, HELLO[:40])
    talk.segment(CLIENT, PSH | ACK, HELLO[40:], ack=RIGHT)
    talk.segment(SERVER, SYN | ACK, ack=(ISN + 1 + beyond) % 2**32).segment(CLIENT, ACK)
    outcome = after_another_user(talk)
    assert not outcome.seen()
    assert outcome.last_status == "unconfirmed"
