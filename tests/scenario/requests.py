# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Clients' bytes over TCP in conversations for the contract's model."""

from support import wire
from support.h2 import DATA, PREFACE, SETTINGS, Client, frame
from support.packets import hello, request
from support.proxy_starttls_prefix import PREFIXES

HIDDEN = ((), (wire.extension(wire.ECH, bytes(40)),))  # Encrypted Client Hello, offered or not
HOST_MAX = 40
METHODS = (b"BITS_POST", b"M-SEARCH", b"get")  # that IANA does not list
BODY = request(b"body.example")
BEFORE = ("PROXY TCP4", "PROXY 2", "SOCKS 5 greeting", "SOCKS 5 name", "PostgreSQL", "RDP")
BEFORE += ("SMTP, pipelined", "LDAP", "MySQL", "XMPP")
SIZE, ENDING = b"%x\r\n" % len(BODY), b"\r\n3;more\r\nabc\r\n0\r\n\r\n"
CHUNKS = SIZE + BODY + ENDING
SWITCHING = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


def web_socket(said: bytes) -> bytes:
    """A client's frame of fewer than 126 bytes (RFC 6455, 5.2), under a mask of zeroes."""
    return bytes([0x81, 0x80 | len(said), 0, 0, 0, 0]) + said


def padding(host: bytes | None) -> bytes:
    """The padding extension that makes hellos to all hosts as long (RFC 7685)."""
    return wire.extension(21, bytes(HOST_MAX - len(host or b"")))


def hello_of(host: bytes, how: str, number: int) -> list[bytes]:
    """A ClientHello, with a prefix such as PROXY or STARTTLS if `how` says so."""
    named = None if how == "no name" else host
    said = hello(named, *HIDDEN[how == "ech"], padding(named))
    before = PREFIXES[BEFORE[number % len(BEFORE)]]
    match how:
        case "behind":
            return [before, said]
        case "right behind":
            return [before + said]
        case "through":
            return [b"CONNECT " + word(host) + b" HTTP/1.1\r\nHost: proxy.example\r\n\r\n", said]
        case _:
            return [said]


def word(host: bytes) -> bytes:
    """The host in a place where a blank is not allowed."""
    return host.replace(b" ", b"+")


def requests(hosts: tuple[bytes, ...], how: str) -> list[bytes]:
    """Requests to one host after the other, as segments."""
    match how:
        case "at once":
            return [b"".join(map(request, hosts))]
        case "methods":
            return [request(host, METHODS[n % len(METHODS)]) for n, host in enumerate(hosts)]
        case "body":
            heads = [request(host, b"POST").removesuffix(b"\r\n") for host in hosts]
            return [b"%bContent-Length: %d\r\n\r\n%b" % (h, len(BODY), BODY) for h in heads]
        case "chunks":
            heads = [request(host, b"PUT").removesuffix(b"\r\n") for host in hosts]
            return [head + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS for head in heads]
        case "chunks apart":
            heads = [request(host, b"PUT").removesuffix(b"\r\n") for host in hosts]
            starts = [head + b"Transfer-Encoding: chunked\r\n\r\n" + SIZE for head in heads]
            rest = [BODY + b"\r\n" + SIZE, BODY + ENDING]
            return [part for start in starts for part in (start, *rest)]
        case "body first":
            heads = [request(host, b"POST").removesuffix(b"\r\n") for host in hosts]
            rest = b"Content-Length: %d\r\n\r\n" % len(BODY)
            return [part for head in heads for part in (head + rest, BODY)]
        case "upgrade":
            asked = [request(host).removesuffix(b"\r\n") + SWITCHING for host in hosts]
            return [*asked, web_socket(BODY) + web_socket(b"more"), web_socket(BODY)]
        case "absolute":
            lines = [b"GET http://" + word(host) + b"/x HTTP/1.1\r\n" for host in hosts]
            return [line + b"Host: other.example\r\n\r\n" for line in lines]
        case _:
            return [request(host) for host in hosts]


def h2(hosts: tuple[bytes, ...], how: str) -> list[bytes]:
    """HTTP/2 in clear: the preface, and a request to each host."""
    client = Client()
    said = [client.request(host, cuts=(5,) if how == "chunks" else ()) for host in hosts]
    if how == "body":
        said = [one + frame(DATA, BODY, stream=client.stream) for one in said]
    said[0] = PREFACE + frame(SETTINGS) + said[0]
    return [b"".join(said)] if how == "at once" else said
