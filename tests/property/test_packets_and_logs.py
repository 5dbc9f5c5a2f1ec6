# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Packets show no server's address that the record of the same flow withholds."""

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.packet_addresses import held
from scenario.quic import quic_visit
from scenario.visits import Visit
from support.engine import feed, make_engine
from support.examples import examples
from support.packet_output import records
from support.packets import (
    CLIENT,
    HOUR,
    MS,
    SECOND,
    SERVER,
    START,
    SYN,
    Frame,
    Tcp,
    Udp,
    dns,
    hello,
    merged,
    request,
    user,
)

pytestmark = pytest.mark.source

SERVERS = ("198.51.100.7", "198.51.100.8", "192.0.2.77", "8.8.8.8")
SERVERS6 = ("2001:db8:1::7", "2a00:1450::53")
GROUPS = ("239.77.66.55", "232.5.6.7", "233.252.0.9", "234.10.7.1", "224.0.1.129", "224.0.1.200")
GROUPS6 = ("ff05::7766", "ff02::1", "ff3e:40:2001:db8::1", "ff15::9", "ff02::1:ff00:7")
TESTED = {*SERVERS, *SERVERS6, *GROUPS, *GROUPS6} - {"224.0.1.129", "ff02::1"}  # registered
NAMES = (b"a.example", b"b.example", b"secret.example")
KINDS = ("tls", "http", "nameless", "syn", "tls on port 53", "ssh", "dns", "dns over tcp")
KINDS += ("quic", "datagrams", "datagrams", "group", "group")
PORTS = {"http": 80, "ssh": 22, "dns over tcp": 53, "tls on port 53": 53}


def quic_of(ends: tuple[str, str], number: int, t_ns: int, name: bytes, how: str) -> list[Frame]:
    return quic_visit(Visit(t_ns, ends, "quic", (name,), how=how), number)


def udp_of(kind: str, ends: tuple[str, str], number: int, t_ns: int, name: bytes) -> list[Frame]:
    udp = Udp(*ends, (20000 + number, 53 if kind == "dns" else 9999), t_ns)
    if kind == "dns":
        return udp.lookup(name).frames
    udp.send(b"some bytes").send(b"others")
    return udp.frames if kind == "group" else udp.send(b"answer", SERVER).frames


def tcp_of(kind: str, ends: tuple[str, str], number: int, t_ns: int, name: bytes) -> list[Frame]:
    tcp = Tcp(*ends, (20000 + number, PORTS.get(kind, 443)), t_ns)
    if kind == "syn":
        return tcp.segment(CLIENT, SYN).frames
    tcp.handshake()
    if kind == "ssh":
        tcp.say(b"SSH-2.0-a\r\n").say(b"SSH-2.0-b\r\n", SERVER)
    elif kind == "http":
        tcp.say(request(name))
    elif kind == "dns over tcp":
        for side in (CLIENT, SERVER):
            message = dns(name, response=side == SERVER)
            tcp.say(len(message).to_bytes(2) + message, side)
    elif kind != "nameless":
        tcp.say(hello(name))
    return tcp.close().frames


def talk_of(number: int, dice: random.Random) -> list[Frame]:
    """One flow. No two frames of different flows have one time."""
    six, kind, name = dice.random() < 0.3, dice.choice(KINDS), dice.choice(NAMES)
    client = f"fd00:0:0:{dice.randrange(1, 7)}00::1" if six else user(dice.randrange(1, 7))
    server = dice.choice(SERVERS6 if six else SERVERS)
    if kind == "group":
        server = dice.choice(GROUPS6 if six else GROUPS)
    t_ns, ends = START + dice.randrange(20_000) * MS + number, (client, server)
    if kind == "quic":
        return quic_of(ends, number, t_ns, name, dice.choice(("whole", "unanswered")))
    if kind in ("dns", "datagrams", "group"):
        return udp_of(kind, ends, number, t_ns, name)
    return tcp_of(kind, ends, number, t_ns, name)


def both(frames: Sequence[Frame], **chosen: Any) -> tuple[list[Frame], list[dict[str, Any]]]:
    """The packets and the records of one run."""
    engine = make_engine(outputs=("packets", "jsonl"), window_ns=HOUR, **chosen)
    out = dict.fromkeys(("packets", "jsonl"), b"")
    feed(engine, frames)
    while True:
        more = engine.finish()
        for output in out:
            out[output] += engine.take(output)
        if not more:
            break
    engine.check()
    engine.close()
    return list(records(out["packets"])), [json.loads(line) for line in out["jsonl"].splitlines()]


def shown_in(talks: Sequence[Sequence[Frame]], left: Sequence[Frame]) -> dict[int, set[str]]:
    """By the first time of a flow, the servers and groups that its packets have."""
    begins = {frame.t_ns: talk[0].t_ns for talk in talks for frame in talk}
    found = defaultdict[int, set[str]](set)
    for frame in left:
        found[begins[frame.t_ns]] |= {str(one.address) for one in held(frame.data)} & TESTED
    return found


@pytest.mark.parametrize("established", [True, False])
@pytest.mark.parametrize("hold_ns", [0, MS, SECOND])
@settings(max_examples=examples(25))
@given(seed=st.integers(0, 1 << 32), number=st.integers(10, 90), z=st.integers(2, 4))
def test_a_server_that_packets_show_is_in_the_record(
    hold_ns: int, established: bool, seed: int, number: int, z: int
) -> None:
    """Also of flows that prove nothing, and if others share the server."""
    dice = random.Random(seed)
    talks = [talk_of(n, dice) for n in range(number)]
    chosen = {"z": z, "hold_ns": hold_ns, "established": established}
    left, logged = both(merged(talks), **chosen)
    servers = {one["t_start_ns"]: one["server"] for one in logged if one["server"]}
    for begin, addresses in shown_in(talks, left).items():
        assert addresses <= {servers.get(begin)}


def test_servers_and_groups_are_shown() -> None:
    """With three users of everything, records and packets show most servers."""
    dice = random.Random(1)
    talks = [talk_of(n, dice) for n in range(400)]
    left, logged = both(merged(talks), z=2, established=False)
    shown = set().union(*shown_in(talks, left).values())
    assert shown == {one["server"] for one in logged} & shown
    assert shown >= {*SERVERS, *SERVERS6, "239.77.66.55", "232.5.6.7", "ff05::7766", "ff15::9"}
    assert not shown & {"234.10.7.1", "ff3e:40:2001:db8::1", "ff02::1:ff00:7"}
