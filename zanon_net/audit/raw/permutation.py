# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Pseudonyms of addresses under a key file, by the text of the contract (section 6)."""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from zanon_net.errors import ConfigError, UnopenedError

Network = IPv4Network | IPv6Network
ROUNDS = 10
KEY_BYTES = 32
V4_MAPPED = b"\x00" * 10 + b"\xff\xff"


def read_key(path: Path) -> bytes:
    """Returns the master of a key file."""
    try:
        is_private = path.stat().st_mode & 0o077 == 0
        text = path.read_bytes()
    except OSError as error:
        raise UnopenedError(f"{path} cannot be read: {error.strerror}") from None
    if not is_private:
        raise ConfigError(f"{path} can be read by others; type: chmod 600 {path}")
    try:
        master = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        master = b""
    if len(master) != KEY_BYTES:
        raise ConfigError(f"{path} is no key file: it has to be one line of 32 bytes in base64")
    return master


class Scope:
    """Settings that the keys of epochs depend on."""

    def __init__(
        self,
        *,
        z: int,
        window_ns: int,
        rotate_ns: int,
        pseudonyms: str,
        user_prefix: tuple[int, int],
        evidence: str,
        dns_votes: str,
        networks: Sequence[str],
    ) -> None:
        self.kind, _colon, block = pseudonyms.partition(":")
        self.block = tuple(int(bits) for bits in (block or "32,128").split(","))
        self.user_prefix = user_prefix
        self.rotate_ns = rotate_ns
        self.networks = [ip_network(one) for one in networks]
        kept = ",".join(
            str(one)
            for version in (4, 6)
            for one in sorted({one for one in self.kept(version) if one.prefixlen})
        )
        name = (
            f"crypto-pan:{self.block[0]},{self.block[1]}"
            if self.kind == "crypto-pan"
            else self.kind
        )
        text = (
            f"pseudonyms={name} user-prefix={user_prefix[0]},{user_prefix[1]}"
            f" evidence={evidence} dns-votes={dns_votes} networks={kept}"
        )
        self._info = b"".join(number.to_bytes(8) for number in (rotate_ns, z, window_ns))
        self._info += hashlib.sha256(text.encode()).digest()

    def kept(self, version: int) -> list[Network]:
        """Returns the kept networks of a family, /0 with them."""
        every: Network = IPv4Network("0.0.0.0/0") if version == 4 else IPv6Network("::/0")
        if self.kind != "networks":
            return [every]
        most = self.user_prefix[version == 6] - 8
        own = [one for one in self.networks if one.version == version and one.prefixlen <= most]
        return [every, *own]

    def key(self, master: bytes, label: str, epoch: int, size: int) -> bytes:
        """Returns a key of an epoch: HKDF-SHA256 (RFC 5869) of one block."""
        secret = hmac.digest(bytes(32), master, hashlib.sha256)
        info = f"zanon-net/2/{label}".encode() + self._info + epoch.to_bytes(8)
        return hmac.digest(secret, info + b"\x01", hashlib.sha256)[:size]


class Pseudonyms:
    """Pseudonyms of one epoch."""

    def __init__(self, scope: Scope, master: bytes, epoch: int) -> None:
        self._scope = scope
        pan = scope.key(master, "cryptopan", epoch, 32)
        self._pan = Cipher(algorithms.AES(pan[:16]), modes.ECB())
        self._pad = self._pan.encryptor().update(pan[16:])
        self._host = Cipher(algorithms.AES(scope.key(master, "host", epoch, 16)), modes.ECB())

    def of(self, packed: bytes) -> bytes:
        """Returns the pseudonym of an address."""
        scope, width = self._scope, 8 * len(packed)
        six = width == 128
        user = scope.user_prefix[six]
        number = int.from_bytes(packed)
        if scope.kind == "crypto-pan":
            kept = scope.block[six]
            result = self._permuted(number, width, kept, max(kept, user))
        elif scope.kind == "random":
            kept, result = 0, self._permuted(number, width, 0, width)
        else:
            kept, result = self._walked(number, width, user)
        rest = (1 << (width - kept)) - 1
        return (self._prefix(result, width, kept) & ~rest | result & rest).to_bytes(len(packed))

    def _walked(self, number: int, width: int, user: int) -> tuple[int, int]:
        """Returns the bits for Crypto-PAn, and the address permuted within its kept network."""
        kept = self._scope.kept(6 if width == 128 else 4)
        own = network_of(number, width, kept)
        inner = [
            one.prefixlen
            for one in kept
            if one.prefixlen > own.prefixlen and one.subnet_of(own)  # type: ignore[arg-type]
        ]
        result = self._permuted(number, width, own.prefixlen, user)
        while network_of(result, width, kept) != own:
            result = self._permuted(result, width, own.prefixlen, user)
        return max(inner, default=own.prefixlen), result

    def _permuted(self, number: int, width: int, first: int, middle: int) -> int:
        """Returns the address with bits first to middle, and those behind, permuted apart."""
        head = number >> (width - middle)
        size = middle - first
        part = self._feistel(head & ((1 << size) - 1), size, head >> size, width, first)
        tail_size = width - middle
        tail = number & ((1 << tail_size) - 1)
        tail = self._feistel(tail, tail_size, head, width, middle)
        return ((head >> size << size | part) << tail_size) | tail

    def _feistel(self, value: int, size: int, before: int, width: int, bits: int) -> int:
        """Returns a value of `size` bits permuted, under the bits before it."""
        if size == 0:
            return value
        form = int.from_bytes(V4_MAPPED) if width == 32 else 0
        ahead = bits + (96 if width == 32 else 0)
        tweak = ((form << bits | before) << 1 | 1) << (127 - ahead)
        if ahead == 128:
            raise ConfigError("an address leaves no bits to permute")
        key = self._aes(tweak)
        half = size // 2
        a_size, b_size = half, size - half
        a, b = value >> b_size, value & ((1 << b_size) - 1)
        for step in range(1, ROUNDS + 1):
            mixed = self._aes(key ^ (step << 120 | b)) & ((1 << a_size) - 1)
            a, b, a_size, b_size = b, a ^ mixed, b_size, a_size
        return a << b_size | b

    def _aes(self, block: int) -> int:
        return int.from_bytes(self._host.encryptor().update(block.to_bytes(16)))

    def _prefix(self, number: int, width: int, bits: int) -> int:
        """Returns Crypto-PAn of the first bits (Xu, Fan, Ammar and Moon 2002)."""
        if not bits:
            return number
        first = number << (128 - width)
        pad = int.from_bytes(self._pad)
        blocks = []
        for at in range(bits):
            mask = ((1 << at) - 1) << (128 - at)
            blocks.append((first & mask | pad & ~mask & (1 << 128) - 1).to_bytes(16))
        drawn = self._pan.encryptor().update(b"".join(blocks))
        for at in range(bits):
            number ^= (drawn[16 * at] >> 7) << (width - 1 - at)
        return number


def network_of(number: int, width: int, kept: Sequence[Network]) -> Network:
    """Returns the longest kept network that holds an address."""
    holding = [one for one in kept if int(one.network_address) == number & int(one.netmask)]
    return max(holding, key=lambda one: one.prefixlen)


class KeyedPseudonyms:
    """Pseudonyms of all epochs."""

    def __init__(self, scope: Scope, master: bytes) -> None:
        self._of_epoch = lru_cache(maxsize=64)(lambda epoch: Pseudonyms(scope, master, epoch))
        self.of = lru_cache(maxsize=1 << 16)(self._of)

    def _of(self, epoch: int, packed: bytes) -> str:
        return str(ip_address(self._of_epoch(epoch).of(packed)))
