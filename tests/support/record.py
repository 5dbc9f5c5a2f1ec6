# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""One flow with something in every column, and its record."""

from typing import Any

from support import wire
from support.engine import (
    TCP_COMPLETE,
    Outcome,
    run,
)
from support.packets import (
    ACK,
    CLIENT,
    FIN,
    MINUTE,
    PSH,
    RST,
    SECOND,
    SERVER,
    START,
    SYN,
    Frame,
    Tcp,
    crowd,
    hello,
    request,
    user,
)

NAME = b"www.example.org"
LATER = START + 10 * MINUTE + 7 * SECOND + 123_456_789  # when the flow under test begins
FLOW_SECONDS = 71
SECRET = b"rare-name.example.org"
PORTS = (41234, 8443)  # an uncommon server port, which nearly names the site
LENGTHS = (700, 3000)  # of the data that client and server send
WITHHELD = ("suppressed", "unconfirmed", "invalid")
STATUSES = ("released", "none", *WITHHELD)
PROTOCOLS = ("tls", "http")


def opening(host: bytes | None, protocol: str) -> bytes:
    """The first bytes of a client; the hello offers ECH, the request is a POST
    whose body follows."""
    if protocol == "http":
        head = request(host, b"POST").removesuffix(b"\r\n")
        return head + b"Content-Length: %d\r\n\r\n" % LENGTHS[0]
    return hello(host, wire.extension(wire.ECH, bytes(40)))


def reply(protocol: str) -> bytes:
    """The first bytes of a server."""
    head = b"HTTP/1.1 200 OK\r\n\r\n" if protocol == "http" else b"\x16\3\3\x0b\xb3\2"
    return head.ljust(LENGTHS[1], b"\0")


def flow_under_test(host: bytes | None, protocol: str, *, proven: bool = True) -> Tcp:
    """A flow with something in every column; unless `proven`, without evidence."""
    talk = Tcp(user(77), ports=PORTS, t_ns=LATER).segment(CLIENT, SYN).segment(SERVER, SYN | ACK)
    guess = None if proven else 12345
    talk.segment(CLIENT, ACK, ack=guess)
    talk.segment(CLIENT, PSH | ACK, opening(host, protocol), ack=guess)
    talk.segment(SERVER, PSH | ACK, reply(protocol)).wait(5 * SECOND)
    talk.segment(CLIENT, PSH | ACK, bytes(LENGTHS[0]), ack=guess)
    talk.segment(CLIENT, PSH | ACK, bytes(LENGTHS[0]), seq=talk.next[CLIENT] - LENGTHS[0], ack=9)
    talk.segment(SERVER, ACK).wait(FLOW_SECONDS * SECOND)
    return talk.segment(CLIENT, FIN | ACK, ack=guess).segment(SERVER, RST | ACK)


def popular_server() -> list[Frame]:
    """Enough visitors of NAME to make it and the server's address public."""
    return crowd(NAME, 3, LATER - MINUTE)


def outcome_with(status: str, protocol: str, **options: Any) -> Outcome:
    """A run whose last record has this status; the server's address is public."""
    host = {"released": NAME, "none": None, "invalid": b"two words.example"}.get(status, SECRET)
    talk = flow_under_test(host, protocol, proven=status != "unconfirmed")
    return run([*popular_server(), *talk.frames], **({"z": 2} | options))


def record(outcome: Outcome) -> dict[str, Any]:
    return dict(outcome.flows[-1])


def tstat_line(outcome: Outcome) -> dict[str, str]:
    return outcome.log(TCP_COMPLETE)[-1]
