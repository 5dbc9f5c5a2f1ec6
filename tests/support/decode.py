# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Decodes single packets."""

from functools import cache
from typing import Any

from support import wire
from support.wire import ETHERTYPE_IPV6, ethernet, ipv4, ipv6, tcp, udp
from zanon_net import _core

DATA = b"data of some length"
RAW = 101


def packet(data: bytes, link: int = wire.LINK_ETHERNET, missing: int = 0) -> dict[str, Any]:
    """The decoded packet; `missing`: bytes that the snapshot length cut off."""
    found = _core.decode_packet(data, link, len(data) + missing)
    assert isinstance(found, dict), found
    assert "sport" in found, "a fragment"
    return {k: v for k, v in found.items() if k not in ("encapsulations", "tunnels", "hash")}


def fragment(data: bytes) -> dict[str, Any]:
    """The decoded fragment of an IP packet."""
    found = _core.decode_packet(data, RAW)
    assert isinstance(found, dict), found
    assert found.pop("encapsulations") == []
    return found


def drop(data: bytes, link: int = wire.LINK_ETHERNET, missing: int = 0) -> str:
    """The counter that says why there is no packet."""
    found = _core.decode_packet(data, link, len(data) + missing)
    assert isinstance(found, str), found
    return found


@cache
def link_types() -> list[int]:
    """The link types that the decoder reads."""
    return [number for number in range(1000) if drop(b"", number) != "drop_link_type"]


FRAME = ethernet(ipv4(tcp(DATA)))
FRAME_UDP = ethernet(ipv4(udp(DATA), wire.UDP))
FRAME6 = ethernet(ipv6(tcp(DATA)), ETHERTYPE_IPV6)
OPTIONS = wire.ipv6_option_header
