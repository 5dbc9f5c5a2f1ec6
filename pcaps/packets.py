# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Frames from Ethernet to TCP and UDP, written with scapy.

Every header field that scapy would default is set here, so its version does not show in the bytes.
"""

import struct
from collections.abc import Iterable

from flows import CLIENT, PROTO_TCP, PROTO_UDP, SERVER, Flow, Packet, Path
from scapy.layers.inet import IP, TCP, UDP, IPOption_NOP, IPOption_Router_Alert
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrHopByHop, PadN
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet as Layer
from scapy.packet import Raw

from zanon_net.bench.messages import Dice

ETHERTYPE_IPV4, ETHERTYPE_IPV6 = 0x0800, 0x86DD
MSS_ETHERNET = 1460
PCAP_MAGIC_MICROSECONDS = 0xA1B2C3D4
LINKTYPE_ETHERNET = 1
SNAPLEN = 65535


def link_layer(path: Path, side: int, ethertype: int) -> Layer:
    """Return Ethernet with the path's VLAN tags, sent by `side`, with `ethertype` inside."""
    ends = (path.client_mac, path.server_mac)
    types = [tpid for tpid, _ in path.vlans] + [ethertype]
    layers: Layer = Ether(src=ends[side], dst=ends[1 - side], type=types[0])
    for i, (_, vlan) in enumerate(path.vlans):
        layers = layers / Dot1Q(prio=0, vlan=vlan, type=types[i + 1])
    return layers


def _network_layer(path: Path, side: int, proto: int, ident: int) -> Layer:
    ends = (path.client, path.server)
    hops = 64 if side == CLIENT else 52
    extended = path.options and side == CLIENT
    if not path.is_ipv6:
        options = [IPOption_NOP(), IPOption_NOP(), IPOption_Router_Alert(), IPOption_NOP()]
        return IP(
            version=4, tos=0, id=ident, flags="DF", frag=0, ttl=hops, proto=proto,
            src=ends[side], dst=ends[1 - side], options=options if extended else [],
        )  # fmt: skip
    first = 0 if extended else proto
    layers: Layer = IPv6(
        version=6, tc=0, fl=0, nh=first, hlim=hops, src=ends[side], dst=ends[1 - side]
    )
    if extended:
        pad = [PadN(optdata=b"\0" * 4)]
        layers = layers / IPv6ExtHdrHopByHop(nh=60, options=pad)
        layers = layers / IPv6ExtHdrDestOpt(nh=proto, options=pad)
    return layers


def build_frame(path: Path, side: int, transport: Layer, ident: int) -> bytes:
    """Return the bytes of one frame with lengths and checksums."""
    proto = PROTO_TCP if isinstance(transport, TCP) else PROTO_UDP
    ethertype = ETHERTYPE_IPV6 if path.is_ipv6 else ETHERTYPE_IPV4
    network = _network_layer(path, side, proto, ident)
    return bytes(link_layer(path, side, ethertype) / network / transport)


class UdpTalk:
    """Datagrams between two ports. `now` is the time of the next datagram in microseconds."""

    def __init__(self, path: Path, ports: tuple[int, int], start_us: int, dice: Dice) -> None:
        self.flow = Flow(path, PROTO_UDP, *ports)
        self.now = start_us
        self.dice = dice
        self._ident = [dice.below(0x8000), dice.below(0x8000)]

    def send(self, side: int, payload: bytes) -> Packet:
        """Send one datagram and let a fraction of a millisecond pass."""
        ports = (self.flow.client_port, self.flow.server_port)
        self._ident[side] += 1
        layer = UDP(sport=ports[side], dport=ports[1 - side]) / Raw(payload)
        frame = build_frame(self.flow.path, side, layer, self._ident[side])
        packet = Packet(self.now, frame)
        self.flow.packets.append(packet)
        self.now += self.dice.between(60, 400)
        return packet

    def cross(self) -> None:
        """Advance the time by one way through the network."""
        base = self.flow.path.round_trip_us // 2
        self.now += base + self.dice.below(base // 4 + 1)


class TcpTalk:
    """TCP connection with the sequence numbers of both ends."""

    def __init__(self, path: Path, ports: tuple[int, int], start_us: int, dice: Dice) -> None:
        self.flow = Flow(path, PROTO_TCP, *ports)
        self.now = start_us
        self.dice = dice
        self.mss = MSS_ETHERNET
        self.next_seq = [dice.below(1 << 32), dice.below(1 << 32)]
        self._ident = [dice.below(0x8000), dice.below(0x8000)]

    def emit(
        self, side: int, flags: str, payload: bytes = b"", seq: int | None = None, ack_skew: int = 0
    ) -> Packet:
        """Send one segment.

        Without `seq` it is the next in order and moves the sequence number on; with it the segment
        is a repeat or out of order. `ack_skew` falsifies the acknowledgement number.
        """
        ports = (self.flow.client_port, self.flow.server_port)
        acked = (self.next_seq[1 - side] + ack_skew) % (1 << 32) if "A" in flags else 0
        sent = self.next_seq[side] if seq is None else seq
        self._ident[side] += 1
        opening = [("MSS", self.mss), ("SAckOK", b""), ("NOP", None), ("WScale", 7)]
        layer: Layer = TCP(
            sport=ports[side], dport=ports[1 - side], seq=sent % (1 << 32), ack=acked,
            flags=flags, window=502, urgptr=0, options=opening if "S" in flags else [],
        )  # fmt: skip
        frame = build_frame(
            self.flow.path, side, layer / Raw(payload) if payload else layer, self._ident[side]
        )
        packet = Packet(self.now, frame)
        self.flow.packets.append(packet)
        self.now += self.dice.between(40, 300)
        if seq is None:
            size = len(payload) + ("S" in flags) + ("F" in flags)
            self.next_seq[side] = (self.next_seq[side] + size) % (1 << 32)
        return packet

    def cross(self) -> None:
        """Advance the time by one way through the network."""
        base = self.flow.path.round_trip_us // 2
        self.now += base + self.dice.below(base // 4 + 1)

    def open(self) -> Packet:
        """Do the three-way handshake and return the client's ACK, the evidence of a real client."""
        self.emit(CLIENT, "S")
        self.cross()
        self.emit(SERVER, "SA")
        self.cross()
        return self.emit(CLIENT, "A")

    def segments(self, payload: bytes) -> list[tuple[int, bytes]]:
        """Cut `payload` at the MSS into (offset, bytes)."""
        return [(i, payload[i : i + self.mss]) for i in range(0, len(payload), self.mss)]

    def say(self, side: int, payload: bytes) -> Packet:
        """Send `payload` in order, have it acknowledged, and return its last segment."""
        for offset, part in self.segments(payload):
            last = offset + len(part) == len(payload)
            packet = self.emit(side, "PA" if last else "A", part)
        self.cross()
        self.emit(1 - side, "A")
        return packet

    def close(self, side: int) -> None:
        """End with FIN in both directions, `side` first, the last one acknowledged."""
        self.emit(side, "FA")
        self.cross()
        self.emit(1 - side, "FA")
        self.cross()
        self.emit(side, "A")


def merge(packets: Iterable[Packet], start_us: int) -> list[Packet]:
    """Put packets in order and fix their times: strictly rising, from `start_us` (epoch)."""
    ordered = sorted(packets, key=lambda packet: packet.t_us)
    last = start_us - 1
    for packet in ordered:
        packet.t_us = last = max(last + 1, start_us + packet.t_us)
    return ordered


def pcap_bytes(packets: Iterable[Packet]) -> bytes:
    """Return a little-endian microsecond pcap file."""
    parts = [
        struct.pack("<IHHiIII", PCAP_MAGIC_MICROSECONDS, 2, 4, 0, 0, SNAPLEN, LINKTYPE_ETHERNET)
    ]
    for packet in packets:
        seconds, micros = divmod(packet.t_us, 1_000_000)
        size = len(packet.frame)
        parts.append(struct.pack("<IIII", seconds, micros, size, size) + packet.frame)
    return b"".join(parts)
