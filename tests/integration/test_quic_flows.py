# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""QUIC flows through the whole engine: when a name counts, and what is withheld."""

import pytest
from support import quic_wire as quic
from support import wire
from support.engine import UDP_COMPLETE, run
from support.examples import each
from support.packets import CLIENT, MS, SERVER, START, Frame, Udp, merged, user
from support.quic_flow import (
    ANSWER,
    FLIGHT,
    HELLO,
    LONG_FLIGHT,
    NAME,
    OTHER_NAME,
    PORTS,
    RETURNS,
    proven,
    quic_talk,
    seen_at_once,
    status,
)
from support.quic_wire import DCID, SCID, SERVER_ID, V1, V2, Initial, crypto

# ---- names --------------------------------------------------------------------------------------


@each("version", quic.VERSIONS)
@each("message", [HELLO, quic.post_quantum(NAME)])
def test_a_name_in_every_version(version: int, message: bytes) -> None:
    datagrams = quic.first_flight(message, version=version)
    outcome = seen_at_once(*datagrams)
    at = START + (len(datagrams) - 1) * MS
    assert outcome.seen() == {(at, NAME.decode(), "quic"): 1}
    assert status(outcome) == ("quic", "released")
    assert outcome.stats["names_quic"] == 1
    assert outcome.stats["quic_initials"] == len(datagrams)
    (line,) = outcome.log(UDP_COMPLETE)
    assert (line["quic_SNI"], line["fqdn"]) == (NAME.decode(), "-")


@pytest.mark.parametrize("ports", [(443, 40000), (40000, 53), (53, 5353), (1, 2)])
def test_on_every_port(ports: tuple[int, int]) -> None:
    talk = Udp(ports=ports).send(FLIGHT[0])
    assert run(talk.frames, z=1, established=False).released() == {NAME.decode()}


def test_out_of_order_and_twice() -> None:
    first, second = LONG_FLIGHT
    for datagrams in ([second, first], [first, first, second], [second, second, first, first]):
        outcome = seen_at_once(*datagrams)
        assert list(outcome.seen().values()) == [1]
        assert outcome.released() == {NAME.decode()}


def test_a_repeated_hello_is_one_vote() -> None:
    outcome = seen_at_once(FLIGHT[0], FLIGHT[0], FLIGHT[0])
    assert list(outcome.seen().values()) == [1]
    assert outcome.stats["observations"] == 1


def test_later_ids_keep_the_first_ones_keys() -> None:
    """The client turns to the server's ID in the middle of its hello."""
    first, rest = quic.pieces_of(HELLO, [40])
    later = Initial(crypto(rest[1], rest[0]), dcid=SERVER_ID, key_id=DCID, number=1)
    outcome = seen_at_once(Initial(crypto(first[1])).seal(), later.seal())
    assert outcome.released() == {NAME.decode()}


def test_a_zero_rtt_packet_first() -> None:
    """quic_0RTT of nDPI's captures: early data may overtake the Initial."""
    outcome = seen_at_once(quic.opaque(quic.ZERO_RTT, DCID, SCID), FLIGHT[0])
    assert outcome.released() == {NAME.decode()}


@pytest.mark.parametrize("id_bytes", [1, 4, 8, 20])
def test_a_retry_gives_new_keys(id_bytes: int) -> None:
    ident = bytes(range(100, 100 + id_bytes))
    (first, a), (at, b) = quic.pieces_of(HELLO, [40])
    talk = quic_talk(Initial(crypto(a, first)).seal())
    talk.send(quic.retry(SCID, ident), SERVER)
    for offset, data in ((at, b), (first, a)):
        again = Initial(crypto(data, offset), dcid=ident, token=b"token", number=1)
        talk.send(again.seal())
    outcome = run(talk.frames, z=1, established=False)
    assert list(outcome.seen()) == [(talk.frames[-1].t_ns, NAME.decode(), "quic")]
    assert outcome.stats["quic_not_authentic"] == 0


def test_a_retrys_keys_for_an_initial_to_the_next_server_id() -> None:
    talk = quic_talk(Initial(crypto(HELLO[:40])).seal())
    talk.send(quic.retry(SCID, b"retry id"), SERVER)
    talk.send(quic.server_answer(key_id=b"retry id"), SERVER)
    talk.send(Initial(crypto(HELLO), dcid=SERVER_ID, key_id=b"retry id", number=1).seal())
    assert run(talk.frames, z=1, established=False).released() == {NAME.decode()}


def test_another_version_in_the_same_connection() -> None:
    """Compatible version negotiation (RFC 9368): same ID, other keys."""
    parts = quic.pieces_of(HELLO, [40])
    datagrams = [
        Initial(crypto(data, offset), version).seal()
        for (offset, data), version in zip(parts, (V1, V2), strict=True)
    ]
    assert seen_at_once(*datagrams).released() == {NAME.decode()}


def test_after_version_negotiation() -> None:
    grease = quic.long_header(0, 0x1A2A3A4A, DCID, SCID) + bytes(1200)
    talk = quic_talk(grease).send(quic.negotiation(SCID, DCID, V1), SERVER)
    talk.send(Initial(crypto(HELLO), dcid=b"another one").seal())
    outcome = run(talk.frames, z=1, established=False)
    assert outcome.released() == {NAME.decode()}
    assert outcome.stats["quic_version_unknown"] == 1
    assert outcome.stats["suppressed_quic_version"] == 0
    assert status(outcome) == ("quic", "released")


def test_ech_and_hellos_without_a_name() -> None:
    ech = wire.extension(wire.ECH, bytes(40))
    outcome = seen_at_once(*quic.first_flight(quic.hello(ech, host=NAME)))
    assert (outcome.flow["name"], outcome.flow["ech"]) == (NAME.decode(), "offered")
    assert outcome.stats["hellos_ech"] == 1
    outcome = seen_at_once(*quic.first_flight(quic.hello(host=None)))
    assert status(outcome) == (None, "none")
    assert outcome.stats["hellos_without_name"] == 1
    assert seen_at_once(*quic.first_flight(quic.hello(host=b"192.0.2.1"))).released() == set()
    invalid = seen_at_once(*quic.first_flight(quic.hello(host=b"sp ace.example")))
    assert status(invalid) == ("quic", "invalid")


def test_a_second_connection_on_the_same_ports() -> None:
    other = quic.hello(host=OTHER_NAME)
    outcome = seen_at_once(FLIGHT[0], Initial(crypto(other), dcid=b"second one").seal())
    assert outcome.released() == {NAME.decode(), OTHER_NAME.decode()}


def test_a_first_initial_with_a_greased_bit() -> None:
    """A client that knows its server may clear the fixed bit from the start (RFC 9287, 3)."""
    for size, names in ((1200, {NAME.decode()}), (0, set())):
        greased = Initial(crypto(HELLO), fixed=0, size=size).seal()
        assert seen_at_once(greased).released() == names


def test_no_more_than_eight_connections() -> None:
    datagrams = [
        Initial(crypto(quic.hello(host=b"h%d.example" % i)), dcid=b"id no %03d" % i).seal()
        for i in range(12)
    ]
    outcome = seen_at_once(*datagrams)
    assert outcome.released() == {f"h{i}.example" for i in range(8)}
    talks = [quic_talk(*datagrams, client=user(i), t_ns=START + i).frames for i in range(3)]
    outcome = run(merged(talks), z=2, established=False)
    assert [flow["server"] for flow in outcome.flows] == [None] * 3  # they have something to hide


# ---- what is not a name -------------------------------------------------------------------------


@pytest.mark.parametrize("place", [1, 5, 6, 20, 40, 500, 1199])
def test_what_does_not_authenticate_is_counted(place: int) -> None:
    changed = bytearray(FLIGHT[0])
    changed[place] ^= 4
    outcome = seen_at_once(bytes(changed))
    assert not outcome.seen()
    assert NAME not in outcome.everything()
    if place > 5:
        assert status(outcome) == ("quic", "suppressed")
    if place > 30:
        assert outcome.stats["quic_not_authentic"] == 1
        assert outcome.stats["suppressed_incomplete"] == 1
        assert seen_at_once(bytes(changed), FLIGHT[0]).released() == {NAME.decode()}


def test_a_forged_initial_between_two_changes_nothing() -> None:
    forged = Initial(crypto(quic.hello(host=OTHER_NAME)), key_id=b"guessed").seal()
    outcome = seen_at_once(LONG_FLIGHT[0], forged, LONG_FLIGHT[1])
    assert outcome.released() == {NAME.decode()}
    assert outcome.stats["quic_not_authentic"] == 1


def test_a_hello_that_never_becomes_whole() -> None:
    for datagram in LONG_FLIGHT:
        outcome = seen_at_once(datagram)
        assert status(outcome) == ("quic", "suppressed")
        assert outcome.stats["suppressed_incomplete"] == 1
        assert outcome.stats["quic_initials"] == 1


def test_a_capture_cut_by_its_snapshot_length() -> None:
    frames = quic_talk(*FLIGHT).frames
    for length in (60, 100, 600, len(frames[0].data) - 1):
        outcome = run([frame.cut(length) for frame in frames], z=1, established=False)
        assert status(outcome) == ("quic", "suppressed")
        assert outcome.stats["suppressed_incomplete"] == 1
    small = quic_talk(Initial(crypto(HELLO)).seal() + quic.opaque(quic.ZERO_RTT, DCID, SCID, 900))
    cut = [frame.cut(len(frame.data) - 5) for frame in small.frames]
    assert run(cut, z=1, established=False).released() == {NAME.decode()}


def test_conflicting_copies() -> None:
    other = HELLO.replace(b"www", b"wwx")
    datagrams = [Initial(crypto(HELLO[:-4])).seal(), Initial(crypto(other), number=1).seal()]
    outcome = seen_at_once(*datagrams)
    assert not outcome.seen()
    assert outcome.stats["suppressed_conflict"] == 1
    assert status(outcome) == ("quic", "suppressed")
    twice = Initial(crypto(HELLO) + crypto(other)).seal()
    assert seen_at_once(twice).stats["suppressed_conflict"] == 1


@pytest.mark.parametrize(
    "frames",
    [b"\x1d\0\0", b"\x08\0abc", crypto(HELLO) + b"\x1e", crypto(b"\2" + HELLO[1:])],
    ids=["application close", "stream", "handshake done", "server hello"],
)
def test_malformed_initials_are_invalid(frames: bytes) -> None:
    outcome = seen_at_once(Initial(frames).seal(), FLIGHT[0])
    assert not outcome.seen()
    assert status(outcome) == ("quic", "invalid")


def test_no_more_than_32_initials() -> None:
    def in_initials(n: int) -> list[bytes]:
        parts = quic.pieces_of(HELLO, range(2, 2 * n, 2))
        return [Initial(crypto(data, at)).seal() for at, data in parts]

    datagrams = in_initials(33)
    assert len(datagrams) == 33
    assert not seen_at_once(*datagrams).seen()
    assert seen_at_once(*datagrams).stats["suppressed_incomplete"] == 1
    assert seen_at_once(*datagrams, FLIGHT[0]).released() == set()
    joined = [*datagrams[:31], datagrams[31] + datagrams[32]]
    assert not seen_at_once(*joined).seen()
    assert seen_at_once(*in_initials(32)).released() == {NAME.decode()}


def test_a_hello_of_16_kib_in_the_least_datagrams_and_twice() -> None:
    filler = wire.extension(wire.PADDING, bytes(16384 - len(quic.hello(host=NAME)) - 4))
    datagrams = quic.first_flight(quic.hello(filler, host=NAME))
    assert max(map(len, datagrams)) == 1200
    assert seen_at_once(*datagrams).released() == {NAME.decode()}
    assert seen_at_once(*datagrams[:-1], *datagrams).released() == {NAME.decode()}


def test_a_hello_of_more_than_16_kib() -> None:
    longest = wire.extension(wire.PADDING, bytes(16384 - len(quic.hello()) - 4))
    for more, names in ((b"", {wire.HOST.decode()}), (b"\0", set())):
        data = longest[4:] + more
        message = quic.hello(wire.extension(wire.PADDING, data))
        datagrams = [
            Initial(crypto(piece, at)).seal()
            for at, piece in quic.pieces_of(message, range(4000, len(message), 4000))
        ]
        assert seen_at_once(*datagrams).released() == names


def test_unknown_versions() -> None:
    for version in (0x1A2A3A4A, 0x51303530, 0x54303530, 0xABCDEF12):
        packet = quic.long_header(0, version, DCID, SCID) + bytes(1200)
        outcome = seen_at_once(packet, packet)
        assert status(outcome) == ("quic", "suppressed")
        assert outcome.stats["quic_version_unknown"] == 2
        assert outcome.stats["suppressed_quic_version"] == 1
    for packet in (
        quic.long_header(0, 0x1A2A3A4A, DCID, SCID) + bytes(900),
        quic.long_header(0, 0x1A2A3A4A, DCID[:7], SCID) + bytes(1200),
        quic.long_header(0, 0x1A2A3A4A, bytes(21), SCID) + bytes(1200),
        quic.long_header(0, 0x1A2A3A4A, DCID, SCID, fixed=0) + bytes(1200),
        bytes(1200),
    ):
        assert status(seen_at_once(packet)) == (None, "suppressed")


def test_a_flow_joined_in_its_middle() -> None:
    outcome = seen_at_once(quic.opaque(quic.HANDSHAKE, SERVER_ID, SCID))
    assert status(outcome) == ("quic", "suppressed")
    assert outcome.stats["suppressed_incomplete"] == 1
    assert status(seen_at_once(quic.short(SERVER_ID))) == (None, "suppressed")
    talk = Udp(ports=PORTS).send(ANSWER, SERVER).send(FLIGHT[0])
    assert run(talk.frames, z=1, established=False).released() == {NAME.decode()}


def test_a_server_never_votes() -> None:
    talk = quic_talk(quic.first_flight(quic.hello(host=OTHER_NAME))[0]).send(FLIGHT[0], SERVER)
    for established in (True, False):
        assert NAME.decode() not in run(talk.frames, z=1, established=established).released()


def test_flows_closed_early_are_suppressed() -> None:
    talks = [quic_talk(LONG_FLIGHT[0], client=user(i)).frames for i in range(200)]
    outcome = run(merged(talks), z=1, established=False, max_flows=64)
    assert 100 <= outcome.stats["flows_evicted"] < 200
    assert outcome.stats["records"] == outcome.stats["suppressed_incomplete"] == 200
    assert not outcome.seen()


# ---- records ------------------------------------------------------------------------------------


def test_udp_type_once_both_sides_spoke_the_same_version() -> None:
    for version, kind in ((V1, "27"), (V2, "0")):
        talk = proven(answer=quic.server_answer(version=version))
        (line,) = run(talk.frames, z=1).log(UDP_COMPLETE)
        assert (line["c_type"], line["s_type"]) == (kind, kind)
    (line,) = seen_at_once(*FLIGHT).log(UDP_COMPLETE)
    assert (line["c_type"], line["s_type"]) == ("0", "0")


def test_a_suppressed_name_leaves_nothing() -> None:
    talk = proven(RETURNS["a 1-RTT packet"])
    outcome = run(talk.frames, z=2)
    assert status(outcome) == ("quic", "suppressed")
    assert NAME not in outcome.everything()
    (line,) = outcome.log(UDP_COMPLETE)
    assert (line["quic_SNI"], line["s_ip"]) == ("-", "-")
    assert outcome.stats["suppressed_below_z"] == 1


def test_many_flows_at_once() -> None:
    """Hellos of two Initials, interleaved: states and streams of flows keep apart."""
    talks: list[list[Frame]] = []
    for i in range(300):
        name = b"h%d.example" % i
        flight = quic.first_flight(quic.post_quantum(name), dcid=b"client%03d" % i)
        talks.append(quic_talk(*flight, client=user(i), t_ns=START + i).frames)
    outcome = run(merged(talks), z=1, established=False)
    assert outcome.released() == {f"h{i}.example" for i in range(300)}
    assert outcome.stats["streams_full"] == outcome.stats["datagrams_full"] == 0


def test_sides_are_the_tuples_not_the_ports() -> None:
    talk = Udp("10.7.0.1", "10.7.0.2", ports=(443, 443)).send(FLIGHT[0], CLIENT)
    talk.send(ANSWER, SERVER).send(RETURNS["a 1-RTT packet"])
    assert run(talk.frames, z=1).released() == {NAME.decode()}
