# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Multicast groups in packets: shown if z users share them or all hosts know them."""

import struct
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

import pytest
from oracle.packet_addresses import NETWORKS, held
from support import wire
from support.engine import nets, run
from support.examples import each
from support.packet_run import emitted
from support.packets import SECOND, SERVER_ADDRESS, START, Frame, Udp, merged, to_ip, user
from support.tunnel import tunnelled, vxlan

pytestmark = pytest.mark.source

IGMP, ICMP, PIM, SCTP = 2, 1, 103, 132
JOINS = {"v1": 0x12, "v2": 0x16, "leave": 0x17, "query": 0x11}
RARE = ("225.5.6.7", "232.5.6.7", "233.252.0.9", "234.10.7.1", "239.77.66.55", "224.0.1.38")
RARE += ("224.0.1.200", "224.0.2.2", "224.2.127.254")
RARE6 = ("ff02::7766", "ff05::7766", "ff08::4321:1234", "ff0e::7766", "ff15::1", "ff3e::1")
KNOWN = ("224.0.0.1", "224.0.0.200", "224.0.1.1", "224.0.1.129", "224.0.1.190", "255.255.255.255")
KNOWN6 = ("ff01::1", "ff02::1", "ff02::fb", "ff02::1:2")
INTERNAL = nets("10.0.0.0/8", "fd00::/8")
GROUPS = [net for net, block in NETWORKS if block == "group"]


def frame_of(payload: bytes, protocol: int, ends: tuple[str, str], t_ns: int = START) -> Frame:
    data = wire.ethernet(*to_ip(payload, protocol, ends))
    return Frame(t_ns, data, len(data))


def client_of(group: str, n: int = 1) -> str:
    return f"fd00:0:0:{n}00::1" if ":" in group else user(n)


def stream(group: str, n: int = 1, t_ns: int = START) -> list[Frame]:
    """Datagrams to a group."""
    talk = Udp(client_of(group, n), group, (5004, 5004), t_ns)
    return talk.send(bytes(20)).send(bytes(20)).frames


def targets(frames: Sequence[Frame], place: str = "ip") -> list[str]:
    """The destinations of packets, or of what is around them."""
    return [
        str([one.address for one in held(frame.data) if one.place == place][1]) for frame in frames
    ]


def is_hidden(group: str, shown: Sequence[str]) -> bool:
    """Whether one address of the block of groups replaces the group in all packets."""
    one = ip_address(shown[0])
    same_family = [net for net in GROUPS if net.version == ip_address(group).version]
    return {*shown} == {shown[0]} != {group} and any(one in net for net in same_family)


SETTINGS: list[dict[str, Any]] = [
    {},
    {"server_addresses": 1},
    {"server_addresses": 2},
    {"established": False},
    {"internal": None},
    {"exact": True},
]


@each("settings", SETTINGS)
@each("group", [*RARE, *RARE6])
def test_a_group_of_one_user_is_replaced(group: str, settings: dict[str, Any]) -> None:
    out = emitted(stream(group), **({"z": 20, "internal": INTERNAL} | settings))
    assert len(out.frames) == 2
    assert is_hidden(group, targets(out.frames))
    assert not any(ip_address(group).packed in frame.data for frame in out.frames)


@pytest.mark.parametrize("group", [*KNOWN, *KNOWN6])
def test_a_group_that_all_hosts_know_stays(group: str) -> None:
    out = emitted(stream(group), z=20, internal=INTERNAL, server_addresses=1)
    assert targets(out.frames) == [group] * 2


def test_with_all_networks_internal_a_group_stays_one() -> None:
    everywhere = nets("0.0.0.0/0", "::/0")
    out = emitted(stream(RARE[0]), z=20, internal=everywhere, wide_addresses=True)
    assert is_hidden(RARE[0], targets(out.frames))


@pytest.mark.parametrize("group", ["232.5.6.7", "ff05::7766"])
def test_a_group_that_users_share_is_shown_by_packets_and_records(group: str) -> None:
    """Only without evidence: a datagram to a group proves no user."""
    frames = merged(stream(group, n, START + n * SECOND) for n in range(1, 5))
    for established, first_shown in ((False, 3), (True, 5)):
        given = {"z": 3, "established": established, "internal": INTERNAL}
        shown = targets(emitted(frames, **given).frames)
        expected = [n >= first_shown for n in range(1, 5) for _ in range(2)]
        assert [one == group for one in shown] == expected
        servers = [flow["server"] for flow in run(frames, **given).flows]
        assert servers == [group if n >= first_shown else None for n in range(1, 5)]


@pytest.mark.parametrize("group", ["234.10.7.1", "ff3e:40:fd00::1", "ff02::1:ff00:7", "224.0.1.1"])
def test_a_group_that_holds_a_prefix_or_is_known_is_no_attribute(group: str) -> None:
    frames = merged(stream(group, n, START + n * SECOND) for n in range(1, 5))
    outcome = run(frames, z=2, established=False, internal=INTERNAL)
    assert [flow["server"] for flow in outcome.flows] == [None] * 4
    shown = targets(emitted(frames, z=2, established=False, internal=INTERNAL).frames)
    assert (group in shown) == (group in KNOWN)


def test_one_user_has_one_pseudonym_of_a_group_and_two_have_two() -> None:
    frames = merged(stream(RARE[0], n, START + i * SECOND) for i, n in enumerate((1, 2, 1)))
    one, _, two, _, again, _ = targets(emitted(frames, z=20).frames)
    assert one == again != two


@pytest.mark.parametrize("version", JOINS)
def test_messages_of_igmp_hold_no_group(version: str) -> None:
    """Neither as destination nor in the body."""
    group = "239.77.66.55"
    body = struct.pack(">BBH4s", JOINS[version], 0, 0, ip_address(group).packed)
    target = "224.0.0.2" if version == "leave" else group
    frames = [frame_of(body, IGMP, (user(1), target))]
    others = {PIM: body, SCTP: body, ICMP: b"\x08\0" + bytes(30)}
    frames += [frame_of(one, protocol, (user(1), group)) for protocol, one in others.items()]
    frames += stream(group)
    out = emitted(frames, z=20, internal=INTERNAL)
    assert len(out.frames) == 6
    assert not any(ip_address(group).packed in frame.data for frame in out.frames)
    shown = targets(out.frames)
    assert is_hidden(group, shown[version == "leave" :])  # one pseudonym, in flows and without
    assert (shown[0] == target) == (version == "leave")


def test_a_report_of_version_3_holds_no_group() -> None:
    group = ip_address("239.77.66.55").packed
    report = b"\x22\0\0\0\0\0\0\1" + b"\4\0\0\0" + group
    out = emitted([frame_of(report, IGMP, (user(1), "224.0.0.22"))], z=20)
    assert targets(out.frames) == ["224.0.0.22"]
    assert group not in out.frames[0].data


@pytest.mark.parametrize("group", ["239.200.1.2", "232.5.6.7"])
def test_a_group_around_packets_is_replaced(group: str) -> None:
    inner = Udp(user(1), SERVER_ADDRESS, (5000, 9999)).send(b"inside").frames
    frames = tunnelled(inner, user(1), "10.1.0.1", group, vxlan)
    out = emitted(frames, z=20, internal=INTERNAL, keep_encapsulation=True)
    assert is_hidden(group, targets(out.frames, "outer"))
    known = tunnelled(inner, user(1), "10.1.0.1", "224.0.1.1", vxlan)
    out = emitted(known, z=20, internal=INTERNAL, keep_encapsulation=True)
    assert targets(out.frames, "outer") == ["224.0.1.1"]


@pytest.mark.parametrize("target", ["169.254.7.7", "127.0.0.9", "0.0.0.0"])
def test_other_special_addresses_stay_away(target: str) -> None:
    """Also if an error quotes them."""
    talk = Udp(user(1), target, (5000, 9999)).send(b"to somebody near")
    quote = b"\3\1" + bytes(6) + talk.frames[0].data[14:42]
    error = frame_of(quote, ICMP, ("198.51.100.1", user(1)), START + SECOND)
    out = emitted([*talk.frames, error], z=20, exact=True, internal=INTERNAL)
    assert out.stats["packets_dropped_local"] == 1
    quoted = [one.address for frame in out.frames for one in held(frame.data)]
    assert ip_address(target) not in quoted
