# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""QUIC flows through the whole engine: what proves that a client is where it says."""

import pytest
from support import quic_wire as quic
from support.engine import run
from support.examples import each
from support.packets import MS, SECOND, SERVER, START, Udp, merged, user, visit
from support.quic_flow import (
    ANSWER,
    FLIGHT,
    HELLO,
    NAME,
    OTHER_NAME,
    PORTS,
    RETURNS,
    proven,
    quic_talk,
    status,
)
from support.quic_wire import DCID, SCID, SERVER_ID, V1, V2, Initial, crypto
from support.stream import one_user


@pytest.mark.parametrize("what", RETURNS)
def test_a_packet_to_the_servers_id_is_evidence(what: str) -> None:
    talk = proven(RETURNS[what])
    outcome = one_user(talk)
    assert outcome.seen() == {(START + 2 * MS, NAME.decode(), "quic"): 1}
    assert status(outcome) == ("quic", "released")
    assert outcome.stats["suppressed_unconfirmed"] == 0


def test_evidence_before_the_name() -> None:
    """The second half of the hello goes to the server's ID: name and evidence in one packet."""
    first, rest = quic.pieces_of(HELLO, [40])
    last = Initial(crypto(rest[1], rest[0]), dcid=SERVER_ID, key_id=DCID, number=1).seal()
    talk = quic_talk(Initial(crypto(first[1])).seal())
    talk.send(Initial(quic.ACK, dcid=SCID, scid=SERVER_ID, key_id=DCID, server=True).seal(), SERVER)
    assert one_user(talk.send(last)).seen() == {(START + 2 * MS, NAME.decode(), "quic"): 1}


def test_the_id_of_a_retry_is_evidence() -> None:
    talk = quic_talk(FLIGHT[0]).send(quic.retry(SCID, b"retry id"), SERVER)
    talk.send(Initial(crypto(HELLO), dcid=b"retry id", token=b"token", number=1).seal())
    outcome = one_user(talk)
    assert outcome.seen() == {(START + 2 * MS, NAME.decode(), "quic"): 1}


@pytest.mark.parametrize(("keys", "counts"), [(b"ab", True), (DCID, False)])
def test_behind_a_retry_the_answer_has_its_keys(keys: bytes, counts: bool) -> None:
    """The ID of this Retry is too short to be evidence, and the answer for its size."""
    talk = quic_talk(Initial(crypto(HELLO[:40]) + bytes(1100)).seal())
    talk.send(quic.retry(SCID, b"ab"), SERVER)
    talk.send(Initial(crypto(HELLO), dcid=b"ab", token=b"token", number=1).seal())
    talk.send(quic.server_answer(key_id=keys), SERVER)
    talk.send(quic.opaque(quic.HANDSHAKE, SERVER_ID, SCID))
    assert bool(one_user(talk).seen()) is counts


def test_an_answer_in_another_version_is_evidence() -> None:
    """Compatible version negotiation (RFC 9368): same ID, other keys."""
    returned = quic.opaque(quic.HANDSHAKE, SERVER_ID, SCID, version=V2)
    outcome = one_user(proven(returned, answer=quic.server_answer(version=V2)))
    assert outcome.seen() == {(START + 2 * MS, NAME.decode(), "quic"): 1}


RETRIES = {  # from the appendices A.4 of RFC 9001, RFC 9369 and the drafts 29 and 25
    V1: "ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba",
    V2: "cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6",
    0xFF00001D: "ffff00001d0008f067a5502a4262b5746f6b656ed16926d81f6f9ca2953a8aa4575e1e49",
    0xFF000019: "ffff0000190008f067a5502a4262b5746f6b656e1e5ec5b014cbb1f0fd93df4048c446a6",
}


@pytest.mark.parametrize("version", RETRIES)
@pytest.mark.parametrize("broken", [False, True])
def test_a_retry_has_to_have_the_right_tag(version: int, broken: bool) -> None:
    first = Initial(crypto(HELLO), version, scid=b"").seal()
    again = Initial(crypto(HELLO), version, SERVER_ID, b"", token=b"token", number=1).seal()
    packet = bytearray.fromhex(RETRIES[version])
    packet[-1] ^= broken
    talk = quic_talk(first).send(bytes(packet), SERVER).send(again)
    assert bool(one_user(talk).seen()) is not broken


@pytest.mark.parametrize(
    "answer",
    [
        quic.opaque(quic.HANDSHAKE, SCID, SERVER_ID),
        quic.server_answer(key_id=b"another ID"),
        Initial(quic.ACK, dcid=SCID, scid=SERVER_ID, key_id=DCID).seal(),
        ANSWER[:70],
    ],
    ids=["Handshake", "keys of another connection", "keys of the client", "cut short"],
)
def test_what_does_not_authenticate_tells_no_id_of_a_server(answer: bytes) -> None:
    """Other protocols repeat the start of what they were sent."""
    assert not one_user(proven(*RETURNS.values(), answer=answer)).seen()
    late = proven(answer=answer).send(ANSWER, SERVER).send(RETURNS["a 1-RTT packet"])
    assert one_user(late).released() == {NAME.decode()}


def test_a_server_address_votes_under_the_same_rule() -> None:
    for returns, votes in (((), 0), ((RETURNS["a 1-RTT packet"],), 1)):
        nameless = quic.first_flight(quic.hello(host=None))
        outcome = run(proven(*returns, flight=nameless).frames, z=1)
        assert outcome.stats["addr_observations"] == votes


FORGED_ID = b"\xda" + DCID[1:]  # as some servers make theirs out of the client's
UNPROVEN = {
    "no answer": proven(RETURNS["a 1-RTT packet"], answer=b"\0"),
    "nothing comes back": proven(),
    "the hello again": proven(*FLIGHT),
    "to another ID": proven(quic.short(b"guessed!"), quic.opaque(quic.HANDSHAKE, b"guess", SCID)),
    "early data": proven(quic.opaque(quic.ZERO_RTT, SERVER_ID, SCID)),
    "an ID cut short": proven(quic.short(SERVER_ID)[:8]),
    "the server answers another client": proven(
        RETURNS["a 1-RTT packet"], answer=quic.server_answer(b"other")
    ),
    "only version negotiation": proven(
        quic.short(b"some id!"), answer=quic.negotiation(SCID, b"some id!", V2)
    ),
    "the server repeats the client's ID": proven(
        quic.short(DCID), answer=quic.server_answer(scid=DCID)
    ),
    "the server changes one byte of it": proven(
        quic.short(FORGED_ID), answer=quic.server_answer(scid=FORGED_ID)
    ),
    "an ID of three bytes": proven(
        quic.short(b"abc"),
        quic.opaque(quic.HANDSHAKE, b"abc", SCID),
        answer=quic.server_answer(scid=b"abc"),
    ),
    "an empty ID": proven(
        quic.short(b""), quic.opaque(quic.HANDSHAKE, b"", SCID), answer=quic.server_answer(scid=b"")
    ),
    "the client made the ID up for another connection": quic_talk(
        FLIGHT[0], Initial(crypto(quic.hello(host=OTHER_NAME)), dcid=b"made up1").seal(), FLIGHT[0]
    )
    .send(quic.server_answer(scid=b"Made up1"), SERVER)
    .send(quic.short(b"Made up1")),
    "from the server's side": quic_talk(FLIGHT[0])
    .send(ANSWER, SERVER)
    .send(RETURNS["a 1-RTT packet"], SERVER),
}


@each("what", UNPROVEN)
def test_without_evidence_a_name_is_unconfirmed(what: str) -> None:
    outcome = one_user(UNPROVEN[what])
    assert not outcome.seen()
    assert NAME not in outcome.everything()
    assert outcome.stats["suppressed_unconfirmed"] >= 1
    assert status(outcome) == ("quic", "unconfirmed")


@each("what", UNPROVEN)
def test_evidence_any_counts_a_name_when_seen(what: str) -> None:
    outcome = one_user(UNPROVEN[what], established=False)
    assert (START, NAME.decode(), "quic") in outcome.seen()


def test_an_id_that_can_be_guessed_needs_a_server_that_trusts_the_client() -> None:
    """RFC 9000, 8.1: no more than three times what it received before the address is validated."""
    for scid in (DCID, FORGED_ID, b"abc", b""):
        back = quic.opaque(quic.HANDSHAKE, scid, SCID)
        talk = proven(back, answer=quic.server_answer(scid=scid))
        received = sum(
            len(frame.data) - 42 for frame in talk.frames if frame.data[34:36] != b"\1\xbb"
        )
        sent = sum(len(frame.data) - 42 for frame in talk.frames) - received
        talk.send(bytes(3 * received - sent), SERVER)
        assert not one_user(talk).seen()
        at = talk.t_ns
        assert one_user(talk.send(b"\0", SERVER)).seen() == {(at, NAME.decode(), "quic"): 1}


def test_forged_clients_never_release_a_name() -> None:
    """z - 1 sources that a server answers, each with packets that guess its ID."""
    z = 6
    forged = []
    for i in range(3 * z):
        guesses = [quic.short(bytes([0xDA, *DCID[1:]])), quic.short(DCID), quic.short(b"")]
        answer = quic.server_answer(scid=(SERVER_ID, FORGED_ID, DCID)[i % 3])
        talk = quic_talk(FLIGHT[0], client=user(i), t_ns=START + 10 * i * MS).send(answer, SERVER)
        for guess in guesses:
            talk.send(guess)
        forged.append(talk.frames)
    victim = visit(user(5000), NAME, START + SECOND)
    outcome = run([*merged(forged), *victim], z=z)
    assert not outcome.seen()
    assert outcome.stats["suppressed_unconfirmed"] == 3 * z
    assert run([*merged(forged), *victim], z=z, established=False).released() == {NAME.decode()}


def test_evidence_of_one_connection_is_none_for_the_next() -> None:
    """Somebody who knows a user's ports could otherwise add a name to its proven flow."""
    second = Initial(crypto(quic.hello(host=OTHER_NAME)), dcid=b"second connection").seal()
    talk = proven(RETURNS["a 1-RTT packet"])
    talk.send(second).send(quic.short(SERVER_ID))
    outcome = run(talk.frames, z=1)
    assert outcome.released() == {NAME.decode()}
    assert outcome.stats["suppressed_unconfirmed"] == 1
    answer = quic.server_answer(scid=b"its ID 2", key_id=b"second connection")
    talk.send(answer, SERVER).send(quic.short(b"its ID 2"))
    assert run(talk.frames, z=1).released() == {NAME.decode(), OTHER_NAME.decode()}


def test_what_a_server_sent_to_one_connection_speaks_for_no_other() -> None:
    """Its client is real; who forges another on its ports could guess the server's ID."""
    talk = proven(RETURNS["a 1-RTT packet"]).send(bytes(20_000), SERVER)
    talk.send(Initial(crypto(quic.hello(host=OTHER_NAME)), dcid=b"second connection").seal())
    second_id = b"second connection"
    talk.send(quic.server_answer(scid=b"Second connection", key_id=second_id), SERVER)
    talk.send(quic.short(b"Second connection"))
    assert run(talk.frames, z=1).released() == {NAME.decode()}


@pytest.mark.parametrize("datagrams", [0, 1, 5])
def test_what_a_server_sent_before_the_connection_speaks_for_none(datagrams: int) -> None:
    """A download that was running when the capture began."""
    talk = Udp(ports=PORTS).send(quic.short(SERVER_ID))
    for _ in range(datagrams):
        talk.send(quic.short(b"its client") + bytes(1200), SERVER)
    talk.send(FLIGHT[0]).send(quic.server_answer(scid=FORGED_ID), SERVER)
    talk.send(quic.short(FORGED_ID))
    assert not run(talk.frames, z=1).seen()


def test_a_forged_name_before_a_real_connection_stays_unconfirmed() -> None:
    forged = Initial(crypto(quic.hello(host=OTHER_NAME)), dcid=b"forged connection").seal()
    talk = quic_talk(forged, FLIGHT[0]).send(ANSWER, SERVER).send(RETURNS["a 1-RTT packet"])
    outcome = run(talk.frames, z=1)
    assert outcome.released() == {NAME.decode()}
    assert OTHER_NAME not in outcome.everything()


def test_the_same_name_again_in_another_connection_is_one_vote() -> None:
    again = Initial(crypto(HELLO), dcid=b"second connection").seal()
    talk = proven(RETURNS["a 1-RTT packet"]).send(again)
    talk.send(quic.server_answer(scid=b"its ID 2"), SERVER).send(quic.short(b"its ID 2"))
    outcome = run(talk.frames, z=1)
    assert outcome.seen() == {(START + 2 * MS, NAME.decode(), "quic"): 1}
    assert status(outcome) == ("quic", "released")


# ---- bounds -------------------------------------------------------------------------------------


def test_servers_packets_beyond_those_tried_for_its_id_are_counted() -> None:
    other = quic.server_answer(key_id=b"another ID")
    for tried in (31, 32, 40):
        talk = quic_talk(*FLIGHT)
        for _ in range(tried):
            talk.send(other, SERVER)
        talk.send(quic.opaque(quic.HANDSHAKE, SCID, SERVER_ID), SERVER)  # tells none: not tried
        outcome = one_user(talk.send(ANSWER, SERVER).send(RETURNS["a 1-RTT packet"]))
        assert outcome.stats["quic_answers_limit"] == max(0, tried + 1 - 32)
        assert bool(outcome.seen()) is (tried < 32)
        assert outcome.stats["quic_ids_limit"] == 0


def test_flows_with_more_ids_of_the_clients_own_than_are_kept_are_counted() -> None:
    """Any of them may be like the one that the server chose."""
    for more, many in ((6, 0), (7, 1), (20, 1)):  # beside the two of its first Initial
        talk = quic_talk(*FLIGHT)
        for i in range(more):
            talk.send(quic.opaque(quic.HANDSHAKE, b"id no %02d" % i, SCID))
        outcome = one_user(talk.send(ANSWER, SERVER).send(RETURNS["a 1-RTT packet"]))
        assert outcome.stats["quic_ids_limit"] == many
        assert outcome.stats["quic_answers_limit"] == 0
        assert bool(outcome.seen()) is (many == 0)
