# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`--suppressed coarse`: which flows leave coarsely, and what their packets say."""

import random
import struct
from ipaddress import ip_address
from typing import Any

import pytest
from oracle.coarse import BLOCK
from oracle.packet_addresses import block_of
from oracle.packets import found_in, payload_of
from scenario.answers import resolved
from scenario.quic import quic_visit
from scenario.transfers import RARE, SYN_OPTIONS, Plan, Transfer
from scenario.visits import Visit
from support import wire
from support.engine import nets
from support.packet_run import Emitted, emitted
from support.packets import (
    CLIENT,
    MS,
    SECOND,
    SERVER,
    SERVER_ADDRESS,
    START,
    Frame,
    Tcp,
    Udp,
    crowd,
    dns,
    hello,
    merged,
    request,
    tcp_segment,
    user,
    visit,
)

from zanon_net.errors import ConfigError

CUT = 1  # the number of --payload cut
NONE = 1  # the number of --coarse-client none
SHARED = b"shared.example"
LATER = START + 5 * SECOND


def left_of(frames: list[Frame], **more: Any) -> Emitted:
    return emitted(frames, **({"z": 2, "coarse_suppressed": True} | more))


def visited(answer: int) -> list[Frame]:
    """A connection to a rare name, whose server sends so many bytes."""
    return Transfer(Plan(sizes=(0, answer)), random.Random(0)).frames


def sizes(frames: list[Frame]) -> list[int]:
    return [len(payload_of(frame.data)) for frame in frames]


@pytest.mark.parametrize(("answer", "rounded"), [(1, 1), (16_384, 1), (16_385, 2), (50_000, 4)])
def test_streams_are_rounded_up(answer: int, rounded: int) -> None:
    frames = visited(answer)
    run = left_of(frames)
    assert run.stats["packets_masked"] == len(run.frames) == len(frames)
    assert run.dropped() == {}
    sent = [size for frame, size in zip(run.frames, sizes(run.frames), strict=True)
            if found_in(frame.data).ports[0] == 443]  # fmt: skip
    assert sorted(sent, reverse=True)[: rounded + 1] == [BLOCK] * rounded + [0]
    assert run.stats["packets_bytes_zeroed"] == (rounded + 1) * BLOCK
    assert run.stats["packets_names_masked"] == 0


def test_what_a_packet_says() -> None:
    """Zeros, one window, and addresses that are no host's."""
    run = left_of(visited(20_000))
    for frame in run.frames:
        n, header = found_in(frame.data), frame.data[34:54]
        assert not any(payload_of(frame.data))
        assert header[14:16] == b"\xff\xff"
        blocks = [block_of(n.source), block_of(n.target)]
        assert blocks == (["client", "pair"] if n.ports[1] == 443 else ["pair", "client"])
    assert run.frames[0].data[54:64] == SYN_OPTIONS[:10]
    assert run.stats["packets_servers_pair"] == 1


def test_packets_without_payload_have_the_rounded_length() -> None:
    whole, cut = left_of(visited(20_000)).frames, left_of(visited(20_000), payload=CUT).frames
    assert [frame.wire for frame in cut] == [frame.wire for frame in whole]
    assert max(frame.wire for frame in cut) == 54 + BLOCK
    assert {len(frame.data) for frame in cut} == {54, 66}


def test_a_segment_that_grows_too_long_does_not_leave() -> None:
    """Four multiples of a block lie in it, more than a length field can say."""
    talk = Tcp().handshake().say(hello(RARE)).say(bytes(60_000), SERVER).say(bytes(9), SERVER)
    run = left_of(talk.frames)
    assert run.dropped() == {"cut": 1}
    assert len(run.frames) == len(talk.frames) - 1
    six = Tcp("fd00:7::1", "2001:db8::1").handshake().say(hello(RARE)).say(bytes(49_152), SERVER)
    assert max(sizes(left_of(six.frames).frames)) == 3 * BLOCK


def test_blocks_of_sack() -> None:
    """Of which nothing is left become no-operations."""
    edges = 500_001, 501_461, 500_001 + BLOCK - 9, 500_001 + BLOCK + 9
    option = b"\1\1\5\x12" + struct.pack(">4I", *edges)
    talk = Tcp().handshake().say(hello(RARE))
    segment = tcp_segment(talk.ports, 0x10, talk.next[CLIENT], 500_001)
    segment = segment[:12] + bytes([10 << 4]) + segment[13:] + option
    packet = wire.ipv4(segment, wire.TCP, addresses=(talk.client, talk.server))
    data = wire.ethernet(packet)
    left = left_of([*talk.frames, Frame(talk.t_ns, data, len(data))]).frames
    start = found_in(left[1].data).seq + 1
    shown = tuple((start + at) % 2**32 for at in (BLOCK, 2 * BLOCK))
    assert found_in(left[-1].data).sacks == (start, (start + BLOCK) % 2**32, *shown)
    middle = struct.pack(">4I", 500_101, 500_999, 500_001 + BLOCK - 9, 500_001 + BLOCK + 9)
    data = data[:58] + middle + data[74:]
    left = left_of([*talk.frames, Frame(talk.t_ns, data, len(data))]).frames
    start = found_in(left[1].data).seq + 1
    shown = tuple((start + at) % 2**32 for at in (BLOCK, 2 * BLOCK))
    assert left[-1].data[54:].endswith(struct.pack(">2I", *shown) + b"\1" * 8)
    assert found_in(left[-1].data).sacks == shown


def test_flows_that_stay_away() -> None:
    """Datagrams have no positions; a flow of which it is open whether it has a name may pass."""
    quic = quic_visit(Visit(START, (user(1), SERVER_ADDRESS), "quic", (RARE,)), 1)
    dns = Udp(user(2)).lookup(RARE).frames
    mute = Tcp(user(3), ports=(40_000, 25)).handshake().say(bytes(9), SERVER)
    mute.wait(2 * SECOND).say(bytes(9), SERVER)
    run = left_of(merged([quic, dns, mute.frames]))
    assert run.stats["packets_masked"] == 0
    assert run.dropped() == {"suppressed": len(quic) + 2, "undecided": len(mute.frames) - 2}


def test_errors_about_a_coarse_flow_stay_away() -> None:
    talk = Tcp(user(1)).handshake().say(hello(RARE))
    quote = wire.ipv4(
        tcp_segment(talk.ports, 16, 1001, 500_001), wire.TCP, addresses=(talk.client, talk.server)
    )
    error = wire.ipv4(b"\3\1" + bytes(6) + quote, 1, addresses=("192.0.2.9", talk.client))
    data = wire.ethernet(error)
    run = left_of([*talk.frames, Frame(talk.t_ns, data, len(data))])
    assert run.stats["packets_masked"] == len(talk.frames)
    assert run.dropped() == {"suppressed": 1}
    assert run.stats["packets_flows_turned"] == 0


def test_flows_that_pass_stay_as_they_are() -> None:
    frames = [*crowd(SHARED, 3), *Tcp(user(9), t_ns=LATER).handshake().say(hello(SHARED)).frames]
    passed = [sizes(left_of(frames, coarse_suppressed=one).frames)[-6:] for one in (False, True)]
    assert passed[0] == passed[1]
    assert max(passed[0]) < BLOCK


def test_a_flow_that_turned_stays_away() -> None:
    """Packets of it left with their own lengths, and perhaps its server's address."""
    talk = Tcp(user(9), ports=(40_000, 80), t_ns=LATER).handshake().say(request(SHARED))
    before = talk.t_ns
    talk.wait(2 * SECOND).say(request(RARE)).say(bytes(100), SERVER)
    shared = [Tcp(user(n), ports=(40_000, 80), t_ns=START + n * 20 * MS) for n in range(3)]
    crowds = [one.handshake().say(request(SHARED)).say(b"x", SERVER).frames for one in shared]
    run = left_of(merged([*crowds, talk.frames]), hold_ns=SECOND)
    assert run.stats["packets_flows_turned"] == 1
    own = [frame for frame in run.frames if frame.t_ns >= LATER]
    assert max(frame.t_ns for frame in own) < before
    assert max(sizes(own)) < BLOCK


def test_a_flow_that_was_open_leaves_from_then_on() -> None:
    """Its positions count from its SYN, although that did not leave."""
    frames = visited(20_000)
    late = left_of(frames, hold_ns=0)
    whole = left_of(frames)
    assert set(late.dropped()) == {"undecided"}
    assert 0 < len(late.frames) < len(whole.frames)
    assert sizes(late.frames) == sizes(whole.frames)[-len(late.frames) :]


@pytest.mark.parametrize("first", [1000, 2**32 - 9000])
def test_a_connection_that_was_joined(first: int) -> None:
    """Positions count from what is known first, and numbers wrap."""
    for answer in (50_000, 4 * BLOCK):
        plan = Plan(sizes=(0, answer), starts=(7, first), whole=False)
        frames = Transfer(plan, random.Random(0)).frames
        run = left_of(frames)
        assert run.stats["packets_masked"] == len(frames)
        assert sum(sizes(run.frames)) == (4 + 1) * BLOCK


@pytest.mark.parametrize(("port", "shown"), [(443, 443), (853, 853), (8443, 9), (22, 9)])
def test_ports_say_no_more_than_those_of_records(port: int, shown: int) -> None:
    """Nor do clients' where they are kept of flows that pass."""
    talk = Tcp(ports=(40_000, port)).handshake().say(hello(RARE))
    run = left_of(talk.frames, keep_client_port=True)
    assert {found_in(frame.data).ports[1] for frame in run.frames[::3]} == {shown}
    assert found_in(run.frames[0].data).ports[0] not in (40_000, port)
    kept = emitted(talk.frames, z=1, keep_client_port=True).frames
    assert found_in(kept[0].data).ports == (40_000, port)


def test_coarse_and_exact_contradict() -> None:
    with pytest.raises(ConfigError, match="exact measurements are not coarse"):
        left_of([], exact=True)


def test_no_answer_names_the_server_of_a_coarse_flow() -> None:
    """More users ask DNS for a name than visit it: the answer is shown, and what stands in it for
    the server stands in no packet of the one who visits it."""
    asked = [Udp(user(n), "192.0.2.53", t_ns=START + n * SECOND) for n in range(3)]
    for talk in asked:
        talk.send(dns(RARE)).send(dns(RARE, response=True, answers=[resolved(SERVER_ADDRESS)]), 1)
    frames = merged([*(talk.frames for talk in asked), visit(user(2), RARE, LATER)])
    run = left_of(frames)
    told = [payload_of(one.data)[-4:] for one in run.frames if found_in(one.data).ports[0] == 53]
    assert len(told) == len(set(told)) == 2
    coarse = [one for one in run.frames if one.t_ns >= LATER]
    assert run.stats["packets_masked"] == len(coarse) == 10
    ends = {end for one in coarse for end in (found_in(one.data).source, found_in(one.data).target)}
    assert not {end.packed for end in ends} & set(told)


def test_pseudonyms_are_of_the_flow() -> None:
    """As of all packets: the addresses are none of the frames that came."""
    run = left_of(visited(100))
    real = {ip_address("10.7.0.1"), ip_address(SERVER_ADDRESS)}
    found = {end for frame in run.frames for end in (found_in(frame.data).source,
                                                     found_in(frame.data).target)}  # fmt: skip
    assert len(found) == 2
    assert not found & real


@pytest.mark.parametrize("client", [user(1), "fd00:7::1"])
@pytest.mark.parametrize("inside", [False, True], ids=["server outside", "server inside"])
def test_coarse_packets_hide_the_client_if_coarse_records_do(client: str, inside: bool) -> None:
    """Each flow has addresses of its own, and none of them is the client's pseudonym."""
    six = ":" in client
    server = (
        ("fd00:9::1" if six else "10.9.0.1") if inside else "2001:db8::1" if six else SERVER_ADDRESS
    )
    both = {"internal": nets("10.0.0.0/8", "fd00::/8"), "coarse_client": NONE}
    talks = [
        Tcp(client, server, ports=(port, 443), t_ns=START + n * SECOND).handshake().say(hello(name))
        for n, (port, name) in enumerate([(50_000, SHARED), (50_001, RARE), (50_002, RARE)])
    ]
    crowd_of_shared = crowd(SHARED, 3, START - 10 * SECOND)
    left = left_of([*crowd_of_shared, *merged(talk.frames for talk in talks)], **both).frames
    ends = [
        {
            end
            for frame in left
            if START + n * SECOND <= frame.t_ns < START + (n + 1) * SECOND
            for end in (found_in(frame.data).source, found_in(frame.data).target)
        }
        for n in range(3)
    ]
    named, *coarse = ends
    assert [len(one) for one in ends] == [2, 2, 2]
    assert not named & (coarse[0] | coarse[1])
    assert {block_of(end) for one in coarse for end in one} == {"pair"}
    servers = coarse[0] & coarse[1]
    assert len(servers) == (0 if inside else 1)


@pytest.mark.parametrize("hides", [True, False])
def test_coarse_packets_have_no_header_that_identifies_the_hidden_client(hides: bool) -> None:
    """A tag is the line of a subscriber: its pseudonym would link coarse flows to named flows."""

    def tagged(frame: Frame) -> Frame:
        data = frame.data[:12] + b"\x81\x00\x00\x07" + frame.data[12:]
        return Frame(frame.t_ns, data, len(data))

    visits = [*crowd(SHARED, 3, START), *visit(user(1), RARE, LATER)]
    settings = {"coarse_client": NONE if hides else 0, "keep_encapsulation": True}
    left = left_of([tagged(frame) for frame in visits], **settings).frames
    tags = {one.t_ns >= LATER: one.data[12:14] == b"\x81\x00" for one in left}
    assert tags == {False: True, True: not hides}
