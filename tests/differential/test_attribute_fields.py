# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Attributes of TLS hellos, of certificates and of HTTP requests, read by us and by tshark."""

import hashlib
import random
import ssl
import struct
from collections.abc import Callable
from urllib.parse import unquote

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from support import wire
from support.handshake import certificate_for, flight

from zanon_net import _core

Tshark = Callable[..., list[dict[str, str]]]
FIELDS = {
    "alpn": "tls.handshake.extensions_alpn_str",
    "suites": "tls.handshake.ciphersuite",
    "kinds": "tls.handshake.extension.type",
    "algorithms": "tls.handshake.sig_hash_alg",
    "versions": "tls.handshake.extensions.supported_version",
    "version": "tls.handshake.version",
    "agent": "http.user_agent",
    "host": "x509ce.dNSName",
}
GREASE = {n << 12 | 0xA00 | n << 4 | 0xA for n in range(16)}
AGENTS = [b"curl/8.5.0", b'Mozilla/5.0 (X11; "x") \\ 100%', b"a+b;c=d", b""]
HOSTS = ["a.example.org", "*.example.org", "xn--bcher-kva.example"]


def openssl_hello(highest: ssl.TLSVersion, offers: list[str], host: str | None) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    if offers:
        context.set_alpn_protocols(offers)
    context.maximum_version = highest
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=host)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def made_hello(dice: random.Random) -> bytes:
    """A hello of random suites and extensions."""

    def words(values: list[int]) -> bytes:
        return struct.pack(f">{len(values)}H", *values)

    some = [*GREASE, *range(0xC000, 0xC0AF), 0x1301, 0x1302]
    extensions = [wire.extension(kind) for kind in dice.sample([*GREASE, 5, 18, 23, 35, 49], 5)]
    extensions.append(wire.extension(13, wire.vector(2, words([0x403, 0x804, 0x401]))))
    extensions.append(wire.extension(16, wire.vector(2, wire.vector(1, b"http/1.1"))))
    extensions.append(wire.extension(43, wire.vector(1, words([0x1A1A, 0x304, 0x303]))))
    dice.shuffle(extensions)
    suites = dice.sample(some, dice.randrange(1, 60))
    return wire.record(wire.client_hello(*extensions, ciphers=words(suites)))


def numbers(text: str) -> list[int]:
    """The numbers in a cell of tshark, without values of GREASE."""
    return [n for n in (int(word, 0) for word in text.split(",") if word) if n not in GREASE]


def ja4(row: dict[str, str]) -> str:
    """JA4 of what tshark read."""
    kinds, suites = numbers(row["kinds"]), numbers(row["suites"])
    version = max(numbers(row["versions"]) or numbers(row["version"]))
    offer = row["alpn"].split(",")[0]
    parts = [",".join(f"{n:04x}" for n in sorted(suites))]
    parts.append(",".join(f"{n:04x}" for n in sorted(kinds) if n not in (0, 16)))
    parts[1] += "_" + ",".join(f"{n:04x}" for n in numbers(row["algorithms"]))
    hashes = "_".join(hashlib.sha256(part.encode()).hexdigest()[:12] for part in parts)
    named = "d" if 0 in kinds else "i"
    counts = f"{len(suites):02}{len(kinds):02}"
    ends = offer[0] + offer[-1] if offer else "00"
    return f"t1{(version & 0xFF) - 1}{named}{counts}{ends}_{hashes}"


def read(word: str, message: bytes) -> str:
    """Our text of an attribute, without the percent-encoding."""
    state, text = _core.read_attribute(word, message)[:2]
    assert state in ("done", "other")
    return unquote(text or "")


def test_tshark_reads_the_same_attributes(tshark: Tshark) -> None:
    dice = random.Random(41)
    hellos = [
        openssl_hello(version, offers, host)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
        for offers in ([], ["h2", "http/1.1"], ["dot"])
        for host in ("a.example.org", None)
    ]
    hellos += [made_hello(dice) for _ in range(20)]
    asked = [b"GET / HTTP/1.1\r\nUser-Agent: " + agent + b"\r\n\r\n" for agent in AGENTS]
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "A CA")])
    shown = [certificate_for(issuer, host, "other.example") for host in HOSTS]
    payloads = [(hello, (0, 443)) for hello in hellos] + [(head, (0, 80)) for head in asked]
    payloads += [(wire.record(flight(der)), (443, 0)) for der in shown]
    frames = [
        wire.ethernet(wire.ipv4(wire.tcp(data, ports=(a or 40000 + n, b or 40000 + n)), wire.TCP))
        for n, (data, (a, b)) in enumerate(payloads)
    ]
    rows = tshark(frames, wire.LINK_ETHERNET, FIELDS, every=True)
    for hello, row in zip(hellos, rows[: len(hellos)], strict=True):
        assert read("alpn", hello[9:]) == row["alpn"]
        assert read("ja4", hello[9:]) == ja4(row)
    requests = rows[len(hellos) : len(hellos) + len(asked)]
    assert [read("user-agent", agent) for agent in AGENTS] == [row["agent"] for row in requests]
    certificates = rows[len(hellos) + len(asked) :]
    assert [row["host"] for row in certificates] == [f"{host},other.example" for host in HOSTS]
    assert [read("cert-san", der) for der in shown] == HOSTS
