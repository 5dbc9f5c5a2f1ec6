# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Messages of ICMP, and datagrams in fragments, beside a second implementation: every byte."""

import ipaddress
import random
import struct
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.packet_messages import MessageChecker, MessageFates, Part
from oracle.packets import MASKED, PASSED, internet_sum
from oracle.rules import Rules
from property.test_packets_oracle import conversations, engine_settings, explained, rules_of
from scenario.crowd import CLIENTS, CLIENTS6, SERVERS, SERVERS6
from support import wire
from support.examples import examples
from support.fragments import framed, packet_of, pieces
from support.packet_run import emitted
from support.packets import MS, SECOND, Frame, Tcp, merged

pytestmark = pytest.mark.source

HOLDS = (0, 40 * MS, SECOND)
PAYLOADS = ("zero", "cut")
PAUSES = (MS, 100 * MS, 700 * MS)  # between fragments, which are put together within 15 s
ROUTERS = {True: ("10.7.0.254", "203.0.113.9"), False: ("fd00:7::fe", "2001:db8:9::9")}
ERRORS = {True: ((3, 1), (3, 4), (11, 0), (12, 0), (5, 1)), False: ((1, 4), (2, 0), (3, 0), (4, 1))}
OTHERS = {True: (8, 0, 13, 40, 9, 17), False: (128, 129, 127, 135, 200)}


def message(dice: random.Random, ends: tuple[str, str], kind: int, code: int, word: bytes,
            rest: bytes, t_ns: int) -> Frame:  # fmt: skip
    """A frame with an ICMP message."""
    four = "." in ends[0]
    body = bytes([kind, code, 0, 0]) + word + rest
    protocol = 1 if four else 58
    packet = bytearray(
        wire.ipv4(body, protocol, addresses=ends)
        if four
        else wire.ipv6(body, protocol, addresses=ends)
    )
    if four:
        packet[1] = dice.randrange(256)
        packet[4:6] = dice.randbytes(2)
        packet[6:8] = dice.choice([b"\x40\0", b"\0\0"])
        packet[8] = dice.choice((1, 64, 65, 255))
        packet[10:12] = b"\0\0"
        packet[10:12] = internet_sum(bytes(packet[:20])).to_bytes(2)
    return framed([bytes(packet)], t_ns)[0]


def address_text(packet: bytes, end: int) -> str:
    """The source (0) or target (1) of a packet."""
    at, size = (12, 4) if packet[0] >> 4 == 4 else (8, 16)
    return str(ipaddress.ip_address(packet[at + end * size : at + (end + 1) * size]))


def error_about(dice: random.Random, frame: Frame, t_ns: int) -> Frame:
    """An error about the packet in a frame, from a router or its receiver, mostly to its sender."""
    packet = packet_of(frame)
    four = packet[0] >> 4 == 4
    source, target = address_text(packet, 0), address_text(packet, 1)
    kind, code = dice.choice(ERRORS[four])
    sender = dice.choice([target, dice.choice(ROUTERS[four])])
    receiver = source if dice.random() < 0.85 else dice.choice([target, *ROUTERS[four]])
    header = 20 if four else 40
    quoted = packet[: dice.choice((header + 8, header + 8, header + 20, len(packet)))]
    quoted = packet[: dice.randrange(len(packet))] if dice.random() < 0.1 else quoted
    word = bytearray(dice.randbytes(4))
    word[1 if four else 0] = 0
    if dice.random() < 0.3:  # objects behind the quote (RFC 4884)
        word[1 if four else 0] = 32 if four else 16
        quoted = quoted.ljust(128, b"\0")[:128] + b"\x20\0\xab\xcd\0\x08\1\1objs"
    return message(dice, (sender, receiver), kind, code, bytes(word), quoted, t_ns)


def chatter(dice: random.Random, frames: list[Frame]) -> Iterator[Frame]:
    """Messages between the packets: errors about them and about others, echoes and more."""
    for n, frame in enumerate(frames[:-1]):
        t_ns = frame.t_ns + 1 + n % 7
        if t_ns >= frames[n + 1].t_ns or dice.random() < 0.5:
            continue
        four = dice.random() < 0.6
        ends = [dice.choice((CLIENTS if four else CLIENTS6)[:4])]
        ends.insert(dice.randrange(2), dice.choice((SERVERS if four else SERVERS6)[:2]))
        if dice.random() < 0.6:
            recent = [one for one in frames[max(0, n - 8) : n + 1] if t_ns - one.t_ns < 5 * SECOND]
            yield error_about(dice, dice.choice(recent), t_ns)
        elif dice.random() < 0.3:
            stranger = Tcp(ends[0], ends[1], (3, 4)).handshake().frames[0]
            yield error_about(dice, stranger, t_ns)
        else:
            kind = dice.choice(OTHERS[four])
            word = struct.pack(">HH", dice.randrange(3), dice.randrange(1 << 16))
            rest = b"data of a host" * dice.randrange(4)
            yield message(dice, (ends[0], ends[1]), kind, 0, word, rest, t_ns)


def in_parts(dice: random.Random, frames: list[Frame]) -> list[Frame]:
    """Some datagrams in fragments, of which the last one comes when the datagram did."""
    out, number = [], 0
    begun: set[frozenset[tuple[str, bytes]]] = set()
    for n, frame in enumerate(frames):
        packet = packet_of(frame)
        four = packet[0] >> 4 == 4
        header = 20 if four else 40
        length = len(packet) - header
        ports = packet[header : header + 2], packet[header + 2 : header + 4]
        ends = frozenset((address_text(packet, end), port) for end, port in enumerate(ports))
        is_first = ends not in begun  # without it an answer would be taken for a question
        begun.add(ends)
        is_udp = packet[9 if four else 6] == wire.UDP
        if not is_udp or length < 24 or dice.random() < 0.4:
            out.append(frame)
            continue
        number += 1
        cuts = sorted({8 * dice.randrange(1, length // 8) for _ in range(dice.randint(1, 3))})
        parts = pieces(packet, cuts, number)
        if dice.random() < 0.4:
            dice.shuffle(parts)
        if dice.random() < 0.1 and not is_first:
            del parts[dice.randrange(len(parts))]
        before_ns = frames[n - 1].t_ns if n else frame.t_ns - MS
        step = min(dice.choice(PAUSES), max(1, (frame.t_ns - before_ns) // (len(parts) + 1)))
        if frame.t_ns - step * (len(parts) - 1) <= before_ns:
            out.append(frame)
            continue
        out += framed(parts, frame.t_ns - step * (len(parts) - 1), step)
    return out


def traffic(dice: random.Random, number: int, chosen: Rules) -> list[Frame]:
    """Conversations with messages between them; the last frame is a packet of a flow."""
    plain = conversations(dice, number, chosen)
    apart = []
    for frame in plain:  # no two at a time: what comes first is then seen first
        t_ns = max(frame.t_ns, apart[-1].t_ns + 10 if apart else 0)
        apart.append(Frame(t_ns, frame.data, frame.wire))
    frames = in_parts(dice, apart)
    end = Tcp("10.7.0.3", t_ns=frames[-1].t_ns + 10).handshake().frames
    return merged([frames, list(chatter(dice, frames)), end])


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("hold_ns", HOLDS)
@settings(max_examples=examples(15))
@given(seed=st.integers(0, 1 << 32), number=st.integers(1, 10))
def test_messages_and_fragments(
    key_file: str, hold_ns: int, payload: str, seed: int, number: int
) -> None:
    dice = random.Random(seed)
    chosen = rules_of(dice)
    given_frames = traffic(dice, number, chosen)
    fates = MessageFates(chosen, hold_ns, given_frames).run()
    batch = dice.choice([1, 7, 1 << 14])
    run = emitted(given_frames, batch=batch, **engine_settings(chosen, hold_ns, payload, key_file))
    leaving = [fate for fate in fates if fate.what in (PASSED, MASKED)]
    assert [frame.t_ns for frame in run.frames] == [fate.frame.t_ns for fate in leaving], explained(
        fates, run.frames
    )
    told = Counter(run.dropped())
    told[PASSED], told[MASKED] = (run.stats[f"packets_{one}"] for one in (PASSED, MASKED))
    assert +told == +Counter(fate.what for fate in fates)
    checker = MessageChecker(chosen, cut=payload == "cut")
    for fate, left in zip(leaving, run.frames, strict=True):
        checker.check(fate, fate.frame, left)


def test_the_traffic_has_all_kinds(key_file: str) -> None:
    """Errors that are bound to a flow and those that are not, echoes, and fragments leave."""
    kinds: Counter[str] = Counter()
    for seed in range(12):
        dice = random.Random(seed)
        chosen = rules_of(dice)
        for fate in MessageFates(chosen, SECOND, traffic(dice, 8, chosen)).run():
            name = type(fate).__name__ + (" of a flow" if fate.course else "")
            kinds[f"{name}: {fate.what in (PASSED, MASKED)}"] += 1
    assert min(kinds[f"{name}: True"] for name in ("Message", "Message of a flow")) > 20
    assert kinds[f"{Part.__name__} of a flow: True"] > 20
