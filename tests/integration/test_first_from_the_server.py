# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Flows of which the capture shows the server's packet first, and stray packets of servers."""

import struct
from collections.abc import Callable

import pytest
from support import quic_wire as quic
from support import wire
from support.engine import Outcome, nets, run
from support.examples import each
from support.packet_run import emitted
from support.packets import (
    ACK,
    CLIENT,
    MINUTE,
    RST,
    SECOND,
    SERVER,
    SERVER_ADDRESS,
    START,
    SYN,
    Frame,
    Tcp,
    Udp,
    crowd,
    dns,
    merged,
    user,
)

NAME = wire.HOST
USER_PORT = 50_000
HIDDEN_HOST = "10.7.0.99"
LATER = START + 10 * SECOND
NTP = b"\x24" + bytes(47)


def udp(server_port: int, *payloads: bytes, near: int = USER_PORT) -> Udp:
    talk = Udp(HIDDEN_HOST, ports=(near, server_port))
    for payload in payloads:
        talk.send(payload, SERVER)
    return talk


def idle() -> Udp:
    talk = Udp(HIDDEN_HOST, ports=(USER_PORT, 8443)).send(b"question").send(b"answer", SERVER)
    return talk.wait(201 * SECOND).send(b"another answer", SERVER)


STRAYS: dict[str, Callable[[], list[Frame]]] = {
    "an answer of NTP": lambda: udp(123, NTP).frames,
    "many answers": lambda: udp(123, *[NTP] * 9).frames,
    "1-RTT at the start of the capture": lambda: udp(443, quic.short(b"an id")).frames,
    "an answer of QUIC": lambda: udp(443, quic.server_answer()).frames,
    "a response of DNS": lambda: udp(53, dns(NAME, response=True)).frames,
    "an ephemeral port": lambda: udp(41000, bytes(40)).frames,
    "after 201 s without a packet": lambda: idle().frames,
    "a datagram to a service": lambda: udp(41000, bytes(40), near=443).frames,
}


def check_servers(outcome: Outcome) -> None:
    """Five users visit the server, and from the third on its address is shown."""
    servers = [flow["server"] for flow in outcome.flows if flow["proto"] == 6 and flow["c_bytes"]]
    assert servers.count(SERVER_ADDRESS) == 3, servers


@each("what", STRAYS)
@each("internal", [None, nets("10.0.0.0/8")])
def test_a_packet_of_a_server_makes_it_no_client(
    what: str, internal: list[tuple[bytes, int]] | None
) -> None:
    frames = STRAYS[what]()
    visits = crowd(NAME, 5, frames[-1].t_ns + SECOND)
    outcome = run([*frames, *visits], z=3, internal=internal, window_ns=MINUTE)
    check_servers(outcome)
    strays = [flow for flow in outcome.flows if flow["proto"] == 17]
    assert strays
    assert all(flow["server_port"] != USER_PORT for flow in strays)


@pytest.mark.parametrize("how", ["alone", "sent again", "refused", "ignored data"])
def test_a_connection_that_a_server_tries_to_open_makes_it_no_client(how: str) -> None:
    talk = Tcp(HIDDEN_HOST, ports=(USER_PORT, 41000)).segment(SERVER, SYN, seq=1)
    if how == "sent again":
        talk.segment(SERVER, SYN, seq=1)
    elif how == "refused":
        talk.segment(CLIENT, RST | ACK)
    elif how == "ignored data":
        talk.segment(SERVER, 0, b"data")
    check_servers(run([*talk.frames, *crowd(NAME, 5, LATER)], z=3, window_ns=MINUTE))


def test_who_really_connects_from_outside_is_a_client() -> None:
    talk = Tcp(HIDDEN_HOST, ports=(USER_PORT, 41000)).segment(SERVER, SYN)
    talk.segment(CLIENT, SYN | ACK).segment(SERVER, ACK)
    outcome = run([*talk.frames, *crowd(NAME, 5, LATER)], z=3, window_ns=MINUTE)
    assert {flow["server"] for flow in outcome.flows if flow["server"] == SERVER_ADDRESS} == set()
    assert SERVER_ADDRESS.encode() not in outcome.everything()


def test_who_gets_an_answer_from_inside_is_a_client() -> None:
    talk = udp(41000, bytes(40), near=443).send(b"answer")
    outcome = run([*talk.frames, *crowd(NAME, 5, LATER)], z=3, window_ns=MINUTE)
    assert SERVER_ADDRESS.encode() not in outcome.everything()


def test_a_client_of_an_older_flow_stays_one_only_if_it_was_one() -> None:
    """A stray datagram's flow lasts into the next epochs."""
    stray = udp(41000, *[bytes(40)], near=443)
    known = udp(41001, *[bytes(40)] * 3, near=443)
    for talk, hidden in ((stray, False), (known, True)):
        visits = crowd(NAME, 5, START + 9 * SECOND)
        outcome = run([*talk.frames, *visits], z=3, window_ns=MINUTE, rotate_ns=4 * SECOND)
        shown = [flow["server"] for flow in outcome.flows if flow["server"] == SERVER_ADDRESS]
        assert len(shown) == (0 if hidden else 3)


def test_a_response_hides_no_resolver() -> None:
    strays = Udp(HIDDEN_HOST, ports=(USER_PORT, 53)).send(dns(NAME, response=True), SERVER).frames
    lookups = merged(Udp(user(n), t_ns=LATER + n * SECOND).lookup(NAME).frames for n in range(8))
    outcome = run([*strays, *lookups], z=3, window_ns=MINUTE)
    shown = [flow["server"] for flow in outcome.flows if flow["c_bytes"]]
    assert shown.count(SERVER_ADDRESS) == 6


@pytest.mark.parametrize(("near", "far"), [(USER_PORT, 123), (USER_PORT, 41000), (500, 500)])
def test_the_user_is_the_client_whoever_speaks_first(near: int, far: int) -> None:
    """By the port, else by the networks."""
    talk = Udp(HIDDEN_HOST, ports=(near, far)).send(NTP, SERVER).send(NTP)
    outcome = run(talk.frames, z=1, keep_client_port=True)
    (flow,) = outcome.flows
    assert (flow["client_port"], flow["server_port"]) == (near, far)
    assert (flow["c_pkts"], flow["s_pkts"]) == (1, 1)
    assert flow["client"] not in (None, SERVER_ADDRESS)


def test_a_group_is_no_client() -> None:
    talk = Udp("10.7.0.1", "239.1.2.3", ports=(123, USER_PORT)).send(NTP)
    (flow,) = run(talk.frames, z=1).flows
    assert (flow["c_pkts"], flow["s_pkts"], flow["server_port"]) == (1, 0, USER_PORT)


@pytest.mark.parametrize("far", [123, 41000, 443])
def test_the_users_port_leaves_in_no_packet(far: int) -> None:
    talk = udp(far, NTP).send(NTP).send(NTP, SERVER)
    left = emitted([*talk.frames, *crowd(NAME, 1, LATER)], z=1).frames
    ports = {struct.unpack_from(">HH", frame.data, 34) for frame in left if frame.data[23] == 17}
    assert len(ports) == 2
    assert not any(USER_PORT in pair for pair in ports)
    assert {far in pair for pair in ports} == {True}
