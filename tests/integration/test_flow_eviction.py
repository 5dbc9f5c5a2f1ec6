# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A full flow table: which flows are evicted, and that every loss is counted."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import TCP_COMPLETE, TCP_NOCOMPLETE, feed, make_engine, run
from support.examples import examples
from support.packets import (
    ACK,
    CLIENT,
    IPV4_SOURCE,
    MS,
    PSH,
    SECOND,
    SERVER,
    START,
    Frame,
    Tcp,
    Udp,
    merged,
    patched,
    user,
)

CAP, SPARE = 64, 32


def lone(n: int, t_ns: int) -> list[Frame]:
    """A datagram of a flow of its own."""
    return Udp(user(n), ports=(1024 + n, 9), t_ns=t_ns).send(b"x").frames


def talking(n: int, times: list[int]) -> list[Frame]:
    talk = Tcp(user(n), ports=(1024 + n, 9), t_ns=times[0]).handshake()
    for t_ns in times[1:]:
        talk.t_ns = t_ns
        talk.segment(CLIENT, PSH | ACK, b"more")
    return talk.frames


def test_the_flow_that_was_idle_for_longest_goes_first() -> None:
    idle = talking(1, [START])
    busy = talking(2, [START - SECOND, *(START + n * SECOND for n in range(1, 60))])
    crowd = [frame for n in range(500) for frame in lone(100 + n, START + n * 100 * MS)]
    outcome = run(merged([idle, busy, crowd]), z=1, max_flows=CAP)
    by_start = {flow["t_start_ns"]: flow for flow in outcome.flows}
    assert by_start[START]["early"] == 1
    assert by_start[START - SECOND]["early"] == 0
    assert by_start[START - SECOND]["c_pkts"] == 61
    assert outcome.stats["drop_flow_table_full"] == 0


@pytest.mark.parametrize("lag_s", [0, 5, 8, 20, 40])
def test_flows_whose_clock_is_behind_stay(lag_s: int) -> None:
    """Their packets come late, not seldom: who is silent makes room, whatever the wheel saw."""
    first, last, cap = START + 100 * SECOND, START + 300 * SECOND, 400
    times = list(range(first, last, 8 * SECOND))
    clock = talking(0, times)
    behind = [talking(1 + n, [t_ns - lag_s * SECOND for t_ns in times]) for n in range(130)]
    silent = [talking(200 + n, [first + 30 * SECOND]) for n in range(240)]
    newcomers = [talking(500 + n, [times[-1]]) for n in range(60)]
    # The order in which they come: that of the clock, whatever their own times are.
    late = {id(frame): lag_s * SECOND for talk in behind for frame in talk}
    frames = [frame for talk in (clock, *behind, *silent, *newcomers) for frame in talk]
    frames.sort(key=lambda frame: frame.t_ns + late.get(id(frame), 0))
    outcome = run(frames, z=1, max_flows=cap, batch=256)
    early = [flow["t_start_ns"] for flow in outcome.flows if flow["early"]]
    assert early
    assert set(early) == {first + 30 * SECOND}


def test_who_talks_stays_where_half_of_the_table_does() -> None:
    """Ten flows a second talk for 15 s: there is room for them and for as many that are silent."""
    rate, life, seconds = 10, 15, 150
    talk = Udp(user(0), ports=(1024, 9), t_ns=START).send(b"x").send(b"y", SERVER)
    question, answer = talk.frames
    frames = []
    for n in range(rate * seconds):
        source = n.to_bytes(4)
        for second in range(life):
            t_ns = START + n * SECOND // rate + second * SECOND
            frames.append(patched(question, IPV4_SOURCE, source, t_ns))
            frames.append(patched(answer, IPV4_SOURCE + 4, source, t_ns))
    frames.sort(key=lambda frame: frame.t_ns)
    outcome = run(frames, z=1, max_flows=2 * rate * life, batch=256)
    assert sum(flow["early"] for flow in outcome.flows) > rate * seconds / 2
    assert len(outcome.flows) == rate * seconds


def test_what_closes_early_is_not_complete() -> None:
    frames = [*talking(1, [START]), *(f for n in range(300) for f in lone(9 + n, START + SECOND))]
    outcome = run(merged([frames]), z=1, max_flows=CAP)
    assert not outcome.log(TCP_COMPLETE)
    (line,) = outcome.log(TCP_NOCOMPLETE)
    assert line["s_syn_cnt"] == "1"


def test_lingering_flows_go_before_open_ones() -> None:
    """Closed connections are kept for their stray segments, but not at the cost of open ones."""
    open_flows = [talking(n, [START + n * MS]) for n in range(40)]
    closed = [
        Tcp(user(100 + n), t_ns=START + SECOND + n * MS).handshake().close().frames
        for n in range(600)
    ]
    outcome = run(merged([*open_flows, *closed]), z=1, max_flows=CAP)
    assert outcome.stats["flows_evicted"] == 0
    assert len(outcome.flows) == 640


@pytest.mark.parametrize("cap", [1, 2, 33, CAP])
def test_any_cap_works(cap: int) -> None:
    frames = merged([lone(n, START + n * MS) for n in range(300)])
    outcome = run(frames, z=1, max_flows=cap)
    assert len(outcome.flows) == 300
    assert sum(flow["c_pkts"] for flow in outcome.flows) == 300


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 150), st.integers(0, 3), st.integers(0, 40)), max_size=400),
    st.integers(1, 80),
    st.sampled_from([1, 10, 1000]),
)
def test_every_packet_is_in_one_flow(
    packets: list[tuple[int, int, int]], cap: int, batch: int
) -> None:
    """Flows never outnumber the cap for long, and no packet gets lost."""
    frames, t_ns = [], START
    for n, side, wait in packets:
        t_ns += wait * wait * 100 * MS
        talk = Udp(user(n), ports=(1024 + n, 9), t_ns=t_ns)
        frames += talk.send(b"x", SERVER if side == 3 else CLIENT).frames
    engine = make_engine(z=1, max_flows=cap, outputs=("jsonl",))
    lines = 0
    for at in range(0, len(frames), batch):
        feed(engine, frames[at : at + batch])
        engine.check()
        lines += engine.take("jsonl").count(b"\n")
    engine.finish()
    text = engine.take("jsonl")
    stats = engine.stats
    assert lines + text.count(b"\n") == stats["records"] == stats["flows_udp"]
    assert stats["drop_flow_table_full"] == 0
    assert text.count(b"\n") <= cap + SPARE
    engine.close()
