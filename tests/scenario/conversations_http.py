# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Conversations of HTTP over TCP, named after the case that each tries."""

from collections.abc import Callable, Iterable

from scapy.packet import Packet

from scenario.conversation import Builder, Ends, placed, shows, split


def request(host: bytes, line: bytes = b"GET / HTTP/1.1", field: bytes = b"Host: ") -> bytes:
    return line + b"\r\n" + field + host + b"\r\nAccept: */*\r\n\r\n"


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def http(
    name: str, *names: tuple[str, str], nameless: bool = False
) -> Callable[[Builder], Builder]:
    """A case on port 80."""

    def register(builder: Builder) -> Builder:
        def on_80(e: Ends) -> Iterable[Packet]:
            e.server_port = 80
            return builder(e)

        shows(name, *names, nameless=nameless)(on_80)
        return builder

    return register


@http("http-get")
def _(e: Ends) -> list[Packet]:
    return e.talk(request(e.host))


@http("http-two-segments")
def _(e: Ends) -> list[Packet]:
    return e.talk(*split(request(e.host), 25))


@http("http-cut-in-the-method")
def _(e: Ends) -> list[Packet]:
    return e.talk(*split(request(e.host), 2))


@http("http-cut-in-the-end")
def _(e: Ends) -> list[Packet]:
    head = request(e.host)
    return e.talk(*split(head, len(head) - 1))


@http("http-segments-reversed")
def _(e: Ends) -> list[Packet]:
    return e.at(*reversed(placed(request(e.host), 30)))


@http("http-retransmitted")
def _(e: Ends) -> list[Packet]:
    head = request(e.host)
    return e.at((0, head), (0, head))


@http("http-lower-case-field")
def _(e: Ends) -> list[Packet]:
    return e.talk(request(e.host, field=b"host: "))


@http("http-no-space")
def _(e: Ends) -> list[Packet]:
    return e.talk(request(e.host, field=b"Host:"))


@http("http-blanks-around")
def _(e: Ends) -> list[Packet]:
    return e.talk(request(e.host + b" \t", field=b"Host: \t "))


@http("http-with-a-port")
def _(e: Ends) -> list[Packet]:
    return e.talk(request(e.host + b":80"))


@http("http-trailing-dot")
def _(e: Ends) -> list[Packet]:
    return e.talk(request(e.host + b"."))


@http("http-post-with-body")
def _(e: Ends) -> list[Packet]:
    line = b"POST /x HTTP/1.1\r\nContent-Length: 30"
    return e.talk(request(e.host, line), b"Host: not.example.net\r\n\r\nxxxxx")


@http("http-two-requests")
def _(e: Ends) -> list[Packet]:
    first, second = (request(e.host, line) for line in (b"GET /1 HTTP/1.1", b"GET /2 HTTP/1.1"))
    packets = [*e.handshake(), e.tcp("PA", first), e.tcp("PA", ANSWER, side=1)]
    return [*packets, e.tcp("PA", second), e.tcp("PA", ANSWER, side=1), *e.close()]


@http("http-two-hosts", ("http", "one.example.org"), ("http", "two.example.org"))
def _(e: Ends) -> list[Packet]:
    packets = [*e.handshake(), e.tcp("PA", request(b"one.example.org"))]
    packets += [e.tcp("PA", ANSWER, side=1), e.tcp("PA", request(b"two.example.org"))]
    return [*packets, e.tcp("PA", ANSWER, side=1), *e.close()]


@http("http-pipelined", ("http", "one.example.org"), ("http", "two.example.org"))
def _(e: Ends) -> list[Packet]:
    return e.talk(request(b"one.example.org") + request(b"two.example.org"))


@http("http-absolute-form")
def _(e: Ends) -> list[Packet]:
    return e.talk(request(e.host, b"GET http://" + e.host + b"/x HTTP/1.1"))


@http("http-connect")
def _(e: Ends) -> list[Packet]:
    return e.talk(request(e.host + b":443", b"CONNECT " + e.host + b":443 HTTP/1.1"))


@http("http-1.0-with-host")
def _(e: Ends) -> list[Packet]:
    return e.talk(request(e.host, b"GET / HTTP/1.0"))


@http("http-line-feeds")
def _(e: Ends) -> list[Packet]:
    return e.talk(request(e.host).replace(b"\r", b""))


@http("http-long-head")
def _(e: Ends) -> list[Packet]:
    head = request(e.host, b"GET / HTTP/1.1\r\nCookie: " + b"x" * 4000)
    return e.talk(*split(head, *range(1400, len(head), 1400)))


@shows("http-port-8000")
def _(e: Ends) -> list[Packet]:
    e.server_port = 8000
    return e.talk(request(e.host))


@shows("http-port-unassigned")
def _(e: Ends) -> list[Packet]:
    e.server_port = 31380
    return e.talk(request(e.host))


@http("http-ipv6")
def _(e: Ends) -> list[Packet]:
    e.v6 = True
    return e.talk(request(e.host))


@http("http-no-host", nameless=True)
def _(e: Ends) -> list[Packet]:
    return e.talk(b"GET / HTTP/1.0\r\nAccept: */*\r\n\r\n")


@http("http-answer-only", nameless=True)
def _(e: Ends) -> list[Packet]:
    return [*e.handshake(), e.tcp("PA", ANSWER, side=1), *e.close()]
