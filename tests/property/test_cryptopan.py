# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Crypto-PAn against the published formula, and what prefix-preserving means."""

from ipaddress import IPv4Address, IPv6Address

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.cryptopan import OracleCryptoPan
from support.examples import examples

from zanon_net import _core

keys = st.binary(min_size=32, max_size=32)
v4 = st.binary(min_size=4, max_size=4)
v6 = st.binary(min_size=16, max_size=16)
PAN = _core.CryptoPan(bytes(range(32)))
ORACLE = OracleCryptoPan(bytes(range(32)))


def shared_bits(a: bytes, b: bytes) -> int:
    """Length of the common prefix in bits."""
    return 8 * len(a) - (int.from_bytes(a) ^ int.from_bytes(b)).bit_length()


def pseudonyms_v4(pan: _core.CryptoPan, addresses: list[bytes]) -> list[bytes]:
    numbers = np.array([int.from_bytes(a) for a in addresses], dtype=np.uint32)
    return [int(n).to_bytes(4) for n in pan.anonymize_v4(numbers)]


def pseudonyms_v6(pan: _core.CryptoPan, addresses: list[bytes]) -> list[bytes]:
    rows = np.frombuffer(b"".join(addresses), dtype=np.uint8).reshape(-1, 16)
    return [row.tobytes() for row in pan.anonymize_v6(rows)]


@given(key=keys, four=st.lists(v4, min_size=1, max_size=3), sixteen=v6)
@settings(max_examples=examples(60))
def test_equals_the_oracle_under_any_key(key: bytes, four: list[bytes], sixteen: bytes) -> None:
    pan, oracle = _core.CryptoPan(key), OracleCryptoPan(key)
    assert pseudonyms_v4(pan, four) == [oracle.pseudonym(a) for a in four]
    assert pseudonyms_v6(pan, [sixteen]) == [oracle.pseudonym(sixteen)]


@given(st.data())
def test_v4_keeps_prefixes_and_nothing_longer(data: st.DataObject) -> None:
    a = data.draw(v4)
    other = data.draw(st.integers(0, 31).map(lambda bit: int.from_bytes(a) ^ 1 << bit) | v4)
    b = other if isinstance(other, bytes) else other.to_bytes(4)
    first, second = pseudonyms_v4(PAN, [a, b])
    assert shared_bits(first, second) == shared_bits(a, b)


@given(v6, st.integers(0, 127), v6)
def test_v6_keeps_prefixes_and_nothing_longer(a: bytes, keep: int, other: bytes) -> None:
    mask = (1 << (128 - keep)) - 1
    b = (int.from_bytes(a) & ~mask | int.from_bytes(other) & mask).to_bytes(16)
    first, second = pseudonyms_v6(PAN, [a, b])
    assert shared_bits(first, second) == shared_bits(a, b)


@given(st.lists(v4, min_size=1, max_size=400), st.lists(v6, min_size=1, max_size=60))
def test_a_batch_is_its_members(four: list[bytes], sixteen: list[bytes]) -> None:
    batch = pseudonyms_v4(PAN, four)
    assert batch == [PAN.anonymize(IPv4Address(a)).packed for a in four]
    assert batch[-1] == ORACLE.pseudonym(four[-1])
    batch = pseudonyms_v6(PAN, sixteen)
    assert batch == [pseudonyms_v6(PAN, [a])[0] for a in sixteen]
    assert PAN.anonymize(IPv6Address("2001:db8::" + sixteen[0][:2].hex())).packed == (
        ORACLE.pseudonym(IPv6Address("2001:db8::" + sixteen[0][:2].hex()).packed)
    )


def test_first_sixteen_bits_are_a_permutation() -> None:
    """All /16 prefixes: what the table of a key holds, each exactly once."""
    prefixes = np.arange(1 << 16, dtype=np.uint32)
    for suffix in (0, 0xFFFF):
        images = PAN.anonymize_v4((prefixes << np.uint32(16)) | np.uint32(suffix)) >> np.uint32(16)
        assert np.array_equal(np.sort(images), prefixes)
