# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The order of what leaves with its minute, by the contract's section 5."""

import ipaddress
from dataclasses import dataclass

from oracle.epochs import Scope, derived
from oracle.siphash import blocks_of, siphash

MINUTE = 60 * 10**9


@dataclass(frozen=True, slots=True)
class Ends:
    """A flow's 5-tuple, the client's end first."""

    client: str
    server: str
    client_port: int
    server_port: int
    proto: int

    def numbers(self) -> list[int]:
        """The addresses as IPv6 has them, in halves, then ports and protocol."""
        halves = []
        for text in (self.client, self.server):
            address = ipaddress.ip_address(text)
            mapped = 0xFFFF << 32 if address.version == 4 else 0
            number = mapped | int(address)
            halves += [number >> 64, number & (1 << 64) - 1]
        return [*halves, self.client_port << 32 | self.server_port << 16 | self.proto]


def rank(master: bytes, scope: Scope, minute: int, ends: Ends, t_ns: int) -> int:
    """The place of what the flow left at t_ns among all that leaves with the minute."""
    key = derived(master, "order", scope, minute * MINUTE // scope.rotate_ns, 16)
    words = b"".join(number.to_bytes(8, "little") for number in [*ends.numbers(), t_ns])
    return siphash(key, blocks_of(words))
