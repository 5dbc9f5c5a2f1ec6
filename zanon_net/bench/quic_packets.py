# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""QUIC version 1 packets with real Initial protection (RFC 9000, RFC 9001).

Initials are encrypted as RFC 9001, 5 says, so any observer can open them with the keys derived
from the first destination connection ID. Handshake and 1-RTT packets are noise behind a valid
header: their keys are never on the wire.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from zanon_net._core import seal_quic
from zanon_net.bench.messages import Dice, u16, u32, varint, vec

VERSION = 1
DATAGRAM_BYTES = 1200  # smallest datagram that may carry a client Initial (RFC 9000, 14.1)
AEAD_TAG_BYTES = 16
PACKET_NUMBER_BYTES = 2


def crypto_frame(offset: int, data: bytes) -> bytes:
    """Returns a CRYPTO frame (RFC 9000, 19.6)."""
    return b"\6" + varint(offset) + varint(len(data)) + data


def ack_frame(largest: int) -> bytes:
    """Returns an ACK frame for packets 0 to `largest`."""
    return b"\2" + varint(largest) + b"\0\0" + varint(largest)


@dataclass(frozen=True, slots=True)
class LongHeader:
    """The connection IDs and packet number of a long header packet."""

    dcid: bytes
    scid: bytes
    number: int


@dataclass(frozen=True, slots=True)
class Side:
    """The side whose keys protect an Initial; `first_dcid` is the client's first destination ID."""

    first_dcid: bytes
    server: bool = False


def initial_packet(header: LongHeader, side: Side, frames: bytes, size: int = 0) -> bytes:
    """Returns a protected Initial, PADDING added until the packet has `size` bytes (0: none)."""
    head = u32(VERSION) + vec(1, header.dcid) + vec(1, header.scid) + varint(0)
    fixed = 1 + len(head) + 2 + PACKET_NUMBER_BYTES + AEAD_TAG_BYTES
    frames += b"\0" * max(0, size - fixed - len(frames), 4 - len(frames))
    length = PACKET_NUMBER_BYTES + len(frames) + AEAD_TAG_BYTES
    front = bytes([0xC0 | (PACKET_NUMBER_BYTES - 1)]) + head + u16(0x4000 | length)
    packet = front + u16(header.number) + frames
    return seal_quic(VERSION, side.first_dcid, packet, len(front), server=side.server)


def handshake_packet(dcid: bytes, scid: bytes, size: int, dice: Dice) -> bytes:
    """Returns a Handshake packet of `size` bytes whose protected part is noise."""
    head = u32(VERSION) + vec(1, dcid) + vec(1, scid)
    rest = size - 1 - len(head) - 2
    return bytes([0xE0 | dice.below(16)]) + head + u16(0x4000 | rest) + dice.bytes(rest)


def short_packet(dcid: bytes, size: int, dice: Dice) -> bytes:
    """Returns a 1-RTT packet of `size` bytes: fixed bit, the receiver's ID, noise."""
    return bytes([0x40 | dice.below(64)]) + dcid + dice.bytes(size - 1 - len(dcid))


def client_initials(hello: bytes, ids: LongHeader, cuts: Sequence[int], dice: Dice) -> list[bytes]:
    """Returns the client's first datagrams, one Initial each, the hello cut at the offsets `cuts`.

    Every piece is sent as two CRYPTO frames in reverse order with a PING between, as browsers
    scramble them. `ids.number` is the number of the first packet.
    """
    edges = [0, *cuts, len(hello)]
    datagrams = []
    for i, (start, end) in enumerate(pairwise(edges)):
        middle = start + 1 + dice.below(end - start - 1)
        late = crypto_frame(middle, hello[middle:end])
        early = crypto_frame(start, hello[start:middle])
        header = LongHeader(ids.dcid, ids.scid, ids.number + i)
        datagrams.append(
            initial_packet(header, Side(ids.dcid), late + b"\1" + early, DATAGRAM_BYTES)
        )
    return datagrams
