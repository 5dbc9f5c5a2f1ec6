# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Servers' messages in conversations for the contract's model: certificates and addresses."""

import ipaddress
import struct
from functools import lru_cache
from itertools import pairwise

from support import wire
from support.handshake import message, named, server_hello
from support.packets import ACK, PSH, SERVER, Tcp

DATA = b"\x17\x03\x03\0\x04data"
FOUND = b"HTTP/1.1 200 OK\r\nServer: a.example\r\n\r\n"
DONE = b"\x0e\0\0\0"
TLS_1_3 = wire.extension(wire.SUPPORTED_VERSIONS, b"\3\4")

# Common names of certificates; some are no hosts' names.
CERTIFICATES = (*("*.a.example",) * 3, *("a.example",) * 2, "*.A.Example.", "www.c.example")
CERTIFICATES += ("*.c.example", "An issuer of example", "192.0.2.9", "printer.local", "example")
FLIGHTS = (
    *("whole",) * 6,
    *("in two", "turned round", "half", "1.0", "1.3", "another hello", "twice", "no hello"),
)


@lru_cache(maxsize=1 << 6)
def certificate(common_name: str) -> bytes:
    """A certificate as a handshake message, which is made and signed once."""
    return message(named(common_name))


def flight(common_name: str, how: str) -> bytes:
    """A server's hello, and its certificate in clear."""
    hello = server_hello(version=0x0301 if how == "1.0" else 0x0303)
    if how == "1.3":
        hello = server_hello(TLS_1_3)
    said = certificate(common_name) + DONE
    if how == "another hello":
        return wire.record(hello) + wire.record(hello + said)
    if how == "no hello":
        return wire.record(said)
    return wire.record(hello + said) if how == "twice" else wire.record(hello) + wire.record(said)


def show(talk: Tcp, common_name: str, how: str) -> None:
    """Sends the flight in segments as `how` says."""
    said, start = flight(common_name, how), talk.next[SERVER]
    third = len(said) // 3
    places = {
        "in two": (0, third, len(said)),
        "turned round": (0, third, 2 * third, len(said)),
        "half": (0, 2 * third),
    }.get(how, (0, len(said)))
    pieces = list(pairwise(places))
    if how == "turned round":
        pieces[1:] = pieces[:0:-1]
    for begin, end in pieces * (1 + (how == "twice")):
        talk.segment(SERVER, PSH | ACK, said[begin:end], seq=start + begin)
    talk.next[SERVER] = start + places[-1]


def resolved(address: str) -> bytes:
    """A DNS answer with this address (RFC 1035, 4.1.3; RFC 3596)."""
    packed = ipaddress.ip_address(address).packed
    kind = 1 if len(packed) == 4 else 28
    return b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 60, len(packed)) + packed
