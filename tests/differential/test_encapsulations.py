# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Every link type and encapsulation: the innermost packet, read by us, by tshark and by dpkt."""

import ipaddress
import struct
from collections.abc import Callable
from typing import Any

import dpkt
import pytest
from frames.link import DROPPED as NO_PACKET
from frames.link import LINKS, Case
from frames.no_tunnel import DROPPED, NO_TUNNEL
from frames.tunnel import DATAGRAMS, TUNNELS
from support import wire
from support.examples import each

from zanon_net import _core

pytestmark = pytest.mark.source

RAW = 101
CASES = {f"link-{name}": case for name, case in LINKS.items()} | TUNNELS


def decoded(frame: bytes, link: int, missing: int = 0) -> dict[str, Any]:
    found = _core.decode_packet(frame, link, len(frame) + missing)
    assert isinstance(found, dict), found
    return found


def split(found: dict[str, Any]) -> tuple[dict[str, Any], set[str], int]:
    """(the packet, its encapsulations, how many tunnels)."""
    packet = {k: v for k, v in found.items() if k not in ("encapsulations", "tunnels")}
    seen = {name.removeprefix("in_") for name in found["encapsulations"]}
    return packet, seen, len(found["tunnels"])


@each("name", CASES)
def test_innermost_packet(name: str) -> None:
    case = CASES[name]
    packet, seen, tunnels = split(decoded(case.frame, case.link))
    assert packet == split(decoded(case.inner, RAW))[0]
    assert seen == set(case.seen.split())
    assert tunnels == case.tunnels


@each("name", CASES)
def test_every_cut_gives_the_same_packet_or_none(name: str) -> None:
    case = CASES[name]
    inner = split(decoded(case.inner, RAW))[0]
    for cut in wire.prefixes(case.frame):
        found = _core.decode_packet(cut, case.link, len(case.frame))
        if isinstance(found, str):
            assert found.startswith("drop_")
            continue
        packet = split(found)[0]
        if packet | {"payload": b""} == inner | {"payload": b""}:
            assert inner["payload"].startswith(packet["payload"])
        else:  # so little of a UDP tunnel is left that it cannot be told: the datagram itself
            assert packet["proto"] == wire.UDP
            assert packet["src"] in ("203.0.113.1", "2001:db8:a::1")


@each("name", CASES)
def test_a_byte_off_by_one_stays_inside_the_frame(name: str) -> None:
    case = CASES[name]
    for _, changed in wire.off_by_one(case.frame):
        found = _core.decode_packet(changed, case.link)
        if isinstance(found, dict):
            assert found.get("payload", found.get("bytes")) in changed


@each("name", NO_PACKET)
def test_frames_without_a_packet(name: str) -> None:
    counter, link, frame = NO_PACKET[name]
    assert _core.decode_packet(frame, link) == counter


@each("name", DROPPED)
def test_dropped(name: str) -> None:
    counter, frame = DROPPED[name]
    assert _core.decode_packet(frame, wire.LINK_ETHERNET) == counter


@each("name", NO_TUNNEL)
def test_a_port_is_no_proof_of_a_tunnel(name: str) -> None:
    found = decoded(NO_TUNNEL[name], wire.LINK_ETHERNET)
    assert (found["src"], found["dst"], found["proto"]) == ("203.0.113.1", "203.0.113.2", wire.UDP)
    assert found["payload"] == NO_TUNNEL[name][42:]
    assert (found["encapsulations"], found["tunnels"]) == ([], [])


KINDS = {1701: "l2tp", 2152: "gtp-u", 3544: "teredo", 4341: "lisp", 4789: "vxlan", 4790: "vxlan"}
KINDS |= {8472: "vxlan", 5072: "ayiya", 5247: "capwap", 6081: "geneve", 6635: "mpls"}
KINDS |= {37008: "tzsp", 7932: "hp-erm", 4754: "gre"}


def ports_of(frame: bytes) -> tuple[int, ...]:
    return struct.unpack(">HH", frame[34:38])


@pytest.mark.parametrize("name", DATAGRAMS)
def test_a_tunnel_on_another_port(name: str) -> None:
    """The same packet is found if the port is given to the tunnel, and the datagram if not."""
    case = DATAGRAMS[name]
    if case.frame[12:14] != b"\x08\0":
        pytest.skip("the outer header is not IPv4 without options")
    known = next(port for port in reversed(ports_of(case.frame)) if port in KINDS)
    for port in (1, 4799, 40001, 65535):
        old, new = known.to_bytes(2, "big"), port.to_bytes(2, "big")
        frame = case.frame[:34] + case.frame[34:38].replace(old, new, 1) + case.frame[38:]
        kind = KINDS[known]
        found = _core.decode_packet(frame, 1, tunnel_ports=[("geneve", 9), (kind, port)])
        assert split(found) == split(decoded(case.frame, 1)), port
        plain = decoded(frame, 1)
        assert (plain["proto"], plain["encapsulations"], plain["tunnels"]) == (wire.UDP, [], [])
        assert port in (plain["sport"], plain["dport"])


def test_a_given_port_goes_before_the_known_one() -> None:
    frame = DATAGRAMS["vxlan"].frame
    assert ports_of(frame)[1] == 4789
    assert _core.decode_packet(frame, 1, tunnel_ports=[("geneve", 4789)])["encapsulations"] == []
    frame = frame[:36] + (6081).to_bytes(2, "big") + frame[38:]
    assert _core.decode_packet(frame, 1, tunnel_ports=[("vxlan", 6081)])["encapsulations"] == [
        "in_vxlan"
    ]


def test_ports_that_are_no_tunnels() -> None:
    frame = DATAGRAMS["vxlan"].frame
    for ports in ([("vxlan", 0)], [("vxlan", 53)], [("vxlan", 1000 + n) for n in range(17)]):
        with pytest.raises(ValueError, match="no port"):
            _core.decode_packet(frame, 1, tunnel_ports=ports)


def test_tunnel_ends_are_reported_outermost_first() -> None:
    found = decoded(TUNNELS["vxlan-in-geneve"].frame, wire.LINK_ETHERNET)
    assert found["tunnels"] == [("203.0.113.1", "203.0.113.2")] * 2
    found = decoded(TUNNELS["minimal-encapsulation-source"].frame, wire.LINK_ETHERNET)
    assert found["tunnels"] == [("203.0.113.1", "203.0.113.2")]
    found = decoded(TUNNELS["6in6"].frame, wire.LINK_ETHERNET)
    assert found["tunnels"] == [("fd00::1", "fd00::2")]


# ---- tshark -------------------------------------------------------------------------------------

# What tshark 4.0 does not read, or reads differently, and why we keep to our reading.
TSHARK_BLIND = {
    # link types and headers that it does not know
    "link-pppd",
    "link-cisco-hdlc-with-direction",
    "link-frame-relay-with-direction",
    "link-broadcom-tag",
    "link-broadcom-tag-before",
    "link-dsa-tag",
    "link-edsa-tag",
    "link-slip",
    "link-sll-wifi",
    "qinq-9200",
    "edsa-ethertype",
    "arista-version-11",
    "arista-version-21",
    "arista-802.3",
    "minimal-encapsulation",
    "minimal-encapsulation-source",
    "vxlan-linux-port",
    # takes a capture's numbers to be in the order of its file
    "link-nflog-big-endian",
    # ignores or obeys a bit, by preference: Protected in captures that are decrypted, and the frame
    # control of Cisco's CAPWAP, which is swapped
    "link-wifi-decrypted",
    "capwap-wifi",
    # reads the further packets of an A-MSDU too, and the last one is asked for
    "link-wifi-amsdu",
    # guesses the control word by a MAC address that starts with 0
    "pseudowire",
    "pseudowire-control-word",
    "pseudowire-control-word-or-length",
    "pseudowire-in-udp",
    "pseudowire-in-udp-control-word",
    "pseudowire-in-udp-control-word-or-length",
    "pseudowire-sequence",
    "pseudowire-vlan",
}
FIELDS = {"v4 src": "ip.src", "v4 dst": "ip.dst", "v6 src": "ipv6.src", "v6 dst": "ipv6.dst"}
FIELDS |= {"tcp sport": "tcp.srcport", "tcp dport": "tcp.dstport", "udp sport": "udp.srcport"}
FIELDS |= {"udp dport": "udp.dstport", "protocols": "frame.protocols"}
# IPv6 has this one, too. In the protocols, tshark 4.4 lists no IP header behind MPLS, and 4.6 calls
# IPv6 behind GTP `ip`.
FIELDS |= {"version": "ip.version"}
Ends = tuple[str, str, int, int, int]


def tsharks(row: dict[str, str]) -> Ends | None:
    """The last TCP or UDP header and the last IP header."""
    protocols = row["protocols"].split(":")
    transports = [name for name in protocols if name in ("tcp", "udp")]
    if not transports:
        return None
    kind = transports[-1]
    ip = f"v{row['version']}"
    ports = (row[f"{kind} sport"], row[f"{kind} dport"])
    return row[f"{ip} src"], row[f"{ip} dst"], *map(int, ports), 6 if kind == "tcp" else 17


def ours(case: Case) -> Ends:
    found = decoded(case.frame, case.link)
    return tuple(found[name] for name in ("src", "dst", "sport", "dport", "proto"))  # type: ignore[return-value]


def test_tshark_agrees(tshark: Callable[..., list[dict[str, str]]]) -> None:
    names = sorted(CASES.keys() - TSHARK_BLIND)
    assert len(names) > 150
    cases = [CASES[name] for name in names]
    rows = tshark([case.frame for case in cases], [case.link for case in cases], FIELDS)
    theirs = {name: tsharks(row) for name, row in zip(names, rows, strict=True)}
    assert {name: ours(CASES[name]) for name in names} == theirs


# ---- dpkt ---------------------------------------------------------------------------------------

DPKT_READS = ["vlan", "qinq", "mpls", "mpls-three-labels", "pppoe", "pppoe-ipv6", "4in4", "6in4"]
DPKT_READS += ["4in6", "6in6", "gre", "gre-checksum", "gre-key", "link-ethernet", "link-ieee-802.3"]


@each("name", DPKT_READS)
def test_dpkt_agrees(name: str) -> None:
    layer: Any = dpkt.ethernet.Ethernet(CASES[name].frame)
    ip = transport = None
    while not isinstance(layer, bytes):
        if isinstance(layer, dpkt.ip.IP | dpkt.ip6.IP6):
            ip = layer
        if isinstance(layer, dpkt.tcp.TCP | dpkt.udp.UDP):
            transport = layer
            break
        layer = layer.data
    assert ip is not None
    assert transport is not None
    ends = (str(ipaddress.ip_address(ip.src)), str(ipaddress.ip_address(ip.dst)))
    number = 6 if isinstance(transport, dpkt.tcp.TCP) else 17
    assert ours(CASES[name]) == (*ends, transport.sport, transport.dport, number)
