# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""QUIC datagrams as anonymized packets have them: sealed again, byte for byte as `cryptography`
seals the frames that may leave."""

import dataclasses
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.quic import opened, split
from support import quic_wire as quic
from support import wire
from support.examples import each
from support.quic_wire import DCID, SCID, SERVER_ID, V1, V2, Initial, crypto, varint

from zanon_net import _core

pytestmark = pytest.mark.source

HELLO = quic.hello(host=b"canary.example.org")
EDITED = quic.hello(host=b"xxxxxxxxxx.invalid")
ANSWER = b"\2\0\0\x56" + bytes(range(0x56))
assert len(EDITED) == len(HELLO)


def built(
    datagram: bytes, stream: bytes = b"", *, key_id: bytes | None = None, server: bool = False
) -> bytes:
    """The datagram as it leaves."""
    return _core.build_quic(datagram, crypto=stream, key_id=key_id, server=server)[0]


def changed(initial: Initial, **fields: object) -> bytes:
    """The Initial with other fields, sealed."""
    return dataclasses.replace(initial, **fields).seal()  # type: ignore[arg-type]


# ---- Initials that open -------------------------------------------------------------------------


@each("number_bytes", [1, 2, 3, 4])
@each("version", [V1, V2, quic.DRAFT_29, 0xFACEB002])
def test_what_is_not_changed_has_the_same_bytes(version: int, number_bytes: int) -> None:
    for number in (0, 1, 200, 256**number_bytes - 1):
        initial = Initial(
            crypto(HELLO), version, number=number, number_bytes=number_bytes, size=1200
        )
        packet = initial.seal()
        assert _core.build_quic(packet, crypto=HELLO) == (packet, 1)
        assert _core.build_quic(packet, crypto=EDITED) == (
            changed(initial, frames=crypto(EDITED)),
            1,
        )


def test_a_token_is_zeros_that_authenticate() -> None:
    for size in (1, 5, 70, 300):
        initial = Initial(crypto(HELLO), token=b"\xaa" * size, size=1200)
        assert built(initial.seal(), HELLO) == changed(initial, token=bytes(size))


def test_reserved_bits_are_zeros_and_a_greased_bit_stays() -> None:
    for fixed in (0, 0x40):
        initial = Initial(crypto(HELLO), low=0x0C, fixed=fixed)
        assert built(initial.seal(), HELLO) == changed(initial, low=0)


def test_both_sides_and_later_packets() -> None:
    ours = Initial(quic.ACK, dcid=SERVER_ID, number=9, key_id=DCID)
    theirs = Initial(quic.ACK + crypto(ANSWER), dcid=SCID, scid=SERVER_ID, key_id=DCID, server=True)
    assert built(ours.seal(), key_id=DCID) == ours.seal()
    assert built(theirs.seal(), ANSWER, key_id=DCID, server=True) == theirs.seal()
    zeros = bytes(len(crypto(ANSWER)))
    assert built(theirs.seal(), key_id=DCID, server=True) == changed(
        theirs, frames=quic.ACK + zeros
    )
    for packet, server in ((ours, False), (theirs, True)):
        alone = _core.build_quic(packet.seal(), crypto=ANSWER, server=server)
        head = len(quic.long_header(0, V1, packet.dcid, packet.scid)) + 1 + 2
        assert alone == (front(packet.seal(), head), 0)


FRAMES = st.one_of(
    st.tuples(st.just(quic.PADDING), st.none()),
    st.tuples(st.just(quic.PING), st.none()),
    st.tuples(st.sampled_from([quic.ACK, quic.ACK_ECN]), st.none()),
    st.tuples(
        st.tuples(st.sampled_from([2, 4, 8]), st.binary(max_size=60)),
        st.integers(0, 700) | st.integers(0, 2**62 - 100),
    ),
    st.tuples(st.binary(max_size=30), st.just("reason")),
)


def frame_of(content: object, place: object, stream: bytes) -> tuple[bytes, bytes]:
    """(the frame, what leaves of it)."""
    match content, place:
        case bytes(reason), "reason":
            head = b"\x1c" + varint(0x128, 2) + varint(6) + varint(len(reason))
            return head + reason, head + bytes(len(reason))
        case (int(width), bytes(data)), int(offset):
            least = 8 if offset >= 2**30 else 4
            head = b"\x06" + varint(offset, max(width, least)) + varint(len(data), width)
            part = stream[offset : offset + len(data)].ljust(len(data), b"\0")
            if offset >= len(stream):
                return head + data, bytes(len(head) + len(data))
            return head + data, head + part
        case bytes(plain), None:
            return plain, plain
    raise AssertionError(content)


@given(
    st.lists(FRAMES, min_size=1, max_size=12),
    st.binary(max_size=800),
    st.integers(1, 4),
    st.binary(max_size=20),
    st.booleans(),
)
def test_frames_are_the_listed_fields(
    chosen: list[tuple[object, object]],
    stream: bytes,
    number_bytes: int,
    key_id: bytes,
    server: bool,
) -> None:
    both = [frame_of(content, place, stream) for content, place in chosen]
    frames, left = (b"".join(part) for part in zip(*both, strict=True))
    initial = Initial(
        frames, number=70 % 256**number_bytes, number_bytes=number_bytes, key_id=key_id,
        server=server, size=100,
    )  # fmt: skip
    out = built(initial.seal(), stream, key_id=key_id, server=server)
    assert out == changed(initial, frames=left)
    assert built(out, stream, key_id=key_id, server=server) == out


@pytest.mark.parametrize(
    "last", [b"\x08abc", b"\x06\0\x40", b"\x06\0\x7f", b"\x02\0\0\x3f", b"\x40"]
)
def test_a_frame_that_is_not_understood_makes_all_padding(last: bytes) -> None:
    initial = Initial(quic.PING + crypto(HELLO) + quic.ACK + last)
    assert built(initial.seal(), HELLO) == changed(initial, frames=bytes(len(initial.frames)))


def test_names_in_many_frames_and_packets() -> None:
    """The stream's bytes wherever they are sent, and sent again."""
    parts = [(0, 50), (30, 70), (70, len(HELLO)), (0, len(HELLO))]

    def datagram(stream: bytes) -> bytes:
        return b"".join(
            Initial(crypto(stream[a:b], a) + quic.PING, number=n, size=400).seal()
            for n, (a, b) in enumerate(parts)
        )

    assert _core.build_quic(datagram(HELLO), crypto=EDITED) == (datagram(EDITED), 4)


# ---- what does not open, and other packets ------------------------------------------------------


def front(packet: bytes, size: int, bits: int = 0xF0) -> bytes:
    """The packet with its first `size` bytes alone, and of the first byte these bits."""
    return (bytes([packet[0] & bits]) + packet[1:size]).ljust(len(packet), b"\0")


INITIAL_BYTES = len(quic.long_header(0, V1, DCID, SCID)) + 1 + 2
LONG_BYTES = len(quic.long_header(0, V1, DCID, SCID)) + 2


def test_what_does_not_open_is_its_header() -> None:
    packet = Initial(crypto(HELLO), number=3).seal()
    for key_id in (b"", b"other", DCID[:-1]):
        assert _core.build_quic(packet, key_id=key_id, crypto=HELLO) == (
            front(packet, INITIAL_BYTES),
            0,
        )
    for place in range(INITIAL_BYTES, len(packet)):
        other = packet[:place] + bytes([packet[place] ^ 1]) + packet[place + 1 :]
        assert built(other, HELLO) == front(packet, INITIAL_BYTES)


def test_one_initial_that_does_not_open_between_others() -> None:
    good, bad = (Initial(crypto(HELLO), number=n).seal() for n in range(2))
    bad = bad[:-1] + bytes([bad[-1] ^ 0x80])
    out, resealed = _core.build_quic(good + bad + good, crypto=HELLO)
    assert (out, resealed) == (good + front(bad, INITIAL_BYTES) + good, 2)


@pytest.mark.parametrize("version", [V1, V2])
@pytest.mark.parametrize("kind", [quic.ZERO_RTT, quic.HANDSHAKE])
def test_sealed_packets_are_their_header(kind: int, version: int) -> None:
    packet = quic.opaque(kind, DCID, SCID, version=version)
    assert built(packet) == front(packet, LONG_BYTES)


def test_a_short_header_is_its_form_and_spin_bit() -> None:
    for first in (0x40, 0x60, 0x7F, 0x1F):
        packet = bytes([first]) + DCID + bytes(range(100))
        assert built(packet) == bytes([first & 0xE0]) + bytes(len(packet) - 1)


@pytest.mark.parametrize("version", [V1, V2, quic.DRAFT_29])
def test_a_retry_has_the_tag_of_what_leaves(version: int) -> None:
    packet = quic.retry(SCID, SERVER_ID, b"canary-token", version)
    head = front(packet, len(packet) - 16 - 12)
    assert built(packet, server=True) == head
    empty = quic.retry(SCID, SERVER_ID, bytes(12), version)
    out = built(packet, key_id=DCID, server=True)
    assert out[1:-16] == empty[1:-16]
    first = bytes([empty[0] & 0xF0])
    key, nonce = map(bytes.fromhex, quic.RETRY_KEYS[version])
    said = wire.vector(1, DCID) + first + empty[1:-16]
    assert out == first + empty[1:-16] + quic.AESGCM(key).encrypt(nonce, b"", said)


def test_a_retry_of_a_version_without_tags() -> None:
    packet = quic.retry(SCID, SERVER_ID, b"canary-token", 0xFF000016)
    assert built(packet, key_id=DCID, server=True) == front(packet, len(packet) - 16 - 12)


def test_version_negotiation_and_foreign_versions_are_their_ids() -> None:
    negotiation = quic.negotiation(SCID, DCID, V1, V2)
    assert built(negotiation, server=True) == front(negotiation, len(negotiation) - 8, 0xC0)
    foreign = quic.long_header(1, 0x0A1A2A3A, DCID, SCID, 9) + bytes(range(1, 60))
    assert built(foreign) == front(foreign, len(foreign) - 59)
    long_id = quic.long_header(1, 0x0A1A2A3A, bytes(range(1, 22)), SCID) + b"abc"
    assert built(long_id) == front(long_id, 5)


def test_coalesced_packets_stay_in_their_places() -> None:
    parts = [
        Initial(crypto(HELLO)).seal(),
        quic.opaque(quic.ZERO_RTT, DCID, SCID),
        quic.opaque(quic.HANDSHAKE, DCID, SCID, 200),
        quic.short(DCID),
    ]
    assert built(b"".join(parts), HELLO) == b"".join(built(part, HELLO) for part in parts)
    for noise in (b"\xff" * 6, b"\xff" * 40):
        assert built(parts[0] + noise, HELLO) == parts[0] + bytes(len(noise))


# ---- captures that cut, and bytes of any kind ---------------------------------------------------


def test_a_cut_datagram_is_at_most_headers() -> None:
    packet = Initial(crypto(HELLO), token=b"canary" * 3, size=300).seal()
    head = len(quic.long_header(0, V1, DCID, SCID)) + 1
    for size in range(len(packet)):
        out, resealed = _core.build_quic(packet[:size], crypto=HELLO, whole=False)
        whole_head = head + 18 + 2 <= size
        expected = packet[:head] + bytes(18) + packet[head + 18 :][:2] if whole_head else b""
        assert (out, resealed) == (front(expected.ljust(size, b"\0"), size) if size else b"", 0)
        assert not any(built(packet[:size], HELLO)), "a datagram that is whole has whole packets"


@given(st.binary(max_size=300), st.booleans(), st.booleans())
def test_any_bytes_leave_few(data: bytes, whole: bool, server: bool) -> None:
    starts: list[Callable[[], bytes]] = [
        lambda: b"",
        lambda: quic.long_header(0, V1, DCID, SCID),
        lambda: Initial(crypto(HELLO)).seal(),
    ]
    for start in starts:
        datagram = start() + data
        out, _ = _core.build_quic(datagram, whole=whole, server=server, key_id=b"never")
        assert len(out) == len(datagram)
        again, _ = _core.build_quic(out, whole=whole, server=server, key_id=b"never")
        assert again == out


def test_canaries_never_leave() -> None:
    """What is in a token, a reason, or a frame that the stream does not cover."""
    canary = b"canary-0123456789"
    plain = crypto(canary) + crypto(canary, 5000) + b"\x1c\0\0" + wire.vector(1, canary)
    datagram = Initial(plain, token=canary).seal() + quic.retry(DCID, SCID, canary)
    for stream in (b"", b"y", EDITED):
        out = built(datagram, stream)
        plain_out = opened(split(out)[0][0], DCID)
        assert plain_out is not None
        assert len(plain_out) == len(plain)
        assert canary not in out + plain_out
