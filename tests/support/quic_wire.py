# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""QUIC packets of every version that is read, built with `cryptography` alone, and DTLS records."""

import itertools
import random
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from support import wire
from support.wire import vector

V1, V2 = 1, 0x6B3343CF
DRAFT_29 = 0xFF00001D
SALTS = {
    "38762cf7f55934b34d179ae6a4c80cadccbb7f0a": [V1, 0xFF000021, 0xFF000022],
    "0dede3def700a6db819381be6e269dcbf9bd2ed9": [V2],
    "afbfec289993d24c9e9786f19c6111e04390a899": [0xFF000000 + n for n in range(29, 33)],
    "c3eef712c72ebb5a11a7d2432bb46365bef9f502": [
        *(0xFF000000 + n for n in range(23, 29)),
        0xFACEB002,
        0xFACEB00E,
    ],
    "7fbcdb0e7c66bbe9193a96cd21519ebd7a02644a": [0xFF000016, 0xFACEB001],
}
VERSIONS = {version: bytes.fromhex(salt) for salt, those in SALTS.items() for version in those}
INITIAL, ZERO_RTT, HANDSHAKE, RETRY = range(4)

DCID = bytes.fromhex("8394c8f03e515708")
SCID = bytes.fromhex("c1c2c3c4c5")
SERVER_ID = bytes.fromhex("f067a5502a4262b5")
DATAGRAM_BYTES = 1200


def varint(value: int, width: int = 0) -> bytes:
    """A variable-length integer in `width` bytes, or as few as it takes."""
    for bits, size in enumerate((1, 2, 4, 8)):
        if value < 1 << (8 * size - 2) and size >= width:
            return (value | bits << (8 * size - 2)).to_bytes(size, "big")
    raise ValueError(value)


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one side's Initials."""

    key: bytes
    iv: bytes
    hp: bytes


def expand(secret: bytes, label: str, size: int) -> bytes:
    """HKDF-Expand-Label with an empty context (RFC 8446, 7.1)."""
    info = struct.pack(">H", size) + vector(1, b"tls13 " + label.encode()) + b"\0"
    return HKDFExpand(SHA256(), size, info).derive(secret)


def initial_keys(version: int, dcid: bytes, *, server: bool = False) -> Keys:
    """RFC 9001, 5.2 and RFC 9369, 3.3."""
    extract = HMAC(VERSIONS[version], SHA256())
    extract.update(dcid)
    secret = expand(extract.finalize(), "server in" if server else "client in", 32)
    prefix = "quicv2" if version == V2 else "quic"
    return Keys(
        expand(secret, f"{prefix} key", 16),
        expand(secret, f"{prefix} iv", 12),
        expand(secret, f"{prefix} hp", 16),
    )


def long_header(
    kind: int, version: int, dcid: bytes, scid: bytes, low: int = 0, fixed: int = 0x40
) -> bytes:
    """The first byte to the source connection ID."""
    bits = (kind + 1) % 4 if version == V2 else kind
    first = 0x80 | fixed | bits << 4 | low
    return bytes([first]) + version.to_bytes(4, "big") + vector(1, dcid) + vector(1, scid)


@dataclass(frozen=True, slots=True)
class Initial:
    """An Initial before it is protected; its keys come from key_id (None: from dcid)."""

    frames: bytes
    version: int = V1
    dcid: bytes = DCID
    scid: bytes = SCID
    token: bytes = b""
    number: int = 0
    number_bytes: int = 2
    key_id: bytes | None = None
    server: bool = False
    size: int = 0  # least bytes of the packet, filled up with PADDING
    low: int = 0  # further bits of the first byte
    fixed: int = 0x40

    def seal(self) -> bytes:
        """The protected packet."""
        key_id = self.dcid if self.key_id is None else self.key_id
        keys = initial_keys(self.version, key_id, server=self.server)
        low = self.low | self.number_bytes - 1
        head = long_header(INITIAL, self.version, self.dcid, self.scid, low, self.fixed)
        head += varint(len(self.token)) + self.token
        least = 4 - self.number_bytes  # so that a sample fits
        missing = self.size - len(head) - 2 - self.number_bytes - len(self.frames) - 16
        frames = self.frames + bytes(max(0, missing, least - len(self.frames)))
        number = self.number.to_bytes(8, "big")[-self.number_bytes :]
        head += varint(len(number) + len(frames) + 16, 2) + number
        nonce = int.from_bytes(keys.iv, "big") ^ self.number
        sealed = AESGCM(keys.key).encrypt(nonce.to_bytes(12, "big"), frames, head)
        sample = sealed[4 - self.number_bytes :][:16]
        mask = Cipher(algorithms.AES(keys.hp), modes.ECB()).encryptor().update(sample)
        hidden = bytes(a ^ b for a, b in zip(number, mask[1:], strict=False))
        first = head[0] ^ (mask[0] & 0x0F)
        return bytes([first]) + head[1 : -len(number)] + hidden + sealed


def crypto(data: bytes, offset: int = 0) -> bytes:
    """A CRYPTO frame."""
    return b"\x06" + varint(offset) + varint(len(data)) + data


PADDING, PING = bytes(3), b"\x01"
ACK = b"\x02" + varint(7) + varint(300) + varint(2) + varint(1) + varint(0) * 4
ACK_ECN = b"\x03" + ACK[1:] + varint(1) + varint(70000) + varint(0)
CLOSE = b"\x1c" + varint(0x128) + varint(6) + varint(4) + b"oops"


def hello(*extensions: bytes, host: bytes | None = wire.HOST) -> bytes:
    """A ClientHello as QUIC carries it."""
    names = () if host is None else (wire.server_name(host),)
    return wire.client_hello(
        wire.extension(wire.SUPPORTED_VERSIONS, b"\2\3\4"), *names, *extensions
    )


def post_quantum(host: bytes = wire.HOST) -> bytes:
    """A ClientHello that no single datagram holds."""
    share = wire.vector(2, b"\x11\xec" + wire.vector(2, bytes(1216)))
    return hello(wire.extension(wire.KEY_SHARE, share), host=host)


def pieces_of(message: bytes, cuts: Iterable[int]) -> list[tuple[int, bytes]]:
    """(offset, bytes) of the parts between the cuts."""
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(message)}), len(message)]
    return [(a, message[a:b]) for a, b in itertools.pairwise(edges)]


def scrambled(message: bytes, dice: random.Random, cuts: Sequence[int]) -> bytes:
    """All of the message as CRYPTO frames in any order, with other frames between them."""
    frames = [crypto(data, offset) for offset, data in pieces_of(message, cuts)]
    frames += dice.choices([PADDING, PING, ACK, ACK_ECN], k=dice.randrange(6))
    dice.shuffle(frames)
    return b"".join(frames)


def first_flight(message: bytes, **initial: object) -> list[bytes]:
    """The datagrams in which a client sends this ClientHello, in order."""
    parts = pieces_of(message, range(1100, len(message), 1100))
    return [
        Initial(crypto(data, offset), number=n, size=DATAGRAM_BYTES, **initial).seal()  # type: ignore[arg-type]
        for n, (offset, data) in enumerate(parts)
    ]


def opaque(
    kind: int, dcid: bytes, scid: bytes, size: int = 80, version: int = V1, fixed: int = 0x40
) -> bytes:
    """A 0-RTT or Handshake packet, whose protected part is noise."""
    noise = random.Random(size).randbytes(size)
    return long_header(kind, version, dcid, scid, 5, fixed) + varint(size, 2) + noise


def short(dcid: bytes, size: int = 40, fixed: int = 0x40) -> bytes:
    """A 1-RTT packet."""
    return bytes([fixed | 0x15]) + dcid + random.Random(size).randbytes(size)


RETRY_KEYS = {
    V1: ("be0c690b9f66575a1d766b54e368c84e", "461599d35d632bf2239825bb"),
    V2: ("8fb4b01b56ac48e260fbcbcead7ccc92", "d86969bc2d7c6d9990efb04a"),
    DRAFT_29: ("ccce187ed09a09d05728155a6cb96be1", "e54930f97f2136f0530a8c1c"),
}


def retry(
    dcid: bytes, scid: bytes, token: bytes = b"token", version: int = V1, key_id: bytes = DCID
) -> bytes:
    """A Retry packet for a client whose first ID is key_id (RFC 9001, 5.8); of a version that has
    no keys here its tag is noise."""
    packet = long_header(RETRY, version, dcid, scid, 7) + token
    if version not in RETRY_KEYS:
        return packet + bytes(range(16))
    key, nonce = map(bytes.fromhex, RETRY_KEYS[version])
    return packet + AESGCM(key).encrypt(nonce, b"", vector(1, key_id) + packet)


def negotiation(dcid: bytes, scid: bytes, *versions: int) -> bytes:
    """A Version Negotiation packet."""
    head = b"\x9a" + bytes(4) + vector(1, dcid) + vector(1, scid)
    return head + b"".join(version.to_bytes(4, "big") for version in versions)


def server_answer(
    dcid: bytes = SCID, scid: bytes = SERVER_ID, version: int = V1, key_id: bytes = DCID
) -> bytes:
    """A server's first datagram: its Initial and a Handshake packet."""
    frames = ACK + crypto(b"\2" + bytes(89))
    initial = Initial(frames, version, dcid, scid, key_id=key_id, server=True)
    return initial.seal() + opaque(HANDSHAKE, dcid, scid, 700, version)


# ---- DTLS ---------------------------------------------------------------------------------------


def dtls_hello(
    *extensions: bytes, cookie: bytes = b"", host: bytes | None = wire.HOST, version: int = 0xFEFD
) -> bytes:
    """The body of a DTLS ClientHello."""
    names = () if host is None else (wire.server_name(host),)
    body = struct.pack(">H", version) + wire.RANDOM + vector(1, b"") + vector(1, cookie)
    body += vector(2, b"\xc0\x2b\xc0\x2f") + vector(1, b"\0")
    return body + vector(2, b"".join([*names, *extensions]))


def dtls_fragment(
    body: bytes, start: int = 0, end: int | None = None, *, message: int = 0, kind: int = 1
) -> bytes:
    """A handshake fragment: bytes [start, end) of the message's body."""
    part = body[start:end]
    head = bytes([kind]) + len(body).to_bytes(3, "big") + struct.pack(">H", message)
    return head + start.to_bytes(3, "big") + len(part).to_bytes(3, "big") + part


def dtls_record(
    content: bytes, *, kind: int = 22, version: int = 0xFEFF, epoch: int = 0, number: int = 0
) -> bytes:
    """A DTLS record in the clear."""
    head = struct.pack(">BHH", kind, version, epoch) + number.to_bytes(6, "big")
    return head + vector(2, content)


def verify_request(cookie: bytes) -> bytes:
    """A datagram with a HelloVerifyRequest."""
    return dtls_record(dtls_fragment(b"\xfe\xff" + vector(1, cookie), kind=3))
