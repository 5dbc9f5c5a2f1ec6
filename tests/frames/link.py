# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""One frame of each link type, around the same packets; scapy makes the headers that it knows."""

import struct
import zlib
from typing import NamedTuple

from scapy.contrib.chdlc import CHDLC
from scapy.layers.dot11 import Dot11, Dot11QoS, PrismHeader, RadioTap
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import LLC, SNAP, CookedLinux, CookedLinuxV2, Dot1Q, Dot3, Ether, Loopback
from scapy.layers.pflog import PFLog
from scapy.layers.ppi import PPI
from scapy.layers.ppp import HDLC, PPP, PPPoE
from scapy.packet import Raw


class Case(NamedTuple):
    """A frame and the packet that must be found in it."""

    link: int
    frame: bytes
    inner: bytes  # the IP packet whose TCP or UDP counts
    seen: str = ""  # the counters of encapsulations, without "in_", separated by spaces
    tunnels: int = 0  # IP headers around the innermost


MACS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
RAW_MACS = bytes.fromhex("020000000002020000000001")
T4 = bytes(IP(src="10.9.0.1", dst="192.0.2.9", ttl=57) / TCP(sport=51000, dport=443) / Raw(b"tcp4"))
U4 = bytes(IP(src="10.9.0.1", dst="192.0.2.9") / UDP(sport=51000, dport=4433) / Raw(b"datagram"))
T6 = bytes(IPv6(src="fd00::9:1", dst="2001:db8::9") / TCP(sport=51000, dport=443) / Raw(b"tcp6"))
U6 = bytes(IPv6(src="fd00::9:1", dst="2001:db8::9") / UDP(sport=51000, dport=4433) / Raw(b"six"))

SNAP4, SNAP6 = b"\xaa\xaa\x03\0\0\0\x08\x00", b"\xaa\xaa\x03\0\0\0\x86\xdd"
ETHER4 = RAW_MACS + b"\x08\x00" + T4
ARPHRD_80211, ARPHRD_RADIOTAP = 801, 803

# ---- wires --------------------------------------------------------------------------------------

TOKEN_RING = b"\x10\x40" + RAW_MACS
ROUTED_RING = b"\x10\x40" + RAW_MACS[:6] + b"\x82" + RAW_MACS[7:] + b"\x06\x10\x00\x12\x00\x20"

WIRES = {
    "ethernet": Case(1, bytes(Ether(**MACS) / Raw(T4))[:12] + b"\x08\x00" + T4, T4),
    "ieee-802.3": Case(1, bytes(Dot3(**MACS) / LLC() / SNAP(code=0x800) / Raw(T4)), T4, "llc"),
    "mpacket": Case(
        274, b"\x55" * 7 + b"\xd5" + ETHER4 + struct.pack("<I", zlib.crc32(ETHER4)), T4
    ),
    "broadcom-tag": Case(281, RAW_MACS + b"\x20\0\0\x08" + ETHER4[12:], T4),
    "broadcom-tag-before": Case(282, b"\x20\0\0\x08" + ETHER4, T4),
    "dsa-tag": Case(284, RAW_MACS + b"\x00\x08\x00\x01" + ETHER4[12:], T4),
    "edsa-tag": Case(285, RAW_MACS + b"\xda\xda\0\0\x00\x08\x00\x01" + ETHER4[12:], T4),
    "fddi": Case(10, b"\x50" + RAW_MACS + SNAP4 + T4, T4, "llc"),
    "fddi-ipv6": Case(10, b"\x57" + RAW_MACS + SNAP6 + U6, U6, "llc"),
    "token-ring": Case(6, TOKEN_RING + SNAP4 + T4, T4, "llc"),
    "token-ring-source-routed": Case(6, ROUTED_RING + SNAP4 + U4, U4, "llc"),
    "arcnet-rfc1201": Case(7, b"\x01\x02\xd4\x00\x00\x07" + T4, T4),
    "arcnet-rfc1051": Case(7, b"\x01\x02\xf0" + T4, T4),
    "arcnet-ipv6": Case(7, b"\x01\x02\xc4\x00\x00\x07" + T6, T6),
    "arcnet-exception": Case(7, b"\x01\x02\xd4\xff\xff\xff\xff\x00\x00\x07" + T4, T4),
    "arcnet-linux-rfc1201": Case(129, b"\x01\x02\xc3\x08\xd4\x00\x01\x69" + U4, U4),
    "arcnet-linux-rfc1051": Case(129, b"\x01\x02\xc6\x00\xf0" + U4, U4),
    "atm-llc": Case(100, SNAP4 + T4, T4, "llc"),
    "atm-nlpid": Case(100, b"\xfe\xfe\x03\xcc" + T4, T4, "llc"),
    "fibre-channel": Case(122, bytes(16) + SNAP4 + T4, T4, "llc"),
    "firewire": Case(138, bytes(16) + b"\x08\x00" + T4, T4),
}

# ---- lines --------------------------------------------------------------------------------------

LINES = {
    "ppp": Case(9, bytes(HDLC() / PPP(proto=0x21) / Raw(T4)), T4, "ppp"),
    "ppp-ipv6": Case(9, bytes(HDLC() / PPP(proto=0x57) / Raw(T6)), T6, "ppp"),
    "ppp-without-address": Case(9, b"\x00\x21" + U4, U4, "ppp"),
    "ppp-short-protocol": Case(9, b"\x21" + U4, U4, "ppp"),
    "ppp-short-protocol-ipv6": Case(9, b"\xff\x03\x57" + T6, T6, "ppp"),
    "ppp-multilink-whole": Case(9, b"\xff\x03\x00\x3d\xc0\0\0\x01\x00\x21" + T4, T4, "ppp"),
    "ppp-mpls": Case(9, b"\xff\x03\x02\x81\x00\x01\x01\x40" + T4, T4, "ppp mpls"),
    "ppp-hdlc": Case(50, bytes(HDLC() / PPP(proto=0x21) / Raw(T4)), T4, "ppp"),
    "ppp-hdlc-of-cisco": Case(50, b"\x0f\x00\x08\x00" + T4, T4, "ppp"),
    "ppp-with-direction": Case(204, b"\x01\xff\x03\x00\x21" + T4, T4, "ppp"),
    "pppd": Case(166, b"\x01\x03\x00\x21" + T4, T4, "ppp"),
    "pppoe": Case(
        51,
        bytes(PPPoE(sessionid=7, len=2 + len(T4)) / PPP(proto=0x21) / Raw(T4)),
        T4,
        "ppp pppoe",
    ),
    "cisco-hdlc": Case(104, bytes(CHDLC(proto=0x800) / Raw(T4)), T4),
    "cisco-hdlc-ipv6": Case(104, bytes(CHDLC(proto=0x86DD) / Raw(T6)), T6),
    "cisco-hdlc-multicast": Case(104, b"\x8f\x00\x08\x00" + U4, U4),
    "cisco-hdlc-with-direction": Case(205, b"\x00\x0f\x00\x08\x00" + T4, T4),
    "frame-relay-nlpid": Case(107, b"\x18\x41\x03\xcc" + T4, T4),
    "frame-relay-nlpid-ipv6": Case(107, b"\x18\x41\x03\x8e" + T6, T6),
    "frame-relay-padded-snap": Case(107, b"\x18\x41\x03\x00\x80\0\0\0\x08\x00" + T4, T4),
    "frame-relay-long-address": Case(107, b"\x18\x40\x00\x41\x03\xcc" + T4, T4),
    "frame-relay-ppp": Case(107, b"\x18\x41\x03\xcf\x00\x21" + T4, T4, "ppp"),
    "frame-relay-of-cisco": Case(107, b"\x18\x41\x08\x00" + T4, T4),
    "frame-relay-with-direction": Case(206, b"\x01\x18\x41\x03\xcc" + T4, T4),
    "slip": Case(8, b"\x01" + T4[:1] + bytes(14) + T4, T4),
    "null": Case(0, bytes(Loopback(type=2) / Raw(T4)), T4),
    "null-big-endian": Case(0, struct.pack(">I", 30) + T6, T6),
    "loop": Case(108, struct.pack(">I", 24) + T6, T6),
    "raw": Case(101, T4, T4),
    "raw-bsd": Case(12, U6, U6),
    "raw-openbsd": Case(14, U4, U4),
    "ipv4": Case(228, U4, U4),
    "ipv6": Case(229, T6, T6),
}

# ---- captures of a system -----------------------------------------------------------------------


def nflog(order: str, packet: bytes, family: int = 2) -> bytes:
    """A packet header, a prefix of odd length, then the packet, numbers in the order given."""
    parts = [(1, struct.pack(">HBB", 0x800, 1, 0)), (10, b"in\0"), (9, packet)]
    attributes = b"".join(
        struct.pack(order + "HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
        for kind, value in parts
    )
    return struct.pack(">BBH", family, 0, 3) + attributes


PFLOG = bytes(PFLog(hdrlen=61, addrfamily=2))[:61] + bytes(3)
PKTAP = struct.pack("<IIIII", 108, 1, 1, 0, 0) + bytes(88)
SLL = {"pkttype": 0, "lladdrtype": 1, "lladdrlen": 6}

SYSTEMS = {
    "sll": Case(113, bytes(CookedLinux(**SLL, proto=0x800) / Raw(T4)), T4),
    "sll-ipv6": Case(113, bytes(CookedLinux(**SLL, proto=0x86DD) / Raw(U6)), U6),
    "sll-vlan": Case(
        113, bytes(CookedLinux(**SLL, proto=0x8100) / Dot1Q(type=0x800) / Raw(T4)), T4, "vlan"
    ),
    "sll-llc": Case(113, bytes(CookedLinux(**SLL, proto=4)) + SNAP4 + T4, T4, "llc"),
    "sll-pppoe": Case(
        113,
        bytes(CookedLinux(**SLL, proto=0x8864)) + b"\x11\0\0\7\0\x2e\x00\x21" + T4,
        T4,
        "ppp pppoe",
    ),
    "sll2": Case(276, bytes(CookedLinuxV2(proto=0x800, lladdrtype=1) / Raw(T4)), T4),
    "sll2-ipv6": Case(276, bytes(CookedLinuxV2(proto=0x86DD, lladdrtype=1) / Raw(T6)), T6),
    "sll2-llc": Case(276, bytes(CookedLinuxV2(proto=4, lladdrtype=1)) + SNAP4 + U4, U4, "llc"),
    "nflog": Case(239, nflog("<", T4), T4),
    "nflog-big-endian": Case(239, nflog(">", T4), T4),
    "nflog-ipv6": Case(239, nflog("<", U6, 10), U6),
    "pflog": Case(117, PFLOG + T4, T4),
    "enc": Case(109, struct.pack("<III", 2, 7, 0) + T4, T4),
    "enc-big-endian-ipv6": Case(109, struct.pack(">III", 24, 7, 0) + T6, T6),
    "juniper": Case(178, b"MGC\x01" + ETHER4, T4),
    "juniper-extended": Case(178, b"MGC\x80\0\x06\x04\x01\x0e\x03\x01\x04" + ETHER4, T4),
    "juniper-vlan": Case(
        178, b"MGC\x81\0\x03\x06\x01\x00" + RAW_MACS + b"\x81\0\0\7\x86\xdd" + T6, T6, "vlan"
    ),
    "juniper-without-link": Case(178, b"MGC\x82\0\x03\x06\x01\x00" + b"\2\0\0\0" + U4, U4),
    "juniper-without-link-ipv6": Case(178, b"MGC\x03" + b"\6\0\0\0" + U6, U6),
    "ipnet": Case(226, b"\x01\x02\0\0" + struct.pack(">I", len(T4)) + bytes(16) + T4, T4),
    "pktap": Case(258, PKTAP + ETHER4, T4),
    "ppi-ethernet": Case(192, bytes(PPI(dlt=1, len=8)) + ETHER4, T4),
}

# ---- radio --------------------------------------------------------------------------------------

ADDRESSES = {f"addr{n}": f"02:00:00:00:00:0{n}" for n in (1, 2, 3)}
TO_AP = bytes(Dot11(type=2, FCfield=1, **ADDRESSES))
FROM_AP = bytes(Dot11(type=2, FCfield=2, **ADDRESSES))
BOTH = bytes(Dot11(type=2, FCfield=3, **ADDRESSES, addr4="02:00:00:00:00:04"))
QOS = bytes(Dot11(type=2, subtype=8, FCfield=1, **ADDRESSES) / Dot11QoS(TID=1))
QOS_BOTH = b"\x88\x03" + BOTH[2:] + b"\x01\x00"
QOS_HT = b"\x88\x81" + QOS[2:] + bytes(4)
AMSDU = b"\x88\x01" + QOS[2:-2] + b"\x81\x00" + RAW_MACS
AMSDU += struct.pack(">H", len(SNAP4 + T4)) + SNAP4 + T4
SECOND = RAW_MACS + struct.pack(">H", len(SNAP4 + U4)) + SNAP4 + U4
DATA = TO_AP + SNAP4 + T4
SWAPPED = b"\x01\x08" + DATA[2:22] + b"\x07\x10" + DATA[24:]
PRISM = bytes(PrismHeader())
AVS = struct.pack(">II", 0x80211001, 64) + bytes(56)
RADIOTAP_TWO_WORDS = struct.pack("<BBHIIQBB", 0, 0, 26, 1 << 31 | 3, 0, 9, 0x10, 0) + bytes(4)
RADIOTAP_PADDED = struct.pack("<BBHIBB", 0, 0, 10, 2, 0x20, 0)

RADIO = {
    "wifi-to-ap": Case(105, DATA, T4, "llc wifi"),
    "wifi-from-ap": Case(105, FROM_AP + SNAP6 + T6, T6, "llc wifi"),
    "wifi-four-addresses": Case(105, BOTH + SNAP4 + T4, T4, "llc wifi"),
    "wifi-qos": Case(105, QOS + SNAP4 + U4, U4, "llc wifi"),
    "wifi-qos-four-addresses": Case(105, QOS_BOTH + SNAP4 + T4, T4, "llc wifi"),
    "wifi-qos-ht-control": Case(105, QOS_HT + SNAP4 + T4, T4, "llc wifi"),
    "wifi-frame-check": Case(105, DATA + b"\x01\x02\x03\x04", T4, "llc wifi"),
    "wifi-decrypted": Case(105, b"\x08\x41" + DATA[2:], T4, "llc wifi"),
    "wifi-amsdu": Case(105, AMSDU + bytes(-len(AMSDU[26:]) % 4) + SECOND, T4, "llc wifi amsdu"),
    "radiotap": Case(127, bytes(RadioTap()) + DATA, T4, "llc wifi"),
    "radiotap-two-words": Case(127, RADIOTAP_TWO_WORDS + DATA, T4, "llc wifi"),
    "radiotap-padded": Case(127, RADIOTAP_PADDED + QOS + b"\0\0" + SNAP4 + T4, T4, "llc wifi"),
    "radiotap-fcs": Case(127, bytes(RadioTap(present="Flags", Flags=0x10)) + DATA, T4, "llc wifi"),
    "prism": Case(119, PRISM[:4] + struct.pack("<I", 144) + PRISM[8:] + DATA, T4, "llc wifi"),
    "prism-big-endian": Case(
        119, PRISM[:4] + struct.pack(">I", 144) + PRISM[8:] + DATA, T4, "llc wifi"
    ),
    "avs-as-prism": Case(119, AVS + DATA, T4, "llc wifi"),
    "avs": Case(163, AVS + DATA, T4, "llc wifi"),
    "ppi": Case(192, bytes(PPI(dlt=105, len=8)) + DATA, T4, "llc wifi"),
    "ppi-with-fields": Case(
        192, struct.pack("<BBHIHH4s", 0, 0, 16, 105, 2, 4, b"") + DATA, T4, "llc wifi"
    ),
    "sll-radiotap": Case(
        113,
        bytes(CookedLinux(pkttype=0, lladdrtype=ARPHRD_RADIOTAP, proto=0x19))
        + bytes(RadioTap())
        + DATA,
        T4,
        "llc wifi",
    ),
    "sll-wifi": Case(
        113, bytes(CookedLinux(lladdrtype=ARPHRD_80211, proto=0x19)) + DATA, T4, "llc wifi"
    ),
}

LINKS: dict[str, Case] = WIRES | LINES | SYSTEMS | RADIO

# Frames without a packet that can be read, and the counter for each.
DROPPED: dict[str, tuple[str, int, bytes]] = {
    "wifi-protected": ("drop_encrypted", 105, b"\x08\x41" + TO_AP[2:] + bytes(8) + T4),
    "wifi-beacon": ("drop_not_ip", 105, b"\x80\x00" + TO_AP[2:] + bytes(12)),
    "wifi-acknowledgement": ("drop_not_ip", 105, b"\xd4\x00" + bytes(40)),
    "wifi-null": ("drop_not_ip", 105, b"\x48\x01" + TO_AP[2:]),
    "wifi-second-fragment": (
        "drop_link_fragment",
        105,
        TO_AP[:22] + b"\x11\x00" + T4 + bytes(9),
    ),
    "wifi-eapol": ("drop_not_ip", 105, TO_AP + b"\xaa\xaa\x03\0\0\0\x88\x8e" + bytes(30)),
    "ppp-lcp": ("drop_not_ip", 9, b"\xff\x03\xc0\x21\x01\x01\x00\x04"),
    "ppp-encrypted": ("drop_encrypted", 9, b"\xff\x03\x00\x53" + bytes(40)),
    "ppp-compressed": ("drop_encrypted", 9, b"\xff\x03\xfd" + bytes(40)),
    "ppp-multilink-part": ("drop_link_fragment", 9, b"\xff\x03\x00\x3d\x80\0\0\x01\x00\x21" + T4),
    "cisco-hdlc-keepalive": ("drop_not_ip", 104, b"\x8f\x00\x80\x35" + bytes(14)),
    "cisco-hdlc-osi": ("drop_not_ip", 104, b"\x0f\x00\xfe\xfe" + bytes(14)),
    "frame-relay-management": ("drop_not_ip", 107, b"\x00\x01\x03\x08" + bytes(10)),
    "arcnet-arp": ("drop_not_ip", 7, b"\x01\x00\xd5\x00\x00\x07" + bytes(20)),
    "arcnet-part": ("drop_link_fragment", 7, b"\x01\x02\xd4\x03\x00\x07" + T4),
    "fddi-station-management": ("drop_not_ip", 10, b"\x41" + RAW_MACS + bytes(20)),
    "token-ring-mac": ("drop_not_ip", 6, b"\x10\x00" + RAW_MACS + bytes(20)),
    "sll-netlink": (
        "drop_not_ip",
        113,
        bytes(CookedLinux(lladdrtype=824, proto=0x800)) + T4,
    ),
    "sll-can": ("drop_not_ip", 113, bytes(CookedLinux(lladdrtype=280, proto=12)) + bytes(16)),
    "juniper-other-magic": ("drop_not_ip", 178, b"MGD\x01" + ETHER4),
    "juniper-extensions-past-the-end": (
        "drop_link_truncated",
        178,
        b"MGC\x80\xff\xff" + ETHER4,
    ),
    "juniper-arp": ("drop_not_ip", 178, b"MGC\x01" + RAW_MACS + b"\x08\6" + bytes(28)),
    "juniper-without-link-no-ip": ("drop_not_ip", 178, b"MGC\x02" + b"\5\0\0\0" + bytes(40)),
    "nflog-arp": ("drop_not_ip", 239, nflog("<", T4, 3)),
    "nflog-without-packet": ("drop_link_truncated", 239, nflog("<", T4)[:16]),
    "pflog-short": ("drop_link_truncated", 117, b"\x02" + bytes(99)),
    "radiotap-too-short": ("drop_link_truncated", 127, b"\0\0\x07\0" + bytes(99)),
    "prism-other-length": ("drop_link_truncated", 119, struct.pack("<II", 0x44, 7) + bytes(200)),
    "ppi-in-ppi-without-end": (
        "drop_encapsulation_depth",
        192,
        struct.pack("<BBHI", 0, 0, 8, 192) * 40,
    ),
    "ppi-unknown-link": ("drop_link_type", 192, struct.pack("<BBHI", 0, 0, 8, 147) + T4),
    "pktap-other-record": ("drop_not_ip", 258, struct.pack("<III", 108, 2, 1) + bytes(200)),
}
