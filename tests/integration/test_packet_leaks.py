# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What packets of a flow that passes must not show: what nobody asked z users about."""

import struct
from ipaddress import ip_address

import pytest
from scenario.quic import quic_visit
from scenario.visits import Visit
from support import wire
from support.packet_run import emitted
from support.packets import (
    CLIENT,
    MS,
    SECOND,
    SERVER,
    SERVER_ADDRESS,
    START,
    Frame,
    Tcp,
    Udp,
    dns,
    merged,
    request,
    tcp_segment,
    user,
    visit,
)

SHARED, RARE = b"a.example", b"secret.example"
LATER = START + 5 * SECOND
KEEP_ENCRYPTED = 2
UNRELATED = {
    "answer": (dns(RARE, ident=9, response=True), SERVER),
    "client's answer": (dns(RARE, ident=9, response=True), CLIENT),
    "server's question": (dns(RARE, ident=9), SERVER),
}


def over_tcp(message: bytes) -> bytes:
    return len(message).to_bytes(2, "big") + message


def asked(client: int, t_ns: int, *, tcp: bool) -> Tcp | Udp:
    """A flow that asks for the shared name, and is answered."""
    if not tcp:
        return Udp(user(client), t_ns=t_ns).lookup(SHARED)
    talk = Tcp(user(client), ports=(40000, 53), t_ns=t_ns).handshake()
    return talk.say(over_tcp(dns(SHARED))).say(over_tcp(dns(SHARED, response=True)), SERVER)


def is_shown(name: bytes, frames: list[Frame]) -> bool:
    labels = wire.dns_name(*name.split(b"."))
    return any(labels in frame.data or name in frame.data for frame in frames)


@pytest.mark.parametrize("tcp", [False, True])
@pytest.mark.parametrize("kind", UNRELATED)
def test_messages_of_dns_about_another_name(kind: str, tcp: bool) -> None:
    message, side = UNRELATED[kind]
    before = [asked(100 + n, START + 50 * n * MS, tcp=tcp).frames for n in range(3)]
    talk = asked(1, LATER, tcp=tcp)
    if isinstance(talk, Udp):
        talk.send(message, side)
    else:
        talk.say(over_tcp(message), side)
    frames = merged([*before, talk.frames])
    left = emitted(frames).frames
    assert is_shown(SHARED, [frame for frame in left if frame.t_ns >= LATER])
    assert not is_shown(RARE, left)


def quoted(talk: Tcp, sender: str, receiver: str, t_ns: int) -> Frame:
    """An ICMP error about the first segment of the talk's client."""
    segment = tcp_segment(talk.ports, 2, 1000)
    quote = wire.ipv4(segment, wire.TCP, addresses=(talk.client, talk.server))
    error = wire.ipv4(b"\3\1" + bytes(6) + quote, 1, addresses=(sender, receiver))
    data = wire.ethernet(error)
    return Frame(t_ns, data, len(data))


@pytest.mark.parametrize("case", ["open", "closed", "of another"])
def test_errors_quote_open_flows_of_their_receiver(case: str) -> None:
    """A closed flow may be freed, and another one have its place, before the error leaves; and who
    reads of an error about a withheld flow knows of it."""
    before = [visit(user(100 + n), SHARED, START + 20 * n * MS) for n in range(3)]
    talk = Tcp(user(1), t_ns=LATER).handshake().say(wire.record(wire.client_hello()))
    if case == "closed":
        talk.close()
    receiver = user(2) if case == "of another" else talk.client
    error = quoted(talk, "192.0.2.9", receiver, talk.t_ns + MS)
    others = [Tcp(user(300 + n), t_ns=error.t_ns + 9 * n * MS).handshake() for n in range(200)]
    frames = merged([*before, talk.frames, [error], *(other.frames for other in others)])
    left = emitted(frames, batch=1, max_flows=64, z=1 if case == "open" else 2).frames
    built = [frame.data for frame in left if frame.data[23] == 1]
    assert len(built) == (case == "open")
    assert all(any(data[42:62]) for data in built)


@pytest.mark.parametrize("first", [b"\0\1", b"\x16\xfe", b"\x80\xc8"])
def test_datagrams_that_are_not_quic_are_zeros(first: bytes) -> None:
    """STUN holds the address of who asks."""
    address = ip_address(SERVER_ADDRESS).packed * 4
    frames = quic_visit(Visit(START, (user(1), SERVER_ADDRESS), "quic", (SHARED,)), 1)
    ports = struct.unpack_from(">HH", frames[0].data, 34)
    talk = Udp(user(1), SERVER_ADDRESS, ports, t_ns=frames[-1].t_ns + MS).send(first + address)
    left = emitted(merged([frames, talk.frames]), z=1, payload=KEEP_ENCRYPTED).frames
    assert left[-1].t_ns == talk.frames[0].t_ns
    assert address not in left[-1].data[42:]


def test_a_long_connection_shows_so_many_messages_and_no_more() -> None:
    """Each packet looks through what its side shows: that must not grow with the connection."""
    talk = Tcp(user(1), ports=(40000, 80), t_ns=LATER).handshake()
    for _ in range(200):
        talk.say(request(SHARED)).say(b"HTTP/1.1 204 No Content\r\n\r\n", SERVER)
    out = emitted(talk.frames, z=1)
    said = [frame.data for frame in out.frames if b"HTTP/1.1" in frame.data]
    assert len(out.frames) == len(talk.frames)
    assert len(said) + out.stats["packets_messages_full"] == 400
    assert 128 <= len(said) < 400
