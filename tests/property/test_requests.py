# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A connection's requests whose segments come in any order, and some of them never."""

import itertools
import random
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.names import said_in
from support.engine import Outcome, run
from support.examples import examples
from support.packets import ACK, CLIENT, MINUTE, PSH, SECOND, SERVER, START, Tcp, request, visit

SHARED = (b"a.example", b"b.example")  # by other users, too
HOSTS = (*SHARED, *SHARED, b"rare.example")
INSIDE = request(b"never-visited.example")
FIRST = 1001  # the sequence number of the client's first byte


def message(host: bytes, how: str, method: bytes) -> bytes:
    """A request, with a body that looks like one."""
    if method == b"":
        method = b"GET" if how == "none" else b"POST"
    head = request(host, method).removesuffix(b"\r\n")
    match how:
        case "length":
            return head + b"Content-Length: %d\r\n\r\n" % (2 * len(INSIDE)) + INSIDE * 2
        case "chunks":
            chunk = b"%x\r\n" % len(INSIDE) + INSIDE + b"\r\n"
            return head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 2 + b"0\r\n\r\n"
        case _:
            return head + b"\r\n"


messages = st.builds(
    message,
    st.sampled_from(HOSTS),
    st.sampled_from(["none", "none", "length", "chunks"]),
    st.sampled_from([b"", b"", b"BITS_POST", b"get", b"M-SEARCH"]),
)


@dataclass(frozen=True, slots=True)
class Connection:
    """The client's stream, and where it is cut into segments."""

    stream: bytes
    pieces: list[tuple[int, int]]

    def talk(self, order: list[int]) -> Tcp:
        """The segments of these numbers, in this order; the others never come."""
        talk = Tcp(ports=(40000, 80), t_ns=START + SECOND).handshake()
        for n in order:
            start, end = self.pieces[n]
            talk.segment(CLIENT, PSH | ACK, self.stream[start:end], seq=FIRST + start)
        talk.next[CLIENT] = FIRST + len(self.stream)
        talk.t_ns = START + 10 * SECOND  # so that all orders end at the same time
        return talk.segment(SERVER, PSH | ACK, b"HTTP/1.1 200 OK\r\n\r\n").close()


@st.composite
def connections(draw: st.DrawFn) -> Connection:
    """Requests of which a segment begins with each, with each body, and at other places."""
    parts = draw(st.lists(messages, min_size=1, max_size=5))
    stream = b"".join(parts)
    cuts = set(itertools.accumulate(map(len, parts)))
    cuts |= {at for at in range(len(stream)) if stream.startswith(INSIDE, at)}
    cuts = draw(st.sets(st.sampled_from(sorted(cuts)))) | draw(
        st.sets(st.integers(1, len(stream) - 1), max_size=4)
    )
    bounds = [0, *sorted(cuts - {len(stream)}), len(stream)]
    return Connection(stream, list(itertools.pairwise(bounds)))


OTHERS = [
    frame
    for n, host in enumerate(SHARED)
    for frame in visit("10.7.9.9", host, START + n * SECOND // 4)
]


def outcome_of(talk: Tcp) -> Outcome:
    """What z = 2 shows of the talk behind another user's visits to the shared names."""
    return run([*OTHERS, *talk.frames], z=2)


def is_coarse(outcome: Outcome) -> bool:
    return bool(outcome.flows[-1]["t_end_ns"] % MINUTE == 0)


def told(outcome: Outcome) -> tuple[object, ...]:
    """The names, what was decided of them, and the class of the record."""
    record = outcome.flows[-1]
    counted = ("names_http", "names_repeated", "observations", "released", "suppressed_below_z")
    unread = ("names_after_gaps", "bodies_lost", "suppressed_incomplete")
    return (
        [seen["name"] for seen in outcome.observations],
        [outcome.stats[name] for name in (*counted, *unread)],
        [record[name] for name in ("name", "name_source", "name_status")],
        is_coarse(outcome),
    )


def hosts_of(stream: bytes) -> list[bytes]:
    return [one.raw for one in said_in(stream) if one.raw is not None]


@settings(max_examples=examples(150))
@given(connections(), st.randoms(use_true_random=False))
def test_the_order_of_segments_does_not_matter(one: Connection, dice: random.Random) -> None:
    order = list(range(len(one.pieces)))
    in_order = outcome_of(one.talk(order))
    dice.shuffle(order)
    outcome = outcome_of(one.talk(order))
    assert told(outcome) == told(in_order)
    hosts = hosts_of(one.stream)
    assert outcome.stats["names_http"] == len(hosts)
    assert is_coarse(outcome) == (b"rare.example" in hosts)
    assert b"never-visited" not in outcome.everything()


@settings(max_examples=examples(150))
@given(connections(), st.randoms(use_true_random=False), st.data())
def test_a_name_beside_exact_measurements_is_not_alone_in_being_shown(
    one: Connection, dice: random.Random, data: st.DataObject
) -> None:
    """Where a request was not read or not released, nothing of the record is exact."""
    numbers = list(range(len(one.pieces)))
    order = [n for n in numbers if n not in data.draw(st.sets(st.sampled_from(numbers)))]
    dice.shuffle(order)
    outcome = outcome_of(one.talk(order))
    hosts = hosts_of(one.stream)
    missed = outcome.stats["names_http"] < len(hosts) or b"rare.example" in hosts
    if outcome.flows[-1]["name"] and missed:
        assert is_coarse(outcome)
    if outcome.stats["names_http"] < len(hosts) and len(order) > 0:
        reasons = ("names_after_gaps", "bodies_lost", "suppressed_incomplete")
        assert any(outcome.stats[name] for name in reasons)
    assert b"rare" not in outcome.everything()
