# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Names in packets that leave: none that z users do not share, however its bytes arrive.

A case is a connection with one name or two, whose bytes are split anywhere, repeated, overlapped,
sent in another order, or with another byte in a copy; packets come late. Users and names are few,
so that many names are shared and many are not; who shared what is counted by brute force, with
every exposure that the frames may show. ZANON_PACKET_NAMES=n runs n cases.
"""

import os
import random
from itertools import pairwise

import pytest
from scenario.crowd import delayed
from support import wire
from support.engine import NO
from support.packet_run import emitted
from support.packets import (
    ACK,
    CLIENT,
    MS,
    PSH,
    SECOND,
    SERVER,
    START,
    Frame,
    Tcp,
    Udp,
    dns,
    hello,
    merged,
    request,
    user,
)

Z, WINDOW = 3, 20 * SECOND
HOLDS = (0, MS, SECOND)
CASES = int(os.environ.get("ZANON_PACKET_NAMES", "3000"))
PER_RUN = 250
NAMES = [b"name-%d.example" % n for n in range(12)]
PORTS = {"tls": 443, "http": 80, "dns": 53}

pytestmark = pytest.mark.source


def pieces(chance: random.Random, data: bytes) -> list[tuple[int, bytes]]:
    """The data in segments, (offset, bytes), as a bad network delivers them."""
    cuts = sorted({chance.randrange(1, len(data)) for _ in range(chance.choice((0, 0, 1, 2, 5)))})
    edges = [0, *cuts, len(data)]
    parts = [(a, data[a:b]) for a, b in pairwise(edges)]
    for _ in range(chance.choice((0, 0, 1, 2))):
        at = chance.randrange(len(data))
        copy = bytearray(data[at : at + chance.randint(1, len(data))])
        if chance.random() < 0.3:
            copy[chance.randrange(len(copy))] ^= 1 << chance.randrange(8)
        parts.insert(chance.randint(0, len(parts)), (at, bytes(copy)))
    if chance.random() < 0.3:
        chance.shuffle(parts)
    return parts


def conversation(chance: random.Random, number: int, t_ns: int) -> tuple[list[Frame], list[bytes]]:
    """A case's frames, and its names."""
    kind = chance.choice(list(PORTS))
    client = user(chance.randrange(8))
    ports = (1025 + number % 60000, PORTS[kind])
    # skewed, so that some names are rare
    names = [NAMES[int(len(NAMES) * chance.random() ** 2)] for _ in range(chance.choice((1, 1, 2)))]
    pause = chance.choice((MS, MS, 40 * MS, 700 * MS))
    if kind == "dns":
        udp = Udp(client, ports=ports, t_ns=t_ns, step_ns=pause)
        for name in names:
            for _ in range(chance.choice((1, 1, 2))):
                side = CLIENT if chance.random() < 0.9 else SERVER
                udp.send(dns(name, response=chance.random() < 0.05), side)
            if chance.random() < 0.8:
                udp.send(dns(chance.choice(names), response=True), SERVER)
        return udp.frames, names
    tcp = Tcp(client, ports=ports, t_ns=t_ns, step_ns=pause)
    if chance.random() < 0.85:
        tcp.handshake()
    for name in names:
        data = hello(name) if kind == "tls" else request(name)
        start = tcp.next[CLIENT]
        for offset, part in pieces(chance, data):
            tcp.segment(CLIENT, PSH | ACK, part, seq=start + offset)
        tcp.next[CLIENT] += len(data)
        if chance.random() < 0.5:
            tcp.say(b"\x17\x03\x03\0\x04data", SERVER)
    if chance.random() < 0.5:
        tcp.close()
    return tcp.frames, names


def late(chance: random.Random, frames: list[Frame]) -> list[Frame]:
    """The frames, of which some come behind others that are later."""
    number = chance.choice((0, 5, 50, 400))
    by = (1, 3, 20, 200)
    return delayed(
        frames, [(chance.randrange(len(frames)), chance.choice(by)) for _ in range(number)]
    )


def shown(frame: Frame) -> set[bytes]:
    """The names whose text, or labels of DNS, the frame holds."""
    return {
        name
        for name in NAMES
        if name in frame.data or wire.dns_name(*name.split(b".")) in frame.data
    }


@pytest.mark.parametrize("kind", [{}, {"exact": True}, {"coarse_suppressed": True}])
@pytest.mark.parametrize("hold_ns", HOLDS)
def test_no_name_that_z_users_do_not_share(hold_ns: int, kind: dict[str, bool]) -> None:
    shows = 0
    for seed in range(max(1, CASES // PER_RUN // (3 * len(HOLDS)))):
        chance = random.Random(f"{seed} {hold_ns} {kind}")
        talks: list[list[Frame]] = []
        exposed: dict[bytes, list[tuple[int, int, bytes]]] = {name: [] for name in NAMES}
        for number in range(PER_RUN):
            frames, names = conversation(chance, number, START + number * 400 * MS)
            talks.append(frames)
            client = frames[0].data[26:30]
            for name in names:  # an upper bound: at any of its packets
                exposed[name].append((frames[0].t_ns, frames[-1].t_ns, client))
        left = emitted(
            late(chance, merged(talks)),
            batch=chance.choice((1, 7, 64, 1 << 14)),
            z=Z,
            window_ns=WINDOW,
            rotate_ns=chance.choice((WINDOW, SECOND)),
            hold_ns=hold_ns,
            hold_bytes=chance.choice((0, 64 << 20)),
            **kind,
        ).frames
        for frame in left:
            for name in shown(frame):
                # the flow's decision is at most as old as the longest conversation
                from_ns, until_ns = frame.t_ns - 10 * SECOND - WINDOW, frame.t_ns + hold_ns
                users = {
                    client
                    for first, last, client in exposed[name]
                    if last >= from_ns and first <= until_ns
                }
                assert len(users) >= Z, (seed, name)
                shows += 1
    assert shows > 0


@pytest.mark.parametrize("visitors", [Z - 1, Z])
def test_a_question_is_shown_by_visits_where_questions_do_not_count(visitors: int) -> None:
    talks = []
    for n in range(visitors):
        visit = Tcp(user(n), t_ns=START + n * MS)
        visit.handshake()
        visit.segment(CLIENT, PSH | ACK, hello(NAMES[0]))
        talks.append(visit.frames)
    asked = Udp(user(20), ports=(40000, 53), t_ns=START + SECOND)
    asked.send(dns(NAMES[0]), CLIENT)  # nobody answers
    talks.append(asked.frames)
    left = emitted(merged(talks), z=Z, window_ns=WINDOW, hold_ns=MS, dns_votes=NO).frames
    assert any(shown(frame) for frame in left[-1:]) == (visitors == Z)
