# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""IP packets in fragments, as RFC 791 3.2 and RFC 8200 4.5 say how to make them."""

import itertools
import struct
from collections.abc import Iterable, Sequence

from support import wire
from support.packets import Frame

NUMBER = 0xA5A5


def pieces(packet: bytes, cuts: Iterable[int], number: int = NUMBER) -> list[bytes]:
    """The fragments of an IP packet without options or extension headers, cut at these places of
    its payload (multiples of eight)."""
    header = 20 if packet[0] >> 4 == 4 else 40
    payload = packet[header:]
    bounds = [0, *sorted(cuts), len(payload)]
    return [
        piece(packet, start, payload[start:end], end < len(payload), number)
        for start, end in itertools.pairwise(bounds)
    ]


def piece(packet: bytes, start: int, data: bytes, more: bool, number: int = NUMBER) -> bytes:
    """A fragment of `packet` with any data."""
    if packet[0] >> 4 == 4:
        place = start // 8 | more << 13
        head = packet[:2] + struct.pack(">HHH", 20 + len(data), number, place)
        return head + packet[8:20] + data
    extension = struct.pack(">BBHI", packet[6], 0, start | more, number)
    head = packet[:4] + struct.pack(">HB", 8 + len(data), 44)
    return head + packet[7:40] + extension + data


def framed(packets: Sequence[bytes], t_ns: int, step_ns: int = 0) -> list[Frame]:
    """Ethernet frames of IP packets."""
    frames = []
    for packet in packets:
        kind = wire.ETHERTYPE_IPV4 if packet[0] >> 4 == 4 else wire.ETHERTYPE_IPV6
        data = wire.ethernet(packet, kind)
        frames.append(Frame(t_ns, data, len(data)))
        t_ns += step_ns
    return frames


def packet_of(frame: Frame) -> bytes:
    """The IP packet of an Ethernet frame."""
    return frame.data[14:]
