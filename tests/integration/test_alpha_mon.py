# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Defects known of an earlier z-anonymizer on the wire, each as a test of the whole engine."""

import time
from collections.abc import Callable

import pytest
from support import wire
from support.engine import TCP_COMPLETE, Taker, feed, make_engine, run
from support.packets import (
    ACK,
    CLIENT,
    DAY,
    HOUR,
    MINUTE,
    MS,
    PSH,
    SECOND,
    START,
    Frame,
    Tcp,
    Udp,
    crowd,
    dns,
    hello,
    merged,
    request,
    user,
    visit,
)

NAME = b"www.example.org"
YEAR = 365 * DAY
PATIENCE_S = 20


# ---- counting -----------------------------------------------------------------------------------


def test_users_of_a_year_ago_do_not_count() -> None:
    """Eviction came only once a name had more than z users."""
    frames = [*crowd(NAME, 9), *visit(user(100), NAME, START + YEAR)]
    assert not run(frames, z=10).seen()
    assert not run(frames, z=10, batch=1).seen()
    frames = [*crowd(NAME, 9), *visit(user(100), NAME, START + 30 * MINUTE)]
    assert run(frames, z=10).seen().total() == 1


def test_a_gap_of_a_year_costs_no_time() -> None:
    began = time.monotonic()
    frames = [f for year in range(40) for f in visit(user(1), NAME, START + year * YEAR)]
    outcome = run(frames, z=2, batch=1)
    assert len(outcome.log(TCP_COMPLETE)) == 40
    assert time.monotonic() - began < PATIENCE_S


def test_5000_users_of_one_name_are_counted_exactly() -> None:
    """Users hashed to the same of 900 slots were one, so no z above that could be reached."""
    frames = crowd(NAME, 5000)
    for z in (895, 4999, 5000):
        outcome = run(frames, z=z)
        assert outcome.seen().total() == 5000 - z + 1
        assert outcome.users == 5000


def test_60000_names_of_one_user_take_little_memory() -> None:
    """Each took 72 kB: a flood of random names ended the program."""
    count = 60_000
    payload = dns(b"n00000000000.example.org")
    frame = Udp(user(1)).send(payload).frames[0].data
    at = frame.index(b"00000000000")
    engine = make_engine(z=2, established=False, max_attributes=1 << 17, max_flows=1 << 17)
    taker = Taker(engine)
    for start in range(0, count, 2000):
        frames = []
        for n in range(start, start + 2000):
            data = bytearray(frame)
            data[34:36] = (1024 + n).to_bytes(2)
            data[at : at + 11] = b"%011d" % n
            frames.append(Frame(START + n * 10**4, bytes(data), len(data)))
        feed(engine, frames)
        taker.take()
    assert engine.table_stats["attributes"] == count + 1  # and the server's address
    assert engine.memory_bytes < 200 << 20
    outcome = taker.outcome()
    assert outcome.stats["dns_suppressed"] == count
    assert not outcome.seen()


def test_servers_whose_address_has_zero_octets_are_told_apart() -> None:
    """Addresses were strings that ended at the first zero byte."""
    servers = ["198.0.0.7", "198.0.1.7", "198.1.0.7", "203.0.0.7", "198.0.0.8", "198.51.0.0"]
    talks = [visit(user(i), NAME, START + i * SECOND, s) for i, s in enumerate(servers)]
    outcome = run(merged(talks), z=2)
    assert outcome.stats["addr_observations"] == len(servers)
    assert outcome.stats["addr_released"] == 0
    assert {flow["server"] for flow in outcome.flows} == {None}
    again = [visit(user(50), NAME, START + MINUTE, s) for s in servers]
    again = [
        [Frame(f.t_ns + i * SECOND, f.data, f.wire) for f in talk] for i, talk in enumerate(again)
    ]
    outcome = run(merged([*talks, *again]), z=2)
    assert [flow["server"] for flow in outcome.flows[-len(servers) :]] == servers


def test_a_dns_server_is_no_user() -> None:
    """The source of every packet was taken for a user: resolvers voted with their answers."""
    talks = [
        Udp(user(1), f"198.51.100.{i}", t_ns=START + i * SECOND).lookup(NAME).frames
        for i in range(9)
    ]
    outcome = run(merged(talks), z=2)
    assert not outcome.seen()
    assert outcome.users == 1


# ---- keys ---------------------------------------------------------------------------------------


def test_rotation_changes_pseudonyms_and_counts_nobody_twice() -> None:
    """The option was read and never used; counting by pseudonym would have doubled the users."""
    visits = merged(
        visit(user(i), NAME, START + epoch * 10 * MINUTE + i * SECOND)
        for epoch in range(6)
        for i in range(3)
    )
    outcome = run(visits, z=4, rotate_ns=10 * MINUTE)
    assert not outcome.seen()
    outcome = run(visits, z=3, rotate_ns=10 * MINUTE)
    assert outcome.seen().total() == 16
    epochs = {flow["epoch"] for flow in outcome.flows}
    clients = {flow["client"] for flow in outcome.flows}
    assert (len(epochs), len(clients)) == (6, 18)
    in_one = run(visits, z=3, rotate_ns=DAY)
    assert len({flow["client"] for flow in in_one.flows}) == 3


# ---- names that slipped through -----------------------------------------------------------------

NEXT_EXTENSIONS = [0x0017, 0x000B, 0xFF01, 0x1A1A, wire.ALPS, wire.ECH, 0x0100]


@pytest.mark.parametrize("following", NEXT_EXTENSIONS)
def test_any_extension_may_follow_the_name(following: int) -> None:
    """Unless the byte behind the name was 0 the name was left in clear."""
    talk = hello(NAME, wire.extension(following, b"\1\0"))
    visits = [
        Tcp(user(i), t_ns=START + i * SECOND).handshake().say(talk).close().frames for i in range(3)
    ]
    outcome = run(merged(visits), z=3)
    assert outcome.seen().total() == 1
    assert outcome.stats["suppressed_below_z"] == 2


def deep_name(length: int) -> bytes:
    """A valid name of so many bytes."""
    name = b"h" + b".label" * (length // 6 + 1)
    name = name[:length]
    return name if not name.endswith(b".") else name[:-1] + b"x"


@pytest.mark.parametrize("length", [63, 64, 65, 128, 253])
def test_a_host_of_more_than_63_bytes_is_counted(length: int) -> None:
    """It was left in clear."""
    name = deep_name(length)
    talks = [
        Tcp(user(i), t_ns=START + i * SECOND).handshake().say(request(name)).close().frames
        for i in range(3)
    ]
    outcome = run(merged(talks), z=3)
    assert outcome.released() == {name.decode()}
    assert outcome.seen().total() == 1
    assert name not in run(merged(talks), z=4).everything()


def test_methods_other_than_get_and_post_carry_names_too() -> None:
    for method in (b"HEAD", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"TRACE"):
        talk = Tcp().handshake().say(request(NAME, method)).close()
        assert run(talk.frames, z=1).released() == {NAME.decode()}
    talk = Tcp().handshake().say(b"CONNECT %s:443 HTTP/1.1\r\n\r\n" % NAME)
    assert run(talk.frames, z=1).released() == {NAME.decode()}


def test_a_hello_over_two_segments_is_read() -> None:
    """Only its first segment was looked at, and the second went out as it was."""
    long_hello = hello(NAME, wire.extension(wire.KEY_SHARE, bytes(1300)))
    talks = []
    for i in range(3):
        talk = Tcp(user(i), t_ns=START + i * SECOND).handshake()
        talk.segment(CLIENT, ACK, long_hello[:70]).segment(CLIENT, PSH | ACK, long_hello[70:])
        talks.append(talk.close().frames)
    outcome = run(merged(talks), z=3)
    assert outcome.seen().total() == 1
    assert outcome.stats["names_tls"] == 3


def test_case_makes_no_other_name() -> None:
    """Names were compared byte by byte, a port included."""
    forms = (b"www.example.org", b"WWW.EXAMPLE.ORG", b"Www.Example.org:80", b"www.example.org.")
    talks = [
        Tcp(user(i), t_ns=START + i * SECOND).handshake().say(request(form)).close().frames
        for i, form in enumerate(forms)
    ]
    outcome = run(merged(talks), z=4)
    assert outcome.released() == {NAME.decode()}


# ---- frames that slipped through ----------------------------------------------------------------


def plain(i: int, t_ns: int) -> list[Frame]:
    return visit(user(i), NAME, t_ns)


def tagged(*tags: int) -> Callable[[int, int], list[Frame]]:
    return lambda i, t_ns: (
        Tcp(user(i), t_ns=t_ns, tags=tags).handshake().say(hello(NAME)).close().frames
    )


def over_ipv6(i: int, t_ns: int) -> list[Frame]:
    return visit(f"2001:db8:7:{i:x}00::1", NAME, t_ns, "2001:db8:ff::1")


def with_options(i: int, t_ns: int) -> list[Frame]:
    options = b"\x94\x04\0\0" + b"\1" * 8
    talk = Tcp(user(i), t_ns=t_ns, options=options)
    return talk.handshake().say(hello(NAME)).close().frames


FRAMES = {
    "plain": plain,
    "802.1Q": tagged(0x8100),
    "QinQ": tagged(0x88A8, 0x8100),
    "two 802.1Q tags": tagged(0x8100, 0x8100),
    "IPv6": over_ipv6,
    "IPv4 options": with_options,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame_is_anonymized_and_counted(kind: str, key_file: str) -> None:
    """Tagged frames and IPv6 were forwarded as they were; options shifted every field."""
    talks = [FRAMES[kind](i, START + i * SECOND) for i in range(4)]
    outcome = run(merged(talks), z=3, key_file=key_file)
    assert outcome.seen().total() == 2
    assert outcome.users == 4
    assert len({flow["client"] for flow in outcome.flows}) == 4
    everything = outcome.everything()
    assert b"10.7." not in everything
    assert b"2001:db8:7:" not in everything
    assert NAME not in run(merged(talks), z=5).everything()


def test_kinds_of_frames_vote_together() -> None:
    talks = [make(i, START + i * SECOND) for i, make in enumerate(FRAMES.values())]
    assert run(merged(talks), z=len(FRAMES)).seen().total() == 1


def test_a_third_tag_is_read_too() -> None:
    talk = tagged(0x88A8, 0x8100, 0x8100)(1, START)
    assert run(talk, z=1).released() == {NAME.decode()}


def test_later_fragments_are_not_read_as_headers() -> None:
    talk = Tcp().handshake()
    data = wire.ethernet(wire.ipv4(b"\0" * 20 + hello(NAME), place=3))
    talk.frames.append(Frame(talk.t_ns, data, len(data)))
    outcome = run(talk.frames, z=1)
    assert outcome.stats["drop_fragment_incomplete"] == 1
    assert not outcome.seen()


def test_two_hosts_behind_one_ipv6_prefix_stay_two_flows() -> None:
    """IPv6 flows were distinguished by the IPv4 fields, which were never set."""
    talks = [visit(f"2001:db8:7::{i}", NAME, START + i * MS, "2001:db8:ff::1") for i in range(1, 4)]
    outcome = run(merged(talks), z=1)
    assert len(outcome.flows) == 3
    assert len({flow["client"] for flow in outcome.flows}) == 3


def test_a_name_is_looked_for_however_popular_its_server_is() -> None:
    """One flag stood for server and name: once the server was public, no name was checked."""
    public = crowd(NAME, 5)
    rare = visit(user(60), b"rare.example", START + MINUTE)
    outcome = run([*public, *rare], z=3)
    assert outcome.stats["addr_released"] == 4
    assert b"rare.example" not in outcome.everything()
    assert outcome.flows[-1]["name_status"] == "suppressed"


def test_times_are_those_of_the_packets() -> None:
    """Whole seconds of the machine's clock made a recording impossible to replay."""
    pair = [visit(user(i), NAME, START + i * HOUR) for i in range(2)]
    assert run(merged(pair), z=2, window_ns=HOUR).seen().total() == 1
    pair[1] = visit(user(1), NAME, START + HOUR + 1)
    assert run(merged(pair), z=2, window_ns=HOUR).seen().total() == 0


def test_flows_that_make_room_for_others_are_counted() -> None:
    talks = [Tcp(user(i), t_ns=START + i).segment(CLIENT, 2).frames for i in range(200)]
    outcome = run(merged(talks), z=1, max_flows=100)
    early = outcome.stats["flows_evicted"]
    assert outcome.stats["drop_flow_table_full"] == 0
    assert len(outcome.flows) == 200
    assert early == sum(flow["early"] for flow in outcome.flows) >= 68
