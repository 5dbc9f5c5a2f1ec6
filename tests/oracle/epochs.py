# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Pseudonyms by the contract's section 6: a key for each epoch, and Crypto-PAn under it."""

import hashlib
import hmac
import ipaddress
from functools import lru_cache

from oracle.cryptopan import OracleCryptoPan
from oracle.layers import Address

PURPOSE = b"zanon-net/1/cryptopan"


def epoch_key(master: bytes, rotate_ns: int, epoch: int) -> bytes:
    """HKDF-SHA256 (RFC 5869) with an empty salt, one block of output."""
    info = PURPOSE + rotate_ns.to_bytes(8) + epoch.to_bytes(8)
    secret = hmac.digest(bytes(32), master, hashlib.sha256)
    return hmac.digest(secret, info + b"\x01", hashlib.sha256)


@lru_cache(maxsize=1 << 14)
def pseudonym(master: bytes, rotate_ns: int, epoch: int, address: Address) -> str:
    """f(u, t) for any t in the epoch."""
    pan = OracleCryptoPan(epoch_key(master, rotate_ns, epoch))
    return str(ipaddress.ip_address(pan.pseudonym(address.packed)))
