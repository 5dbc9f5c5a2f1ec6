# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Application bytes of made-up traffic: TLS, HTTP and DNS messages from a seeded byte stream.

The messages know no packets or addresses: `pcaps/packets.py` wraps them for the demo capture,
`trace_frames` for the large traces. QUIC Initials are in `quic_packets`. All content is synthetic:
names lie in the reserved zones of RFC 2606 and RFC 6761.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")

GREASE_EXTENSION = 0x1A1A
X25519 = 0x001D
X25519_MLKEM768 = 0x11EC
MLKEM_SHARE_BYTES = 1216  # ML-KEM-768 key 1184 + X25519 key 32: makes a hello span segments


class Dice:
    """Deterministic randomness: SHA-256 in counter mode over a text seed.

    The stdlib generator only promises ``random()`` to be stable across Python versions. The demo
    capture has to be equal everywhere, so every draw here is integer arithmetic on a hash.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._key = hashlib.sha256(seed.encode()).digest()
        self._counter = 0
        self._pool = b""

    def fork(self, label: str) -> "Dice":
        """Returns an independent stream, so that one scenario's draws never shift another's."""
        return Dice(f"{self._seed}/{label}")

    def bytes(self, count: int) -> bytes:
        """Returns `count` pseudo-random bytes."""
        while len(self._pool) < count:
            block = self._counter.to_bytes(8, "big")
            self._pool += hashlib.sha256(self._key + block).digest()
            self._counter += 1
        taken, self._pool = self._pool[:count], self._pool[count:]
        return taken

    def below(self, limit: int) -> int:
        """Returns an integer in [0, limit); the modulo bias of 64 bits is of no concern here."""
        return int.from_bytes(self.bytes(8), "big") % limit

    def between(self, low: int, high: int) -> int:
        """Returns an integer in [low, high]."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """Returns True in `percent` of 100 draws."""
        return self.below(100) < percent

    def pick(self, items: Sequence[Item]) -> Item:
        """Returns one element, all equally likely."""
        return items[self.below(len(items))]

    def weighted(self, cumulative: Sequence[int]) -> int:
        """Returns the index drawn by integer weights given as their running sums."""
        mark = self.below(cumulative[-1])
        low, high = 0, len(cumulative) - 1
        while low < high:
            middle = (low + high) // 2
            if mark < cumulative[middle]:
                high = middle
            else:
                low = middle + 1
        return low

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Returns the elements in a random order (Fisher-Yates)."""
        result = list(items)
        for i in range(len(result) - 1, 0, -1):
            j = self.below(i + 1)
            result[i], result[j] = result[j], result[i]
        return result


def u16(value: int) -> bytes:
    """Returns two bytes, network order."""
    return value.to_bytes(2, "big")


def u32(value: int) -> bytes:
    """Returns four bytes, network order."""
    return value.to_bytes(4, "big")


def vec(width: int, data: bytes) -> bytes:
    """Returns `data` behind its length in `width` bytes (the vectors of RFC 8446, 3.4)."""
    return len(data).to_bytes(width, "big") + data


def varint(value: int) -> bytes:
    """Returns a QUIC variable-length integer of one, two or four bytes (RFC 9000, 16)."""
    if value < 1 << 6:
        return value.to_bytes(1, "big")
    if value < 1 << 14:
        return (0x4000 | value).to_bytes(2, "big")
    return (0x80000000 | value).to_bytes(4, "big")


# --- TLS ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HelloShape:
    """Form of a ClientHello.

    `after_sni` names the extension that follows the server name directly: "" (a usual extension),
    "renegotiation" (0xff01) or "grease" (0x1a1a). `quic_scid` set makes a QUIC hello: ALPN h3 and
    transport parameters with that source connection ID. `padding` adds a padding extension of that
    many zero bytes.
    """

    tls13: bool = True
    mlkem: bool = False
    after_sni: str = ""
    ech: bool = False
    quic_scid: bytes | None = None
    padding: int = 0


def _extension(kind: int, body: bytes) -> bytes:
    return u16(kind) + vec(2, body)


def server_name_extension(name: bytes) -> bytes:
    """Returns the server_name extension (RFC 6066, 3) with one host_name entry."""
    return _extension(0, vec(2, b"\0" + vec(2, name)))


def _transport_parameters(scid: bytes) -> bytes:
    parameters = [(0x01, varint(30000)), (0x03, varint(1472)), (0x04, varint(1 << 20))]
    parameters += [(0x08, varint(100)), (0x0F, scid)]
    body = b"".join(varint(key) + varint(len(value)) + value for key, value in parameters)
    return _extension(0x39, body)


def _ech_extension(dice: Dice) -> bytes:
    """Returns an outer ECH extension, which without a configuration is GREASE ECH."""
    body = b"\0" + u16(1) + u16(1) + dice.bytes(1) + vec(2, dice.bytes(32))
    return _extension(0xFE0D, body + vec(2, dice.bytes(144)))


def _key_shares(shape: HelloShape, dice: Dice) -> bytes:
    shares = u16(0x2A2A) + vec(2, b"\0")
    if shape.mlkem:
        shares += u16(X25519_MLKEM768) + vec(2, dice.bytes(MLKEM_SHARE_BYTES))
    return _extension(51, vec(2, shares + u16(X25519) + vec(2, dice.bytes(32))))


def _usual_extensions(shape: HelloShape, dice: Dice) -> list[bytes]:
    groups = [0x2A2A, *([X25519_MLKEM768] if shape.mlkem else []), X25519, 0x0017, 0x0018]
    protocols = [b"h3"] if shape.quic_scid is not None else [b"h2", b"http/1.1"]
    signatures = [0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601]
    usual = [
        _extension(10, vec(2, b"".join(map(u16, groups)))),
        _extension(13, vec(2, b"".join(map(u16, signatures)))),
        _extension(16, vec(2, b"".join(vec(1, name) for name in protocols))),
        _extension(5, b"\1\0\0\0\0"),
    ]
    if shape.quic_scid is None:
        usual += [_extension(11, b"\1\0"), _extension(23, b""), _extension(35, b"")]
    if shape.tls13:
        usual += [_extension(43, b"\4\3\4\3\3"), _extension(45, b"\1\1"), _key_shares(shape, dice)]
    if shape.quic_scid is not None:
        usual.append(_transport_parameters(shape.quic_scid))
    if shape.ech:
        usual.append(_ech_extension(dice))
    if shape.padding:
        usual.append(_extension(21, bytes(shape.padding)))
    return usual


def client_hello(name: bytes | None, shape: HelloShape, dice: Dice) -> bytes:
    """Returns a ClientHello handshake message (no record header); `name` None leaves out the
    SNI."""
    usual = dice.shuffled(_usual_extensions(shape, dice))
    lead = {
        "renegotiation": [_extension(0xFF01, b"\0")],
        "grease": [_extension(GREASE_EXTENSION, b"")],
        "": [],
    }[shape.after_sni]
    position = dice.below(len(usual))
    named = [server_name_extension(name)] if name is not None else []
    extensions = usual[:position] + named + lead + usual[position:]
    ciphers = [0x1A1A, 0x1301, 0x1302, 0x1303] if shape.tls13 else []
    if shape.quic_scid is None:
        ciphers += [0xC02B, 0xC02F, 0xC02C, 0xC030, 0xCCA9, 0xCCA8, 0x009C, 0x002F]
    session = b"" if shape.quic_scid is not None else dice.bytes(32)
    body = b"\3\3" + dice.bytes(32) + vec(1, session) + vec(2, b"".join(map(u16, ciphers)))
    return handshake(1, body + b"\1\0" + vec(2, b"".join(extensions)))


def handshake(kind: int, body: bytes) -> bytes:
    """Returns a handshake message: type, 24-bit length, body."""
    return bytes([kind]) + vec(3, body)


def record(kind: int, data: bytes, version: bytes = b"\3\3") -> bytes:
    """Returns one TLS record: 20 change cipher spec, 21 alert, 22 handshake, 23 data."""
    return bytes([kind]) + version + vec(2, data)


def hello_record(name: bytes | None, shape: HelloShape, dice: Dice) -> bytes:
    """Returns a ClientHello in its record, with the record version 0x0301 that clients send."""
    return record(22, client_hello(name, shape, dice), b"\3\1")


def server_hello(tls13: bool, dice: Dice) -> bytes:
    """Returns a ServerHello handshake message."""
    if tls13:
        share = _extension(51, u16(X25519) + vec(2, dice.bytes(32)))
        cipher, extensions = 0x1301, _extension(43, b"\3\4") + share
    else:
        cipher, extensions = 0xC02F, _extension(0xFF01, b"\0") + _extension(11, b"\1\0")
    head = b"\3\3" + dice.bytes(32) + vec(1, dice.bytes(32))
    return handshake(2, head + u16(cipher) + b"\0" + vec(2, extensions))


def _der(tag: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    size = len(body)
    length = bytes([size]) if size < 128 else b"\x82" + u16(size)
    return bytes([tag]) + length + body


def certificate(name: bytes, dice: Dice) -> bytes:
    """Returns an X.509 certificate (DER, Ed25519) for `name` whose signature is noise."""
    algorithm = _der(0x30, _der(0x06, b"\x2b\x65\x70"))
    common = _der(0x06, b"\x55\x04\x03")

    def distinguished(text: bytes) -> bytes:
        return _der(0x30, _der(0x31, _der(0x30, common, _der(0x0C, text))))

    validity = _der(0x30, _der(0x17, b"240101000000Z"), _der(0x17, b"250101000000Z"))
    key = _der(0x30, algorithm, _der(0x03, b"\0", dice.bytes(32)))
    alternative = _der(0x30, _der(0x82, name))
    extension = _der(0x30, _der(0x06, b"\x55\x1d\x11"), _der(0x04, alternative))
    to_be_signed = _der(
        0x30,
        _der(0xA0, _der(0x02, b"\2")),
        _der(0x02, b"\1" + dice.bytes(7)),
        algorithm,
        distinguished(b"Synthetic Test CA"),
        validity,
        distinguished(name[:64]),
        key,
        _der(0xA3, _der(0x30, extension)),
    )
    return _der(0x30, to_be_signed, algorithm, _der(0x03, b"\0", dice.bytes(64)))


def server_flight_tls12(name: bytes, dice: Dice) -> bytes:
    """Returns the records from ServerHello to ServerHelloDone of a full TLS 1.2 handshake."""
    chain = handshake(11, vec(3, vec(3, certificate(name, dice))))
    exchange = b"\3" + u16(X25519) + vec(1, dice.bytes(32)) + u16(0x0807) + vec(2, dice.bytes(64))
    messages = [server_hello(False, dice), chain, handshake(12, exchange), handshake(14, b"")]
    return b"".join(record(22, message) for message in messages)


def server_flight_tls13(dice: Dice) -> bytes:
    """Returns ServerHello, the compatibility ChangeCipherSpec and an encrypted flight."""
    flight = record(23, dice.bytes(dice.between(150, 330)))
    return record(22, server_hello(True, dice)) + record(20, b"\1") + flight


def finished_records(tls13: bool, client: bool, dice: Dice) -> bytes:
    """Returns the records that end a handshake on one side."""
    if tls13:
        return record(20, b"\1") + record(23, dice.bytes(53)) if client else b""
    exchange = record(22, handshake(16, vec(1, dice.bytes(32)))) if client else b""
    return exchange + record(20, b"\1") + record(22, b"\0" * 8 + dice.bytes(32))


# --- HTTP --------------------------------------------------------------------------------------


def http_request(method: bytes, target: bytes, host: bytes | None, body: bytes = b"") -> bytes:
    """Returns an HTTP/1.1 request; `host` is written as given, None leaves the header out."""
    lines = [method + b" " + target + b" HTTP/1.1", b"User-Agent: demo-client/1.0"]
    if host is not None:
        lines.append(b"Host: " + host)
    lines.append(b"Accept: */*")
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def http_response(status: bytes, body: bytes) -> bytes:
    """Returns an HTTP/1.1 response with a Content-Length."""
    head = b"HTTP/1.1 " + status + b"\r\nServer: demo\r\nContent-Type: text/plain\r\n"
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


# --- DNS ---------------------------------------------------------------------------------------


def dns_labels(name: bytes) -> list[bytes]:
    """Splits a plain dotted name into its labels."""
    return name.split(b".")


def _dns_question(labels: Sequence[bytes], qtype: int) -> bytes:
    return b"".join(vec(1, label) for label in labels) + b"\0" + u16(qtype) + u16(1)


def dns_query(ident: int, labels: Sequence[bytes], qtype: int, edns: bool = False) -> bytes:
    """Returns a recursive query (qtype 1 A, 28 AAAA, 12 PTR, 65 HTTPS)."""
    extra = b"\0" + u16(41) + u16(1232) + b"\0" * 6 if edns else b""
    counts = u16(1) + u16(0) + u16(0) + u16(int(edns))
    return u16(ident) + b"\1\0" + counts + _dns_question(labels, qtype) + extra


def dns_response(
    ident: int, labels: Sequence[bytes], qtype: int, addresses: Sequence[bytes], ttl_s: int = 60
) -> bytes:
    """Returns the answer with packed `addresses`; no address makes it NXDOMAIN."""
    answers = [
        b"\xc0\x0c" + u16(qtype) + u16(1) + ttl_s.to_bytes(4, "big") + vec(2, address)
        for address in addresses
    ]
    flags = b"\x81\x80" if addresses else b"\x81\x83"
    counts = u16(1) + u16(len(answers)) + u16(0) + u16(0)
    return u16(ident) + flags + counts + _dns_question(labels, qtype) + b"".join(answers)
