# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""QUIC version 1 packets with real Initial protection (RFC 9000, RFC 9001).

Initials are encrypted as RFC 9001, 5 says, so any observer can open them with the keys derived
from the first destination connection ID. Handshake and 1-RTT packets are noise behind a valid
header: their keys are never on the wire.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from traffic import Dice, u16, varint, vec

VERSION = bytes.fromhex("00000001")
INITIAL_SALT = bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a")  # RFC 9001, 5.2
DATAGRAM_BYTES = 1200  # smallest datagram that may carry a client Initial (RFC 9000, 14.1)
AEAD_TAG_BYTES = 16
PACKET_NUMBER_BYTES = 2


@dataclass(frozen=True, slots=True)
class InitialKeys:
    """AEAD key, nonce base and header protection key of one direction."""

    key: bytes
    iv: bytes
    hp: bytes


def _expand_label(secret: bytes, label: bytes, size: int) -> bytes:
    """HKDF-Expand-Label (RFC 8446, 7.1) with an empty context; one block covers all sizes here."""
    info = u16(size) + vec(1, b"tls13 " + label) + b"\0"
    return hmac.digest(secret, info + b"\1", hashlib.sha256)[:size]


def initial_keys(first_dcid: bytes, client: bool) -> InitialKeys:
    """Derive the Initial keys of one side (RFC 9001, 5.2) from the client's first DCID."""
    common = hmac.digest(INITIAL_SALT, first_dcid, hashlib.sha256)
    secret = _expand_label(common, b"client in" if client else b"server in", 32)
    return InitialKeys(
        _expand_label(secret, b"quic key", 16),
        _expand_label(secret, b"quic iv", 12),
        _expand_label(secret, b"quic hp", 16),
    )


def crypto_frame(offset: int, data: bytes) -> bytes:
    """Return a CRYPTO frame (RFC 9000, 19.6)."""
    return b"\6" + varint(offset) + varint(len(data)) + data


def ack_frame(largest: int) -> bytes:
    """Return an ACK frame for packets 0 to `largest`."""
    return b"\2" + varint(largest) + b"\0\0" + varint(largest)


@dataclass(frozen=True, slots=True)
class LongHeader:
    """The connection IDs and packet number of a long header packet."""

    dcid: bytes
    scid: bytes
    number: int


def initial_packet(header: LongHeader, keys: InitialKeys, frames: bytes, size: int = 0) -> bytes:
    """Return a protected Initial, PADDING added until the packet has `size` bytes (0: none)."""
    head = VERSION + vec(1, header.dcid) + vec(1, header.scid) + varint(0)
    fixed = 1 + len(head) + 2 + PACKET_NUMBER_BYTES + AEAD_TAG_BYTES
    frames += b"\0" * max(0, size - fixed - len(frames), 4 - len(frames))
    length = PACKET_NUMBER_BYTES + len(frames) + AEAD_TAG_BYTES
    number = u16(header.number)
    first = 0xC0 | (PACKET_NUMBER_BYTES - 1)
    plain = bytes([first]) + head + u16(0x4000 | length)
    base = int.from_bytes(keys.iv, "big") ^ header.number
    sealed = AESGCM(keys.key).encrypt(base.to_bytes(12, "big"), frames, plain + number)
    sample = sealed[4 - PACKET_NUMBER_BYTES :][:16]
    # One block of AES is the mask of RFC 9001, 5.4.3; ECB of a single block is that block.
    mask = Cipher(algorithms.AES(keys.hp), modes.ECB()).encryptor().update(sample)
    hidden = bytes(a ^ b for a, b in zip(number, mask[1:], strict=False))
    return bytes([first ^ (mask[0] & 0x0F)]) + plain[1:] + hidden + sealed


def handshake_packet(dcid: bytes, scid: bytes, size: int, dice: Dice) -> bytes:
    """Return a Handshake packet of `size` bytes whose protected part is noise."""
    head = VERSION + vec(1, dcid) + vec(1, scid)
    rest = size - 1 - len(head) - 2
    return bytes([0xE0 | dice.below(16)]) + head + u16(0x4000 | rest) + dice.bytes(rest)


def short_packet(dcid: bytes, size: int, dice: Dice) -> bytes:
    """Return a 1-RTT packet of `size` bytes: fixed bit, the receiver's ID, noise."""
    return bytes([0x40 | dice.below(64)]) + dcid + dice.bytes(size - 1 - len(dcid))


def client_initials(hello: bytes, ids: LongHeader, cuts: Sequence[int], dice: Dice) -> list[bytes]:
    """Return the client's first datagrams, one Initial each, the hello cut at the offsets `cuts`.

    Every piece is sent as two CRYPTO frames in reverse order with a PING between, as browsers
    scramble them. `ids.number` is the number of the first packet.
    """
    keys = initial_keys(ids.dcid, client=True)
    edges = [0, *cuts, len(hello)]
    datagrams = []
    for i, (start, end) in enumerate(pairwise(edges)):
        middle = start + 1 + dice.below(end - start - 1)
        late = crypto_frame(middle, hello[middle:end])
        early = crypto_frame(start, hello[start:middle])
        header = LongHeader(ids.dcid, ids.scid, ids.number + i)
        datagrams.append(initial_packet(header, keys, late + b"\1" + early, DATAGRAM_BYTES))
    return datagrams
