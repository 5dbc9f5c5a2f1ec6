# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Conversations for the model of the contract, packet by packet: TLS, HTTP and DNS."""

from dataclasses import dataclass

import wire
from packet_help import (
    ACK,
    CLIENT,
    FIN,
    PSH,
    RST,
    SECOND,
    SERVER,
    SYN,
    Frame,
    Tcp,
    Udp,
    dns,
    hello,
    request,
)
from scenario_routes import NOTHING, Route

HIDDEN = ((), (wire.extension(wire.ECH, bytes(40)),))  # Encrypted Client Hello, offered or not
DATA = b"\x17\x03\x03\0\x04data"
SERVER_ISN = 500_000


@dataclass(frozen=True, slots=True)
class Visit:
    """A conversation: who with whom, from when on, and how it goes. Pauses are in seconds."""

    start_ns: int
    ends: tuple[str, str]
    kind: str  # "tls", "http", "dns", "dns over tcp" or "quic"
    hosts: tuple[bytes, ...]
    how: str = "whole"
    end: str = "fin"
    port: int = 443
    pauses: tuple[int, int] = (0, 0)
    route: Route = NOTHING


HOW = {
    "tls": (
        *("whole",) * 6,
        *("unanswered", "guessed", "late proof", "early data", "again", "in two", "turned round"),
        *("midstream", "nameless", "another syn", "ech", "ech"),
    ),
    "dns": (*("whole",) * 4, "unanswered", "another id", "another name", "asked again", "swapped"),
}
HOW["http"] = HOW["dns over tcp"] = HOW["tls"]
HOW["quic"] = (
    *("whole",) * 6,
    *("unanswered", "no return", "guessed", "another client", "0-RTT", "nameless", "again"),
    *("in two", "turned round", "coalesced", "half", "late half", "conflict"),
    *("retry", "bad tag", "bad tag first", "forged", "another", "likeness", "trusted"),
    *("another version", "echo", "ech"),
)


def said_by(visit: Visit) -> list[bytes]:
    """What the client says over TCP."""
    if visit.kind == "http":
        return [request(host) for host in visit.hosts]
    if visit.kind == "dns over tcp":
        return [wire.vector(2, dns(asked(host))) for host in visit.hosts]
    return [hello(visit.hosts[0], *HIDDEN[visit.how == "ech"])]


def asked(host: bytes) -> bytes:
    """The host as a question has it."""
    return host.partition(b":")[0].removesuffix(b".")


def tcp_visit(visit: Visit, n: int) -> list[Frame]:
    """A connection; what the client says is a hello, or one request after the other."""
    talk = Tcp(*visit.ends, (20000 + n, visit.port), visit.start_ns)
    said = said_by(visit)
    guess = SERVER_ISN + 7 if visit.how in ("guessed", "late proof") else None
    match visit.how:
        case "unanswered":
            talk.segment(CLIENT, SYN)
        case "early data":
            talk.segment(CLIENT, SYN, said.pop(0)).wait(visit.pauses[0] * SECOND)
            talk.segment(SERVER, SYN | ACK, ack=1001).wait(SECOND).segment(CLIENT, ACK)
        case "midstream":
            talk.next = [1001, SERVER_ISN + 1]
        case _:
            answered = 1002 if visit.how == "another syn" else None
            talk.segment(CLIENT, SYN).segment(SERVER, SYN | ACK, ack=answered)
            talk.segment(CLIENT, ACK, ack=guess)
    talk.wait(visit.pauses[0] * SECOND)
    for data in said if visit.how != "nameless" else []:
        send(talk, data, visit.how, guess)
        if visit.how != "unanswered":
            talk.segment(SERVER, ACK, DATA)
    talk.wait(visit.pauses[1] * SECOND)
    if visit.how == "late proof":
        talk.segment(CLIENT, ACK)
    if visit.end == "fin":
        talk.segment(CLIENT, FIN | ACK, ack=guess).segment(SERVER, FIN | ACK)
        talk.segment(CLIENT, ACK, ack=guess)
    elif visit.end == "rst":
        talk.segment(SERVER, RST | ACK).segment(CLIENT, ACK, ack=guess)
    return talk.frames


def send(talk: Tcp, data: bytes, how: str, guess: int | None) -> None:
    """What the client says: at once, twice, in two segments, or with the second one first."""
    start, half = talk.next[CLIENT], len(data) // 2
    pieces = [(0, len(data))]
    if how == "again":
        pieces *= 2
    elif how in ("in two", "turned round"):
        pieces = [(0, half), (half, len(data))][:: 1 if how == "in two" else -1]
    for begin, end in pieces:
        talk.segment(CLIENT, PSH | ACK, data[begin:end], seq=start + begin, ack=guess)
    talk.next[CLIENT] = start + len(data)


def dns_visit(visit: Visit, number: int) -> list[Frame]:
    """A socket with a question for each name."""
    talk = Udp(*visit.ends, (20000 + number, 53), visit.start_ns)
    answers = []
    for ident, said in enumerate(visit.hosts):
        host = asked(said)
        talk.send(dns(host, ident=ident))
        if visit.how == "asked again":
            talk.send(dns(host, ident=ident + 50, kind=28))
        answered = host if visit.how != "another name" else b"x." + host
        answers.append(dns(answered, ident=ident + (visit.how == "another id"), response=True))
    talk.wait(min(visit.pauses[0], 9) * SECOND)
    for answer in answers[:: -1 if visit.how == "swapped" else 1]:
        if visit.how != "unanswered":
            talk.send(answer, SERVER).wait(visit.pauses[1] * SECOND)
    return talk.frames
