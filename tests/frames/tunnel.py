# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""One frame of each encapsulation, around the same packets; scapy makes the headers it knows."""

import struct

from scapy.contrib.erspan import ERSPAN_I, ERSPAN_II, ERSPAN_III
from scapy.contrib.etherip import EtherIP
from scapy.contrib.geneve import GENEVE, GeneveOptions
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.contrib.mpls import MPLS
from scapy.contrib.nsh import NSH
from scapy.contrib.tzsp import TZSP, TZSPTagEnd, TZSPTagPadding, TZSPTagRawRSSIByte
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt
from scapy.layers.ipsec import AH
from scapy.layers.l2 import GRE, Dot1AD, Dot1AH, Dot1Q, Ether
from scapy.layers.l2tp import L2TP
from scapy.layers.ppp import PPP, PPPoE
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

from frames.link import DATA as WIFI_DATA
from frames.link import ETHER4, MACS, RAW_MACS, SNAP4, SWAPPED, T4, T6, U4, U6, Case

E = Ether(**MACS)
O4 = IP(src="203.0.113.1", dst="203.0.113.2")
O6 = IPv6(src="2001:db8:a::1", dst="2001:db8:a::2")


def tags(*types: int) -> bytes:
    """EtherTypes of 802.1Q's form, each with four bytes."""
    return b"".join(struct.pack(">HH", kind, 7) for kind in types)


def on_ethernet(kind: int, rest: Packet | bytes, inner: bytes, seen: str, tunnels: int = 0) -> Case:
    """A frame of an EtherType."""
    return Case(1, RAW_MACS + struct.pack(">H", kind) + bytes(rest), inner, seen, tunnels)


def in_ip(protocol: int, rest: Packet | bytes, inner: bytes, seen: str, tunnels: int = 1) -> Case:
    """A frame with an IPv4 packet of a protocol."""
    outer = IP(src="203.0.113.1", dst="203.0.113.2", proto=protocol) / Raw(bytes(rest))
    return Case(1, bytes(E / outer), inner, seen, tunnels)


def in_udp(port: int, rest: Packet | bytes, inner: bytes, seen: str, tunnels: int = 1) -> Case:
    """A frame with a datagram to a port."""
    # No two tunnels share a port: tshark takes a port for the tunnel that it saw there before.
    outer = O4 / UDP(sport=40000 + port % 10000, dport=port) / Raw(bytes(rest))
    return Case(1, bytes(E / outer), inner, seen, tunnels)


# ---- between Ethernet and IP --------------------------------------------------------------------

M1 = bytes(MPLS(label=100, s=1))
VIRTUAL_MACS = bytes.fromhex("525400000002525400140001")
M3 = bytes(MPLS(label=7, s=0) / MPLS(label=8, s=0) / MPLS(label=9, s=1))
PPPOE = bytes(PPPoE(sessionid=7, len=2 + len(T4)) / PPP(proto=0x21))
PPPOE6 = bytes(PPPoE(sessionid=7, len=2 + len(T6)) / PPP(proto=0x57))
ARISTA48 = b"\0\1\0\x20" + bytes(6)
ARISTA64 = b"\0\1\0\x10" + bytes(8)
ERM = bytes(8) + b"\x80\0\0\7"
NSH_BASE = struct.pack(">HBBI", 0x0FC2, 2, 1, 0xFF)

LAYER2 = {
    "vlan": on_ethernet(0x8100, b"\0\7\x08\x00" + T4, T4, "vlan"),
    "qinq": Case(1, bytes(E / Dot1AD(vlan=7) / Dot1Q(vlan=8, type=0x800)) + T4, T4, "vlan"),
    "qinq-old": Case(1, RAW_MACS + tags(0x9100, 0x8100) + b"\x86\xdd" + T6, T6, "vlan"),
    "qinq-9200": Case(1, RAW_MACS + tags(0x9200, 0x9300) + b"\x08\x00" + U4, U4, "vlan"),
    "five-vlans": Case(1, RAW_MACS + tags(*[0x8100] * 5) + b"\x08\x00" + T4, T4, "vlan"),
    "vlan-llc": on_ethernet(
        0x8100, b"\0\7" + struct.pack(">H", 8 + len(T4)) + WIFI_DATA[24:32] + T4, T4, "vlan llc"
    ),
    "pbb": Case(1, bytes(E / Dot1AH(isid=9)) + ETHER4, T4, "pbb"),
    "pbb-tagged": Case(
        1,
        RAW_MACS + tags(0x88A8) + b"\x88\xe7\0\0\0\7" + RAW_MACS + tags(0x8100) + b"\x08\0" + T4,
        T4,
        "vlan pbb",
    ),
    "mpls": on_ethernet(0x8847, M1 + T4, T4, "mpls"),
    "mpls-ipv6": on_ethernet(0x8847, M1 + U6, U6, "mpls"),
    "mpls-multicast": on_ethernet(0x8848, M1 + U4, U4, "mpls"),
    "mpls-three-labels": on_ethernet(0x8847, M3 + T4, T4, "mpls"),
    "mpls-ten-labels": on_ethernet(0x8847, b"\0\0\x10\x40" * 9 + M1 + T4, T4, "mpls"),
    "mpls-vlan": Case(1, RAW_MACS + tags(0x8100) + b"\x88\x47" + M1 + T4, T4, "vlan mpls"),
    "pseudowire": on_ethernet(0x8847, M1 + ETHER4, T4, "mpls pseudowire"),
    "pseudowire-control-word": on_ethernet(0x8847, M1 + bytes(4) + ETHER4, T4, "mpls pseudowire"),
    # two bytes of the source's address could be a length, and a frame without the control word
    "pseudowire-control-word-or-length": on_ethernet(
        0x8847, M1 + bytes(4) + VIRTUAL_MACS + b"\x08\x00" + T4, T4, "mpls pseudowire"
    ),
    "pseudowire-sequence": on_ethernet(0x8847, M3 + b"\0\0\0\x21" + ETHER4, T4, "mpls pseudowire"),
    "pseudowire-vlan": on_ethernet(
        0x8847,
        M1 + bytes(4) + RAW_MACS + tags(0x8100) + b"\x86\xdd" + T6,
        T6,
        "vlan mpls pseudowire",
    ),
    "pppoe": on_ethernet(0x8864, PPPOE + T4, T4, "ppp pppoe"),
    "pppoe-ipv6": on_ethernet(0x8864, PPPOE6 + T6, T6, "ppp pppoe"),
    "pppoe-qinq": Case(
        1, RAW_MACS + tags(0x88A8, 0x8100) + b"\x88\x64" + PPPOE + T4, T4, "vlan ppp pppoe"
    ),
    "pppoe-padded": on_ethernet(0x8864, PPPOE + T4 + bytes(20), T4, "ppp pppoe"),
    "nsh": on_ethernet(0x894F, NSH_BASE + T4, T4, "nsh"),
    "nsh-of-scapy": on_ethernet(0x894F, bytes(NSH(mdtype=1, nextproto=1)) + T4, T4, "nsh"),
    "nsh-ethernet": on_ethernet(0x894F, bytes(NSH(mdtype=1, nextproto=3)) + ETHER4, T4, "nsh"),
    "nsh-in-nsh": on_ethernet(
        0x894F, NSH_BASE[:3] + b"\4" + NSH_BASE[4:] + NSH_BASE + T4, T4, "nsh"
    ),
    "nsh-mpls": on_ethernet(0x894F, NSH_BASE[:3] + b"\5" + NSH_BASE[4:] + M1 + T4, T4, "mpls nsh"),
    "macsec-clear": on_ethernet(0x88E5, b"\x00\x00\0\0\0\1\x08\x00" + T4 + bytes(16), T4, "macsec"),
    "macsec-clear-with-sender": on_ethernet(
        0x88E5, b"\x20\x00\0\0\0\1" + bytes(8) + b"\x08\x00" + T4 + bytes(16), T4, "macsec"
    ),
    "vn-tag": on_ethernet(0x8926, bytes(4) + b"\x08\x00" + T4, T4, "switch_tag"),
    "vn-tag-vlan": on_ethernet(
        0x8926, bytes(4) + tags(0x8100) + b"\x08\0" + T4, T4, "vlan switch_tag"
    ),
    "e-tag": on_ethernet(0x893F, bytes(6) + b"\x08\x00" + T4, T4, "switch_tag"),
    "r-tag": on_ethernet(0xF1C1, bytes(4) + b"\x08\x00" + T4, T4, "switch_tag"),
    "hsr": on_ethernet(0x892F, b"\x00\x40\0\7\x08\x00" + T4, T4, "switch_tag"),
    "sgt": on_ethernet(0x8909, b"\1\1\0\1\0\x63\x08\x00" + T4, T4, "switch_tag"),
    "edsa-ethertype": on_ethernet(0xDADA, b"\0\0\x40\x08\0\1\x08\x00" + T4, T4, "switch_tag"),
    "arista-48": on_ethernet(0xD28B, ARISTA48 + b"\x08\0" + T4, T4, "switch_tag"),
    "arista-64": on_ethernet(0xD28B, ARISTA64 + b"\x86\xdd" + T6, T6, "switch_tag"),
    **{
        f"arista-version-{version:x}": on_ethernet(
            0xD28B,
            struct.pack(">HH", 1, version) + bytes(size) + b"\x08\0" + T4,
            T4,
            "switch_tag",
        )
        for version, size in ((0x11, 8), (0x110, 8), (0x21, 6), (0x120, 6))
    },
    "arista-before-vlan": on_ethernet(
        0xD28B, ARISTA64 + tags(0x8100) + b"\x08\0" + T4, T4, "vlan switch_tag"
    ),
    "arista-behind-vlan": on_ethernet(
        0x8100, b"\0\7\xd2\x8b" + ARISTA48 + b"\x08\0" + T4, T4, "vlan switch_tag"
    ),
    "arista-802.3": on_ethernet(
        0xD28B, ARISTA48 + struct.pack(">H", 8 + len(T4)) + SNAP4 + T4, T4, "llc switch_tag"
    ),
    "arista-mpls": on_ethernet(0xD28B, ARISTA64 + b"\x88\x47" + M1 + T4, T4, "mpls switch_tag"),
    "fabricpath": on_ethernet(0x8903, b"\0\x20" + ETHER4, T4, "fabric"),
    "trill": on_ethernet(0x22F3, b"\x00\x0f\0\1\0\2" + ETHER4, T4, "fabric"),
    "trill-options": on_ethernet(0x22F3, b"\x00\x4f\0\1\0\2" + bytes(4) + ETHER4, T4, "fabric"),
    "jumbo-llc": on_ethernet(0x8870, WIFI_DATA[24:32] + T4, T4, "llc"),
}

# ---- in IP --------------------------------------------------------------------------------------

PPP4 = b"\xff\x03\x00\x21" + T4
MINIMAL = struct.pack(">BBH", 6, 0, 0)


def minimal(source: bool) -> Case:
    """RFC 2004: the outer addresses stand in for those that the forwarding header holds."""
    fields = struct.pack(">BBH", 6, 0x80 if source else 0, 0) + T4[16:20]
    fields += T4[12:16] if source else b""
    outer = IP(src="203.0.113.1" if source else "10.9.0.1", dst="203.0.113.2", proto=55, ttl=57)
    return Case(1, bytes(E / outer / Raw(fields + T4[20:])), T4, "ip_in_ip", 1)


LAYER3 = {
    "4in4": in_ip(4, T4, T4, "ip_in_ip"),
    "6in4": in_ip(41, T6, T6, "ip_in_ip"),
    "4in6": Case(
        1, bytes(E / IPv6(src="fd00::1", dst="fd00::2", nh=4) / Raw(T4)), T4, "ip_in_ip", 1
    ),
    "6in6": Case(
        1, bytes(E / IPv6(src="fd00::1", dst="fd00::2", nh=41) / Raw(T6)), T6, "ip_in_ip", 1
    ),
    "6in6-behind-options": Case(
        1, bytes(E / O6 / IPv6ExtHdrDestOpt(nh=41) / Raw(T6)), T6, "ip_in_ip", 1
    ),
    "4in6in4": in_ip(41, bytes(IPv6(nh=4) / Raw(T4)), T4, "ip_in_ip", 2),
    "four-ip-headers": in_ip(4, bytes(O4 / IP(proto=4) / Raw(T4)), T4, "ip_in_ip", 3),
    "ah-tunnel": in_ip(51, bytes(AH(nh=4, payloadlen=4, icv=bytes(12))) + T4, T4, "ip_in_ip ah"),
    "ah-transport": Case(
        1,
        bytes(
            E
            / IP(src="10.9.0.1", dst="192.0.2.9", ttl=57, proto=51)
            / Raw(bytes(AH(nh=6, payloadlen=4, icv=bytes(12))) + T4[20:])
        ),
        T4,
        "ah",
    ),
    "minimal-encapsulation": minimal(False),
    "minimal-encapsulation-source": minimal(True),
    "gre": in_ip(47, GRE(proto=0x800) / Raw(T4), T4, "gre"),
    "gre-ipv6": in_ip(47, GRE(proto=0x86DD) / Raw(U6), U6, "gre"),
    "gre-checksum": in_ip(47, GRE(proto=0x800, chksum_present=1) / Raw(T4), T4, "gre"),
    "gre-key": in_ip(47, GRE(proto=0x800, key_present=1, key=9) / Raw(T4), T4, "gre"),
    "gre-all-fields": in_ip(
        47,
        GRE(proto=0x800, chksum_present=1, key_present=1, seqnum_present=1, key=9) / Raw(T4),
        T4,
        "gre",
    ),
    "gre-routes": in_ip(
        47, b"\x40\0\x08\0\0\0\0\0" + b"\x08\0\0\4\x0a\0\0\1" + b"\0\0\0\0" + T4, T4, "gre"
    ),
    "gre-over-ipv6": Case(
        1,
        bytes(E / IPv6(src="fd00::1", dst="fd00::2", nh=47) / GRE(proto=0x800) / Raw(T4)),
        T4,
        "gre",
        1,
    ),
    "gre-in-gre": in_ip(47, GRE(proto=0x800) / O4 / GRE(proto=0x800) / Raw(T4), T4, "gre", 2),
    "gre-ethernet": in_ip(47, GRE(proto=0x6558) / Raw(ETHER4), T4, "gre"),
    "nvgre": in_ip(47, GRE(proto=0x6558, key_present=1, key=0x123400) / Raw(ETHER4), T4, "gre"),
    "gre-mpls": in_ip(47, GRE(proto=0x8847) / Raw(M1 + T4), T4, "mpls gre"),
    "gre-nsh": in_ip(47, GRE(proto=0x894F) / Raw(NSH_BASE + T4), T4, "gre nsh"),
    "gre-wccp": in_ip(47, GRE(proto=0x883E) / Raw(T4), T4, "gre"),
    "gre-wccp2": in_ip(47, GRE(proto=0x883E) / Raw(b"\0\0\0\1" + T4), T4, "gre"),
    "gre-aruba": in_ip(47, GRE(proto=0x8200) / Raw(WIFI_DATA), T4, "llc wifi gre"),
    "gre-frame-relay": in_ip(47, GRE(proto=0x6559) / Raw(b"\x18\x41\x03\xcc" + T4), T4, "gre"),
    "pptp": in_ip(47, b"\x20\x01\x88\x0b\0\x30\0\7" + PPP4, T4, "ppp gre"),
    "pptp-sequence": in_ip(47, b"\x30\x01\x88\x0b\0\x30\0\7" + bytes(4) + PPP4, T4, "ppp gre"),
    "pptp-both": in_ip(47, b"\x30\x81\x88\x0b\0\x30\0\7" + bytes(8) + PPP4, T4, "ppp gre"),
    "eoip": in_ip(47, b"\x20\x01\x64\x00\0\x3a\7\0" + ETHER4, T4, "gre"),
    "erspan-1": in_ip(47, GRE(proto=0x88BE) / ERSPAN_I() / Raw(ETHER4), T4, "gre erspan"),
    "erspan-2": in_ip(
        47, GRE(proto=0x88BE, seqnum_present=1) / ERSPAN_II() / Raw(ETHER4), T4, "gre erspan"
    ),
    "erspan-3": in_ip(
        47,
        GRE(proto=0x22EB, seqnum_present=1) / ERSPAN_III() / Raw(ETHER4),
        T4,
        "gre erspan",
    ),
    "erspan-3-platform": in_ip(
        47,
        GRE(proto=0x22EB, seqnum_present=1).build()[:8]
        + b"\x20"
        + bytes(10)
        + b"\1"
        + bytes(8)
        + ETHER4,
        T4,
        "gre erspan",
    ),
    "etherip": in_ip(97, EtherIP() / Raw(ETHER4), T4, "etherip"),
    "ethernet-in-ipv6": Case(
        1, bytes(E / IPv6(src="fd00::1", dst="fd00::2", nh=143) / Raw(ETHER4)), T4, "etherip", 1
    ),
    "mpls-in-ip": in_ip(137, M1 + T4, T4, "mpls"),
}

# ---- in UDP -------------------------------------------------------------------------------------

VXLAN4 = VXLAN(vni=7) / Raw(ETHER4)
GPE = struct.Struct(">B2xBI")
L2TP_DATA = struct.pack(">HHH", 0x0002, 1, 2)
AYIYA = bytes([0x41, 0x52, 0x11]) + b"%c" + bytes(4) + bytes(16) + bytes(20)
CAPWAP = struct.Struct(">BBBBHH")
TEREDO_V6 = bytes(IPv6(src="2001:0:c000:201::1", dst="2001:db8::9", nh=6)) + T6[40:]
TEREDO_V6 = TEREDO_V6[:4] + struct.pack(">H", len(T6) - 40) + TEREDO_V6[6:]

DATAGRAMS = {
    "vxlan": in_udp(4789, VXLAN4, T4, "vxlan"),
    "vxlan-linux-port": in_udp(8472, VXLAN4, T4, "vxlan"),
    "vxlan-inner-vlan": in_udp(
        4789, VXLAN(vni=7) / Raw(RAW_MACS + tags(0x8100) + b"\x08\0" + T4), T4, "vlan vxlan"
    ),
    "vxlan-group-policy": in_udp(4789, b"\x88\0\0\7\0\0\7\0" + ETHER4, T4, "vxlan"),
    "vxlan-reserved-bits": in_udp(4789, b"\x08\1\2\3\0\0\7\4" + ETHER4, T4, "vxlan"),
    "vxlan-reserved-flags": in_udp(4789, b"\x5b\0\0\0\0\0\7\0" + ETHER4, T4, "vxlan"),
    "vxlan-reserved-vlan": in_udp(
        4789,
        b"\x08\1\0\0\0\0\7\0" + RAW_MACS + tags(0x8100) + b"\x08\0" + T4,
        T4,
        "vlan vxlan",
    ),
    "vxlan-over-ipv6": Case(
        1, bytes(E / O6 / UDP(sport=40000, dport=4789) / VXLAN4), T4, "vxlan", 1
    ),
    "vxlan-gpe-ipv4": in_udp(4790, GPE.pack(0x0C, 1, 0x700) + T4, T4, "vxlan"),
    "vxlan-gpe-ipv6": in_udp(4790, GPE.pack(0x0C, 2, 0x700) + U6, U6, "vxlan"),
    "vxlan-gpe-ethernet": in_udp(4790, GPE.pack(0x0C, 3, 0x700) + ETHER4, T4, "vxlan"),
    "vxlan-gpe-nsh": in_udp(4790, GPE.pack(0x0C, 4, 0x700) + NSH_BASE + T4, T4, "nsh vxlan"),
    "vxlan-gpe-mpls": in_udp(4790, GPE.pack(0x0C, 5, 0x700) + M1 + T4, T4, "mpls vxlan"),
    "vxlan-in-geneve": in_udp(
        6081,
        GENEVE(vni=1, proto=0x800) / O4 / UDP(sport=44789, dport=4789) / VXLAN4,
        T4,
        "vxlan geneve",
        2,
    ),
    "vxlan-in-vxlan-in-vxlan": in_udp(
        4789,
        VXLAN(vni=1)
        / E
        / O4
        / UDP(sport=44790, dport=4789)
        / VXLAN(vni=2)
        / E
        / O4
        / UDP(sport=44791, dport=4789)
        / VXLAN4,
        T4,
        "vxlan",
        3,
    ),
    "geneve": in_udp(6081, GENEVE(vni=7, proto=0x6558) / Raw(ETHER4), T4, "geneve"),
    "geneve-ipv4": in_udp(6081, GENEVE(vni=7, proto=0x800) / Raw(T4), T4, "geneve"),
    "geneve-ipv6": in_udp(6081, GENEVE(vni=7, proto=0x86DD) / Raw(T6), T6, "geneve"),
    "geneve-reserved-bits": in_udp(6081, b"\0\x55\x65\x58\0\0\7\1" + ETHER4, T4, "geneve"),
    "geneve-reserved-ipv4": in_udp(6081, b"\0\1\x08\0\0\0\7\0" + T4, T4, "geneve"),
    "geneve-options": in_udp(
        6081,
        GENEVE(
            vni=7,
            proto=0x6558,
            critical=1,
            options=[GeneveOptions(classid=1, type=2, data=b"1234"), GeneveOptions(data=b"5678")],
        )
        / Raw(ETHER4),
        T4,
        "geneve",
    ),
    "geneve-from-port": Case(
        1,
        bytes(E / O4 / UDP(sport=6081, dport=40000) / GENEVE(proto=0x6558) / Raw(ETHER4)),
        T4,
        "geneve",
        1,
    ),
    "gtp": in_udp(2152, GTP_U_Header(teid=7, gtp_type=255, length=len(T4)) / Raw(T4), T4, "gtp"),
    "gtp-ipv6": in_udp(
        2152, GTP_U_Header(teid=7, gtp_type=255, length=len(T6)) / Raw(T6), T6, "gtp"
    ),
    "gtp-sequence": in_udp(
        2152, struct.pack(">BBHIHBB", 0x32, 255, 4 + len(T4), 7, 1, 0, 0) + T4, T4, "gtp"
    ),
    "gtp-spare-bit": in_udp(2152, struct.pack(">BBHI", 0x38, 255, len(T4), 7) + T4, T4, "gtp"),
    "gtp-extension": in_udp(
        2152,
        GTP_U_Header(teid=7, gtp_type=255, E=1, next_ex=0x85, length=8 + len(T4))
        / GTPPDUSessionContainer(type=1, QFI=3)
        / Raw(T4),
        T4,
        "gtp",
    ),
    "gtp-two-extensions": in_udp(
        2152,
        struct.pack(">BBHIHBB", 0x34, 255, 16 + len(T4), 7, 0, 0, 0x85)
        + b"\1\0\0\xc0\2\0\0\0\0\0\0\0"
        + T4,
        T4,
        "gtp",
    ),
    "gtp-over-ipv6": Case(
        1,
        bytes(
            E
            / O6
            / UDP(sport=2152, dport=2152)
            / GTP_U_Header(teid=7, gtp_type=255, length=len(U4))
            / Raw(U4)
        ),
        U4,
        "gtp",
        1,
    ),
    "teredo": in_udp(3544, TEREDO_V6, TEREDO_V6, "teredo"),
    "teredo-origin": in_udp(3544, bytes(8) + TEREDO_V6, TEREDO_V6, "teredo"),
    "teredo-authentication": in_udp(3544, b"\0\1" + bytes(11) + TEREDO_V6, TEREDO_V6, "teredo"),
    "teredo-authentication-origin": in_udp(
        3544, b"\0\1\2\3" + bytes(14) + bytes(8) + TEREDO_V6, TEREDO_V6, "teredo"
    ),
    "teredo-from-port": Case(
        1, bytes(E / O4 / UDP(sport=3544, dport=40000) / Raw(TEREDO_V6)), TEREDO_V6, "teredo", 1
    ),
    "teredo-trailer": in_udp(3544, TEREDO_V6 + b"\1\4\0\0\0\7", TEREDO_V6, "teredo"),
    "l2tp": in_udp(1701, L2TP_DATA + PPP4, T4, "ppp l2tp"),
    "l2tp-of-scapy": in_udp(
        1701, L2TP(tunnel_id=3, session_id=4) / PPP(proto=0x21) / Raw(T4), T4, "ppp l2tp"
    ),
    "l2tp-length": in_udp(
        1701, struct.pack(">HHHH", 0x4002, 8 + len(PPP4), 1, 2) + PPP4, T4, "ppp l2tp"
    ),
    "l2tp-all-fields": in_udp(
        1701,
        struct.pack(">HHHHHHH", 0x4A02, 16 + len(PPP4), 1, 2, 5, 6, 2) + bytes(2) + PPP4,
        T4,
        "ppp l2tp",
    ),
    "l2tp-ipv6": in_udp(1701, L2TP_DATA + b"\x00\x57" + T6, T6, "ppp l2tp"),
    "ayiya": in_udp(5072, AYIYA.replace(b"%c", b"\x29") + T6, T6, "ayiya"),
    "ayiya-ipv4": in_udp(5072, AYIYA.replace(b"%c", b"\x04") + T4, T4, "ayiya"),
    "capwap": in_udp(5247, CAPWAP.pack(0, 0x10, 2, 0, 0, 0) + ETHER4, T4, "capwap"),
    "capwap-wifi": in_udp(
        5247, CAPWAP.pack(0, 0x10, 3, 0, 0, 0) + WIFI_DATA, T4, "llc wifi capwap"
    ),
    "capwap-wifi-swapped": in_udp(
        5247, CAPWAP.pack(0, 0x20, 3, 0x20, 0, 0) + bytes(8) + SWAPPED, T4, "llc wifi capwap"
    ),
    "lisp": in_udp(4341, b"\x80\0\0\1\0\0\0\1" + T4, T4, "lisp"),
    "lisp-ipv6": in_udp(4341, b"\x80\0\0\1\0\0\0\1" + U6, U6, "lisp"),
    "mpls-in-udp": in_udp(6635, M1 + T4, T4, "mpls"),
    "mpls-in-udp-ipv6": in_udp(6635, M3 + U6, U6, "mpls"),
    "pseudowire-in-udp": in_udp(6635, M1 + ETHER4, T4, "mpls pseudowire"),
    "pseudowire-in-udp-control-word": in_udp(6635, M1 + bytes(4) + ETHER4, T4, "mpls pseudowire"),
    "pseudowire-in-udp-control-word-or-length": in_udp(
        6635, M1 + bytes(4) + VIRTUAL_MACS + b"\x08\x00" + T4, T4, "mpls pseudowire"
    ),
    "tzsp": in_udp(37008, TZSP() / TZSPTagEnd() / Raw(ETHER4), T4, "tzsp"),
    "tzsp-tags": in_udp(
        37008,
        TZSP() / TZSPTagPadding() / TZSPTagRawRSSIByte(raw_rssi=7) / TZSPTagEnd() / Raw(ETHER4),
        T4,
        "tzsp",
    ),
    "hp-erm": in_udp(7932, ERM + ETHER4, T4, "hp_erm"),
    "hp-erm-vlan": in_udp(
        7932, ERM + RAW_MACS + tags(0x8100) + b"\x86\xdd" + T6, T6, "vlan hp_erm"
    ),
    "gre-in-udp": in_udp(4754, GRE(proto=0x0800) / Raw(T4), T4, "gre"),
    "gre-in-udp-ipv6": in_udp(4754, GRE(proto=0x86DD) / Raw(U6), U6, "gre"),
    "gre-in-udp-key": in_udp(
        4754, GRE(proto=0x0800, key_present=1, key=7, seqnum_present=1) / Raw(T4), T4, "gre"
    ),
    "gre-in-udp-checksum": in_udp(4754, GRE(proto=0x0800, chksum_present=1) / Raw(T4), T4, "gre"),
    "gre-in-udp-ethernet": in_udp(4754, GRE(proto=0x6558) / Raw(ETHER4), T4, "gre"),
    "gre-in-udp-mpls": in_udp(4754, GRE(proto=0x8847) / Raw(M1 + T4), T4, "mpls gre"),
    "tzsp-wifi": in_udp(37008, b"\1\0\0\x12\1" + WIFI_DATA, T4, "llc wifi tzsp"),
}

TUNNELS: dict[str, Case] = LAYER2 | LAYER3 | DATAGRAMS
