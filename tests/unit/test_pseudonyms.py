# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Pseudonyms of addresses: one to one, as the oracle has them, kept networks and nothing else."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import numpy as np
import pytest
from oracle.pseudonyms import Address, Network, OraclePseudonyms

from zanon_net import ConfigError, _core
from zanon_net._core import Pseudonyms
from zanon_net.config.parse import core_networks

PAN_KEY, HOST_KEY = bytes(range(32)), bytes(range(100, 116))
PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
WAYS = {
    "private": ("networks", PRIVATE, {}),
    "any": ("networks", ("0.0.0.0/0", "::/0"), {}),
    "nested": (
        "networks",
        (
            "10.0.0.0/8",
            "10.1.0.0/16",
            "10.1.128.0/17",
            "10.9.0.0/24",
            "10.9.0.0/24",
            "2001:db8::/32",
        ),
        {},
    ),
    "all of IPv6": ("networks", ("10.0.0.0/8", "::/0"), {}),
    "around IPv4": ("networks", ("::/1", "0.0.0.0/2"), {}),
    "halves": ("networks", ("10.0.0.0/8", "10.0.0.0/9", "10.128.0.0/9"), {}),
    "small users": (
        "networks",
        (*PRIVATE, "2001:db8::/32", "2001:db8:7::/48"),
        {"user": (32, 128)},
    ),
    "users of /24": ("networks", (*PRIVATE, "10.1.0.0/16", "10.1.2.0/24"), {"user": (24, 48)}),
    "crypto-pan": ("crypto-pan", (), {}),
    "blocks": ("crypto-pan", (), {"block": (24, 64)}),
    "odd blocks": ("crypto-pan", (), {"block": (31, 127), "user": (20, 30)}),
    "short blocks": ("crypto-pan", (), {"block": (5, 19)}),
    "random": ("random", PRIVATE, {}),
}
ADDRESSES = ["0.0.0.0", "255.255.255.255", "10.0.0.1", "10.1.2.3", "10.1.200.9", "10.9.0.77"]
ADDRESSES += ["172.16.9.1", "192.168.1.7", "8.8.8.8", "100.65.0.0", "::", "fd00::1", "2001:db8::1"]
ADDRESSES += ["2001:db8:7:1:2:3:4:5", "2001:db8:7:100::", "2a00:1450:4001:800::200e", "64:ff9b::1"]


def networks_of(*texts: str) -> list[Network]:
    """Networks."""
    return [ip_network(text) for text in texts]


def blocks_of(addresses: list[Address], bits: int) -> set[Network]:
    """The networks of `bits` bits that hold the addresses."""
    return {ip_network((one, bits), strict=False) for one in addresses}


def packed(addresses: list[Address]) -> np.ndarray:
    """uint8[n, 16]."""
    forms = (
        one.packed if one.version == 6 else bytes(10) + b"\xff\xff" + one.packed
        for one in addresses
    )
    return np.frombuffer(b"".join(forms), np.uint8).reshape(-1, 16)


def unpacked(rows: np.ndarray, version: int) -> list[Address]:
    """Addresses of one family."""
    if version == 4:
        assert all(row.tobytes()[:12] == bytes(10) + b"\xff\xff" for row in rows)
        return [IPv4Address(row.tobytes()[12:]) for row in rows]
    return [IPv6Address(row.tobytes()) for row in rows]


def ours_of(networks: list[Network], pseudonyms: str = "networks", **more: Any) -> Pseudonyms:
    """The core's pseudonyms; it gets the networks as from a run."""
    return _core.Pseudonyms(PAN_KEY, HOST_KEY, pseudonyms, internal=core_networks(networks), **more)


def both(way: str) -> tuple[Pseudonyms, OraclePseudonyms]:
    """The core's pseudonyms and the oracle's."""
    pseudonyms, internal, more = WAYS[way]
    networks = networks_of(*internal)
    ours = ours_of(networks, pseudonyms, **more)
    return ours, OraclePseudonyms(PAN_KEY, HOST_KEY, pseudonyms, internal=networks, **more)


@pytest.mark.parametrize("way", WAYS)
def test_pseudonyms_are_the_oracles(way: str) -> None:
    ours, oracle = both(way)
    rng = np.random.default_rng(7)
    texts = ADDRESSES + [str(IPv4Address(int(n))) for n in rng.integers(0, 2**32, 100)]
    texts += [f"10.{a}.{b}.{c}" for a, b, c in rng.integers(0, 256, (100, 3))]
    texts += [str(IPv6Address(rng.bytes(16))) for _ in range(60)]
    texts += [str(IPv6Address(bytes.fromhex("20010db80007") + rng.bytes(10))) for _ in range(60)]
    for version in (4, 6):
        addresses = [one for one in map(ip_address, texts) if one.version == version]
        made = unpacked(ours.make(packed(addresses)), version)
        assert made == [oracle.pseudonym(str(one)) for one in addresses]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("block", ["10.1.112.0/20", "10.9.0.0/20", "172.15.240.0/20", "8.0.0.0/20"])
def test_no_two_addresses_of_a_slash_20_have_one_pseudonym(way: str, block: str) -> None:
    ours, _ = both(way)
    made = ours.make(packed(list(ip_network(block))))
    assert len(np.unique(made, axis=0)) == 4096


@pytest.mark.parametrize("internal", [(), ("10.1.16.0/20",), ("10.1.16.0/20", "10.1.17.0/24")])
def test_a_kept_slash_20_is_permuted(internal: tuple[str, ...]) -> None:
    """All of its addresses have pseudonyms in one /20, and nothing else has."""
    ours = ours_of(networks_of(*internal))
    made = unpacked(ours.make(packed(list(ip_network("10.1.16.0/20")))), 4)
    assert len(set(made)) == 4096
    assert (len(blocks_of(made, 20)) == 1) == bool(internal)


@pytest.mark.parametrize("user", [(32, 56), (32, 128)])
@pytest.mark.parametrize("inner", [(), ("2001:db8::800/117",), ("2001:db8::/118",)])
def test_a_slash_116_is_permuted(user: tuple[int, int], inner: tuple[str, ...]) -> None:
    """A network of so many bits is kept only where users have all of them."""
    ours = ours_of(networks_of("2001:db8::/32", "2001:db8::/116", *inner), user=user)
    made = unpacked(ours.make(packed(list(ip_network("2001:db8::/116")))), 6)
    assert len(set(made)) == 4096
    assert (len(blocks_of(made, 116)) == 1) == (user[1] == 128)
    for network in networks_of(*inner):
        own = unpacked(ours.make(packed(list(network))), 6)
        assert (len(blocks_of(own, network.prefixlen)) == 1) == (user[1] == 128)


def test_networks_that_leave_nearly_nothing_are_refused() -> None:
    inner = [f"10.{n}.0.0/12" for n in range(0, 240, 16)]  # 15 of 16
    whole = ["10.0.0.0/8", *inner, "10.240.0.0/12"]
    ours_of(networks_of(*whole[:-1]))
    ours_of(networks_of(*whole))
    with pytest.raises(ConfigError, match="15/16"):
        ours_of(networks_of(*whole[:-1], "10.240.0.0/13"))
