# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""SipHash (Aumasson and Bernstein 2012)."""

import struct

MASK = (1 << 64) - 1
START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def rotated(x: int, bits: int) -> int:
    return (x << bits | x >> (64 - bits)) & MASK


def rounds(v: list[int], n: int) -> None:
    for _ in range(n):
        v[0] = (v[0] + v[1]) & MASK
        v[2] = (v[2] + v[3]) & MASK
        v[1] = rotated(v[1], 13) ^ v[0]
        v[3] = rotated(v[3], 16) ^ v[2]
        v[0] = (rotated(v[0], 32) + v[3]) & MASK
        v[2] = (v[2] + v[1]) & MASK
        v[3] = rotated(v[3], 21) ^ v[0]
        v[1] = rotated(v[1], 17) ^ v[2]
        v[2] = rotated(v[2], 32)


def blocks_of(data: bytes) -> list[int]:
    """The 64-bit words of a message, its length in the last one."""
    whole = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    return [int.from_bytes(whole[i : i + 8], "little") for i in range(0, len(whole), 8)]


def siphash(key: bytes, blocks: list[int], n: tuple[int, int] = (1, 3)) -> int:
    """SipHash-n[0]-n[1] (Aumasson and Bernstein 2012, section 2)."""
    v = [word ^ k for word, k in zip(START, struct.unpack("<4Q", 2 * key), strict=True)]
    for block in blocks:
        v[3] ^= block
        rounds(v, n[0])
        v[0] ^= block
    v[2] ^= 0xFF
    rounds(v, n[1])
    return v[0] ^ v[1] ^ v[2] ^ v[3]
