# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Which question of DNS votes, and when: the answer that matches is its evidence."""

import pytest
from support import wire
from support.engine import ALL, NO, OWN, Outcome, after_another_user, run
from support.packets import (
    HOUR,
    MS,
    SECOND,
    SERVER,
    SERVER_ADDRESS,
    START,
    Frame,
    Tcp,
    Udp,
    crowd,
    dns,
    hello,
    merged,
    user,
    visit,
)

NAME = wire.HOST


def test_an_answer_is_no_question() -> None:
    for established in (True, False):
        talk = Udp().send(dns(b"other.example")).send(dns(NAME), SERVER)
        outcome = after_another_user(
            talk.send(dns(NAME, response=True), SERVER), established=established
        )
        assert not outcome.seen()


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
    outcome = after_another_user(talk)
    assert not outcome.seen()
    assert outcome.last_status == "unconfirmed"
    assert NAME not in outcome.everything()
    talk = Udp().send(dns(NAME)).send(ANSWERS[what], SERVER).send(dns(NAME, response=True), SERVER)
    assert after_another_user(talk).seen() == {(START + 2 * MS, NAME.decode(), "dns"): 1}


@pytest.mark.parametrize("ends", [("10.7.0.2", 40000), ("10.7.0.1", 40001)])
def test_an_answer_to_somebody_else_is_no_evidence(ends: tuple[str, int]) -> None:
    talk = Udp().send(dns(NAME))
    other = Udp(ends[0], ports=(ends[1], 53), t_ns=talk.t_ns)
    talk.frames += other.send(dns(NAME, response=True), SERVER).frames
    outcome = after_another_user(talk)
    assert not outcome.seen()
    assert outcome.stats["suppressed_unconfirmed"] == 1


@pytest.mark.parametrize("ports", [(32795, 53), (53, 53)])
@pytest.mark.parametrize("client", ["10.7.0.1", "198.51.100.1"])
def test_who_asks_behind_an_answer_is_the_client(ports: tuple[int, int], client: str) -> None:
    """A flow that was joined between a question and its answer."""
    talk = Udp(client, ports=ports).send(dns(b"www.example.com", response=True), SERVER)
    talk.send(dns(NAME)).send(dns(NAME, response=True), SERVER)
    outcome = after_another_user(talk, keep_client_port=True)
    assert outcome.seen() == {(START + 2 * MS, NAME.decode(), "dns"): 1}
    (record,) = (flow for flow in outcome.flows if flow["proto"] == 17)
    assert (record["client_port"], record["s_pkts"]) == (ports[0], 2)
    assert record["client"] == outcome.observations[-1]["client"] not in ("-", "0.0.0.0", "::")
    talk = Udp(client, ports=ports).lookup(b"www.example.com")
    talk.send(dns(NAME), SERVER).send(dns(NAME, response=True))
    assert not after_another_user(talk).seen()


def test_an_answer_in_other_case_is_the_same_name() -> None:
    """Resolvers mix the case of questions (0x20) and forwarders change it."""
    talk = Udp().send(dns(b"wWw.eXample.ORG")).send(dns(NAME.upper(), response=True), SERVER)
    assert after_another_user(talk).released() == {NAME.decode()}


def test_an_answer_counts_once() -> None:
    talk = Udp().lookup(NAME).send(dns(NAME, response=True), SERVER)
    assert after_another_user(talk).seen().total() == 1


SECOND_QUESTIONS = {  # and whether it is about another name
    "the same name": (b"\xc0\x0c\0\x1c\0\1", False),
    "another name": (b"\4rare\7example\0\0\1\0\1", True),
    "a part of the name": (b"\xc0\x10\0\1\0\1", True),
    "nothing": (b"", True),
}


@pytest.mark.parametrize("what", SECOND_QUESTIONS)
def test_a_query_that_asks_for_more_hides_something(what: str) -> None:
    """What is behind the first question is not read, and may be what nobody else has."""
    second, hides = SECOND_QUESTIONS[what]
    query = dns(NAME)
    query = query[:4] + b"\0\2" + query[6:] + second
    outcome = after_another_user(Udp().send(query).send(dns(NAME, response=True), SERVER))
    assert outcome.released() == {NAME.decode()}
    assert (outcome.flows[-1]["c_bytes"] != len(query)) is hides
    assert outcome.stats["suppressed_invalid"] == hides
    assert outcome.stats["names_dns"] == 1 + hides


# ---- which records it votes for ------------------------------------------------------------------

VOTES = {"own": OWN, "all": ALL, "no": NO}
RARE = b"rare.example"
Z = 20


def questions(number: int, name: bytes = RARE, t_ns: int = START) -> list[Frame]:
    """Answered questions of so many sources, which one host may have forged."""
    talks = (Udp(user(n), t_ns=t_ns + n * MS, ports=(30000 + n, 53)) for n in range(number))
    return merged(talk.lookup(name).frames for talk in talks)


def by_source(outcome: Outcome) -> dict[str, int]:
    """Released names by their sources; those of the records are the same."""
    found: dict[str, int] = {}
    for seen in outcome.observations:
        found[seen["name_source"]] = found.get(seen["name_source"], 0) + 1
    told = [flow["name_source"] for flow in outcome.flows if flow["name"] is not None]
    assert sorted(told) == sorted(one["name_source"] for one in outcome.observations)
    return found


@pytest.mark.parametrize("votes", VOTES)
@pytest.mark.parametrize("sources", [Z - 1, Z])
def test_forged_questions_release_no_visit(votes: str, sources: int) -> None:
    frames = [*questions(sources), *visit(user(99), RARE, START + SECOND)]
    outcome = run(frames, z=Z, dns_votes=VOTES[votes])
    asked = sources - Z + 1  # questions of enough sources
    expected = {"own": {"dns": asked}, "all": {"dns": asked, "tls": 1}, "no": {}}[votes]
    assert by_source(outcome) == {source: n for source, n in expected.items() if n}
    assert outcome.stats["released"] == sum(expected.values()) * (votes == "all")
    assert outcome.stats["dns_observations"] == sources * (votes != "all")
    assert outcome.stats["dns_released"] == asked * (votes == "own")
    (visited,) = (flow for flow in outcome.flows if flow["proto"] == 6)
    assert visited["name_status"] == ("released" if votes == "all" else "suppressed")
    if not expected:
        assert RARE not in outcome.everything()


@pytest.mark.parametrize("votes", VOTES)
def test_visits_release_questions_only_where_dns_does_not_count_apart(votes: str) -> None:
    visits = [visit(user(n), RARE, START + n * MS) for n in range(3)]
    frames = [*merged(visits), *Udp(user(99), t_ns=START + SECOND).lookup(RARE).frames]
    found = by_source(run(frames, z=3, dns_votes=VOTES[votes]))
    assert found == ({"tls": 1} if votes == "own" else {"tls": 1, "dns": 1})


def test_a_question_that_casts_no_vote_is_not_counted() -> None:
    """Neither for those that come later, nor for its own user."""
    asked = Udp(user(1), t_ns=START).lookup(RARE).frames
    visits = [visit(user(n), RARE, START + n * SECOND) for n in (2, 3)]
    later = Udp(user(1), ports=(40001, 53), t_ns=START + 9 * SECOND).lookup(RARE).frames
    assert not run([*asked, *visits[0]], z=2, dns_votes=NO).seen()
    assert not run([*visits[0], *later], z=2, dns_votes=NO).seen()
    outcome = run([*asked, *merged(visits), *later], z=2, dns_votes=NO)
    assert by_source(outcome) == {"tls": 1, "dns": 1}
    assert (outcome.stats["dns_observations"], outcome.stats["dns_released"]) == (2, 1)
    stale = Udp(user(1), t_ns=START + 2 * SECOND + HOUR + 10 * MS).lookup(RARE).frames
    assert by_source(run([*merged(visits), *stale], z=2, dns_votes=NO)) == {"tls": 1}


@pytest.mark.parametrize("established", [True, False])
def test_dns_votes_no_keeps_questions_out(established: bool) -> None:
    talk = Udp().lookup(NAME)
    outcome = after_another_user(talk, dns_votes=NO, established=established)
    assert not outcome.seen()
    assert outcome.last_status == "suppressed"
    assert outcome.stats["dns_suppressed"] == 1
    assert outcome.stats["observations"] == 1
    z_1 = run(talk.frames, z=1, dns_votes=NO, established=established)
    assert not z_1.seen()


def test_questions_over_tcp_count_apart_too() -> None:
    talks = [
        Tcp(user(n), ports=(40000 + n, 53), t_ns=START + n * SECOND)
        .handshake()
        .say(len(dns(NAME)).to_bytes(2) + dns(NAME))
        .close()
        .frames
        for n in range(2)
    ]
    for votes, apart in ((OWN, True), (ALL, False)):
        outcome = run(merged(talks), z=2, dns_votes=votes)
        assert by_source(outcome) == {"dns": 1}
        assert outcome.stats["dns_observations"] == 2 * apart
        assert outcome.stats["observations"] == 2 * (not apart)


def servers(frames: list[Frame], votes: str) -> dict[str, list[str | None]]:
    """The servers' addresses in the records, by protocol."""
    found: dict[str, list[str | None]] = {"tls": [], "dns": []}
    for flow in run(frames, z=3, dns_votes=VOTES[votes]).flows:
        found[flow["name_source"]].append(flow["server"])
    return found


@pytest.mark.parametrize("votes", VOTES)
@pytest.mark.parametrize("port", [443, 53])
def test_who_asks_a_server_tells_it_to_no_other_record(votes: str, port: int) -> None:
    """Its address is not that of a server of so many users, if they asked it, or were said to."""
    elsewhere = crowd(NAME, 3, server="198.51.100.77")  # the name is shared
    talk = Tcp(user(50), SERVER_ADDRESS, (40000, port), START + 9 * SECOND).handshake()
    asked = questions(5, NAME, START + SECOND)
    frames = merged([elsewhere, asked, talk.say(hello(NAME)).close().frames])
    found = servers(frames, votes)
    assert found["tls"][-1] == (SERVER_ADDRESS if votes == "all" else None)
    if votes != "all":
        assert found["dns"].count(None) == (2 if votes == "own" else 5)


@pytest.mark.parametrize("votes", VOTES)
def test_who_visits_a_server_tells_it_to_dns_unless_that_counts_apart(votes: str) -> None:
    visits = crowd(NAME, 3, server=SERVER_ADDRESS)
    late = START + 10 * SECOND
    asked = [
        Udp(user(50 + n), server, t_ns=late + n * SECOND).lookup(NAME).frames
        for n, server in enumerate(("203.0.113.1", "203.0.113.2", SERVER_ADDRESS))
    ]
    outcome = run([*visits, *merged(asked)], z=3, dns_votes=VOTES[votes])
    assert by_source(outcome)["dns"] == (1 if votes == "own" else 3)
    shown = {flow["server"] for flow in outcome.flows if flow["name_source"] == "dns"}
    assert shown == ({None} if votes == "own" else {None, SERVER_ADDRESS})


REFUSED = {  # and the counter that says why
    "no hostnames": (b"www.exam ple.org", "suppressed_invalid"),
    "names of homes": (b"%d.2.0.192.in-addr.arpa", "suppressed_home_name"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_names_leave_room_for_others(what: str) -> None:
    """A resolver asks from one port for long, and much of what it asks is never released."""
    refused, counter = REFUSED[what]
    talk = Udp()
    for n in range(100):
        talk.lookup(refused % n if b"%" in refused else refused)
    outcome = after_another_user(talk.lookup(NAME))
    assert outcome.released() == {NAME.decode()}
    assert (outcome.stats[counter], outcome.stats["names_full"]) == (100, 0)
    assert outcome.flows[-1]["c_bytes"] != 100 * len(dns(refused)) + len(dns(NAME))


def test_repeated_questions_leave_room_for_other_names() -> None:
    """No answer comes, and each question has an ID of its own."""
    talk = Udp()
    for n in range(40):
        talk.send(dns(NAME, ident=n))
    outcome = run(talk.frames, z=1, dns_votes=ALL)
    assert outcome.stats["names_full"] == outcome.stats["suppressed_capacity"] == 0
    assert outcome.stats["suppressed_unconfirmed"] + outcome.stats["names_repeated"] == 40
    assert outcome.flow["name_status"] == "unconfirmed"
    hosts = [b"h%d.example" % n for n in range(31)]
    for host in hosts:
        talk.lookup(host)
    talk.send(dns(NAME, ident=0, response=True), SERVER)
    outcome = run(talk.frames, z=1, dns_votes=ALL)
    assert outcome.released() == {host.decode() for host in [NAME, *hosts]}
    assert outcome.stats["names_full"] == 0
    outcome = run(talk.lookup(b"one-more.example").frames, z=1, dns_votes=ALL)
    assert outcome.stats["names_full"] == outcome.stats["suppressed_capacity"] == 1


def test_the_last_of_many_questions_is_answered() -> None:
    talk = Udp()
    for n in range(40):
        talk.send(dns(NAME, ident=n))
    talk.send(dns(NAME, ident=39, response=True), SERVER)
    assert run(talk.frames, z=1, dns_votes=ALL).released() == {NAME.decode()}
