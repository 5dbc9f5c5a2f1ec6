# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""QUIC packets, Initial protection and frames: RFC 9000 12, 17 and 19, RFC 9001 5, RFC 9369."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import quic_wire as quic
from support import wire
from support.examples import each
from support.quic_wire import DCID, SCID, V1, V2, Initial, crypto, varint
from support.wire import HOST

from zanon_net import _core, parse

HELLO = quic.hello()

# RFC 9001, A.1 and RFC 9369, A.1; draft-ietf-quic-tls-29, A.1 (client only)
KEYS = {
    (V1, False): "1f369613dd76d5467730efcbe3b1a22d fa044b2f42a3fd3b46fb255c "
    "9f50449e04a0e810283a1e9933adedd2",
    (V1, True): "cf3a5331653c364c88f0f379b6067e37 0ac1493ca1905853b0bba03e "
    "c206b8d9b9f0f37644430b490eeaa314",
    (V2, False): "8b1a0bc121284290a29e0971b5cd045d 91f73e2351d8fa91660e909f "
    "45b95e15235d6f45a6b19cbcb0294ba9",
    (V2, True): "82db637861d55e1d011f19ea71d5d2a7 dd13c276499c0249d3310652 "
    "edf6d05c83121201b436e16877593c3a",
    (quic.DRAFT_29, False): "175257a31eb09dea9366d8bb79ad80ba 6b26114b9cba2b63a9e8dd4f "
    "9ddd12c994c0698b89374a9c077a3077",
}
# RFC 9001, A.2 and RFC 9369, A.2: the same frames, protected; first and last bytes of 1200.
CRYPTO_FRAME = bytes.fromhex(
    "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868"
    "04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578"
    "616d706c652e636f6dff01000100000a00080006001d00170018001000070005"
    "04616c706e000500050100000000003300260024001d00209370b2c9caa47fba"
    "baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400"
    "0d0010000e0403050306030203080408050806002d00020101001c0002400100"
    "3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000"
    "75300901100f088394c8f03e51570806048000ffff"
)
PROTECTED = {
    V1: (
        "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11d242b123dc9b",
        "e221af44860018ab0856972e194cd934",
    ),
    V2: (
        "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485dd04de806071",
        "a18b2faa745b6fe189cf772a9f84cbfc",
    ),
}


@pytest.mark.parametrize(("version", "server"), KEYS)
def test_the_keys_are_the_rfcs(version: int, server: bool) -> None:
    expected = tuple(map(bytes.fromhex, KEYS[version, server].split()))
    assert _core.quic_keys(version, DCID, server=server) == expected
    ours = quic.initial_keys(version, DCID, server=server)
    assert (ours.key, ours.iv, ours.hp) == expected


@pytest.mark.parametrize("version", PROTECTED)
def test_the_client_initial_of_the_rfcs(version: int) -> None:
    packet = Initial(CRYPTO_FRAME + bytes(917), version, scid=b"", number=2, number_bytes=4).seal()
    first, last = map(bytes.fromhex, PROTECTED[version])
    assert (len(packet), packet[: len(first)], packet[-16:]) == (1200, first, last)
    assert _core.parse_quic(packet) == ("done", version, DCID, b"", [(0, CRYPTO_FRAME[4:])])
    assert parse.quic_initial(packet).name == "example.com"


@each("version", quic.VERSIONS)
def test_every_version(version: int) -> None:
    packet = Initial(crypto(HELLO), version).seal()
    assert _core.parse_quic(packet) == ("done", version, DCID, SCID, [(0, HELLO)])
    keys = quic.initial_keys(version, b"\1", server=True)
    assert _core.quic_keys(version, b"\1", server=True) == (keys.key, keys.iv, keys.hp)


@pytest.mark.parametrize("version", [0, 2, 0xFF000015, 0xFF000023, 0x0A1A2A3A, 0x51303436])
def test_other_versions_have_no_keys(version: int) -> None:
    with pytest.raises(ValueError, match="version"):
        _core.quic_keys(version, DCID)


@given(st.binary(max_size=20), st.binary(max_size=20), st.sampled_from(sorted(quic.VERSIONS)))
def test_any_connection_ids(dcid: bytes, scid: bytes, version: int) -> None:
    packet = Initial(crypto(HELLO), version, dcid, scid).seal()
    assert _core.parse_quic(packet) == ("done", version, dcid, scid, [(0, HELLO)])
    assert _core.parse_quic(packet, dcid) == _core.parse_quic(packet)


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(quic.VERSIONS)), st.binary(max_size=20), st.booleans()),
        min_size=2,
        max_size=6,
    )
)
def test_keys_do_not_depend_on_those_before(wanted: list[tuple[int, bytes, bool]]) -> None:
    for version, dcid, server in wanted:
        keys = quic.initial_keys(version, dcid, server=server)
        ours = _core.quic_keys(version, dcid, server=server)
        assert ours == (keys.key, keys.iv, keys.hp)


@each("number_bytes", [1, 2, 3, 4])
@each("token", [b"", b"t", bytes(300)])
@each("fixed", [0x40, 0])
def test_numbers_tokens_and_a_greased_bit(number_bytes: int, token: bytes, fixed: int) -> None:
    for number in (0, 1, 200, 256**number_bytes - 1):
        packet = Initial(
            crypto(HELLO), number=number, number_bytes=number_bytes, token=token, fixed=fixed
        )
        assert _core.parse_quic(packet.seal())[4] == [(0, HELLO)]


def test_keys_alternate() -> None:
    """The contexts of libcrypto keep nothing of the packet before, opened or not."""
    for ident in (b"one", b"two", b"two", b"one", b"one"):
        packet = Initial(crypto(HELLO), dcid=ident)
        assert _core.parse_quic(packet.seal())[4] == [(0, HELLO)]
        other = Initial(crypto(HELLO), dcid=ident, key_id=b"two")
        assert _core.parse_quic(other.seal())[4] == ([(0, HELLO)] if ident == b"two" else [])


def test_the_longest_header() -> None:
    """What stands before the packet number may have 65,536 bytes, more than any datagram."""
    rest = len(quic.long_header(0, V1, DCID, SCID)) + 4 + 2  # the lengths of token and packet
    for size, opened in (
        (65535, ("done", [(0, HELLO)])),
        (65536, ("done", [(0, HELLO)])),
        (65537, ("other", [])),
    ):
        packet = Initial(crypto(HELLO), token=bytes(size - rest), number_bytes=4).seal()
        assert packet[size - 2 : size] == varint(len(packet) - size, 2)
        assert _core.parse_quic(packet)[::4] == opened


def test_the_shortest_packet() -> None:
    packet = Initial(crypto(b"x")[:4]).seal()
    assert _core.parse_quic(packet)[4] == [(0, b"x")]
    plain = packet[: -len(packet)] + quic.long_header(0, V1, DCID, SCID) + b"\0"
    for size in range(20):
        cut = plain + varint(size, 2) + bytes(size)
        assert _core.parse_quic(cut) == ("other", 0, b"", b"", [])


# ---- what must not open -------------------------------------------------------------------------

PACKETS = {
    "small": Initial(crypto(HELLO)).seal(),
    "whole": Initial(crypto(HELLO), size=1200).seal(),
    "v2": Initial(crypto(HELLO), V2, token=b"token").seal(),
    "pieces": Initial(crypto(HELLO[50:], 50) + quic.PING + crypto(HELLO[:50]) + quic.ACK).seal(),
}


@pytest.mark.parametrize("name", PACKETS)
def test_a_prefix_gives_no_bytes(name: str) -> None:
    for prefix in wire.prefixes(PACKETS[name]):
        state, *_, pieces = _core.parse_quic(prefix)
        assert (state, pieces) == ("need_more" if prefix else "other", [])


@pytest.mark.parametrize("name", PACKETS)
def test_a_flipped_bit_gives_no_bytes(name: str) -> None:
    packet = PACKETS[name]
    for place in range(len(packet)):
        for bit in range(8) if place < 60 or place > len(packet) - 20 else (place % 8,):
            changed = bytearray(packet)
            changed[place] ^= 1 << bit
            state, *_, pieces = _core.parse_quic(bytes(changed))
            assert state in ("other", "need_more", "malformed")
            assert pieces == []
            assert parse.quic_initial(bytes(changed)).name is None


def test_tags_are_not_taken_from_another_packet() -> None:
    """Under the same keys, each between packets that open."""
    first, second = (Initial(crypto(HELLO), number=n).seal() for n in (1, 2))
    for packet, opens in (
        (first, True),
        (first[:-16] + second[-16:], False),
        (second, True),
        (second[:-16] + bytes(16), False),
        (second[:-16] + first[-16:], False),
        (first, True),
    ):
        assert _core.parse_quic(packet)[4] == ([(0, HELLO)] if opens else [])


def test_the_keys_of_another_id_or_side_do_not_open() -> None:
    for packet in PACKETS.values():
        assert _core.parse_quic(packet, b"other id")[0] == "other"
    other = Initial(crypto(HELLO), key_id=b"another")
    assert _core.parse_quic(other.seal())[0] == "other"
    assert _core.parse_quic(other.seal(), b"another")[4] == [(0, HELLO)]
    assert _core.parse_quic(Initial(crypto(HELLO), server=True).seal())[0] == "other"


@given(st.binary(max_size=1300))
def test_any_bytes_end_in_a_state(data: bytes) -> None:
    for head in (b"", quic.long_header(0, V1, DCID, SCID), quic.long_header(0, V2, b"", b"")):
        assert _core.parse_quic(head + data)[4] == []
        _core.parse_quic_packets(head + data)
        _core.parse_quic_packets(head + data, whole=False)


# ---- packets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [V1, V2, quic.DRAFT_29])
def test_coalesced_packets(version: int) -> None:
    datagram = Initial(crypto(HELLO), version).seal()
    for kind in (quic.ZERO_RTT, quic.HANDSHAKE):
        datagram += quic.opaque(kind, DCID, SCID, version=version)
    datagram += quic.retry(DCID, SCID, version=version)
    state, packets = _core.parse_quic_packets(datagram)
    assert state == "other"
    assert [packet[0] for packet in packets] == ["initial", "0-rtt", "handshake", "retry"]
    assert {packet[1:] for packet in packets} == {(version, DCID, SCID)}
    assert _core.parse_quic(datagram)[4] == [(0, HELLO)]


def test_pieces_of_two_initials_in_a_datagram() -> None:
    parts = [crypto(HELLO[60:], 60), crypto(HELLO[:60])]
    datagram = b"".join(Initial(part, number=n).seal() for n, part in enumerate(parts))
    assert _core.parse_quic(datagram)[4] == [(60, HELLO[60:]), (0, HELLO[:60])]
    assert parse.quic_initial(datagram).raw == HOST


def test_what_follows_an_initial_changes_nothing() -> None:
    for after in (b"\0", bytes(100), quic.short(DCID), b"\xff" * 30, b"\xc0\0\0\0\1\x15"):
        assert _core.parse_quic(PACKETS["small"] + after)[4] == [(0, HELLO)]


def test_the_invariants_of_other_versions() -> None:
    for version in (0x0A1A2A3A, 0x51303530):
        head = quic.long_header(0, version, bytes(range(60)), bytes(200))
        packets = [("foreign", version, bytes(range(60)), bytes(200))]
        assert _core.parse_quic_packets(head + bytes(50)) == ("other", packets)
    negotiation = quic.negotiation(SCID, DCID, V1, V2)
    packets = [("negotiation", 0, SCID, DCID)]
    assert _core.parse_quic_packets(negotiation) == ("other", packets)
    assert _core.parse_quic(negotiation) == ("other", 0, b"", b"", [])


@pytest.mark.parametrize("ids", [(bytes(21), b""), (b"", bytes(21))])
def test_longer_ids_are_malformed(ids: tuple[bytes, bytes]) -> None:
    packet = quic.long_header(0, V1, *ids) + b"\0" + varint(40, 2) + bytes(40)
    assert _core.parse_quic_packets(packet) == ("malformed", [])


def test_lengths_that_lie() -> None:
    head = quic.long_header(0, V1, DCID, SCID)
    for rest in (varint(100) + bytes(50), b"\0" + varint(100) + bytes(99), b"\0" + b"\xff" * 8):
        assert _core.parse_quic_packets(head + rest) == ("malformed", [])
        assert _core.parse_quic_packets(head + rest, whole=False)[0] != "malformed"


def test_short_headers_and_other_protocols_are_other() -> None:
    for data in (b"", b"\x40" + DCID + bytes(30), b"\x16\xfe\xff" + bytes(40), HELLO):
        assert _core.parse_quic_packets(data) == ("other", [])


# ---- frames -------------------------------------------------------------------------------------

OTHERS = {
    "padding": quic.PADDING,
    "ping": quic.PING,
    "ack": quic.ACK,
    "ack-ecn": quic.ACK_ECN,
    "close": quic.CLOSE,
    "empty-crypto": crypto(b""),
    "long-varints": b"\x06" + varint(5, 8) + varint(2, 8) + b"ab",
    "ack-of-many": b"\x02" + varint(2**40) + varint(0) + varint(60) + varint(0) + varint(1) * 120,
}


@pytest.mark.parametrize("name", OTHERS)
def test_frames_around_crypto(name: str) -> None:
    frame = OTHERS[name]
    extra = [(5, b"ab")] if name == "long-varints" else []
    for plain in (frame + crypto(HELLO), crypto(HELLO) + frame, frame * 3 + crypto(HELLO) + frame):
        state, pieces = _core.parse_quic_frames(plain)
        assert state == "done"
        assert [piece for piece in pieces if piece not in extra] == [(0, HELLO)]


def test_crypto_frames_come_back_by_offset() -> None:
    order = [300, 0, 7, 150, 2**30, 2**61, 8]
    plain = b"".join(crypto(b"%d" % offset, offset) for offset in order)
    expected = [(offset, b"%d" % offset) for offset in sorted(order)]
    assert _core.parse_quic_frames(plain) == ("done", expected)


@each("kind", sorted({*range(0x40), 0x1D, 0x30, 0x31} - {0, 1, 2, 3, 6, 0x1C}))
def test_frames_that_no_initial_may_hold(kind: int) -> None:
    for plain in (varint(kind), varint(kind) + bytes(60), crypto(HELLO) + varint(kind)):
        assert _core.parse_quic_frames(plain) == ("malformed", [])


@pytest.mark.parametrize("name", sorted(set(OTHERS) - {"padding", "ping"}))
def test_a_cut_frame_is_malformed(name: str) -> None:
    for prefix in list(wire.prefixes(OTHERS[name]))[1:]:
        assert _core.parse_quic_frames(crypto(HELLO) + prefix) == ("malformed", [])


@pytest.mark.parametrize(
    "plain",
    [
        b"",
        b"\x06" + varint(0) + varint(5) + b"four",
        b"\x06" + varint(2**62 - 2) + varint(2) + b"ab",
        b"\x06" + varint(0) + varint(2**62 - 1) + b"ab",
        b"\x02" + varint(1) + varint(0) + varint(2**62 - 1) + varint(0) + bytes(50),
        b"\x1c" + varint(0) + varint(0) + varint(2**62 - 1) + bytes(50),
        crypto(b"x") * 129,
    ],
    ids=["nothing", "short", "too far", "huge", "ranges", "reason", "too many pieces"],
)
def test_frames_that_lie(plain: bytes) -> None:
    assert _core.parse_quic_frames(plain) == ("malformed", [])
    packet = Initial(plain or b"\x40", size=0).seal()
    assert _core.parse_quic(packet) == ("malformed", 0, b"", b"", [])


def test_as_many_pieces_as_there_is_room_for() -> None:
    plain = b"".join(crypto(b"x", 3 * n) for n in range(128))
    assert _core.parse_quic_frames(plain) == ("done", [(3 * n, b"x") for n in range(128)])


@given(st.binary(max_size=200), st.integers(0, 3))
def test_any_frames_end_in_a_state(data: bytes, keep: int) -> None:
    whole = [quic.PING, quic.ACK, crypto(HELLO), quic.CLOSE]
    state, pieces = _core.parse_quic_frames(b"".join(whole[:keep]) + data)
    assert state in ("done", "malformed")
    assert all(piece for _, piece in pieces)
    assert pieces == sorted(pieces, key=lambda piece: piece[0])


# ---- the hello without records ------------------------------------------------------------------


def test_a_bare_hello() -> None:
    ech = wire.extension(wire.ECH, bytes(40))
    assert _core.parse_hello(HELLO) == ("done", HOST, False)
    assert _core.parse_hello(quic.hello(ech)) == ("done", HOST, True)
    assert _core.parse_hello(quic.hello(host=None)) == ("done", b"", False)
    for prefix in wire.prefixes(HELLO):
        assert _core.parse_hello(prefix) == ("need_more", b"", False)
    for after in (b"\0", HELLO):
        assert _core.parse_hello(HELLO + after) == ("done", HOST, False)
    twice = quic.hello(wire.server_name(b"other.example"))
    assert _core.parse_hello(twice) == ("malformed", b"", False)
    for other in (b"\2" + HELLO[1:], b"\1\0\0\5" + bytes(9), wire.record(HELLO)):
        assert _core.parse_hello(other) == ("other", b"", False)
    for place, changed in wire.off_by_one(HELLO):
        if not HELLO.index(HOST) <= place < HELLO.index(HOST) + len(HOST):
            assert _core.parse_hello(changed)[1] in (HOST, b"")


# RFC 9001, A.3: the server's Initial, with a packet number of two bytes.
ANSWER = bytes.fromhex(
    "02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf739"
    "88cfc79825df566dc5430b9a045a1200130100002e00330024001d00209d3c94"
    "0d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00"
    "020304"
)
ANSWER_HEAD = bytes.fromhex("c1000000010008f067a5502a4262b50040750001")
SEALED_ANSWER = bytes.fromhex(
    "cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a"
    "5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3"
    "dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84"
    "022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc4"
    "2158407dd074ee"
)


def test_sealing_is_the_rfcs() -> None:
    packet = ANSWER_HEAD + ANSWER
    header = len(ANSWER_HEAD) - 2
    assert _core.seal_quic(V1, DCID, packet, header, server=True) == SEALED_ANSWER


@given(
    st.binary(min_size=3, max_size=1500),
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.booleans(),
)
def test_sealing_is_the_oracles(
    frames: bytes, number: int, number_bytes: int, server: bool
) -> None:
    number %= 256**number_bytes
    wanted = Initial(frames, number=number, number_bytes=number_bytes, server=server)
    head = quic.long_header(quic.INITIAL, V1, DCID, SCID, low=number_bytes - 1) + b"\0"
    head += varint(number_bytes + len(frames) + 16, 2)
    packet = head + number.to_bytes(number_bytes, "big") + frames
    assert _core.seal_quic(V1, DCID, packet, len(head), server=server) == wanted.seal()


@pytest.mark.parametrize(("packet", "header"), [(b"", 0), (b"\xc1abc", 1), (b"\xc1" * 9, 6)])
def test_what_cannot_be_sealed(packet: bytes, header: int) -> None:
    with pytest.raises(ValueError, match="no Initial"):
        _core.seal_quic(V1, DCID, packet, header)
