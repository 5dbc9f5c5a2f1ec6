# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""ClientHellos, each with what an anonymized packet has in its place, field by field."""

import random
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import dpkt

from support import wire
from support.quic_wire import varint

CANARY = b"\xc5\xa7\xd3\x91\xb5\xe9\x8d\xf1"  # no part of it is a value that TLS gives a meaning


def secret(n: int) -> bytes:
    """n bytes that no output may hold a part of."""
    return (CANARY * (n // len(CANARY) + 1))[:n]


def is_grease(value: int) -> bool:
    return value & 0x0F0F == 0x0A0A and value >> 8 == value & 0xFF


def pattern(n: int) -> bytes:
    """The n-th GREASE value."""
    return bytes([0x0A | n % 16 << 4]) * 2


def masked(n: int) -> bytes:
    """The name that stands for one of n bytes."""
    if n < 10:
        return b"x" * n
    run = "".join("." if i % 63 == 62 and i + 1 < n - 8 else "x" for i in range(n - 8))
    return run.encode() + b".invalid"


@dataclass(frozen=True)
class Part:
    """Bytes as they are sent, and as a fingerprint has them."""

    sent: bytes
    built: bytes

    def __add__(self, other: Self) -> "Part":
        return Part(self.sent + other.sent, self.built + other.built)


NOTHING = Part(b"", b"")


def public(data: bytes) -> Part:
    return Part(data, data)


def zeroed(data: bytes) -> Part:
    return Part(data, bytes(len(data)))


def vector(width: int, *parts: Part) -> Part:
    """The parts behind their length, which stays."""
    whole = sum(parts, NOTHING)
    return Part(wire.vector(width, whole.sent), wire.vector(width, whole.built))


def numbers(*values: int) -> Part:
    """Values of two bytes, of which those of GREASE are replaced in turn."""
    sent = b"".join(struct.pack(">H", value) for value in values)
    built, grease = b"", 0
    for value in values:
        built += pattern(grease) if is_grease(value) else struct.pack(">H", value)
        grease += is_grease(value)
    return Part(sent, built)


def shares(*pairs: tuple[int, int]) -> Part:
    """Key shares: (group, bytes of its key)."""
    groups = numbers(*(group for group, _ in pairs)).built
    keys = (
        Part(struct.pack(">H", group), groups[2 * i : 2 * i + 2]) + vector(2, zeroed(secret(n)))
        for i, (group, n) in enumerate(pairs)
    )
    return vector(2, *keys)


def identities(*sizes: tuple[int, int]) -> Part:
    """Pre-shared keys: (bytes of the identity, of the binder)."""
    names = (vector(2, zeroed(secret(n))) + zeroed(secret(4)) for n, _ in sizes)
    return vector(2, *names) + vector(2, *(vector(1, zeroed(secret(n))) for _, n in sizes))


def protocols(*names: bytes) -> Part:
    """Names of ALPN; a name that begins with '?' is one that IANA does not know."""
    parts = (
        vector(1, Part(name, b"x" * len(name) if name.startswith(b"?") else name)) for name in names
    )
    return vector(2, *parts)


def parameters(*pairs: tuple[int, int]) -> Part:
    """QUIC transport parameters: (id, bytes of its value)."""
    out = NOTHING
    for number, n in pairs:
        sent = varint(number)
        kept = varint(27, len(sent)) if number % 31 == 27 else sent
        out += Part(sent, kept) + public(varint(n)) + zeroed(secret(n))
    return out


def without_fingerprint(name: bytes, size: int, stream: bool) -> bytes:
    """Return the hello of `size` bytes that shows nothing but a name. In DTLS (not `stream`) the
    message has no header."""
    head = struct.pack(">H", 0x0303 if stream else 0xFEFD) + bytes(32 + (1 if stream else 2))
    head += wire.vector(2, b"\x0a\x0a")
    room = size - len(head) - (4 if stream else 0)  # for methods and extensions, with lengths
    listed = wire.server_name(name) if name else b""
    for methods in range(1, 7):  # the fewest that leave no rest, or one of four bytes and more
        left = room - 1 - methods - 2 - len(listed)
        if left >= 4:
            listed += wire.extension(21, bytes(left - 4))
        elif left != 0 or not name:
            continue
        rest = wire.vector(2, listed)
        break
    else:
        methods, rest = room - 1, b""
    body = head + wire.vector(1, bytes(methods)) + rest
    return b"\1" + wire.vector(3, body) if stream else body


@dataclass(frozen=True)
class Hello:
    """A ClientHello. `extensions`: (type, data); the one of type 0 stands for server_name."""

    host: bytes = wire.HOST
    extensions: tuple[tuple[int, Part], ...] = ((0, NOTHING),)
    suites: tuple[int, ...] = (0x1301, 0xC02F)
    methods: bytes = b"\0"
    session: int = 32
    version: int = 0x0303
    cookie: int | None = None  # DTLS has one
    random: bytes = field(default_factory=lambda: secret(32))

    def _listed(self, name: bytes, built: bool) -> Iterable[bytes]:
        grease = 0
        for kind, data in self.extensions:
            number = struct.pack(">H", kind)
            if kind == 0:
                yield wire.server_name(name)
                continue
            if built and is_grease(kind):
                number = pattern(grease)
                grease += 1
            yield number + wire.vector(2, data.built if built else data.sent)

    def _message(self, name: bytes, built: bool) -> bytes:
        version, session, suites = self.version, secret(self.session), numbers(*self.suites)
        listed, chance, methods = suites.sent, self.random, self.methods
        cookie = b"" if self.cookie is None else wire.vector(1, secret(self.cookie))
        if built:
            session, chance = bytes(self.session), bytes(32)
            cookie = cookie[:1] + bytes(max(len(cookie) - 1, 0))
            listed = suites.built
        body = struct.pack(">H", version) + chance + wire.vector(1, session) + cookie
        body += wire.vector(2, listed) + wire.vector(1, methods)
        if self.extensions:
            body += wire.vector(2, b"".join(self._listed(name, built)))
        return body if self.cookie is not None else b"\1" + wire.vector(3, body)

    def sent(self) -> bytes:
        """The message; of DTLS, its body."""
        return self._message(self.host, built=False)

    def built(self, *, name: bool, fingerprint: bool) -> bytes:
        """What stands for it."""
        plain = self.host.lower() if name else masked(len(self.host))
        if fingerprint:
            return self._message(plain, built=True)
        named = any(kind == 0 for kind, _data in self.extensions)
        return without_fingerprint(plain if named else b"", len(self.sent()), self.cookie is None)


GREASE_FIRST, GREASE_LAST = 0x4A4A, 0xFAFA

# What browsers send: GREASE, post-quantum keys, a ticket, ECH, padding.
BROWSER = Hello(
    host=b"Www.Example.org",
    suites=(0x6A6A, 0x1301, 0x1302, 0x1303, 0xC02B, 0xC02F, 0xCCA9, 0x009C, 0x0035),
    extensions=(
        (GREASE_FIRST, NOTHING),
        (0, NOTHING),
        (23, NOTHING),
        (0xFF01, vector(1, zeroed(b""))),
        (10, vector(2, numbers(0x1A1A, 0x11EC, 29, 23, 24))),
        (11, vector(1, public(b"\0"))),
        (35, zeroed(secret(160))),
        (16, protocols(b"h2", b"http/1.1", b"?mine/1")),
        (5, public(b"\1\0\0\0\0")),
        (13, vector(2, numbers(0x0403, 0x0804, 0x0401))),
        (18, NOTHING),
        (51, shares((0x1A1A, 1), (0x11EC, 1216), (29, 32))),
        (45, vector(1, Part(b"\1\x2a", b"\1\x0b"))),
        (43, vector(1, numbers(0x7A7A, 0x0304, 0x0303))),
        (27, vector(1, numbers(2))),
        (0x44CD, protocols(b"h2")),
        (0xFE0D, zeroed(b"\0\0\1\0\1" + secret(200))),
        (28, public(b"\x40\1")),
        (34, vector(2, numbers(0x0403, 0x0503))),
        (50, vector(2, numbers(0x0403))),
        (44, vector(2, zeroed(secret(60)))),
        (0x1234, zeroed(secret(30))),
        (GREASE_LAST, zeroed(b"\0")),
        (21, zeroed(bytes(40))),
        (41, identities((120, 33), (16, 33))),
    ),
)
QUIC = Hello(
    extensions=(
        (0, NOTHING),
        (43, vector(1, numbers(0x0304))),
        (16, protocols(b"h3")),
        (57, parameters((1, 4), (0x3129, 30), (27 + 31 * 5000, 9), (15, 8), (0x4752, 4))),
    ),
    session=0,
)
DTLS = Hello(version=0xFEFD, cookie=20, extensions=BROWSER.extensions[:12])
PLAIN = Hello(extensions=())


def one_at_random(chance: random.Random) -> Hello:
    """A hello with some of the browser's extensions, in any order."""
    listed = [pair for pair in BROWSER.extensions if pair[0] == 0 or chance.random() < 0.7]
    chance.shuffle(listed)
    number = chance.randrange(1, 60)
    suites = [chance.choice((0x1301, 0xC02F, 0x5A5A, 0x0035)) for _ in range(number)]
    labels = (chance.choice((b"a", b"Bc", b"x-1", b"_y")) for _ in range(chance.randrange(1, 30)))
    return Hello(
        host=b".".join(labels) + b".example",
        extensions=tuple(listed),
        suites=tuple(suites),
        methods=b"\0" * chance.randrange(1, 4),
        session=chance.randrange(33),
        version=chance.choice((0x0301, 0x0303)),
    )


def of_captures(folder: Path, message: int = 1) -> Iterator[bytes]:
    """Segments of TCP that begin with a ClientHello (a ServerHello: 2), in the captures of a
    folder."""
    for path in sorted(folder.rglob("*.pcap")):
        with path.open("rb") as file:
            try:
                reader = dpkt.pcap.Reader(file)
                frames = list(reader) if reader.datalink() == dpkt.pcap.DLT_EN10MB else []
            except (ValueError, dpkt.Error):
                continue
        for _, frame in frames:
            at = frame.find(b"\x16\3", 54)
            if 54 <= at < 90 and frame[at + 5 : at + 6] == bytes([message]):
                yield frame[at:]
