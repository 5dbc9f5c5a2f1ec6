# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Who the user is in a tunnel: one host can forge any number of inner addresses."""

import pytest
from support import quic_wire, wire
from support.engine import ALL, ANYWHERE, TCP_COMPLETE, TCP_NOCOMPLETE, nets, run
from support.packets import (
    ACK,
    CLIENT,
    MS,
    PSH,
    SECOND,
    SERVER,
    START,
    Frame,
    Tcp,
    Udp,
    dns,
    hello,
    merged,
    user,
    visit,
)
from support.quic_flow import FLIGHT, quic_talk
from support.tunnel import WRAPS, Wrap, by_tunnel, gre, gtp, ip_in_ip, tunnelled, vxlan

NAME = wire.HOST
INTERNAL = nets("10.0.0.0/8", "fd00::/8")
OUTSIDE = "198.18.0.%d"  # addresses that no --internal of these tests holds


def tunnelled_visit(
    client: str, near: str, t_ns: int = START, host: bytes = NAME, wrap: Wrap = gre
) -> list[Frame]:
    return tunnelled(visit(client, host, t_ns), client, near, wrap=wrap)


def forged_crowd(n: int, near: str, wrap: Wrap = gre) -> list[Frame]:
    """One end of a tunnel plays n clients of their own addresses."""
    talks = (tunnelled_visit(OUTSIDE % i, near, START + 20 * i * MS, wrap=wrap) for i in range(n))
    return merged(talks)


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
@pytest.mark.parametrize("internal", [INTERNAL, ANYWHERE], ids=["networks", "any"])
def test_forged_inner_addresses_are_one_user(wrap: Wrap, internal: list[tuple[bytes, int]]) -> None:
    outcome = run(forged_crowd(9, user(1), wrap), z=2, internal=internal)
    assert outcome.users == 1
    assert len(outcome.flows) == 9
    assert NAME not in outcome.everything()
    assert {flow["name_status"] for flow in outcome.flows} == {"suppressed"}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_ends_of_different_tunnels_are_users(wrap: Wrap) -> None:
    """The same inner address in all of them, as home networks have it."""
    talks = [
        tunnelled(
            Tcp("10.0.0.1", ports=(41000 + i, 443), t_ns=START + i * SECOND)
            .handshake()
            .say(hello(NAME))
            .close()
            .frames,
            "10.0.0.1",
            user(i),
            wrap=wrap,
        )
        for i in range(3)
    ]
    outcome = run(merged(talks), z=3, internal=INTERNAL)
    assert outcome.users == 3
    assert [flow["name_status"] for flow in outcome.flows] == [
        "suppressed",
        "suppressed",
        "released",
    ]


@pytest.mark.parametrize(("near", "far"), [(user(1), "239.1.1.1"), ("192.0.2.99", "169.254.1.1")])
def test_no_pseudonym_is_that_of_a_special_end(near: str, far: str) -> None:
    """Everybody knows a multicast group's address: its pseudonym would tell bits of the key."""
    known = tunnelled(visit("10.0.0.5", NAME, START), "10.0.0.5", near, far, vxlan)
    plain = visit(near, NAME, START + SECOND)
    through, direct = run([*known, *plain], z=1, internal=ANYWHERE).flows
    assert through["client"] == direct["client"]
    assert through["server"] == direct["server"]  # what is inside


def test_a_user_behind_a_special_end_has_no_pseudonym() -> None:
    """Also where somebody else opened the connection."""
    inner = visit("198.51.100.77", NAME, START)
    frames = tunnelled(inner, "198.51.100.77", "192.0.2.99", "169.254.1.1", vxlan)
    outcome = run(frames, z=1, internal=nets("169.254.0.0/16"))
    assert outcome.flow["client"] is not None
    assert outcome.flow["server"] is None


def test_a_special_server_is_nobody_also_where_the_user_is_its_end() -> None:
    """Somebody outside sends through the user's tunnel to a multicast group."""
    inner = visit("198.51.100.77", NAME, START, "224.0.0.9")
    frames = tunnelled(inner, "198.51.100.77", "192.0.2.99", user(1), vxlan)
    outcome = run(frames, z=1, internal=INTERNAL)
    assert outcome.users == 1
    assert outcome.flow["server"] is None


def test_without_networks_the_innermost_is_the_user() -> None:
    outcome = run(forged_crowd(5, user(1)), z=2)
    assert outcome.users == 5
    assert outcome.released() == {NAME.decode()}


def test_a_tunnel_between_strangers_leaves_the_user_inside() -> None:
    """GTP-U between two gateways outside: whoever is internal in it is the user."""
    talks = [
        tunnelled(visit(user(i), NAME, START + i * SECOND), user(i), "203.0.113.5", wrap=gtp)
        for i in range(3)
    ]
    outcome = run(merged(talks), z=3, internal=INTERNAL)
    assert outcome.users == 3
    assert outcome.released() == {NAME.decode()}


def test_the_outermost_internal_address_counts() -> None:
    """Around a stranger's tunnel, around an internal one's, around forged addresses."""
    talks = []
    for i in range(4):
        inner = tunnelled_visit(OUTSIDE % i, user(70 + i), START + i * SECOND)
        middle = tunnelled(inner, user(70 + i), user(1), wrap=ip_in_ip)
        talks.append(tunnelled(middle, user(1), "203.0.113.5", wrap=vxlan))
    outcome = run(merged(talks), z=2, internal=INTERNAL)
    assert outcome.users == 1
    assert not outcome.seen()


def test_no_internal_address_at_all() -> None:
    frames = tunnelled(visit(OUTSIDE % 1, NAME, START), OUTSIDE % 1, "203.0.113.5")
    outcome = run(frames, z=1, internal=INTERNAL)
    assert not outcome.flows
    assert outcome.stats["flows_external"] == 1


def test_the_pseudonym_is_of_the_user(key_file: str) -> None:
    """A flow through the tunnel and one beside it: one user, one pseudonym."""
    frames = [
        *tunnelled_visit(OUTSIDE % 1, user(1)),
        *visit(user(1), b"b.example.org", START + SECOND),
        *tunnelled(
            visit("fd00::7", b"c.example.org", START + 2 * SECOND, "2001:db8::7"),
            "fd00::7",
            user(2),
        ),
    ]
    outcome = run(frames, z=1, internal=INTERNAL, key_file=key_file)
    first, beside, other = outcome.flows
    assert first["client"] == beside["client"] != other["client"]
    assert [o["client"] for o in outcome.observations] == [f["client"] for f in outcome.flows]
    assert outcome.users == 2
    for address in (OUTSIDE % 1, user(1), user(2), "fd00::7"):
        assert address.encode() not in outcome.everything()
    inside = run(frames, z=1, key_file=key_file)  # where the innermost address is the user
    assert inside.flows[0]["client"] != inside.flows[1]["client"]


def test_names_from_another_tunnel_do_not_count() -> None:
    """Somebody else's tunnel carries packets with the addresses of a user's flow."""
    talk = visit(OUTSIDE % 1, NAME, START)
    honest = tunnelled(talk, OUTSIDE % 1, user(1))
    foreign = tunnelled(talk, OUTSIDE % 1, user(2))
    before = visit(user(9), NAME, START - SECOND)
    assert run([*before, *honest], z=2, internal=INTERNAL).released() == {NAME.decode()}
    mixed = [*honest[:3], foreign[3], *honest[4:]]  # the hello is number 3
    outcome = run([*before, *mixed], z=2, internal=INTERNAL)
    assert outcome.stats["tunnel_mismatch"] == 1
    assert not outcome.seen()
    bare = [*honest[:3], talk[3], *honest[4:]]
    assert not run([*before, *bare], z=2, internal=INTERNAL).seen()


@pytest.mark.parametrize(("others", "service"), [(20, "1024"), (27, "0")])
def test_packets_of_another_tunnel_count_where_a_service_is_waited_for(
    others: int, service: str
) -> None:
    """A greeting waits for its answer up to the flow's 60th packet, whoever sent the others."""
    talk = Tcp(OUTSIDE % 1).handshake()
    for _ in range(30):
        talk.segment(CLIENT, ACK)
    talk.segment(SERVER, PSH | ACK, b"220 mail.example\r\n")
    for _ in range(others):
        talk.segment(CLIENT, ACK)
    talk.segment(CLIENT, PSH | ACK, b"x").segment(CLIENT, PSH | ACK, b"EHLO client\r\n")
    near = [*[user(1)] * 3, *[user(2)] * 30, user(1), *[user(2)] * others, *[user(1)] * 2]
    frames = [
        tunnelled([frame], OUTSIDE % 1, end)[0]
        for frame, end in zip(talk.frames, near, strict=True)
    ]
    outcome = run(frames, z=1, internal=INTERNAL)
    assert outcome.stats["tunnel_mismatch"] == 30 + others
    (line,) = [*outcome.log(TCP_COMPLETE), *outcome.log(TCP_NOCOMPLETE)]
    assert line["con_t"] == service


GUESSED = b"abc"  # an ID of too few bytes: the server has to show that it trusts the client
ANSWERED = {
    "tcp": visit(user(1), NAME, START),
    "dns": Udp(user(1), t_ns=START).lookup(NAME).frames,
    "quic": quic_talk(*FLIGHT, client=user(1))
    .send(quic_wire.server_answer(scid=GUESSED), SERVER)
    .send(bytes(9000), SERVER)
    .send(quic_wire.opaque(quic_wire.HANDSHAKE, GUESSED, quic_wire.SCID))
    .frames,
}


@pytest.mark.parametrize("what", ANSWERED)
def test_answers_by_a_users_tunnel_prove_nobody_else(what: str) -> None:
    """Who forges a client's packets inside may send the answers past the tap in its own tunnel."""
    talk = ANSWERED[what]
    before = visit(user(9), NAME, START - SECOND)
    settings = {"z": 2, "internal": INTERNAL, "dns_votes": ALL}
    assert run([*before, *talk], **settings).released() == {NAME.decode()}
    for ends in ((user(5), "203.0.113.66"), ("203.0.113.66", user(5)), (user(1), user(5))):
        forged = by_tunnel(talk, user(1), ends)
        outcome = run([*before, *forged], **settings)
        assert outcome.stats["tunnel_mismatch"] != 0
        assert not outcome.seen()
        assert NAME not in outcome.everything()


def test_bytes_by_a_users_tunnel_are_none_of_a_quic_servers() -> None:
    """The server itself answers, by an ID that can be guessed, and the rest is forged."""
    talk = ANSWERED["quic"]
    rest = by_tunnel(talk[-2:-1], user(1), (user(5), "203.0.113.66"))
    before = visit(user(9), NAME, START - SECOND)
    outcome = run([*before, *talk[:-2], *rest, talk[-1]], z=2, internal=INTERNAL)
    assert not outcome.seen()
    assert outcome.stats["suppressed_unconfirmed"] == 1


def test_a_tunnel_with_the_same_ends_both_ways_proves_its_user() -> None:
    """As a mirror sends what it sees."""
    talk = visit(OUTSIDE % 1, NAME, START)
    ends = (user(1), "203.0.113.66")
    packets = [wire.ethernet(gre(f.data[14:], ends), wire.ETHERTYPE_IPV4) for f in talk]
    mirrored = [Frame(f.t_ns, data, len(data)) for f, data in zip(talk, packets, strict=True)]
    before = visit(user(9), NAME, START - SECOND)
    assert run([*before, *mirrored], z=2, internal=INTERNAL).released() == {NAME.decode()}


def test_an_inner_address_is_no_server_to_show(key_file: str) -> None:
    """It was a client in the epoch, though the tunnel's end is the user."""
    server = "203.0.113.77"
    visits = merged(visit(user(10 + i), NAME, START + SECOND, server) for i in range(3))
    outcome = run(visits, z=2, internal=INTERNAL, key_file=key_file)
    assert server.encode() in outcome.everything()
    outcome = run(
        [*tunnelled_visit(server, user(1)), *visits], z=2, internal=INTERNAL, key_file=key_file
    )
    assert server.encode() not in outcome.everything()


@pytest.mark.parametrize("far", ["169.254.7.8", "239.1.1.1"])
def test_a_special_end_stands_for_no_server(far: str, key_file: str) -> None:
    """Everybody knows those addresses, so their pseudonyms would tell of the key."""
    server = "198.18.7.7"
    talk = visit(OUTSIDE % 1, NAME, START, server)
    frames = tunnelled(talk, OUTSIDE % 1, user(1), far)
    told = [
        run(them, z=1, internal=ANYWHERE, key_file=key_file).flow["server"]
        for them in (frames, talk, tunnelled(talk, OUTSIDE % 1, user(1), user(2)))
    ]
    assert told[0] == told[1] != told[2]


@pytest.mark.parametrize("udp", [False, True])
def test_a_special_end_stands_for_no_server_that_was_taken_for_the_client(udp: bool) -> None:
    """The capture begins with what the server sent."""
    client, server = "10.1.1.1", "10.2.2.2"
    if udp:
        answer = dns(NAME, response=True)
        talk = Udp(client, server, (53, 53)).send(answer, SERVER).send(dns(NAME))
        frames = talk.send(answer, SERVER).frames
    else:
        begun = Tcp(client, server, (40000, 50000)).segment(SERVER, PSH | ACK, b"hi")
        frames = begun.segment(CLIENT, PSH | ACK, hello(NAME)).frames
    told = [
        run(tunnelled(frames, client, user(7), far), z=1, internal=ANYWHERE, established=udp).flow
        for far in (user(9), "169.254.1.1")
    ]
    assert [flow["name"] for flow in told] == [NAME.decode()] * 2
    assert told[0]["server"] is not None
    assert told[1]["server"] is None


def test_counters_of_tunnels() -> None:
    frames = [*tunnelled_visit(user(1), user(2)), *tunnelled_visit(user(3), user(4), wrap=vxlan)]
    stats = run(frames, z=1).stats
    per_visit = len(visit(user(1), NAME, START))
    assert (stats["in_gre"], stats["in_vxlan"], stats["in_vlan"]) == (per_visit, per_visit, 0)
