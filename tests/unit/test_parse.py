# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The parsers as Python has them: zanon_net.parse."""

import dataclasses

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from support import gquic_wire as gquic
from support import h2, wire
from support import quic_wire as quic
from support import requests_wire as requests
from support.examples import each
from support.handshake import certificate_for, flight, message, named, server_hello
from support.packets import dns, hello, request
from support.parse_samples import SAMPLES, TARGET, Parser
from support.quic_wire import DCID, SCID, V1, Initial, crypto

import zanon_net
from zanon_net import parse

HOST = b"www.Example.org."
NAME = "www.example.org"


def test_tls_client_hello() -> None:
    stream = hello(HOST, wire.extension(wire.ECH, bytes(9)))
    parsed = parse.tls_client_hello(stream)
    expected = ("done", HOST, NAME, stream.index(HOST), len(stream), True, (0x0303,))
    assert parsed == parse.ClientHello(*expected, False, False, False)
    assert parse.tls_client_hello(stream[:-1]).state == "need_more"
    assert parse.tls_client_hello(stream[:-4], cut=True).name == NAME
    other = parse.tls_client_hello(b"SSH-2.0")
    assert (other.state, other.raw, other.name, other.used) == ("other", b"", None, 0)


def test_http_host() -> None:
    head = request(HOST + b":8080", b"POST")
    parsed = parse.http_host(head)
    expected = ("done", HOST + b":8080", NAME, head.index(HOST), len(head), 2, b"/", 5, 0)
    assert parsed == parse.HttpHost(*expected, chunked=False, dns_body=False)
    assert parse.http_host(head[:-1]).state == "need_more"
    assert parse.http_host(request(b"192.0.2.1")).name is None
    assert parse.http_host(request(b"192.0.2.1")).raw == b"192.0.2.1"


def test_http_host_of_a_cut_head() -> None:
    head = request(HOST)[:-2]
    assert parse.http_host(head).state == "need_more"
    assert parse.http_host(head, cut=True).name == NAME
    assert parse.http_host(request(HOST)[: -len(HOST)], cut=True).name is None


def test_h2_hosts() -> None:
    client = h2.Client()
    more = client.request(HOST) + client.request(b"192.0.2.1:80") + client.request(None)
    data = h2.PREFACE + h2.frame(h2.SETTINGS) + more
    raw, names = (HOST, b"192.0.2.1:80", b""), (NAME, None, None)
    whole = parse.h2_hosts(data)
    assert (whole.state, whole.raw, whole.names, whole.used) == ("done", raw, names, len(data))
    assert whole.offsets[0] == len(data) - len(more)
    assert [data[at + 3] for at in whole.offsets] == [h2.HEADERS] * 3
    cut = parse.h2_hosts(data[:-1])
    assert cut == parse.Http2Hosts("need_more", raw[:2], names[:2], whole.offsets[:2], cut.used)
    assert cut.used == whole.offsets[2]
    body = h2.frame(h2.DATA, bytes(50), stream=1)[:20]
    assert parse.h2_hosts(data + body).state == "need_more"
    assert parse.h2_hosts(data + body).raw == raw
    wrong = h2.frame(h2.HEADERS, b"\xff" * 9, flags=h2.END_HEADERS, stream=9)
    assert parse.h2_hosts(data + wrong) == dataclasses.replace(whole, state="malformed")
    assert parse.h2_hosts(h2.PREFACE[:10]).state == "need_more"
    assert parse.h2_hosts(b"GET / HTTP/1.1\r\n").state == "other"


def test_dns_question() -> None:
    parsed = parse.dns_question(dns(b"www.Example.org", ident=9, kind=28))
    raw = b"www.Example.org"
    expected = ("done", raw, NAME, 12, 12 + len(raw) + 6, False, 9, 28, 1, 0)
    assert parsed == parse.DnsQuestion(*expected, more=False)
    assert parse.dns_question(dns(b"printer.local")).name == "printer.local"
    assert parse.dns_question(dns(b"a.example")[:20], whole=False).state == "need_more"
    assert parse.dns_question(dns(b"a.example")[:20]).state == "malformed"


def test_quic_initial() -> None:
    message = quic.hello(host=HOST)
    datagram = Initial(crypto(message)).seal() + quic.opaque(quic.HANDSHAKE, DCID, SCID)
    parsed = parse.quic_initial(datagram)
    packets = parse.quic_packets(datagram).packets
    expected = ("done", HOST, NAME, None, False, V1, DCID, SCID, ((0, message),))
    assert dataclasses.astuple(parsed) == (*expected, packets[0].length, (0,), b"")
    assert [(p.type, p.offset + p.length) for p in packets] == [
        ("initial", packets[1].offset),
        ("handshake", len(datagram)),
    ]
    parts = crypto(message[30:], 30) + crypto(message[:50])
    assert parse.quic_initial(Initial(parts).seal()).name == NAME
    half = parse.quic_initial(Initial(crypto(message[30:], 30)).seal())
    assert (half.state, half.name, half.crypto) == ("need_more", None, ((30, message[30:]),))
    conflict = crypto(message) + crypto(b"no", 5)
    assert parse.quic_initial(Initial(conflict).seal()).state == "malformed"
    far = crypto(message) + crypto(b"far", 2**40)
    assert parse.quic_initial(Initial(far).seal()).name == NAME
    assert parse.quic_initial(b"\0" * 40).state == "other"
    ech = quic.hello(wire.extension(wire.ECH, bytes(9)))
    assert parse.quic_initial(Initial(crypto(ech)).seal()).ech_offered


def test_gquic_hello() -> None:
    message = gquic.hello(NAME.encode(), gquic.TOKEN, pad=300)
    for version in gquic.VERSIONS:
        packet = gquic.Part(message, version=version).seal()
        found = parse.gquic_hello(packet)
        assert (found.state, found.name, found.token) == ("done", NAME, gquic.TOKEN)
        assert (found.version, found.connection_id) == (version, gquic.ID)
        half = parse.gquic_hello(gquic.Part(message[:200], version=version).seal())
        assert (half.state, half.raw, half.parts) == ("need_more", b"", ((0, message[:200]),))
        assert parse.gquic_hello(packet[:-1] + b"\1").state == "other"
        assert parse.gquic_hello(packet[:600], whole=False).state == "need_more"
    assert parse.gquic_hello(b"\0" * 40).state == "other"


def test_quic_initial_with_the_first_id() -> None:
    later = Initial(crypto(quic.hello()), dcid=b"another", key_id=DCID).seal()
    assert parse.quic_initial(later).state == "other"
    assert parse.quic_initial(later, DCID).raw == wire.HOST
    assert parse.quic_initial(later, b"") == parse.quic_initial(later)
    with pytest.raises(ValueError, match="connection ID"):
        parse.quic_initial(later, bytes(21))


def test_results_are_values() -> None:
    parsed = parse.http_host(request(b"a.example"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        parsed.raw = b""  # type: ignore[misc]
    assert hash(parsed) == hash(parse.http_host(request(b"a.example")))
    assert zanon_net.parse is parse


def test_only_public_names_are_listed() -> None:
    assert dir(parse) == sorted(parse.__all__)
    assert [
        name for name in parse.__all__ if name.startswith("_") or not parse.__dict__[name]
    ] == []
    functions = {name for name in dir(parse) if name.islower()}
    names = {name for parser in SAMPLES for name in parser.__code__.co_names}
    assert functions - {parser.__name__ for parser in SAMPLES} <= names


@each("parser, samples", SAMPLES.items())
def test_input_is_bytes(parser: Parser, samples: list[bytes]) -> None:
    for wrong in (None, "text", bytearray(samples[0])):
        with pytest.raises(TypeError):
            parser(wrong)  # type: ignore[arg-type]


@each("parser, samples", SAMPLES.items())
def test_samples_are_read(parser: Parser, samples: list[bytes]) -> None:
    for sample in samples:
        parsed = parser(sample)
        state = getattr(parsed, "state", "done")
        assert parsed, parser
        assert state in ("done", "need_more"), sample
        assert state == "done" or parsed.crypto  # a hello in two datagrams


# ---- TLS and DTLS -------------------------------------------------------------------------------


def test_a_name_in_several_records() -> None:
    message = wire.client_hello(wire.server_name(HOST))
    at = message.index(HOST)
    data = wire.records(message, [20, at - 17, 60])
    apart = parse.tls_client_hello(data)
    assert (apart.name, apart.offset, apart.used) == (NAME, None, len(data))
    data = wire.record(b"") + wire.records(message, [20])
    inside = parse.tls_client_hello(data)
    assert inside.offset == data.index(HOST)
    assert inside.used == len(data)


def test_tls_server_hello() -> None:
    data = wire.record(server_hello(wire.extension(wire.SUPPORTED_VERSIONS, b"\3\4")))
    expected = parse.ServerHello(
        "done", len(data), 0x0304, 0x1301, suite_encrypts=True, retry=False
    )
    assert parse.tls_server_hello(data + b"\x14\3\3\0\1\1") == expected
    assert parse.tls_server_hello(data[:-1]).state == "need_more"
    assert parse.tls_server_hello(hello(HOST)).state == "other"
    assert parse.tls_server_hello(b"HTTP/1.1 200 OK\r\n").state == "other"
    assert (
        parse.tls_server_hello(wire.record(server_hello()[:-5]) + b"\x15\3\3").state == "malformed"
    )
    split = wire.records(server_hello() + message(named(NAME)), [30])
    assert parse.tls_server_hello(split).used == 10 + len(server_hello())


def test_tls_certificate() -> None:
    der = named("*.Example.org")
    data = wire.record(flight(der))
    found = parse.tls_certificate(data)
    assert (found.state, found.raw, found.name) == ("done", b"*.Example.org", None)
    assert found.offset == data.index(b"*.Example.org")
    assert (found.certificate, found.certificate_offset) == (der, data.index(der))
    apart = parse.tls_certificate(wire.records(flight(der), [90, 100]))
    assert (apart.raw, apart.certificate, apart.certificate_offset) == (found.raw, der, None)
    assert parse.tls_certificate(data[:200]).state == "need_more"
    after = wire.record(server_hello()) + b"\x14\3\3\0\1\1"
    assert parse.tls_certificate(after).state == "other"
    assert parse.x509_common_name(der).raw == found.raw
    assert parse.x509_common_name(der[:60]).state == "malformed"


def test_dtls() -> None:
    body = quic.dtls_hello(host=HOST, cookie=b"cookie")
    parts = [quic.dtls_fragment(body, 0, 50), quic.dtls_fragment(body, 50)]
    data = b"".join(map(quic.dtls_record, parts))
    found = parse.dtls_fragments(data)
    assert found.state == "done"
    assert [(p.type, p.message, p.length, p.start) for p in found.fragments] == [
        (1, 0, len(body), 0),
        (1, 0, len(body), 50),
    ]
    for part in found.fragments:
        assert data[part.offset :].startswith(part.data)
    whole = parse.dtls_client_hello(b"".join(part.data for part in found.fragments))
    assert (whole.name, whole.cookie, whole.offset) == (NAME, b"cookie", body.index(HOST))
    cut = parse.dtls_fragments(data[:30], whole=False)
    assert (cut.state, cut.fragments[0].data) == ("need_more", body[:5])
    longer = quic.dtls_hello(wire.extension(wire.PADDING, bytes(9)), host=HOST)
    assert parse.dtls_client_hello(longer[:-4], declared=len(longer)).name == NAME
    assert parse.dtls_cookie(b"\xfe\xff" + wire.vector(1, b"abc")) == parse.DtlsCookie(
        "done", b"abc"
    )


# ---- the others ---------------------------------------------------------------------------------


def test_quic_server_initial() -> None:
    sent = server_hello(wire.extension(wire.SUPPORTED_VERSIONS, b"\3\4"))
    data = Initial(crypto(sent), dcid=SCID, scid=b"server", key_id=DCID, server=True).seal()
    found = parse.quic_server_initial(data, DCID)
    assert (found.state, found.scid, found.crypto) == ("done", b"server", ((0, sent),))
    assert (found.hello.state, found.hello.version, found.hello.suite) == ("done", 0x0304, 0x1301)
    assert parse.quic_server_initial(data, b"another").state == "other"
    assert parse.quic_initial(data, DCID).state == "other"


def test_quic_user_agent() -> None:
    agent = wire.extension(0x39, quic.varint(0x3129) + quic.varint(4) + b"Test")
    assert parse.quic_initial(Initial(crypto(quic.hello(agent))).seal()).user_agent == b"Test"


def test_http_bodies() -> None:
    head = b"POST /q HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n"
    dns_type = b"Content-Type: application/dns-message\r\n"
    found = parse.http_host(head + dns_type + b"\r\n")
    assert (found.body_bytes, found.chunked, found.dns_body) == (None, True, True)
    assert head[found.target_offset :].startswith(found.target)
    chunk = parse.http_chunk(b"4\r\nabcd\r\n0\r\n\r\n")
    assert chunk == parse.HttpChunk("done", 9, last=False)
    assert parse.http_chunk(b"0\r\n\r\n") == parse.HttpChunk("done", 5, last=True)
    assert parse.http_chunk(b"xyz\r\n").state == "other"
    body = b"4;x=y\r\nabcd\r\n3\r\nefg\r\n0\r\n\r\n"
    assert parse.http_chunks(body) == parse.HttpBody("done", b"abcdefg", whole=True)
    assert parse.http_chunks(body, most=5) == parse.HttpBody("done", b"abcde", whole=False)
    assert {parse.http_chunks(body[:n]).state for n in range(len(body))} == {"need_more"}
    assert parse.http_chunks(b"4\r\nabcd\r\nxyz\r\n").state == "other"


def test_dns_over_tcp() -> None:
    first, second = wire.vector(2, dns(b"a.example")), wire.vector(2, dns(b"b.example"))
    found = parse.dns_stream(first + second)
    assert (found.state, found.used) == ("done", len(first + second))
    assert [(q.name, q.offset) for q in found.questions] == [
        ("a.example", 14),
        ("b.example", len(first) + 14),
    ]
    cut = parse.dns_stream(first + second[:-1])
    assert (cut.state, cut.used, cut.questions) == ("need_more", len(first), found.questions[:1])
    longer = wire.vector(2, dns(b"a.example") + bytes(9))[:-2]
    assert (parse.dns_stream(longer).state, len(parse.dns_stream(longer).questions)) == (
        "need_more",
        1,
    )
    assert parse.dns_stream(b"\0\2ab").state == "other"


def test_dns_over_https() -> None:
    found = parse.doh_question(TARGET)
    assert (found.state, found.name, found.offset) == ("done", NAME, 12)
    assert parse.doh_question(b"/?dns=cloudflare").state == "other"
    assert parse.doh_question(b"/").state == "other"


def test_first_bytes() -> None:
    assert parse.stream_prefix(b"STLS\r\n" + hello(HOST)) == parse.StreamPrefix("done", 6)
    assert parse.stream_prefix(b"hello").state == "other"
    opened = parse.nameless_protocol(b"220 mail\r\n", from_client=False)
    assert opened == parse.NamelessProtocol(("ftp", "smtp"), known=False)
    known = parse.nameless_protocol(b"220 mail\r\n", from_client=False, later=[b"MAIL FROM:<a>"])
    assert known.known
    assert parse.nameless_protocol(b"SSH-2.0-x", from_client=True) == parse.NamelessProtocol(
        ("ssh",), known=True
    )
    assert parse.service_signature(b"SSH-2.0-x\r\n") == "ssh"
    assert parse.service_signature(b"nothing that is known") is None
    assert parse.datagram_kind(b"SIP/2.0 200 OK\r\n").kind == "sip"
    assert parse.datagram_kind(b"\xff" * 20) == parse.DatagramKind(None, 0, 0)
    assert parse.icmp_message(b"\3\4").state == "need_more"
    assert parse.hostname(b"A.Example.:443") == "a.example"


def test_an_attribute() -> None:
    assert parse.attribute("user-agent", b"a b") == parse.Attribute("done", "a%20b", b"a b", 0)
    long = b"x" * 254
    assert parse.attribute("user-agent", long) == parse.Attribute("done", None, long, 0)
    assert parse.attribute("user-agent", b"a\0") == parse.Attribute("malformed", None)
    assert parse.attribute("alpn", wire.client_hello()[4:]) == parse.Attribute("other", None)
    with pytest.raises(ValueError, match=r"'ja5' is not one of alpn, ja4"):
        parse.attribute("ja5", b"")


def test_the_place_of_an_attribute() -> None:
    body = wire.client_hello(wire.extension(16, wire.vector(2, b"\2h2")))[4:]
    assert parse.attribute("alpn", body) == parse.Attribute("done", "h2", b"\2h2", len(body) - 3)
    assert parse.attribute("ja4", body).offset is None
    call = requests.sip(b"sip:alice@Example.org;lr")
    assert parse.attribute("sip", call).offset == call.index(b"Example.org")
    assert parse.attribute("ehlo", b"EHLO  a.example \r\n").offset == 6
    assert parse.attribute("stun", requests.binding(b"a b")).raw == b"a b"
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
    der = certificate_for(issuer, "a.example", "b.example")
    assert parse.attribute("cert-san", der).offset == der.index(b"a.example")
    found = parse.attribute("cert-issuer", der)
    assert found.offset == der.index(found.raw)
    assert issuer.public_bytes().endswith(found.raw)
    assert found.raw.endswith(b"authority")
