# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Packets out of time: late ones, ones from the future, a clock gone wrong, time at random."""

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle.ztable import ZOracle
from support.engine import ALL, run
from support.examples import examples
from support.packets import (
    ACK,
    CLIENT,
    DAY,
    HOUR,
    MINUTE,
    MS,
    NAMED_AFTER_NS,
    PSH,
    SECOND,
    START,
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
YEAR = 365 * DAY


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
    assert outcome.stats["clock_rejected"] == len(pair)


def test_one_packet_from_the_future_costs_little() -> None:
    """The clock is set back after 256 refused packets in a row, and names flow again."""
    host, count = b"busy.example", 700
    stray = visit(user(9999), host, START + 100 * YEAR)
    normal = crowd(host, count)
    for batch in (1, 32, 1 << 14):
        outcome = run([*crowd(host, 5, START - SECOND), *stray, *normal], z=5, batch=batch)
        assert outcome.stats["clock_rebased"] >= 1
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


def one_packet(n: int, t_ns: int, client: int, host: bytes, kind: str) -> Frame:
    """A frame that exposes a name all by itself, in a flow of its own."""
    ports = (20000 + n, 53 if kind == "d" else 443)
    if kind == "d":
        return Udp(user(client), ports=ports, t_ns=t_ns).send(dns(host)).frames[0]
    payload = hello(host) if kind == "t" else request(host)
    return Tcp(user(client), ports=ports, t_ns=t_ns).segment(CLIENT, PSH | ACK, payload).frames[0]


@settings(max_examples=examples(150))
@given(visits=VISITS, z=st.integers(2, 4), batch=st.integers(1, 30))
@example(visits=[(0, 1, b"a.example", "t"), (100 * YEAR, 2, b"a.example", "t")], z=2, batch=1)
def test_no_order_of_time_releases_what_brute_force_suppresses(
    visits: list[tuple[int, int, bytes, str]], z: int, batch: int
) -> None:
    """Names of lone packets, so that every frame is an observation with its own timestamp.

    A batch is decided at its end, so all of it was received by then.
    """
    frames = [one_packet(n, START + v[0], *v[1:]) for n, v in enumerate(visits)]
    oracle = ZOracle(z, MINUTE)
    allowed: dict[tuple[int, str], int] = {}
    for at in range(0, len(visits), batch):
        part = visits[at : at + batch]
        for t_ns, client, host, _kind in part:
            oracle.observe(START + t_ns, client, host)
        for t_ns, _client, host, _kind in part:
            key = START + t_ns, host.decode()
            allowed[key] = allowed.get(key, 0) + (oracle.users(START + t_ns, host) >= z)
    outcome = run(frames, batch=batch, z=z, window_ns=MINUTE, established=False, dns_votes=ALL)
    for observation in outcome.observations:
        key = observation["t_ns"], observation["name"]
        assert allowed.get(key, 0) > 0
        allowed[key] -= 1
    in_order = [v[0] for v in visits] == sorted(v[0] for v in visits)
    if in_order and batch == 1:
        assert not any(allowed.values())


@settings(max_examples=examples(100))
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


def test_a_late_packet_does_not_move_the_end_of_its_flow() -> None:
    talk = Tcp(ports=(40000, 9)).handshake().wait(10 * SECOND).say(b"x")
    end_ns = talk.frames[-1].t_ns
    talk.wait(-5 * SECOND).say(b"y")
    outcome = run(talk.frames, z=2, batch=1)
    assert (outcome.flow["t_start_ns"], outcome.flow["t_end_ns"]) == (START, end_ns)
    assert outcome.stats["clock_late"] == 2


def test_a_flow_begins_with_its_first_packet_also_at_time_0() -> None:
    """Where 0 is no time that means none."""
    talk = Udp(user(0), ports=(1024, 9), t_ns=0, step_ns=SECOND)
    (flow,) = run(talk.send(b"x").send(b"x").send(b"x").frames, z=1, established=False).flows
    assert talk.frames[0].t_ns == 0
    assert flow["c_first_abs"] == 0
    assert flow["c_durat"] == 2  # seconds


@pytest.mark.parametrize("last_ns", [0, 20 * MS, 2**63 - 1])
def test_the_first_and_the_last_times_there_are(last_ns: int) -> None:
    """Nothing that is added to them comes out of what a time can hold."""
    first_ns = max(0, last_ns - 9 * MS)
    talks = [visit(user(n), NAME, first_ns) for n in (1, 2)]
    frames = [replace(frame, t_ns=min(frame.t_ns, last_ns)) for frame in merged(talks)]
    outcome = run(frames, z=2)
    assert outcome.released() == {NAME.decode()}
    begins = [flow["t_start_ns"] for flow in outcome.flows]
    assert begins == [first_ns - first_ns % MINUTE, first_ns]
    assert outcome.stats["clock_rejected"] == 0
