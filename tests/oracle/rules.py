# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a run in the contract, and the users that they define: section 3."""

import ipaddress
import math
from dataclasses import dataclass
from functools import lru_cache

from oracle.epochs import PRIVATE, Scope
from oracle.layers import Address

EVERYWHERE = ("0.0.0.0/0", "::/0")
BROADCAST = ipaddress.IPv4Address(2**32 - 1)
MINUTE = 60 * 10**9


@dataclass(frozen=True, slots=True)
class Detail:
    """How much records say: coarse ones, and by times and sizes all others (section 5)."""

    has_end: bool  # a coarse record tells apart first and last packet
    base: float  # powers of it are the packets and bytes of a coarse record
    has_client: bool  # a coarse record has its client's pseudonym
    times_ns: int = 1
    digits: int | None = None  # counts above 99 keep as many


PRESETS = {
    "internal": Detail(True, 2**0.5, True),
    "partner": Detail(False, 4, False),
    "public": Detail(False, 16, False, MINUTE, 2),
}


def stepped(x: int, base: float) -> int:
    """The smallest power of the base, as an integer rounded up, that is at least x; 0 stays 0."""
    if base == 2**0.5:  # in whole numbers: isqrt(n - 1) + 1 is the root of n, rounded up
        powers = (1 if k == 0 else math.isqrt(2**k - 1) + 1 for k in range(130))
    else:
        powers = (int(base) ** k for k in range(65))
    return next(power for power in powers if power >= x) if x else 0


def shortened(x: int, digits: int | None) -> int:
    """A count above 99 with so many leading digits and zeros behind them."""
    if digits is None or x <= 99:
        return x
    return int(str(x)[:digits].ljust(len(str(x)), "0"))


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of a run that the contract names."""

    z: int
    window_ns: int
    rotate_ns: int
    key: bytes
    established: bool = True
    dns_votes: str = "own"
    internal: tuple[str, ...] | None = None  # "any" is EVERYWHERE
    never: tuple[str, ...] = ()
    user_prefix: tuple[int, int] = (32, 56)
    pseudonyms: str = "networks"
    keep_client_port: bool = False
    dn_hunter: bool = False
    exact: bool = False
    coarse: bool = False  # packets of TCP flows with a withheld name leave with coarse positions
    purpose: str = "partner"  # --for
    target_p: float | None = None  # z follows the stream
    max_per_prefix: tuple[int, int, int] | None = None  # bits of IPv4 and of IPv6, and users
    max_names_per_user: int | None = None
    z_changes: tuple[tuple[int, int], ...] = ()  # (from when on, z), as the manifest has them

    @property
    def scope(self) -> Scope:
        """The settings that keys depend on."""
        return Scope(
            rotate_ns=self.rotate_ns,
            z=self.z,
            window_ns=self.window_ns,
            pseudonyms=self.pseudonyms,
            user=self.user_prefix,
            established=self.established,
            dns_votes=self.dns_votes,
            internal=self.internal,
        )

    @property
    def detail(self) -> Detail:
        """How much records say."""
        return PRESETS[self.purpose]

    @property
    def everything(self) -> bool:
        """Whether z is 1 and stays: nothing is withheld."""
        return self.z == 1 and self.target_p is None

    def namespace(self, source: str) -> str:
        """Where a name's exposure counts (section 2): names of DNS apart, unless they vote for
        all."""
        return "dns" if source == "dns" and self.dns_votes != "all" else "name"

    def network(self, user: str) -> str:
        """Returns the network in which users are capped."""
        if user == "special" or self.max_per_prefix is None:
            return user
        cut = ipaddress.ip_network(user)
        return str(cut.supernet(new_prefix=self.max_per_prefix[cut.version == 6]))

    @property
    def has_caps(self) -> bool:
        """Returns true if votes of invented users are capped."""
        return self.max_per_prefix is not None or self.max_names_per_user is not None

    def z_at(self, t_ns: int) -> int:
        """z in force at a time."""
        return next((z for since_ns, z in reversed(self.z_changes) if since_ns <= t_ns), self.z)

    def is_internal(self, address: Address) -> bool:
        """Whether the address is internal (section 3): as given, else in the private ranges."""
        return within(address, PRIVATE if self.internal is None else self.internal)


@lru_cache(maxsize=1 << 12)
def within(address: Address, networks: tuple[str, ...]) -> bool:
    """Whether one of the networks has the address."""
    return any(address in ipaddress.ip_network(network) for network in networks)


def is_special(address: Address) -> bool:
    """Whether the address is of no host in particular (section 1)."""
    return (
        address.is_unspecified
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address == BROADCAST
    )
