# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A forger of a client's address towards a server that echoes what it gets casts no vote."""

import random
import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import quic_wire as quic
from support import wire
from support.engine import Outcome, after_another_user, nets, run
from support.examples import each, examples
from support.packets import (
    ACK,
    CLIENT,
    FIN,
    PSH,
    RST,
    SECOND,
    SERVER,
    START,
    SYN,
    Tcp,
    Udp,
    hello,
    user,
    visit,
)
from support.quic_wire import (
    DCID,
    SCID,
    V1,
    V2,
    Initial,
    crypto,
    dtls_fragment,
    dtls_hello,
    dtls_record,
)
from support.tunnel import by_tunnel

NAME = wire.HOST
MADE_UP = b"made up!"  # the ID that the server is said to have chosen
FIRST = Initial(crypto(quic.hello(host=NAME)), size=quic.DATAGRAM_BYTES).seal()
BACK = quic.short(MADE_UP)
COOKIE = bytes(range(60, 80))
ASKED = quic.verify_request(COOKIE)
DTLS_FIRST = dtls_record(dtls_fragment(dtls_hello(host=NAME)))
DTLS_BACK = dtls_record(dtls_fragment(dtls_hello(host=NAME, cookie=COOKIE), message=1), number=1)


def answer(scid: bytes = MADE_UP, version: int = V1, fixed: int = 0x40) -> bytes:
    """What a QUIC server would send."""
    packet = Initial(quic.ACK, version, SCID, scid, key_id=DCID, server=True, fixed=fixed)
    return packet.seal()


def echoed(*datagrams: bytes, back: bytes, port: int = 443) -> Udp:
    """The forger's datagrams, then all of their echoes, then what proves a client."""
    talk = Udp(ports=(40000, port))
    for datagram in datagrams:
        talk.send(datagram)
    for datagram in datagrams:
        talk.send(datagram, SERVER)
    return talk.send(back)


def likeness(n: int) -> bytes:
    """Another client's ID."""
    return b"own id %02d" % n


UNREAD = answer(fixed=0)  # too short to tell that it is QUIC
HANDSHAKE = quic.opaque(quic.HANDSHAKE, SCID, SCID)
AGAIN = Initial(quic.PING, dcid=MADE_UP).seal()
NOISE = [bytes(1400)] * 9
LIKE = b"\xda" + DCID[1:]  # as some servers make theirs out of the client's
ECHOED = {
    "an Initial": echoed(FIRST, answer(), back=BACK),
    "an Initial of another version": echoed(FIRST, answer(version=V2), back=BACK),
    "a Handshake packet": echoed(FIRST, quic.opaque(quic.HANDSHAKE, SCID, MADE_UP), back=BACK),
    "behind another packet": echoed(FIRST, HANDSHAKE + answer(), back=BACK),
    "a Retry": echoed(FIRST, quic.retry(SCID, MADE_UP), back=AGAIN),
    "an Initial before the first": echoed(UNREAD, FIRST, back=BACK),
    "with many IDs": echoed(FIRST, *(answer(likeness(n)) for n in range(9)), answer(), back=BACK),
    "with much that was sent before": echoed(*NOISE, FIRST, answer(LIKE), back=quic.short(LIKE)),
    "with the echo captured first": Udp(ports=(40000, 443))
    .send(FIRST)
    .send(answer(), SERVER)
    .send(answer())
    .send(BACK),
    "a cookie": echoed(DTLS_FIRST, ASKED, back=DTLS_BACK, port=4433),
    "a cookie before the hello": echoed(ASKED, DTLS_FIRST, back=DTLS_BACK, port=4433),
    "a cookie behind the hello": echoed(DTLS_FIRST + ASKED, back=DTLS_BACK, port=4433),
    "a cookie behind noise": echoed(
        dtls_record(b"\2\x28", kind=21) + ASKED, DTLS_FIRST, back=DTLS_BACK, port=4433
    ),
}


def proves_nobody(outcome: Outcome) -> bool:
    """The name was seen, and neither released nor told."""
    return not outcome.seen() and NAME not in outcome.everything()


@each("what", ECHOED)
def test_an_echo_proves_nobody(what: str) -> None:
    outcome = after_another_user(ECHOED[what])
    assert proves_nobody(outcome)
    assert outcome.last_status == "unconfirmed"


@pytest.mark.parametrize("what", ["quic", "dtls"])
def test_what_an_echo_sends_back_may_have_come_by_a_tunnel(what: str) -> None:
    """Who forges sources may use one for what must not be seen with the rest."""
    talk = echoed(FIRST, answer(), back=BACK)
    if what == "dtls":
        talk = echoed(DTLS_FIRST, ASKED, back=DTLS_BACK, port=4433)
    hidden = by_tunnel(talk.frames[1:2], user(0), (user(5), "203.0.113.66"))
    frames = [talk.frames[0], *hidden, *talk.frames[2:]]
    before = visit(user(9), NAME, START - SECOND)
    assert proves_nobody(run([*before, *frames], z=2, internal=nets("10.0.0.0/8")))


def reflected(spi: bytes) -> bytes:
    """How an IKE responder refuses a version (RFC 7296, 2.5): behind the SPIs of the request, which
    are both of its sender's choice."""
    notify = struct.pack(">BBHBBH", 0, 0, 8, 0, 0, 5)
    return spi + struct.pack(">BBBBII", 41, 0x20, 34, 0x20, 0, 36) + notify


@pytest.mark.parametrize("kind", [quic.HANDSHAKE, quic.INITIAL])
def test_a_start_that_another_protocol_repeats_proves_nobody(kind: int) -> None:
    """Its first 16 bytes are enough for a long header."""
    client, server = b"c", b"chosen"
    head = quic.long_header(kind, V1, client, server)
    head += bytes(kind == quic.INITIAL)  # no token
    head += bytes([36 - len(head) - 1])  # length of what follows
    first = Initial(crypto(quic.hello(host=NAME)), scid=client, size=quic.DATAGRAM_BYTES).seal()
    refused = reflected(head.ljust(16, b"\0"))
    assert len(refused) == 36
    talk = Udp(ports=(40000, 500)).send(first).send(refused, SERVER).send(quic.short(server))
    assert proves_nobody(after_another_user(talk))


def test_a_mirror_of_segments_proves_nobody() -> None:
    for again in (False, True):
        talk = Tcp().segment(CLIENT, SYN, seq=1000)
        talk.segment(CLIENT, SYN | ACK, seq=7000 if again else 1000, ack=1001)
        if again:
            talk.segment(CLIENT, SYN, seq=1000)
        talk.segment(SERVER, SYN, seq=1000)
        talk.segment(SERVER, SYN | ACK, seq=7000 if again else 1000, ack=1001)
        talk.segment(CLIENT, ACK, seq=1001, ack=7001 if again else 1001)
        talk.segment(CLIENT, PSH | ACK, hello(NAME), seq=1001, ack=7001 if again else 1001)
        assert proves_nobody(after_another_user(talk))


@pytest.mark.parametrize("ends", [RST, SYN | FIN])
def test_a_mirror_proves_nobody_whose_ports_answered_before(ends: int) -> None:
    """The SYN-ACK is of another flow, which gave way when its echo comes."""
    talk = Tcp().segment(CLIENT, SYN | ACK, seq=7000, ack=1001).segment(CLIENT, ends, seq=7001)
    talk.segment(CLIENT, SYN, seq=1000).segment(SERVER, SYN | ACK, seq=7000, ack=1001)
    talk.segment(CLIENT, ACK, seq=1001, ack=7001)
    talk.segment(CLIENT, PSH | ACK, hello(NAME), seq=1001, ack=7001)
    assert proves_nobody(after_another_user(talk))


def test_a_mirror_proves_nobody_who_was_taken_for_a_server_before() -> None:
    """Its SYN-ACK opens a flow, of which its hello shows that it is the client."""
    for ends in (False, True):
        talk = Tcp().segment(CLIENT, SYN | ACK, seq=7000, ack=1001)
        talk.segment(CLIENT, PSH | ACK, hello(b"other.example"), seq=7001, ack=1)
        if ends:
            talk.segment(CLIENT, RST, seq=7001)
        talk.segment(CLIENT, SYN, seq=1000).segment(SERVER, SYN | ACK, seq=7000, ack=1001)
        talk.segment(CLIENT, ACK, seq=1001, ack=7001)
        talk.segment(CLIENT, PSH | ACK, hello(NAME), seq=1001, ack=7001)
        assert proves_nobody(after_another_user(talk))


def test_a_mirror_proves_nobody_who_answered_behind_a_flows_end() -> None:
    """The SYN-ACK is counted in no flow: the one on its ports was reset."""
    talk = Tcp().segment(CLIENT, SYN, seq=1000).segment(CLIENT, RST, seq=1001)
    talk.segment(CLIENT, SYN | ACK, seq=7000, ack=1001)
    talk.segment(CLIENT, SYN, seq=1000).segment(SERVER, SYN | ACK, seq=7000, ack=1001)
    talk.segment(CLIENT, ACK, seq=1001, ack=7001)
    talk.segment(CLIENT, PSH | ACK, hello(NAME), seq=1001, ack=7001)
    assert proves_nobody(after_another_user(talk))


def test_a_mirror_whose_echo_is_captured_first_proves_nobody() -> None:
    talk = Tcp().segment(CLIENT, SYN, seq=1000).segment(SERVER, SYN | ACK, seq=7000, ack=1001)
    talk.segment(CLIENT, SYN | ACK, seq=7000, ack=1001)
    talk.segment(CLIENT, ACK, seq=1001, ack=7001)
    talk.segment(CLIENT, PSH | ACK, hello(NAME), seq=1001, ack=7001)
    assert proves_nobody(after_another_user(talk))


IDS = (DCID, SCID, MADE_UP, LIKE, b"another ID", b"abc", b"")


def anything(dice: random.Random) -> bytes:
    """A packet that a client or a server may send."""
    dcid, scid, key_id = dice.choices(IDS, k=3)
    version, fixed = dice.choice([V1, V2]), dice.choice([0x40, 0x40, 0])
    match dice.randrange(9):
        case 0 | 1:
            hello = crypto(quic.hello(host=NAME))
            return Initial(hello, version, key_id, scid, size=dice.choice([0, 1200])).seal()
        case 2 | 3:
            key_id = dice.choice([key_id, DCID])
            frames = dice.choice([quic.ACK, crypto(quic.hello(host=NAME))])
            packet = Initial(frames, version, dcid, scid, key_id=key_id, server=True, fixed=fixed)
            return packet.seal()
        case 4:
            return quic.retry(dcid, scid, b"token", version, key_id)
        case 5:
            return quic.opaque(dice.choice([quic.HANDSHAKE, quic.ZERO_RTT]), dcid, scid)
        case 6:
            return bytes(dice.choice([10, 1400]))
        case 7:
            return quic.negotiation(dcid, scid, V1)
        case _:
            return quic.short(dcid)


def anything_of_dtls(dice: random.Random) -> bytes:
    """The same for DTLS."""
    cookie = dice.choice([b"", COOKIE])
    body, message = dtls_hello(host=NAME, cookie=cookie), dice.randrange(2)
    part = dice.randrange(len(body))
    asked = quic.verify_request(COOKIE)
    begun = dtls_record(dtls_fragment(body, 0, part, message=message))
    rest = dtls_record(dtls_fragment(body, part, message=message))
    return dice.choice([begun + rest, begun + rest, begun, rest, asked, asked[:-1], bytes(20)])


@settings(max_examples=examples(150))
@given(st.integers(0, 2**64), st.sampled_from([anything, anything_of_dtls]))
def test_no_datagrams_make_an_echo_prove_anybody(
    seed: int, make: Callable[[random.Random], bytes]
) -> None:
    dice = random.Random(seed)
    talk = Udp(ports=(40000, 443))
    under_way: list[bytes] = []
    for _ in range(dice.randrange(4, 24)):
        if dice.randrange(2) or not under_way:
            under_way.append(b"".join(make(dice) for _ in range(dice.choice([1, 1, 2]))))
            talk.send(under_way[-1])
        else:
            talk.send(under_way.pop(dice.randrange(len(under_way))), SERVER)
    outcome = after_another_user(talk)
    assert not outcome.seen()
    assert NAME not in outcome.everything()


def any_segment(dice: random.Random) -> tuple[int, bytes, int, int]:
    """(flags, payload, sequence number, acknowledgement) of what a client may send."""
    match dice.randrange(10):
        case 0 | 1:
            return SYN, b"", 1000, 0
        case 2 | 3 | 4:
            return SYN | ACK, b"", dice.choice([7000, 7000, 1000]), 1001
        case 5 | 6:
            return ACK, b"", 1001, dice.choice([7001, 7001, 1001])
        case 7 | 8:
            host, seq = dice.choice([NAME, b"other.example"]), dice.choice([1001, 1001, 7001])
            return PSH | ACK, hello(host), seq, dice.choice([7001, 1001])
        case _:
            return dice.choice([RST, RST | ACK, FIN | ACK, SYN | FIN]), b"", 1000, 7000


@settings(max_examples=examples(150))
@given(st.integers(0, 2**64), st.sampled_from([(40000, 443), (40000, 8443), (300, 443)]))
def test_no_segments_make_a_mirror_prove_anybody(seed: int, ports: tuple[int, int]) -> None:
    dice = random.Random(seed)
    talk = Tcp(ports=ports)
    under_way: list[tuple[int, bytes, int, int]] = []
    for _ in range(dice.randrange(4, 24)):
        side = CLIENT if dice.randrange(2) or not under_way else SERVER
        if side == CLIENT:
            under_way.append(any_segment(dice))
            flags, payload, seq, ack = under_way[-1]
        else:
            flags, payload, seq, ack = under_way.pop(dice.randrange(len(under_way)))
        talk.segment(side, flags, payload, seq=seq, ack=ack)
    assert proves_nobody(after_another_user(talk))
