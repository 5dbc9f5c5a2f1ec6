# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Frames that only look like a tunnel, and frames that are dropped for their encapsulation."""

import struct

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.vxlan import VXLAN
from scapy.packet import Raw

from frames.link import ETHER4, RAW_MACS, T4, T6
from frames.tunnel import AYIYA, CAPWAP, GPE, L2TP_DATA, M1, MINIMAL, O4, E, in_ip, in_udp, tags


def plain(port: int, payload: bytes, source: int = 40000) -> bytes:
    """A frame with a datagram that only looks like a tunnel's."""
    return bytes(E / O4 / UDP(sport=source, dport=port) / Raw(payload))


DNS_LIKE_VXLAN = b"\x08\0\0\0\0\1\0\0\0\0\0\0\3www\7example\3org\0\0\1\0\1"
NO_TUNNEL: dict[str, bytes] = {
    "vxlan-other-flags": plain(4789, b"\x40\0\0\0\0\0\7\0" + ETHER4),
    "vxlan-reserved-no-ip": plain(4789, b"\x08\1\2\3\0\0\7\0" + RAW_MACS + b"\x08\6" + T4),
    "vxlan-gpe-reserved": plain(4790, b"\x2c\0\0\3\0\0\7\0" + ETHER4),
    "vxlan-gpe-unknown": plain(4790, GPE.pack(0x0C, 99, 0x700) + T4),
    "vxlan-short": plain(4789, b"\x08\0\0\0"),
    "vxlan-broken-ip": plain(4789, b"\x08\0\0\0\0\0\7\0" + RAW_MACS + b"\x08\0\x40" + T4[1:]),
    "dns-from-tunnel-port": plain(53, DNS_LIKE_VXLAN, source=4789),
    "geneve-version-1": plain(6081, b"\x40\0\x65\x58\0\0\7\0" + ETHER4),
    "geneve-control": plain(6081, b"\0\x80\x65\x58\0\0\7\0" + ETHER4),
    "geneve-reserved-no-ip": plain(6081, b"\0\1\x65\x58\0\0\7\0" + RAW_MACS + b"\x08\6" + T4),
    "geneve-options-past-the-end": plain(6081, b"\x3f\0\x65\x58\0\0\7\0" + ETHER4),
    "gtp-echo": plain(2152, b"\x32\1\0\4\0\0\0\0\0\1\0\0"),
    "gtp-end-marker": plain(2152, b"\x30\xfe\0\0\0\0\0\7"),
    "gtp-prime": plain(2152, struct.pack(">BBHI", 0x20, 255, len(T4), 7) + T4),
    "gtp-length-past-the-end": plain(2152, struct.pack(">BBHI", 0x30, 255, 9999, 7) + T4),
    "gtp-extension-of-no-length": plain(
        2152, struct.pack(">BBHIHBB", 0x34, 255, 4 + len(T4), 7, 0, 0, 0x85) + b"\0\0\0\0" + T4
    ),
    "gtp-no-ip": plain(2152, struct.pack(">BBHI", 0x30, 255, 40, 7) + b"\x13" * 40),
    "teredo-ipv4": plain(3544, T4),
    "teredo-text": plain(3544, b"`hello there, this is no IPv6 at all, not a bit of it"),
    "l2tp-control": plain(1701, b"\xc8\x02\0\x0c\0\1\0\0\0\1\0\1"),
    "l2tp-version-3": plain(1701, b"\x00\x03\0\0\0\0\0\7" + T4),
    "l2tp-no-ppp": plain(1701, L2TP_DATA + b"\x10\x10" + T4),
    "ayiya-noop": plain(5072, AYIYA.replace(b"%c", b"\x3b")),
    "ayiya-no-ip": plain(5072, AYIYA.replace(b"%c", b"\x29") + b"\xff" * 40),
    "capwap-keep-alive": plain(5247, CAPWAP.pack(0, 0x10, 2, 8, 0, 0) + bytes(16)),
    "capwap-dtls": plain(5247, b"\1\0\0\0" + bytes(40)),
    "lisp-no-ip": plain(4341, bytes(8) + b"\x13" * 40),
    "mpls-in-udp-no-ip": plain(6635, M1 + b"\x13" * 40),
    "mpls-in-udp-no-last-label": plain(6635, b"\0\0\x10\x40" * 9),
    "mpls-in-udp-frame-without-ip": plain(6635, M1 + RAW_MACS + b"\0\x05hello"),
    "gre-in-udp-version-1": plain(4754, b"\0\1\x08\0" + T4),
    "gre-in-udp-routes": plain(4754, b"\x40\0\x08\0" + bytes(8) + T4),
    "gre-in-udp-no-ip": plain(4754, b"\0\0\x08\0" + b"\x13" * 40),
    "gre-in-udp-frame-without-ip": plain(4754, b"\0\0\x65\x58" + RAW_MACS + b"\0\x05hello"),
    "gre-in-udp-other-type": plain(4754, b"\0\0\x12\x34" + T4),
    "tzsp-keep-alive": plain(37008, b"\1\4\0\0\1"),
    "tzsp-tags-without-end": plain(37008, b"\1\0\0\1" + b"\x0a\x01\x07" * 9),
    "tzsp-other-frames": plain(37008, b"\1\0\0\7\1" + bytes(40)),
    "hp-erm-short": plain(7932, bytes(25)),
    "hp-erm-no-frame": plain(7932, bytes(12) + RAW_MACS + b"\x13\x13" + T4),
    "hp-erm-length": plain(7932, bytes(12) + RAW_MACS + b"\0\x26" + T4),
    "hp-erm-broken-ip": plain(7932, bytes(12) + RAW_MACS + b"\x08\0\x40" + T4[1:]),
    "empty-datagram": plain(4789, b""),
}

DROPPED: dict[str, tuple[str, bytes]] = {
    "macsec-encrypted": ("drop_encrypted", RAW_MACS + b"\x88\xe5\x2c\0\0\0\0\1" + bytes(60)),
    "arista-other-subtype": ("drop_not_ip", RAW_MACS + b"\xd2\x8b\0\2\0\x20" + bytes(6) + T4),
    "arista-other-version": ("drop_not_ip", RAW_MACS + b"\xd2\x8b\0\1\0\x30" + bytes(6) + T4),
    "arista-cut": ("drop_link_truncated", RAW_MACS + b"\xd2\x8b\0\1\0\x10" + bytes(8)),
    "esp": ("drop_encrypted", in_ip(50, bytes(40), T4, "").frame),
    "pptp-encrypted": (
        "drop_encrypted",
        in_ip(47, b"\x30\x01\x88\x0b\0\x30\0\7" + bytes(4) + b"\xfd" + bytes(40), T4, "").frame,
    ),
    "pptp-acknowledgement": (
        "drop_not_ip",
        in_ip(47, b"\x20\x81\x88\x0b\0\0\0\7\0\0\0\1", T4, "").frame,
    ),
    "gre-version-2": ("drop_encapsulation_malformed", in_ip(47, b"\0\2\x08\0" + T4, T4, "").frame),
    "gre-cut": ("drop_encapsulation_malformed", in_ip(47, b"\xb0\0\x08\0\0\0\0\0", T4, "").frame),
    "gre-keepalive": ("drop_not_ip", in_ip(47, b"\0\0\0\0", T4, "").frame),
    "gre-arp": ("drop_not_ip", in_ip(47, b"\0\0\x08\x06" + bytes(28), T4, "").frame),
    "nsh-length-1": (
        "drop_encapsulation_malformed",
        RAW_MACS + b"\x89\x4f\x0f\xc1\2\1" + bytes(40),
    ),
    "etherip-version-4": (
        "drop_encapsulation_malformed",
        in_ip(97, b"\x40\0" + ETHER4, T4, "").frame,
    ),
    "minimal-encapsulation-cut": ("drop_encapsulation_malformed", in_ip(55, MINIMAL, T4, "").frame),
    "l2tp-version-3-in-ip": ("drop_ip_encapsulated", in_ip(115, bytes(40), T4, "").frame),
    "pppoe-discovery": ("drop_not_ip", RAW_MACS + b"\x88\x63\x11\x09\0\0\0\4\1\1\0\0"),
    "pppoe-session-terminate": ("drop_not_ip", RAW_MACS + b"\x88\x64\x11\xa7\0\7\0\0" + bytes(40)),
    "mpls-something-else": ("drop_not_ip", RAW_MACS + b"\x88\x47" + M1 + b"\x13" * 60),
    "mpls-17-labels": (
        "drop_encapsulation_depth",
        RAW_MACS + b"\x88\x47" + b"\0\0\x10\x40" * 16 + M1 + T4,
    ),
    "vxlan-arp": (
        "drop_not_ip",
        in_udp(4789, VXLAN(vni=7) / Raw(RAW_MACS + b"\x08\x06" + bytes(28)), T4, "").frame,
    ),
    "vxlan-icmp": (
        "drop_not_tcp_udp",
        in_udp(
            4789, VXLAN(vni=7) / Raw(RAW_MACS + b"\x08\0" + bytes(IP(proto=1) / Raw(T4))), T4, ""
        ).frame,
    ),
    "capwap-fragment": (
        "drop_link_fragment",
        in_udp(5247, CAPWAP.pack(0, 0x10, 2, 0x80, 0, 0) + ETHER4, T4, "").frame,
    ),
    "icmp-quotes-a-packet": ("drop_not_tcp_udp", in_ip(1, b"\3\1" + bytes(6) + T4, T4, "").frame),
    "icmpv6-quotes-a-packet": (
        "drop_not_tcp_udp",
        bytes(E / IPv6(nh=58) / Raw(b"\1\0" + bytes(6) + T6)),
    ),
    "16-vlans": ("drop_encapsulation_depth", RAW_MACS + tags(*[0x8100] * 16) + b"\x08\0" + T4),
    "five-ip-headers": (
        "drop_encapsulation_depth",
        in_ip(4, bytes(O4 / O4 / IP(proto=4) / Raw(T4)), T4, "").frame,
    ),
    "tunnel-of-a-truncated-packet": (
        "drop_ip_malformed",
        in_ip(4, T4[:19], T4, "").frame,
    ),
}
