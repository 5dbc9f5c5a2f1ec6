# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Damaged and unusual messages that real servers accept: the name is read where the server reads
it, and nothing beside it is lost."""

import struct
from itertools import permutations

import pytest
from support import quic_wire as quic
from support import wire
from support.engine import TCP_COMPLETE, UDP_COMPLETE, run
from support.examples import each
from support.handshake import COMMON_NAME, flight, named
from support.packets import (
    ACK,
    PSH,
    SERVER,
    Tcp,
    Udp,
    dns,
    hello,
    request,
)
from support.quic_wire import SERVER_ID, V1, V2
from support.stream import NAME, OTHER, names, one_user, segments, talk_of

ANY = {"z": 1, "established": False}
HEAD_MAX = 16384
COOKIE = b"Cookie: a=" + b"y" * 1500 + b"\r\n"
CERTIFICATE = wire.record(flight(named(COMMON_NAME)))
V2_HELLO = b"\x80\x1c\1\3\1\0\3\0\0\0\x10\0\0\x35" + bytes(16)
CONNECT = request(b"proxy.example", b"CONNECT").replace(b" / ", b" www.example.org:443 ")
BAD_NAME = b"-bad-.example!"


def statuses(talk: Tcp | Udp, **more: object) -> list[tuple[str | None, str]]:
    outcome = run(talk.frames, **({"z": 1} | more))
    return [(flow["name"], flow["name_status"]) for flow in outcome.flows]


# ---- heads of requests --------------------------------------------------------------------------


def long_request(*lines: bytes, method: bytes = b"GET", host: bytes = NAME) -> bytes:
    """A request with more than 16 KiB of fields."""
    head = request(host, method).removesuffix(b"\r\n") + COOKIE * 11
    assert len(head) > HEAD_MAX
    return head + b"".join(lines) + b"\r\n"


@each("size", [1, 700, 1400, 5000])
def test_a_long_head_names_its_host_and_the_next_request_is_read(size: int) -> None:
    data = long_request(b"Last: x\r\n") + request(OTHER)
    pieces = [data] if size == 5000 else segments(data, size) if size > 1 else None
    talk = talk_of(*(pieces or [data[:16_000], *segments(data[16_000:], 90)]), ports=(40000, 80))
    assert names(talk.close()) == [OTHER.decode(), NAME.decode()]
    outcome = one_user(talk)
    assert outcome.stats["bodies_lost"] == outcome.stats["suppressed_invalid"] == 0


def test_a_field_longer_than_the_limit_is_passed_over() -> None:
    data = request(NAME).removesuffix(b"\r\n") + b"Cookie: " + b"y" * 40_000 + b"\r\n\r\n"
    talk = talk_of(*segments(data + request(OTHER), 1400), ports=(40000, 80)).close()
    assert names(talk) == [OTHER.decode(), NAME.decode()]


@each("line", [b"Content-Length: 5\r\n", b"Upgrade: h2c\r\n", b" folded\r\n", b"Host: a b\r\n"])
def test_a_late_field_that_changes_the_request_makes_it_coarse(line: bytes) -> None:
    talk = talk_of(*segments(long_request(line) + request(OTHER), 1400), ports=(40000, 80)).close()
    outcome = one_user(talk)
    assert outcome.flows[-1]["t_start_ns"] % 60_000_000_000 == 0
    if not line.startswith(b"Host"):
        assert names(talk) == [NAME.decode()]
        assert outcome.stats["bodies_lost"] == 1


def test_a_late_second_host_is_a_conflict() -> None:
    talk = talk_of(*segments(long_request(b"Host: www.example.net\r\n"), 1400), ports=(40000, 80))
    outcome = one_user(talk.close())
    assert outcome.stats["suppressed_conflict"] == 1
    assert OTHER.decode() not in outcome.released()


def test_a_long_head_without_a_host_says_so() -> None:
    data = long_request().replace(b"Host: " + NAME + b"\r\n", b"")
    assert len(data) >= HEAD_MAX
    talk = talk_of(*segments(data, 1400), ports=(40000, 80)).close()
    outcome = run(talk.frames, z=1)
    assert outcome.flow["name_status"] == "suppressed"
    assert outcome.stats["suppressed_capacity"] == 1
    assert outcome.stats["suppressed_invalid"] == 0


@each("line", [b"OPTIONS HTTP/1.1", b"GET HTTP/1.0"])
def test_a_request_without_a_target(line: bytes) -> None:
    data = line + b"\r\nHost: www.example.org\r\n\r\n"
    assert names(talk_of(data, ports=(40000, 80))) == [NAME.decode()]
    assert names(talk_of(data.replace(b"OPTIONS", b"PURGE").replace(b"GET", b"get"))) == []


OTHERS = {
    "SIP": b"MESSAGE sip:b@voice.example SIP/2.0\r\nContent-Length: 60\r\n\r\n",
    "SIP, HTTP in its target": b"INVITE sip:b@voice.example;x=http/1.1 SIP/2.0\r\n\r\n",
    "RTSP": b"OPTIONS rtsp://camera.example/x RTSP/1.0\r\nHost: camera.example\r\n\r\n",
    "ICAP": b"REQMOD icap://a.example/x ICAP/1.0\r\nHost: a.example\r\n\r\n",
}


@each("case", OTHERS)
@each("cut", [0, 11, 60])
def test_a_body_of_another_protocol_is_no_request(case: str, cut: int) -> None:
    """The request line has HTTP's syntax, and the body looks like a request of HTTP."""
    first = OTHERS[case]
    pieces = [first[:cut], first[cut:]] if cut else [first]
    talk = talk_of(*pieces, request(NAME), hello(OTHER), ports=(40000, 9999)).close()
    assert names(talk) == []
    assert run(talk.frames, z=2, internal=None).flow["name_status"] == "none"
    usual = talk_of(*pieces, request(NAME), ports=(40000, 80)).close()
    assert run(usual.frames, z=2, internal=None).flow["name_status"] == "suppressed"


@each("kept", [16, 30, 50])
def test_a_cut_request_line_of_another_protocol(kept: int) -> None:
    """The snapshot length cuts the line, and the body behind it looks like a request of HTTP."""
    line = b"MESSAGE sip:" + b"b" * 60 + b"@voice.example SIP/2.0\r\nContent-Length: 60\r\n\r\n"
    talk = talk_of(line, request(NAME), ports=(40000, 9999)).close()
    whole = {len(frame.data) for frame in talk.frames if b"MESSAGE" not in frame.data}
    assert max(whole) < len(line) + 54
    frames = [f.cut(54 + kept) if b"MESSAGE" in f.data else f for f in talk.frames]
    assert run(frames, z=1).observations == []


def test_a_long_request_line_of_another_protocol() -> None:
    line = b"INVITE sip:" + b"b" * 600 + b"@voice.example SIP/2.0\r\n\r\n"
    assert names(talk_of(line, request(NAME), ports=(40000, 9999))) == []
    line = b"INVITE /sip:" + b"b" * 600 + b" HTTP/1.1\r\nHost: www.example.net\r\n\r\n"
    assert names(talk_of(line, ports=(40000, 80))) == ["www.example.net"]


def test_a_cut_line_with_a_method_of_http_is_unread() -> None:
    talk = talk_of(b"OPTIONS sip:" + b"b" * 90 + b" HTTP/1.1\r\n\r\n", ports=(40000, 9999)).close()
    frames = [f.cut(54 + 40) if b"OPTIONS" in f.data else f for f in talk.frames]
    assert run(frames, z=2, internal=None).flow["name_status"] == "suppressed"


@each("target", [b"sip:b@www.example.net", b"rtsp://www.example.org/x"])
def test_a_target_of_another_protocol_in_a_request_of_http(target: bytes) -> None:
    """As a server of HTTP reads it: the authority of the target, or else Host."""
    data = b"OPTIONS " + target + b" HTTP/1.1\r\nHost: www.example.org\r\n\r\n"
    assert names(talk_of(data, ports=(40000, 80))) == [NAME.decode()]


@each("inside", [request(NAME), hello(NAME), wire.record(b"") + hello(NAME), CONNECT + hello(NAME)])
def test_what_comes_behind_connect(inside: bytes) -> None:
    """A proxy that ends TLS shows requests in clear behind CONNECT."""
    outer = CONNECT.replace(NAME, b"outer.example")
    talk = talk_of(outer, inside, ports=(40000, 3128)).close()
    assert set(names(talk)) == {"outer.example", NAME.decode()}
    assert set(names(talk_of(outer + inside, ports=(40000, 3128)).close())) == set(names(talk))


# ---- hellos -------------------------------------------------------------------------------------


@each("before", [wire.record(b"", 0x0301), wire.record(b"", 0x0303) * 3])
def test_empty_records_before_the_hello(before: bytes) -> None:
    data = before + hello(NAME)
    for pieces in ([data], [before, hello(NAME)], segments(data, 3)):
        assert one_user(talk_of(*pieces)).released() == {NAME.decode()}


@each("version", [0x0300, 0x0305, 0x03FF])
def test_any_minor_version_of_the_record(version: int) -> None:
    assert names(talk_of(hello(NAME, record_version=version))) == [NAME.decode()]
    assert names(talk_of(hello(NAME, record_version=version + 0x0100))) == []


def test_a_damaged_extension_behind_the_name() -> None:
    message = wire.client_hello(wire.server_name(NAME), b"\xaa\xaa\0\x50ab")
    assert statuses(talk_of(wire.record(message))) == [(NAME.decode(), "released")]


def logged(talk: Tcp, **more: object) -> dict[str, str]:
    (line,) = run(talk.close().frames, **({"z": 1} | more)).log(TCP_COMPLETE)
    return line


def test_a_hello_in_the_form_of_ssl_2() -> None:
    """It has no name, so its record is exact; the rest of the handshake is read."""
    talk = talk_of(V2_HELLO).say(CERTIFICATE, SERVER)
    line = logged(talk)
    assert (line["con_t"], line["s_tls_SCN"], line["c_TLSvers"]) == ("8192", COMMON_NAME, "0301")
    outcome = run(talk.frames, z=2, internal=None)
    assert outcome.flow["name_status"] == "none"
    assert outcome.flow["t_start_ns"] == talk.frames[0].t_ns


# ---- questions ----------------------------------------------------------------------------------

RECORD = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\1\2\3\4"


@each("counts", [(1, 1, 0, 0), (1, 0, 2, 0), (1, 3, 0, 1)])
@each("tcp", [False, True])
def test_a_question_with_records(counts: tuple[int, ...], tcp: bool) -> None:
    plain = dns(NAME)
    question = plain[:4] + struct.pack(">4H", *counts) + plain[12:] + RECORD * sum(counts[1:])
    answer = dns(NAME, response=True)
    if tcp:
        talk = talk_of(wire.vector(2, question), ports=(40000, 53))
        assert names(talk) == [NAME.decode()]
    else:
        talk = Udp().send(question).send(answer, SERVER)
        assert statuses(talk) == [(NAME.decode(), "released")]
    damaged = run(Udp().send(question[:-1]).send(answer, SERVER).frames, z=2, internal=None)
    assert damaged.flow["name_status"] == "suppressed"
    assert damaged.stats["suppressed_unread"] == 1


# ---- several names ------------------------------------------------------------------------------


def test_a_record_has_the_first_hostname() -> None:
    web = talk_of(request(BAD_NAME), request(NAME), request(OTHER), ports=(40000, 80)).close()
    assert statuses(web) == [(NAME.decode(), "released")]
    asked = Udp().send(dns(BAD_NAME)).lookup(NAME).lookup(OTHER)
    assert statuses(asked) == [(NAME.decode(), "released")]
    for talk in (web, asked):
        assert [status for _, status in statuses(talk, z=2)] == ["suppressed"]
        outcome = run(talk.frames, z=2, internal=None)
        assert outcome.flow["t_start_ns"] % 60_000_000_000 == 0
    only = talk_of(request(BAD_NAME), ports=(40000, 80)).close()
    assert statuses(only) == [(None, "invalid")]


def test_one_host_in_many_requests_is_one_name() -> None:
    """The evidence of the client is missing."""
    talk = Tcp(ports=(40000, 80))
    for _ in range(40):
        talk.say(request(NAME))
    outcome = run(talk.frames, z=1)
    assert outcome.stats["names_full"] == outcome.stats["suppressed_capacity"] == 0
    assert outcome.stats["suppressed_unconfirmed"] == 1
    assert outcome.stats["names_repeated"] == 39
    assert outcome.flow["name_status"] == "unconfirmed"


# ---- what comes beside the name -----------------------------------------------------------------

TUNNELS = {
    "CONNECT": ((CONNECT, b"HTTP/1.1 200 Connection established\r\n\r\n"),),
    "SMTP": ((b"EHLO a.example\r\n", b"250 STARTTLS\r\n"), (b"STARTTLS\r\n", b"220 go\r\n")),
    "PROXY": ((b"PROXY TCP4 192.0.2.1 192.0.2.2 40000 443\r\n", b""),),
}


@each("case", TUNNELS)
def test_the_certificate_behind_a_request_for_tls(case: str) -> None:
    talk = Tcp(ports=(40000, 3128)).handshake()
    if case == "SMTP":
        talk.say(b"220 mail.example\r\n", SERVER)
    for sent, answer in TUNNELS[case]:
        talk.say(sent)
        if answer:
            talk.say(answer, SERVER)
    line = logged(talk.say(hello(NAME)).say(CERTIFICATE, SERVER))
    assert line["s_tls_SCN"] == COMMON_NAME
    assert line["s_TLSvers"] == "0303"


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_the_servers_segments_in_any_order(order: tuple[int, ...]) -> None:
    talk = talk_of(hello(NAME))
    start, step = talk.next[SERVER], len(CERTIFICATE) // 4 + 1
    for n in order:
        part = CERTIFICATE[n * step : (n + 1) * step]
        talk.segment(SERVER, PSH | ACK, part, seq=start + n * step)
    talk.next[SERVER] += len(CERTIFICATE)
    assert logged(talk)["s_tls_SCN"] == COMMON_NAME


def test_a_server_that_chooses_another_version_of_quic() -> None:
    """Compatible version negotiation (RFC 9368): both sides then speak the server's version."""
    talk = Udp(ports=(40000, 443))
    for datagram in quic.first_flight(quic.hello(host=NAME), version=V1):
        talk.send(datagram)
    talk.send(quic.server_answer(version=V2), SERVER)
    talk.send(quic.opaque(quic.HANDSHAKE, SERVER_ID, quic.SCID, 60, V2))
    talk.send(quic.short(SERVER_ID))
    (line,) = run(talk.frames, z=1).log(UDP_COMPLETE)
    assert (line["c_type"], line["s_type"]) == ("27", "27")
    assert (line["quic_c_vers"], line["quic_s_vers"]) == ("0x6b3343cf", "0x6b3343cf")
    assert line["quic_SNI"] == NAME.decode()
