# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Sealed rows and shares by other means: `cryptography`, and fractions of whole numbers."""

import hashlib
import hmac
from collections.abc import Sequence
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

PRIME = (1 << 127) - 1
CLASSES = (128, 256, 512, 1024, 2048, 4096)


class Place(NamedTuple):
    """Where a row's vote stands."""

    probe: int
    shard: int
    sequence: int
    number: int


def _bound(place: Place) -> bytes:
    widths = ((place.probe, 8), (place.sequence, 8), (place.shard, 2), (place.number, 4))
    return b"".join(value.to_bytes(n, "little") for value, n in widths)


def _padded(row: bytes) -> bytes:
    size = next(size for size in CLASSES if size >= len(row) + 2)
    return (len(row).to_bytes(2, "little") + row).ljust(size, b"\0")


def _nonce(base: bytes, index: int) -> bytes:
    return base[:8] + (int.from_bytes(base[8:], "little") ^ index).to_bytes(4, "little")


def seal(key: bytes, base: bytes, place: Place, row: bytes) -> bytes:
    """A row as crypto/row_cipher seals it."""
    return AESGCM(key).encrypt(_nonce(base, place.number), _padded(row), _bound(place))


def unseal(key: bytes, base: bytes, place: Place, sealed: bytes) -> bytes:
    """The row; InvalidTag where it was not sealed so."""
    plain = AESGCM(key).decrypt(_nonce(base, place.number), sealed, _bound(place))
    row = plain[2 : 2 + int.from_bytes(plain[:2], "little")]
    assert plain == _padded(row)
    return row


def message_key(secret: X25519PrivateKey, peer: bytes, reader: bytes, place: Place) -> bytes:
    """The key of a message: of one side's secret key and the other's public one.

    peer: the public key of the other side; reader: the reader's.
    """
    own = secret.public_key().public_bytes_raw()
    probe = peer if own == reader else own
    shared = secret.exchange(X25519PublicKey.from_public_bytes(peer))
    info = b"zanon-net/1/sealed-row" + probe + reader + _bound(place)[:18]
    return HKDF(SHA256(), 32, None, info).derive(shared)


# ---- shares -------------------------------------------------------------------------------------


class Group(NamedTuple):
    """An attribute in an epoch."""

    lo: int
    hi: int
    epoch: int

    def to_bytes(self) -> bytes:
        """As the labels have it behind them."""
        words = (self.lo, self.hi, self.epoch % (1 << 64))
        return b"".join(word.to_bytes(8, "little") for word in words)


def polynomial(key: bytes, group: Group, z: int) -> list[int]:
    """The coefficients, constant first."""
    text = b"zanon-net/1/threshold" + group.to_bytes() + z.to_bytes(4, "little")
    seed = hmac.digest(key, text, hashlib.sha256)
    stream = Cipher(AES256(seed), CTR(bytes(16))).encryptor().update(bytes(16 * z))
    words = (stream[16 * i : 16 * i + 16] for i in range(z))
    return [(int.from_bytes(word, "little") & PRIME) % PRIME for word in words]


def point(user: int) -> int:
    """The point of a user's hash."""
    return ((user & 0xFFFFFFFF) | user >> 56 << 32) + 1


def share(coefficients: Sequence[int], user: int) -> int:
    """The value at the user's point."""
    x = point(user)
    return sum(c * pow(x, i, PRIME) for i, c in enumerate(coefficients)) % PRIME


def secret(points: Sequence[tuple[int, int]]) -> int:
    """Lagrange's formula at 0."""
    total = 0
    for x, y in points:
        above = below = 1
        for other, _y in points:
            if other != x:
                above = above * -other % PRIME
                below = below * (x - other) % PRIME
        total += y * above * pow(below, -1, PRIME)
    return total % PRIME


def row_key(group: Group, constant: int) -> bytes:
    """The key of a group's rows."""
    info = b"zanon-net/1/threshold-row" + group.to_bytes()
    return HKDFExpand(SHA256(), 32, info).derive(constant.to_bytes(16, "little"))
