# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The service of a flow: Tstat's con_t, c_type and s_type."""

import struct

import pytest
from support import wire
from support.engine import TCP_COMPLETE, TCP_NOCOMPLETE, UDP_COMPLETE, run
from support.examples import each
from support.packets import (
    ACK,
    CLIENT,
    PSH,
    SERVER,
    START,
    SYN,
    Frame,
    Tcp,
    Udp,
    dns,
    hello,
    request,
)

HTTP, SMTP, POP3, IMAP, TLS, SSH = 1, 1024, 2048, 4096, 8192, 32768
SERVER_HELLO = wire.record(b"\2" + wire.vector(3, b"\3\3" + bytes(36)))
C, S = CLIENT, SERVER
NOTHING = b"\xff\xfe\xfd\xfc"  # begins no service, as its first byte tells

Lines = list[tuple[int, bytes]]


def talk(lines: Lines) -> Tcp:
    conversation = Tcp().handshake()
    for side, text in lines:
        conversation.say(text, side)
    return conversation


def connection(conversation: Tcp) -> int:
    (line,) = run(conversation.close().frames, z=1).log(TCP_COMPLETE)
    return int(line["con_t"])


@pytest.mark.parametrize(
    ("service", "lines"),
    [
        (HTTP, [(C, request(b"a.example")), (S, b"HTTP/1.1 200 OK\r\n\r\n")]),
        (HTTP, [(C, request(b"a.example", b"DELETE")), (S, b"HTTP/1.0 404 No\r\n\r\n")]),
        (TLS, [(C, hello(b"a.example")), (S, SERVER_HELLO)]),
        (SMTP, [(S, b"220 mail.example ESMTP\r\n"), (C, b"EHLO client\r\n")]),
        (POP3, [(S, b"+OK ready\r\n"), (C, b"USER ann\r\n")]),
        (IMAP, [(S, b"* OK IMAP4rev2\r\n"), (C, b"a1 LOGIN ann x\r\n"), (S, b"a1 OK\r\n")]),
        (IMAP, [(S, b"* OK IMAP4rev2\r\n"), (C, b"7 CAPABILITY\r\n"), (S, b"* CAPABILITY\r\n")]),
        (SSH, [(S, b"SSH-2.0-server\r\n"), (C, b"SSH-2.0-client\r\n")]),
        (SSH, [(C, b"\0"), (S, b"SSH-2.0-server\r\n"), (C, b"SSH-2.0-client\r\n")]),
    ],
)
def test_a_service_is_spoken_by_both_sides(service: int, lines: Lines) -> None:
    assert connection(talk(lines)) == service
    assert connection(talk([(C, NOTHING), (S, NOTHING), *lines])) == service
    assert connection(talk(lines[:-1])) == 0


@pytest.mark.parametrize(
    "lines",
    [
        [(S, request(b"a.example")), (C, b"HTTP/1.1 200 OK\r\n\r\n")],
        [(C, hello(b"a.example")), (S, b"\x15\3\3\0\2\2\x28")],
        [(C, hello(b"a.example")), (S, b"HTTP/1.1 400 Bad Request\r\n\r\n")],
        [(C, b"220 mail.example\r\n"), (S, b"EHLO client\r\n")],
        [(S, b"* OK\r\n"), (C, b"! LOGIN\r\n"), (S, b"a1 OK\r\n")],
        [(C, b"GET"), (S, b"HTTP")],
    ],
)
def test_half_a_conversation_is_no_service(lines: Lines) -> None:
    assert connection(talk(lines)) == 0


def test_the_method_counts_with_the_service() -> None:
    post: Lines = [(C, request(b"a.example", b"POST")), (S, b"HTTP/1.1 200 OK\r\n\r\n")]
    (line,) = run(talk(post).close().frames, z=1).log(TCP_COMPLETE)
    assert (line["con_t"], line["http_t"]) == ("1", "2")
    (line,) = run(talk(post[:1]).close().frames, z=1).log(TCP_COMPLETE)
    assert (line["con_t"], line["http_t"]) == ("0", "0")


def test_nothing_is_looked_for_for_ever() -> None:
    silent: Lines = [(C, b"\0\1\2\3")] * 10
    late: Lines = [(S, b"220 mail.example\r\n"), (C, b"EHLO client\r\n")]
    assert connection(talk(silent + late)) == 0


def test_how_long_a_service_is_looked_for_does_not_depend_on_the_bytes() -> None:
    late: Lines = [(S, b"220 mail.example\r\n"), (C, b"EHLO client\r\n")]
    for count in range(8):
        first, second = (
            connection(talk([(C, b) for _ in range(count)] + late)) for b in (NOTHING, b"0000")
        )
        assert first == second == (SMTP if count < 6 else 0)


# ---- datagrams ----------------------------------------------------------------------------------


def rtp(sequence: int, source: int = 7, kind: int = 96) -> bytes:
    return struct.pack(">BBHII", 0x80, kind, sequence % 2**16, 160 * sequence, source) + bytes(20)


def rtcp(source: int = 7) -> bytes:
    return struct.pack(">BBHII", 0x80, 200, 6, source, 0) + bytes(16)


def types(datagrams: Lines, ports: tuple[int, int] = (40000, 40002)) -> tuple[int, int]:
    conversation = Udp(ports=ports)
    for side, payload in datagrams:
        conversation.send(payload, side)
    (line,) = run(conversation.frames, z=1).log(UDP_COMPLETE)
    return int(line["c_type"]), int(line["s_type"])


NAME = b"host.example"
TEREDO = struct.pack(">IHBB", 0x60000000, 0, 59, 21) + bytes.fromhex("20010000") + bytes(28)
MPEG_TS = (b"\x47" + bytes(187)) * 7
STUN = b"\0\1\0\0" + bytes(16)


@each(
    "datagrams, ports, expected",
    [
        ([(C, dns(NAME)), (S, dns(NAME, response=True))], (40000, 53), (19, 19)),
        ([(C, dns(NAME))], (40000, 5355), (19, 0)),
        ([(C, dns(NAME))], (5353, 5353), (19, 0)),
        ([(C, dns(b"_service._tcp.example"))], (5353, 5353), (0, 0)),
        ([(C, dns(NAME, kind=32))], (137, 137), (0, 0)),
        ([(C, dns(NAME))], (40000, 40002), (0, 0)),
        ([(C, b"INVITE sip:bob@example SIP/2.0\r\n"), (S, b"SIP/2.0 100 x\r\n")], None, (25, 25)),
        ([(C, b"NOTHING of:sip")], None, (0, 0)),
        ([(C, TEREDO)], None, (24, 0)),
        ([(C, MPEG_TS), (S, b"x")], None, (22, 22)),
        ([(C, MPEG_TS[:-1])], None, (0, 0)),
        ([(C, rtp(1))], None, (28, 0)),
        ([(C, rtp(1)), (C, rtp(2)), (S, rtp(9, 8))], None, (29, 28)),
        ([(C, rtp(65535)), (C, rtp(65536))], None, (29, 0)),
        ([(C, rtp(1)), (C, STUN), (C, rtp(2))], None, (29, 0)),
        ([(C, rtp(1)), (C, rtp(3))], None, (28, 0)),
        ([(C, rtp(1)), (C, rtp(2, 9))], None, (28, 0)),
        ([(C, rtp(1)), (C, b"\xc0" + bytes(40)), (C, rtp(2)), (C, rtp(3))], None, (0, 0)),
        ([(C, rtp(1, kind=20))], None, (0, 0)),
        ([(C, rtp(1)[:11])], None, (0, 0)),
        ([(C, rtcp()), (C, rtcp())], None, (29, 0)),
        ([(C, rtp(1)), (C, rtp(2))], (40000, 1024), (0, 0)),
    ],
)
def test_datagrams(
    datagrams: Lines, ports: tuple[int, int] | None, expected: tuple[int, int]
) -> None:
    assert types(datagrams, ports or (40000, 40002)) == expected


# ---- what Tstat counts how ----------------------------------------------------------------------


def line_of(frames: list[Frame], log: str = TCP_COMPLETE) -> dict[str, str]:
    (line,) = run(frames, z=1).log(log)
    return line


def test_a_segment_that_repeats_in_part_is_a_retransmission() -> None:
    conversation = Tcp().handshake().say(b"x" * 100)
    conversation.segment(C, ACK, b"y" * 150, seq=conversation.next[C] - 50)
    conversation.next[C] += 100
    line = line_of(conversation.close().frames)
    assert (line["c_pkts_retx"], line["c_bytes_retx"], line["c_pkts_ooo"]) == ("1", "50", "0")
    assert (line["c_bytes_all"], line["c_bytes_uniq"]) == ("250", "200")


def test_what_fills_a_hole_is_out_of_order_unless_it_reaches_the_end() -> None:
    start = Tcp().handshake()
    first = start.next[C]
    start.segment(C, ACK, b"z" * 10, seq=first + 20)
    start.segment(C, ACK, b"y" * 10, seq=first + 10)
    start.segment(C, ACK, b"x" * 30, seq=first)
    start.next[C] = first + 30
    line = line_of(start.close().frames)
    assert (line["c_pkts_ooo"], line["c_pkts_retx"], line["c_bytes_retx"]) == ("1", "1", "20")
    assert line["c_bytes_uniq"] == "30"


def test_flags_take_sequence_numbers_and_are_no_bytes() -> None:
    conversation = Tcp().segment(C, SYN).segment(C, SYN, seq=1000).segment(S, SYN | ACK)
    conversation.segment(C, ACK)
    end = conversation.next[S]
    conversation.segment(S, 1 | ACK, seq=end + 10)
    conversation.segment(S, 1 | PSH | ACK, b"0123456789", seq=end)
    conversation.next[S] = end + 11
    conversation.segment(C, 1 | ACK).segment(S, ACK)
    line = line_of(conversation.frames)
    assert (line["c_pkts_retx"], line["c_bytes_retx"]) == ("1", "0")
    assert (line["s_pkts_retx"], line["s_bytes_retx"], line["s_bytes_uniq"]) == ("1", "0", "10")


def test_a_reset_is_no_acknowledgement_and_carries_no_data() -> None:
    conversation = Tcp().segment(C, SYN).segment(S, 4 | ACK, b"why")
    line = line_of(conversation.frames, TCP_NOCOMPLETE)
    assert (line["s_first_ack"], line["s_first"], line["s_last"]) == ("0.000000",) * 3
    assert (line["s_ack_cnt"], line["s_pkts_data"], line["s_bytes_all"]) == ("1", "1", "3")


def test_half_a_connection_is_not_complete() -> None:
    conversation = Tcp(t_ns=START).segment(C, SYN).segment(C, ACK, b"x")
    conversation.segment(C, 1 | ACK).segment(S, 1 | ACK, seq=500_000).segment(C, ACK, ack=500_001)
    line = line_of(conversation.frames, TCP_NOCOMPLETE)
    assert line["s_syn_cnt"] == "0"
