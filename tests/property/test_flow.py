# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Flows and their counters against brute force: random segments of a few 5-tuples.

z = 1 and every network internal, so that records are exact and show both ports. Ports tell the
flows apart: addresses are pseudonyms.
"""

from collections.abc import Sequence
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle.flow import Flow, flows_of
from oracle.tcp import counts
from support import wire
from support.engine import (
    ANYWHERE,
    TCP_COMPLETE,
    TCP_NOCOMPLETE,
    UDP_COMPLETE,
    Outcome,
    Taker,
    feed,
    make_engine,
)
from support.examples import examples
from support.packets import ACK, FIN, MS, PSH, RST, SECOND, START, SYN, Frame, Unit, tcp_segment

ENDS = ("10.7.0.1", "10.7.0.2")
TCP_PORTS = [(40000, 443), (40001, 443), (40000, 40001)]
UDP_PORTS = [(41000, 5000), (41001, 5000)]
SETTINGS: dict[str, Any] = {
    "z": 1,
    "established": False,
    "internal": ANYWHERE,
    "keep_client_port": True,
    "max_flows": 64,
}
BLOCK, BLOCKS = 1, 4  # a side sends SYN at 0, its blocks from 1 on, FIN at the end
FIN_AT = 1 + BLOCK * BLOCKS
ISNS = [(2**32 - 3, 7), (3_000_000_000, 2**31 - 4)]

STEPS = st.one_of(
    st.integers(0, 3 * MS),
    st.integers(0, 4 * SECOND),
    st.sampled_from([s * SECOND + d for s in (10, 200, 300) for d in (-1, 0, 1)]),
    st.sampled_from([60 * SECOND, 3600 * SECOND]),
)


@st.composite
def segments(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """(flags, seq, ack, length) of any segment that a side of the connection could send."""
    kind = draw(st.sampled_from(["syn", "ack", *["data"] * 6, "fin", "fin", "rst"]))
    block = draw(st.integers(0, BLOCKS - 1))
    seq, length = 1 + block * BLOCK, 0
    flags = draw(st.sampled_from([ACK, ACK, ACK, 0]))
    ack = draw(st.sampled_from([0, 1, FIN_AT, FIN_AT + 1, FIN_AT + 1]))
    if kind == "syn":
        flags, seq = flags | SYN, 0
    elif kind == "data":
        flags, length = flags | PSH, BLOCK * draw(st.integers(1, min(2, BLOCKS - block)))
    elif kind == "fin":
        length = draw(st.sampled_from([0, BLOCK]))
        flags, seq = flags | FIN, FIN_AT - length
    elif kind == "rst":
        flags |= RST
    return flags, seq, ack, length


@st.composite
def traffic(draw: st.DrawFn) -> list[Unit]:
    """Packets in order of time; many start with a proper handshake."""
    t_ns = START
    packets = []
    for ports in draw(st.lists(st.sampled_from(TCP_PORTS), min_size=1, max_size=3)):
        opening = [(0, SYN, 0, 0), (1, SYN | ACK, 0, 1), (0, ACK, 1, 1)]
        for sender, flags, seq, ack in opening[: draw(st.integers(1, 3))]:
            packets.append(Unit(t_ns, ports, sender, True, flags, seq, ack))
            t_ns += draw(st.integers(0, MS))
    for _ in range(draw(st.integers(1, 40))):
        t_ns += draw(STEPS)
        sender = draw(st.integers(0, 1))
        if draw(st.integers(0, 4)) == 0:
            length = draw(st.integers(0, 30))
            packets.append(
                Unit(t_ns, draw(st.sampled_from(UDP_PORTS)), sender, False, 0, 0, 0, length)
            )
        else:
            ports = draw(st.sampled_from(TCP_PORTS))
            packets.append(Unit(t_ns, ports, sender, True, *draw(segments())))
    return packets


def frame_of(p: Unit, isns: tuple[int, int]) -> Frame:
    """The packet on the wire, its numbers moved to the sides' first sequence numbers."""
    ports = p.ports if p.sender == 0 else p.ports[::-1]
    if p.tcp:
        seq, ack = isns[p.sender] + p.seq, isns[1 - p.sender] + p.ack
        transport = tcp_segment(ports, p.flags, seq, ack, bytes(p.length))
    else:
        transport = wire.udp(bytes(p.length), ports=ports)
    addresses = ENDS if p.sender == 0 else ENDS[::-1]
    protocol = wire.TCP if p.tcp else wire.UDP
    data = wire.ethernet(wire.ipv4(transport, protocol, addresses=addresses))
    return Frame(p.t_ns, data, len(data))


def run(frames: Sequence[Frame], batch: int, **more: Any) -> Outcome:
    """Feeds them, checking the invariants after each batch."""
    taker = Taker(make_engine(**SETTINGS, **more))
    for at in range(0, len(frames), batch):
        feed(taker.engine, frames[at : at + batch])
        taker.engine.check()
        taker.take()
    return taker.outcome()


# ---- what must come out -------------------------------------------------------------------------


def client_of(p: Unit) -> int:
    """The client by the first packet: whoever got a SYN-ACK, else who speaks to a known port."""
    if not p.tcp or p.flags & (SYN | ACK) == SYN:
        return p.sender
    known = p.ports[p.sender] < 1024 <= p.ports[1 - p.sender]
    return 1 - p.sender if p.flags & SYN or known else p.sender


def opens(flow: Flow) -> bool:
    """Whether the flow begins with its client's SYN, or with the server's answer to that SYN."""
    client = client_of(flow[0])
    first = next((p for p in flow if p.sender == client), flow[0])
    if first.flags & (SYN | ACK) != SYN:
        return False
    earlier = flow[: flow.index(first)]
    answers = [p.ack for p in earlier if p.flags & SYN and p.flags & ACK]
    return not earlier or (
        bool(answers) and first.seq < answers[-1] <= first.seq + 1 + first.length
    )


def is_complete(flow: Flow, client: int, end: str) -> bool:
    """Which log a flow belongs to; a client that sent data with no server SYN is half a flow."""
    answered = any(p.sender != client and p.flags & SYN for p in flow)
    if end == "fin":
        return answered or not any(p.sender == client and p.length for p in flow)
    asked = any(p.sender == client and p.flags & SYN for p in flow)
    return end != "input" and asked and answered


def ms(ns: int) -> str:
    return f"{ns // MS}.{ns % MS:06}"


def times(flow: Flow, client: int) -> dict[str, str]:
    """The time columns of a TCP log."""
    start = flow[0].t_ns
    row = {"first": ms(start), "last": ms(flow[-1].t_ns), "durat": ms(flow[-1].t_ns - start)}
    for prefix, side in (("c", client), ("s", 1 - client)):
        data = [p.t_ns - start for p in flow if p.sender == side and p.length and not p.flags & RST]
        acks = [p.t_ns for p in flow if p.sender == side and p.flags & (ACK | SYN | RST) == ACK]
        row[f"{prefix}_first"] = ms(data[0] if data else 0)
        row[f"{prefix}_last"] = ms(data[-1] if data else 0)
        row[f"{prefix}_first_ack"] = ms(acks[0] - start if acks else 0)
    return row


def tcp_row(flow: Flow, client: int) -> dict[str, str]:
    """The core columns that are not constant here."""
    row = times(flow, client)
    for prefix, side in (("c", client), ("s", 1 - client)):
        row[f"{prefix}_port"] = str(flow[0].ports[side])
        row |= {f"{prefix}_{name}": str(n) for name, n in counts(flow, side).items()}
    return row


def udp_row(flow: Flow, client: int) -> dict[str, str]:
    """The columns of log_udp_complete that are not constant here."""
    row = {}
    for prefix, side in (("c", client), ("s", 1 - client)):
        sent = [p for p in flow if p.sender == side]
        at = [p.t_ns for p in sent]
        row[f"{prefix}_port"] = str(flow[0].ports[side])
        row[f"{prefix}_first_abs"] = ms(at[0]) if at else "0.000000"
        micros = (at[-1] - at[0]) // 1000 if at else 0
        row[f"{prefix}_durat"] = f"{micros // 10**6}.{micros % 10**6:06}"
        row[f"{prefix}_bytes_all"] = str(sum(p.length for p in sent))
        row[f"{prefix}_pkts_all"] = str(len(sent))
    return row


def json_row(flow: Flow, client: int) -> dict[str, Any]:
    """The columns of a JSONL record that are not constant here."""
    row: dict[str, Any] = {"t_start_ns": flow[0].t_ns, "t_end_ns": flow[-1].t_ns}
    row["proto"] = 6 if flow[0].tcp else 17
    for prefix, name, side in (("c", "client", client), ("s", "server", 1 - client)):
        row[f"{name}_port"] = flow[0].ports[side]
        row[f"{prefix}_pkts"] = sum(p.sender == side for p in flow)
        row[f"{prefix}_bytes"] = sum(p.length for p in flow if p.sender == side)
    return row


def same_rows(found: Sequence[dict[str, Any]], wanted: Sequence[dict[str, Any]]) -> None:
    """The same rows in any order, by the columns that are wanted."""
    columns = wanted[0].keys() if wanted else ()
    got = [{column: row[column] for column in columns} for row in found]
    assert sorted(map(repr, got)) == sorted(map(repr, wanted))


def exchange(*segments: tuple[int, int, int, int, int]) -> list[Unit]:
    """Segments (sender, flags, seq, ack, length) of one connection, 1 ms apart."""
    return [Unit(START + i * MS, TCP_PORTS[0], s[0], True, *s[1:]) for i, s in enumerate(segments)]


# A FIN that came before its data, then both again: all of the data is new.
EARLY_FIN = exchange(
    (0, SYN, 0, 0, 0), (1, SYN | ACK, 0, 1, 0), (1, FIN | ACK, 61, 1, 0), (1, FIN | ACK, 51, 1, 10)
)
# Segments that overlap on both ends, and what they brought once more.
OVERLAPS = exchange(
    *((0, SYN, 0, 0, 0), (1, SYN | ACK, 0, 1, 0), (0, PSH | ACK, 1, 1, 20)),
    *((0, PSH | ACK, 11, 1, 20), (0, PSH | ACK, 21, 1, 10), (0, PSH | ACK, 41, 1, 10)),
    *((0, PSH | ACK, 26, 1, 30), (0, PSH | ACK, 51, 1, 5), (0, FIN | ACK, 56, 1, 0)),
)
# A capture that lacks the server's SYN: half a connection, however well it closes.
NO_ANSWER = exchange(
    (0, SYN, 0, 0, 0),
    (0, PSH | ACK, 1, 1, 60),
    (1, FIN | ACK, 1, 61, 0),
    (0, FIN | ACK, 61, 2, 0),
    (1, ACK, 2, 62, 0),
)


@settings(max_examples=examples(300, 8))
@given(packets=traffic(), isns=st.sampled_from(ISNS), batch=st.sampled_from([1, 7, 1000]))
@example(packets=EARLY_FIN, isns=ISNS[0], batch=1)
@example(packets=OVERLAPS, isns=ISNS[0], batch=7)
@example(packets=NO_ANSWER, isns=ISNS[1], batch=1)
def test_flows_are_the_oracles(packets: list[Unit], isns: tuple[int, int], batch: int) -> None:
    outcome = run([frame_of(p, isns) for p in packets], batch)
    logs: dict[str, list[dict[str, str]]] = {TCP_COMPLETE: [], TCP_NOCOMPLETE: [], UDP_COMPLETE: []}
    records = []
    for flow, end, _closed_ns in flows_of(packets):
        client = client_of(flow[0])
        records.append(json_row(flow, client))
        if not flow[0].tcp:
            logs[UDP_COMPLETE].append(udp_row(flow, client))
        elif opens(flow):  # Tstat has no flow without its SYN
            complete = is_complete(flow, client, end)
            logs[TCP_COMPLETE if complete else TCP_NOCOMPLETE].append(tcp_row(flow, client))
    for name, rows in logs.items():
        same_rows(outcome.log(name), rows)
    same_rows(outcome.flows, records)


@settings(max_examples=examples(150, 8))
@given(packets=traffic(), batches=st.lists(st.integers(1, 30), min_size=1, max_size=3))
def test_batches_of_any_size_give_the_same_output(
    packets: list[Unit], batches: list[int], key_file: str
) -> None:
    frames = [frame_of(p, ISNS[0]) for p in packets]
    texts = []
    for batch in [len(frames), *batches]:
        outcome = run(frames, batch, key_file=key_file)
        texts.append(outcome.text)
    assert all(text == texts[0] for text in texts[1:])
