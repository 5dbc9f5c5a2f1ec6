# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Users of captures: internal networks, prefixes, and addresses of no host in particular."""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address, ip_network

PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
EVERYWHERE = ("0.0.0.0/0", "::/0")
BROADCAST = b"\xff" * 4
SPECIAL = b"special"


@lru_cache(maxsize=1 << 18)
def is_special(address: bytes) -> bool:
    """Returns whether the address is unspecified, loopback, link-local, multicast or broadcast."""
    parsed = ip_address(address)
    return (
        parsed.is_unspecified
        or parsed.is_loopback
        or parsed.is_link_local
        or parsed.is_multicast
        or address == BROADCAST
    )


def is_multicast(address: bytes) -> bool:
    """Returns whether the address is of a group."""
    return ip_address(address).is_multicast


@lru_cache(maxsize=1 << 18)
def text_of(address: bytes) -> str:
    """Returns the address as text."""
    return str(ip_address(address))


class Networks:
    """The internal networks of a run; None: the private ranges, and no endpoint has to be in
    them."""

    def __init__(self, given: Sequence[str] | None, user_prefix: tuple[int, int]) -> None:
        self.given = given is not None
        networks = [ip_network(one) for one in (PRIVATE if given is None else given)]
        self._masks = {
            version: [
                (int(one.network_address), int(one.netmask))
                for one in networks
                if one.version == version
            ]
            for version in (4, 6)
        }
        self._bits = user_prefix
        self._known: dict[bytes, bool] = {}

    def hold(self, address: bytes) -> bool:
        """Returns whether the address is internal."""
        found = self._known.get(address)
        if found is None:
            number, masks = int.from_bytes(address), self._masks[4 if len(address) == 4 else 6]
            found = any(number & mask == network for network, mask in masks)
            self._known[address] = found
        return found

    def user(self, address: bytes) -> bytes:
        """Returns the user: the address cut to its prefix. All special addresses are one user."""
        if is_special(address):
            return SPECIAL
        bits = self._bits[len(address) == 16]
        cut = 8 * len(address) - bits
        return (int.from_bytes(address) >> cut << cut).to_bytes(len(address))
