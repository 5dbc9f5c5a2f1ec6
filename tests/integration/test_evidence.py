# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Who may vote, when a vote counts, and how often: the whole engine on hand-made segments."""

import ipaddress

import pytest
from support import wire
from support.engine import ANYWHERE, after_another_user, nets, run
from support.examples import each
from support.packets import (
    ACK,
    CLIENT,
    DAY,
    FIN,
    HOUR,
    MINUTE,
    MS,
    PSH,
    RST,
    SECOND,
    SERVER,
    START,
    SYN,
    Frame,
    Tcp,
    Udp,
    dns,
    hello,
    merged,
    request,
    user,
    visit,
)

NAME = wire.HOST
HELLO = hello(NAME)
YEAR = 365 * DAY


# ---- TCP ----------------------------------------------------------------------------------------


def test_a_handshake_is_evidence() -> None:
    talk = Tcp().handshake().say(HELLO)
    outcome = after_another_user(talk)
    assert outcome.seen() == {(START + 3 * MS, NAME.decode(), "tls"): 1}
    assert outcome.last_status == "released"


def test_the_hello_may_carry_the_acknowledgement() -> None:
    """The pure ACK of the handshake can be lost on the way to the monitor."""
    talk = Tcp().segment(CLIENT, SYN).segment(SERVER, SYN | ACK).segment(CLIENT, PSH | ACK, HELLO)
    assert after_another_user(talk).seen() == {(START + 2 * MS, NAME.decode(), "tls"): 1}


def test_a_repeated_syn_is_the_same_handshake() -> None:
    talk = Tcp().segment(CLIENT, SYN, seq=1000).wait(SECOND).handshake().say(HELLO)
    assert after_another_user(talk).released()


def test_a_name_before_its_evidence_counts_when_the_evidence_comes() -> None:
    """Fast open: the hello travels with the SYN, the client is proven two packets later."""
    talk = Tcp().segment(CLIENT, SYN, HELLO).segment(SERVER, SYN | ACK, ack=1001)
    talk.wait(5 * SECOND).segment(CLIENT, ACK)
    outcome = after_another_user(talk)
    assert outcome.seen() == {(talk.frames[-1].t_ns, NAME.decode(), "tls"): 1}


def test_a_name_whose_evidence_comes_after_the_window_stands_alone() -> None:
    talk = Tcp().segment(CLIENT, SYN, HELLO).segment(SERVER, SYN | ACK, ack=1001)
    talk.wait(2 * MINUTE).segment(CLIENT, ACK)
    outcome = after_another_user(talk, window_ns=MINUTE)
    assert not outcome.seen()
    assert outcome.last_status == "suppressed"


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
    "the client refuses what it acknowledges": Tcp()
    .segment(CLIENT, SYN, HELLO)
    .segment(SERVER, SYN | ACK, ack=1001)
    .segment(CLIENT, RST | ACK),
}


@pytest.mark.parametrize("what", UNPROVEN)
def test_without_the_handshake_a_name_is_unconfirmed(what: str) -> None:
    outcome = after_another_user(UNPROVEN[what])
    assert not outcome.seen()
    assert outcome.last_status == "unconfirmed"
    assert outcome.stats["suppressed_unconfirmed"] == 1
    assert NAME not in outcome.everything()


@pytest.mark.parametrize("what", UNPROVEN)
def test_evidence_any_counts_a_name_when_seen(what: str) -> None:
    talk = UNPROVEN[what]
    outcome = after_another_user(talk, established=False)
    (at,) = (frame.t_ns for frame in talk.frames if HELLO in frame.data)
    assert outcome.seen() == {(at, NAME.decode(), "tls"): 1}


def test_a_flow_that_ends_before_its_evidence_is_unconfirmed() -> None:
    for last in (RST, RST | ACK):
        talk = Tcp().segment(CLIENT, SYN, HELLO).segment(SERVER, last)
        outcome = after_another_user(talk.segment(CLIENT, ACK, seq=2000, ack=SERVER_ISN + 1))
        assert not outcome.seen()
    finished = Tcp().segment(CLIENT, SYN, HELLO).segment(SERVER, FIN | ACK).segment(CLIENT, FIN)
    assert not after_another_user(finished).seen()


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
    same_numbers = [1000, 1000]  # so that its bytes are where the client's would be
    talk = Tcp(next=same_numbers).handshake().say(HELLO, SERVER).say(request(NAME), SERVER)
    for established in (True, False):
        outcome = after_another_user(talk, established=established)
        assert not outcome.seen()
        assert outcome.last_status == "none"


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


@each("what", ONE_VOTE)
@each("established", [True, False])
def test_a_flow_exposes_a_name_once(what: str, established: bool) -> None:
    outcome = after_another_user(ONE_VOTE[what], established=established)
    assert outcome.seen().total() == 1
    assert outcome.stats["observations"] == 2
    assert outcome.last_status == "released"
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
    next_64 = merged([home("2001:db8:0:1", 1), home("2001:db8:0:2", 1)])
    assert run(next_64, z=2).users == 1
    assert not run(next_64, z=2).seen()
    assert run(next_64, z=2, user_prefix=(32, 64)).released() == {NAME.decode()}
    next_56 = merged([home("2001:db8:0:1", 1), home("2001:db8:0:101", 1)])
    assert run(next_56, z=2).released() == {NAME.decode()}
    assert not run(next_56, z=2, user_prefix=(32, 48)).seen()
    assert run(home("2001:db8:0:1", 1), z=29, user_prefix=(32, 128)).seen().total() == 1


@each(
    "client, server, bit",
    [
        *(("10.7.1.1", "198.51.100.7", bit) for bit in (8, 9, 15, 20, 23, 30, 31)),
        *(("fd00:7::1:1", "2001:db8:ff::1", bit) for bit in (8, 9, 31, 60, 63, 64, 101, 127)),
    ],
)
def test_a_user_is_a_prefix_of_any_length(client: str, server: str, bit: int) -> None:
    """Two clients that differ in one bit are two users where the prefix has it, else one."""
    address = ipaddress.ip_address(client)
    other = type(address)(int(address) ^ 1 << address.max_prefixlen - 1 - bit)
    both = [
        *visit(client, NAME, START, server),
        *visit(str(other), NAME, START + SECOND, server),
    ]
    for bits, users in ((bit, 1), (bit + 1, 2)):
        outcome = run(both, z=2, user_prefix=(bits, 64) if address.version == 4 else (32, bits))
        assert outcome.users == users
        assert outcome.released() == ({NAME.decode()} if users == 2 else set())


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


def test_users_behind_one_address_are_one_user() -> None:
    """A NAT in front of the monitor hides users, so less is released."""
    shared = [visit(user(1), NAME, START + i * SECOND) for i in range(20)]
    assert not run(merged(shared), z=2).seen()
    home = visit(user(2), NAME, START + MINUTE)
    assert run(merged([*shared, home]), z=3).users == 2
    assert not run(merged([*shared, home]), z=3).seen()


def test_a_person_is_a_user_for_each_address_of_a_nat() -> None:
    """A provider's NAT may give the connections of one person several addresses. Settings limit
    how many of them count if the addresses share a network."""

    def person(addresses: list[str]) -> list[Frame]:
        return merged([visit(one, NAME, START + i * SECOND) for i, one in enumerate(addresses)])

    pool = nets("203.0.113.0/24", "198.18.0.0/15")
    near = [f"203.0.113.{i}" for i in range(1, 6)]
    far = [f"198.18.{i}.1" for i in range(1, 6)]
    for addresses in (near, far):
        assert run(person(addresses), z=5, internal=pool).released() == {NAME.decode()}
    for settings in ({"user_prefix": (24, 56)}, {"max_per_prefix": (24, 48, 4)}):
        assert not run(person(near), z=5, internal=pool, **settings).seen()
        assert run(person(far), z=5, internal=pool, **settings).seen()
    assert not run(person(far), z=2, internal=pool, user_prefix=(16, 56)).seen()


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
