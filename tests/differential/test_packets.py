# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Frames built by scapy, read by us, by dpkt and by tshark."""

import ipaddress
from collections.abc import Callable, Sequence
from typing import Any

import dpkt
import pytest
from scapy.layers.inet import IP, TCP, UDP, IPOption_RR, IPOption_Timestamp, fragment
from scapy.layers.inet6 import (
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PadN,
)
from scapy.layers.ipsec import AH
from scapy.layers.l2 import LLC, SNAP, CookedLinux, Dot1AD, Dot1Q, Dot3, Ether, Loopback
from scapy.packet import Packet, Raw
from support.examples import each

from zanon_net import _core

pytestmark = pytest.mark.source

NULL, ETHERNET, RAW, SLL, IPV4, IPV6 = 0, 1, 101, 113, 228, 229
MACS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
V4 = IP(src="10.1.0.0", dst="192.0.2.9", ttl=57)
V6 = IPv6(src="2001:db8::1:0", dst="fd00::9", hlim=33)
T = TCP(sport=51000, dport=443, seq=0xFEDCBA98, ack=7, flags="PA", window=501) / Raw(b"payload")
S = TCP(sport=443, dport=51000, seq=1, ack=2, flags="SA", options=[("MSS", 1460), ("WScale", 7)])
U = UDP(sport=51000, dport=4433) / Raw(b"datagram")
PADDED = [PadN(optdata=b"\0" * 4)]

CASES: dict[str, tuple[int, Packet]] = {
    "tcp": (ETHERNET, Ether(**MACS) / V4 / T),
    "tcp-options": (ETHERNET, Ether(**MACS) / V4 / S),
    "udp": (ETHERNET, Ether(**MACS) / V4 / U),
    "ipv6-tcp": (ETHERNET, Ether(**MACS) / V6 / T),
    "ipv6-udp": (ETHERNET, Ether(**MACS) / V6 / U),
    "no-payload": (ETHERNET, Ether(**MACS) / V4 / UDP(sport=1, dport=2)),
    "fin": (ETHERNET, Ether(**MACS) / V4 / TCP(sport=1, dport=2, flags="FA")),
    "rst": (ETHERNET, Ether(**MACS) / V4 / TCP(sport=1, dport=2, flags="R")),
    "vlan": (ETHERNET, Ether(**MACS) / Dot1Q(vlan=7) / V4 / T),
    "vlan-ipv6": (ETHERNET, Ether(**MACS) / Dot1Q(vlan=7) / V6 / U),
    "qinq": (ETHERNET, Ether(**MACS) / Dot1AD(vlan=7) / Dot1Q(vlan=8) / V4 / T),
    "two-vlans": (ETHERNET, Ether(**MACS) / Dot1Q(vlan=7) / Dot1Q(vlan=8) / V6 / T),
    "llc-snap": (ETHERNET, Dot3(**MACS) / LLC() / SNAP() / V4 / T),
    "sll": (SLL, CookedLinux() / V4 / T),
    "sll-ipv6": (SLL, CookedLinux() / V6 / U),
    "null-ipv4": (NULL, Loopback(type=2) / V4 / T),
    "null-ipv6": (NULL, Loopback(type=30) / V6 / U),
    "raw-ipv4": (RAW, V4 / U),
    "raw-ipv6": (RAW, V6 / T),
    "link-ipv4": (IPV4, V4 / T),
    "link-ipv6": (IPV6, V6 / T),
    "record-route": (
        ETHERNET,
        Ether(**MACS) / IP(src="1.2.3.4", dst="5.6.7.8", options=[IPOption_RR()]) / T,
    ),
    "timestamp": (
        ETHERNET,
        Ether(**MACS) / IP(src="1.2.3.4", dst="5.6.7.8", options=[IPOption_Timestamp()]) / U,
    ),
    "hop-by-hop": (ETHERNET, Ether(**MACS) / V6 / IPv6ExtHdrHopByHop(options=PADDED) / T),
    "destination": (ETHERNET, Ether(**MACS) / V6 / IPv6ExtHdrDestOpt(options=PADDED) / U),
    "routing": (RAW, V6 / IPv6ExtHdrRouting(addresses=["fd00::9"], segleft=0) / T),
    "several-extensions": (
        RAW,
        V6
        / IPv6ExtHdrHopByHop()
        / IPv6ExtHdrDestOpt()
        / IPv6ExtHdrRouting()
        / IPv6ExtHdrDestOpt()
        / U,
    ),
    "atomic-fragment": (RAW, V6 / IPv6ExtHdrFragment(id=7) / T),
    "ah": (RAW, V4 / AH(nh=6, payloadlen=4, icv=b"\0" * 12) / T),
    "ah-ipv6": (RAW, V6 / AH(nh=17, payloadlen=4, icv=b"\0" * 12) / U),
    "multicast": (ETHERNET, Ether(**MACS) / IP(src="10.0.0.1", dst="224.0.0.251") / U),
    "same-host": (ETHERNET, Ether(**MACS) / IP(src="10.0.0.1", dst="10.0.0.1") / T),
}
FRAMES = {name: (link, bytes(built)) for name, (link, built) in CASES.items()}
FRAMES["padding"] = (ETHERNET, FRAMES["fin"][1].ljust(60, b"\0"))
FRAMES["padding-of-bytes"] = (ETHERNET, FRAMES["fin"][1].ljust(60, b"\xff"))

Facts = tuple[str, str, int, int, int, int, int, int, int]


def ours(frame: bytes, link: int) -> Facts:
    found = _core.decode_packet(frame, link)
    assert isinstance(found, dict), found
    names = ("src", "dst", "sport", "dport", "proto", "ttl", "seq", "flags", "payload_len")
    assert len(found["payload"]) == found["payload_len"]
    return tuple(found[name] for name in names)  # type: ignore[return-value]


DPKT_LINKS: dict[int, Callable[[bytes], Any]] = {
    NULL: lambda frame: dpkt.loopback.Loopback(frame).data,
    ETHERNET: lambda frame: dpkt.ethernet.Ethernet(frame).data,
    SLL: lambda frame: dpkt.sll.SLL(frame).data,
    IPV4: dpkt.ip.IP,
    IPV6: dpkt.ip6.IP6,
    RAW: lambda frame: (dpkt.ip.IP if frame[0] >> 4 == 4 else dpkt.ip6.IP6)(frame),
}


def dpkts(frame: bytes, link: int) -> Facts:
    ip = DPKT_LINKS[link](frame)
    if isinstance(ip, dpkt.llc.LLC):
        ip = ip.data
    transport = ip.data
    tcp = isinstance(transport, dpkt.tcp.TCP)
    return (
        str(ipaddress.ip_address(ip.src)),
        str(ipaddress.ip_address(ip.dst)),
        transport.sport,
        transport.dport,
        6 if tcp else 17,
        ip.ttl if isinstance(ip, dpkt.ip.IP) else ip.hlim,
        transport.seq if tcp else 0,
        transport.flags if tcp else 0,
        len(transport.data),
    )


DPKT_BLIND = {"ah"}  # dpkt does not look behind AH in IPv4


@each("name", sorted(FRAMES.keys() - DPKT_BLIND))
def test_dpkt_agrees(name: str) -> None:
    link, frame = FRAMES[name]
    assert ours(frame, link) == dpkts(frame, link)


FIELDS = {"v4 src": "ip.src", "v4 dst": "ip.dst", "v6 src": "ipv6.src", "v6 dst": "ipv6.dst"}
FIELDS |= {"tcp sport": "tcp.srcport", "tcp dport": "tcp.dstport", "udp sport": "udp.srcport"}
FIELDS |= {"udp dport": "udp.dstport", "v4 ttl": "ip.ttl", "v6 ttl": "ipv6.hlim"}
FIELDS |= {
    "seq": "tcp.seq_raw",
    "flags": "tcp.flags",
    "tcp len": "tcp.len",
    "udp len": "udp.length",
}


def tsharks(row: dict[str, str]) -> Facts:
    ip, transport = "v4" if row["v4 src"] else "v6", "tcp" if row["tcp sport"] else "udp"
    tcp = transport == "tcp"
    return (
        row[f"{ip} src"],
        row[f"{ip} dst"],
        int(row[f"{transport} sport"]),
        int(row[f"{transport} dport"]),
        6 if tcp else 17,
        int(row[f"{ip} ttl"]),
        int(row["seq"]) if tcp else 0,
        int(row["flags"], 16) if tcp else 0,
        int(row["tcp len"]) if tcp else int(row["udp len"]) - 8,
    )


def test_tshark_agrees(tshark: Callable[..., list[dict[str, str]]]) -> None:
    names = list(FRAMES)
    links = [FRAMES[name][0] for name in names]
    rows = tshark([FRAMES[name][1] for name in names], links, FIELDS)
    theirs = {name: tsharks(row) for name, row in zip(names, rows, strict=True)}
    assert {name: ours(*reversed(FRAMES[name])) for name in names} == theirs


DROPPED: dict[str, tuple[str, Packet | bytes]] = {
    "arp": ("drop_not_ip", Ether(**MACS, type=0x0806) / Raw(bytes(28))),
    "icmp": ("drop_not_tcp_udp", Ether(**MACS) / IP(proto=1) / Raw(bytes(8))),
}


@pytest.mark.parametrize("name", DROPPED)
def test_dropped(name: str) -> None:
    counter, frame = DROPPED[name]
    assert _core.decode_packet(bytes(frame), ETHERNET) == counter


def test_fragments_of_a_datagram() -> None:
    datagram = UDP(sport=5, dport=6) / Raw(bytes(range(250)) * 12)
    pieces: Sequence[Packet] = fragment(V4 / datagram, 1480)
    found = [_core.decode_packet(bytes(piece), RAW) for piece in pieces]
    assert [(f["offset"], f["more"]) for f in found if isinstance(f, dict)] == [
        (0, True),
        (1480, True),
        (2960, False),
    ]
    assert b"".join(f["bytes"] for f in found if isinstance(f, dict))[8:] == bytes(datagram)[8:]
