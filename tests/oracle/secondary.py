# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Secondary attributes in the contract's model: certificates of servers, and user agents in hellos
of QUIC. Each is counted in a namespace of its own."""

from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import quote

from cryptography import x509
from cryptography.x509.oid import NameOID
from support import wire
from support.handshake import AGENT, PARAMETERS

from oracle.names import extensions, extensions_at, normal, under
from oracle.quic import varint
from oracle.stream import StreamOracle

SERVER_HELLO, CERTIFICATE = 2, 11
TLS_1_2 = 0x0303
TEXT_MAX = 253


@dataclass(slots=True)
class Secondary:
    """A secondary attribute; `state` is "waiting", "voted", "released" or "suppressed"."""

    kind: str  # "certificate" or "agent"
    text: str
    state: str = "waiting"


@lru_cache(maxsize=1 << 8)
def common_name(certificate: bytes) -> str:
    """The subject's common name."""
    (name,) = x509.load_der_x509_certificate(certificate).subject.get_attributes_for_oid(
        NameOID.COMMON_NAME
    )
    return str(name.value)


def host_of(certificate: bytes, never: tuple[str, ...]) -> str | None:
    """The host that a certificate is for, perhaps behind "*."; None: there is none that could be
    released."""
    name = common_name(certificate)
    wild = "*." if name.startswith("*.") else ""
    kind, text = normal(name.removeprefix(wild).encode())
    if kind != "name" or "." not in text or under(text, never):
        return None
    return wild + text


def version_of(hello: bytes) -> int:
    """The version that a server's hello has chosen (RFC 8446, 4.1.3)."""
    at = 4 + 2 + 32
    at += 1 + hello[at] + 3  # session, cipher, compression
    for kind, data in extensions_at(hello, at):
        if kind == wire.SUPPORTED_VERSIONS:
            return int.from_bytes(data)
    return int.from_bytes(hello[4:6])


@dataclass(slots=True)
class ServerFlight:
    """A server's messages from its hello on, which begins a segment, up to its certificate."""

    base: int | None = None
    stream: StreamOracle = field(default_factory=StreamOracle)
    settled: bool = False

    def take(self, seq: int, data: bytes) -> bytes | None:
        """Takes a segment; returns the certificate, once it is whole and in clear."""
        if self.base is None and data[:1] == b"\x16" and data[5:6] == b"\2":
            self.base = seq
        if self.base is None or self.settled:
            return None
        if self.stream.add(seq - self.base, data) in ("conflict", "outside"):
            self.settled = True
        return None if self.settled else self._read(self.stream.head())

    def _read(self, head: bytes) -> bytes | None:
        said = b""
        while head[:1] == b"\x16":
            end = 5 + int.from_bytes(head[3:5])
            said, head = said + head[5:end], head[end:]
        while len(said) >= 4 and len(said) >= 4 + int.from_bytes(said[1:4]):
            end = 4 + int.from_bytes(said[1:4])
            if said[0] == SERVER_HELLO:
                self.settled |= version_of(said[:end]) > TLS_1_2
            elif not self.settled:
                self.settled = True
                if said[0] == CERTIFICATE:
                    return said[10 : 10 + int.from_bytes(said[7:10])]
                return None
            said = said[end:]
        return None


def agent_of(hello: bytes) -> str | None:
    """The user agent in a hello's transport parameters, percent-encoded; None: there is none that
    could be released."""
    for kind, rest in extensions(hello):
        while kind == PARAMETERS and rest:
            number, at = varint(rest, 0)
            size, at = varint(rest, at)
            if number == AGENT:
                text = rest[at : at + size].decode("latin-1")
                encoded = quote(text, safe="")
                plain = text.isascii() and text.isprintable() and len(encoded) <= TEXT_MAX
                return encoded if plain else None
            rest = rest[at + size :]
    return None
