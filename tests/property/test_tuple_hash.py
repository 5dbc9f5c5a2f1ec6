# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The hash of a packet's 5-tuple: its formula, and how it spreads what is alike."""

import ipaddress
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import wire

from zanon_net import _core

pytestmark = pytest.mark.source

RAW = 101
MASK = (1 << 64) - 1
BUCKETS = 1 << 12
FLOWS = 1 << 14

words = st.integers(0, MASK)
keys = st.lists(words, min_size=8, max_size=8)
ports = st.integers(1024, 1600)
ends = st.tuples(st.ip_addresses(v=4), ports, st.ip_addresses(v=4), ports) | st.tuples(
    st.ip_addresses(v=6), ports, st.ip_addresses(v=6), ports
)
End = tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]


def datagram(src: End, dst: End) -> bytes:
    """An IP packet with an empty datagram."""
    make = wire.ipv4 if src[0].version == 4 else wire.ipv6
    payload = wire.udp(ports=(src[1], dst[1]))
    return make(payload, wire.UDP, addresses=(str(src[0]), str(dst[0])))


def hash_of(src: End, dst: End, key: list[int]) -> int:
    """What the decoder finds in a usual frame."""
    kind = wire.ETHERTYPE_IPV6 if src[0].version == 6 else wire.ETHERTYPE_IPV4
    frame = wire.ethernet(datagram(src, dst), kind)
    found = _core.decode_packet(frame, wire.LINK_ETHERNET, key=key)
    assert isinstance(found, dict), found
    return int(found["hash"])


def peeled_hash_of(src: End, dst: End, key: list[int]) -> int:
    """The same, decoded header by header."""
    found = _core.decode_packet(datagram(src, dst), RAW, key=key)
    assert isinstance(found, dict), found
    return int(found["hash"])


def fold(a: int, b: int) -> int:
    """Both halves of a product, one over the other."""
    return (a * b & MASK) ^ (a * b >> 64)


def pair(a: int, b: int, key: list[int]) -> int:
    """The hash of two words."""
    product = (a ^ key[0]) * (b ^ key[1])
    return fold((product & MASK) ^ key[2], (product >> 64) ^ key[3])


def as_v4(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The address, or the one that an address of IPv6 stands for."""
    return address if isinstance(address, ipaddress.IPv4Address) else address.ipv4_mapped


def expected(src: End, dst: End, key: list[int]) -> int:
    """The same from the definition: the smaller end first."""
    low, high = sorted([src, dst], key=lambda end: (int(end[0]), end[1]))
    last = 17 << 32 | low[1] << 16 | high[1]
    short = [as_v4(end[0]) for end in (low, high)]
    if short[0] is not None and short[1] is not None:
        return pair(int(short[0]) << 32 | int(short[1]), 13 << 56 | last, key)
    first, second = (
        [int.from_bytes(end[0].packed[at : at + 8], "little") for at in (0, 8)]
        for end in (low, high)
    )
    both = fold(first[0] ^ key[4], first[1] ^ key[5]) ^ fold(second[0] ^ key[6], second[1] ^ key[7])
    return pair(both, 37 << 56 | last, key)


@given(ends, keys)
def test_hash_is_the_formula_for_both_directions(
    tuple_: tuple[ipaddress.IPv4Address, int, ipaddress.IPv4Address, int], key: list[int]
) -> None:
    src, dst = tuple_[:2], tuple_[2:]
    wanted = expected(src, dst, key)
    assert hash_of(src, dst, key) == hash_of(dst, src, key) == wanted
    assert peeled_hash_of(src, dst, key) == wanted


def v4(value: int) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(value)


def v6(value: int) -> ipaddress.IPv6Address:
    return ipaddress.IPv6Address(0x20010DB8 << 96 | value)


SERVER4, SERVER6 = (v4(0xC0000201), 443), (v6(1 << 40), 443)
ALIKE: dict[str, Callable[[int], tuple[End, End]]] = {
    "ports": lambda i: ((v4(0x0A000001), 1024 + i), SERVER4),
    "clients": lambda i: ((v4(0x0A000000 + i), 40000), SERVER4),
    "networks": lambda i: ((v4(0x0A000001 + (i << 8)), 40000), SERVER4),
    "clients and ports": lambda i: ((v4(0x0A000000 + i % 128), 1024 + i // 128), SERVER4),
    "clients of IPv6": lambda i: ((v6(i), 40000), SERVER6),
    "networks of IPv6": lambda i: ((v6(i << 64), 40000), SERVER6),
    "ports of IPv6": lambda i: ((v6(7), 1024 + i), SERVER6),
}


@pytest.mark.family(4)
@pytest.mark.parametrize("kind", ALIKE)
@pytest.mark.parametrize("shift", [0, 48], ids=["bucket", "tag"])
def test_tuples_that_are_alike_spread_as_random_ones_do(kind: str, shift: int) -> None:
    """Chi-square of the low bits, and of those of the tag: within five deviations of its mean."""
    random = Random(kind)
    key = [random.getrandbits(64) for _ in range(8)]
    found = Counter(hash_of(*ALIKE[kind](i), key) >> shift & BUCKETS - 1 for i in range(FLOWS))
    mean = FLOWS / BUCKETS
    chi_square = sum((found[bucket] - mean) ** 2 / mean for bucket in range(BUCKETS))
    freedom = BUCKETS - 1
    assert abs(chi_square - freedom) < 5 * (2 * freedom) ** 0.5
