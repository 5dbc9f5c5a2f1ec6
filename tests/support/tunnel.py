# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Packets in tunnels between two addresses."""

import ipaddress
from collections.abc import Callable, Sequence

from support import wire
from support.packets import IPV4_SOURCE, Frame, to_ip

GATEWAY = "192.0.2.99"  # the tunnel's other end, outside
Wrap = Callable[[bytes, tuple[str, str]], bytes]


def gre(packet: bytes, ends: tuple[str, str]) -> bytes:
    kind = wire.ETHERTYPE_IPV4 if packet[0] >> 4 == 4 else wire.ETHERTYPE_IPV6
    return to_ip(b"\0\0" + kind.to_bytes(2, "big") + packet, 47, ends)[0]


def vxlan(packet: bytes, ends: tuple[str, str]) -> bytes:
    kind = wire.ETHERTYPE_IPV4 if packet[0] >> 4 == 4 else wire.ETHERTYPE_IPV6
    inner = b"\x08\0\0\0\0\0\7\0" + wire.ethernet(packet, kind)
    return to_ip(wire.udp(inner, ports=(50000, 4789)), wire.UDP, ends)[0]


def gtp(packet: bytes, ends: tuple[str, str]) -> bytes:
    inner = b"\x30\xff" + len(packet).to_bytes(2, "big") + b"\0\0\0\7" + packet
    return to_ip(wire.udp(inner, ports=(2152, 2152)), wire.UDP, ends)[0]


def ip_in_ip(packet: bytes, ends: tuple[str, str]) -> bytes:
    return to_ip(packet, 4 if packet[0] >> 4 == 4 else 41, ends)[0]


WRAPS: dict[str, Wrap] = {"gre": gre, "vxlan": vxlan, "gtp": gtp, "ip-in-ip": ip_in_ip}


def tunnelled(
    frames: Sequence[Frame], client: str, near: str, far: str = GATEWAY, wrap: Wrap = gre
) -> list[Frame]:
    """The frames of the client's connection between the tunnel's ends, `near` on its side."""
    out = []
    packed = ipaddress.ip_address(client).packed
    for frame in frames:
        packet = frame.data[14:]
        source = packet[12:16] if packet[0] >> 4 == 4 else packet[8:24]
        outer = wrap(packet, (near, far) if source == packed else (far, near))
        kind = wire.ETHERTYPE_IPV4 if outer[0] >> 4 == 4 else wire.ETHERTYPE_IPV6
        data = wire.ethernet(outer, kind)
        out.append(Frame(frame.t_ns, data, len(data)))
    return out


def by_tunnel(frames: Sequence[Frame], client: str, ends: tuple[str, str]) -> list[Frame]:
    """The frames, with the server's packets to the client in a tunnel between these ends."""
    packed = ipaddress.ip_address(client).packed
    sent = [frame.data[IPV4_SOURCE : IPV4_SOURCE + 4] == packed for frame in frames]
    packets = [wire.ethernet(gre(f.data[14:], ends), wire.ETHERTYPE_IPV4) for f in frames]
    return [
        frame if by_client else Frame(frame.t_ns, data, len(data))
        for frame, data, by_client in zip(frames, packets, sent, strict=True)
    ]
