# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Requests of a connection whose segments overtake each other, or are lost."""

import pytest
from support.engine import Outcome, run
from support.packets import ACK, CLIENT, MS, PSH, SECOND, START, Tcp, request, user, visit
from support.stream import names

SHARED, RARE, NEVER = b"shared.example", b"rare-secret.example", b"never-visited.example"
INSIDE = request(NEVER)
HEAD = request(SHARED, b"POST").removesuffix(b"\r\n") + b"Content-Length: %d\r\n\r\n" % len(INSIDE)
FIRST = 1001  # the sequence number of the client's first byte
PORTS = (40000, 80)


def web() -> Tcp:
    return Tcp(ports=PORTS).handshake()


def placed(talk: Tcp, *parts: tuple[int, bytes]) -> Tcp:
    """The client's segments at these places of its stream, 10 ms apart."""
    for at, data in parts:
        talk.wait(9 * MS).segment(CLIENT, PSH | ACK, data, seq=FIRST + at)
    talk.next[CLIENT] = FIRST + max(at + len(data) for at, data in parts)
    return talk


def among_three(talk: Tcp, **settings: object) -> Outcome:
    """The talk behind two other users' visits to the shared name: z = 3 releases that alone."""
    others = [visit(user(900 + n), SHARED, START - (2 - n) * SECOND) for n in range(2)]
    return run([*others[0], *others[1], *talk.close().frames], z=3, **settings)


def is_coarse(outcome: Outcome) -> bool:
    """Whether the last record has measurements of a withheld one."""
    record = outcome.flows[-1]
    return record["t_start_ns"] % (60 * SECOND) == 0 and record["server"] is None


ONE, TWO, THREE = request(SHARED), request(RARE), request(SHARED, b"HEAD")
KEPT_ALIVE = [(0, ONE), (len(ONE), TWO), (len(ONE + TWO), THREE)]


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0), (2, 0, 1)])
def test_a_request_behind_its_successor_is_waited_for(order: tuple[int, ...]) -> None:
    """The rare name votes, and its record is as coarse as in order."""
    outcome = among_three(placed(web(), *(KEPT_ALIVE[n] for n in order)))
    assert outcome.stats["names_http"] == 3
    assert outcome.stats["observations"] == 4
    assert outcome.stats["suppressed_below_z"] == 3  # the rare name, and two before the third user
    assert outcome.stats["names_repeated"] == 1
    assert outcome.stats["names_after_gaps"] == 0
    assert outcome.flows[-1]["name"] == SHARED.decode()
    assert is_coarse(outcome)
    assert RARE not in outcome.everything()


def test_a_request_that_never_comes_makes_the_record_coarse() -> None:
    outcome = among_three(placed(web(), KEPT_ALIVE[0], KEPT_ALIVE[2]))
    assert outcome.stats["names_after_gaps"] == 1
    assert outcome.flows[-1]["name"] == SHARED.decode()
    assert is_coarse(outcome)
    whole = among_three(placed(web(), (0, ONE), (len(ONE), THREE)))
    assert whole.stats["names_after_gaps"] == 0
    assert not is_coarse(whole)
    assert is_coarse(among_three(placed(web(), (300, ONE))))


def test_a_last_request_that_never_comes_makes_the_record_coarse() -> None:
    """Its client's FIN lies behind it."""
    chunked = request(SHARED, b"PUT").removesuffix(b"\r\n") + b"Transfer-Encoding: chunked\r\n\r\n"
    for said, lost, gaps in ((ONE, 0, 0), (ONE, 1, 1), (HEAD, len(INSIDE), 0), (HEAD, 99, 1)):
        talk = web().say(said)
        talk.next[CLIENT] += lost
        outcome = among_three(talk)
        assert outcome.stats["names_after_gaps"] == gaps
        assert is_coarse(outcome) == bool(gaps)
    for said, lost, gaps in ((b"9\r\n", 11, 0), (b"9\r\n", 12, 1)):
        talk = web().say(chunked + said)
        talk.next[CLIENT] += lost
        assert run(talk.close().frames, z=1).stats["names_after_gaps"] == gaps


@pytest.mark.parametrize("behind", [b"", ONE])
def test_a_body_before_its_head_is_no_request(behind: bytes) -> None:
    at = len(behind)
    parts = [(at + len(HEAD), INSIDE), (at, HEAD)]
    talk = placed(web().say(behind) if behind else web(), *parts)
    outcome = run(talk.say(request(b"later.example")).frames, z=1)
    assert outcome.released() == {SHARED.decode(), "later.example"}
    assert outcome.stats["names_after_gaps"] == 0


@pytest.mark.parametrize("cut", [1, 2, 9])
def test_chunks_before_their_head_are_no_requests(cut: int) -> None:
    head = request(SHARED, b"POST").removesuffix(b"\r\n") + b"Transfer-Encoding: chunked\r\n\r\n"
    body = b"%x\r\n" % len(INSIDE), INSIDE, b"\r\n0\r\n\r\n" + ONE
    stream, at, parts = head + b"".join(body), len(ONE + head), []
    for data in body:
        parts.append((at, data))
        at += len(data)
    begun = [(len(ONE), stream[:cut]), (len(ONE) + cut, stream[cut : len(head)])]
    assert names(placed(web().say(ONE), *parts[::-1], *begun)) == [SHARED.decode()]
    assert names(placed(web().say(ONE), *begun, *parts[::-1])) == [SHARED.decode()]


def test_the_rest_of_a_request_names_nobody() -> None:
    """Its first byte, or its first segment, was not captured."""
    tail = b"ET /320 HTTP/1.1\r\nHost: " + NEVER + b"\r\n\r\n"
    for start in (b"", ONE):
        at = len(start) + 1
        talk = placed(web().say(start) if start else web(), (at, tail))
        outcome = run(talk.frames, z=1)
        assert outcome.released() == ({SHARED.decode()} if start else set())
        assert outcome.stats["names_after_gaps"] == 1
        assert outcome.stats["status_truncated"] == (not start)


@pytest.mark.parametrize("data", [b"GET x\r\n", b"x" + INSIDE, b"\r\n" + INSIDE, INSIDE[1:], b"x"])
def test_behind_a_gap_a_request_begins_with_its_segment_or_none_is_read(data: bytes) -> None:
    later = request(b"later.example")
    talk = placed(web().say(ONE), (len(ONE) + 50, data), (len(ONE) + 50 + len(data), later))
    outcome = among_three(talk)
    assert outcome.stats["names_http"] == 1
    assert outcome.stats["names_after_gaps"] == 1
    assert is_coarse(outcome)


def test_a_gap_inside_a_head_ends_reading() -> None:
    talk = placed(web().say(ONE), (len(ONE), HEAD[:20]), (len(ONE) + 300, INSIDE))
    outcome = among_three(talk)
    assert outcome.stats["names_http"] == 1
    assert outcome.stats["suppressed_incomplete"] == 1
    assert is_coarse(outcome)


UNKNOWN = {
    "coding": b"Transfer-Encoding: chunked, gzip",
    "codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "length": b"Content-Length: 1x",
    "lengths": b"Content-Length: 1\r\nContent-Length: 2",
    "length and chunks": b"Transfer-Encoding: chunked\r\nContent-Length: -1",
    "long length": b"Content-Length: 1" + b"0" * 18,
    "folded length": b"Content-Length: 1\r\n 0",
}


@pytest.mark.parametrize("field", UNKNOWN.values(), ids=UNKNOWN)
def test_behind_a_body_of_unknown_length_no_request_is_read(field: bytes) -> None:
    head = request(SHARED, b"POST").removesuffix(b"\r\n") + field + b"\r\n\r\n"
    outcome = among_three(web().say(head).say(INSIDE))
    assert outcome.stats["names_http"] == outcome.stats["bodies_lost"] == 1
    assert outcome.flows[-1]["name"] == SHARED.decode()
    assert is_coarse(outcome)


def test_zeros_in_front_of_a_length_are_passed_over() -> None:
    head = request(SHARED, b"POST").removesuffix(b"\r\n")
    zeros = b"0" * 40
    length = head + b"Content-Length: %b%d\r\n\r\n" % (zeros, len(INSIDE)) + INSIDE
    chunks = head + b"Transfer-Encoding: chunked\r\n\r\n%b%x\r\n%b\r\n%b\r\n\r\n"
    for message in (length, chunks % (zeros, len(INSIDE), INSIDE, zeros)):
        assert names(web().say(message + TWO)) == [RARE.decode(), SHARED.decode()]


@pytest.mark.parametrize("coding", [b"gzip, chunked", b"gzip\r\nTransfer-Encoding: Chunked"])
def test_the_last_coding_says_that_a_body_comes_in_chunks(coding: bytes) -> None:
    head = request(SHARED, b"POST").removesuffix(b"\r\n")
    head += b"Transfer-Encoding: " + coding + b"\r\nContent-Length: 3\r\n\r\n"
    talk = web().say(head).say(b"%x\r\n" % len(INSIDE)).say(INSIDE).say(b"\r\n0\r\n\r\n")
    assert names(talk.say(TWO)) == [RARE.decode(), SHARED.decode()]


def test_what_is_no_request_where_one_has_to_begin_ends_reading() -> None:
    for data in (b"\0\0", b"NOTIFY / x\r\n", b"GET / HTTP/2.0\r\n"):
        outcome = among_three(web().say(ONE).say(data).say(INSIDE))
        assert outcome.stats["names_http"] == outcome.stats["bodies_lost"] == 1
        assert is_coarse(outcome)


@pytest.mark.parametrize("word", [b"NOTIFY", b"get", b"ET", b"X_1"])
def test_behind_bytes_that_nobody_read_a_request_needs_a_registered_method(word: bytes) -> None:
    """It may be the rest of a lost request. The next request is not read either: it may be the
    body."""
    other = request(RARE, word).replace(b"\r\n\r\n", b"\r\nContent-Length: 99\r\n\r\n")
    lost = web().say(ONE)
    lost.next[CLIENT] += 50
    cut = Tcp(ports=PORTS, next=[7_000, 500_001])
    for talk, found in ((web().say(b"\0\0"), 0), (lost, 1), (cut, 0)):
        outcome = among_three(talk.say(other).say(INSIDE), established=False)
        assert outcome.stats["names_http"] == found
        assert outcome.stats["suppressed_incomplete"] + outcome.stats["names_after_gaps"] == 1
        assert is_coarse(outcome)


def test_an_upgrade_ends_a_connection_s_requests_and_hides_none() -> None:
    upgrade = ONE.removesuffix(b"\r\n") + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    outcome = among_three(web().say(upgrade).say(b"\x81\x80abcd").say(b"\x82\x80abcd"))
    assert (outcome.stats["bodies_lost"], outcome.stats["names_after_gaps"]) == (0, 0)
    assert not is_coarse(outcome)
    posted = HEAD.replace(b"Content-Length", b"Upgrade: h2c\r\nContent-Length") + INSIDE
    talk = web().say(posted[:99]).say(posted[99:]).say(TWO)
    assert names(talk) == [RARE.decode(), SHARED.decode()]


@pytest.mark.parametrize(("method", "found"), [(b"GET", 2), (b"HEAD", 2), (b"POST", 1)])
def test_behind_a_head_that_the_capture_cuts_a_request_is_read_if_no_body_comes(
    method: bytes, found: int
) -> None:
    long = request(SHARED, method).removesuffix(b"\r\n") + b"Cookie: " + b"c" * 200 + b"\r\n\r\n"
    talk = web().say(long).say(TWO)
    talk.frames = [frame.cut(150) for frame in talk.frames]
    outcome = among_three(talk)
    assert outcome.stats["names_http"] == found
    assert is_coarse(outcome)


def test_a_wait_ends_far_ahead() -> None:
    """And reading goes on where what was stored begins a request."""
    gap = len(ONE) + 100
    many = b"".join(request(b"h%d.example" % n, b"OPTIONS") for n in range(600))
    parts = [(gap + at, many[at : at + 1400]) for at in range(0, len(many), 1400)]
    outcome = run(placed(web().say(ONE), *parts).frames, z=1)
    assert len(outcome.observations) == 32  # as many as one flow may expose
    assert outcome.stats["names_after_gaps"] == 1
    assert outcome.observations[1]["t_ns"] < START + SECOND
