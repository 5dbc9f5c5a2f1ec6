# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Traffic for the contract's model: few users, few names, and every irregularity at random."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from hypothesis import strategies as st
from oracle.rules import EVERYWHERE, Rules
from support.packets import DAY, HOUR, MINUTE, MS, SECOND, START, Frame, merged

from scenario.answers import CERTIFICATES, FLIGHTS
from scenario.quic import AGENTS, quic_visit
from scenario.routes import routed, routes, straight, whole_routes
from scenario.visits import ASTRAY, HOW, Visit, dns_visit, stray_visit, tcp_visit

TURNCOAT = "203.0.113.5"  # a server that is also a client
CLIENTS = ("10.7.0.1", "10.7.0.2", "10.7.0.3", "10.7.9.1", "100.64.0.9", "192.0.2.77")
SERVERS = ("198.51.100.7", "198.51.100.7", TURNCOAT)
OTHER_CLIENTS = (*CLIENTS, TURNCOAT, TURNCOAT, "169.254.3.4", "169.254.7.8")
OTHER_SERVERS = (*SERVERS, "198.51.100.8", "10.9.8.7", "224.0.0.9")
TURNCOAT6 = "2001:db8:5::1"
CLIENTS6 = ("fd00:7::1:1", "fd00:7::1:2", "fd00:7:0:100::1", "fd00:7:0:1::1", "2001:db8:77::1")
SERVERS6 = ("2001:db8:ff::7", "2001:db8:ff::8", TURNCOAT6, "fd00:9::7")

Group = tuple[Sequence[str], Sequence[str]]
GROUPS: tuple[Group, ...] = (  # (clients, servers); few of each suffice
    (CLIENTS, SERVERS),
    (CLIENTS[:3], SERVERS),
    (("10.7.0.1", "169.254.3.4", "169.254.7.8"), SERVERS),  # two users
    (CLIENTS6[:3], SERVERS6[:2]),  # two users, too
    (("192.0.2.77",), CLIENTS[:3]),  # a client from outside, and servers of users
)

HOSTS = (*(b"a.example",) * 3, *(b"b.example",) * 2, b"www.c.example", b"A.Example.")
HOSTS += (b"a.example:8080",)
ODD_HOSTS = (b"printer.local", b"192.0.2.9", b"two words.example", b"d_e.example")
INTERNAL = (None, EVERYWHERE, ("10.7.0.0/16", "fd00:7::/32"), ("10.0.0.0/8", "192.0.2.0/24"))
KEY = bytes(range(7, 39))


# ---- strategies ---------------------------------------------------------------------------------

SECONDS = tuple(n * SECOND for n in (1, 2, 5, 7, 10, 30, 60, 120, 3600))
WAYS = ("networks", "networks", "crypto-pan", "crypto-pan:20,50", "random")


PURPOSES = ("partner", "public", "internal")


def with_others(chosen: Rules) -> Rules:
    """The rules with pseudonyms that keep one thing or another, and output for one reader or
    another."""
    return replace(
        chosen,
        pseudonyms=WAYS[SECONDS.index(chosen.rotate_ns) % len(WAYS)],
        purpose=PURPOSES[SECONDS.index(chosen.window_ns) % len(PURPOSES)],
    )


rules = st.builds(
    Rules,
    z=st.sampled_from([1, 2, 2, 2, 3, 3, 4]),
    window_ns=st.sampled_from(SECONDS[1:]),
    rotate_ns=st.sampled_from(SECONDS),
    key=st.just(KEY),
    established=st.sampled_from([True, True, False]),
    dns_votes=st.sampled_from(["own", "own", "all", "no"]),
    internal=st.sampled_from([None, None, *INTERNAL]),
    never=st.sampled_from([(), (), (), ("c.example",), ("a.example",)]),
    user_prefix=st.sampled_from([(32, 56), (32, 56), (32, 64), (24, 48), (32, 128)]),
    keep_client_port=st.booleans(),
    dn_hunter=st.booleans(),
    exact=st.sampled_from([False, False, True]),
).map(with_others)
ends = st.one_of(
    *[st.tuples(st.sampled_from(CLIENTS), st.sampled_from(SERVERS))] * 4,
    st.tuples(st.sampled_from(OTHER_CLIENTS), st.sampled_from(OTHER_SERVERS)),
    st.tuples(st.sampled_from(CLIENTS6), st.sampled_from(SERVERS6)),
)


def ends_of(slices_ns: int) -> st.SearchStrategy[int]:
    """Ends of windows or epochs, or a nanosecond beside: votes of visits that begin there are a
    whole number of windows apart."""
    after = st.integers(0, 2).map(lambda n: START + n * slices_ns)
    return st.builds(int.__add__, after, st.sampled_from([0, 0, 0, 1, -1]))


SKEWS = (MS + MS // 2, 2 * MS + MS // 2, 5 * MS + MS // 2)
KINDS = ("tls", "tls", "http", "h2", "dns", "dns over tcp", "quic", "quic", "stray")
# Most taps show both directions in time; others show the client or the server late.
skews = st.sampled_from([(0, 0)] * 6 + [(ns, 0) for ns in SKEWS] + [(0, ns) for ns in SKEWS])
Texts = st.SearchStrategy[tuple[str, str]]
SECONDARY: dict[str, Texts] = {
    "tls": st.tuples(st.sampled_from(("", *CERTIFICATES)), st.sampled_from(FLIGHTS)),
    "dns": st.tuples(st.sampled_from(("", *OTHER_SERVERS, *SERVERS6)), st.just("")),
    "quic": st.tuples(st.sampled_from(AGENTS), st.sampled_from(AGENTS)),
}


@st.composite
def visits(draw: st.DrawFn, start: st.SearchStrategy[int], hosts: Sequence[bytes]) -> Visit:
    """A conversation that begins at `start` and names some of the hosts."""
    kind = draw(st.sampled_from(KINDS))
    how = draw(st.sampled_from(HOW[kind]))
    pause = st.sampled_from([0, 0, 0, 0, 1, 5, 9])
    whole = how in ("midstream", "behind", "right behind", "through")
    cut = not whole and kind in ("tls", "dns", "quic")  # even then the client can be recognised
    return Visit(
        draw(start),
        draw(ends),
        kind,
        tuple(draw(st.lists(st.sampled_from(hosts), min_size=1, max_size=3))),
        how,
        draw(st.sampled_from(["fin", "fin", "rst", "open"])),
        53 if kind == "dns over tcp" else draw(st.sampled_from([443, 80, 8443])),
        (draw(pause), draw(pause)),
        draw(routes if cut else whole_routes),
        draw(SECONDARY.get(kind, st.just(("", "")))),
        draw(skews),
    )


def crowds(chosen: Rules) -> st.SearchStrategy[list[Visit]]:
    """Some dozens of conversations."""
    seconds = st.integers(0, 30).map(lambda n: START + n * SECOND)
    windows, epochs = ends_of(chosen.window_ns), ends_of(chosen.rotate_ns)
    start = st.one_of(windows, windows, epochs, seconds)
    hosts = st.sampled_from([(*HOSTS * 6, *ODD_HOSTS), HOSTS, HOSTS[:3]])
    part = hosts.flatmap(lambda some: st.lists(visits(start, some), max_size=10))
    whole = st.tuples(*[part] * 6).map(lambda parts: [visit for part in parts for visit in part])
    return whole.filter(bool)


def few(chosen: Rules) -> st.SearchStrategy[list[Visit]]:
    """z users of one name, or one less, at the ends of windows."""

    def between(group: Group) -> st.SearchStrategy[list[Visit]]:
        pairs = st.tuples(*map(st.sampled_from, group))
        start, tls, host = ends_of(chosen.window_ns), st.just("tls"), st.just(HOSTS[:1])
        plain = st.builds(
            Visit, start, pairs, tls, host, st.sampled_from(["whole"] * 5 + ["another syn"])
        )
        return st.lists(plain, min_size=chosen.z, max_size=2 + chosen.z)

    return st.sampled_from(GROUPS).flatmap(between)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A capture of some dozens of conversations, and the settings of a run."""

    rules: Rules
    visits: list[Visit]

    def __post_init__(self) -> None:
        """Leaves out forged requests where no evidence is asked for: each is as good as any, and is
        read when nothing else comes, a time that the model does not know."""
        if not self.rules.established:
            taken = [replace(v, how="whole") if v.how == "strayed" else v for v in self.visits]
            object.__setattr__(self, "visits", taken)

    @property
    def frames(self) -> list[Frame]:
        """The capture, in order of time."""
        make = {"dns": dns_visit, "quic": quic_visit, "stray": stray_visit}
        return merged(
            routed(make.get(visit.kind, tcp_visit)(visit, n), visit.route, visit.ends[0], n)
            for n, visit in enumerate(self.visits)
        )

    @property
    def straight(self) -> "Scenario":
        """Without packets that come by another route than their flow, or much later."""
        visits = [
            replace(
                visit,
                route=straight(visit.route),
                how="whole" if visit.how in ASTRAY else visit.how,
            )
            for visit in self.visits
        ]
        return replace(self, visits=visits)


# Scenarios of many conversations, and of few; Hypothesis shrinks a failing one.
scenarios = rules.flatmap(lambda chosen: st.builds(Scenario, st.just(chosen), crowds(chosen)))
edges = rules.flatmap(lambda chosen: st.builds(Scenario, st.just(chosen), few(chosen)))


def with_caps(scenario: Scenario, caps: dict[str, Any]) -> Scenario:
    """The scenario with caps on invented users; z is at least 2."""
    return replace(scenario, rules=replace(scenario.rules, z=max(scenario.rules.z, 2), **caps))


caps = st.fixed_dictionaries({
    "max_per_prefix": st.sampled_from([None, (16, 32, 1), (16, 32, 2), (24, 48, 1), (24, 48, 2)]),
    "max_names_per_user": st.sampled_from([None, 1, 2]),
})  # fmt: skip
capped = st.builds(with_caps, scenarios | edges, caps)


# ---- time out of order --------------------------------------------------------------------------

delays = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 60)), min_size=1, max_size=12)
Jump = tuple[int, int, bool]  # which packet, by how much, and whether all behind it jump too
jumps = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.sampled_from([-HOUR, -MINUTE, -5 * SECOND, SECOND, 20 * SECOND, MINUTE, HOUR, DAY]),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)


def delayed(frames: list[Frame], late: Sequence[tuple[int, int]]) -> list[Frame]:
    """Moves some packets so many places back; they keep their own time."""
    places = [float(n) for n in range(len(frames))]
    for which, by in late:
        places[which % len(frames)] += by + 0.5
    return [frame for _place, frame in sorted(zip(places, frames, strict=True), key=itemgetter(0))]


def jumped(frames: list[Frame], wrong: Sequence[Jump]) -> list[Frame]:
    """Gives some packets wrong times."""
    times = [frame.t_ns for frame in frames]
    for which, by_ns, lasts in wrong:
        first = which % len(frames)
        for n in range(first, len(frames) if lasts else first + 1):
            times[n] += by_ns
    return [replace(frame, t_ns=t_ns) for frame, t_ns in zip(frames, times, strict=True)]


def settings_of(chosen: Rules) -> dict[str, object]:
    """The rules as a run's settings."""
    internal = "any" if chosen.internal == EVERYWHERE else chosen.internal
    return {
        "z": chosen.z,
        "window": chosen.window_ns,
        "rotate": chosen.rotate_ns,
        "evidence": "established" if chosen.established else "any",
        "dns_votes": chosen.dns_votes,
        "internal": internal,
        "never": chosen.never,
        "user_prefix": chosen.user_prefix,
        "pseudonyms": chosen.pseudonyms,
        "keep_client_port": chosen.keep_client_port,
        "dn_hunter": chosen.dn_hunter,
        "exact": chosen.exact,
        "purpose": chosen.purpose,
        "target_p": chosen.target_p,
        "max_per_prefix": None
        if chosen.max_per_prefix is None
        else "{},{}={}".format(*chosen.max_per_prefix),
        "max_names_per_user": chosen.max_names_per_user,
    }
