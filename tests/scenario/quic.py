# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Conversations over QUIC for the contract's model, regular and irregular."""

import hashlib
from dataclasses import dataclass, replace

from support import quic_wire as quic
from support.handshake import telling
from support.packets import SECOND, SERVER, Frame, Udp
from support.quic_wire import V1, V2, Initial, crypto

from scenario.requests import HIDDEN, padding
from scenario.visits import Visit, skewed

OTHER = b"b.example"  # the host that a forger names
AGENTS = ("", "", *("Chrome/115 X",) * 3, *("Chrome/116 X",) * 2)
AGENTS += ("Fox~9_a-b/100%", "Fox\t9", "F" * 99, "F" + "%" * 84, "F" + "%" * 85)


@dataclass(frozen=True, slots=True)
class Ends:
    """A connection's version and IDs; the client's keys come from key_id."""

    version: int
    key_id: bytes
    client: bytes
    server: bytes
    retry: bytes
    token: bytes = b""

    def initial(self, frames: bytes, number: int = 0, dcid: bytes = b"", size: int = 0) -> bytes:
        """An Initial of the client."""
        sealed = Initial(frames, self.version, dcid or self.key_id, self.client, self.token, number)
        return replace(sealed, key_id=self.key_id, size=size).seal()


def ends_of(which: bytes, how: str) -> Ends:
    """Made-up IDs; the server's can be guessed from the client's if `how` is "likeness"."""
    made = hashlib.sha256(which).digest()
    key_id, server = made[:8], made[13:21]
    if how in ("likeness", "trusted"):
        server = bytes([key_id[0] ^ 1]) + key_id[1:]
    return Ends((V1, V2)[made[31] % 2], key_id, made[8:13], server, made[21:30])


def hello_of(host: bytes, how: str, agent: str) -> bytes:
    """A ClientHello, with a user agent unless that is empty."""
    named = None if how == "nameless" else host
    more = [telling(agent.encode("latin-1"))] if agent else []
    return quic.hello(*HIDDEN[how == "ech"], *more, padding(named), host=named)


def flight(ends: Ends, host: bytes, how: str, agent: str) -> list[bytes]:
    """The client's first datagrams."""
    message = hello_of(host, how, agent)
    half = len(message) // 2
    whole = ends.initial(crypto(message))
    first, second = (
        ends.initial(crypto(message[begin:end], begin), number)
        for number, (begin, end) in enumerate([(0, half), (half, len(message))])
    )
    match how:
        case "in two":
            return [first, second]
        case "turned round":
            return [second, first]
        case "coalesced":
            return [first + second]
        case "half" | "late half":
            return [first]
        case "conflict":
            return [first, ends.initial(crypto(b"\x55" * half, half // 2), 1), second]
        case "again":
            return [whole, whole]
        case "bad tag":
            return [broken(whole)]
        case "bad tag first":
            return [broken(whole), whole]
        case "forged":
            lie = Initial(crypto(quic.hello(host=OTHER)), ends.version, ends.key_id, ends.client)
            return [first, replace(lie, key_id=b"guessed").seal(), second]
        case "another version":
            other = replace(ends, version=V1 + V2 - ends.version)
            return [first, other.initial(crypto(message[half:], half), 1)]
        case "likeness" | "trusted":  # padded as clients do it: answers may be three times as long
            return [ends.initial(crypto(message), size=quic.DATAGRAM_BYTES)]
        case _:
            return [whole]


def broken(packet: bytes) -> bytes:
    """The packet with another last bit, so that it does not authenticate."""
    return packet[:-1] + bytes([packet[-1] ^ 1])


def back(ends: Ends, dcid: bytes, number: int) -> bytes:
    """A client's packet to the server's ID."""
    match number % 4:
        case 0:
            return ends.initial(quic.ACK, 2, dcid)
        case 1:
            return quic.opaque(quic.HANDSHAKE, dcid, ends.client, version=ends.version)
        case 2:
            handshake = quic.opaque(quic.HANDSHAKE, dcid, ends.client, version=ends.version)
            return handshake + quic.short(dcid)
        case _:
            return quic.short(dcid)


def converse(talk: Udp, visit: Visit, named: tuple[bytes, str], ends: Ends, number: int) -> None:
    """A connection, from the client's hello with a host and a user agent to its packet to the
    server's ID."""
    host, agent = named
    answer = quic.server_answer(ends.client, ends.server, ends.version, ends.key_id)
    if visit.how == "answered first":
        talk.send(answer, SERVER).wait(visit.pauses[0] * SECOND)
    for datagram in flight(ends, host, visit.how, agent):
        talk.send(datagram)
    if visit.how == "returned first":
        talk.send(back(ends, ends.server, number)).wait(visit.pauses[0] * SECOND)
        talk.send(answer, SERVER)
        return
    if visit.how in ("retry", "retry alone", "bad retry"):
        asked = quic.retry(ends.client, ends.retry, b"token", ends.version, ends.key_id)
        talk.send(broken(asked) if visit.how == "bad retry" else asked, SERVER)
        ends = replace(ends, key_id=ends.retry, token=b"token")
        talk.send(flight(ends, host, "whole", agent)[0])
    if visit.how in ("unanswered", "retry alone", "bad retry"):
        return
    if visit.how == "answered first":
        talk.send(back(ends, ends.server, number))
        return
    talk.wait(visit.pauses[0] * SECOND)
    to = ends.client if visit.how != "another client" else b"other"
    answer = quic.server_answer(to, ends.server, ends.version, ends.key_id)
    if visit.how == "echo":  # a server's hello names nobody
        answer = replace(Initial(crypto(quic.hello(host=OTHER)), ends.version), scid=ends.server)
        answer = replace(answer, dcid=ends.client, key_id=ends.key_id).seal()
    if visit.how == "bad answer":
        lie = Initial(quic.ACK, ends.version, ends.client, ends.server, key_id=ends.key_id)
        answer = broken(replace(lie, server=True).seal())
    if visit.how == "echoed":  # the server sends back each datagram
        talk.send(answer)
    talk.send(answer, SERVER).wait(visit.pauses[1] * SECOND)
    if visit.how == "no return":
        return
    if visit.how == "0-RTT":
        talk.send(quic.opaque(quic.ZERO_RTT, ends.server, ends.client, version=ends.version))
        return
    if visit.how == "late half":
        message = hello_of(host, visit.how, agent)
        half = len(message) // 2
        talk.send(ends.initial(crypto(message[half:], half), 1, ends.server))
        return
    talk.send(back(ends, ends.server if visit.how != "guessed" else b"guessed!", number))
    if visit.how == "trusted":
        talk.wait(SECOND).send(bytes(6000), SERVER)


def quic_visit(visit: Visit, number: int) -> list[Frame]:
    """A connection, or several between the same ports."""
    talk = Udp(*visit.ends, (20000 + number, visit.port), visit.start_ns)
    hosts = {"another": visit.hosts, "unanswered first": visit.hosts[:1] * 2}
    for nth, host in enumerate(hosts.get(visit.how, visit.hosts[:1])):
        named = (host, visit.secondary[nth % 2])
        how = "unanswered" if (visit.how, nth) == ("unanswered first", 0) else visit.how
        ends = ends_of(b"%d %d" % (number, nth), how)
        converse(talk, replace(visit, how=how), named, ends, number)
    return skewed(talk.frames, 20000 + number, visit.skew)
