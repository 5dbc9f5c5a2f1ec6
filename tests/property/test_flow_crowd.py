# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The time at which each of many flows closes, against the idle times.

A clock ticks each second with a datagram of a flow of its own: a flow is closed by the first tick
after its idle time has ended.
"""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from support import wire
from support.engine import ANYWHERE, feed, make_engine
from support.examples import examples
from support.packets import ACK, MS, SECOND, START, SYN, Frame, tcp_segment

ENDS = ("10.7.0.1", "10.7.0.2")
TICK = (45000, 45001)
TCP, UDP, SYNS = "tcp", "udp", "syns"
IDLE_S = {TCP: 300, UDP: 200}
LONE_S, LOOK_S = 10, 16  # a lone SYN or datagram waits for less long, and is looked at only here
END_S = 720

Touch = tuple[int, int]  # (ms since the start, flow)


def frame_of(t_ms: int, kind: str, flow: int, *, answer: bool, opens: bool) -> Frame:
    """A packet of one of the flows: opening, answer or whatever follows."""
    ports = (20000 + flow, 443)[:: -1 if answer else 1]
    if kind == UDP:
        transport = wire.udp(b"x", ports=ports)
    else:
        flags = SYN * opens | ACK * (answer or not opens)
        first = 0 if opens else 1
        transport = tcp_segment(ports, flags, 100 + first, 100 + first, b"")
    data = wire.ethernet(
        wire.ipv4(
            transport,
            wire.UDP if kind == UDP else wire.TCP,
            addresses=ENDS[::-1] if answer else ENDS,
        )
    )
    return Frame(START + t_ms * MS, data, len(data))


def tick_at(second: int) -> Frame:
    data = wire.ethernet(wire.ipv4(wire.udp(b"x", ports=TICK), wire.UDP, addresses=ENDS))
    return Frame(START + second * SECOND, data, len(data))


@st.composite
def crowds(draw: st.DrawFn) -> list[tuple[Frame, int, str]]:
    """(packet, flow, kind) in order of time: flows that open together, and what wakes some."""
    packets: list[tuple[int, int, int, Frame, str]] = []
    size = draw(st.integers(13, 45))
    kinds = draw(st.lists(st.sampled_from([TCP, TCP, UDP, SYNS]), min_size=1, max_size=3))
    gap_ms = draw(st.sampled_from([0, 1, 40, 900]))
    for flow in range(size):
        kind, at = kinds[flow * len(kinds) // size], flow * gap_ms
        for step in range(1 if kind == SYNS else 2):
            frame = frame_of(at, kind, flow, answer=step == 1, opens=True)
            packets.append((at, flow, step, frame, kind))
    touches = st.tuples(st.integers(40_000, END_S * 1000), st.integers(0, size - 1))
    for at, flow in draw(st.lists(touches, max_size=12)):
        kind = kinds[flow * len(kinds) // size]
        if kind != SYNS:
            frame = frame_of(at, kind, flow, answer=False, opens=False)
            packets.append((at, flow, 2, frame, kind))
    return [(frame, flow, kind) for _, flow, _, frame, kind in sorted(packets, key=lambda p: p[:3])]


def due(packets: list[tuple[Frame, int, str]]) -> Counter[int]:
    """How many flows are closed by each tick."""
    last: dict[int, tuple[int, int]] = {}  # by flow: when its idle time ends, its closing second
    closed: Counter[int] = Counter()
    for frame, flow, kind in packets:
        at_ns = frame.t_ns - START
        if flow in last and at_ns > last[flow][0]:
            closed[min(last.pop(flow)[1], at_ns // SECOND + 1)] += 1  # it gives way to the next
        if kind == SYNS or (kind == UDP and flow not in last):
            last[flow] = at_ns + LONE_S * SECOND, at_ns // SECOND + LOOK_S
        else:
            last[flow] = at_ns + IDLE_S[kind] * SECOND, at_ns // SECOND + IDLE_S[kind] + 1
    closed.update(second for _, second in last.values())
    return closed


@settings(max_examples=examples(120))
@given(packets=crowds())
def test_flows_close_in_the_second_after_their_idle_time(
    packets: list[tuple[Frame, int, str]],
) -> None:
    engine = make_engine(z=1, established=False, internal=ANYWHERE, max_flows=256)
    wanted, total = due(packets), 0
    ahead = list(packets)
    for second in range(END_S):
        now = START + second * SECOND
        before = [frame for frame, _, _ in ahead if frame.t_ns < now]
        ahead = ahead[len(before) :]
        if before:
            feed(engine, before)
        feed(engine, [tick_at(second)])
        engine.check()
        total += wanted[second]
        assert engine.stats["records"] == total, second
