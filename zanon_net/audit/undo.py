# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Addresses behind the pseudonyms of a release, by the key file."""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from zanon_net.audit.raw.permutation import ROUNDS, V4_MAPPED, Pseudonyms, Scope, network_of
from zanon_net.audit.raw.permutation import read_key as read_key
from zanon_net.audit.release import FILTER_PROGRAM, Release
from zanon_net.errors import ConfigError

CHECK_BYTES = 8  # of pseudonym_id
FOUND = 1 << 17
"""Most addresses that are kept, because several figures need them."""
WALK_MAX = 64
"""Most steps back within a kept network; a forward walk seldom takes more than four."""


class Inverse(Pseudonyms):
    """Addresses of the pseudonyms of one epoch."""

    def address(self, packed: bytes) -> bytes | None:
        """Returns the address that has a pseudonym; None if no address has it."""
        scope, width = self._scope, 8 * len(packed)
        six = width == 128
        user, number = scope.user_prefix[six], int.from_bytes(packed)
        if scope.kind == "crypto-pan":
            kept = scope.block[six]
            middle = max(kept, user)
            found = [self._unpermuted(self._unprefixed(number, width, kept), width, kept, middle)]
        elif scope.kind == "random":
            found = [self._unpermuted(number, width, 0, width)]
        else:
            found = self._unwalked(number, width, user)
        listed = [one.to_bytes(len(packed)) for one in found]
        return next((address for address in listed if self.of(address) == packed), None)

    def _unwalked(self, number: int, width: int, user: int) -> list[int]:
        """Returns an address for each kept network that the pseudonym may come from."""
        kept = self._scope.kept(6 if width == 128 else 4)
        found = []
        for own in kept:
            inner = [
                one.prefixlen
                for one in kept
                if one.prefixlen > own.prefixlen and one.subnet_of(own)  # type: ignore[arg-type]
            ]
            result = self._unprefixed(number, width, max(inner, default=own.prefixlen))
            for _ in range(WALK_MAX):
                result = self._unpermuted(result, width, own.prefixlen, user)
                if network_of(result, width, kept) == own:
                    found.append(result)
                    break
        return found

    def _unpermuted(self, number: int, width: int, first: int, middle: int) -> int:
        head, size, tail_size = number >> (width - middle), middle - first, width - middle
        part = self._unfeistel(head & ((1 << size) - 1), size, head >> size, width, first)
        head = head >> size << size | part
        tail = self._unfeistel(number & ((1 << tail_size) - 1), tail_size, head, width, middle)
        return head << tail_size | tail

    def _unfeistel(self, value: int, size: int, before: int, width: int, bits: int) -> int:
        if size == 0:
            return value
        form = int.from_bytes(V4_MAPPED) if width == 32 else 0
        ahead = bits + (96 if width == 32 else 0)
        key = self._aes(((form << bits | before) << 1 | 1) << (127 - ahead))
        half = size // 2  # an even number of rounds leaves the sizes of the halves as they were
        a_size, b_size = half, size - half
        a, b = value >> b_size, value & ((1 << b_size) - 1)
        for step in range(ROUNDS, 0, -1):
            a_size, b_size = b_size, a_size
            mixed = self._aes(key ^ (step << 120 | a)) & ((1 << a_size) - 1)
            a, b = b ^ mixed, a
        return a << b_size | b

    def _unprefixed(self, number: int, width: int, bits: int) -> int:
        """Returns the address whose first bits Crypto-PAn has encrypted."""
        pad = int.from_bytes(self._pad)
        for at in range(bits):
            mask = ((1 << at) - 1) << (128 - at)
            block = (number << (128 - width)) & mask | pad & ~mask & ((1 << 128) - 1)
            drawn = self._pan.encryptor().update(block.to_bytes(16))
            number ^= (drawn[0] >> 7) << (width - 1 - at)
        return number


class Addresses:
    """Addresses of all epochs of a release."""

    def __init__(self, scope: Scope, master: bytes) -> None:
        self._of_epoch = lru_cache(maxsize=64)(lambda epoch: Inverse(scope, master, epoch))
        self.of = lru_cache(maxsize=FOUND)(self._of)
        """Returns the address behind a pseudonym of an epoch; None if no address has it."""

    def _of(self, epoch: int, text: str) -> bytes | None:
        try:
            packed = ip_address(text).packed
        except ValueError:
            return None
        return self._of_epoch(epoch).address(packed)


def addresses_of(release: Release, key_file: Path) -> Addresses:
    """Returns the addresses of a release.

    Raises ConfigError if the key file does not make the pseudonyms of each folder.
    """
    master = read_key(key_file)
    for folder in release.folders:
        if folder.manifest.get("name") == FILTER_PROGRAM:
            raise ConfigError(
                f"key_file: the manifest of {folder.path} has no check of the key,"
                " because filter made it; leave it out"
            )
        scope = _scope_of(folder.manifest)
        stated = (folder.manifest.get("pseudonyms") or {}).get("pseudonym_id")
        if scope is None or scope.key(master, "check", 0, CHECK_BYTES).hex() != stated:
            raise ConfigError(
                f"key_file: it does not make the pseudonyms of {folder.path} (other key, or another"
                " --rotate)"
            )
    scope = _scope_of(release.folders[0].manifest)
    assert scope is not None
    return Addresses(scope, master)


def _scope_of(manifest: Mapping[str, Any]) -> Scope | None:
    """Returns the settings that the keys depend on; None if the manifest does not state them."""
    try:
        own = manifest["configuration"]
        anonymity, addresses = own["anonymity"], own["addresses"]
        four, six = addresses["user_prefix"]
        return Scope(
            z=anonymity["z"],
            window_ns=anonymity["window_ns"],
            rotate_ns=addresses["rotate_ns"],
            pseudonyms=addresses["pseudonyms"],
            user_prefix=(four, six),
            evidence=anonymity["evidence"],
            dns_votes=anonymity["dns_votes"],
            networks=manifest["pseudonyms"]["networks"],
        )
    except (KeyError, TypeError, ValueError):
        return None
