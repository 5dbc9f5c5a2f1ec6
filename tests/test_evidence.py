# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Who may vote, when a vote counts, and how often: the whole engine on hand-made segments."""

import random
from dataclasses import replace

import pytest
import wire
from engine_help import ANYWHERE, Outcome, nets, run
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle import ZOracle
from packet_help import (
    ACK,
    CLIENT,
    DAY,
    FIN,
    HOUR,
    MINUTE,
    MS,
    NAMED_AFTER_NS,
    PSH,
    RST,
    SECOND,
    SERVER,
    START,
    SYN,
    Frame,
    Tcp,
    Udp,
    crowd,
    dns,
    hello,
    merged,
    request,
    user,
    visit,
)

NAME = b"www.example.org"
HELLO = hello(NAME)
YEAR = 365 * DAY


def one_user(talk: Tcp | Udp, **settings: object) -> Outcome:
    """The talk after another user's visit: z = 2 releases NAME iff the talk votes for it."""
    before = visit(user(9999), NAME, talk.frames[0].t_ns - SECOND)
    return run([*before, *talk.frames], z=2, **settings)


def status(outcome: Outcome) -> str:
    return str(outcome.flows[-1]["name_status"])


# ---- TCP ----------------------------------------------------------------------------------------


def test_a_handshake_is_evidence() -> None:
    talk = Tcp().handshake().say(HELLO)
    outcome = one_user(talk)
    assert outcome.seen() == {(START + 3 * MS, NAME.decode(), "tls"): 1}
    assert status(outcome) == "released"


def test_the_hello_may_carry_the_acknowledgement() -> None:
    """The pure ACK of the handshake can be lost on the way to the monitor."""
    talk = Tcp().segment(CLIENT, SYN).segment(SERVER, SYN | ACK).segment(CLIENT, PSH | ACK, HELLO)
    assert one_user(talk).seen() == {(START + 2 * MS, NAME.decode(), "tls"): 1}


def test_a_repeated_syn_is_the_same_handshake() -> None:
    talk = Tcp().segment(CLIENT, SYN, seq=1000).wait(SECOND).handshake().say(HELLO)
    assert one_user(talk).released()


def test_a_name_before_its_evidence_counts_when_the_evidence_comes() -> None:
    """Fast open: the hello travels with the SYN, the client is proven two packets later."""
    talk = Tcp().segment(CLIENT, SYN, HELLO).segment(SERVER, SYN | ACK, ack=1001)
    talk.wait(5 * SECOND).segment(CLIENT, ACK)
    outcome = one_user(talk)
    assert outcome.seen() == {(talk.frames[-1].t_ns, NAME.decode(), "tls"): 1}


def test_a_name_whose_evidence_comes_after_the_window_stands_alone() -> None:
    talk = Tcp().segment(CLIENT, SYN, HELLO).segment(SERVER, SYN | ACK, ack=1001)
    talk.wait(2 * MINUTE).segment(CLIENT, ACK)
    outcome = one_user(talk, window_ns=MINUTE)
    assert not outcome.seen()
    assert status(outcome) == "suppressed"


SERVER_ISN = 500_000
UNPROVEN = {
    "no answer": Tcp().segment(CLIENT, SYN).segment(CLIENT, PSH | ACK, HELLO, ack=1),
    "no acknowledgement": Tcp()
    .segment(CLIENT, SYN)
    .segment(SERVER, SYN | ACK)
    .segment(CLIENT, PSH, HELLO),
    "acknowledges one too little": Tcp()
    .segment(CLIENT, SYN)
    .segment(SERVER, SYN | ACK)
    .segment(CLIENT, PSH | ACK, HELLO, ack=SERVER_ISN),
    "acknowledges one too much": Tcp()
    .segment(CLIENT, SYN)
    .segment(SERVER, SYN | ACK)
    .segment(CLIENT, PSH | ACK, HELLO, ack=SERVER_ISN + 2),
    "acknowledges before the server spoke": Tcp()
    .segment(CLIENT, SYN)
    .segment(CLIENT, PSH | ACK, HELLO, ack=SERVER_ISN + 1)
    .segment(SERVER, SYN | ACK),
    "the server acknowledges another SYN": Tcp()
    .segment(CLIENT, SYN)
    .segment(SERVER, SYN | ACK, ack=1002)
    .segment(CLIENT, PSH | ACK, HELLO),
    "the server's SYN acknowledges nothing": Tcp()
    .segment(CLIENT, SYN)
    .segment(SERVER, SYN)
    .segment(CLIENT, PSH | ACK, HELLO),
    "the server sends data and no SYN": Tcp()
    .segment(CLIENT, SYN)
    .segment(SERVER, ACK, b"x")
    .segment(CLIENT, PSH | ACK, HELLO),
    "the client's SYN was not seen": Tcp().segment(CLIENT, PSH | ACK, HELLO),
    "only the server's half of the handshake": Tcp()
    .segment(SERVER, SYN | ACK)
    .segment(CLIENT, ACK)
    .segment(CLIENT, PSH | ACK, HELLO),
    "the client says it knows nothing of it": Tcp()
    .segment(CLIENT, SYN, HELLO)
    .segment(SERVER, SYN | ACK, ack=1001)
    .segment(CLIENT, RST),
}


@pytest.mark.parametrize("what", UNPROVEN)
def test_without_the_handshake_a_name_is_unconfirmed(what: str) -> None:
    outcome = one_user(UNPROVEN[what])
    assert not outcome.seen()
    assert status(outcome) == "unconfirmed"
    assert outcome.stats["suppressed_unconfirmed"] == 1
    assert NAME not in outcome.everything()


@pytest.mark.parametrize("what", UNPROVEN)
def test_evidence_any_counts_a_name_when_seen(what: str) -> None:
    talk = UNPROVEN[what]
    outcome = one_user(talk, established=False)
    (at,) = (frame.t_ns for frame in talk.frames if HELLO in frame.data)
    assert outcome.seen() == {(at, NAME.decode(), "tls"): 1}


def test_half_open_clients_never_release_a_name() -> None:
    """z - 1 spoofed sources, each with a SYN, an answered one, or a guessed acknowledgement."""
    z = 12
    spoofed = []
    for i in range(3 * z):
        talk = Tcp(user(i), t_ns=START + i * 10 * MS).segment(CLIENT, SYN)
        if i % 3:
            talk.segment(SERVER, SYN | ACK)
        guess = SERVER_ISN if i % 3 == 2 else 12345
        talk.segment(CLIENT, ACK, ack=guess).segment(CLIENT, PSH | ACK, HELLO, ack=guess)
        spoofed.append(talk.frames)
    victim = visit(user(5000), NAME, START + SECOND)
    outcome = run([*merged(spoofed), *victim], z=z)
    assert not outcome.seen()
    assert NAME not in outcome.everything()
    assert outcome.stats["suppressed_unconfirmed"] == 3 * z
    assert run([*merged(spoofed), *victim], z=z, established=False).released() == {NAME.decode()}


def test_a_server_never_votes() -> None:
    """A hello and a request from the side that was connected to are no exposure of anybody."""
    talk = Tcp().handshake().say(HELLO, SERVER).say(request(NAME), SERVER)
    for established in (True, False):
        outcome = one_user(talk, established=established)
        assert not outcome.seen()
        assert status(outcome) == "none"


def test_an_answer_is_no_question() -> None:
    for established in (True, False):
        talk = Udp().send(dns(b"other.example")).send(dns(NAME), SERVER)
        outcome = one_user(talk.send(dns(NAME, response=True), SERVER), established=established)
        assert not outcome.seen()


# ---- DNS ----------------------------------------------------------------------------------------

ANSWERS = {
    "another id": dns(NAME, ident=8, response=True),
    "another name": dns(b"www.example.com", response=True),
    "a longer name": dns(b"a." + NAME, response=True),
    "another type": dns(NAME, kind=28, response=True),
    "a question again": dns(NAME),
    "nothing that parses": b"\0\7\x81\x80",
}


@pytest.mark.parametrize("what", ANSWERS)
def test_only_the_matching_answer_is_evidence(what: str) -> None:
    talk = Udp().send(dns(NAME)).send(ANSWERS[what], SERVER)
    outcome = one_user(talk)
    assert not outcome.seen()
    assert status(outcome) == "unconfirmed"
    assert NAME not in outcome.everything()
    talk = Udp().send(dns(NAME)).send(ANSWERS[what], SERVER).send(dns(NAME, response=True), SERVER)
    assert one_user(talk).seen() == {(START + 2 * MS, NAME.decode(), "dns"): 1}


@pytest.mark.parametrize("ends", [("10.7.0.2", 40000), ("10.7.0.1", 40001)])
def test_an_answer_to_somebody_else_is_no_evidence(ends: tuple[str, int]) -> None:
    talk = Udp().send(dns(NAME))
    other = Udp(ends[0], ports=(ends[1], 53), t_ns=talk.t_ns)
    talk.frames += other.send(dns(NAME, response=True), SERVER).frames
    outcome = one_user(talk)
    assert not outcome.seen()
    assert outcome.stats["suppressed_unconfirmed"] == 1


def test_an_answer_in_other_case_is_the_same_name() -> None:
    """Resolvers mix the case of questions (0x20) and forwarders change it."""
    talk = Udp().send(dns(b"wWw.eXample.ORG")).send(dns(NAME.upper(), response=True), SERVER)
    assert one_user(talk).released() == {NAME.decode()}


def test_an_answer_counts_once() -> None:
    talk = Udp().lookup(NAME).send(dns(NAME, response=True), SERVER)
    assert one_user(talk).seen().total() == 1


def test_dns_votes_no_keeps_questions_out() -> None:
    talk = Udp().lookup(NAME)
    for established in (True, False):
        outcome = one_user(talk, dns_votes=False, established=established)
        assert not outcome.seen()
        assert status(outcome) == "suppressed"
        assert outcome.stats["suppressed_dns_votes"] == 1
    z_1 = run(talk.frames, z=1, dns_votes=False)
    assert not z_1.seen()


# ---- one vote -----------------------------------------------------------------------------------


def hello_twice(copy: bytes = HELLO) -> Tcp:
    """The same segment once more, as a retransmission."""
    talk = Tcp().handshake().segment(CLIENT, PSH | ACK, HELLO)
    return talk.segment(CLIENT, PSH | ACK, copy, seq=1001).segment(SERVER, ACK)


ONE_VOTE = {
    "retransmitted": hello_twice(),
    "retransmitted in halves": hello_twice(HELLO[:40]).segment(
        CLIENT, PSH | ACK, HELLO[40:], seq=1041
    ),
    "a second hello": Tcp().handshake().say(HELLO).say(HELLO),
    "before and after the evidence": Tcp()
    .segment(CLIENT, SYN, HELLO)
    .segment(CLIENT, PSH | ACK, HELLO, seq=1001)
    .segment(SERVER, SYN | ACK, ack=1001)
    .segment(CLIENT, ACK)
    .segment(CLIENT, PSH | ACK, HELLO, seq=1001),
    "requests": Tcp().handshake().say(request(NAME)).say(request(NAME.upper() + b":80")),
    "pipelined requests": Tcp().handshake().say(request(NAME) * 5),
    "two questions": Udp().lookup(NAME).lookup(NAME, kind=28, ident=8),
    "a question asked again": Udp().send(dns(NAME)).lookup(NAME),
}


@pytest.mark.parametrize("what", ONE_VOTE)
@pytest.mark.parametrize("established", [True, False])
def test_a_flow_exposes_a_name_once(what: str, established: bool) -> None:
    outcome = one_user(ONE_VOTE[what], established=established)
    assert outcome.seen().total() == 1
    assert outcome.stats["observations"] == 2
    assert status(outcome) == "released"
    assert not run(ONE_VOTE[what].frames, z=2, established=established).seen()


def test_a_user_is_one_however_many_flows_it_has() -> None:
    visits = [visit(user(1), NAME, START + i * SECOND) for i in range(40)]
    assert not run(merged(visits), z=2).seen()
    assert run(merged(visits), z=1).seen().total() == 40


def test_addresses_of_one_ipv6_home_are_one_user() -> None:
    def home(prefix: str, n: int) -> list[Frame]:
        addresses = [f"{prefix}:{n:x}:1:2:{i:x}" for i in range(1, 30)]
        talks = (
            visit(a, NAME, START + i * SECOND, "2001:db8:ff::1") for i, a in enumerate(addresses)
        )
        return merged(talks)

    outcome = run(home("2001:db8:0:1", 1), z=2)
    assert not outcome.seen()
    assert outcome.users == 1
    both = merged([home("2001:db8:0:1", 1), home("2001:db8:0:2", 1)])
    assert run(both, z=2).released() == {NAME.decode()}
    assert not run(both, z=2, user_prefix=(32, 56)).seen()
    assert run(home("2001:db8:0:1", 1), z=29, user_prefix=(32, 128)).seen().total() == 1


def test_special_addresses_are_one_user() -> None:
    special = ["0.0.0.0", "127.0.0.1", "169.254.3.4", "224.0.0.9", "255.255.255.255"]
    special6 = ["::", "::1", "fe80::1:2", "ff02::5"]
    talks = [visit(a, NAME, START + i * SECOND) for i, a in enumerate(special)]
    talks += [visit(a, NAME, START + i * SECOND, "2001:db8::7") for i, a in enumerate(special6)]
    for internal in (None, ANYWHERE):
        assert not run(merged(talks), z=2, internal=internal).seen()
        again = visit(user(1), NAME, START + MINUTE)
        outcome = run([*merged(talks), *again], z=2, internal=internal)
        assert outcome.seen().total() == 1


def test_one_user_in_two_epochs_is_one_user() -> None:
    """The count must not follow the pseudonym."""
    visits = [visit(user(1), NAME, START + i * MINUTE) for i in range(12)]
    outcome = run(merged(visits), z=2, window_ns=HOUR, rotate_ns=2 * MINUTE)
    assert not outcome.seen()
    assert len({flow["client"] for flow in outcome.flows}) == 6
    assert outcome.users == 1


# ---- whose vote ---------------------------------------------------------------------------------


def test_with_networks_given_only_their_hosts_vote() -> None:
    inside = nets("10.7.0.0/16")
    strangers = [visit(f"203.0.113.{i}", NAME, START + i * SECOND) for i in range(9)]
    outcome = run(merged(strangers), z=2, internal=inside)
    assert not outcome.seen()
    assert outcome.stats["flows_external"] == 9
    assert not outcome.flows
    assert run(merged(strangers), z=9).seen().total() == 1


@pytest.mark.parametrize("internal", [None, nets("10.0.0.0/8")])
def test_a_stranger_does_not_vote_through_the_servers_it_visits(internal: object) -> None:
    """Else one host of the Internet could release any name with z connections to users' routers."""
    z = 5
    inbound = [visit("203.0.113.9", NAME, START + i * SECOND, user(i)) for i in range(2 * z)]
    victim = visit(user(77), NAME, START + MINUTE)
    outcome = run(merged([*inbound, victim]), z=z, internal=internal)
    assert not outcome.seen()
    assert NAME not in outcome.everything()
    assert outcome.stats["suppressed_outside"] == 2 * z
    assert outcome.stats["suppressed_below_z"] == 1


def test_between_two_internal_hosts_the_initiator_votes() -> None:
    talks = [visit(user(i), NAME, START + i * SECOND, "10.7.200.1") for i in range(2)]
    for internal in (None, ANYWHERE, nets("10.0.0.0/8")):
        assert run(merged(talks), z=2, internal=internal).seen().total() == 1
        assert not run(merged(talks), z=3, internal=internal).seen()


# ---- pieces that do not fit ---------------------------------------------------------------------


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
    outcome = one_user(talk)
    assert not outcome.seen()
    assert NAME not in outcome.everything()
    assert b"www.example.net" not in outcome.everything()
    assert status(outcome) == "suppressed"
    assert outcome.stats["suppressed_conflict"] == 1


@pytest.mark.parametrize("seed", range(12))
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
    assert one_user(talk).released() == {NAME.decode()}
    missing = Tcp().handshake()
    for start, end in bounds[1:]:
        missing.segment(CLIENT, ACK, long_hello[start:end], seq=1001 + start)
    outcome = one_user(missing)
    assert not outcome.seen()
    assert status(outcome) == "suppressed"
    assert outcome.stats["suppressed_incomplete"] == 1


def test_a_capture_cut_in_the_name_does_not_vote() -> None:
    talk = Tcp().handshake().say(HELLO)
    data = talk.frames[3].data
    end = data.index(NAME) + len(NAME)
    for length in range(data.index(HELLO), end):
        talk.frames[3] = Frame(talk.frames[3].t_ns, data, len(data)).cut(length)
        outcome = one_user(talk)
        assert not outcome.seen()
        assert NAME[:6] not in outcome.everything()
    talk.frames[3] = Frame(talk.frames[3].t_ns, data, len(data)).cut(end)
    assert one_user(talk).released() == {NAME.decode()}


# ---- packets out of time ------------------------------------------------------------------------


def test_late_users_count_at_their_own_time() -> None:
    """Two users more than a window apart never meet, in whichever order they come."""
    window = MINUTE
    early, late = START + HOUR, START + HOUR + MINUTE
    pair = [visit(user(1), NAME, late), visit(user(2), NAME, early)]
    assert run([*pair[0], *pair[1]], batch=1, z=2, window_ns=window).seen().total() == 0
    pair[1] = visit(user(2), NAME, early + SECOND)
    assert run([*pair[1], *pair[0]], batch=1, z=2, window_ns=window).seen().total() == 1


def test_a_packet_too_late_is_not_counted() -> None:
    newest = visit(user(1), b"other.example", START + HOUR)
    pair = [*visit(user(2), NAME, START), *visit(user(3), NAME, START + SECOND)]
    outcome = run([*newest, *pair], batch=1, z=2, window_ns=MINUTE)
    assert not outcome.seen()
    assert outcome.stats["suppressed_too_late"] == 2
    assert outcome.stats["clock_refused"] == len(pair)


def test_one_packet_from_the_future_costs_little() -> None:
    """The clock is set back after 256 refused packets in a row, and names flow again."""
    host, count = b"busy.example", 700
    stray = visit(user(9999), host, START + 100 * YEAR)
    normal = crowd(host, count)
    for batch in (1, 32, 1 << 14):
        outcome = run([*crowd(host, 5, START - SECOND), *stray, *normal], z=5, batch=batch)
        assert outcome.stats["clock_jumps"] >= 1
        seen = [o["t_ns"] for o in outcome.observations if o["t_ns"] < START + YEAR]
        assert len(seen) > count // 3
        last = START + 20 * (count - 1) * MS + NAMED_AFTER_NS
        assert max(seen) == last


def test_a_lone_packet_from_the_future_shows_nothing_it_should_not() -> None:
    """A year ahead by mistake: nobody of before is a user of then."""
    frames = [*crowd(NAME, 4), *visit(user(99), NAME, START + YEAR)]
    outcome = run(frames, z=5)
    assert not outcome.seen()


USERS, HOSTS = 4, (b"a.example", b"b.example")
TIMES = st.one_of(
    st.integers(0, 20 * SECOND),
    st.integers(0, 90 * SECOND),
    st.sampled_from([0, MINUTE - 1, MINUTE, MINUTE + 1, HOUR, YEAR, 100 * YEAR]),
)
VISITS = st.lists(
    st.tuples(TIMES, st.integers(1, USERS), st.sampled_from(HOSTS), st.sampled_from("thd")),
    min_size=1,
    max_size=25,
)


def one_packet(at: int, n: int, t_ns: int, client: int, host: bytes, kind: str) -> Frame:
    """A frame that exposes a name all by itself, in a flow of its own."""
    ports = (20000 + n, 53 if kind == "d" else 443)
    if kind == "d":
        return Udp(user(client), ports=ports, t_ns=t_ns).send(dns(host)).frames[0]
    payload = hello(host) if kind == "t" else request(host)
    return Tcp(user(client), ports=ports, t_ns=t_ns).segment(CLIENT, PSH | ACK, payload).frames[0]


@settings(max_examples=150, deadline=None)
@given(visits=VISITS, z=st.integers(2, 4), batch=st.integers(1, 30))
@example(visits=[(0, 1, b"a.example", "t"), (100 * YEAR, 2, b"a.example", "t")], z=2, batch=1)
def test_no_order_of_time_releases_what_brute_force_suppresses(
    visits: list[tuple[int, int, bytes, str]], z: int, batch: int
) -> None:
    """Names of lone packets, so that every frame is an observation with its own timestamp.

    A batch is decided at its end, so all of it was received by then.
    """
    frames = [one_packet(0, n, START + v[0], *v[1:]) for n, v in enumerate(visits)]
    oracle = ZOracle(z, MINUTE)
    allowed: dict[tuple[int, str], int] = {}
    for at in range(0, len(visits), batch):
        part = visits[at : at + batch]
        for t_ns, client, host, _kind in part:
            oracle.observe(START + t_ns, client, host)
        for t_ns, _client, host, _kind in part:
            key = START + t_ns, host.decode()
            allowed[key] = allowed.get(key, 0) + (oracle.users(START + t_ns, host) >= z)
    outcome = run(frames, batch=batch, z=z, window_ns=MINUTE, established=False)
    for observation in outcome.observations:
        key = observation["t_ns"], observation["name"]
        assert allowed.get(key, 0) > 0
        allowed[key] -= 1
    in_order = [v[0] for v in visits] == sorted(v[0] for v in visits)
    if in_order and batch == 1:
        assert not any(allowed.values())


@settings(max_examples=100, deadline=None)
@given(data=st.data(), z=st.integers(2, 3))
def test_connections_with_wrong_times_never_release_too_much(data: st.DataObject, z: int) -> None:
    """Whole connections, interleaved at random, some frames with a time far off.

    A vote has the time of one of its client's frames, so brute force over those bounds the count.
    """
    starts = st.lists(st.integers(0, 90 * SECOND), min_size=2, max_size=8)
    exposures: dict[str, list[tuple[int, int]]] = {host.decode(): [] for host in HOSTS}
    talks = []
    for n, start in enumerate(data.draw(starts)):
        client, host = data.draw(st.integers(1, USERS)), data.draw(st.sampled_from(HOSTS))
        talk = Tcp(user(client), ports=(30000 + n, 443), t_ns=START + start).handshake()
        talk.say(hello(host)).close()
        wrong = data.draw(st.dictionaries(st.integers(0, 8), TIMES, max_size=2))
        for i, delta in wrong.items():
            if i < len(talk.frames):
                talk.frames[i] = replace(talk.frames[i], t_ns=START + delta)
        exposures[host.decode()] += [(frame.t_ns, client) for frame in talk.frames]
        talks.append(talk.frames)
    turns = data.draw(st.permutations([n for n, talk in enumerate(talks) for _ in talk]))
    waiting = [iter(talk) for talk in talks]
    outcome = run([next(waiting[n]) for n in turns], batch=1, z=z, window_ns=MINUTE)
    for observation in outcome.observations:
        until = observation["t_ns"]
        shown = exposures[observation["name"]]
        assert len({client for t, client in shown if until - MINUTE <= t <= until}) >= z


def test_a_flow_that_ends_before_its_evidence_is_unconfirmed() -> None:
    for last in (RST, RST | ACK):
        talk = Tcp().segment(CLIENT, SYN, HELLO).segment(SERVER, last)
        outcome = one_user(talk.segment(CLIENT, ACK, seq=2000, ack=SERVER_ISN + 1))
        assert not outcome.seen()
    finished = Tcp().segment(CLIENT, SYN, HELLO).segment(SERVER, FIN | ACK).segment(CLIENT, FIN)
    assert not one_user(finished).seen()
