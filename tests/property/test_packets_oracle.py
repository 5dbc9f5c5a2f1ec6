# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Anonymized packets beside a second implementation: the fate of each frame, and every byte."""

import random
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from frames.link import LINKS
from frames.tunnel import TUNNELS
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.packets import MASKED, PASSED, Checker, Fate, Fates, internet_sum
from oracle.rules import Rules
from scenario import visits
from scenario.crowd import CLIENTS, CLIENTS6, KEY, SERVERS, SERVERS6
from scenario.quic import quic_visit
from scenario.visits import Visit, dns_visit, tcp_visit
from support import wire
from support.engine import ALL, NO, OWN, nets
from support.examples import examples
from support.packet_run import Emitted, emitted
from support.packets import (
    ACK,
    CLIENT,
    MS,
    PSH,
    RST,
    SECOND,
    SERVER,
    START,
    SYN,
    Frame,
    Tcp,
    Udp,
    merged,
    tcp_segment,
)

pytestmark = pytest.mark.source

HOLDS = (0, MS, SECOND)
HOSTS = (b"a.example", b"a.example", b"a.example", b"b.example", b"c.example", b"printer.local")
VOTES = {"own": OWN, "all": ALL, "no": NO}
PAYLOADS = {"zero": 0, "cut": 1}
# What the second implementation does not know: a prefix in a segment of its own, copies of a hello
# that differ, and when a hello of QUIC shows that it names nobody.
UNKNOWN = ("tls", "behind"), ("dns over tcp", "behind"), ("quic", "conflict"), ("quic", "nameless")
HOW = {
    kind: tuple(how for how in visits.HOW[kind] if (kind, how) not in UNKNOWN)
    for kind in ("tls", "http", "h2", "dns", "dns over tcp", "quic")
}
KINDS = ("tls", "tls", *HOW, "plain", "closed")
PORTS = {"http": 80, "h2": 80, "dns": 53, "dns over tcp": 53}  # else 443
SUITABLE_TTLS = (1, 33, 64, 65, 127, 128, 129, 200, 255)


# ---- conversations ------------------------------------------------------------------------------


def plain_datagrams(visit: Visit, n: int) -> list[Frame]:
    """A flow of UDP of no protocol that has names."""
    talk = Udp(*visit.ends, (20000 + n, 9999), visit.start_ns)
    for side in (CLIENT, SERVER, CLIENT):
        talk.send(b"\x41plain" + bytes(n % 30), side)
    return talk.frames


def closed_at_once(visit: Visit, n: int) -> list[Frame]:
    """A connection without a byte, ended by FIN or RST."""
    talk = Tcp(*visit.ends, (20000 + n, 443), visit.start_ns).handshake()
    if n % 2:
        talk.close()
    else:
        talk.segment(SERVER, RST | ACK)
    return talk.frames


MAKERS = {"dns": dns_visit, "quic": quic_visit, "plain": plain_datagrams, "closed": closed_at_once}


def conversations(dice: random.Random, number: int, chosen: Rules) -> list[Frame]:
    """Some conversations within a few windows."""
    talks = []
    for n in range(number):
        kind = dice.choice(KINDS)
        six = dice.random() < 0.25
        ends = (
            (dice.choice(CLIENTS6[:3]), dice.choice(SERVERS6[:2]))
            if six
            else (dice.choice(CLIENTS[:3]), dice.choice(SERVERS[:2]))
        )
        start = START + dice.randrange(2 * chosen.window_ns // MS) * MS
        how = dice.choice(HOW.get(kind, ("whole",)))
        host, end = dice.choice(HOSTS), dice.choice(["fin", "rst", "open"])
        pauses = dice.choice([0, 0, 2]), 0
        visit = Visit(start, ends, kind, (host,), how, end, PORTS.get(kind, 443), pauses)
        talks.append(MAKERS.get(kind, tcp_visit)(visit, n))
    return merged(talks)


OPTIONS = (
    b"",
    b"\2\4\5\xb4\1\3\3\7\4\2\0\0",
    b"\1\1\x08\x0a" + b"timestam",
    b"\1\1\5\x0a" + struct.pack(">II", 600_000, 601_000),
    b"\x13\x12" + bytes(range(16)) + b"\1\1",
    b"\x22\x0a" + b"cookie!!" + b"\1\1",
    b"\x1e\x08" + b"mptcp!" + b"\xfd\4ab",
    b"\4\2\2\4\5\xb4\3\3\1\0\0\0",
)


def ornamented(frame: Frame, dice: random.Random) -> Frame:
    """The frame with other values wherever a header has room, which its fate does not depend on."""
    packet = bytearray(frame.data[14:])
    four = packet[0] >> 4 == 4
    header = 20 if four else 40
    rest = bytearray(packet[header:])
    is_tcp = packet[9 if four else 6] == wire.TCP
    if is_tcp:
        options = dice.choice(OPTIONS)
        rest[12:13] = bytes([(5 + len(options) // 4) << 4 | dice.randrange(2)])
        rest[14:16] = dice.randbytes(2)
        if dice.random() < 0.2:
            rest[13] |= 0x20
        rest[18:20] = dice.randbytes(2)
        rest[20:20] = options
    if four:
        packet[1] = dice.randrange(256)
        packet[4:6] = dice.randbytes(2)
        packet[6:8] = dice.choice([b"\x40\0", b"\0\0"])
        packet[8] = dice.choice(SUITABLE_TTLS)
        options4 = dice.choice([b"", b"", b"\x07\x07\4\x0a\1\2\3\0", b"\x94\4\0\0"])
        packet[0] = 0x45 + len(options4) // 4
        packet[2:4] = (20 + len(options4) + len(rest)).to_bytes(2)
        packet = packet[:20] + options4 + rest
        packet[10:12] = b"\0\0"
        packet[10:12] = internet_sum(bytes(packet[: 20 + len(options4)])).to_bytes(2)
    else:
        packet[0:4] = (6 << 28 | dice.randrange(1 << 28)).to_bytes(4)
        packet[7] = dice.choice(SUITABLE_TTLS)
        extension = dice.choice([b"", wire.ipv6_option_header(packet[6])])
        packet[4:6] = (len(extension) + len(rest)).to_bytes(2)
        packet[6] = 60 if extension else packet[6]
        packet = packet[:40] + extension + rest
    tags = dice.choice([b"", b"", b"\x81\0\x0c\xa5", b"\x88\xa8\0\7\x81\0\0\x08"])
    trailer = dice.choice([b"", b"", b"a trailer that was memory"])
    data = dice.randbytes(1) + frame.data[1:12] + tags + frame.data[12:14] + bytes(packet) + trailer
    data = bytes([data[0] & 0xFE]) + data[1:]
    return replace(frame, data=data, wire=len(data))


# ---- both implementations -----------------------------------------------------------------------


def engine_settings(chosen: Rules, hold_ns: int, payload: str, key_file: str) -> dict[str, object]:
    """The rules as the core takes them."""
    return {
        "z": chosen.z,
        "window_ns": chosen.window_ns,
        "rotate_ns": chosen.rotate_ns,
        "established": chosen.established,
        "dns_votes": VOTES[chosen.dns_votes],
        "internal": None if chosen.internal is None else nets(*chosen.internal),
        "keep_client_port": chosen.keep_client_port,
        "exact": chosen.exact,
        "coarse_suppressed": chosen.coarse,
        "key_file": key_file,
        "hold_ns": hold_ns,
        "payload": PAYLOADS[payload],
    }


def check(fates: Sequence[Fate], given: Sequence[Frame], run: Emitted, chosen: Rules, *,
          cut: bool, main: Sequence[tuple[Frame, bool] | None] | None = None) -> None:  # fmt: skip
    """Each frame has its fate, and each that leaves its bytes. main: of a view, what left for each
    frame in the main output, and whether its flow began there with a masked packet."""
    others = [None] * len(given) if main is None else main
    leaving = [(fate, frame, other) for fate, frame, other in zip(fates, given, others, strict=True)
               if fate.what in (PASSED, MASKED)]  # fmt: skip
    counted = Counter(fate.what for fate in fates)
    told = Counter(run.dropped())
    told[PASSED], told[MASKED] = (run.stats[f"packets_{one}"] for one in (PASSED, MASKED))
    times = [frame.t_ns for _fate, frame, _other in leaving]
    assert [frame.t_ns for frame in run.frames] == times, explained(fates, run.frames)
    assert +told == +counted
    checker = Checker(chosen, cut=cut)
    for (fate, frame, other), left in zip(leaving, run.frames, strict=True):
        checker.check(fate, frame, left, other)


def explained(fates: Sequence[Fate], left: Sequence[Frame]) -> str:
    """The frames with another fate than they must have."""
    seen = Counter(frame.t_ns for frame in left)
    lines = []
    for fate in fates:
        goes = fate.what in (PASSED, MASKED)
        if goes != (seen[fate.frame.t_ns] > 0):
            course = fate.course
            names = [(e.name.source, e.name.text, e.state, e.seen_ns - START, e.decided_ns - START,
                      e.shared) for e in course.exposures] if course else []  # fmt: skip
            nameless = course.nameless_ns - START if course else None
            lines.append(f"{fate.frame.t_ns - START} must be {fate.what}: {names} {nameless}")
    return "\n".join(lines[:20])


def compare(dice: random.Random, number: int, chosen: Rules, hold_ns: int, payload: str,
            key_file: str) -> None:  # fmt: skip
    bare = conversations(dice, number, chosen)
    given = [ornamented(frame, dice) for frame in bare]
    fates = Fates(chosen, hold_ns, bare).run()
    given_settings = engine_settings(chosen, hold_ns, payload, key_file)
    run = emitted(given, batch=dice.choice([1, 7, 1 << 14]), **given_settings)
    check(fates, given, run, chosen, cut=payload == "cut")


def rules_of(dice: random.Random) -> Rules:
    window_ns = dice.choice([SECOND, 5 * SECOND, 60 * SECOND])
    withheld = dice.choice(["exact", "coarse", "dropped", "dropped"])
    return Rules(
        z=dice.choice([1, 2, 2, 3]),
        window_ns=window_ns,
        rotate_ns=window_ns,
        key=KEY,
        established=dice.random() < 0.7,
        dns_votes=dice.choice(["own", "own", "all", "no"]),
        internal=dice.choice([None, None, ("10.7.0.0/24", "fd00:7::/32")]),
        keep_client_port=dice.random() < 0.3,
        exact=withheld == "exact",
        coarse=withheld == "coarse",
    )


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("hold_ns", HOLDS)
@settings(max_examples=examples(50, 8))
@given(seed=st.integers(0, 1 << 32), number=st.integers(1, 12))
def test_fates_and_bytes(key_file: str, hold_ns: int, payload: str, seed: int, number: int) -> None:
    """300 crowds of conversations."""
    dice = random.Random(seed)
    compare(dice, number, rules_of(dice), hold_ns, payload, key_file)


# ---- views --------------------------------------------------------------------------------------

TESTED = WITH_FINGERPRINTS = 0  # as the core numbers them
WITHHELD = 1


def view_of(
    dice: random.Random, chosen: Rules, payload: str
) -> tuple[Rules, bool, tuple[Any, ...]]:
    """The rules of a view that shows no more than the run, whether it is cut, and its settings."""
    exact = chosen.exact and dice.random() < 0.5
    rules = replace(chosen, z=chosen.z + dice.randrange(3), exact=exact, coarse=False)
    cut = payload == "cut" or dice.random() < 0.3
    shown = PAYLOADS["cut" if cut else payload]
    server = dice.choice([TESTED, TESTED, WITHHELD])
    return rules, cut, (rules.z, shown, server, WITH_FINGERPRINTS, 1, rules.exact)


@pytest.mark.parametrize("payload", PAYLOADS)
@settings(max_examples=examples(60, 8))
@given(seed=st.integers(0, 1 << 32), number=st.integers(1, 16))
def test_views(key_file: str, payload: str, seed: int, number: int) -> None:
    """A view has the fates and bytes of its z over the same votes, but for what the main output
    drops: none shows that. The main output has the bytes that it has alone."""
    dice = random.Random(seed)
    chosen, hold_ns = rules_of(dice), dice.choice(HOLDS)
    chosen = replace(chosen, z=max(chosen.z, 2))
    bare = conversations(dice, number, chosen)
    given = [ornamented(frame, dice) for frame in bare]
    views = [view_of(dice, chosen, payload) for _ in range(dice.randrange(1, 4))]
    alone = engine_settings(chosen, hold_ns, payload, key_file)
    with_views = alone | {"views": [settings for _rules, _cut, settings in views]}
    run = emitted(given, batch=dice.choice([7, 1 << 14]), **with_views)
    assert run.frames == emitted(given, **alone).frames
    assert run == emitted(given, batch=50, workers=2, **with_views)
    main = Fates(chosen, hold_ns, bare).run()
    in_main = beside(main, run.frames)
    for (rules, cut, (_z, _shown, server, *_others)), view in zip(views, run.views, strict=True):
        assert is_part([one.t_ns for one in view.frames], [one.t_ns for one in run.frames])
        if (rules, cut, server) == (chosen, payload == "cut", TESTED):
            assert view.frames == run.frames
        fates = [
            own if of.what in (PASSED, MASKED) else replace(own, what=of.what)
            for own, of in zip(Fates(rules, hold_ns, bare).run(), main, strict=True)
        ]
        for course in (fate.course for fate in fates if server == WITHHELD):
            if course is not None:
                course.server_withheld = True
        check(fates, given, view, rules, cut=cut, main=in_main)


def beside(fates: Sequence[Fate], left: Sequence[Frame]) -> list[tuple[Frame, bool] | None]:
    """Of each frame what left for it, and whether its flow began with a masked packet."""
    rest, masked = iter(left), dict[int, bool]()
    return [
        (next(rest), masked.setdefault(id(fate.course), fate.what == MASKED))
        if fate.what in (PASSED, MASKED)
        else None
        for fate in fates
    ]


def is_part(some: Sequence[int], of: Sequence[int]) -> bool:
    """Whether some are among the others, in their order."""
    rest = iter(of)
    return all(any(one == other for other in rest) for one in some)


# ---- encapsulations -----------------------------------------------------------------------------


def wrapped(frame: Frame, name: str) -> Frame | None:
    """The frame's packet inside the headers of a sample, whose own packet it replaces, or None if
    the sample's lengths are not its own."""
    case = (LINKS | TUNNELS)[name]
    packet, inner = frame.data[14:], case.inner
    head, found, tail = case.frame.partition(inner)
    if not found or tail or len(packet) != len(inner):
        return None
    data = head + packet
    return replace(frame, data=data, wire=len(data))


def as_long(case_inner: bytes, n: int) -> Frame | None:
    """A frame whose packet is as long, of the same kind, as a sample's."""
    four = case_inner[0] >> 4 == 4
    ends = (CLIENTS[0], SERVERS[0]) if four else (CLIENTS6[0], SERVERS6[0])
    header = 20 if four else 40
    protocol = case_inner[9] if four else case_inner[6]
    ports = (20000 + n, 443 if protocol == wire.TCP else 9999)
    room = len(case_inner) - header - (20 if protocol == wire.TCP else 8)
    if room < 0 or protocol not in (wire.TCP, wire.UDP):
        return None
    payload = b"\x41" * room
    transport = (
        tcp_segment(ports, PSH | ACK if n else SYN, 1000, 2000, payload)
        if protocol == wire.TCP
        else wire.udp(payload, ports=ports)
    )
    packet = (
        wire.ipv4(transport, protocol, addresses=ends)
        if four
        else wire.ipv6(transport, protocol, addresses=ends)
    )
    data = wire.ethernet(packet, wire.ETHERTYPE_IPV4 if four else wire.ETHERTYPE_IPV6)
    return Frame(START + n * MS, data, len(data))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_encapsulations_leave_no_trace(payload: str, key_file: str) -> None:
    """A packet leaves as the same bytes, whatever was around it."""
    tried = 0
    given_settings = {"key_file": key_file, "payload": PAYLOADS[payload], "exact": True, "z": 2}
    for name, case in (LINKS | TUNNELS).items():
        bare = as_long(case.inner, 0)
        around = wrapped(bare, name) if bare is not None else None
        if bare is None or around is None:
            continue
        expected = emitted([bare], **given_settings).frames
        assert len(expected) == 1, name
        assert emitted([around], link=case.link, **given_settings).frames == expected, name
        tried += 1
    assert tried > 100


# ---- determinism --------------------------------------------------------------------------------


@settings(max_examples=examples(20))
@given(seed=st.integers(0, 1 << 32))
def test_batches_and_workers_change_no_byte(key_file: str, seed: int) -> None:
    dice = random.Random(seed)
    chosen = rules_of(dice)
    frames = conversations(dice, 12, chosen)
    given_settings = engine_settings(chosen, dice.choice(HOLDS), "zero", key_file)
    first = emitted(frames, **given_settings).frames
    for more in ({"batch": 1}, {"batch": 13}, {"workers": 2}, {"workers": 3, "batch": 50}):
        assert emitted(frames, **(given_settings | more)).frames == first
