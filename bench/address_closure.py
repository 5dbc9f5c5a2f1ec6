# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Addresses in large captures of anonymized packets, as tests/oracle/packet_addresses.py reads
them.

Addresses in the headers of TCP and UDP are read for all packets at once. Packets that may contain
further addresses are read frame by frame.
"""

import ipaddress
import struct
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from oracle.packet_addresses import (
    TCP,
    UDP,
    Address,
    Closure,
    Held,
    block_of,
    closure,
    held,
)
from oracle.packet_layers import IPV4, IPV6, TUNNEL_PORTS

PCAP_HEADER_BYTES, RECORD_HEADER_BYTES = 24, 16
CAPTURED = struct.Struct("=8xI4x")  # of a record's header
ETHERTYPE_AT, IP_AT = 12, 14
AT_ONCE = 1 << 18  # frames
DNS_PORT = 53
Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Layout:
    """Places in a packet's IP header.

    The fields are the EtherType; the first byte, of which `first` are the bits in `mask`; the
    protocol; source and destination with their length; and the ports.
    """

    ethertype: int
    first: int
    mask: int
    protocol_at: int
    ends_at: int
    address_bytes: int
    ports_at: int


LAYOUTS = (Layout(IPV4, 0x45, 0xFF, 9, 12, 4, 20), Layout(IPV6, 0x60, 0xF0, 6, 8, 16, 40))


@dataclass(slots=True)
class Addresses:
    """Addresses of a capture: by source and destination the first frame and the number of frames,
    and the frames that have to be read one by one."""

    frames: int = 0
    ends: dict[tuple[Address, Address], tuple[int, int]] = field(default_factory=dict)
    others: list[tuple[int, bytes]] = field(default_factory=list)


def places_of(data: memoryview) -> tuple[Places, Places]:
    """Returns the begin and end of each frame of a pcap file."""
    begins, ends, at = [], [], PCAP_HEADER_BYTES
    while at < len(data):
        begins.append(at + RECORD_HEADER_BYTES)
        at = begins[-1] + CAPTURED.unpack_from(data, at)[0]
        ends.append(at)
    return np.array(begins, np.int64), np.array(ends, np.int64)


def plain(data: Bytes, begins: Places, ends: Places, layout: Layout) -> NDArray[np.bool_]:
    """Marks frames that have a header of this layout and TCP or UDP after it, but neither DNS nor a
    possible tunnel."""
    ports_at = IP_AT + layout.ports_at
    found = ends - begins >= ports_at + 4
    at = np.where(found, begins, 0)

    def number(offset: int) -> Places:
        return data[at + offset].astype(np.int64) << 8 | data[at + offset + 1]

    found &= number(ETHERTYPE_AT) == layout.ethertype
    found &= data[at + IP_AT] & layout.mask == layout.first
    found &= np.isin(data[at + IP_AT + layout.protocol_at], (TCP, UDP))
    return found & ~np.any(
        [np.isin(number(place), (DNS_PORT, *TUNNEL_PORTS)) for place in (ports_at, ports_at + 2)],
        axis=0,
    )


def add_ends(into: Addresses, data: Bytes, numbers: Places, begins: Places, layout: Layout) -> None:
    """Adds the ends of frames that are all of the layout."""
    size = layout.address_bytes
    rows = data[(begins + IP_AT + layout.ends_at)[:, None] + np.arange(2 * size)]
    different, firsts, counts = np.unique(
        rows.view(f"V{2 * size}").ravel(), return_index=True, return_counts=True
    )
    for row, first, count in zip(different, firsts, counts, strict=True):
        pair = bytes(row)
        ends = ipaddress.ip_address(pair[:size]), ipaddress.ip_address(pair[size:])
        seen, before = into.ends.get(ends, (int(numbers[first]), 0))
        into.ends[ends] = seen, before + int(count)


def addresses_in(path: Path) -> Addresses:
    """Reads a pcap file."""
    found = Addresses()
    data = np.fromfile(path, np.uint8)
    begins, ends = places_of(memoryview(data))
    found.frames = len(begins)
    for at in range(0, len(begins), AT_ONCE):
        numbers = np.arange(at, min(at + AT_ONCE, len(begins)))
        left = np.ones(len(numbers), np.bool_)
        for layout in LAYOUTS:
            chosen = plain(data, begins[numbers], ends[numbers], layout)
            left &= ~chosen
            if chosen.any():
                add_ends(found, data, numbers[chosen], begins[numbers[chosen]], layout)
        found.others += [(int(n), data[begins[n] : ends[n]].tobytes()) for n in numbers[left]]
    return found


def closure_in(path: Path, released: Collection[Address]) -> tuple[Closure, int]:
    """Returns the result of oracle.packet_addresses.closure for a pcap file, and the number of
    frames.

    Of `others` in headers, the result has one for each pair of ends.
    """
    found = addresses_in(path)
    slow = closure((frame for _n, frame in found.others), released)
    places: Counter[str] = Counter(slow.places)
    others = [(found.others[n][0], one) for n, one in slow.others]
    for ends, (first, count) in found.ends.items():
        for address in ends:
            block = block_of(address) or ("released" if address in released else None)
            places[f"ip: {block}"] += count
            if block is None:
                others.append((first, Held("ip", address)))
    return Closure(places, others), found.frames


def peers_in(path: Path) -> dict[Address, set[Address]]:
    """Returns the other addresses that each address exchanged packets with; frames may be cut."""
    found = addresses_in(path)
    pairs = {*found.ends}
    for _n, frame in found.others:
        source, target = (one.address for one in islice(held(frame, cut=True), 2))
        pairs.add((source, target))
    peers: dict[Address, set[Address]] = {}
    for source, target in pairs:
        peers.setdefault(source, set()).add(target)
        peers.setdefault(target, set()).add(source)
    return peers
