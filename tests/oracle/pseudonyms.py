# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Pseudonyms of addresses by the contract's words, on whole numbers and strings of bits."""

from collections.abc import Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
)

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from oracle.cryptopan import OracleCryptoPan

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def bits_of(number: int, width: int) -> str:
    """A number as a string of `width` bits."""
    return f"{number:0{width}b}" if width else ""


class OraclePseudonyms:
    """Pseudonyms under two keys: 32 bytes for Crypto-PAn, 16 for the permutation.

    block: P of IPv4 and IPv6, for `crypto-pan`; user: U of both; internal: the networks that
    `networks` may keep.
    """

    def __init__(
        self,
        pan_key: bytes,
        host_key: bytes,
        pseudonyms: str,
        *,
        block: tuple[int, int] = (32, 128),
        user: tuple[int, int] = (32, 56),
        internal: Sequence[Network] = (),
    ) -> None:
        self._pan = OracleCryptoPan(pan_key)
        self._aes = Cipher(algorithms.AES(host_key), modes.ECB())
        self._pseudonyms = pseudonyms
        self._block, self._user = block, user
        self._internal = internal if pseudonyms == "networks" else ()

    def _encrypt(self, block: int) -> int:
        return int.from_bytes(self._aes.encryptor().update(block.to_bytes(16)))

    def _permuted(self, string: str, before: str) -> str:
        """The string of bits under the bits that stand before it in an address's 16-byte form."""
        if not string:
            return ""
        tweak = self._encrypt(int((before + "1").ljust(128, "0"), 2))
        half = len(string) // 2
        a, b = string[:half], string[half:]
        for i in range(1, 11):
            block = self._encrypt(tweak ^ (i << 120 | int(b or "0", 2)))
            last = bits_of(block, 128)[128 - len(a) :] if a else ""
            a, b = b, bits_of(int(a or "0", 2) ^ int(last or "0", 2), len(a))
        return a + b

    def kept(self, version: int) -> list[Network]:
        """The kept networks of a family, /0 with them."""
        all_of: Network = IPv4Network("0.0.0.0/0") if version == 4 else IPv6Network("::/0")
        most = self._user[version == 6] - 8
        return [
            all_of,
            *(one for one in self._internal if one.version == version and one.prefixlen <= most),
        ]

    def network_of(self, address: Address) -> Network:
        """The longest kept network that holds the address."""
        holding = [one for one in self.kept(address.version) if address in one]
        return max(holding, key=lambda one: one.prefixlen)

    def once(self, address: Address, p: int, u: int) -> Address:
        """The address with its bits p to u, and then those from u on, permuted."""
        width = address.max_prefixlen
        bits = bits_of(int(address), width)
        form = bits if width == 128 else bits_of(0xFFFF, 96) + bits
        ahead = len(form) - width
        first = self._permuted(bits[p:u], form[: ahead + p])
        rest = self._permuted(bits[u:], form[: ahead + u])
        return type(address)(int(bits[:p] + first + rest, 2))

    def pseudonym(self, text: str) -> Address:
        """The pseudonym of an address."""
        address = ip_address(text)
        width, user = address.max_prefixlen, self._user[address.version == 6]
        if self._pseudonyms == "crypto-pan":
            p = m = self._block[address.version == 6]
            result = self.once(address, p, max(p, user))
        elif self._pseudonyms == "random":
            m = 0
            result = self.once(address, 0, width)
        else:
            own = self.network_of(address)
            inside = [
                one.prefixlen
                for one in self.kept(address.version)
                if one != own and one.network_address in own and one.prefixlen > own.prefixlen
            ]
            m = max(inside, default=own.prefixlen)
            result = self.once(address, own.prefixlen, user)
            while self.network_of(result) != own:
                result = self.once(result, own.prefixlen, user)
        pan = int.from_bytes(self._pan.pseudonym(result.packed))
        rest = (1 << (width - m)) - 1
        return type(address)(pan & ~rest | int(result) & rest)
