# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Handshakes of Google's QUIC in the versions Q043, Q046 and Q050, without the code under test."""

import struct
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from support.quic_wire import expand, varint
from support.wire import vector

Q043, Q046, Q050 = (int.from_bytes(text, "big") for text in (b"Q043", b"Q046", b"Q050"))
VERSIONS = (Q043, Q046, Q050)
SALT = bytes.fromhex("504574efd066fe2f9d945cfcdbd3a7f0d3b56b45")
ID = bytes.fromhex("1122334455667788")
TOKEN = bytes(range(40, 96))


def fnv1a(data: bytes) -> bytes:
    """The low 12 bytes of FNV-1a with 128 bits, the lowest first."""
    value = 0x6C62272E07BB014262B821756295C58D
    for byte in data:
        value = (value ^ byte) * (2**88 + 0x13B) % 2**128
    return value.to_bytes(16, "little")[:12]


def message(kind: bytes, *values: tuple[bytes, bytes]) -> bytes:
    """A message of the handshake: tags of four bytes, by their numbers."""
    pairs = sorted(values, key=lambda pair: int.from_bytes(pair[0], "little"))
    table, end = b"", 0
    for tag, value in pairs:
        end += len(value)
        table += tag + struct.pack("<I", end)
    return kind + struct.pack("<HH", len(pairs), 0) + table + b"".join(v for _, v in pairs)


def hello(
    host: bytes | None = b"a.example", token: bytes = b"", *more: tuple[bytes, bytes], pad: int = 0
) -> bytes:
    """A CHLO."""
    named = [] if host is None else [(b"SNI\0", host)]
    named += [(b"STK\0", token)] if token else []
    named += [(b"PAD\0", b"-" * pad)] if pad else []
    return message(b"CHLO", *named, (b"VER\0", b"Q043"), (b"UAID", b"agent"), *more)


def rejection(token: bytes = TOKEN) -> bytes:
    """A REJ with a certificate behind the token."""
    return message(b"REJ\0", (b"STK\0", token), (b"SNO\0", bytes(52)), (b"CRT\xff", bytes(600)))


@dataclass(frozen=True)
class Part:
    """A packet whose frames carry a part of the handshake's stream."""

    data: bytes
    offset: int = 0
    version: int = Q043
    server: bool = False
    number: int = 1
    size: int = 1100
    id: bytes = ID
    before: bytes = b""  # further frames
    both: bool = False  # the ID in both places of Q050

    def frame(self) -> bytes:
        """The part as a frame of the version."""
        if self.version == Q050:
            return b"\x08" + varint(self.offset, 2) + varint(len(self.data), 2) + self.data
        kind = 0xA4 if self.offset else 0xA0
        offset = struct.pack(">H", self.offset) if self.offset else b""
        return bytes([kind, 1]) + offset + struct.pack(">H", len(self.data)) + self.data

    def seal(self) -> bytes:
        """The packet."""
        frames = self.before + self.frame()
        if self.version == Q050:
            return self._seal_q050(frames)
        frames += bytes(max(0, self.size - len(frames)))
        if self.version == Q043 and self.server:
            head = b"\x08" + self.id + bytes([self.number])
        elif self.version == Q043:
            head = b"\x09" + self.id + b"Q043" + bytes([self.number])
        else:
            lengths = b"\x05" if self.server else b"\x50"
            head = b"\xc3Q046" + lengths + self.id + struct.pack(">I", self.number)
        side = b"Server" if self.server else b"Client"
        return head + fnv1a(head + frames + side) + frames

    def _seal_q050(self, frames: bytes) -> bytes:
        extract = HMAC(SALT, SHA256())
        extract.update(self.id)
        secret = expand(extract.finalize(), "server in" if self.server else "client in", 32)
        sizes = {"key": 16, "iv": 12, "hp": 16}
        key, iv, hp = (expand(secret, f"quic {word}", n) for word, n in sizes.items())
        frames += bytes(max(0, self.size - len(frames)))
        ids = (b"", self.id) if self.server else (self.id, b"")
        ids = (self.id, self.id) if self.both else ids
        head = b"\xc3Q050" + vector(1, ids[0]) + vector(1, ids[1]) + varint(0)
        head += varint(4 + len(frames) + 16, 2) + struct.pack(">I", self.number)
        nonce = int.from_bytes(iv, "big") ^ self.number
        sealed = AESGCM(key).encrypt(nonce.to_bytes(12, "big"), frames, head)
        mask = Cipher(algorithms.AES(hp), modes.ECB()).encryptor().update(sealed[:16])
        number = bytes(a ^ b for a, b in zip(head[-4:], mask[1:], strict=False))
        return bytes([head[0] ^ (mask[0] & 15)]) + head[1:-4] + number + sealed
