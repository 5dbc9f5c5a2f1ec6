# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Conversations for the contract's model, packet by packet: TLS, HTTP and DNS."""

from dataclasses import dataclass, replace
from itertools import accumulate

from support import wire
from support.packets import (
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
)

from scenario.answers import DATA, FOUND, resolved, show
from scenario.requests import h2, hello_of, requests
from scenario.routes import NOTHING, Route

SERVER_ISN = 500_000


@dataclass(frozen=True, slots=True)
class Visit:
    """A conversation: its ends, its start, and how it goes. Pauses are in seconds.

    `secondary`: the common name in a certificate and how it is shown, the user agent in a hello of
    QUIC, or the address that DNS gives.
    """

    start_ns: int
    ends: tuple[str, str]
    kind: str  # "tls", "http", "h2", "dns", "dns over tcp" or "quic"
    hosts: tuple[bytes, ...]
    how: str = "whole"
    end: str = "fin"
    port: int = 443
    pauses: tuple[int, int] = (0, 0)
    route: Route = NOTHING
    secondary: tuple[str, str] = ("", "")
    skew: tuple[int, int] = (0, 0)  # by how many ns the tap shows the client and the server late


ASTRAY = ("lost", "strayed")
OVERTAKEN = ("overtaken", "body first")
FAR = 30_000  # more bytes than a stream is reassembled ahead
HOW = {
    "tls": (
        *("whole",) * 6,
        *("unanswered", "guessed", "late proof", "early data", "accepted data", "again"),
        *("in two", "turned round", "guessed early"),
        *("midstream", "nameless", "another syn", "ech", "ech"),
    ),
    "dns": (*("whole",) * 4, "unanswered", "another id", "another name", "asked again", "swapped"),
}
HOW["dns over tcp"] = HOW["tls"]
HOW["http"] = (
    *HOW["tls"],
    *("at once", "methods", "body", "body", "chunks", "chunks apart", "absolute", "upgrade"),
    *("overtaken", "overtaken", "body first"),
)
HOW["h2"] = (*("whole",) * 2, "at once", "body", "chunks", "unanswered", "guessed", "late proof")
HOW["tls"] += ("no name", "no name", "behind", "right behind", "through", *ASTRAY)
HOW["http"] += ASTRAY
HOW["dns"] += ("answered first", "answered first")
HOW["stray"] = ("answer", "ephemeral", "knock", "syn", "answered syn")
HOW["quic"] = (
    *("whole",) * 6,
    *("unanswered", "no return", "guessed", "another client", "0-RTT", "nameless", "again"),
    *("in two", "turned round", "coalesced", "half", "late half", "conflict"),
    *("retry", "bad tag", "bad tag first", "forged", "another", "likeness", "trusted"),
    *("another version", "echo", "ech", "echoed", "bad answer", "retry alone", "bad retry"),
    *("unanswered first", "answered first", "answered first", "returned first"),
)


def said_by(visit: Visit, number: int) -> list[bytes]:
    """The client's payloads over TCP."""
    match visit.kind:
        case "http":
            return requests(visit.hosts, visit.how)
        case "h2":
            return h2(visit.hosts, visit.how)
        case "dns over tcp":
            return [wire.vector(2, dns(asked(host))) for host in visit.hosts]
        case _:
            return hello_of(visit.hosts[0], visit.how, number)


def asked(host: bytes) -> bytes:
    """The host as a DNS question has it."""
    return host.partition(b":")[0].removesuffix(b".")


def tcp_visit(visit: Visit, n: int) -> list[Frame]:
    """A connection, in which the client sends a hello, or one request after the other."""
    talk = Tcp(*visit.ends, (20000 + n, visit.port), visit.start_ns)
    said = said_by(visit, n)
    guess = SERVER_ISN + 7 if visit.how in ("guessed", "late proof") else None
    match visit.how:
        case "unanswered":
            talk.segment(CLIENT, SYN)
        case "early data" | "accepted data":
            talk.segment(CLIENT, SYN, said.pop(0)).wait(visit.pauses[0] * SECOND)
            accepted = 1001 if visit.how == "early data" else None
            talk.segment(SERVER, SYN | ACK, ack=accepted).wait(SECOND).segment(CLIENT, ACK)
        case "guessed early":
            talk.segment(CLIENT, SYN)
            for ahead in range(1, 4):
                talk.segment(CLIENT, ACK, ack=SERVER_ISN + ahead % 3)
            talk.segment(SERVER, SYN | ACK)
            guess = SERVER_ISN + 7
        case "midstream":
            talk.next = [1001, SERVER_ISN + 1]
        case _:
            answered = 1002 if visit.how == "another syn" else None
            talk.segment(CLIENT, SYN).segment(SERVER, SYN | ACK, ack=answered)
            talk.segment(CLIENT, ACK, ack=guess)
    talk.wait(visit.pauses[0] * SECOND)
    if visit.how in OVERTAKEN:
        overtake(talk, said)
        answer(talk, visit, True)
        said = []
    for nth, data in enumerate(said if visit.how != "nameless" else [], 1):
        if visit.how in ASTRAY and nth == len(said):
            go_astray(talk, visit, near=nth > 1 and n % 2 == 0)
        send(talk, data, visit.how, guess)
        if visit.how != "unanswered":
            answer(talk, visit, nth == len(said))
    talk.wait(visit.pauses[1] * SECOND)
    if visit.how == "late proof":
        talk.segment(CLIENT, ACK)
    if visit.end == "fin":
        talk.segment(CLIENT, FIN | ACK, ack=guess).segment(SERVER, FIN | ACK)
        talk.segment(CLIENT, ACK, ack=guess)
    elif visit.end == "rst":
        talk.segment(SERVER, RST | ACK).segment(CLIENT, ACK, ack=guess)
    # the first packet says who the client of a flow without a SYN is
    return talk.frames if visit.how == "midstream" else skewed(talk.frames, 20000 + n, visit.skew)


def skewed(frames: list[Frame], port: int, late_ns: tuple[int, int]) -> list[Frame]:
    """The frames of a client's port as a tap has them that shows one direction late."""

    def shown(frame: Frame) -> Frame:
        at = 34 if frame.data[14] >> 4 == 4 else 54
        sender = SERVER if frame.data[at : at + 2] != port.to_bytes(2, "big") else CLIENT
        return replace(frame, t_ns=frame.t_ns + late_ns[sender])

    return sorted(map(shown, frames), key=lambda frame: frame.t_ns)


def go_astray(talk: Tcp, visit: Visit, *, near: bool) -> None:
    """Loses the client's next bytes, or adds forged ones."""
    if visit.how == "lost":
        talk.next[CLIENT] += FAR
        return
    ahead = 5_000 if near else FAR
    other = replace(visit, hosts=(b"b.example",), how="whole")
    seq, ack = talk.next[CLIENT] + ahead, talk.next[SERVER] + (2 << 20)
    talk.segment(CLIENT, PSH | ACK, said_by(other, 0)[0], seq=seq, ack=ack)


def overtake(talk: Tcp, said: list[bytes]) -> None:
    """Sends the client's payloads, every other one behind its successor."""
    ends = list(accumulate(map(len, said), initial=talk.next[CLIENT]))
    placed = list(zip(ends, said, strict=False))
    for at in range(0, len(placed), 2):
        for seq, data in reversed(placed[at : at + 2]):
            talk.segment(CLIENT, PSH | ACK, data, seq=seq)
    talk.next[CLIENT] = ends[-1]


def answer(talk: Tcp, visit: Visit, last: bool) -> None:
    """The server's answer, the last one with its certificate."""
    if visit.kind == "tls" and visit.secondary[0] and last:
        show(talk, *visit.secondary)
    talk.segment(SERVER, ACK, FOUND if visit.kind == "http" else DATA)


def send(talk: Tcp, data: bytes, how: str, guess: int | None) -> None:
    """Sends the client's data: at once, twice, in two segments, or with the second one first."""
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
    if visit.how == "answered first":
        for ident, said in enumerate(visit.hosts):
            talk.send(dns(asked(said), ident=ident, response=True), SERVER)
        talk.wait(visit.pauses[1] * SECOND)
    answers = []
    for ident, said in enumerate(visit.hosts):
        host = asked(said)
        talk.send(dns(host, ident=ident))
        if visit.how == "asked again":
            talk.send(dns(host, ident=ident + 50, kind=28))
        answered = host if visit.how != "another name" else b"x." + host
        ident += visit.how == "another id"
        given = [resolved(visit.secondary[0])] if visit.secondary[0] else []
        answers.append(dns(answered, ident=ident, response=True, answers=given))
    talk.wait(min(visit.pauses[0], 9) * SECOND)
    for answer in answers[:: -1 if visit.how == "swapped" else 1]:
        if visit.how not in ("unanswered", "answered first"):
            talk.send(answer, SERVER).wait(visit.pauses[1] * SECOND)
    return skewed(talk.frames, 20000 + number, visit.skew)


def stray_visit(visit: Visit, number: int) -> list[Frame]:
    """A packet from the server's address that belongs to no conversation."""
    near = 443 if visit.how == "knock" else 20000 + number
    far = 123 if visit.how == "answer" else 41000
    if visit.how not in ("syn", "answered syn"):
        return Udp(*visit.ends, (near, far), visit.start_ns).send(bytes(48), SERVER).frames
    talk = Tcp(*visit.ends, (near, far), visit.start_ns).segment(SERVER, SYN)
    if visit.how == "answered syn":
        talk.segment(CLIENT, RST | ACK)
    return talk.frames
