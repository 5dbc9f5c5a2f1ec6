# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a handshake beside the name: certificates, and QUIC transport parameters."""

import datetime
import struct

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import NameOID

from support import quic_wire as quic
from support import wire
from support.packets import ACK, CLIENT, SECOND, SERVER, START, SYN, Frame, Tcp, Udp, hello, user
from support.quic_wire import SERVER_ID, V1

PARAMETERS, PARAMETERS_OF_DRAFTS, AGENT = 0x39, 0xFFA5, 0x3129
COMMON_NAME = "*.example.org"
KEY = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))  # its signatures have one length


def server_hello(
    *extensions: bytes, version: int = 0x0303, random: bytes = wire.RANDOM, session: bytes = b""
) -> bytes:
    body = struct.pack(">H", version) + random + wire.vector(1, session) + b"\x13\x01\0"
    if extensions:
        body += wire.vector(2, b"".join(extensions))
    return b"\2" + wire.vector(3, body)


def certificate(*attributes: x509.NameAttribute, issuer: str = "An issuer") -> bytes:
    issued_by = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)])
    return signed(builder(x509.Name(attributes), issued_by))


def certificate_for(issuer: x509.Name, *hosts: str) -> bytes:
    """A certificate with these hosts as alternative names."""
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cn.example.org")])
    return signed(builder(subject, issuer).add_extension(names, critical=False))


def builder(subject: x509.Name, issuer: x509.Name) -> x509.CertificateBuilder:
    now = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(KEY.public_key())
        .serial_number(7)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
    )


def signed(made: x509.CertificateBuilder) -> bytes:
    return made.sign(KEY, None).public_bytes(serialization.Encoding.DER)


def named(name: str) -> bytes:
    organization = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Org.example")
    return certificate(organization, x509.NameAttribute(NameOID.COMMON_NAME, name))


def message(*certificates: bytes) -> bytes:
    listed = b"".join(wire.vector(3, one) for one in certificates)
    return b"\x0b" + wire.vector(3, wire.vector(3, listed))


def flight(*certificates: bytes) -> bytes:
    return server_hello() + message(*certificates) + b"\x0e\0\0\0"


def parameters(*pairs: tuple[int, bytes], kind: int = PARAMETERS) -> bytes:
    """A client's transport parameters (RFC 9000, 18)."""
    listed = (quic.varint(n) + quic.varint(len(value)) + value for n, value in pairs)
    return wire.extension(kind, b"".join(listed))


def telling(text: bytes) -> bytes:
    return parameters((0x01, b"\x80\0\x75\x30"), (AGENT, text), (0x0F, b"12345"))


def browser(
    i: int, *extensions: bytes, host: bytes | None = None, proven: bool = True, version: int = V1
) -> list[Frame]:
    """A user's QUIC connection."""
    talk = Udp(user(i), ports=(40000, 443), t_ns=START + i * SECOND)
    for datagram in quic.first_flight(quic.hello(*extensions, host=host), version=version):
        talk.send(datagram)
    talk.send(quic.server_answer(version=version), SERVER)
    return (talk.send(quic.short(SERVER_ID)) if proven else talk).frames


def shown(
    i: int, *, host: bytes | None = None, proven: bool = True, common_name: str = COMMON_NAME
) -> list[Frame]:
    """A user to whom a server shows its certificate."""
    certificate = wire.record(flight(named(common_name)))
    talk = Tcp(user(i), t_ns=START + i * SECOND)
    if proven:
        talk.handshake()
    else:
        talk.segment(CLIENT, SYN).segment(SERVER, SYN | ACK)
        talk.next[SERVER] += 7  # later acknowledgements are not of the server's bytes
    return talk.say(hello(host)).say(certificate, SERVER).close().frames
