# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Every parser of zanon_net.parse, with messages that it reads."""

from collections.abc import Callable
from typing import Any

from cryptography import x509
from cryptography.x509.oid import NameOID
from scapy.layers.dns import DNS, DNSQR, DNSRR
from scapy.layers.inet import ICMP, IP, UDP

from support import gquic_wire as gquic
from support import h2, wire
from support import quic_wire as quic
from support import requests_wire as requests
from support.dnstap import CLIENT_QUERY, CONTENT, Message
from support.handshake import certificate_for, flight, named, server_hello
from support.packets import dns, hello, request
from support.proxy_starttls_prefix import PREFIXES
from support.quic_wire import DCID, Initial, crypto
from zanon_net import parse

HOST = b"www.example.org"
Parser = Callable[[bytes], Any]


def _tcp(*messages: bytes) -> bytes:
    return b"".join(wire.vector(2, message) for message in messages)


def _h2() -> list[bytes]:
    client = h2.Client()
    opening = h2.PREFACE + h2.frame(h2.SETTINGS)
    return [opening + client.request(HOST) + client.request(b"b.example")]


ANSWER = bytes(
    DNS(id=7, qr=1, qd=DNSQR(qname="a.example"), an=DNSRR(rrname="a.example", rdata="192.0.2.7"))
)
QUOTED = bytes(IP(src="192.0.2.1", dst="198.51.100.2") / UDP(sport=40000, dport=53) / bytes(8))
HELLO = wire.client_hello(
    wire.server_name(HOST), wire.extension(16, b"\0\3\2h2"), wire.extension(43, b"\2\3\4")
)[4:]
TARGET = b"/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA29yZwAAAQAB"
FLIGHT = flight(named("example.org"))
SIGNED = certificate_for(
    x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "A CA")]), "*.example.org", "b.example"
)
FRAGMENT = quic.dtls_record(quic.dtls_fragment(quic.dtls_hello(host=HOST)))
SAMPLES: dict[Parser, list[bytes]] = {
    parse.tls_client_hello: [
        hello(HOST),
        wire.records(wire.client_hello(wire.server_name(HOST)), [40, 30]),
        bytes.fromhex("802e0103010015000000100000") + bytes(40),
    ],
    parse.tls_server_hello: [
        wire.record(FLIGHT),
        wire.record(server_hello()),
    ],
    parse.tls_certificate: [
        wire.record(FLIGHT),
        wire.records(FLIGHT, [90, 100]),
    ],
    parse.x509_common_name: [named("example.org")],
    parse.dtls_fragments: [FRAGMENT, quic.verify_request(bytes(20))],
    parse.dtls_client_hello: [quic.dtls_hello(host=HOST, cookie=bytes(8))],
    parse.dtls_cookie: [b"\xfe\xff" + wire.vector(1, bytes(20))],
    parse.quic_packets: [
        Initial(crypto(quic.hello(host=HOST))).seal() + quic.opaque(1, DCID, b"x"),
        quic.retry(DCID, b"id"),
        quic.negotiation(DCID, b"id", 1),
    ],
    parse.quic_initial: [
        Initial(crypto(quic.hello(host=HOST))).seal(),
        *quic.first_flight(quic.post_quantum(HOST)),
    ],
    parse.gquic_hello: [
        *(gquic.Part(gquic.hello(HOST), version=version).seal() for version in gquic.VERSIONS),
        gquic.Part(gquic.hello(HOST)[:60]).seal(),
    ],
    lambda payload: parse.quic_server_initial(payload, DCID): [
        quic.server_answer(),
        Initial(crypto(server_hello()), key_id=DCID, server=True).seal(),
    ],
    parse.http_host: [
        request(HOST),
        b"POST http://www.example.org/x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
    ],
    parse.http_chunk: [b"4;x=y\r\nabcd\r\n0\r\n\r\n", b"0\r\nA: b\r\n\r\n"],
    parse.http_chunks: [b"4;x=y\r\nabcd\r\n3\r\nefg\r\n0\r\n\r\n"],
    parse.h2_hosts: _h2(),
    lambda block: parse.hpack_blocks([block, block]): [h2.Client().encoder.encode(h2.fields(HOST))],
    parse.dns_question: [dns(HOST), ANSWER],
    parse.dns_stream: [_tcp(dns(HOST), dns(b"b.example"))],
    parse.dns_answers: [ANSWER],
    parse.doh_question: [TARGET],
    parse.dnstap_message: [Message(CLIENT_QUERY, 10**18, "192.0.2.1", "a.example").frame()],
    parse.frame_stream_control: [b"\0\0\0\2\0\0\0\1" + wire.vector(4, CONTENT)],
    parse.stream_prefix: [prefix + hello(HOST) for prefix in PREFIXES.values()],
    lambda segment: parse.nameless_protocol(segment, from_client=True): [b"SSH-2.0-x\r\n"],
    lambda segment: parse.nameless_protocol(segment, from_client=False, later=[segment]): [
        b"220 mail.example ESMTP\r\n"
    ],
    parse.service_signature: [b"SSH-2.0-x\r\n", b"GET / HTTP/1.1\r\n"],
    parse.datagram_kind: [b"SIP/2.0 200 OK\r\n", bytes.fromhex("8000000100000001000000ff")],
    parse.icmp_message: [
        bytes(ICMP(type=3, code=4, nexthopmtu=1400))[:8] + QUOTED,
        bytes(ICMP(type=8, id=5, seq=6)) + bytes(20),
    ],
    lambda message: parse.icmp_message(message, v6=True): [
        b"\x02\0\0\0\0\0\5\xdc" + wire.ipv6(wire.udp(bytes(9)), 17)
    ],
    lambda message: parse.attribute("alpn", message): [HELLO],
    lambda message: parse.attribute("ja4", message): [HELLO, quic.dtls_hello(host=HOST)],
    lambda message: parse.attribute("ehlo", message): [b"EHLO mail.example\r\n"],
    lambda message: parse.attribute("sip", message): [requests.sip(b"sip:a@example.org")],
    lambda message: parse.attribute("stun", message): [
        requests.stun(requests.stun_attribute(requests.SOFTWARE, b"x 1.0"))
    ],
    lambda message: parse.attribute("user-agent", message): [b"curl/8.5.0 (x)"],
    lambda message: parse.attribute("cert-san", message): [SIGNED],
    lambda message: parse.attribute("cert-issuer", message): [SIGNED],
    parse.hostname: [HOST, b"WWW.Example.ORG.:8080"],
}
