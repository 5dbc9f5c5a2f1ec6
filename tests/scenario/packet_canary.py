# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A capture of one client, a frame for each encapsulation and protocol, and all that it discloses.

Each frame holds addresses, MAC addresses, names or other marks that no anonymized packet may hold.
`MARKS` has them in each notation that a protocol writes them in.
"""

import hashlib
import ipaddress
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import hpack
from oracle.quic import opened as quic_opened
from oracle.quic import said_by, split
from support import h2, quic_wire, wire
from support.canary import notations, spellings
from support.handshake import message, named, server_hello
from support.packets import ACK, MS, PSH, START, SYN, Frame, dns, to_ip
from support.wire import extension, vector

CLIENT, CLIENT_MAC = "10.77.66.55", bytes.fromhex("a61d7e55c392")
CLIENT6 = "fd4d:4237:66:55:a41d:7eff:fe55:c392"  # with its MAC address (RFC 4291, appendix A)
LINK_LOCAL = "fe80::a41d:7eff:fe55:c392"
SERVER, SERVER_MAC = "203.0.113.187", bytes.fromhex("b26f09d4183e")
SERVER6 = "2001:db8:5e:c4e7::9a1b"
NEAR, FAR = "10.91.82.73", "198.51.100.219"  # ends of a tunnel
NEAR6, FAR6 = "fd4d:4237:91:82::73b5", "2001:db8:e7:5ec4::fa7b"
HOME, HOME6 = "10.64.53.42", "fd4d:4237:99:88::5c6d"  # another host of the client's network
ROUTERS = (NEAR, HOME, FAR)
NAMES = ".kanarie.example"  # below it are names that a threshold of 1 releases
SECRET = "geheim"  # a text with it is no name of a server
EVERYONE, EVERYONE_MAC = "255.255.255.255", b"\xff" * 6

V4, V6, VLAN, QINQ, MPLS, PPPOE, ARP = 0x0800, 0x86DD, 0x8100, 0x88A8, 0x8847, 0x8864, 0x0806
ICMP, IGMP, GRE, ESP, ICMP6, L2TP3, SCTP = 1, 2, 47, 50, 58, 115, 132


TOKENS: dict[str, int] = {}  # all that were made, and the size of each


def token(of: str, size: int = 16) -> bytes:
    """Made-up random bytes of a frame, which are found again wherever they are."""
    TOKENS[of] = max(size, TOKENS.get(of, 0))
    return drawn(of, size)


def drawn(of: str, size: int) -> bytes:
    """Bytes that depend on a text."""
    return hashlib.shake_256(of.encode()).digest(size)


def host(of: str) -> bytes:
    """A name of a frame's own."""
    return (of.replace("_", "-") + NAMES).encode()


def secret(of: str) -> bytes:
    """A text of a frame's own that is no name."""
    return f"{SECRET}-{of}".encode()


@dataclass(frozen=True, slots=True)
class Sample:
    """A frame of a link type."""

    name: str
    data: bytes
    link: int = 1


# ---- from a payload to a frame ------------------------------------------------------------------


def ether(packet: bytes, kind: int | None = None, *, out: bool = True, tags: bytes = b"") -> bytes:
    """A frame from the client, or to it; `tags` stand before the EtherType."""
    macs = SERVER_MAC + CLIENT_MAC if out else CLIENT_MAC + SERVER_MAC
    kind = (V4 if packet[0] >> 4 == 4 else V6) if kind is None else kind
    return macs + tags + struct.pack(">H", kind) + packet


def summed(data: bytes, at: int) -> bytes:
    """The bytes with their Internet checksum (RFC 1071) at a place that held zeros."""
    return data[:at] + checksum(data).to_bytes(2) + data[at + 2 :]


def checksum(data: bytes) -> int:
    """The Internet checksum of the bytes."""
    words = struct.unpack(f">{len(data) // 2}H", data[: len(data) & ~1])
    total = sum(words) + (data[-1] << 8 if len(data) & 1 else 0)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


CHECKSUM_AT = {wire.TCP: 16, wire.UDP: 6, ICMP6: 2}


def ip(transport: bytes, protocol: int, *, v6: bool = False, out: bool = True, ends: tuple[str, str]
       | None = None, options: bytes = b"") -> bytes:  # fmt: skip
    """A packet between the client and the server, or other ends, with the right checksums."""
    pair = ends or ((CLIENT6, SERVER6) if v6 else (CLIENT, SERVER))
    pair = pair if out else pair[::-1]
    packed = b"".join(ipaddress.ip_address(one).packed for one in pair)
    if protocol in CHECKSUM_AT:
        around = packed + struct.pack(">II", len(transport), protocol)
        whole = summed(around + transport, len(around) + CHECKSUM_AT[protocol])
        transport = whole[len(around) :]
    packet, kind = to_ip(transport, protocol, pair, options)
    if kind == V6:
        return packet
    size = 20 + len(options)
    return summed(packet[:size], 10) + packet[size:]


def port_of(name: str) -> int:
    """The client's port in a frame of this name."""
    return 20000 + int.from_bytes(drawn(name, 4)) % 30000


def tcp(name: str, payload: bytes, port: int = 443, *, out: bool = True, v6: bool = False,
        flags: int = PSH | ACK, options: bytes = b"") -> bytes:  # fmt: skip
    """A segment of a connection of the frame's own."""
    ports = (port_of(name), port) if out else (port, port_of(name))
    seq, ack = token(name + " seq", 4), token(name + " ack", 4)
    head = struct.pack(">HH", *ports) + seq + (ack if flags & ACK else bytes(4))
    head += struct.pack(">HHHH", (5 + len(options) // 4) << 12 | flags, 8192, 0, 0)
    return ip(head + options + payload, wire.TCP, v6=v6, out=out)


def udp(name: str, payload: bytes, port: int = 9999, *, out: bool = True, v6: bool = False,
        ends: tuple[str, str] | None = None, source: int | None = None) -> bytes:  # fmt: skip
    """A datagram of a flow of the frame's own."""
    near = port_of(name) if source is None else source
    ports = (near, port) if out else (port, near)
    return ip(wire.udp(payload, ports=ports), wire.UDP, v6=v6, out=out, ends=ends)


def plain(name: str, *, v6: bool = False) -> bytes:
    """A packet to put into a tunnel: a datagram of a game, with all that it must not show."""
    marks = [ipaddress.ip_address(one).packed for one in (CLIENT, SERVER, CLIENT6)]
    said = secret(name) + host(name) + b"".join(marks) + CLIENT_MAC + token(name)
    return udp(name, said, v6=v6)


def tunnelled(name: str, inner: bytes, *, v6: bool = False) -> bytes:
    """A frame with an IP packet to an outer port or protocol around `inner`."""
    ends = (NEAR6, FAR6) if v6 else (NEAR, FAR)
    if name.startswith("udp:"):
        _udp, port, source = name.split(":")
        return ether(udp("tunnel", inner, int(port), ends=ends, source=int(source)))
    return ether(ip(inner, int(name), ends=ends))


# ---- encapsulations -----------------------------------------------------------------------------


def encapsulations() -> Iterator[Sample]:
    """A datagram of a flow of its own in each encapsulation."""

    def inner(name: str) -> bytes:
        return plain(name)

    def in_ether(name: str) -> bytes:
        return ether(inner(name))

    tag = struct.pack(">H", VLAN) + b"\x0c\xa5"
    yield Sample("ethernet", in_ether("ethernet"))
    yield Sample("ethernet_v6", ether(plain("ethernet_v6", v6=True)))
    yield Sample("trailer", in_ether("trailer") + token("trailer") + secret("trailer"))
    yield Sample("vlan", ether(inner("vlan"), tags=tag))
    yield Sample("qinq", ether(inner("qinq"), tags=struct.pack(">H", QINQ) + b"\x0b\xb8" + tag))
    yield Sample("mpls", ether(b"\xab\xcd\x11\x40" + inner("mpls"), MPLS))
    packet = inner("pppoe")
    yield Sample("pppoe", ether(b"\x11\0\xbe\xef" + vector(2, b"\0\x21" + packet), PPPOE))
    yield Sample("gre", tunnelled("47", b"\x20\0\x08\0" + token("gre", 4) + inner("gre")))
    yield Sample(
        "nvgre", tunnelled("47", b"\x20\0\x65\x58" + token("nvgre", 4) + in_ether("nvgre"))
    )
    yield Sample(
        "pptp",
        tunnelled(
            "47",
            b"\x20\x01\x88\x0b" + struct.pack(">HH", 4 + len(inner("pptp")), 0xBEEF)
            + b"\xff\x03\0\x21" + inner("pptp"),
        ),
    )  # fmt: skip
    yield Sample("ipip", tunnelled("4", inner("ipip")))
    yield Sample("6in4", tunnelled("41", plain("6in4", v6=True)))
    yield Sample("4in6", ether(ip(inner("4in6"), 4, ends=(NEAR6, FAR6))))
    yield Sample("6in6", ether(ip(plain("6in6", v6=True), 41, ends=(NEAR6, FAR6))))
    yield Sample("etherip", tunnelled("97", b"\x30\0" + in_ether("etherip")))
    vxlan = b"\x08\0\0\0" + token("vxlan", 3) + b"\0"
    yield Sample("vxlan", tunnelled("udp:4789:50001", vxlan + in_ether("vxlan")))
    geneve = b"\x04\0\x65\x58" + token("geneve", 3) + b"\0\1\2\x80\3" + token("option", 12)
    yield Sample("geneve", tunnelled("udp:6081:50002", geneve + in_ether("geneve")))
    packet = inner("gtp")
    gtp = b"\x30\xff" + struct.pack(">H", len(packet)) + token("teid", 4)
    yield Sample("gtp", tunnelled("udp:2152:2152", gtp + packet))
    packet6 = teredo_packet()
    origin = b"\0\0" + bytes(0xFF ^ b for b in b"\x75\x31" + ipaddress.ip_address(CLIENT).packed)
    yield Sample("teredo", tunnelled("udp:3544:50003", origin + packet6))
    l2tp = b"\0\2" + token("l2tp", 4) + b"\xff\x03\0\x21"
    yield Sample("l2tp", tunnelled("udp:1701:1701", l2tp + inner("l2tp")))
    erspan = b"\x10\x0a\x45\x67\0\0\0\7"
    yield Sample(
        "erspan",
        tunnelled("47", b"\x10\0\x88\xbe" + token("erspan", 4) + erspan + in_ether("erspan")),
    )
    yield Sample("esp", tunnelled("50", token("esp", 40)))
    yield Sample("l2tp_v3", tunnelled("115", token("l2tp_v3", 40) + inner("l2tp_v3")))
    yield Sample("two_tunnels", tunnelled("47", b"\0\0\x08\0" + ip(inner("two_tunnels"), 4)))


def teredo_packet() -> bytes:
    """A packet from a Teredo address, which has the client's turned round (RFC 4380, 4)."""
    hidden = bytes(0xFF ^ b for b in b"\x75\x31" + ipaddress.ip_address(CLIENT).packed)
    source = bytes.fromhex("20010000") + ipaddress.ip_address(FAR).packed + b"\0\0" + hidden
    ends = str(ipaddress.ip_address(source)), SERVER6
    return ip(wire.udp(secret("teredo"), ports=(50004, 9999)), wire.UDP, ends=ends)


def other_links() -> Iterator[Sample]:
    """A datagram behind each of some headers that are not Ethernet's."""
    packet = plain("sll")
    yield Sample("sll", struct.pack(">HHH", 0, 1, 6) + CLIENT_MAC + b"\0\0\x08\0" + packet, 113)
    packet = plain("sll2")
    head = b"\x08\0\0\0" + struct.pack(">IHBB", 7, 1, 0, 6)
    yield Sample("sll2", head + CLIENT_MAC + b"\0\0" + packet, 276)
    snap = b"\xaa\xaa\x03\0\0\0\x08\0"
    wifi = b"\x08\1\0\0" + SERVER_MAC + CLIENT_MAC + SERVER_MAC + b"\0\0" + snap
    yield Sample("wifi", wifi + plain("wifi"), 105)
    yield Sample("radiotap", b"\0\0\x08\0\0\0\0\0" + wifi + plain("radiotap"), 127)
    yield Sample("raw", plain("raw"), 101)
    yield Sample("ppp", b"\xff\x03\0\x21" + plain("ppp"), 9)
    yield Sample("null", b"\2\0\0\0" + plain("null"), 0)


# ---- headers of IP and TCP ----------------------------------------------------------------------


def ip_headers() -> Iterator[Sample]:
    """Options, extension headers, fragments."""
    routers = b"".join(ipaddress.ip_address(one).packed for one in ROUTERS)
    datagram = wire.udp(secret("options"), ports=(30001, 9999))
    route = b"\x07" + bytes([3 + len(routers), 4 + len(routers)]) + routers + b"\0"
    yield Sample("record_route", ether(ip(datagram, wire.UDP, options=route)))
    stamped = b"".join(ipaddress.ip_address(one).packed + token("ts " + one, 4) for one in ROUTERS)
    stamps = b"\x44" + bytes([4 + len(stamped), 5 + len(stamped), 1]) + stamped
    yield Sample("timestamp_option", ether(ip(datagram, wire.UDP, options=stamps)))
    loose = b"\x83" + bytes([3 + len(routers), 4]) + routers + b"\0"
    yield Sample("source_route", ether(ip(datagram, wire.UDP, options=loose)))
    six = wire.udp(secret("extension"), ports=(30002, 9999))
    hops = bytes([wire.UDP, 3, 0x1E, 28]) + token("hop by hop", 28)
    segments = b"".join(ipaddress.ip_address(one).packed for one in (HOME6, FAR6))
    routing = bytes([wire.UDP, 4, 4, 0, 1, 0, 0, 0]) + segments
    home = bytes([wire.UDP, 2, 1, 2, 0, 0, 0xC9, 16]) + ipaddress.ip_address(HOME6).packed
    for name, number, header in (
        ("hop_by_hop", 0, hops),
        ("segment_routing", 43, routing),
        ("home_address", 60, home),
    ):
        yield Sample(name, ether(ip(header + six, number, v6=True)))
    whole = wire.udp(secret("fragment") * 8 + token("fragment"), ports=(30003, 9999))
    for place, part in ((0, whole[:64]), (8, whole[64:])):
        packet = bytearray(ip(part, wire.UDP))
        packet[6:8] = ((0x2000 if place == 0 else 0) | place).to_bytes(2)
        packet[10:12] = b"\0\0"
        yield Sample(f"fragment_{place}", ether(summed(bytes(packet[:20]), 10) + packet[20:]))
    for place, part in ((0, whole[:64]), (8, whole[64:])):
        header = wire.ipv6_fragment(wire.UDP, place, place == 0)
        yield Sample(f"fragment6_{place}", ether(ip(header + part, 44, v6=True)))
    flow_label = bytearray(plain("flow_label", v6=True))
    flow_label[1:4] = token("flow label", 3)
    yield Sample("flow_label", ether(bytes(flow_label)))


def tcp_headers() -> Iterator[Sample]:
    """Options of TCP, a handshake."""
    for name, option in {
        "tcp_timestamps": b"\1\1\x08\x0a" + token("tcp_timestamps", 8),
        "tcp_md5": b"\1\1\x13\x12" + token("tcp_md5", 16),
        "tcp_ao": b"\x1d\x10" + token("tcp_ao", 14),
        "tcp_fast_open": b"\x22\x12" + token("tcp_fast_open", 16) + b"\1\1",
        "mptcp_capable": b"\x1e\x0c\1\x81" + token("mptcp_capable", 8),
        "mptcp_address": b"\x1e\x08\x30\7" + ipaddress.ip_address(HOME).packed,
        "tcp_unknown": b"\xfd\x0c" + token("tcp_unknown", 10),
    }.items():
        flags = SYN if name in ("mptcp_capable", "tcp_fast_open") else ACK
        sack = b"" if flags == SYN else b"\1\1\5\x0a" + token(name + " sack", 8)
        yield Sample(name, ether(tcp(name, b"", flags=flags, options=option + sack)))
    name = "handshake"
    yield Sample("syn", ether(tcp(name, b"", flags=SYN)))
    port = 443
    answer = struct.pack(">HH", port, port_of(name)) + token("isn", 4)
    first = (int.from_bytes(token(name + " seq", 4)) + 1) % 2**32
    answer += struct.pack(">IHHHH", first, 5 << 12 | SYN | ACK, 8192, 0, 0)
    yield Sample("syn_ack", ether(ip(answer, wire.TCP, out=False), out=False))
    ack = (int.from_bytes(token("isn", 4)) + 1) % 2**32
    third = struct.pack(">HHII", port_of(name), port, first, ack)
    third += struct.pack(">HHHH", 5 << 12 | PSH | ACK, 8192, 0, 0)
    yield Sample("proven", ether(ip(third + client_hello("handshake"), wire.TCP)))
    urgent = tcp("urgent", secret("urgent") + token("urgent"), 23)
    yield Sample("urgent", ether(urgent))


# ---- without TCP and UDP ------------------------------------------------------------------------


def local() -> Iterator[Sample]:
    """Protocols of a local network."""
    address, other = ipaddress.ip_address(CLIENT).packed, ipaddress.ip_address(HOME).packed
    arp = b"\0\1\x08\0\6\4\0\1" + CLIENT_MAC + address + bytes(6) + other
    yield Sample("arp", EVERYONE_MAC + CLIENT_MAC + b"\x08\6" + arp + token("arp", 18))
    yield Sample(
        "rarp", EVERYONE_MAC + CLIENT_MAC + b"\x80\x35" + arp[:7] + b"\3" + arp[8:] + bytes(18)
    )
    target = ipaddress.ip_address(HOME6).packed
    all_nodes = "ff02::1:ff00:5c6d"
    yield Sample(
        "neighbour_solicitation",
        ether(ip(b"\x87\0\0\0" + bytes(4) + target + b"\1\1" + CLIENT_MAC, ICMP6,
                 ends=(LINK_LOCAL, all_nodes))),
    )  # fmt: skip
    yield Sample(
        "neighbour_advertisement",
        ether(ip(b"\x88\0\0\0\x60\0\0\0" + ipaddress.ip_address(CLIENT6).packed + b"\2\1"
                 + CLIENT_MAC, ICMP6, ends=(CLIENT6, HOME6))),
    )  # fmt: skip
    prefix = ipaddress.ip_network((CLIENT6, 64), strict=False).network_address.packed
    advert = b"\x86\0\0\0\x40\0\7\x08" + bytes(8) + b"\1\1" + CLIENT_MAC
    advert += b"\3\4\x40\xc0" + bytes(8) + bytes(4) + prefix
    yield Sample("router_advertisement", ether(ip(advert, ICMP6, ends=(LINK_LOCAL, "ff02::1"))))
    dhcp = struct.pack(">BBBBIHH", 1, 1, 6, 0, 0x5EED7A13, 0, 0) + address + bytes(12)
    dhcp += CLIENT_MAC + bytes(10 + 192) + b"\x63\x82\x53\x63" + b"\x35\1\3\x32\4" + address
    dhcp += b"\x0c" + vector(1, secret("dhcp")) + b"\x3d\7\1" + CLIENT_MAC + b"\xff"
    yield Sample("dhcp", ether(udp("dhcp", dhcp, 67, ends=("0.0.0.0", EVERYONE), source=68)))
    yield Sample("dhcp_renewal", ether(udp("dhcp", dhcp, 67, ends=(CLIENT, HOME), source=68)))
    dhcp6 = b"\1\xaa\xbb\xcc\0\1\0\x0a\0\3\0\1" + CLIENT_MAC
    dhcp6 += b"\0\x27" + vector(2, b"\0" + vector(1, secret("dhcp6")))
    yield Sample(
        "dhcp6", ether(udp("dhcp6", dhcp6, 547, ends=(LINK_LOCAL, "ff02::1:2"), source=546))
    )
    question = dns(secret("mdns") + b".local", kind=255)
    yield Sample(
        "mdns", ether(udp("mdns", question, 5353, ends=(CLIENT, "224.0.0.251"), source=5353))
    )
    question = dns(secret("llmnr"))
    yield Sample("llmnr", ether(udp("llmnr", question, 5355, ends=(CLIENT, "224.0.0.252"))))
    ssdp = b"NOTIFY * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nLOCATION: http://"
    ssdp += CLIENT.encode() + b":5000/" + secret("ssdp") + b".xml\r\n\r\n"
    yield Sample("ssdp", ether(udp("ssdp", ssdp, 1900, ends=(CLIENT, "239.255.255.250"))))
    yield Sample(
        "nbns", ether(udp("nbns", nbns(), 137, ends=(CLIENT, "10.255.255.255"), source=137))
    )
    lldp = b"\2\7\4" + CLIENT_MAC + b"\4\7\3" + CLIENT_MAC + b"\6\2\0\x78"
    lldp += struct.pack(">H", 5 << 9 | len(secret("lldp"))) + secret("lldp")
    lldp += b"\x10\x0c\5\1" + address + b"\2\0\0\0\1\0" + b"\0\0"
    yield Sample("lldp", bytes.fromhex("0180c200000e") + CLIENT_MAC + b"\x88\xcc" + lldp)
    stp = b"\x42\x42\x03" + bytes(5) + b"\x80\0" + SERVER_MAC + bytes(4) + b"\x80\0" + CLIENT_MAC
    yield Sample("stp", bytes.fromhex("0180c2000000") + CLIENT_MAC + vector(2, stp + bytes(10)))
    eapol = b"\1\0" + vector(2, b"\2\1" + struct.pack(">H", 5 + len(secret("eapol"))) + b"\1"
                             + secret("eapol"))  # fmt: skip
    yield Sample("eapol", bytes.fromhex("0180c2000003") + CLIENT_MAC + b"\x88\x8e" + eapol)
    yield Sample("unknown_ethertype", ether(secret("unknown") + address + token("unknown"), 0x9999))


def nbns() -> bytes:
    """A registration of a NetBIOS name (RFC 1002, 4.2.2): two letters stand for a byte."""
    letters = bytes(65 + half for b in padded_name() for half in (b >> 4, b & 15))
    question = b"\x20" + letters + b"\0\0\x20\0\1"
    told = b"\xc0\x0c\0\x20\0\1\0\0\0\x3c\0\6\0\0" + ipaddress.ip_address(CLIENT).packed
    return struct.pack(">6H", 7, 0x2910, 1, 0, 0, 1) + question + told


def padded_name() -> bytes:
    """The NetBIOS name of the client."""
    return secret("nbns").upper()[:15].ljust(16)


def controls() -> Iterator[Sample]:
    """ICMP, IGMP, SCTP."""
    quoted = tcp("quoted", client_hello("quoted"))[:200]
    quoted6 = tcp("quoted6", client_hello("quoted6"), v6=True)[:200]
    objects = (
        b"\x20\0\0\0" + b"\0\x0c\2\x0f" + ipaddress.ip_address(HOME).packed + token("object", 4)
    )
    for name, head, more in (
        ("unreachable", b"\3\1\0\0" + bytes(4), b""),
        ("time_exceeded", b"\x0b\0\0\0\0\x20\0\0", b""),
        ("redirect", b"\5\1\0\0" + ipaddress.ip_address(HOME).packed, b""),
        ("extended_error", b"\x0b\0\0\0\0\x20\0\0", objects),
    ):
        body = quoted[:128].ljust(128, b"\0") + more if more else quoted
        yield Sample(name, ether(ip(summed(head + body, 2), ICMP, out=False), out=False))
    for name, head in (("unreachable6", b"\1\4\0\0"), ("too_big6", b"\2\0\0\0")):
        yield Sample(
            name, ether(ip(head + b"\0\0\5\x00" + quoted6, ICMP6, v6=True, out=False), out=False)
        )
    reply = ip(wire.udp(secret("port unreachable"), ports=(53, 30009)), wire.UDP, out=False)
    body = b"\3\3\0\0" + bytes(4) + reply
    yield Sample("own_error", ether(ip(summed(body, 2), ICMP)))
    echo = b"\x08\0\0\0\xca\xfe\0\1" + token("echo", 8) + secret("echo") + quoted[12:20]
    yield Sample("echo", ether(ip(summed(echo, 2), ICMP)))
    echo6 = b"\x80\0\0\0\xca\xfe\0\1" + token("echo6", 8) + secret("echo6") + quoted6[8:40]
    yield Sample("echo6", ether(ip(echo6, ICMP6, v6=True)))
    stamp = b"\x0d\0\0\0\xca\xfe\0\1" + token("icmp timestamp", 12)
    yield Sample("icmp_timestamp", ether(ip(summed(stamp, 2), ICMP)))
    report = b"\x22\0\0\0\0\0\0\1\4\0\0\1\xef\1\2\3" + ipaddress.ip_address(HOME).packed
    yield Sample("igmp", ether(ip(summed(report, 2), IGMP, ends=(CLIENT, "224.0.0.22"))))
    init = b"\1\0" + vector(
        2, token("sctp", 16) + b"\0\5\0\x08" + ipaddress.ip_address(HOME).packed
    )
    sctp = struct.pack(">HH", 5000, 5001) + token("sctp tag", 4) + bytes(4) + init
    yield Sample("sctp", ether(ip(sctp, SCTP)))


# ---- DNS ----------------------------------------------------------------------------------------


def record_of(kind: int, data: bytes, owner: bytes = b"\xc0\x0c") -> bytes:
    """A resource record; its owner is the question."""
    return owner + struct.pack(">HHI", kind, 1, 60) + vector(2, data)


def domain() -> Iterator[Sample]:
    """DNS over UDP and TCP."""
    labels = wire.dns_name(*(host("dns_cname") + b".").rstrip(b".").split(b"."))
    home4, home6 = (ipaddress.ip_address(one).packed for one in (HOME, HOME6))
    server4, server6 = (ipaddress.ip_address(one).packed for one in (SERVER, SERVER6))
    yield Sample("dns_question", ether(udp("dns_question", dns(host("dns_question")), 53)))
    subnet = b"\0\x08" + vector(2, b"\0\1\x20\0" + ipaddress.ip_address(CLIENT).packed)
    subnet6 = b"\0\x08" + vector(2, b"\0\2\x38\0" + ipaddress.ip_address(CLIENT6).packed[:7])
    cookie = b"\0\x0a" + vector(2, token("dns cookie", 16))
    mac = b"\xfd\xe9" + vector(2, CLIENT_MAC)  # dnsmasq's --add-mac
    for name, options in (
        ("dns_subnet", subnet), ("dns_subnet6", subnet6), ("dns_cookie", cookie), ("dns_mac", mac),
    ):  # fmt: skip
        opt = b"\0\0\x29\x04\xd0\0\0\0\0" + vector(2, options)
        plain_question = wire.dns_message(
            wire.dns_name(*host(name).split(b".")), counts=(1, 0, 0, 1), rest=opt
        )
        yield Sample(name, ether(udp(name, plain_question, 53)))
    for name, kind, answers in (
        ("dns_a", 1, (record_of(1, home4), record_of(1, server4))),
        ("dns_aaaa", 28, (record_of(28, home6), record_of(28, server6))),
        ("dns_cname", 1, (record_of(5, labels), record_of(1, server4, labels))),
        ("dns_mx", 15, (record_of(15, b"\0\5" + labels),)),
        ("dns_txt", 16, (record_of(16, vector(1, secret("txt")) + vector(1, CLIENT.encode())),)),
        ("dns_hint", 65, (record_of(65, b"\0\1\0\0\4" + vector(2, server4)),)),
        ("dns_unknown", 4711, (record_of(4711, token("rdata") + home4),)),
    ):
        asked = dns(host(name), kind=kind)
        answer = dns(host(name), kind=kind, response=True, answers=answers)
        yield Sample(name + "_asked", ether(udp(name, asked, 53)))
        yield Sample(name, ether(udp(name, answer, 53, out=False), out=False))
    for name, address in (("dns_ptr", CLIENT), ("dns_ptr6", CLIENT6)):
        question = ipaddress.ip_address(address).reverse_pointer.encode()
        yield Sample(name + "_asked", ether(udp(name, dns(question, kind=12), 53)))
        told = wire.dns_name(*(secret(name) + b".home.arpa").split(b"."))
        answer = dns(question, kind=12, response=True, answers=(record_of(12, told),))
        yield Sample(name, ether(udp(name, answer, 53, out=False), out=False))
    yield Sample(
        "dns_tcp", ether(tcp("dns_tcp", vector(2, dns(host("dns_tcp"))) + token("behind"), 53))
    )


# ---- TLS, HTTP, QUIC ----------------------------------------------------------------------------


def hello_extensions(name: str) -> list[bytes]:
    """Extensions of a ClientHello that link its client's connections."""

    def of(what: str, size: int = 32) -> bytes:
        return token(f"{name} {what}", size)

    share = vector(2, b"\0\x1d" + vector(2, of("key share")))
    identity = vector(2, of("psk identity", 48)) + b"\x12\x34\x56\x78"
    psk = vector(2, identity) + vector(2, vector(1, of("psk binder")))
    ech = b"\0\0\1\0\1\x2a" + vector(2, of("ech key")) + vector(2, of("ech body", 64))
    return [
        extension(0x0023, of("ticket", 64)),
        extension(0x0033, share),
        extension(0x002C, vector(2, of("cookie"))),
        extension(0x0010, vector(2, vector(1, b"h2") + vector(1, secret(name + "-alpn")))),
        extension(0xFE0D, ech),
        extension(0x4A4A, of("grease")),
        extension(0x7654, of("unknown extension") + secret(name + "-extension")),
        extension(0x0015, of("padding")),
        extension(0x0029, psk),
    ]


def client_hello(name: str) -> bytes:
    """A record with a ClientHello that names a host."""
    body = b"\3\3" + token(name + " random", 32) + vector(1, token(name + " session", 32))
    body += vector(2, b"\x1a\x1a\x13\x01\xc0\x2f") + b"\1\0"
    extensions = [wire.server_name(host(name)), *hello_extensions(name)]
    return wire.record(b"\1" + vector(3, body + vector(2, b"".join(extensions))))


def web() -> Iterator[Sample]:
    """What browsers and servers say."""
    yield Sample("client_hello", ether(tcp("client_hello", client_hello("client_hello"))))
    yield Sample(
        "client_hello6", ether(tcp("client_hello6", client_hello("client_hello6"), v6=True))
    )
    hello = server_hello(
        extension(0x0033, b"\0\x1d" + vector(2, token("server share", 32))),
        extension(0x002C, vector(2, token("retry cookie", 32))),
        random=token("server random", 32),
        session=token("server session", 32),
    )
    shown = wire.record(hello + message(named(host("certificate").decode())))
    yield Sample("certificate", ether(tcp("certificate", shown, out=False), out=False))
    ticket = b"\4" + vector(3, token("lifetime", 4) + vector(2, token("new ticket", 64)))
    yield Sample("new_ticket", ether(tcp("new_ticket", wire.record(ticket), out=False), out=False))
    data = wire.record(token("application data", 200), 0x0303, 23)
    yield Sample("application_data", ether(tcp("application_data", data)))
    head = b"POST /" + secret("target") + b"?id=" + token("query").hex().encode()
    head += b" HTTP/1.1\r\nHost: " + host("http") + b"\r\nCookie: sid=" + secret("cookie")
    head += b"\r\nX-Forwarded-For: " + CLIENT.encode() + b", " + CLIENT6.encode()
    head += b"\r\nForwarded: for=" + HOME.encode() + b"\r\nReferer: http://" + host("referer")
    head += b"/" + secret("referer") + b"\r\nUser-Agent: " + secret("agent")
    head += b"\r\nAuthorization: Basic " + secret("password") + b"\r\nContent-Length: 40\r\n\r\n"
    body = (secret("body") + token("body", 40))[:40]
    yield Sample("http_request", ether(tcp("http_request", head + body, 80)))
    answer = b"HTTP/1.1 302 " + secret("reason") + b"\r\nSet-Cookie: id=" + secret("set-cookie")
    answer += b"\r\nLocation: http://" + host("location") + b"/" + secret("location")
    answer += b"\r\nETag: " + token("etag").hex().encode() + b"\r\nContent-Length: 16\r\n\r\n"
    answer += token("http body")
    yield Sample("http_response", ether(tcp("http_response", answer, 80, out=False), out=False))
    absolute = b"GET http://" + host("proxy") + b"/" + secret("proxy") + b" HTTP/1.0\r\n\r\n"
    yield Sample("http_proxy", ether(tcp("http_proxy", absolute, 8080)))
    connect = b"CONNECT " + host("connect") + b":443 HTTP/1.1\r\nHost: " + host("connect")
    connect += b":443\r\nProxy-Authorization: Basic " + secret("proxy-password") + b"\r\n\r\n"
    yield Sample("http_connect", ether(tcp("http_connect", connect, 3128)))
    fields = h2.Client().block(host("h2"), (b"cookie", secret("h2")))
    opening = h2.PREFACE + h2.frame(h2.SETTINGS) + h2.frame(h2.HEADERS, fields, flags=4, stream=1)
    yield Sample("h2", ether(tcp("h2", opening, 80)))
    asked = quic_wire.hello(*hello_extensions("quic"), host=host("quic"))
    initial = quic_wire.Initial(
        quic_wire.crypto(asked), token=token("quic token", 32), size=1200
    ).seal()
    yield Sample("quic_initial", ether(udp("quic_initial", initial, 443)))
    retry = quic_wire.retry(quic_wire.SCID, quic_wire.SERVER_ID, token("retry token", 32))
    yield Sample("quic_retry", ether(udp("quic_retry", retry, 443, out=False), out=False))
    protected = b"\x55" + quic_wire.SERVER_ID + token("one rtt", 60)
    yield Sample("quic_protected", ether(udp("quic_protected", protected, 443)))
    cookie = token("dtls cookie", 20)
    dtls = quic_wire.dtls_hello(*hello_extensions("dtls"), cookie=cookie, host=host("dtls"))
    record = quic_wire.dtls_record(quic_wire.dtls_fragment(dtls))
    yield Sample("dtls", ether(udp("dtls", record, 4433)))


def talk() -> Iterator[Sample]:
    """Protocols in clear that nobody lists."""
    for name, port, said in (
        ("smtp", 25, b"EHLO " + secret("smtp") + b"\r\nMAIL FROM:<" + secret("smtp-mail") + b"@"
         + host("smtp") + b">\r\n"),
        ("ftp", 21, b"PORT " + CLIENT.replace(".", ",").encode() + b",7,8\r\n" + secret("ftp")),
        ("ssh", 22, b"SSH-2.0-" + secret("ssh") + b"\r\n" + token("ssh", 200)),
        ("irc", 6667, b"USER " + secret("irc") + b" " + CLIENT.encode() + b"\r\n"),
    ):  # fmt: skip
        yield Sample(name, ether(tcp(name, said, port)))
    sip = b"REGISTER sip:" + host("sip") + b" SIP/2.0\r\nVia: SIP/2.0/UDP " + CLIENT.encode()
    sip += b":5060\r\nContact: <sip:" + secret("sip") + b"@" + CLIENT.encode() + b">\r\n\r\n"
    yield Sample("sip", ether(udp("sip", sip, 5060)))
    mapped = bytes(a ^ b for a, b in zip(ipaddress.ip_address(CLIENT).packed, STUN, strict=True))
    stun = (
        b"\1\1\0\x0c" + STUN + token("stun", 12) + b"\0\x20\0\x08\0\1" + token("port", 2) + mapped
    )
    yield Sample("stun", ether(udp("stun", stun, 3478, out=False), out=False))
    radius = b"\1\7\0\x40" + token("radius") + b"\1" + vector(1, secret("radius")) + b"\x1f\x13"
    radius += CLIENT_MAC.hex("-").encode()
    yield Sample("radius", ether(udp("radius", radius, 1812)))
    ntp = b"\x23\0\x06\xec" + bytes(8) + ipaddress.ip_address(HOME).packed + token("ntp", 32)
    yield Sample("ntp", ether(udp("ntp", ntp, 123)))
    yield Sample("snapped", ether(tcp("snapped", client_hello("snapped")))[:90])


STUN = b"\x21\x12\xa4\x42"
MAKERS: Sequence[Callable[[], Iterator[Sample]]] = (
    encapsulations,
    ip_headers,
    tcp_headers,
    local,
    controls,
    domain,
    web,
    talk,
)


@cache
def on_ethernet() -> tuple[Sample, ...]:
    """The frames of Ethernet."""
    return tuple(sample for make in MAKERS for sample in make())


@cache
def samples() -> tuple[Sample, ...]:
    """All frames, a millisecond apart in the capture."""
    return (*on_ethernet(), *other_links())


def frames() -> list[Frame]:
    """The frames of Ethernet with times."""
    return [Frame(START + n * MS, one.data, len(one.data)) for n, one in enumerate(on_ethernet())]


# ---- what must not be found ---------------------------------------------------------------------

ADDRESSES = (CLIENT, CLIENT6, LINK_LOCAL, NEAR, NEAR6, HOME, HOME6, FAR, FAR6)
SERVERS = (SERVER, SERVER6)


def address_marks(text: str) -> Iterator[bytes]:
    """An address in binary, turned round, xored as STUN and Teredo do, as text, in DNS."""
    address = ipaddress.ip_address(text)
    packed = address.packed
    yield packed
    yield packed[::-1]
    if address.version == 4:
        yield bytes(0xFF ^ b for b in packed)
        yield bytes(a ^ b for a, b in zip(packed, STUN, strict=True))
        yield text.replace(".", ",").encode()
    else:
        yield packed[8:]  # the interface identifier
        if not address.is_link_local:
            yield packed[:8]
    pointer = address.reverse_pointer.encode()
    yield wire.dns_name(*pointer.split(b".")[:-2])[:-1]
    yield from (one for one in notations(address) if len(one) > 6 and one != b"::")


@dataclass(frozen=True, slots=True)
class Mark:
    """Bytes that must not be found, in lower case, and what they are."""

    data: bytes
    kind: str  # "address", "server", "mac", "name" or "secret"
    what: str


@cache
def marks() -> tuple[Mark, ...]:
    """All that must not be found in what a run leaves."""
    samples()
    found = [
        Mark(data.lower(), kind, f"{kind} {text}")
        for kind, texts in (("address", ADDRESSES), ("server", SERVERS))
        for text in texts
        for data in address_marks(text)
    ]
    for mac in (CLIENT_MAC, SERVER_MAC):
        forms = {mac, mac[::-1], mac.hex().encode()}
        forms |= {mac.hex(separator).encode() for separator in ":-"}
        forms |= {mac[:1] + mac[1:3] + b"\xff\xfe" + mac[3:], b"\xff\xfe" + mac[3:]}
        found += [Mark(form.lower(), "mac", f"MAC {mac.hex()}") for form in forms]
    found += [Mark(form, "name", NAMES) for form in spellings(NAMES.removeprefix("."))]
    found.append(Mark(b"kanarie", "name", NAMES))
    found += [
        Mark(form, "secret", SECRET) for form in (SECRET.encode(), SECRET.encode().hex().encode())
    ]
    letters = bytes(65 + half for b in padded_name()[:12] for half in (b >> 4, b & 15))
    found.append(Mark(letters.lower(), "secret", "NetBIOS name"))
    huffman = hpack.Encoder().encode([(b"x", host("h2"))], huffman=True)
    found.append(Mark(huffman[-12:-1].lower(), "name", "name in HPACK"))
    found += [
        Mark(part.lower(), "secret", f"token {of}")
        for of, n in TOKENS.items()
        for part in parts(of, n)
    ]
    return tuple(found)


def parts(of: str, size: int) -> set[bytes]:
    """What to search of a token: both halves of a short one, both ends of another, and its text."""
    data = drawn(of, size)
    if size < 4:
        return set()
    if size == 8:
        return {data[:4], data[4:]}
    return {data[:16], data[-16:], data.hex().encode()}


def unsealed(data: bytes) -> bytes:
    """What QUIC's Initials in a client's datagram hold, of those that open."""
    out = b""
    try:
        packets, _rest = split(data)
        for packet in packets:
            for server in (False, True):
                text = quic_opened(packet, packet.dcid, server) if packet.version == 1 else None
                out += b"".join(part for _at, part in said_by(text)) if text else b""
    except (IndexError, ValueError, struct.error):
        return out
    return out


def found_in(haystack: bytes, kinds: Sequence[str] = ()) -> set[str]:
    """The marks that occur in bytes, of these kinds or of all."""
    lower = haystack.lower()
    return {
        mark.what for mark in marks() if (not kinds or mark.kind in kinds) and mark.data in lower
    }
