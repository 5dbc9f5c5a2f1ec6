# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A full flow table: who makes room, and that nothing is lost uncounted."""

import pytest
from engine_help import TCP_COMPLETE, TCP_NOCOMPLETE, feed, make_engine, run
from hypothesis import given, settings
from hypothesis import strategies as st
from packet_help import ACK, CLIENT, MS, PSH, SECOND, SERVER, START, Frame, Tcp, Udp, merged, user

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
    assert outcome.stats["flows_early"] == 0
    assert len(outcome.flows) == 640


@pytest.mark.parametrize("cap", [1, 2, 33, CAP])
def test_any_cap_works(cap: int) -> None:
    frames = merged([lone(n, START + n * MS) for n in range(300)])
    outcome = run(frames, z=1, max_flows=cap)
    assert len(outcome.flows) == 300
    assert sum(flow["c_pkts"] for flow in outcome.flows) == 300


@settings(max_examples=60, deadline=None)
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
