# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""DTLS flows through the whole engine."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import wire
from support.engine import UDP_COMPLETE, Outcome, run
from support.packets import (
    MINUTE,
    MS,
    SECOND,
    SERVER,
    SERVER_ADDRESS,
    START,
    Frame,
    Udp,
    merged,
    user,
    visit,
)
from support.quic_flow import status
from support.quic_wire import dtls_fragment, dtls_hello, dtls_record, verify_request
from support.stream import NAME, one_user

COOKIE = bytes(range(60, 80))
FIRST = dtls_record(dtls_fragment(dtls_hello(host=NAME)))
SECOND_HELLO = dtls_record(dtls_fragment(dtls_hello(host=NAME, cookie=COOKIE), message=1), number=1)
REQUEST = verify_request(COOKIE)


def dtls_talk(*datagrams: bytes, client: str = "10.7.0.1", t_ns: int = START) -> Udp:
    talk = Udp(client, ports=(40000, 4433), t_ns=t_ns)
    for datagram in datagrams:
        talk.send(datagram)
    return talk


def seen_at_once(*datagrams: bytes) -> Outcome:
    return run(dtls_talk(*datagrams).frames, z=1, established=False)


def test_the_cookie_is_evidence() -> None:
    talk = dtls_talk(FIRST).send(REQUEST, SERVER).send(SECOND_HELLO)
    outcome = one_user(talk)
    assert outcome.seen() == {(START + 2 * MS, NAME.decode(), "tls"): 1}
    assert status(outcome) == ("tls", "released")
    assert outcome.stats["suppressed_unconfirmed"] == 0
    assert outcome.stats["addr_observations"] == 2
    line = outcome.log(UDP_COMPLETE)[-1]
    assert (line["c_type"], line["s_type"]) == ("26", "26")


def test_old_clients_number_both_hellos_alike() -> None:
    again = dtls_record(dtls_fragment(dtls_hello(host=NAME, cookie=COOKIE)))
    assert one_user(dtls_talk(FIRST).send(REQUEST, SERVER).send(again)).released()


def test_both_hellos_are_one_vote() -> None:
    outcome = seen_at_once(FIRST, FIRST, SECOND_HELLO, SECOND_HELLO)
    assert outcome.seen() == {(START, NAME.decode(), "tls"): 1}


UNPROVEN = {
    "no answer": dtls_talk(FIRST),
    "the cookie of nobody": dtls_talk(FIRST, SECOND_HELLO),
    "another cookie": dtls_talk(FIRST)
    .send(verify_request(b"other cookie"), SERVER)
    .send(SECOND_HELLO),
    "a cookie of three bytes": dtls_talk(FIRST)
    .send(verify_request(b"abc"), SERVER)
    .send(dtls_record(dtls_fragment(dtls_hello(host=NAME, cookie=b"abc"), message=1))),
    "no cookie": dtls_talk(FIRST).send(verify_request(b""), SERVER).send(FIRST),
    "the request comes from the client": dtls_talk(FIRST, REQUEST, SECOND_HELLO),
    "the request comes later": dtls_talk(FIRST, SECOND_HELLO).send(REQUEST, SERVER),
    "a server that does not ask": dtls_talk(FIRST)
    .send(dtls_record(dtls_fragment(bytes(80), kind=2)), SERVER)
    .send(dtls_record(dtls_fragment(bytes(80), kind=16, message=1))),
}


@pytest.mark.parametrize("what", UNPROVEN)
def test_without_the_cookie_a_name_is_unconfirmed(what: str) -> None:
    outcome = one_user(UNPROVEN[what])
    assert not outcome.seen()
    assert NAME not in outcome.everything()
    assert status(outcome) == ("tls", "unconfirmed")


@pytest.mark.parametrize("what", UNPROVEN)
def test_evidence_any_counts_a_name_when_seen(what: str) -> None:
    outcome = one_user(UNPROVEN[what], established=False)
    assert outcome.seen() == {(START, NAME.decode(), "tls"): 1}


def test_a_name_that_changes_with_the_cookie_is_not_confirmed_by_it() -> None:
    other = dtls_record(dtls_fragment(dtls_hello(host=b"other.example"), message=0))
    outcome = run(dtls_talk(other).send(REQUEST, SERVER).send(SECOND_HELLO).frames, z=1)
    assert outcome.released() == {NAME.decode()}
    assert outcome.stats["suppressed_unconfirmed"] == 1


@given(st.integers(0, 2**32), st.integers(0, 2500))
def test_fragments_in_any_order(seed: int, filler: int) -> None:
    dice = random.Random(seed)
    body = dtls_hello(wire.extension(wire.PADDING, bytes(filler)), host=NAME)
    cuts = sorted({0, len(body), *(dice.randrange(len(body)) for _ in range(dice.randrange(9)))})
    parts = list(itertools.pairwise(cuts))
    parts += [(max(0, a - 5), min(len(body), b + 5)) for a, b in dice.choices(parts, k=2)]
    dice.shuffle(parts)
    datagrams = [dtls_record(dtls_fragment(body, a, b)) for a, b in parts]
    assert seen_at_once(*datagrams).seen().total() == 1
    joined = dtls_record(b"\2\x28", kind=21) + b"".join(datagrams)
    assert seen_at_once(dtls_record(b"".join(d[13:] for d in datagrams))).released()
    assert seen_at_once(*datagrams, joined).released() == {NAME.decode()}
    lost = dice.choice(cuts[:-1])
    kept = [d for d, (a, b) in zip(datagrams, parts, strict=True) if not a <= lost < b]
    outcome = seen_at_once(*kept, dtls_record(b"x", kind=23, epoch=1))
    assert not outcome.seen()


@pytest.mark.parametrize("message", [1, 0], ids=["counted", "old clients"])
def test_a_late_copy_of_the_first_hello_spoils_no_second_one(message: int) -> None:
    first = dtls_hello(host=NAME)
    copy = dtls_record(dtls_fragment(first, 0, 40))
    second = dtls_hello(host=NAME, cookie=COOKIE)
    parts = [
        dtls_record(dtls_fragment(second, start, start + 40, message=message))
        for start in range(0, len(second), 40)
    ]
    talk = dtls_talk(FIRST).send(REQUEST, SERVER)
    for datagram in (parts[0], copy, FIRST, *parts[1:]):
        talk.send(datagram)
    outcome = one_user(talk)
    assert outcome.released() == {NAME.decode()}
    assert outcome.stats["suppressed_incomplete"] == 0
    assert outcome.flows[-1]["t_start_ns"] % MINUTE == 0  # what was passed over may be another name


def test_hellos_that_never_become_whole() -> None:
    body = dtls_hello(host=NAME)
    half = dtls_record(dtls_fragment(body, 0, 50))
    outcome = seen_at_once(half)
    assert status(outcome) == ("tls", "suppressed")
    assert outcome.stats["suppressed_incomplete"] == 1
    outcome = seen_at_once(half, SECOND_HELLO)
    assert outcome.released() == {NAME.decode()}
    assert outcome.stats["suppressed_incomplete"] == 1


def test_conflicting_fragments() -> None:
    body = dtls_hello(host=NAME)
    other = dtls_hello(host=b"www.example.com")
    for datagrams in (
        [dtls_record(dtls_fragment(body, 0, len(body) - 1)), dtls_record(dtls_fragment(other, 60))],
        [dtls_record(dtls_fragment(body, 0, 60)), dtls_record(dtls_fragment(body + b"x", 60))],
    ):
        outcome = seen_at_once(*datagrams)
        assert not outcome.seen()
        assert outcome.stats["suppressed_conflict"] == 1


def test_malformed_and_nameless_hellos() -> None:
    twice = dtls_hello(wire.server_name(NAME), host=NAME)
    assert status(seen_at_once(dtls_record(dtls_fragment(twice)))) == ("tls", "invalid")
    nameless = seen_at_once(dtls_record(dtls_fragment(dtls_hello(host=None))))
    assert status(nameless) == (None, "none")
    assert nameless.stats["hellos_without_name"] == 1
    ech = dtls_hello(wire.extension(wire.ECH, bytes(40)), host=NAME)
    assert seen_at_once(dtls_record(dtls_fragment(ech))).flow["ech"] == "offered"


def test_a_capture_cut_by_its_snapshot_length() -> None:
    body = dtls_hello(wire.extension(wire.PADDING, bytes(200)), host=NAME)
    (frame,) = dtls_talk(dtls_record(dtls_fragment(body))).frames
    end = 42 + 25 + body.index(NAME) + len(NAME)
    for length in (42 + 24, 42 + 30, end - 1, end, len(frame.data) - 1):
        outcome = run([frame.cut(length)], z=1, established=False)
        assert bool(outcome.seen()) is (length >= end)


def test_no_more_than_eight_hellos() -> None:
    hellos = [
        dtls_record(dtls_fragment(dtls_hello(host=b"h%d.example" % i), message=i))
        for i in range(12)
    ]
    outcome = seen_at_once(*hellos)
    assert len(outcome.released()) == 8
    assert outcome.flow["name_status"] == "released"


def test_each_hello_that_is_too_many_is_counted() -> None:
    bodies = [dtls_hello(host=b"h%d.example" % i) for i in range(11)]
    pieces = [
        dtls_record(dtls_fragment(body, start, end, message=i))
        for i, body in enumerate(bodies)
        for start, end in ((0, 40), (40, 70), (70, len(body)))
    ]
    for n, many in ((8, 0), (9, 1), (11, 3)):
        outcome = seen_at_once(*pieces[: 3 * n])
        assert len(outcome.released()) == 8
        assert outcome.stats["dtls_hellos_limit"] == many


def test_a_flow_with_more_hellos_hides_something() -> None:
    """What the ninth names is not known, and may be what nobody else has."""
    hellos = [dtls_record(dtls_fragment(dtls_hello(), message=i)) for i in range(9)]
    for n, told in ((8, SERVER_ADDRESS), (9, None)):
        users = [dtls_talk(*hellos[:n], client=user(i), t_ns=START + i * SECOND) for i in (1, 2)]
        last = run(merged([talk.frames for talk in users]), z=2, established=False).flows[-1]
        assert last["server"] == told
        assert (last["t_start_ns"] % MINUTE == 0) is (told is None)


def test_a_hello_without_the_cookie_is_not_proven_by_an_earlier_one() -> None:
    """It may come from somebody else: the client's ports are all there is to be known."""
    forged = dtls_record(dtls_fragment(dtls_hello(host=b"other.example"), message=7))
    talk = dtls_talk(FIRST).send(REQUEST, SERVER).send(SECOND_HELLO).send(forged)
    outcome = run(talk.frames, z=1)
    assert outcome.released() == {NAME.decode()}
    assert outcome.stats["suppressed_unconfirmed"] == 1


def test_webrtc_hellos_come_after_stun() -> None:
    stun = b"\0\1\0\0\x21\x12\xa4\x42" + bytes(12)
    assert seen_at_once(stun, stun, b"\x80\x60" + bytes(20), FIRST).released() == {NAME.decode()}


def test_forged_clients_never_release_a_name() -> None:
    z = 5
    talks: list[list[Frame]] = []
    for i in range(3 * z):
        talk = dtls_talk(FIRST, client=user(i), t_ns=START + 10 * i * MS)
        talk.send(verify_request(b"cookie %d" % i), SERVER).send(SECOND_HELLO)
        talks.append(talk.frames)
    victim = visit(user(5000), NAME, START + SECOND)
    assert not run([*merged(talks), *victim], z=z).seen()
