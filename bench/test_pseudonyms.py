# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Pseudonyms of addresses: Crypto-PAn next to other programs, and each choice of --pseudonyms.

Addresses are random, so that no cache helps. "plain libcrypto" is the formula written directly in
C: one call of 32 (128) blocks an address. "blocks alone" is libcrypto on the number of blocks that
zanon_net encrypts: no program on libcrypto can be faster.
"""

import ctypes
import ipaddress
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from measuring import Measure, Size, peer

from zanon_net import CryptoPan, _core

COUNTS = {4: 400_000, 16: 100_000}
FAMILIES = {4: "IPv4", 16: "IPv6"}
YACRYPTOPAN_SHARE = 400
KEY = bytes(range(7, 39))
PLAIN, BLOCKS, YACRYPTOPAN = "plain libcrypto", "blocks alone", "yacryptopan"
PRIVATE = ("10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
CHOICES = {"networks": {}, "crypto-pan": {}, "crypto-pan:24,64": {"block": (24, 64)}, "random": {}}

Addresses = npt.NDArray[np.uint8]
Job = Callable[[Addresses], Any]


def addresses_of(count: int, width: int) -> Addresses:
    """Returns random addresses of `width` bytes."""
    return np.random.default_rng(width).integers(0, 256, (count, width), dtype=np.uint8)


BuildC = Callable[..., ctypes.CDLL]


def calls_of(build_c: BuildC) -> ctypes.CDLL:
    """Returns the library of cryptopan_calls.c."""
    library = build_c("cryptopan_calls.c", "crypto/cryptopan.c", "util/arena.c", "util/error.c")
    library.single_open.restype = ctypes.c_void_p
    return library


def arrays(addresses: Addresses) -> Addresses:
    """Maps all addresses in one call of CryptoPan."""
    pan = CryptoPan(KEY)
    if addresses.shape[1] == 16:
        return pan.anonymize_v6(addresses)
    mapped = pan.anonymize_v4(addresses.view(">u4")[:, 0].astype(np.uint32))
    return mapped.astype(">u4").view(np.uint8).reshape(-1, 4)


def yacryptopan(addresses: Addresses) -> Addresses:
    """Maps each address with the package of that name."""
    from yacryptopan import CryptoPAn  # type: ignore[import-untyped]

    pan = CryptoPAn(KEY)
    texts = (str(ipaddress.ip_address(row.tobytes())) for row in addresses)
    found = b"".join(ipaddress.ip_address(pan.anonymize(text)).packed for text in texts)
    return np.frombuffer(found, dtype=np.uint8).reshape(addresses.shape)


def in_c(function: Any, first: object) -> Job:
    """Wraps a C function that takes `first`, in, out, n and the length of an address."""

    def job(addresses: Addresses) -> Addresses:
        out = np.empty_like(addresses)
        n, width = (ctypes.c_size_t(k) for k in addresses.shape)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (addresses, out))
        assert function(first, *pointers, n, width) == 0
        return out

    return job


@pytest.mark.parametrize("width", FAMILIES)
@pytest.mark.parametrize(
    "who", ["arrays", "a call an address", peer(PLAIN), peer(YACRYPTOPAN), peer(BLOCKS)]
)
def test_cryptopan(width: int, who: str, size: Size, build_c: BuildC, measure: Measure) -> None:
    count = size.of(COUNTS[width])
    if who == YACRYPTOPAN:
        count = max(count // YACRYPTOPAN_SHARE, 10)
    addresses = addresses_of(count, width)
    group = f"pseudonyms: Crypto-PAn, {FAMILIES[width]}"
    if who in ("arrays", YACRYPTOPAN):
        job = arrays if who == "arrays" else yacryptopan
        found = measure(group, job, count, prepare=lambda: (addresses,))
        assert np.array_equal(found[:10], yacryptopan(addresses[:10]))
        return
    calls = calls_of(build_c)
    if who == BLOCKS:
        measure(group, calls.blocks_alone, count, prepare=lambda: (KEY, *sizes_of(addresses)))
        return
    handle = ctypes.c_void_p(calls.single_open(KEY))
    job = in_c(calls.plain_addresses, KEY)
    if who != PLAIN:
        job = in_c(calls.single_addresses, handle)
    found = measure(group, job, count, prepare=lambda: (addresses,))
    calls.single_close(handle)
    assert np.array_equal(found[:10], yacryptopan(addresses[:10]))


def sizes_of(addresses: Addresses) -> tuple[ctypes.c_size_t, ctypes.c_size_t]:
    """Returns the number of addresses and their width for C."""
    n, width = addresses.shape
    return ctypes.c_size_t(n), ctypes.c_size_t(width)


def internal() -> list[tuple[bytes, int]]:
    """Returns the private networks as the core takes them."""
    networks = [ipaddress.ip_network(text) for text in PRIVATE]
    mapped = bytes(10) + b"\xff\xff"
    return [
        (one.network_address.packed, one.prefixlen)
        if one.version == 6
        else (mapped + one.network_address.packed, 96 + one.prefixlen)
        for one in networks
    ]


@pytest.mark.parametrize("width", FAMILIES)
@pytest.mark.parametrize("who", [*CHOICES, peer(PLAIN)])
def test_choices(width: int, who: str, size: Size, build_c: BuildC, measure: Measure) -> None:
    """Clients of 10.0.0.0/8 and of fd00::/8, in one call."""
    count = size.of(COUNTS[width])
    group = f"pseudonyms: --pseudonyms, {FAMILIES[width]}"
    if who == PLAIN:
        job = in_c(calls_of(build_c).plain_addresses, KEY)
        measure(group, job, count, prepare=lambda: (addresses_of(count, width),))
        return
    first = bytes(10) + b"\xff\xff\x0a" if width == 4 else b"\xfd"
    addresses = addresses_of(count, 16)
    addresses[:, : len(first)] = np.frombuffer(first, np.uint8)
    kind = who.partition(":")[0]
    made = _core.Pseudonyms(KEY, KEY[:16], kind, internal=internal(), **CHOICES[who])
    measure(group, made.make, count, prepare=lambda: (addresses,))
