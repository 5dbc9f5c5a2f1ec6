# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Flows of an invented capture: their packets and the names in the packets.

A `Flow` collects its `Packet`s and the `Sighting`s of names in them. A sighting points at packets,
not at times, because the final timestamps are only fixed when all flows are merged.
"""

from dataclasses import dataclass, field

CLIENT, SERVER = 0, 1
PROTO_TCP, PROTO_UDP = 6, 17
NS_PER_US = 1000


@dataclass(slots=True)
class Packet:
    """One frame; `t_us` is microseconds since the start of the capture until the merge fixes it."""

    t_us: int
    frame: bytes


@dataclass(frozen=True, slots=True)
class Sighting:
    """Name in a flow. Packet `named` completes the name, and packet `evidence` confirms it."""

    raw: bytes
    source: str
    named: Packet
    evidence: Packet | None


@dataclass(frozen=True, slots=True)
class Path:
    """Two ends of a flow, and the form of its frames on the monitored link.

    `vlans` lists (TPID, VLAN id) from the outermost tag; `options` adds IPv4 options or IPv6
    extension headers to the client's packets.
    """

    client: str
    server: str
    client_mac: str
    server_mac: str
    vlans: tuple[tuple[int, int], ...] = ()
    options: bool = False
    round_trip_us: int = 20000

    @property
    def is_ipv6(self) -> bool:
        """True if the flow runs over IPv6."""
        return ":" in self.client


@dataclass(slots=True)
class Flow:
    """One 5-tuple with its packets and its sightings of names."""

    path: Path
    proto: int
    client_port: int
    server_port: int
    packets: list[Packet] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
