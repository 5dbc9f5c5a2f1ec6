# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""QUIC flows for the engine, and their outcome."""

from support import quic_wire as quic
from support.engine import Outcome, run
from support.packets import SERVER, START, Udp
from support.quic_wire import DCID, SCID, SERVER_ID, Initial

NAME = b"www.example.org"
OTHER_NAME = b"other.example.net"
HELLO = quic.hello(host=NAME)
FLIGHT = quic.first_flight(HELLO)
LONG_FLIGHT = quic.first_flight(quic.post_quantum(NAME))
ANSWER = quic.server_answer()
PORTS = (40000, 443)


def quic_talk(*datagrams: bytes, client: str = "10.7.0.1", t_ns: int = START) -> Udp:
    """The client's datagrams."""
    talk = Udp(client, ports=PORTS, t_ns=t_ns)
    for datagram in datagrams:
        talk.send(datagram)
    return talk


def seen_at_once(*datagrams: bytes, **settings: object) -> Outcome:
    """A one-sided capture of these datagrams, at z = 1."""
    return run(quic_talk(*datagrams).frames, z=1, established=False, **settings)


def status(outcome: Outcome) -> tuple[str | None, str]:
    """Source and status of the last flow."""
    flow = outcome.flows[-1]
    return flow["name_source"], flow["name_status"]


RETURNS = {
    "an Initial": Initial(quic.ACK, dcid=SERVER_ID, key_id=DCID, number=1).seal(),
    "a Handshake packet": quic.opaque(quic.HANDSHAKE, SERVER_ID, SCID),
    "a 1-RTT packet": quic.short(SERVER_ID),
    "a 1-RTT packet with a greased bit": quic.short(SERVER_ID, fixed=0),
    "coalesced": quic.opaque(quic.HANDSHAKE, SERVER_ID, SCID) + quic.short(SERVER_ID),
    "1-RTT behind another": quic.opaque(quic.HANDSHAKE, b"new id 1", SCID) + quic.short(SERVER_ID),
}


def proven(*returns: bytes, answer: bytes = ANSWER, flight: list[bytes] = FLIGHT) -> Udp:
    """The client's flight, an answer, and what the client sends then."""
    talk = quic_talk(*flight).send(answer, SERVER)
    for datagram in returns:
        talk.send(datagram)
    return talk
