# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The parsers as Python has them: zanon_net.parse."""

import dataclasses

import pytest
from support import h2 as h2
from support import quic_wire as quic
from support import wire
from support.packets import dns, hello, request
from support.quic_wire import DCID, SCID, V1, Initial, crypto

import zanon_net
from zanon_net import parse

HOST = b"www.Example.org."
NAME = "www.example.org"


def test_tls_client_hello() -> None:
    stream = hello(HOST, wire.extension(wire.ECH, bytes(9)))
    parsed = parse.tls_client_hello(stream)
    assert parsed == parse.ClientHello("done", HOST, NAME, ech_offered=True)
    assert parse.tls_client_hello(stream[:-1]).state == "need_more"
    assert parse.tls_client_hello(stream[:-4], cut=True).name == NAME
    assert parse.tls_client_hello(b"SSH-2.0") == parse.ClientHello("other", b"", None, False)


def test_http_host() -> None:
    head = request(HOST + b":8080", b"POST")
    assert parse.http_host(head) == parse.HttpHost("done", HOST + b":8080", NAME, 2, len(head))
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
    assert parse.h2_hosts(data) == parse.Http2Hosts("done", raw, names)
    assert parse.h2_hosts(data[:-1]) == parse.Http2Hosts("need_more", raw[:2], names[:2])
    body = h2.frame(h2.DATA, bytes(50), stream=1)[:20]
    assert parse.h2_hosts(data + body) == parse.Http2Hosts("need_more", raw, names)
    wrong = h2.frame(h2.HEADERS, b"\xff" * 9, flags=h2.END_HEADERS, stream=9)
    assert parse.h2_hosts(data + wrong) == parse.Http2Hosts("malformed", raw, names)
    assert parse.h2_hosts(h2.PREFACE[:10]).state == "need_more"
    assert parse.h2_hosts(b"GET / HTTP/1.1\r\n").state == "other"


def test_dns_question() -> None:
    parsed = parse.dns_question(dns(b"www.Example.org", ident=9, kind=28))
    raw = b"www.Example.org"
    assert parsed == parse.DnsQuestion("done", raw, NAME, response=False, id=9, type=28)
    assert parse.dns_question(dns(b"printer.local")).name == "printer.local"
    assert parse.dns_question(dns(b"a.example")[:20], whole=False).state == "need_more"
    assert parse.dns_question(dns(b"a.example")[:20]).state == "malformed"


def test_quic_initial() -> None:
    message = quic.hello(host=HOST)
    parsed = parse.quic_initial(Initial(crypto(message)).seal())
    expected = ("done", HOST, NAME, False, V1, DCID, SCID, ((0, message),))
    assert dataclasses.astuple(parsed) == expected
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


@pytest.mark.parametrize(
    "parser",
    [parse.tls_client_hello, parse.http_host, parse.dns_question, parse.quic_initial],
)
def test_input_is_bytes(parser: object) -> None:
    for wrong in (None, "text", bytearray(b"x")):
        with pytest.raises(TypeError):
            parser(wrong)  # type: ignore[operator]
