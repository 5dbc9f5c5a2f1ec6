# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The headers around an IP packet in an anonymized frame, read strictly.

Each header has to be as docs/reference/packets.md lists it: a bit that no row there allows, a wrong
length or checksum is an error.
"""

import ipaddress
import struct
from typing import NamedTuple

IPV4, IPV6, BRIDGING, PPP, MPLS, PPPOE = 0x0800, 0x86DD, 0x6558, 0x880B, 0x8847, 0x8864
VLANS = (0x8100, 0x88A8, 0x9100, 0x9200, 0x9300)
UDP = 17
TUNNEL_PORTS = (1701, 2152, 3544, 4341, 4754, 4789, 4790, 5247, 6081, 6635, 8472)
"""Of UDP: behind one of them there may be a packet in a tunnel."""
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Layer(NamedTuple):
    """A header: its name, what identifies it, and for IP both addresses."""

    name: str
    ids: tuple[int, ...] = ()
    ends: tuple[Address, ...] = ()


class Found(NamedTuple):
    """The headers, the outermost first, and the IP packet in them."""

    layers: list[Layer]
    packet: bytes


def require(right: bool, what: str) -> None:
    """Raises ValueError if it is not."""
    if not right:
        raise ValueError(what)


def checksum(data: bytes) -> int:
    """0 over what holds a right one (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Reader:
    """Reads one frame; `cut`: its payload may be missing."""

    def __init__(self, frame: bytes, cut: bool) -> None:
        self.cut = cut
        self.macs = frame[:12]
        self.layers: list[Layer] = []
        self.packet = self.ethertype(int.from_bytes(frame[12:14]), frame[14:])

    def add(self, name: str, *ids: int, ends: tuple[Address, ...] = ()) -> None:
        self.layers.append(Layer(name, ids, ends))

    def ethernet(self, data: bytes) -> bytes:
        require(data[:12] == self.macs, "MAC addresses of an inner frame")
        self.add("ethernet")
        return self.ethertype(int.from_bytes(data[12:14]), data[14:])

    def ethertype(self, kind: int, data: bytes) -> bytes:
        if kind in (IPV4, IPV6):
            require(data[0] >> 4 == (4 if kind == IPV4 else 6), "version of IP")
            return self.ip(data)
        if kind in VLANS:
            tag, kind = struct.unpack_from(">HH", data)
            self.add("vlan", tag & 0xFFF)
            return self.ethertype(kind, data[4:])
        if kind == MPLS:
            return self.mpls(data)
        if kind == PPPOE:
            start, session, size = struct.unpack_from(">HHH", data)
            require(start == 0x1100 and size <= len(data) - 6, "PPPoE")
            self.add("pppoe", session)
            return self.ppp(data[6 : 6 + size])
        if kind == BRIDGING:
            return self.ethernet(data)
        require(kind == PPP, f"EtherType {kind:#x}")
        return self.ppp(data)

    def mpls(self, data: bytes) -> bytes:
        (entry,) = struct.unpack_from(">I", data)
        self.add("mpls", entry >> 12)
        rest = data[4:]
        if not entry & 0x100:
            return self.mpls(rest)
        if rest[0] >> 4 in (4, 6):
            return self.ip(rest)
        if rest[:4] == bytes(4):
            rest = rest[4:]
            self.add("control")
        return self.ethernet(rest)

    def ppp(self, data: bytes) -> bytes:
        data = data.removeprefix(b"\xff\x03")
        kind = int.from_bytes(data[:2])
        self.add("ppp")
        if kind == 0x0281:
            return self.mpls(data[2:])
        require(kind == (0x21 if data[2] >> 4 == 4 else 0x57), "protocol of PPP")
        return self.ip(data[2:])

    def ip(self, data: bytes) -> bytes:
        """Reads the header if it is one around another packet."""
        if data[0] >> 4 == 4:
            size, header, pseudo = struct.unpack_from(">H", data, 2)[0], 20, data[12:20]
            protocol = data[9]
        else:
            size, header, pseudo = 40 + struct.unpack_from(">H", data, 4)[0], 40, data[8:40]
            protocol = data[6]
        require(self.cut or size <= len(data), "length of IP")
        whole, data = data[:size], data[header:size]
        half = len(pseudo) // 2
        outer = Layer(
            "ip", (), (ipaddress.ip_address(pseudo[:half]), ipaddress.ip_address(pseudo[half:]))
        )
        place = len(self.layers)
        packet = self.protocol(protocol, data, pseudo)
        if packet is None:
            return whole
        if header == 20:
            require(whole[0] == 0x45 and checksum(whole[:20]) == 0, "IPv4")
            require(whole[4:6] == bytes(2) and whole[6] & 0xBF == whole[7] == 0, "IPv4's fields")
        else:
            require(whole[1] & 0x0F == 0 and whole[2:4] == bytes(2), "flow label")
        require((whole[8] if header == 20 else whole[7]) in (64, 128, 255), "class of TTL")
        self.layers.insert(place, outer)
        return packet

    def protocol(self, protocol: int, data: bytes, pseudo: bytes) -> bytes | None:
        """None: this is the packet itself."""
        if protocol in (4, 41):
            return self.ip(data)
        if protocol == 47:
            return self.gre(data)
        if protocol == 97:
            require(data[:2] == b"\x30\0", "EtherIP")
            self.add("etherip")
            return self.ethernet(data[2:])
        if protocol == 137:
            return self.mpls(data)
        if protocol == 143:
            return self.ethernet(data)
        return self.udp(data, pseudo) if protocol == UDP else None

    def gre(self, data: bytes) -> bytes | None:
        flags, kind = struct.unpack_from(">HH", data)
        if not kind:
            return None  # one that is not read, whose rest is zeros
        require(flags in (0, 0x2000), "flags of GRE")
        self.add("gre", *(struct.unpack_from(">I", data, 4) if flags else ()))
        return self.ethertype(kind, data[8 if flags else 4 :])

    def udp(self, data: bytes, pseudo: bytes) -> bytes | None:
        if len(data) < 12:
            return None
        source, target, size = struct.unpack_from(">HHH", data)
        place, rest = len(self.layers), data[8:]
        for port in (target, source):
            packet = self.tunnel(port, rest)
            if packet is not None:
                require(size == len(data), "length of UDP")
                over = pseudo + struct.pack(">II", size, UDP) + data
                require(data[6:8] != bytes(2) and checksum(over) == 0, "checksum of UDP")
                self.layers.insert(place, Layer("udp", (source, target)))
                return packet
        return None

    def tunnel(self, port: int, data: bytes) -> bytes | None:
        """None: there is none."""
        if port in (4789, 4790, 8472) and data[0] in (8, 12):
            require(data[1:3] == bytes(2) and data[7] == 0, "VXLAN")
            require(data[0] == 12 or data[3] == 0, "reserved bits of VXLAN")
            self.add("vxlan", int.from_bytes(data[4:7]))
            steps = {0: self.ethernet, 1: self.ip, 2: self.ip, 3: self.ethernet, 5: self.mpls}
            return steps[data[3]](data[8:])
        if port == 6081 and data[2:4] != bytes(2):
            require(data[:2] == bytes(2) and data[7] == 0, "Geneve")
            self.add("geneve", int.from_bytes(data[4:7]))
            return self.ethertype(int.from_bytes(data[2:4]), data[8:])
        if port == 2152 and data[:2] == b"\x30\xff":
            require(int.from_bytes(data[2:4]) == len(data) - 8, "length of GTP")
            self.add("gtp", int.from_bytes(data[4:8]))
            return self.ip(data[8:])
        if port == 3544 and data[0] >> 4 == 6:
            return self.ip(data)
        if port == 1701 and data[:2] == b"\0\2":
            self.add("l2tp", *struct.unpack_from(">HH", data, 2))
            return self.ppp(data[6:])
        if port == 5247 and data[:4] == b"\0\x10\2\0":
            require(data[4:8] == bytes(4), "CAPWAP")
            self.add("capwap")
            return self.ethernet(data[8:])
        if port == 4341 and len(data) > 8 and data[8] >> 4 in (4, 6):
            require(data[0] in (0, 8) and data[1:4] == bytes(3) and data[7] == 0, "LISP")
            self.add("lisp", *([int.from_bytes(data[4:7])] if data[0] else []))
            return self.ip(data[8:])
        if port == 6635 and any(data[:4]):
            return self.mpls(data)
        if port == 4754 and any(data[:4]):
            return self.gre(data)
        return None


def read(frame: bytes, *, cut: bool = False) -> Found:
    """Reads a frame. Raises ValueError if it is not as it must be."""
    reader = Reader(frame, cut)
    return Found(reader.layers, reader.packet)
