# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Floods beside ordinary users: tables stay within their caps, losses are counted, and no name is
released that too few users share."""

from collections.abc import Iterator

import numpy as np
import pytest
from oracle.ztable import ZOracle
from support import h2, wire
from support.engine import TCP_COMPLETE, Outcome, Taker, feed, make_engine
from support.fragments import framed, packet_of, piece
from support.packets import (
    CLIENT,
    HOUR,
    IPV4_SOURCE,
    MS,
    NAMED_AFTER_NS,
    SECOND,
    SERVER,
    SERVER_ADDRESS,
    START,
    SYN,
    Frame,
    Tcp,
    Udp,
    dns,
    merged,
    patched,
    user,
    visit,
)

Z, USERS, NAMES = 3, 6, 8
FLOOD = 12_000
BATCH = 2000
CAPS = {"max_flows": 512, "max_tuples": 1024, "max_attributes": 256}
CLIENTS_MAX = 1 << 20
IPV4_NUMBER, PORT = 18, 34  # where they are in an Ethernet frame


def popular(n: int) -> bytes:
    return b"popular%d.example.org" % n


def rare(n: int) -> bytes:
    return b"n%07d.flood.example.org" % n


def times() -> Iterator[int]:
    return (START + n * MS for n in range(FLOOD))


def syn_flood() -> list[Frame]:
    """SYNs with ever other forged sources."""
    (syn,) = Tcp().segment(CLIENT, SYN).frames
    return [
        patched(syn, IPV4_SOURCE, b"\x0a\x80" + n.to_bytes(2), t) for n, t in enumerate(times())
    ]


def unique_flows() -> list[Frame]:
    """One host scans: datagrams from ever other ports."""
    (datagram,) = Udp(user(999), ports=(1, 9)).send(b"x").frames
    return [patched(datagram, PORT, (1024 + n).to_bytes(2), t) for n, t in enumerate(times())]


def unique_names() -> list[Frame]:
    """One host looks up ever other names, and is answered."""
    frames = []
    for n, t_ns in enumerate(times()):
        ports = (1024 + n, 53)
        frames += Udp(user(999), ports=ports, t_ns=t_ns, step_ns=1000).lookup(rare(n)).frames
    return frames


def fragment_flood() -> list[Frame]:
    """First fragments of datagrams whose rest never comes."""
    (datagram,) = Udp(user(999)).send(dns(rare(0)) + bytes(600)).frames
    first = piece(packet_of(datagram), 0, packet_of(datagram)[20:276], more=True)
    (frame,) = framed([first], START)
    return [patched(frame, IPV4_NUMBER, n.to_bytes(2), t) for n, t in enumerate(times())]


FLOODS = {
    "SYNs": (syn_flood, "flows_evicted"),
    "flows": (unique_flows, "flows_evicted"),
    "names": (unique_names, "flows_evicted"),
    "fragments": (fragment_flood, "drop_fragment_evicted"),
}


def visits() -> list[list[Frame]]:
    """Each user visits each name once, while the flood lasts."""
    step_ns = FLOOD * MS // (USERS * NAMES)
    return [
        visit(user(i), popular(name), START + (i * NAMES + name) * step_ns)
        for i in range(USERS)
        for name in range(NAMES)
    ]


def allowed() -> set[tuple[int, str]]:
    """(time, name) of what at least Z users had exposed then."""
    oracle, step_ns = ZOracle(Z, HOUR), FLOOD * MS // (USERS * NAMES)
    releases = set()
    for i in range(USERS):
        for name in range(NAMES):
            t_ns = START + (i * NAMES + name) * step_ns + NAMED_AFTER_NS
            if oracle.observe(t_ns, i, name):
                releases.add((t_ns, popular(name).decode()))
    return releases


def sets_bytes(users: int) -> int:
    """What the clients of an epoch and those of the run take, up to CLIENTS_MAX whatever the caps:
    eight bytes a place, and more than half of the places free. What was outgrown is not given back.
    """
    places = 4096
    while 2 * (users - 1) >= places:
        places *= 2
    return 2 * 8 * (2 * places - 4096)


def run_flood(frames: list[Frame], **caps: int) -> tuple[Outcome, list[int]]:
    """The outcome, and the bytes that the engine had after each batch beside sets of clients."""
    taker, memory = Taker(make_engine(z=Z, **caps)), []
    for at in range(0, len(frames), BATCH):
        feed(taker.engine, frames[at : at + BATCH])
        taker.take()
        memory.append(taker.engine.memory_bytes - sets_bytes(taker.engine.users))
        tables = taker.engine.table_stats
        assert tables["attributes"] <= caps["max_attributes"]
        assert tables["tuples"] <= caps["max_tuples"]
    return taker.outcome(), memory


@pytest.mark.parametrize("flood", FLOODS)
def test_a_flood_is_held_counted_and_releases_nothing(flood: str) -> None:
    make, counter = FLOODS[flood]
    outcome, memory = run_flood(merged([*visits(), make()]), **CAPS)
    assert {(t_ns, name) for t_ns, name, _ in outcome.seen()} <= allowed()
    assert b"flood.example.org" not in outcome.everything()
    assert outcome.stats[counter] > 0
    assert outcome.stats["records"] == outcome.stats["flows_tcp"] + outcome.stats["flows_udp"]
    assert sum(flow["c_pkts"] + flow["s_pkts"] for flow in outcome.flows) == (
        outcome.stats["packets_tcp"] + outcome.stats["packets_udp"]
    )
    assert memory[-1] <= memory[len(memory) // 2] * 1.01  # it grows no more once caps are reached


def test_the_sets_of_clients_are_counted() -> None:
    """They are all that a full engine still takes memory for."""
    taker, frames, taken = Taker(make_engine(z=Z, **CAPS)), syn_flood(), []
    for at in range(0, FLOOD, BATCH):
        feed(taker.engine, frames[at : at + BATCH])
        taker.take()
        taken.append((taker.engine.memory_bytes, sets_bytes(taker.engine.users)))
    (before, of_before), (after, of_after) = taken[2], taken[-1]
    assert taker.engine.users == FLOOD
    assert of_after - of_before >= 1 << 19
    assert 0 <= (after - before) - (of_after - of_before) < 1 << 14


@pytest.mark.parametrize("flood", FLOODS)
def test_with_room_for_the_flood_users_lose_nothing(flood: str) -> None:
    """The releases are exactly those of a stream without the flood."""
    make, _ = FLOODS[flood]
    room = {"max_flows": 1 << 16, "max_tuples": 1 << 17, "max_attributes": 1 << 16}
    outcome, _ = run_flood(merged([*visits(), make()]), **room)
    assert {(t_ns, name) for t_ns, name, _ in outcome.seen()} == allowed()
    assert outcome.stats["flows_evicted"] == 0


def test_a_flood_of_names_from_everywhere_at_the_caps() -> None:
    """Forged sources share names in part: what is evicted may only suppress."""
    frames = []
    exposures = ZOracle(Z, HOUR)
    right = set()
    for n in range(FLOOD):
        client, name, t_ns = n % 500, n * n % 1201, START + n * MS
        ports = (1024 + n, 53)
        frames += Udp(user(client), ports=ports, t_ns=t_ns, step_ns=1000).lookup(rare(name)).frames
        if exposures.observe(t_ns, client, name):
            right.add((t_ns + 1000, rare(name).decode()))
    outcome, _ = run_flood(frames, **CAPS)
    seen = {(t_ns, name) for t_ns, name, _ in outcome.seen()}
    assert seen <= right
    assert 0 < len(seen) < len(right)


def test_the_floods_frames_are_what_they_say() -> None:
    for make, _ in FLOODS.values():
        frames = make()
        assert len({frame.data for frame in frames}) == len(frames) >= FLOOD
        assert all(frame.data[12:14] == wire.ETHERTYPE_IPV4.to_bytes(2) for frame in frames)
    assert syn_flood()[-1].t_ns - START < 20 * SECOND


def test_a_full_table_takes_new_flows_however_many_came_before() -> None:
    """What the index needs for flows at one time, it has for those that come later."""
    flows = 40_000
    (lone,) = Udp(user(0), ports=(1, 9), t_ns=START).send(b"x").frames
    taker = Taker(make_engine(z=1, established=False, max_flows=CAPS["max_flows"]))
    for at in range(0, flows, BATCH):
        numbers = range(at, at + BATCH)
        feed(taker.engine, [patched(lone, IPV4_SOURCE, n.to_bytes(4), START + n) for n in numbers])
        taker.engine.check()
        taker.take()
    stats = taker.engine.stats
    assert stats["drop_flow_table_full"] == 0
    assert stats["flows_udp"] == flows
    assert stats["flows_evicted"] > flows - 2 * CAPS["max_flows"]


@pytest.mark.parametrize("max_flows", [60_000, 1 << 20])
def test_flows_are_found_when_the_index_has_grown(max_flows: int) -> None:
    """Those that were there before, and those that are not there any more."""
    flows, parts, at = 50_000, 10, START
    (lone,) = Udp(user(0), ports=(1, 9), t_ns=START).send(b"x").frames
    (answer,) = Udp(user(0), ports=(1, 9), t_ns=START).send(b"y", SERVER).frames
    engine = make_engine(z=1, established=False, max_flows=max_flows)
    taker = Taker(engine)
    memory = []
    for step in range(parts):
        numbers = range(step, flows, parts)
        feed(engine, [patched(lone, IPV4_SOURCE, n.to_bytes(4), at) for n in numbers])
        engine.check()
        assert engine.flow_memory[0] == (step + 1) * flows // parts
        memory.append(engine.flow_memory[1])
    by_flows = 2 * (memory[7] - memory[6])
    assert memory[9] - memory[7] > by_flows + (15 << 20 if max_flows == 1 << 20 else 1 << 18)
    for step in range(parts):
        numbers = range(step, flows, parts)
        feed(engine, [patched(answer, IPV4_SOURCE + 4, n.to_bytes(4), at) for n in numbers])
    feed(engine, [patched(lone, IPV4_SOURCE, b"\xff" * 4, START + 11 * SECOND)])
    engine.check()
    assert engine.flow_memory[0] == flows + 1
    assert engine.stats["flows_udp"] == flows + 1
    feed(engine, [patched(lone, IPV4_SOURCE, b"\xff" * 4, START + 400 * SECOND)])
    while engine.waiting:
        taker.take()
        engine.flush()
    engine.check()
    assert engine.flow_memory[0] == 1
    outcome = taker.outcome()
    assert [flow["s_pkts"] for flow in outcome.flows].count(1) == flows


def test_where_no_more_clients_can_be_remembered_no_server_is_told() -> None:
    """Anybody may have been a client then; names are still told."""
    (syn,) = Tcp().segment(CLIENT, SYN).frames
    sources = np.arange(CLIENTS_MAX + BATCH, dtype=">u4") + 0x0A800000
    frames = np.tile(np.frombuffer(syn.data, np.uint8), (len(sources), 1))
    frames[:, IPV4_SOURCE : IPV4_SOURCE + 4] = sources.view(np.uint8).reshape(-1, 4)
    lengths = np.full(len(sources), len(syn.data), np.uint32)
    servers = []
    for n in (CLIENTS_MAX - BATCH, CLIENTS_MAX + BATCH):
        taker = Taker(make_engine(z=Z, outputs=(TCP_COMPLETE,), max_flows=1 << 10))
        for at in range(0, n, 1 << 16):
            part = slice(at, min(at + (1 << 16), n))
            times_ns = START + np.arange(part.start, part.stop, dtype=np.int64)
            taker.engine.feed(frames[part].ravel(), times_ns, lengths[part], lengths[part], 1)
        feed(taker.engine, merged([visit(user(i), popular(0), START + SECOND) for i in range(Z)]))
        outcome = taker.outcome()
        assert outcome.stats["released"] == 1
        servers.append([line["s_ip"] for line in outcome.log(TCP_COMPLETE)][-1])
    assert servers == [SERVER_ADDRESS, "-"]
    assert outcome.stats["addr_client_set_incomplete"] == Z


def long_name(n: int, length: int) -> bytes:
    """A hostname of as many bytes: labels of 40 and less."""
    text = b"%07d" % n + b"." + b".".join([b"x" * 39] * 7)
    return text[: length - 1].rstrip(b".").ljust(length - 1, b"y") + b"z"


def lookups(names: list[bytes]) -> list[Frame]:
    """Each name looked up and answered, by a host and from a port of its own."""
    frames = []
    for n, name in enumerate(names):
        talk = Udp(user(n % 200), ports=(1024 + n, 53), t_ns=START + n * MS, step_ns=1000)
        frames += talk.lookup(name).frames
    return frames


def test_short_names_of_live_flows_take_less_memory() -> None:
    flows, memory = 4000, []
    for length in (63, 64):
        engine = make_engine(z=1)
        feed(engine, lookups([long_name(n, length) for n in range(flows)]))
        memory.append(engine.memory_bytes)
    short, longer = memory
    assert longer - short > 150 * flows


def test_the_header_tables_of_http2_are_counted() -> None:
    """The table of a connection takes more than 4 KiB."""
    count, memory = 100, []
    for request in (h2.opening(popular(0)), b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % popular(0)):
        engine = make_engine(z=1)
        talks = (Tcp(user(n), ports=(40000, 80)).handshake().say(request) for n in range(count))
        feed(engine, merged(talk.frames for talk in talks))
        memory.append(engine.memory_bytes)
    tables, none = memory
    assert tables - none > 4096 * count


def test_released_names_of_any_length_are_kept_whole() -> None:
    """Also where others were kept before, longer or shorter."""
    lengths = [9, 253, 62, 63, 64, 65, 127, 252]
    names = [long_name(n, lengths[n % len(lengths)]) for n in range(2000)]
    taker = Taker(make_engine(z=1, max_flows=64))
    feed(taker.engine, lookups(names))
    outcome = taker.outcome()
    assert [name for _, name, _ in outcome.seen()] == [name.decode() for name in names]
