# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A RST ends a flow, but for one that cannot be of its connection."""

import pytest
from support import handshake, wire
from support.engine import TCP_COMPLETE, run
from support.examples import each
from support.packets import ACK, CLIENT, RST, SERVER, SYN, Tcp, hello, request
from support.stream import names

FIRST, LATER = request(b"first.example"), request(b"later.example")
ISNS = (1000, 500_000)
PORTS = (40000, 80)
LOST = 1 << 26  # bytes in a row that a capture may miss
WINDOW = 1 << 30


def reset(side: int, seq: int, payload: bytes = b"", flags: int = RST) -> Tcp:
    """A connection in whose middle there is a RST."""
    talk = Tcp(ports=PORTS).handshake().say(FIRST)
    talk.segment(side, flags, payload, seq=seq % (1 << 32))
    return talk.say(LATER).close()


@each("side", [CLIENT, SERVER])
@each("flags", [RST, RST | ACK, RST | SYN, RST | SYN | ACK])
@each("beyond", [-(1 << 31) + LOST, -LOST - 1, LOST + 200, 1 << 30])
@each("payload", [b"", b"no such connection"])
def test_one_with_an_impossible_number_ends_no_flow(
    side: int, flags: int, beyond: int, payload: bytes
) -> None:
    talk = reset(side, ISNS[side] + beyond, payload, flags)
    assert names(talk) == ["first.example", "later.example"]
    outcome = run(talk.frames, z=1)
    (line,) = outcome.log(TCP_COMPLETE)
    ends = "cs"[side == SERVER]
    assert (line["c_fin_cnt"], line[f"{ends}_rst_cnt"]) == ("1", "1")
    assert int(line["c_pkts_all"]) + int(line["s_pkts_all"]) == len(talk.frames)
    assert outcome.stats["drop_flow_closed"] == 0


@pytest.mark.parametrize("side", [CLIENT, SERVER])
@pytest.mark.parametrize("beyond", [-LOST, 0, 1, 1 + len(FIRST), LOST])
def test_one_that_may_be_of_the_connection_ends_it(side: int, beyond: int) -> None:
    talk = reset(side, ISNS[side] + beyond)
    assert names(talk) == ["first.example"]
    outcome = run(talk.frames, z=1)
    (line,) = outcome.log(TCP_COMPLETE)
    assert line["c_fin_cnt"] == "0"
    assert outcome.stats["drop_flow_closed"] == 5


def test_one_that_is_none_of_a_flow_counts_where_a_handshake_is_looked_for() -> None:
    """Its last segment is looked for among the first packets of both sides, in all 200."""
    flight = handshake.flight(handshake.named("www.example.org"))
    talk = Tcp(ports=(40000, 443)).handshake().say(hello(b"first.example"))
    talk.say(wire.record(flight, 0x0303), SERVER)
    for _ in range(5):
        talk.segment(CLIENT, RST, seq=1 << 30)
    while len(talk.frames) < 300:
        talk.segment(SERVER, ACK, b"\xff\xfe\xfd\xfc")
    outcome = run(talk.close().frames, z=1)
    (line,) = outcome.log(TCP_COMPLETE)
    assert float(line["s_last_handshakeT"]) == (talk.frames[199].t_ns - talk.frames[0].t_ns) / 1e6


@pytest.mark.parametrize("lag", [0, WINDOW, WINDOW + LOST, WINDOW + LOST + 1])
def test_one_may_lag_by_a_window(lag: int) -> None:
    """Of a long connection, and of one whose numbers came round."""
    talk = Tcp(ports=PORTS).handshake().say(FIRST)
    for _ in range(3):
        talk.next[CLIENT] = (talk.next[CLIENT] + WINDOW) % (1 << 32)
        talk.segment(CLIENT, ACK, b"of a body")
    talk.segment(CLIENT, RST, seq=(talk.next[CLIENT] - lag) % (1 << 32))
    outcome = run(talk.segment(CLIENT, ACK).frames, z=1)
    assert outcome.stats["drop_flow_closed"] == (lag <= WINDOW + LOST)


@pytest.mark.parametrize("answered", [False, True])
def test_any_ends_a_flow_whose_handshake_is_not_complete(answered: bool) -> None:
    talk = Tcp(ports=PORTS).segment(CLIENT, SYN)
    if answered:
        talk.segment(SERVER, SYN | ACK)
    for _ in range(2):
        talk.segment(CLIENT, RST, seq=ISNS[CLIENT] + (1 << 31))
    assert run(talk.frames, z=1).stats["drop_flow_closed"] == 1
