# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Attributes of requests, read by us and by tshark."""

import random
import struct
from collections.abc import Callable
from urllib.parse import unquote

from support import requests_wire as requests
from support import wire

from zanon_net import _core

Tshark = Callable[..., list[dict[str, str]]]
FIELDS = {"ehlo": "smtp.req.parameter", "sip": "sip.r-uri.host", "stun": "stun.att.software"}
HOSTS = [b"example.org", b"a.b-c.example", b"192.0.2.7", b"x" * 63 + b".example"]
USERS = [b"", b"alice@", b"alice:secret@", b"+49-123;ext=4@", b"a%40b@"]
ENDS = [b"", b":5061", b";transport=tcp;lr", b":5060;user=phone", b"?subject=x%20y"]
METHODS = [b"REGISTER", b"INVITE", b"OPTIONS", b"MESSAGE"]


def frame(n: int, payload: bytes, port: int, protocol: int) -> bytes:
    """A packet from a port of its own."""
    ports = (40000 + n, port)
    if protocol == wire.UDP:
        return wire.ethernet(wire.ipv4(wire.udp(payload, ports=ports), wire.UDP))
    head = struct.pack(">HHIIHHHH", *ports, 1000, 1, 5 << 12 | 0x18, 8192, 0, 0)
    return wire.ethernet(wire.ipv4(head + payload, wire.TCP))


def messages() -> list[tuple[str, bytes, int, int]]:
    """(attribute, message, port, protocol) of many forms."""
    dice, made = random.Random(5), []
    for host in [*HOSTS, b"[192.0.2.7]", b"[IPv6:2001:db8::1]"]:
        for verb in (b"EHLO", b"helo"):
            made.append(("ehlo", verb + b" " + host + b"\r\n", 25, wire.TCP))
    for user in USERS:
        for host in HOSTS:
            uri = dice.choice([b"sip:", b"sips:"]) + user + host + dice.choice(ENDS)
            message = requests.sip(uri, dice.choice(METHODS))
            made.append(("sip", message, 5060, dice.choice([wire.TCP, wire.UDP])))
    for size in (0, 1, 3, 4, 20, 127):
        before = [requests.stun_attribute(0x8029, bytes(8))] * dice.randrange(3)
        software = bytes(dice.choice(b"abz 019.-/") for _ in range(size))
        named = requests.stun_attribute(requests.SOFTWARE, software)
        protocol = dice.choice([wire.TCP, wire.UDP])
        made.append(("stun", requests.stun(*before, named), 3478, protocol))
    return made


def test_tshark_reads_the_same_texts(tshark: Tshark) -> None:
    made = messages()
    frames = [
        frame(n, message, port, protocol) for n, (_, message, port, protocol) in enumerate(made)
    ]
    rows = tshark(frames, wire.LINK_ETHERNET, FIELDS)
    for (word, message, *_), row in zip(made, rows, strict=True):
        state, text = _core.read_attribute(word, message)[:2]
        assert state == ("done" if row[word] else "other"), message
        assert unquote(text) == row[word], message
        assert not {"alice", "secret"} & set(text.replace("@", ":").split(":"))
