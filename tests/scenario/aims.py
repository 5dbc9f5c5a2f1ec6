# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Traffic for the contract's model, aimed at cases that a random crowd seldom reaches.

Just as many users as z, or one less, share a secondary attribute or an answer of DNS; each aim has
the settings under which an error would show.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, cycle, islice

from hypothesis import strategies as st
from oracle.rules import Rules
from support.packets import MINUTE, SECOND, START

from scenario.answers import CERTIFICATES, FLIGHTS
from scenario.crowd import (
    CLIENTS,
    GROUPS,
    HOSTS,
    SECONDARY,
    SERVERS,
    SKEWS,
    TURNCOAT,
    Group,
    Scenario,
    ends_of,
    rules,
    scenarios,
)
from scenario.quic import AGENTS
from scenario.visits import HOW, Visit

Visits = st.SearchStrategy[list[Visit]]

SHOWING = Visit(0, ("", ""), "tls", HOSTS[:1], "no name", secondary=(CERTIFICATES[0], FLIGHTS[0]))
SILENT = replace(SHOWING, how="nameless")
GREETING = replace(SILENT, kind="quic", secondary=(AGENTS[2], ""))
GREETING_TWICE = replace(GREETING, how="unanswered first")
LASTING = replace(SILENT, pauses=(0, 5))
HIDING = replace(SILENT, how="ech")
LATER = [
    replace(SILENT, start_ns=START + n * SECOND, ends=(CLIENTS[0], SERVERS[0])) for n in (3, 5)
]
ASKING = replace(SILENT, kind="dns", how="whole", secondary=(SERVERS[0], ""))

NAMING = replace(SILENT, how="whole")

MANY = (*CLIENTS[3:0:-1], *CLIENTS[:4], *CLIENTS[:3], TURNCOAT)
USERS: Group = (MANY, SERVERS[:1])
STRANGERS = GROUPS[-1]  # clients from outside, who visit users' servers
RESOLVERS = (("10.9.8.7",), ("198.51.100.8",), (TURNCOAT,))
NOBODY = (("224.0.0.9",), ("169.254.3.4",))
OWN = (("198.51.100.8", "198.51.100.9", "203.0.113.9", "203.0.113.10"),)  # a resolver for each


@st.composite
def several(
    draw: st.DrawFn, chosen: Rules, start: st.SearchStrategy[int], group: Group, likely: Visit
) -> list[Visit]:
    """z users, or one less, make the likely visit at once; others may make another."""
    kind, first = likely.kind, draw(start)
    clients, servers = (cycle(dict.fromkeys(one)) for one in group)
    number = draw(st.sampled_from([chosen.z, chosen.z, chosen.z - 1]))
    some = islice(zip(clients, servers, strict=True), number)
    how = st.sampled_from([*[likely.how] * 2 * len(HOW[kind]), *HOW[kind]])
    another = st.builds(
        Visit,
        start,
        st.tuples(*map(st.sampled_from, group)),
        st.just(kind),
        st.sampled_from([HOSTS[:1]] * 5 + [HOSTS[3:4]]),
        how,
        pauses=st.sampled_from([likely.pauses, likely.pauses, (0, 0)]),
        secondary=st.one_of(*[st.just(likely.secondary)] * 3, SECONDARY[kind]),
    )
    alike = [replace(likely, start_ns=first, ends=ends) for ends in some]
    return alike + draw(st.lists(another, min_size=1, max_size=1 + chosen.z))


def like(likely: Visit, group: Group = USERS) -> Callable[[Rules], Visits]:
    """Visits like `likely`, at the ends of windows."""
    return lambda chosen: several(chosen, ends_of(chosen.window_ns), group, likely)


def hunted(
    *groups: Sequence[str], clients: Sequence[str] = MANY, flow: Visit = SILENT
) -> Callable[[Rules], Visits]:
    """Questions to the resolvers of a group, and then flows to the addresses in the answers."""
    lasts = flow.pauses != (0, 0)

    def visits(chosen: Rules) -> Visits:
        asked_at = st.just(START) if lasts else ends_of(chosen.window_ns)
        after = st.builds(int.__add__, asked_at, st.sampled_from([SECOND, 2 * SECOND]))
        asked = st.sampled_from(groups).flatmap(
            lambda some: several(chosen, asked_at, (MANY[:-1], some), ASKING)
        )
        flows = several(chosen, after, (clients, SERVERS[:1]), flow)
        return st.tuples(asked, flows).map(lambda both: sum(both, [*LATER] if lasts else []))

    return visits


def together(*parts: Visits) -> Visits:
    """The visits of all parts."""
    return st.tuples(*parts).map(lambda some: [*chain.from_iterable(some)])


def asked_and_visited(chosen: Rules) -> Visits:
    """Visits of z users, or one less, to a server that is asked about the same name, too, by as
    many."""
    window = st.sampled_from([0, chosen.window_ns])

    def both(visited_after: int, asked_after: int) -> Visits:
        visited = several(chosen, st.just(START + visited_after), USERS, NAMING)
        asked = several(chosen, st.just(START + asked_after), USERS, ASKING)
        return together(visited, asked)

    return st.tuples(window, window).flatmap(lambda after: both(*after))


@st.composite
def parted(draw: st.DrawFn, chosen: Rules) -> list[Visit]:
    """Visits of z users, or one less, to one name, of which a tap shows one direction late."""
    how = st.sampled_from(["whole", "whole", "early data", "accepted data", "guessed early"])
    skew = st.sampled_from([(ns, 0) for ns in SKEWS] + [(0, ns) for ns in SKEWS])
    likely = replace(NAMING, how=draw(how))
    visits = draw(several(chosen, ends_of(chosen.window_ns), USERS, likely))
    return [replace(visit, skew=draw(skew)) for visit in visits]


def aimed(make: Callable[[Rules], Visits], **fixed: object) -> st.SearchStrategy[Scenario]:
    """Scenarios under random rules, apart from the fixed ones."""
    return rules.map(lambda chosen: replace(chosen, **fixed)).flatmap(
        lambda chosen: st.builds(Scenario, st.just(chosen), make(chosen))
    )


PRIVATE = {"internal": None, "z": 2}  # the host that is visited from outside is the user
HUNT = {"dn_hunter": True, "dns_votes": "all"}
APART = {"dn_hunter": True, "dns_votes": "own"}
TURNS = (TURNCOAT, *CLIENTS[3::-1], TURNCOAT)
AIMS = {
    "certificates": aimed(like(SHOWING)),
    "certificates never disclosed": aimed(like(SHOWING), never=("a.example",)),
    "certificates of users": aimed(like(SHOWING, STRANGERS), **PRIVATE),
    "bytes that strayed": aimed(like(replace(SHOWING, how="strayed")), established=True),
    "directions that come apart": aimed(parted, established=True),
    "user agents": aimed(like(GREETING)),
    "user agents of an unproven client": aimed(like(GREETING_TWICE), established=True),
    "user agents of strangers": aimed(like(GREETING, STRANGERS), **PRIVATE),
    "what DNS said": aimed(hunted(*RESOLVERS), **HUNT),
    "resolvers that few ask": aimed(hunted(*OWN), **HUNT),
    "what DNS said to all": aimed(hunted(*RESOLVERS, *NOBODY), **HUNT, z=1),
    "what DNS said of hidden names": aimed(hunted(*RESOLVERS, flow=HIDING), **HUNT),
    "what DNS never said": aimed(hunted(*RESOLVERS), **HUNT, z=1, never=("a.example",)),
    "what DNS said of shared names": aimed(
        lambda chosen: together(
            several(chosen, st.just(START), USERS, NAMING), hunted(*RESOLVERS, *OWN)(chosen)
        ),
        **APART,
    ),
    "resolvers of which DNS is told": aimed(hunted(*RESOLVERS, *OWN), dn_hunter=True),
    "questions that count apart": aimed(asked_and_visited, dns_votes="own"),
    "questions that cast no vote": aimed(asked_and_visited, dns_votes="no"),
    "questions that count for all": aimed(asked_and_visited, dns_votes="all"),
    "a resolver turned client": aimed(
        hunted((TURNCOAT,), clients=TURNS, flow=LASTING), **HUNT, window_ns=MINUTE, rotate_ns=MINUTE
    ),
    "a resolver that was a client": aimed(
        hunted((TURNCOAT,), clients=TURNS, flow=LASTING), **HUNT, window_ns=MINUTE, rotate_ns=SECOND
    ),
}

# z follows the stream.
moving = st.builds(
    lambda one, p: replace(one, rules=replace(one.rules, target_p=p)),
    st.one_of(scenarios, AIMS["what DNS said"]),
    st.sampled_from([0.5, 0.9]),
)
