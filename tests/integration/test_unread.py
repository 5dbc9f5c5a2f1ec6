# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Unread flows: flows without a name that may have named a host. Their records are coarse and their
packets do not leave."""

from collections.abc import Sequence

import pytest
from support import h2
from support import quic_wire as quic
from support.engine import nets, run
from support.examples import each
from support.packet_run import emitted
from support.packets import (
    ACK,
    CLIENT,
    FIN,
    PSH,
    RST,
    SECOND,
    SERVER,
    SERVER_ADDRESS,
    START,
    SYN,
    Frame,
    Tcp,
    Udp,
    crowd,
    dns,
    hello,
    merged,
    request,
    user,
)

SECRET = b"rare.example"
HELLO = hello(SECRET)
USER = user(70)
ODD_PORT = 9999  # of no analyzer
SSH = b"SSH-2.0-OpenSSH_9.7\r\n"
BINARY = bytes(range(0xE0, 0xFF))
APPLICATION_DATA = b"\x17\x03\x03\0\x20" + bytes(32)
DATAGRAM_BYTES = 42  # Ethernet, IPv4 and UDP headers
SEGMENT_BYTES = 54  # Ethernet, IPv4 and TCP headers


def tcp(port: int = 443, t_ns: int = START + SECOND) -> Tcp:
    return Tcp(USER, SERVER_ADDRESS, ports=(50_000, port), t_ns=t_ns)


def udp(port: int = 443) -> Udp:
    return Udp(USER, SERVER_ADDRESS, ports=(50_000, port), t_ns=START + SECOND)


def says(*payloads: bytes, port: int = 443) -> list[Frame]:
    """A whole connection in which the client sends the payloads and gets an answer to each."""
    talk = tcp(port).handshake()
    for payload in payloads:
        talk.say(payload).say(b"answer", SERVER)
    return talk.close().frames


def without(frames: Sequence[Frame], *lost: int) -> list[Frame]:
    return [frame for n, frame in enumerate(frames) if n not in lost]


def datagrams(*payloads: bytes, port: int = 443) -> list[Frame]:
    talk = udp(port)
    for payload in payloads:
        talk.send(payload).send(b"answer", SERVER)
    return talk.frames


def middle(*payloads: bytes, port: int = 443) -> list[Frame]:
    """The rest of a connection that began before the capture."""
    talk = tcp(port)
    for payload in payloads:
        talk.say(payload).say(APPLICATION_DATA, SERVER)
    return talk.frames


def cut(frames: Sequence[Frame], bytes_kept: int) -> list[Frame]:
    return [frame.cut(bytes_kept) for frame in frames]


def idle() -> list[Frame]:
    """A visit that goes on after the flow's idle time."""
    talk = tcp().handshake().say(HELLO).say(APPLICATION_DATA, SERVER)
    return talk.wait(310 * SECOND).say(APPLICATION_DATA).say(APPLICATION_DATA, SERVER).frames


def one_way(side: int) -> list[Frame]:
    """A visit of which the capture shows one direction only."""
    talk = tcp()
    talk.segment(CLIENT, SYN).segment(SERVER, SYN | ACK).segment(CLIENT, ACK)
    own = [0, 2] if side == CLIENT else [1]
    for sender, payload in ((CLIENT, HELLO), (SERVER, APPLICATION_DATA)):
        own += [len(talk.frames)] if sender == side else []
        talk.segment(sender, PSH | ACK, payload)
    return [talk.frames[n] for n in own]


def rejected() -> list[Frame]:
    """A connection whose client is reset when it has sent a hello that was not captured."""
    talk = tcp().handshake()
    talk.next[CLIENT] += len(HELLO)
    return talk.segment(CLIENT, RST | ACK).frames


def preface_only() -> list[Frame]:
    return says(h2.PREFACE + bytes.fromhex("000000040000000000"), port=8080)


# First messages of a client that look like TLS or HTTP, and that no parser reads.
LOOK_ALIKE = {
    "records of no bytes": b"\x16\x03\x01\0\0" * 33 + HELLO,
    "version of no TLS": b"\x16\x03\x05" + HELLO[3:5] + b"\1\0\0\x09" + HELLO[9:],
    "alert before the hello": b"\x15\x03\x03\0\2\1\0" + HELLO,
    "application data": APPLICATION_DATA,
    "no target": b"PURGE HTTP/1.1\r\nHost: rare.example\r\n\r\n",
    "other version": request(SECRET).replace(b"HTTP/1.1", b"http/1.1"),
    "no version": b"GET /\r\nHost: rare.example\r\n\r\n",
    "small letters": request(SECRET).replace(b"GET", b"get").replace(b"HTTP/1.1", b"HTTP/7"),
    "tab": request(SECRET).replace(b"GET ", b"GET\t"),
    "byte order mark": b"\xef\xbb\xbf" + request(SECRET),
}
UNREAD = {
    **{f"{name}, usual port": says(first, port=80) for name, first in LOOK_ALIKE.items()},
    **{f"{name}, odd port": says(first, port=ODD_PORT) for name, first in LOOK_ALIKE.items()},
    "bytes of nobody on a port of TLS": says(BINARY),
    "bytes of nobody on a port of HTTP": says(BINARY, port=8080),
    "SMTP on a port of TLS": says(b"EHLO a.example\r\n"),
    "HTTP/2 preface": preface_only(),
    "hello that was lost": without(says(HELLO), 3),
    "hello that was lost with its acknowledgement": without(says(HELLO), 3, 4),
    "client's segments that were all lost": without(says(HELLO), 2, 3, 6, 7, 9),
    "hello that was lost before a reset": rejected(),
    "headers only": cut(says(HELLO), SEGMENT_BYTES),
    "headers only, odd port": cut(says(BINARY, port=ODD_PORT), SEGMENT_BYTES),
    "a few bytes, odd port": cut(says(BINARY, port=ODD_PORT), SEGMENT_BYTES + 8),
    "middle of a connection": middle(APPLICATION_DATA),
    "middle of a connection, odd port": middle(BINARY, port=ODD_PORT),
    "middle of a silent connection": tcp().segment(CLIENT, ACK).segment(SERVER, ACK).frames,
    "server's direction": one_way(SERVER),
    "DNS over TCP, another opcode": says(
        (30).to_bytes(2) + dns(SECRET)[:2] + b"\x28\0" + dns(SECRET)[4:], port=53
    ),
    "DNS over TCP, no message": says(b"\0\3abc" + bytes(40), port=53),
    "DNS, another opcode": datagrams(dns(SECRET)[:2] + b"\x28\0" + dns(SECRET)[4:], port=53),
    "DNS, no message": datagrams(b"\1\2", port=53),
    "DNS, answer alone": udp(53).send(dns(SECRET, response=True), SERVER).frames,
    "QUIC from the middle": datagrams(quic.short(b"server78")),
    "QUIC from the middle, server first": udp()
    .send(quic.short(b"client78"), SERVER)
    .send(quic.short(b"server78"))
    .frames,
    "datagrams of which the server's is the first": udp(123)
    .send(bytes(48), SERVER)
    .send(bytes(48))
    .frames,
    "QUIC, headers only": cut(datagrams(bytes([0xC3]) + bytes(1250), port=9000), DATAGRAM_BYTES),
    "DTLS from the middle": datagrams(b"\x17\xfe\xfd" + bytes(40), port=9000),
}
NAMELESS = {
    "no bytes": tcp().handshake().close().frames,
    "no bytes, server's alone": tcp(21).handshake().say(b"220 ready\r\n", SERVER).close().frames,
    "a refused connection": tcp().segment(CLIENT, SYN).segment(SERVER, RST | ACK).frames,
    "SSH": says(SSH, port=22),
    "SSH on a port of TLS": says(SSH),
    "bytes of nobody": says(BINARY, port=ODD_PORT),
    "words": says(b"hello there\r\n", port=ODD_PORT),
    "RTSP": says(b"OPTIONS rtsp://a.example/b RTSP/1.0\r\nCSeq: 1\r\n\r\n", port=554),
    "hello without a name": says(hello(None)),
    "hello for an address": says(hello(b"192.0.2.9")),
    "request without a host": says(request(None), port=80),
    "bytes of nobody, cut": cut(says(BINARY, port=ODD_PORT), SEGMENT_BYTES + 20),
    "datagrams of nobody": datagrams(b"\1\2\3\4", port=ODD_PORT),
    "datagrams without bytes": datagrams(b""),
    "keep-alive": tcp(ODD_PORT).handshake().segment(CLIENT, ACK, seq=1000).close().frames,
    "question for the root": datagrams(dns(b"")[:12] + bytes([0, 0, 2, 0, 1]), port=53),
}


@each("case", UNREAD)
def test_an_unread_flow_is_coarse(case: str) -> None:
    outcome = run(UNREAD[case], z=2, internal=None)
    flow = outcome.flows[-1]
    assert flow["name_status"] == "suppressed"
    assert flow["t_start_ns"] % (60 * SECOND) == flow["t_end_ns"] % (60 * SECOND) == 0
    assert flow["server"] is None
    assert outcome.stats["suppressed_unread"] == outcome.stats["status_unread"] == 1


@each("case", UNREAD)
def test_packets_of_an_unread_flow_do_not_leave(case: str) -> None:
    before = crowd(b"popular.example", 3)
    for hold_ns in (0, 5 * SECOND):
        outcome = emitted(merged([before, UNREAD[case]]), z=2, hold_ns=hold_ns)
        assert outcome.frames
        assert all(frame.t_ns < START + SECOND for frame in outcome.frames)


@each("case", NAMELESS)
def test_a_flow_that_is_known_to_have_no_name_is_exact(case: str) -> None:
    outcome = run(NAMELESS[case], z=2, internal=None)
    flow = outcome.flow
    assert flow["name_status"] == "none"
    assert (flow["t_start_ns"], flow["t_end_ns"]) == (
        NAMELESS[case][0].t_ns,
        NAMELESS[case][-1].t_ns,
    )
    assert outcome.stats["suppressed_unread"] == 0


@each("case", NAMELESS)
def test_packets_of_a_flow_without_a_name_leave(case: str) -> None:
    outcome = emitted(NAMELESS[case], z=2, hold_ns=10 * SECOND)
    assert len(outcome.frames) == len(NAMELESS[case])


@each("more", [{"z": 1}, {"z": 2, "exact": True}])
@each("case", UNREAD)
def test_an_unread_flow_is_exact_where_all_are(case: str, more: dict[str, object]) -> None:
    frames = UNREAD[case]
    outcome = run(frames, internal=None, **more)
    assert outcome.flows[-1]["name_status"] == "suppressed"
    assert outcome.flows[-1]["t_end_ns"] == frames[-1].t_ns
    assert outcome.stats["suppressed_unread"] == 1


def test_a_flow_that_goes_on_is_unread() -> None:
    """After its idle time, and when the table was full."""
    named, rest = run(idle(), z=2, internal=None).flows
    assert (named["name_source"], rest["name_source"]) == ("tls", None)
    assert (named["name_status"], rest["name_status"]) == ("suppressed", "suppressed")
    assert rest["t_start_ns"] % (60 * SECOND) == 0
    left = emitted(merged([crowd(b"popular.example", 3), idle()]), z=2)
    assert all(frame.t_ns < START + SECOND for frame in left.frames)


def test_a_name_that_comes_later_is_a_name() -> None:
    """Over TLS that a mail server was asked for, and behind bytes of nobody on a port of TLS."""
    mail = [b"EHLO a.example\r\n", b"STARTTLS\r\n", HELLO]
    for frames in (says(*mail, port=25), says(BINARY, HELLO)):
        outcome = run(frames, z=1)
        assert outcome.released() == {SECRET.decode()}
        assert outcome.stats["suppressed_unread"] == 0


def test_what_follows_a_request_for_tls_decides_again() -> None:
    mail = [b"EHLO a.example\r\n", b"STARTTLS\r\n"]
    for first, status in ((LOOK_ALIKE["records of no bytes"], "suppressed"), (b"QUIT\r\n", "none")):
        assert run(says(*mail, first, port=25), z=2).flow["name_status"] == status


def test_packets_cease_at_a_message_that_nobody_can_read() -> None:
    """In a connection of mail that went on in clear, so that it had no name."""
    talk = tcp(25).handshake().say(b"220 mail.example ready\r\n", SERVER)
    talk.say(b"EHLO a.example\r\n").say(b"MAIL FROM:<a@b.example>\r\n").say(b"250 ok\r\n", SERVER)
    odd = len(talk.frames)
    talk.say(LOOK_ALIKE["records of no bytes"]).say(b"answer", SERVER)
    left = {frame.t_ns for frame in emitted(talk.frames, z=2, hold_ns=0).frames}
    assert {frame.t_ns for frame in talk.frames[odd - 2 : odd]} <= left
    assert not left & {frame.t_ns for frame in talk.frames[odd:]}


def test_a_tunnel_by_the_address_of_a_server_decides_again() -> None:
    asks = b"CONNECT 192.0.2.9:443 HTTP/1.1\r\nHost: 192.0.2.9:443\r\n\r\n"
    unknown = says(asks, LOOK_ALIKE["records of no bytes"], port=3128)
    assert run(unknown, z=2).flow["name_status"] == "suppressed"
    assert run(says(asks, SSH, port=3128), z=2).flow["name_status"] == "none"


def test_bytes_that_come_late_are_read() -> None:
    """A hello without a name that the capture has behind its acknowledgement."""
    frames = says(hello(None))
    frames[3], frames[4] = frames[4], frames[3]
    assert run(frames, z=2).flow["name_status"] == "none"


def test_a_client_that_finishes_without_a_byte_sent_none() -> None:
    talk = tcp().handshake().segment(CLIENT, FIN | ACK).segment(SERVER, FIN | ACK)
    assert run(talk.frames, z=2).flow["name_status"] == "none"


@pytest.mark.parametrize(
    "first",
    [
        quic.first_flight(quic.hello(host=None))[0],
        quic.dtls_record(quic.dtls_fragment(quic.dtls_hello(host=None))),
    ],
    ids=["QUIC", "DTLS"],
)
def test_a_hello_behind_the_servers_datagram_is_not_the_opening(first: bytes) -> None:
    """On two ports above 1023 and two internal addresses: the hello alone shows the client."""
    talk = Udp(USER, SERVER_ADDRESS, ports=(40_000, 41_000), t_ns=START + SECOND)
    talk.send(b"answer", SERVER).send(first).send(b"answer", SERVER)
    both = nets("10.0.0.0/8", f"{SERVER_ADDRESS}/32")
    flow = run(talk.frames, z=2, internal=both).flow
    assert (flow["name_status"], flow["server"]) == ("suppressed", None)
    assert (flow["c_pkts"], flow["s_pkts"]) == (1, 2)
    left = emitted(merged([crowd(b"popular.example", 3), talk.frames]), z=2, internal=both)
    assert left.frames
    assert all(frame.t_ns < START + SECOND for frame in left.frames)
