# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Which question of DNS votes, and when: the answer that matches is its evidence."""

import pytest
from support import wire
from support.engine import after_another_user, run
from support.packets import MS, SERVER, START, Udp, dns

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


def test_dns_votes_no_keeps_questions_out() -> None:
    talk = Udp().lookup(NAME)
    for established in (True, False):
        outcome = after_another_user(talk, dns_votes=False, established=established)
        assert not outcome.seen()
        assert outcome.last_status == "suppressed"
        assert outcome.stats["suppressed_dns_votes"] == 1
    z_1 = run(talk.frames, z=1, dns_votes=False)
    assert not z_1.seen()


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
