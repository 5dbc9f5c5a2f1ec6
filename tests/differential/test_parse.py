# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Results of zanon_net.parse next to OpenSSL's, `cryptography`'s, hpack's, dpkt's and tshark's."""

import ipaddress
import random
import ssl
from collections.abc import Callable
from pathlib import Path

import dpkt
import hpack
import pytest
from cryptography import x509
from scapy.layers.dns import DNS, DNSQR, DNSRR
from scapy.layers.inet import ICMP, IP, UDP
from support import wire
from support.certificates import Authority

from zanon_net import parse

Tshark = Callable[..., list[dict[str, str]]]
HOST = "www.example.org"


@pytest.fixture(scope="module")
def handshakes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[bytes, bytes, bytes]]:
    """First bytes of OpenSSL's client and server with TLS 1.2 and 1.3, and the certificate."""
    folder = tmp_path_factory.mktemp("certificates")
    files = Authority(folder).certify(HOST)
    der = ssl.PEM_cert_to_DER_cert(Path(files.cert).read_text("ascii"))
    made = {}
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(files.cert, files.key)
        client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
        for context in (server, client):
            context.minimum_version = context.maximum_version = version
            context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        sides = (
            client.wrap_bio(to_client, to_server, server_hostname=HOST),
            server.wrap_bio(to_server, to_client, server_side=True),
        )
        with pytest.raises(ssl.SSLWantReadError):
            sides[0].do_handshake()
        first = to_server.read()
        to_server.write(first)
        with pytest.raises(ssl.SSLWantReadError):
            sides[1].do_handshake()
        answer = to_client.read()
        made[version.name] = (first, answer, der)
    return made


def test_openssl_and_we_agree(handshakes: dict[str, tuple[bytes, bytes, bytes]]) -> None:
    for version, (first, answer, der) in handshakes.items():
        hello = parse.tls_client_hello(first)
        assert (hello.state, hello.name, hello.used) == ("done", HOST, len(first)), version
        modern = version == "TLSv1_3"
        chosen = parse.tls_server_hello(answer)
        expected = (0x0304, 0x1302) if modern else (0x0303, 0xC02B)
        assert (chosen.version, chosen.suite, chosen.suite_encrypts) == (*expected, True)
        found = parse.tls_certificate(answer)
        if modern:
            assert (found.state, found.certificate) == ("other", b"")
        else:
            assert (found.state, found.name, found.certificate) == ("done", HOST, der)


def test_tshark_and_we_agree(
    tshark: Tshark, handshakes: dict[str, tuple[bytes, bytes, bytes]]
) -> None:
    fields = {
        "name": "tls.handshake.extensions_server_name",
        "suite": "tls.handshake.ciphersuite",
        "certificate": "tls.handshake.certificate",
    }
    for first, answer, _ in handshakes.values():
        frames = [
            wire.ethernet(wire.ipv4(wire.tcp(first, ports=(40000, 443)))),
            wire.ethernet(wire.ipv4(wire.tcp(answer, ports=(443, 40000)))),
        ]
        rows = tshark(frames, wire.LINK_ETHERNET, fields)
        assert rows[0]["name"] == parse.tls_client_hello(first).raw.decode()
        assert int(rows[1]["suite"], 16) == parse.tls_server_hello(answer).suite
        certificate = parse.tls_certificate(answer).certificate.hex()
        assert rows[1]["certificate"].replace(":", "") == certificate


def test_cryptography_and_we_agree(tmp_path: Path) -> None:
    for name in ("example.org", "*.example.org", "Ein Name", "räksmörgås.example", "x" * 64):
        files = Authority(tmp_path).certify(name)
        theirs = x509.load_pem_x509_certificate(Path(files.cert).read_bytes())
        (common,) = theirs.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        der = ssl.PEM_cert_to_DER_cert(Path(files.cert).read_text("ascii"))
        ours = parse.x509_common_name(der)
        assert ours.raw.decode() == common.value == name
        assert der[ours.offset :].startswith(name.encode())


def test_hpack_and_we_agree() -> None:
    dice, encoder = random.Random(7), hpack.Encoder()
    blocks, sent = [], []
    for _ in range(60):
        fields = [(b":method", b"GET"), (b":authority", b"h%d.example" % dice.randrange(30))]
        fields += [(b"x-%d" % dice.randrange(9), dice.randbytes(9).hex().encode())]
        blocks.append(encoder.encode(fields, huffman=dice.random() < 0.5))
        sent.append(tuple(fields))
    found = parse.hpack_blocks(blocks)
    assert {block.state for block in found} == {"done"}
    assert [block.fields for block in found] == sent


def test_dpkt_and_we_agree_about_dns() -> None:
    addresses = ["192.0.2.7", "2001:db8::7"]
    records = [
        DNSRR(rrname="a.example", type=kind, rdata=address)
        for kind, address in zip(("A", "AAAA"), addresses, strict=True)
    ]
    message = bytes(DNS(id=77, qr=1, qd=DNSQR(qname="a.example", qtype="AAAA"), an=records))
    theirs, ours = dpkt.dns.DNS(message), parse.dns_question(message)
    assert (ours.raw.decode(), ours.type, ours.qclass, ours.id) == (
        *(theirs.qd[0].name, theirs.qd[0].type, theirs.qd[0].cls),
        theirs.id,
    )
    found = parse.dns_answers(message)
    assert found.addresses == tuple(map(ipaddress.ip_address, addresses))
    assert [address.packed for address in found.addresses] == [r.rdata for r in theirs.an]


def test_dpkt_and_we_agree_about_icmp() -> None:
    quoted = IP(src="192.0.2.1", dst="198.51.100.2", ttl=9) / UDP(sport=4000, dport=53) / bytes(9)
    message = bytes(ICMP(type=3, code=3) / quoted)
    theirs = dpkt.icmp.ICMP(message)
    ours = parse.icmp_message(message)
    assert (ours.state, ours.kind, ours.type, ours.code) == ("done", "error", 3, 3)
    inner = theirs.data.data
    assert ours.quote is not None
    assert (ours.quote.src.packed, ours.quote.dst.packed) == (inner.src, inner.dst)
    assert (ours.quote.ports, ours.quote.hops) == ((inner.data.sport, inner.data.dport), inner.ttl)
