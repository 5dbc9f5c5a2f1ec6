# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""IP fragments: reassembled in any order, within bounds, never if they contradict each other."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import wire
from support.engine import Outcome, run
from support.examples import each
from support.fragments import framed, packet_of, piece, pieces
from support.packets import MS, SECOND, START, Frame, Tcp, Udp, dns, hello

NAME = wire.HOST
V6 = {"client": "fd00:7::1", "server": "2001:db8:7::53"}
ENDS = [{}, V6]
TIMEOUT = 30 * SECOND
MAX_DATAGRAMS = 1024
DROPS = ("overlap", "incomplete", "evicted")


def query(name: bytes = NAME, port: int = 40000, **ends: str) -> bytes:
    """The IP packet with a question padded (RFC 7830) to a few hundred bytes."""
    padding = b"\0\0\x29\x04\xd0\0\0\0\0" + wire.vector(2, b"\0\x0c" + wire.vector(2, bytes(300)))
    message = dns(name)[:10] + b"\0\1" + dns(name)[12:] + padding
    (frame,) = Udp(ports=(port, 53), **ends).send(message).frames
    return packet_of(frame)


def drops(outcome: Outcome) -> dict[str, int]:
    """The counters of fragments that made no datagram."""
    counted = {why: outcome.stats[f"drop_fragment_{why}"] for why in DROPS}
    return {why: n for why, n in counted.items() if n}


def disclosed(outcome: Outcome) -> tuple[object, object]:
    """The records and the observations without the pseudonyms, which are of each run's own."""
    records = [{k: v for k, v in flow.items() if k != "client"} for flow in outcome.flows]
    return records, outcome.seen()


def run_any(packets: Sequence[bytes], step_ns: int = MS) -> Outcome:
    return run(framed(packets, START, step_ns), z=1, established=False)


@each("ends", ENDS)
@each("order", list(itertools.permutations(range(3))))
def test_fragments_in_any_order(ends: dict[str, str], order: tuple[int, ...]) -> None:
    parts = pieces(query(**ends), [24, 160])
    outcome = run_any([parts[i] for i in order])
    assert outcome.released() == {NAME.decode()}
    assert outcome.observations[0]["t_ns"] == START + 2 * MS  # that of the last to come
    whole = run_any([query(**ends)])
    for column in ("c_pkts", "c_bytes", "server_port", "proto"):
        assert outcome.flow[column] == whole.flow[column]
    assert (outcome.stats["fragments"], outcome.stats["datagrams"]) == (3, 1)
    assert drops(outcome) == {}


@pytest.mark.parametrize("ends", ENDS, ids=["IPv4", "IPv6"])
def test_a_hello_in_fragments_of_its_segment(ends: dict[str, str]) -> None:
    talk = Tcp(**ends).handshake().say(hello(NAME))
    segment = packet_of(talk.frames[3])
    cut = framed(pieces(segment, range(8, 120, 8)), talk.frames[3].t_ns)
    outcome = run([*talk.frames[:3], *cut, *talk.frames[4:]], z=1)
    assert outcome.released() == {NAME.decode()}
    assert disclosed(outcome) == disclosed(run(talk.frames, z=1))


def test_a_response_in_fragments_is_evidence() -> None:
    talk = Udp().lookup(NAME)
    answer = packet_of(talk.frames[1])
    frames = [talk.frames[0], *framed(pieces(answer, [16]), talk.frames[1].t_ns)]
    assert run(frames, z=1, established=True).released() == {NAME.decode()}
    assert run(frames[:2], z=1, established=True).released() == set()


@pytest.mark.parametrize("ends", ENDS, ids=["IPv4", "IPv6"])
def test_duplicates_are_harmless(ends: dict[str, str]) -> None:
    first, second, third = pieces(query(**ends), [24, 160])
    outcome = run_any([first, first, third, second, second])
    assert outcome.released() == {NAME.decode()}
    assert drops(outcome) == {"incomplete": 1}  # the copy that came after all was done


def other_name(packet: bytes) -> bytes:
    assert packet.count(b"example") == 1
    return packet.replace(b"example", b"elpmaxe")


@each("ends", ENDS)
@each("order", list(itertools.permutations(range(4))))
def test_fragments_that_contradict_each_other(ends: dict[str, str], order: tuple[int, ...]) -> None:
    """Which of two copies the receiver took cannot be known: neither name counts."""
    parts = pieces(query(**ends), [16, 160])
    forged = pieces(other_name(query(**ends)), [16, 160])[1]
    outcome = run_any([[*parts, forged][i] for i in order])
    whole_before = {3: NAME, 1: other_name(NAME)}.get(order[-1])
    assert outcome.released() == ({whole_before.decode()} if whole_before else set())
    assert drops(outcome) == ({"incomplete": 1} if whole_before else {"overlap": 4})


def test_overlaps_that_agree() -> None:
    """IPv4 receivers put them together, those of IPv6 must not (RFC 5722)."""
    for ends, expected in ((ENDS[0], {NAME.decode()}), (ENDS[1], set())):
        packet = query(**ends)
        data = packet[20 if not ends else 40 :]
        parts = [
            piece(packet, 0, data[:80], True),
            piece(packet, 64, data[64:200], True),
            piece(packet, 200, data[200:], False),
        ]
        outcome = run_any(parts)
        assert outcome.released() == expected
        assert drops(outcome) == ({} if expected else {"overlap": 3})


def test_two_ends() -> None:
    packet = query()
    data = packet[20:]
    short, long = piece(packet, 64, data[64:100], False), piece(packet, 64, data[64:], False)
    for parts in ([short, long], [long, short]):
        outcome = run_any([*parts, piece(packet, 0, data[:64], True)])
        assert not outcome.seen()
        assert drops(outcome) == {"overlap": 3}
    outcome = run_any(
        [piece(packet, 64, data[64:120], True), piece(packet, 32, data[32:64], False)]
    )
    assert drops(outcome) == {"overlap": 2}


def test_fragments_of_other_datagrams_stay_apart() -> None:
    """RFC 791: a datagram is identified by its ends, its protocol and its number."""
    packet = query()
    first, rest = pieces(packet, [160])
    others = [
        pieces(packet, [160], number=7)[1],
        pieces(query(client="10.7.0.2"), [160])[1],
        pieces(query(server="198.51.100.8"), [160])[1],
        pieces(packet[:9] + bytes([wire.TCP]) + packet[10:], [160])[1],
    ]
    for other in others:
        outcome = run_any([first, other])
        assert not outcome.flows
        assert drops(outcome) == {"incomplete": 2}
    assert run_any([first, *others, rest]).released() == {NAME.decode()}


@pytest.mark.parametrize(("late_ns", "whole"), [(TIMEOUT, True), (TIMEOUT + 1, False)])
def test_fragments_wait_for_30_seconds(late_ns: int, whole: bool) -> None:
    first, rest = pieces(query(), [160])
    outcome = run_any([first, rest], late_ns)
    assert bool(outcome.flows) == whole
    assert drops(outcome) == ({} if whole else {"incomplete": 2})


def test_the_oldest_gives_way() -> None:
    crowd = [
        pieces(query(b"n%d.example.org" % n, 1000 + n), [160], number=n)
        for n in range(MAX_DATAGRAMS + 2)
    ]
    outcome = run_any([first for first, _ in crowd] + [rest for _, rest in crowd[2:]], 1000)
    assert len(outcome.released()) == MAX_DATAGRAMS
    assert "n0.example.org" not in outcome.released()
    assert drops(outcome) == {"evicted": 2}


def test_a_datagram_in_too_many_ranges() -> None:
    parts = pieces(query(), range(8, 312, 8))
    outcome = run_any([*parts[::2], *parts[1::2]])
    assert not outcome.seen()
    assert drops(outcome) == {"evicted": len(parts)}


def test_a_clock_that_is_set_back_forgets_fragments() -> None:
    first, rest = pieces(query(), [160])
    later = Udp(t_ns=START - 3600 * SECOND * 24)
    for n in range(300):
        later.send(dns(b"n%d.example.org" % n))
    frames = [*framed([query(b"a.example.org"), first], START), *later.frames]
    outcome = run([*frames, *framed([rest], later.t_ns)], z=1, established=False)
    assert outcome.stats["clock_rebased"] == 1
    assert NAME.decode() not in outcome.released()
    assert drops(outcome) == {"incomplete": 2}


def test_nothing_of_a_cut_first_fragment_is_made_up() -> None:
    """The snapshot length cut it: it counts as a packet as far as it goes, its rest is dropped."""
    parts = framed(pieces(query(), [160]), START)
    outcome = run([parts[0].cut(60), parts[1]], z=1, established=False)
    assert not outcome.seen()
    assert outcome.flow["name_status"] in ("suppressed", "none")
    assert drops(outcome) == {"incomplete": 1}
    whole_name = run([parts[0].cut(90), parts[1].cut(60)], z=1, established=False)
    assert whole_name.stats["drop_ip_fragment"] == 1


# ---- tunnels ------------------------------------------------------------------------------------

GRE = b"\0\0\x08\0"
OUTER = ("203.0.113.1", "203.0.113.2")


def in_gre(packet: bytes, ends: tuple[str, str] = OUTER) -> bytes:
    return wire.ipv4(GRE + packet, 47, addresses=ends)


def test_fragments_inside_a_tunnel() -> None:
    outcome = run_any([in_gre(part) for part in pieces(query(), [24, 160])])
    assert outcome.released() == {NAME.decode()}
    assert outcome.stats["in_gre"] == 3


def test_fragments_of_a_tunnel() -> None:
    outcome = run_any(pieces(in_gre(query()), [24, 160]))
    assert outcome.released() == {NAME.decode()}
    assert outcome.stats["in_gre"] == 1


def test_fragments_of_a_tunnel_around_fragments() -> None:
    inner = pieces(query(), [160])
    outer = [part for n, p in enumerate(inner) for part in pieces(in_gre(p), [32, 64], number=n)]
    outcome = run_any(outer[::-1])
    assert outcome.released() == {NAME.decode()}
    assert (outcome.stats["fragments"], outcome.stats["datagrams"]) == (6 + 2, 2 + 1)


def test_nobody_completes_a_datagram_from_another_tunnel() -> None:
    first, rest = pieces(query(), [160])
    for other in (rest, in_gre(rest, OUTER[::-1])):
        outcome = run_any([in_gre(first), other])
        assert not outcome.flows
        assert drops(outcome) == {"incomplete": 2}


def test_fragments_nested_too_deeply() -> None:
    packet = query()
    for _ in range(3):
        packet = pieces(in_gre(packet), [])[0]
    frames = run_any([piece(packet, 0, packet[20:], False)])
    assert frames.released() == {NAME.decode()}
    deep = [wire.ipv6_fragment(44, more=False)] * 9
    outcome = run_any([wire.ipv6(b"".join(deep) + bytes(8), 44)])
    assert not outcome.flows


# ---- any way of cutting -------------------------------------------------------------------------


@st.composite
def scattered(draw: st.DrawFn, packet: bytes) -> list[bytes]:
    """The packet's fragments in some order, some of them twice."""
    units = len(packet[20:]) // 8
    cuts = draw(st.sets(st.integers(1, units), max_size=14))
    parts = pieces(packet, [8 * cut for cut in cuts])
    more = draw(st.lists(st.sampled_from(parts), max_size=3))
    return draw(st.permutations([*parts, *more]))


@given(st.data())
def test_any_fragments_give_the_packet(data: st.DataObject) -> None:
    """The same name, the same record; a copy that comes last may wait in vain, and never lies."""
    talk = Udp().lookup(NAME)
    question, answer = (packet_of(frame) for frame in talk.frames)
    frames: list[Frame] = []
    for frame, packet in zip(talk.frames, (question, answer), strict=True):
        frames += framed(data.draw(scattered(packet)), frame.t_ns)
    outcome, whole = run(frames, z=1), run(talk.frames, z=1)
    assert outcome.seen() == whole.seen()
    assert len(outcome.flows) == 1
    assert set(drops(outcome)) <= {"incomplete"}


@given(st.data())
def test_no_name_without_every_byte_of_it(data: st.DataObject) -> None:
    packet = query()
    parts = data.draw(scattered(packet))
    lost = data.draw(st.sampled_from(sorted(set(parts))))
    outcome = run_any([part for part in parts if part != lost])
    assert not outcome.seen()
    assert NAME not in outcome.everything()


def test_ports_of_fragments_are_their_datagrams() -> None:
    """A later fragment that starts like a UDP header opens no flow."""
    fake = wire.udp(dns(b"forged.example.org"), ports=(4000, 53))
    talk = Udp(ports=(40000, 9999)).send(bytes(72) + fake)
    outcome = run(framed(pieces(packet_of(talk.frames[0]), [80]), START), z=1, established=False)
    assert (outcome.flow["server_port"], outcome.flow["server"]) == (9999, None)
    assert not outcome.seen()
