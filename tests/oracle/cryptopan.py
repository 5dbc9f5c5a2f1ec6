# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Crypto-PAn as published (Xu, Fan, Ammar, Moon 2002), one block a bit: slow and obvious."""

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


class OracleCryptoPan:
    """Pseudonyms under a 32-byte key: its first half is the AES key, its second makes the pad."""

    def __init__(self, key: bytes) -> None:
        self._aes = Cipher(algorithms.AES(key[:16]), modes.ECB())
        self._pad = int.from_bytes(self._encrypt(key[16:]))

    def _encrypt(self, blocks: bytes) -> bytes:
        return self._aes.encryptor().update(blocks)

    def pseudonym(self, address: bytes) -> bytes:
        """The pseudonym of an address of 4 or 16 network-order bytes, in as many bytes."""
        bits = 8 * len(address)
        left = int.from_bytes(address) << (128 - bits)
        result = 0
        for i in range(bits):
            pad_mask = (1 << (128 - i)) - 1  # from bit i on
            block = left & ~pad_mask | self._pad & pad_mask
            flip = self._encrypt(block.to_bytes(16))[0] >> 7
            result = result << 1 | (left >> (127 - i) & 1) ^ flip
        return result.to_bytes(len(address))
