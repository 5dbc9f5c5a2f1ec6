# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What a flow record may say of addresses."""

import ipaddress
import random
import re
import struct

import pytest
from support.engine import (
    ANYWHERE,
    TCP_COMPLETE,
    TCP_NOCOMPLETE,
    UDP_COMPLETE,
    nets,
    run,
)
from support.packets import (
    ACK,
    CLIENT,
    HOUR,
    MINUTE,
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
    hello,
    merged,
    user,
    visit,
)
from support.record import (
    LATER,
    NAME,
    PORTS,
    SECRET,
    STATUSES,
    outcome_with,
    popular_server,
    record,
    tstat_line,
)


def test_a_released_name_does_not_release_its_server(key_file: str) -> None:
    """Each visitor reached another server: the name is shared, no address is."""
    talks = [visit(user(i), NAME, START + i * SECOND, f"198.51.100.{10 + i}") for i in range(6)]
    outcome = run(merged(talks), z=3, key_file=key_file)
    assert [flow["name_status"] for flow in outcome.flows] == ["suppressed"] * 2 + ["released"] * 4
    assert {flow["server"] for flow in outcome.flows} == {None}
    assert b"198.51.100" not in outcome.everything()
    assert {line["s_ip"] for line in outcome.log(TCP_COMPLETE)} == {"-"}


def test_a_server_behind_many_names_is_shown_only_beside_released_ones() -> None:
    rare = visit(user(50), SECRET, LATER)
    outcome = run([*popular_server(), *rare], z=2)
    assert [flow["server"] for flow in outcome.flows] == [None, *[SERVER_ADDRESS] * 2, None]


def test_addresses_are_written_as_rfc_5952_has_them() -> None:
    """Python, too, but for what may be an IPv4 address behind zeros (RFC 4291 2.5.5.1)."""
    dice = random.Random(5952)
    groups = [[0x2001, *(dice.choice([0, 0, 1, 0xAB, 0xDB8]) for _ in range(7))] for _ in range(40)]
    servers = {str(ipaddress.IPv6Address(struct.pack(">8H", *numbers))) for numbers in groups}
    servers |= {"::198.51.100.7", "::7:0:1:2", "1:2:3:4:5:6:7:0"}
    visits = [
        visit(client, NAME, START + i * SECOND, server)
        for i, server in enumerate(sorted(servers))
        for client in ("fd00:7::1:1", "fd00:7:0:100::1")
    ]
    outcome = run(merged(visits), z=2)
    assert {flow["server"] for flow in outcome.flows} == servers | {None}


@pytest.mark.parametrize("internal", [None, ANYWHERE, nets("10.0.0.0/8")])
def test_an_internal_server_is_a_pseudonym(internal: object, key_file: str) -> None:
    """However many users share it."""
    frames = crowd(NAME, 6, server="10.9.8.7")
    outcome = run(frames, z=2, internal=internal, key_file=key_file)
    shown = {flow["server"] for flow in outcome.flows if flow["name_status"] == "released"}
    (pseudonym,) = shown
    assert pseudonym != "10.9.8.7"
    assert ipaddress.ip_address(pseudonym).version == 4
    line = outcome.log(TCP_COMPLETE)[-1]
    assert (line["s_ip"], line["s_isint"], line["s_iscrypto"]) == (pseudonym, "1", "1")
    assert b"10.9.8.7" not in outcome.everything()
    assert outcome.stats["addr_observations"] == 0


def test_a_server_that_becomes_a_client_is_withheld_from_then_on(key_file: str) -> None:
    before = crowd(NAME, 4, server="203.0.113.5")
    turn = visit("203.0.113.5", b"other.example", START + MINUTE)
    after = crowd(NAME, 4, START + 2 * MINUTE, first=10, server="203.0.113.5")
    outcome = run([*before, *after], z=2, batch=32)
    assert [flow["server"] for flow in outcome.flows].count("203.0.113.5") == 7
    outcome = run([*before, *turn, *after], z=2, batch=10)  # a batch is a visit
    assert [flow["server"] for flow in outcome.flows] == [None, *["203.0.113.5"] * 3, *[None] * 5]
    assert [flow["name_status"] for flow in outcome.flows[5:]] == ["released"] * 4
    early = visit("203.0.113.5", b"other.example", START - SECOND)
    outcome = run([*early, *before], z=2, key_file=key_file)
    assert b"203.0.113.5" not in outcome.everything()


def test_a_server_that_becomes_a_client_before_its_flow_ends_is_withheld() -> None:
    """Its address was released when the flow began; the record is written later."""
    before = crowd(NAME, 4, server="203.0.113.5")
    long_flow = Tcp(user(50), "203.0.113.5", t_ns=START + SECOND).handshake().say(hello(NAME))
    turn = visit("203.0.113.5", b"other.example", START + MINUTE)
    long_flow.wait(2 * MINUTE).close()
    for frames, server in (([], "203.0.113.5"), (turn, None)):
        outcome = run(merged([before, long_flow.frames, frames]), z=2)
        assert outcome.flows[-1]["name"] == NAME.decode()
        assert outcome.flows[-1]["server"] == server


@pytest.mark.parametrize("jumps", [[], [[9]], [[9, 12]], [[9], [12]], [[9], [12, 15]]])
def test_a_server_that_was_a_client_is_withheld_when_time_comes_back(
    jumps: list[list[int]], key_file: str
) -> None:
    """Packets of no real time, in so many hours, make its epoch one of the past, until others show
    that the clock is wrong."""
    before = crowd(NAME, 3, server="203.0.113.6")
    turn = visit("203.0.113.5", b"other.example", START + SECOND)
    frames = [*before, *turn]
    for again, hours in enumerate(jumps):
        for hour in hours:
            stray = Tcp(user(200 + hour), t_ns=START + hour * HOUR).segment(CLIENT, SYN)
            frames += stray.frames
        more = Tcp(user(99), ports=(50000 + again, 443), t_ns=START + (again + 1) * MINUTE)
        for _ in range(300):
            more.segment(CLIENT, ACK)
        frames += more.frames
    for server in ("203.0.113.5", "203.0.113.6"):
        frames += crowd(NAME, 4, START + 9 * MINUTE, first=10, server=server)
    outcome = run(frames, z=2, batch=64, key_file=key_file)
    assert outcome.stats["clock_rebased"] == len(jumps)
    assert b"203.0.113.5" not in outcome.everything()
    known = all(len(hours) == 1 for hours in jumps)
    assert outcome.flows[-1]["server"] == ("203.0.113.6" if known else None)
    assert (outcome.stats["addr_client_set_incomplete"] == 0) == known


@pytest.mark.parametrize("batch", [10, 1000])
def test_a_server_that_was_a_client_is_withheld_however_late_the_record_is(batch: int) -> None:
    """Who was a client is remembered for two epochs; the flow goes on for three more."""
    before = crowd(NAME, 4, server="203.0.113.5")
    long_flow = Tcp(user(50), "203.0.113.5", t_ns=START + SECOND).handshake().say(hello(NAME))
    turn = visit("203.0.113.5", b"other.example", START + MINUTE)
    others = [visit(user(60), b"a.example", START + epoch * HOUR) for epoch in range(1, 5)]
    for _ in range(60):
        long_flow.wait(4 * MINUTE).say(b"data")
    long_flow.close()
    for frames, server in (([], "203.0.113.5"), (turn, None)):
        outcome = run(
            merged([before, long_flow.frames, frames, *others]), z=2, rotate_ns=HOUR, batch=batch
        )
        late = [flow for flow in outcome.flows if flow["t_end_ns"] > START + 3 * HOUR]
        assert {flow["server"] for flow in late if flow["name"] == NAME.decode()} == {server}


@pytest.mark.parametrize("batch", [1, 1000])
@pytest.mark.parametrize("answered", [1, 4])
def test_a_server_that_was_a_client_is_withheld_however_late_the_evidence_is(
    answered: int, batch: int
) -> None:
    """Its flow began in the same epoch; others come and go before the answer proves the user."""
    turn = visit("203.0.113.5", b"other.example", START)
    talk = Udp(user(1), "203.0.113.5", t_ns=START + 1).send(dns(NAME, ident=7))
    talk.wait(answered * SECOND).send(dns(NAME, ident=7, response=True), SERVER)
    others = [visit(user(60), b"a.example", START + epoch * SECOND) for epoch in range(1, 4)]
    for frames, server in (([], "203.0.113.5"), (turn, None)):
        outcome = run(merged([frames, talk.frames, *others]), z=1, rotate_ns=SECOND, batch=batch)
        (lookup,) = (flow for flow in outcome.flows if flow["proto"] == 17)
        assert (lookup["name"], lookup["server"]) == (NAME.decode(), server)


def test_a_client_of_the_epoch_before_the_record_is_withheld_too(key_file: str) -> None:
    turn = visit("203.0.113.5", b"other.example", START + 59 * MINUTE)
    after = crowd(NAME, 4, START + 61 * MINUTE, server="203.0.113.5")
    outcome = run([*turn, *after], z=2, rotate_ns=HOUR, key_file=key_file)
    assert b"203.0.113.5" not in outcome.everything()


@pytest.mark.parametrize("batch", [1, 1000])
def test_who_is_a_client_for_long_is_no_server_meanwhile(batch: int, key_file: str) -> None:
    """Nor in the epoch after; its only connection was opened three epochs before."""
    talk = Tcp("203.0.113.5", t_ns=START).handshake().say(hello(b"other.example"))
    for _ in range(50):
        talk.wait(4 * MINUTE).say(b"data")  # for 200 minutes
    others = [visit(user(60), b"a.example", START + epoch * HOUR) for epoch in range(1, 6)]
    for epoch in (3, 4):
        after = crowd(NAME, 4, START + epoch * HOUR + MINUTE, server="203.0.113.5")
        frames = merged([talk.frames, after, *others])
        outcome = run(frames, z=2, rotate_ns=HOUR, batch=batch, key_file=key_file)
        assert b"203.0.113.5" not in outcome.everything(), epoch
    later = crowd(NAME, 4, START + 5 * HOUR + MINUTE, server="203.0.113.5")
    outcome = run(merged([talk.frames, later, *others]), z=2, rotate_ns=HOUR, batch=batch)
    assert [flow["server"] for flow in outcome.flows].count("203.0.113.5") == 3


@pytest.mark.parametrize("batch", [1, 7, 1000])
@pytest.mark.parametrize("step", [4 * MINUTE, 90 * MINUTE])
@pytest.mark.parametrize("lasts", [5 * HOUR, 4 * HOUR + 12 * MINUTE])
def test_a_client_is_one_in_every_epoch_of_its_flow(lasts: int, step: int, batch: int) -> None:
    """Who was a client is remembered for two epochs; the flow goes on for more."""
    client, others = "203.0.113.5", []
    long_flow = Tcp(client, t_ns=START).handshake().say(hello(NAME))
    for _ in range(lasts // (4 * MINUTE)):
        long_flow.wait(4 * MINUTE).say(b"data")
    long_flow.close()
    for t_ns in range(START + step, START + 4 * HOUR + 1, step):
        others.append(visit(user(60), b"a.example", t_ns))
    after = crowd(NAME, 4, START + 4 * HOUR + 30 * MINUTE, server=client)
    for frames, servers in (([], {None, client}), (long_flow.frames, {None})):
        outcome = run(merged([after, frames, *others]), z=2, rotate_ns=HOUR, batch=batch)
        shown = {flow["server"] for flow in outcome.flows if flow["name"] == NAME.decode()}
        assert shown | {None} == servers


def test_special_addresses_are_printed_as_missing(key_file: str) -> None:
    talks = [
        Udp("0.0.0.0", "255.255.255.255", ports=(68, 67)).send(b"discover"),
        Udp("10.7.0.3", "239.1.2.3", ports=(5000, 5001)).send(b"multicast"),
        Udp("fe80::1:2:3:4", "ff02::fb", ports=(5353, 5353)).send(b"link"),
        Tcp("127.0.0.1", "127.0.0.1", ports=(5000, 5001)).handshake().close(),
    ]
    for internal in (None, ANYWHERE):
        frames = [frame for talk in talks for frame in talk.frames]
        outcome = run(frames, z=1, internal=internal, key_file=key_file)
        logs = [*outcome.log(UDP_COMPLETE), *outcome.log(TCP_COMPLETE)]
        shown = [(line["c_ip"] == "-", line["s_ip"]) for line in logs]
        assert shown == [(True, "-"), (False, "-"), (True, "-"), (True, "-")]
        assert [flow["server"] for flow in outcome.flows] == [None] * 4
        assert sum(flow["client"] is None for flow in outcome.flows) == 3
        assert not re.search(rb"239\.1|fe80|ff02|127\.0|255\.255", outcome.everything())


@pytest.mark.parametrize("internal", [None, nets("10.0.0.0/8")])
def test_a_server_that_speaks_first_is_told_as_no_client(internal: object, key_file: str) -> None:
    """In a flow that nothing came in for long, or that was joined in its middle."""
    ports = (40001, 8443)
    talk = Tcp(user(1), SERVER_ADDRESS, ports=ports, t_ns=LATER).handshake().say(hello(SECRET))
    joined = len(talk.frames)
    talk.wait(HOUR).say(b"news", SERVER).say(b"thanks").close()
    more = {"z": 2, "internal": internal, "key_file": key_file, "exact": True}
    outcome = run(talk.frames, rotate_ns=24 * HOUR, **more)
    first, rest = outcome.flows
    assert (first["name_status"], rest["name_status"]) == ("suppressed", "suppressed")
    assert rest["client"] == first["client"]
    (rest,) = run(talk.frames[joined:], **more).flows
    assert (rest["server"], rest["client_port"], rest["server_port"]) == (None, 0, 8443)
    assert (rest["c_bytes"], rest["s_bytes"]) == (6, 4)


def test_a_stranger_that_asks_is_the_client_of_a_flow_joined_later() -> None:
    """Of a user's server; also where the user has the first word."""
    talk = Tcp("192.0.2.77", user(1), ports=(40001, 8443), t_ns=LATER).say(b"news", SERVER)
    talk.say(hello(NAME))
    for frames in (talk.frames, talk.frames[2:]):
        (flow,) = run(frames, z=1, internal=nets("10.0.0.0/8"), established=False).flows
        assert (flow["name"], flow["server_port"]) == (NAME.decode(), 8443)


def test_client_ports() -> None:
    outcome = run(popular_server(), z=2)
    assert {flow["client_port"] for flow in outcome.flows} == {0}
    assert {line["c_port"] for line in outcome.log(TCP_COMPLETE)} == {"0"}
    outcome = run(popular_server(), z=2, keep_client_port=True)
    assert [line["c_port"] for line in outcome.log(TCP_COMPLETE)] == ["0", "40000", "40000"]
    assert [flow["client_port"] for flow in outcome.flows] == [0, 40000, 40000]


def test_client_ports_are_kept_beside_released_names_only() -> None:
    for status in STATUSES:
        outcome = outcome_with(status, "tls", keep_client_port=True)
        port = PORTS[0] if status == "released" else 0
        assert record(outcome)["client_port"] == port, status
        assert tstat_line(outcome)["c_port"] == str(port)
        at_z_1 = outcome_with(status, "tls", keep_client_port=True, z=1)
        assert record(at_z_1)["client_port"] == PORTS[0]


def test_flows_between_strangers_are_not_emitted() -> None:
    inside = crowd(NAME, 3)
    outside = crowd(SECRET, 3, server="203.0.113.9")
    outside = [
        Frame(f.t_ns, f.data.replace(bytes([10, 7, 0]), bytes([192, 0, 2])), f.wire)
        for f in outside
    ]
    outcome = run(merged([inside, outside]), z=2, internal=nets("10.0.0.0/8"))
    assert len(outcome.flows) == 3
    assert outcome.stats["flows_external"] == 3
    assert sum(len(outcome.log(name)) for name in (TCP_COMPLETE, TCP_NOCOMPLETE)) == 3
    assert outcome.stats["names_tls"] == 3
    assert SECRET not in outcome.everything()


CARRIERS = {  # of 10.5.5.5, 203.0.113.113 and 192.0.2.1
    "NAT64": "64:ff9b::%s",
    "local NAT64": "64:ff9b:1::%s",
    "ISATAP": "2a01:db8::200:5efe:%s",
    "behind zeros": "::%s",
    "SIIT": "::ffff:0:%s",
}


def carriers(inner: str) -> list[str]:
    """IPv6 addresses that carry this IPv4 one."""
    number = int(ipaddress.IPv4Address(inner))
    six_to_four = ipaddress.IPv6Address(0x2002 << 112 | number << 80 | 1)
    teredo = ipaddress.IPv6Address(0x20010000 << 96 | 0xCB007142 << 64 | number ^ 0xFFFFFFFF)
    assert str(six_to_four.sixtofour) == str(teredo.teredo[1]) == inner  # type: ignore[index]
    plain = [ipaddress.IPv6Address(form % inner) for form in CARRIERS.values()]
    return [str(address) for address in [*plain, six_to_four, teredo]]


def shown(server: str, before: list[Frame]) -> set[str | None]:
    """The disclosure of a server that two users visit."""
    talks = [visit(f"fd00:0:0:{i}00::5", NAME, START + i * SECOND, server) for i in (1, 2)]
    outcome = run([*before, *merged(talks)], z=2, internal=nets("10.0.0.0/8", "fd00::/8"))
    return {flow["server"] for flow in outcome.flows if flow["client"] != "10.0.0.1"}


@pytest.mark.parametrize("inner", ["10.5.5.5", "127.0.0.1", "224.0.0.251"])
def test_an_address_that_carries_one_to_hide_is_not_told(inner: str) -> None:
    for server in carriers(inner):
        assert shown(server, []) == {None}, server


def test_an_address_that_carries_a_public_one_is_told() -> None:
    for server in carriers("203.0.113.113"):
        (told,) = {ipaddress.ip_address(text) for text in shown(server, []) - {None}}
        assert told == ipaddress.ip_address(server)


@pytest.mark.parametrize("turned", [False, True])
def test_an_address_that_carries_a_clients_is_not_told(turned: bool) -> None:
    """Nor is the client's own, where it was seen as one by an address that carries it."""
    inner = "203.0.113.113"
    for carrier in carriers(inner):
        client, server = (carrier, inner) if turned else (inner, carrier)
        users = [user(1), user(2)] if turned else ["fd00:0:0:100::5", "fd00:0:0:200::5"]
        seen = visit(client, SECRET, START, "2a01:db8::9" if turned else SERVER_ADDRESS)
        talks = [visit(one, NAME, START + i * SECOND, server) for i, one in enumerate(users, 1)]
        outcome = run([*seen, *merged(talks)], z=2)
        assert {flow["server"] for flow in outcome.flows[1:]} == {None}, carrier
