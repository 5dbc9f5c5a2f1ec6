# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Flows of protocols that are known to have no names: their packets leave while they are open."""

import re
import struct

import pytest
from support.examples import each
from support.packet_run import Emitted, emitted
from support.packets import ACK, CLIENT, MS, PSH, SECOND, SERVER, START, Tcp, hello
from support.paths import ROOT

TABLE = (ROOT / "csrc" / "proto" / "nameless.h").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^    X\((\w+), \w+, \w+, (\w+)\)", TABLE, re.M))

GREETING_220 = (SERVER, b"220 mail.example ready\r\n")
SSL_REQUEST = struct.pack(">II", 8, 80877103)
STARTUP = struct.pack(">II", 41, 196608) + b"user\0somebody\0database\0orders\0\0"
BIND = bytes.fromhex("300c020101600702010304008000")
SEARCH = bytes.fromhex("30250201016320040030030a01000a0100020100020100010100870b") + b"objectClass0"
MCS = bytes.fromhex("0300001002f0807f6504000000000000")
LOGIN7 = b"\x10\x01\0\x10\0\0\1\0" + struct.pack("<II", 8, 0x74000004)
MYSQL_GREETING = struct.pack("<I", 74) + b"\n8.0.35\0" + bytes(67)
MYSQL_LOGIN = struct.pack("<II", 1 << 24 | 60, 0x000FA205) + bytes(56)

# By row: what opens, and what the client says later, where the row has such a word.
TALKS: dict[str, list[tuple[int, bytes]]] = {
    "AMQP": [(CLIENT, b"AMQP\0\0\x09\x01")],
    "BGP": [(CLIENT, b"\xff" * 16 + b"\0\x1d\1\4" + bytes(9))],
    "BITCOIN": [(CLIENT, b"\xf9\xbe\xb4\xd9version\0\0\0\0\0" + bytes(94))],
    "BITTORRENT": [(CLIENT, b"\x13BitTorrent protocol" + bytes(48))],
    "CASSANDRA": [(CLIENT, b"\4\0\0\1\1\0\0\0\x16\0\1\0\x0bCQL_VERSION\0\0053.0.0")],
    "DCE_RPC": [(CLIENT, bytes.fromhex("05000b03100000004800000001000000") + bytes(56))],
    "FTP": [GREETING_220, (CLIENT, b"USER a\r\n"), (CLIENT, b"PASS b\r\n")],
    "GIT": [(CLIENT, b"0033git-upload-pack /project.git\0host=git.example\0")],
    "IMAP": [
        (SERVER, b"* OK ready\r\n"),
        (CLIENT, b"a LOGIN b c\r\n"),
        (CLIENT, b"b SELECT x\r\n"),
    ],
    "IRC": [(CLIENT, b"NICK a\r\nUSER a 0 * :a\r\n"), (CLIENT, b"JOIN #b\r\n")],
    "LDAP": [(CLIENT, SEARCH), (CLIENT, BIND)],
    "LDAP_BIND": [(CLIENT, BIND)],
    "MODBUS": [(CLIENT, bytes.fromhex("000100000006010300000002"))],
    "MONGODB": [(CLIENT, struct.pack("<IIIII", 58, 1, 0, 2004, 0) + b"admin.$cmd\0" + bytes(27))],
    "MQTT": [(CLIENT, b"\x10\x10\0\4MQTT\4\2\0\x3c\0\4abcd")],
    "MYSQL": [(SERVER, MYSQL_GREETING), (CLIENT, MYSQL_LOGIN)],
    "NNTP": [(SERVER, b"200 ready\r\n"), (CLIENT, b"MODE READER\r\n"), (CLIENT, b"GROUP a.b\r\n")],
    "OPC_UA": [(CLIENT, b"HELF" + bytes(28))],
    "POP3": [(SERVER, b"+OK ready\r\n"), (CLIENT, b"USER a\r\n"), (CLIENT, b"STAT\r\n")],
    "POSTGRESQL": [(CLIENT, STARTUP)],
    "POSTGRESQL_ASKED": [(CLIENT, SSL_REQUEST), (SERVER, b"N"), (CLIENT, STARTUP)],
    "RDP": [(CLIENT, bytes.fromhex("0300000b06e00000000000")), (CLIENT, MCS)],
    "REDIS": [(CLIENT, b"*1\r\n$4\r\nPING\r\n")],
    "RSYNC": [(SERVER, b"@RSYNCD: 31.0\n"), (CLIENT, b"@RSYNCD: 31.0\n")],
    "SMB": [(CLIENT, struct.pack(">I", 64) + b"\xfeSMB" + bytes(60))],
    "SMTP": [
        GREETING_220,
        (CLIENT, b"EHLO a.example\r\n"),
        (CLIENT, b"mail from:<a@b.example>\r\n"),
    ],
    "SSH": [(SERVER, b"SSH-2.0-a\r\n"), (CLIENT, b"SSH-2.0-b\r\n")],
    "TDS": [(CLIENT, b"\x12\1\0\x0f\0\0\1\0" + bytes(7)), (CLIENT, LOGIN7)],
    "VNC": [(SERVER, b"RFB 003.008\n"), (CLIENT, b"RFB 003.008\n"), (CLIENT, b"\2")],
    "VNC_3_3": [(SERVER, b"RFB 003.008\n"), (CLIENT, b"RFB 003.003\n")],
    "X11": [(CLIENT, b"l\0\x0b\0\0\0\0\0\0\0\0\0")],
    "XMPP": [
        (CLIENT, b"<?xml version='1.0'?>\n<stream:stream to='a.example'>"),
        (CLIENT, b"<auth mechanism='PLAIN'>b</auth>"),
    ],
}


def open_connection(talk: list[tuple[int, bytes]]) -> Tcp:
    """A connection that has said this, and is not closed."""
    tcp = Tcp("10.0.0.7", ports=(40000, 9), t_ns=START)
    tcp.handshake()
    for side, data in talk:
        tcp.say(data, side)
    return tcp


def left(tcp: Tcp) -> Emitted:
    """What leaves of the connection, while another one has time go on for five seconds."""
    later = Tcp("10.0.0.8", t_ns=START + 5 * SECOND)
    outcome = emitted(tcp.frames + later.handshake().frames, z=100, hold_ns=0)
    frames = [frame for frame in outcome.frames if frame.t_ns < later.frames[0].t_ns]
    return Emitted(frames, outcome.stats)


def passes_after(talk: list[tuple[int, bytes]]) -> bool:
    """Whether later packets of an open connection leave at once: all do, or none."""
    tcp = open_connection(talk)
    before = len(tcp.frames)
    for _ in range(3):
        tcp.t_ns += 100 * MS
        tcp.say(b"\xe0more", SERVER)
    later = {frame.t_ns for frame in tcp.frames[before:]}
    passed = later & {frame.t_ns for frame in left(tcp).frames}
    assert passed in (set(), later)
    return passed != set()


def test_each_row_has_a_talk() -> None:
    assert TALKS.keys() == ROWS.keys()


@each("row", TALKS)
def test_packets_leave_once_no_name_can_come(row: str) -> None:
    assert passes_after(TALKS[row])


@each("row", [row for row, word in ROWS.items() if word != "never"])
def test_they_wait_for_the_word(row: str) -> None:
    assert not passes_after(TALKS[row][:-1])


@each("row", TALKS)
def test_a_prefix_is_not_enough(row: str) -> None:
    side, word = TALKS[row][-1]
    for n in range(min(len(word), 4)):
        assert not passes_after([*TALKS[row][:-1], *([(side, word[:n])] if n else [])])


def test_a_flow_joined_in_its_middle_waits() -> None:
    tcp = open_connection(TALKS["BITTORRENT"])
    del tcp.frames[:3]
    tcp.t_ns += 100 * MS
    tcp.say(b"more", SERVER)
    assert left(tcp).frames == []


def test_bytes_behind_a_hole_wait() -> None:
    tcp = open_connection(TALKS["SMTP"][:2])
    tcp.next[CLIENT] += 20  # lost: it may have been STARTTLS
    tcp.say(TALKS["SMTP"][2][1])
    tcp.t_ns += 100 * MS
    tcp.say(b"250 OK\r\n", SERVER)
    assert left(tcp).frames == []


def test_the_server_alone_says_nothing() -> None:
    assert not passes_after([(SERVER, b"SSH-2.0-a\r\n")])
    assert not passes_after([(SERVER, TALKS["MQTT"][0][1])])


@pytest.mark.parametrize("row", ["SMTP", "FTP", "LDAP_BIND", "SSH"])
def test_a_withheld_name_that_comes_nevertheless_ends_the_output(row: str) -> None:
    tcp = open_connection(TALKS[row])
    tcp.t_ns += 100 * MS
    tcp.say(b"250 OK\r\n", SERVER)
    turns = len(tcp.frames)
    tcp.say(hello(b"rare.example"))
    for _ in range(3):
        tcp.t_ns += 100 * MS
        tcp.segment(SERVER, PSH | ACK, b"\x17\x03\x03\0\1a")
    outcome = left(tcp)
    times = {frame.t_ns for frame in outcome.frames}
    assert times.isdisjoint(frame.t_ns for frame in tcp.frames[turns:])
    assert times
    assert outcome.stats["packets_flows_turned"] == 1


def test_starttls_has_a_name() -> None:
    tcp = open_connection([*TALKS["SMTP"][:2], (CLIENT, b"STARTTLS\r\n"), (SERVER, b"220 go\r\n")])
    tcp.say(hello(b"rare.example"))
    tcp.t_ns += 100 * MS
    tcp.say(b"MAIL FROM:<a@b.example>")
    outcome = left(tcp)
    assert outcome.frames == []
    assert outcome.stats["packets_flows_turned"] == 0
