# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""TLS hellos, HTTP requests and DNS queries, read by us, by dpkt and by tshark."""

import ssl
from collections.abc import Callable

import dpkt
import pytest
from scapy.layers.dns import DNS, DNSQR, DNSRR, DNSRROPT
from scapy.layers.tls.extensions import ServerName, TLS_Ext_ServerName, TLS_Ext_SupportedGroups
from scapy.layers.tls.handshake import TLSClientHello
from support import wire
from support.examples import each
from support.wire import HOST, client_hello, extension, record, records, server_name

from zanon_net import _core

Tshark = Callable[..., list[dict[str, str]]]

# ---- TLS ----------------------------------------------------------------------------------------


def openssl_hello(highest: ssl.TLSVersion, host: str | None) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.set_alpn_protocols(["h2", "http/1.1"])
    context.maximum_version = highest
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=host)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def scapy_hello(host: bytes) -> bytes:
    name = TLS_Ext_ServerName(servernames=[ServerName(servername=host)])
    hello = TLSClientHello(ciphers=[0x1301, 0xC02F], ext=[TLS_Ext_SupportedGroups(), name])
    return record(bytes(hello))


NAMED = client_hello(server_name(HOST), extension(0x17), session_id=bytes(32))
KEY_SHARES = extension(wire.KEY_SHARE, wire.vector(2, b"\x11\xec" + wire.vector(2, bytes(1216))))
HELLOS = {
    "openssl-1.3": openssl_hello(ssl.TLSVersion.TLSv1_3, "a.example.org"),
    "openssl-1.2": openssl_hello(ssl.TLSVersion.TLSv1_2, "b.example.org"),
    "openssl-nameless": openssl_hello(ssl.TLSVersion.TLSv1_3, None),
    "scapy": scapy_hello(b"scapy.example.org"),
    "long": scapy_hello(b".".join([b"x" * 60] * 4)),
    "single-label": scapy_hello(b"localhost"),
    "then-renegotiation-info": record(client_hello(server_name(HOST), extension(0xFF01, b"\0"))),
    "then-grease": record(client_hello(server_name(HOST), extension(wire.GREASE))),
    "then-alps": record(client_hello(server_name(HOST), extension(wire.ALPS, b"\0\3\2h2"))),
    "post-quantum": record(client_hello(KEY_SHARES, server_name(HOST))),
    "without-extensions": record(client_hello(version=0x0301)),
}
SPLIT_HELLOS = {
    "two-records": records(NAMED, [50]),
    "in-the-name": records(NAMED, [NAMED.index(HOST) + 4, 1000]),
    "many-records": records(NAMED, [7]),
}


def tls_name(stream: bytes) -> str:
    state, name, _ = _core.parse_tls(stream)
    assert state == "done"
    return name.decode()


def dpkt_tls_name(stream: bytes) -> str:
    hello = dpkt.ssl.TLSHandshake(dpkt.ssl.TLSRecord(stream).data).data
    found = [data[5:] for kind, data in getattr(hello, "extensions", []) if kind == 0]
    return found[0].decode() if found else ""


@pytest.mark.parametrize("name", HELLOS)
def test_dpkt_reads_the_same_server_name(name: str) -> None:
    assert tls_name(HELLOS[name]) == dpkt_tls_name(HELLOS[name])


def frames(payloads: list[bytes], port: int, protocol: int) -> list[bytes]:
    """One packet each, from a port of its own."""
    out = []
    for number, payload in enumerate(payloads):
        transport = wire.tcp if protocol == wire.TCP else wire.udp
        segment = transport(payload, ports=(40000 + number, port))
        out.append(wire.ethernet(wire.ipv4(segment, protocol)))
    return out


def test_tshark_reads_the_same_server_name(tshark: Tshark) -> None:
    hellos = HELLOS | SPLIT_HELLOS
    fields = {"name": "tls.handshake.extensions_server_name"}
    rows = tshark(frames(list(hellos.values()), 443, wire.TCP), wire.LINK_ETHERNET, fields)
    theirs = dict(zip(hellos, (row["name"] for row in rows), strict=True))
    assert {name: tls_name(stream) for name, stream in hellos.items()} == theirs


# ---- HTTP ---------------------------------------------------------------------------------------

REQUESTS = {
    "get": b"GET / HTTP/1.1\r\nHost: www.example.org\r\nAccept: */*\r\n\r\n",
    "late": b"GET /a?b HTTP/1.1\r\nUser-Agent: x\r\nAccept: */*\r\nHost: a.example.org\r\n\r\n",
    "lower-case": b"GET / HTTP/1.1\r\nhost: www.example.org\r\n\r\n",
    "upper-case": b"GET / HTTP/1.1\r\nHOST: www.example.org\r\n\r\n",
    "no-space": b"GET / HTTP/1.1\r\nHost:www.example.org\r\n\r\n",
    "port": b"GET / HTTP/1.1\r\nHost: www.example.org:8080\r\n\r\n",
    "long": b"GET / HTTP/1.1\r\nHost: " + b".".join([b"x" * 60] * 4) + b"\r\n\r\n",
    "http-1.0": b"GET / HTTP/1.0\r\nHost: www.example.org\r\n\r\n",
    "no-host": b"GET / HTTP/1.0\r\nAccept: */*\r\n\r\n",
    "post": b"POST /x HTTP/1.1\r\nHost: a.example.org\r\nContent-Length: 3\r\n\r\nabc",
    "head": b"HEAD / HTTP/1.1\r\nHost: www.example.org\r\n\r\n",
    "put": b"PUT / HTTP/1.1\r\nHost: www.example.org\r\nContent-Length: 0\r\n\r\n",
    "delete": b"DELETE / HTTP/1.1\r\nHost: www.example.org\r\n\r\n",
    "options": b"OPTIONS * HTTP/1.1\r\nHost: www.example.org\r\n\r\n",
    "propfind": b"PROPFIND / HTTP/1.1\r\nHost: www.example.org\r\n\r\n",
    "connect": b"CONNECT a.example.org:443 HTTP/1.1\r\nHost: a.example.org:443\r\n\r\n",
    "absolute": b"GET http://a.example.org/x HTTP/1.1\r\nHost: a.example.org\r\n\r\n",
}
BARE_LINE_FEEDS = {"line-feeds": b"GET / HTTP/1.1\nHost: www.example.org\n\n"}


def http_host(head: bytes) -> str:
    state, host, _, _ = _core.parse_http(head)
    assert state == "done"
    return host.decode()


@each("name", REQUESTS | BARE_LINE_FEEDS)
def test_dpkt_reads_the_same_host(name: str) -> None:
    head = (REQUESTS | BARE_LINE_FEEDS)[name]
    assert http_host(head) == dpkt.http.Request(head).headers.get("host", "")


def test_tshark_reads_the_same_host(tshark: Tshark) -> None:
    requests = REQUESTS | BARE_LINE_FEEDS
    rows = tshark(
        frames(list(requests.values()), 80, wire.TCP),
        wire.LINK_ETHERNET,
        {"host": "http.host", "method": "http.request.method"},
    )
    theirs = dict(zip(requests, (row["host"] for row in rows), strict=True))
    assert {name: http_host(head) for name, head in requests.items()} == theirs
    assert all(row["method"] for row in rows)


# ---- DNS ----------------------------------------------------------------------------------------


def question(name: bytes, kind: str = "A") -> bytes:
    return bytes(DNS(id=77, rd=1, qd=DNSQR(qname=name, qtype=kind)))


MESSAGES = {kind: question(b"www.example.org", kind) for kind in ("A", "AAAA", "MX", "TXT", "SRV")}
MESSAGES |= {
    "case": question(b"wWw.eXample.ORG"),
    "underscores": question(b"_dmarc.example.org", "TXT"),
    "one-label": question(b"localhost"),
    "63-bytes": question(b"x" * 63 + b".example.org"),
    "reverse": question(b"7.2.0.192.in-addr.arpa", "PTR"),
    "edns": bytes(DNS(rd=1, qd=DNSQR(qname=b"e.example.org"), ar=DNSRROPT())),
    "answer": bytes(
        DNS(
            qr=1,
            qd=DNSQR(qname=b"www.example.org"),
            an=DNSRR(rrname=b"www.example.org", rdata="192.0.2.1"),
        )
    ),
    "no-such-name": bytes(DNS(qr=1, rcode=3, qd=DNSQR(qname=b"no.example.org"))),
}
Question = tuple[str, bool, int, int]


def dns_question(message: bytes) -> Question:
    state, name, response, number, kind = _core.parse_dns(message)
    assert state == "done"
    return name.decode(), response, number, kind


@each("name", MESSAGES)
def test_dpkt_reads_the_same_question(name: str) -> None:
    theirs = dpkt.dns.DNS(MESSAGES[name])
    first = theirs.qd[0]
    expected = (first.name, bool(theirs.qr), theirs.id, first.type)
    assert dns_question(MESSAGES[name]) == expected


def test_tshark_reads_the_same_question(tshark: Tshark) -> None:
    fields = {"name": "dns.qry.name", "response": "dns.flags.response"}
    fields |= {"id": "dns.id", "type": "dns.qry.type"}
    rows = tshark(frames(list(MESSAGES.values()), 53, wire.UDP), wire.LINK_ETHERNET, fields)
    theirs: dict[str, Question] = {
        name: (
            row["name"],
            row["response"] in ("1", "True"),
            int(row["id"], 16),
            int(row["type"]),
        )
        for name, row in zip(MESSAGES, rows, strict=True)
    }
    assert {name: dns_question(message) for name, message in MESSAGES.items()} == theirs
