# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The links that a conversation can be captured on, and the tunnels that it can go through."""

import struct
from collections.abc import Callable

from scapy.contrib.geneve import GENEVE
from scapy.contrib.gtp import GTP_U_Header
from scapy.contrib.mpls import MPLS
from scapy.layers.dot11 import Dot11, RadioTap
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import (
    GRE,
    LLC,
    SNAP,
    CookedLinux,
    CookedLinuxV2,
    Dot1AD,
    Dot1Q,
    Dot3,
    Ether,
    Loopback,
)
from scapy.layers.l2tp import L2TP
from scapy.layers.ppp import HDLC, PPP, PPPoE
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

ETHERNET, RAW = 1, 101
MACS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
E = Ether(**MACS)
WIFI = Dot11(type=2, FCfield=1, **{f"addr{n}": f"02:00:00:00:00:0{n}" for n in (1, 2, 3)})
Wrap = Callable[[Packet], Packet]


def ethertype(packet: Packet) -> int:
    return 0x86DD if IPv6 in packet else 0x800


def outer(packet: Packet) -> Packet:
    """An IPv4 header in the direction of the packet, between gateways."""
    ends = "203.0.113.1", "203.0.113.2"
    away = str(packet.src).startswith(("10.9.", "fd00:"))
    return IP(src=ends[not away], dst=ends[away], id=1)


def outer6(packet: Packet) -> Packet:
    """The same of IPv6."""
    v4 = outer(packet)
    return IPv6(src=f"2001:db8:a::{v4.src[-1]}", dst=f"2001:db8:a::{v4.dst[-1]}")


def in_udp(packet: Packet, port: int, inner: Packet) -> Packet:
    return E / outer(packet) / UDP(sport=60000 + port % 5000, dport=port) / inner


def framed(packet: Packet) -> Packet:
    """The packet as a frame of the user's own network."""
    return Ether(src="02:00:00:00:01:01", dst="02:00:00:00:01:02", type=ethertype(packet)) / packet


def sll2(packet: Packet) -> Packet:
    return CookedLinuxV2(proto=ethertype(packet), lladdrtype=1) / packet


def nflog(packet: Packet) -> Packet:
    data = bytes(packet)
    value = struct.pack("<HH", 4 + len(data), 9) + data + bytes(-len(data) % 4)
    return Raw(bytes([10 if IPv6 in packet else 2, 0, 0, 3]) + value)


def pppoe(packet: Packet) -> Packet:
    inner = PPP(proto=0x57 if IPv6 in packet else 0x21) / packet
    return PPPoE(sessionid=7, len=len(inner)) / inner


def fddi(packet: Packet) -> Packet:
    return Raw(b"\x50" + bytes(12)) / LLC() / SNAP(code=ethertype(packet)) / packet


def arcnet(packet: Packet) -> Packet:
    return Raw(b"\1\2" + (b"\xc4" if IPv6 in packet else b"\xd4") + b"\0\0\7") / packet


LINKS: dict[str, tuple[int, Wrap]] = {
    "ethernet": (ETHERNET, framed),
    "ieee-802.3": (ETHERNET, lambda p: Dot3(**MACS) / LLC() / SNAP(code=ethertype(p)) / p),
    "null": (0, lambda p: Loopback(type=24 if IPv6 in p else 2) / p),
    "raw-ip": (RAW, lambda p: p),
    "ppp": (9, lambda p: HDLC() / PPP(proto=0x57 if IPv6 in p else 0x21) / p),
    "cisco-hdlc": (104, lambda p: Raw(b"\x0f\0" + struct.pack(">H", ethertype(p))) / p),
    "frame-relay": (107, lambda p: Raw(b"\x18\x41\x03" + (b"\x8e", b"\xcc")[IP in p]) / p),
    "cooked": (113, lambda p: CookedLinux(lladdrtype=1, proto=ethertype(p)) / p),
    "cooked-2": (276, sll2),
    "wifi": (105, lambda p: WIFI / LLC() / SNAP(code=ethertype(p)) / p),
    "radiotap": (127, lambda p: RadioTap() / WIFI / LLC() / SNAP(code=ethertype(p)) / p),
    "ppi": (192, lambda p: Raw(struct.pack("<BBHI", 0, 0, 8, 105)) / LINKS["wifi"][1](p)),
    "nflog": (239, nflog),
    "fddi": (10, fddi),
    "arcnet": (7, arcnet),
    "enc": (109, lambda p: Raw(struct.pack("<III", 24 if IPv6 in p else 2, 7, 0)) / p),
}

TUNNELS: dict[str, Wrap] = {
    "vlan": lambda p: E / Dot1Q(vlan=7, type=ethertype(p)) / p,
    "qinq": lambda p: E / Dot1AD(vlan=7) / Dot1Q(vlan=8, type=ethertype(p)) / p,
    "pbb": lambda p: E / Dot1AD(vlan=7, type=0x88E7) / Raw(b"\0\0\0\7") / framed(p),
    "mpls": lambda p: E / MPLS(label=1000, s=0) / MPLS(label=1001, s=1) / p,
    "pppoe": lambda p: Ether(**MACS, type=0x8864) / pppoe(p),
    "gre": lambda p: E / outer(p) / GRE(proto=ethertype(p)) / p,
    "gre-key": lambda p: E / outer(p) / GRE(proto=ethertype(p), key_present=1, key=9) / p,
    "nvgre": lambda p: E / outer(p) / GRE(proto=0x6558, key_present=1, key=9) / framed(p),
    "erspan": lambda p: (
        E / outer(p) / GRE(proto=0x88BE, seqnum_present=1) / Raw(b"\x10" + bytes(7)) / framed(p)
    ),
    "ip-in-ip": lambda p: E / outer(p) / p,
    "ip-in-ipv6": lambda p: E / outer6(p) / p,
    "vxlan": lambda p: in_udp(p, 4789, VXLAN(vni=7) / framed(p)),
    "geneve": lambda p: in_udp(p, 6081, GENEVE(vni=7, proto=0x6558) / framed(p)),
    "geneve-ip": lambda p: in_udp(p, 6081, GENEVE(vni=7, proto=ethertype(p)) / p),
    "mpls-in-udp": lambda p: in_udp(p, 6635, MPLS(label=1000, s=1) / p),
    "gre-in-udp": lambda p: in_udp(p, 4754, GRE(proto=ethertype(p)) / p),
    "gtp": lambda p: in_udp(p, 2152, GTP_U_Header(teid=7, gtp_type=255, length=len(p)) / p),
    "l2tp": lambda p: in_udp(p, 1701, L2TP(hdr=0, tunnel_id=3, session_id=4) / PPP() / p),
    "nsh": lambda p: (
        Ether(**MACS, type=0x894F) / Raw(bytes([15, 0xC2, 2, 1 + (IPv6 in p)]) + b"\0\0\0\xff") / p
    ),
    "vxlan-in-gre": lambda p: (
        E / outer(p) / GRE(proto=0x800) / in_udp(p, 4789, VXLAN(vni=7) / framed(p))[IP]
    ),
}
