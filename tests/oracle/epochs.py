# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Pseudonyms by the contract's section 6: keys of each epoch, and what is made under them."""

import hashlib
import hmac
import ipaddress
from dataclasses import dataclass
from functools import lru_cache

from oracle.layers import Address
from oracle.pseudonyms import Network, OraclePseudonyms

PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
HOUR = 3600 * 10**9


@dataclass(frozen=True, slots=True)
class Scope:
    """The settings that a key depends on."""

    rotate_ns: int
    z: int = 20
    window_ns: int = HOUR
    pseudonyms: str = "networks"
    user: tuple[int, int] = (32, 56)
    established: bool = True
    dns_votes: str = "own"
    internal: tuple[str, ...] | None = None

    @property
    def networks(self) -> list[Network]:
        """The internal networks."""
        return list(map(ipaddress.ip_network, PRIVATE if self.internal is None else self.internal))

    @property
    def block(self) -> tuple[int, int]:
        """P of crypto-pan."""
        bits = self.pseudonyms.partition(":")[2] or "32,128"
        v4, v6 = map(int, bits.split(","))
        return v4, v6

    def text(self) -> str:
        """The settings as a line."""
        kind = self.pseudonyms.partition(":")[0]
        kept = []
        if kind == "networks":
            own = OraclePseudonyms(
                bytes(32), bytes(16), kind, user=self.user, internal=self.networks
            )
            for version in (4, 6):
                sorted_of = sorted({n for n in own.kept(version) if n.prefixlen > 0})
                kept += [str(network) for network in sorted_of]
        name = f"{kind}:{self.block[0]},{self.block[1]}" if kind == "crypto-pan" else kind
        return (
            f"pseudonyms={name} user-prefix={self.user[0]},{self.user[1]}"
            f" evidence={'established' if self.established else 'any'}"
            f" dns-votes={self.dns_votes} networks={','.join(kept)}"
        )

    def digest(self) -> bytes:
        """D."""
        return hashlib.sha256(self.text().encode()).digest()


def derived(
    master: bytes, label: str, scope: Scope, epoch: int, n: int, *, digest: bytes | None = None
) -> bytes:
    """n bytes by HKDF-SHA256 (RFC 5869) with an empty salt, of at most one block."""
    numbers = (scope.rotate_ns, scope.z, scope.window_ns)
    info = f"zanon-net/2/{label}".encode() + b"".join(number.to_bytes(8) for number in numbers)
    info += (scope.digest() if digest is None else digest) + epoch.to_bytes(8)
    secret = hmac.digest(bytes(32), master, hashlib.sha256)
    return hmac.digest(secret, info + b"\x01", hashlib.sha256)[:n]


@lru_cache(maxsize=1 << 10)
def _of_epoch(
    master: bytes, scope: Scope, epoch: int, digest: bytes | None = None
) -> OraclePseudonyms:
    pan, host = (
        derived(master, label, scope, epoch, n, digest=digest)
        for label, n in (("cryptopan", 32), ("host", 16))
    )
    return OraclePseudonyms(
        pan,
        host,
        scope.pseudonyms.partition(":")[0],
        block=scope.block,
        user=scope.user,
        internal=scope.networks,
    )


@lru_cache(maxsize=1 << 14)
def pseudonym(
    master: bytes, scope: Scope, epoch: int, address: Address, digest: bytes | None = None
) -> str:
    """f(u, t) for any t in the epoch. digest: D, where it is not that of the scope."""
    return str(_of_epoch(master, scope, epoch, digest).pseudonym(str(address)))
