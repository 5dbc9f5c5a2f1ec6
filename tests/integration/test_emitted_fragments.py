# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Fragments in anonymized packets: each leaves at its place, or each is counted as dropped."""

import ipaddress
import itertools
import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.packets import internet_sum
from scenario.crowd import CLIENTS, CLIENTS6, SERVERS, SERVERS6
from scenario.quic import quic_visit
from scenario.visits import Visit, dns_visit
from support import wire
from support.engine import nets
from support.examples import examples
from support.fragments import framed, packet_of, piece, pieces
from support.packet_run import Emitted, anonymized, emitted, write_pcap
from support.packets import CLIENT, MS, SECOND, SERVER, START, Frame, Tcp, Udp, dns, merged, to_ip

PASSING: dict[str, Any] = {"z": 1, "established": False}  # of flows with and without names
ENDS = [{}, {"client": "fd00:7::1", "server": "2001:db8:7::53"}]
FAMILIES = pytest.mark.parametrize("ends", ENDS, ids=["IPv4", "IPv6"])
SECRET = b"canary" * 100
MORE, PLACE = 0x2000, 0x1FFF
NUMBER = 0x5A17C0DE


@dataclass(frozen=True, slots=True)
class Piece:
    """A fragment that left: its place in the datagram, and what all of one have in common."""

    start: int
    more: bool
    data: bytes
    number: int
    header: bytes  # of IP, but for lengths, place and checksum


def read(frame: Frame) -> Piece:
    """The fragment in a frame."""
    packet = frame.data[14:]
    if packet[0] >> 4 == 4:
        size, number, place = struct.unpack_from(">HHH", packet, 2)
        assert not any(packet[size:])
        head = packet[:1] + packet[8:10] + packet[12:20]
        return Piece((place & PLACE) * 8, bool(place & MORE), packet[20:size], number, head)
    size, following = struct.unpack_from(">HB", packet, 4)
    assert following == 44
    protocol, reserved, place, number = struct.unpack_from(">BBHI", packet, 40)
    assert (reserved, place & 6) == (0, 0)
    head = packet[:4] + bytes([protocol]) + packet[7:40]
    return Piece(place & 0xFFF8, bool(place & 1), packet[48 : 40 + size], number, head)


def joined(frames: Sequence[Frame]) -> tuple[bytes, bytes]:
    """(what the headers of the fragments share, the datagram that they make)."""
    found = [read(frame) for frame in frames]
    assert len({(one.number, one.header) for one in found}) == 1
    (end,) = {one.start + len(one.data) for one in found if not one.more}
    whole = bytearray(end)
    for one in found:
        whole[one.start : one.start + len(one.data)] = one.data
    return found[0].header, bytes(whole)


def is_valid(frames: Sequence[Frame]) -> bool:
    """Whether the datagram of the fragments is one of UDP with its length, its checksum and only
    zeros behind its header; and whether their headers of IPv4 have valid checksums."""
    _head, whole = joined(frames)
    packet = frames[0].data[14:]
    if packet[0] >> 4 == 4 and any(internet_sum(frame.data[14:34]) for frame in frames):
        return False
    ends = packet[12:20] if packet[0] >> 4 == 4 else packet[8:40]
    around = ends + struct.pack(">II", len(whole), wire.UDP)
    length, checksum = struct.unpack_from(">HH", whole, 4)
    valid = checksum != 0 and internet_sum(around + whole) in (0, 0xFFFF)
    return valid and length == len(whole) and not any(whole[8:])


def places(frames: Sequence[Frame]) -> list[tuple[int, int, int, bool]]:
    """Time, place, length and whether more follows."""
    return [(f.t_ns, p.start, len(p.data), p.more) for f in frames for p in [read(f)]]


def datagram(payload: bytes, ports: tuple[int, int] = (40000, 9999), **ends: str) -> bytes:
    """The IP packet of a datagram from the client."""
    (frame,) = Udp(ports=ports, **ends).send(payload).frames
    return packet_of(frame)


def parts_of(payload: bytes = SECRET, cuts: Sequence[int] = (24, 160), **ends: str) -> list[bytes]:
    return pieces(datagram(payload, **ends), cuts, NUMBER if ends else NUMBER & 0xFFFF)


def fates(run: Emitted) -> int:
    """The sum of all fates; those of frames that were not decoded are not among them."""
    left = run.stats["packets_passed"] + run.stats["packets_masked"]
    assert left == len(run.frames)
    return left + sum(run.dropped().values())


# ---- whole datagrams ----------------------------------------------------------------------------


@FAMILIES
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_each_leaves_at_its_place(ends: dict[str, str], order: tuple[int, ...]) -> None:
    parts = parts_of(**ends)
    sent = framed([parts[i] for i in order], START, MS)
    run = emitted(sent, **PASSING)
    assert places(run.frames) == places(sent)
    assert is_valid(run.frames)
    assert run.dropped() == {}
    assert run.stats["packets_passed"] == 3


@FAMILIES
def test_nothing_else_leaves(ends: dict[str, str], key_file: str) -> None:
    run = emitted(framed(parts_of(**ends), START), key_file=key_file, **PASSING)
    assert len(run.frames) == 3
    everything = b"".join(frame.data for frame in run.frames)
    number = NUMBER.to_bytes(4)
    user = ipaddress.ip_address(ends.get("client", "10.7.0.1")).packed
    for secret in (b"canary", b"yca", number, number[2:], user):
        assert secret not in everything


@FAMILIES
def test_copies_leave_too(ends: dict[str, str]) -> None:
    """Before the datagram is whole; a copy behind it begins another one, which stays incomplete."""
    one, two, three = parts_of(**ends)
    run = emitted(framed([one, two, one, two, three, two], START, MS), **PASSING)
    assert [read(frame).start for frame in run.frames] == [0, 24, 0, 24, 160]
    assert is_valid(run.frames)
    assert run.dropped() == {"fragment": 1}


def test_overlaps_that_agree() -> None:
    packet = datagram(SECRET)
    body = packet[20:]
    sent = [piece(packet, 0, body[:160], True), piece(packet, 80, body[80:240], True),
            piece(packet, 160, body[160:], False)]  # fmt: skip
    run = emitted(framed(sent, START, MS), **PASSING)
    assert [read(frame).start for frame in run.frames] == [0, 80, 160]
    assert is_valid(run.frames)


@FAMILIES
def test_the_identification_is_of_the_flow(ends: dict[str, str], key_file: str) -> None:
    sent = framed(parts_of(**ends), START, MS)
    again = framed(parts_of(b"other" * 50, **ends), START + SECOND, MS)
    numbered = pieces(datagram(SECRET, **ends), [24], 7)
    sent += again + framed(numbered, START + 2 * SECOND, MS)
    run = emitted(sent, key_file=key_file, **PASSING)
    found = [read(frame).number for frame in run.frames]
    assert len(set(found[:6])) == 1
    assert len(set(found[6:])) == 1
    assert found[6] != found[0]
    assert run.frames == emitted(sent, key_file=key_file, **PASSING).frames


@FAMILIES
def test_cut_behind_the_headers(ends: dict[str, str]) -> None:
    sent = framed(parts_of(**ends), START)
    run = emitted(sent, **PASSING, payload=1)
    assert len(run.frames) == 3
    for left, whole in zip(run.frames, emitted(sent, **PASSING).frames, strict=True):
        headers = 14 + (28 if not ends else 56) - (8 if read(whole).start else 0)
        assert (len(left.data), left.wire) == (headers, whole.wire)


def test_unfragmentable_fragments() -> None:
    """A host may say both: the identification must then be there."""
    packet = bytearray(datagram(SECRET))
    sent = []
    for part in pieces(bytes(packet), [24], 99):
        flagged = bytearray(part)
        flagged[6] |= 0x40
        sent.append(bytes(flagged))
    run = emitted(framed(sent, START), **PASSING)
    assert [frame.data[20] & 0x40 for frame in run.frames] == [0x40, 0x40]
    assert len({frame.data[18:20] for frame in run.frames}) == 1
    assert any(run.frames[0].data[18:20])


# ---- datagrams that do not leave ----------------------------------------------------------------


@FAMILIES
@pytest.mark.parametrize("missing", range(3))
def test_incomplete(ends: dict[str, str], missing: int) -> None:
    parts = parts_of(**ends)
    talk = Udp(ports=(40000, 9999), t_ns=START + SECOND, **ends).send(b"A").send(b"B", SERVER)
    sent = framed(parts[:missing] + parts[missing + 1 :], START, MS)
    run = emitted(sent + talk.frames, **PASSING)
    assert len(run.frames) == 2
    assert run.dropped() == {"fragment": 2}


@pytest.mark.parametrize(("wait_ns", "leave"), [(SECOND, 3), (SECOND + 1, 0)])
def test_whole_within_the_hold(wait_ns: int, leave: int) -> None:
    """Else the first one is due before its fate is known. No packet of a flow moves the clock in
    between, so this is the fragments' own time."""
    one, two, three = parts_of()
    sent = framed([one, two], START + 1000 * SECOND) + framed([three], START + 1000 * SECOND)
    sent[2] = replace(sent[2], t_ns=sent[0].t_ns + wait_ns)
    talk = Udp(ports=(40000, 9999), t_ns=START).send(b"A")
    for frames in (sent, talk.frames + sent):
        run = emitted(frames, **PASSING)
        assert len(run.frames) == leave + len(frames) - 3
        assert run.dropped() == ({} if leave else {"fragment": 3})


def test_without_a_hold_only_at_the_same_time() -> None:
    parts = parts_of()
    assert len(emitted(framed(parts, START), **PASSING, hold_ns=0).frames) == 3
    run = emitted(framed(parts, START, 1), **PASSING, hold_ns=0)
    assert (run.frames, run.dropped()) == ([], {"fragment": 3})


@FAMILIES
def test_contradictions(ends: dict[str, str]) -> None:
    packet = datagram(SECRET, **ends)
    parts = pieces(packet, [24, 160])
    other = piece(packet, 24, bytes(136), True)
    run = emitted(framed([parts[0], other, parts[1], parts[2]], START, MS), **PASSING)
    assert (run.frames, run.dropped()) == ([], {"fragment": 4})
    assert run.stats["drop_fragment_overlap"] == 4  # which only says why


def test_other_protocols() -> None:
    """They are put together for the logs, but leave no packet."""
    (syn,) = Tcp().segment(CLIENT, 2, bytes(100)).frames
    echo, _kind = to_ip(b"\x08\0\xf7\xff" + bytes(100), 1, ("10.7.0.1", "198.51.100.7"))
    sent = framed([*pieces(packet_of(syn), [24]), *pieces(echo, [24], 7)], START)
    run = emitted(sent, **PASSING)
    assert (run.frames, run.dropped()) == ([], {"fragment": 4})
    assert run.stats["datagrams"] == 2


def test_a_tunnel_in_fragments() -> None:
    """What is in it leaves with the frame that completes it."""
    inside = datagram(SECRET)
    outer, _kind = to_ip(inside, 4, ("192.0.2.1", "192.0.2.2"))
    run = emitted(framed(pieces(outer, [24, 160]), START, MS), **PASSING)
    assert [frame.t_ns for frame in run.frames] == [START + 2 * MS]
    assert len(run.frames[0].data) == 14 + len(inside)
    assert run.dropped() == {"fragment": 2}


def test_fragments_of_a_tunnel_and_in_it() -> None:
    outer = [to_ip(part, 4, ("192.0.2.1", "192.0.2.2"))[0] for part in parts_of()]
    assert len(emitted(framed(outer, START), **PASSING).frames) == 3
    cut = [part for n, packet in enumerate(outer) for part in pieces(packet, [16], n)]
    run = emitted(framed(cut, START), **PASSING)
    assert (run.frames, run.dropped()) == ([], {"fragment": 6})


def test_a_datagram_that_is_malformed() -> None:
    """The frame that completes it is counted with what is wrong with it."""
    packet = bytearray(datagram(SECRET))
    packet[24:26] = b"\xff\xff"
    run = emitted(framed(pieces(bytes(packet), [24, 160]), START), **PASSING)
    assert (run.frames, run.dropped()) == ([], {"fragment": 2})
    assert run.stats["drop_transport_malformed"] == 1


@pytest.mark.parametrize(
    ("ends", "ports", "settings", "why"),
    [
        ({"server": "169.254.3.4"}, (40000, 9999), {}, "local"),
        ({}, (5353, 5353), {}, "local"),
        ({}, (40000, 9999), {"internal": nets("192.168.0.0/16")}, "no_user"),
        ({}, (40000, 53), {"z": 2}, "suppressed"),
    ],
)
def test_the_fate_of_the_flow(
    ends: dict[str, str], ports: tuple[int, int], settings: dict[str, Any], why: str
) -> None:
    message = dns(b"a.example")[:10] + b"\0\1" + dns(b"a.example")[12:]
    message += b"\0\0\x29\x04\xd0\0\0\0\0" + wire.vector(2, b"\0\x0c" + wire.vector(2, bytes(300)))
    parts = pieces(datagram(message, ports, **ends), [24, 160])
    run = emitted(framed(parts, START), **(PASSING | settings))
    assert (run.frames, run.dropped()) == ([], {why: 3})


def test_a_released_name_is_zeros_in_fragments() -> None:
    """And none of it is in a later datagram of the flow, which is not understood."""
    message = dns(b"a.example") + bytes(200)
    talk = Udp(t_ns=START + MS).send(b"\0" * 4 + b"x" * 300)
    run = emitted(framed(pieces(datagram(message, (40000, 53)), [24]), START) + talk.frames,
                  **PASSING)  # fmt: skip
    assert len(run.frames) == 3
    assert is_valid(run.frames[:2])
    assert not any(run.frames[2].data[42:])


# ---- beside the same datagrams in one piece -----------------------------------------------------


def plain(visit: Visit, n: int) -> list[Frame]:
    talk = Udp(*visit.ends, (20000 + n, 9999), visit.start_ns)
    for side in (CLIENT, SERVER, CLIENT):
        talk.send(b"\x41plain" + bytes(50 + n % 30), side)
    return talk.frames


MAKERS = {"dns": dns_visit, "quic": quic_visit, "plain": plain}
PORTS = {"dns": 53, "quic": 443, "plain": 9999}


def conversations(dice: random.Random, number: int) -> list[Frame]:
    """Conversations of UDP, each frame at a time of its own."""
    talks = []
    for n in range(number):
        kind = dice.choice(["dns", "quic", "plain"])
        ends = (
            (dice.choice(CLIENTS6[:3]), dice.choice(SERVERS6[:2]))
            if dice.random() < 0.5
            else (dice.choice(CLIENTS[:3]), dice.choice(SERVERS[:2]))
        )
        start = START + dice.randrange(3000) * MS
        host = dice.choice([b"a.example", b"a.example", b"b.example"])
        visit = Visit(start, ends, kind, (host,), "whole", "open", PORTS[kind], (0, 0))
        talks.append(MAKERS[kind](visit, n))
    frames = merged(talks)
    return [replace(frame, t_ns=frame.t_ns + n) for n, frame in enumerate(frames)]


def numbered(frame: Frame, n: int) -> Frame:
    """The frame with an identification of its own."""
    if frame.data[12:14] != b"\x08\0":
        return frame
    return replace(frame, data=frame.data[:18] + n.to_bytes(2) + frame.data[20:])


def in_pieces(frame: Frame, n: int, dice: random.Random) -> list[Frame]:
    packet = packet_of(frame)
    room = (len(packet) - (20 if packet[0] >> 4 == 4 else 40) - 1) // 8
    cuts = {8 * dice.randint(1, room) for _ in range(dice.randint(1, 3))} if room else set()
    if not cuts:
        return [frame]
    parts = framed(pieces(packet, cuts, n), frame.t_ns)
    return dice.sample(parts, len(parts))


def bare(frame: Frame) -> tuple[bytes, bytes, bytes]:
    """The MAC addresses, the header as `joined` has it, and the header of UDP without its sum."""
    packet = frame.data[14:]
    four = packet[0] >> 4 == 4
    head = (packet[:1] + packet[8:10] + packet[12:20]) if four else (
        packet[:4] + packet[6:7] + packet[7:40])  # fmt: skip
    at = 20 if four else 40
    return frame.data[:14], head, packet[at : at + 6]


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 1 << 32), number=st.integers(1, 8), hold_ns=st.sampled_from([0, SECOND]))
def test_as_the_datagrams_in_one_piece(key_file: str, seed: int, number: int, hold_ns: int) -> None:
    """The same leave, with the same headers; feed sizes and workers change no byte."""
    dice = random.Random(seed)
    whole = [numbered(frame, n) for n, frame in enumerate(conversations(dice, number))]
    groups = [in_pieces(frame, n, dice) for n, frame in enumerate(whole)]
    sent = [frame for group in groups for frame in group]
    given_settings = {"z": dice.choice([1, 2]), "key_file": key_file, "hold_ns": hold_ns,
                      "exact": dice.random() < 0.3}  # fmt: skip
    expected = {frame.t_ns: frame for frame in emitted(whole, **given_settings).frames}
    run = emitted(sent, **given_settings)
    by_time = {t_ns: list(frames) for t_ns, frames in
               itertools.groupby(run.frames, key=lambda frame: frame.t_ns)}  # fmt: skip
    assert by_time.keys() == expected.keys()
    for group in groups:
        left = by_time.get(group[0].t_ns)
        if left is None:
            continue
        if len(group) == 1:
            assert bare(left[0]) == bare(expected[group[0].t_ns])
            continue
        assert places(left) == places(group)
        assert is_valid(left)
        head, body = joined(left)
        macs = {frame.data[:14] for frame in left}
        assert [(*macs, head, body[:6])] == [bare(expected[group[0].t_ns])]
    assert fates(run) == len(sent)
    for batch in (1, 5, 40):
        assert emitted(sent, **given_settings, batch=batch).frames == run.frames


def test_workers_change_no_byte(tmp_path: Path, key_file: str) -> None:
    """Frames of a capture are decoded ahead of their turn, by any thread."""
    dice = random.Random(26)
    frames = [numbered(frame, n) for n, frame in enumerate(conversations(dice, 700))]
    sent = [one for n, frame in enumerate(frames) for one in in_pieces(frame, n, dice)]
    sent += framed(parts_of()[:2], sent[-1].t_ns)
    capture = write_pcap(tmp_path / "in.pcap", sent)
    of_one, of_two = (
        anonymized(capture, key_file=key_file, workers=workers, z=1, evidence="any")
        for workers in (1, 2)
    )
    assert len(sent) > 4000
    assert len(of_one) > 2000
    assert of_one == of_two
