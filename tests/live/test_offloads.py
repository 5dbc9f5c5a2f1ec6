# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Interfaces: frames that are longer than the MTU, as an offload merged them."""

import struct
from typing import Any

import pytest
from support import wire
from support.netns import SOL_PACKET, Namespace

from zanon_net.pipeline.diagnostics import MERGED

PACKET_VNET_HDR = 15
NEEDS_CHECKSUM, TCP_OVER_IPV4 = 1, 1
HEADERS = 54  # of Ethernet, IPv4 and TCP


def segments(size: int, n: int) -> list[bytes]:
    """n frames of TCP with so many bytes of payload."""
    segment = wire.tcp(bytes(size))
    return [wire.ethernet(wire.ipv4(segment, wire.TCP))] * n


@pytest.mark.parametrize("mtu", [1500, 9000])
def test_frames_longer_than_the_mtu_are_counted(net: Namespace, live: Any, mtu: int) -> None:
    """Segments that the sender leaves to its card to cut arrive whole."""
    for end in "ab":
        net.ip(f"link set dev {end} mtu {mtu}")
    run = live("a", "--status", "200ms")
    raw = net.sender("b")
    raw.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    whole = struct.pack("=BBHHHH", 0, 0, 0, 0, 0, 0)
    for frame in segments(mtu - 40, 4):
        raw.send(whole + frame)
    cut = struct.pack("=BBHHHH", NEEDS_CHECKSUM, TCP_OVER_IPV4, HEADERS, 1400, 34, 16)
    for frame in segments(mtu * 3, 7):
        raw.send(cut + frame)
    run.wait_for_packets(11)
    manifest = run.end()
    read = manifest["counters"]["read"]
    assert (read["frames"], read["frames_merged"]) == (11, 7)
    assert run.said.count(f"warning: {MERGED}") == 1
    assert f"7 {MERGED}" in manifest["notes"]


def test_tags_are_not_longer_than_the_mtu(net: Namespace, live: Any) -> None:
    for end in "ab":
        net.ip(f"link set dev {end} mtu 1500")
    run = live("a", "--status", "200ms")
    (frame,) = segments(1460, 1)
    tagged = frame[:12] + struct.pack(">HH", 0x8100, 7) + frame[12:]
    net.send("b", [frame, tagged] * 5)
    run.wait_for_packets(10)
    read = run.end()["counters"]["read"]
    assert (read["frames"], read.get("frames_merged", 0)) == (10, 0)
