# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Facts about each source of a run: the packets read and the packets lost."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from zanon_net._record import dataclass
from zanon_net.pipeline.link_types import by_link_type

INTERFACE = "interface"
"""The format of sources that are network interfaces."""


@dataclass(frozen=True, slots=True)
class Drops:
    """Packets that passed the interface and are in no log.

    ring: the ring was full, because the run read too slowly. interface: lost before the system
    could pass them to any program. us: a table of zanon_net was full, or they were left in the ring
    at the end.
    """

    ring: int = 0
    interface: int = 0
    us: int = 0

    @classmethod
    def of_counters(cls, counters: Mapping[str, int]) -> "Drops":
        """Returns the packets for which the tables of an engine with these counters were full."""
        return cls(us=counters["drop_flow_table_full"] + counters["drop_fragment_evicted"])

    def plus(self, others: Iterable["Drops"]) -> "Drops":
        """Returns the sum of these drops and others."""
        every = [self, *others]
        return Drops(
            sum(drops.ring for drops in every),
            sum(drops.interface for drops in every),
            sum(drops.us for drops in every),
        )

    @property
    def total(self) -> int:
        """All lost packets."""
        return self.ring + self.interface + self.us

    def text(self) -> str:
        """Returns the counts as text."""
        return f"{self.ring:,} by the ring, {self.interface:,} by the interface, {self.us:,} by us"

    def to_dict(self) -> dict[str, int]:
        """Returns the counts for the manifest."""
        return {"ring": self.ring, "interface": self.interface, "us": self.us}


@dataclass(frozen=True, slots=True)
class Loss:
    """Loss of packets that came to the interfaces.

    drops: the packets lost. offered: the packets lost and the packets read.
    """

    drops: Drops
    offered: int

    @classmethod
    def of(cls, sources: Iterable[Mapping[str, Any]], drops: Drops) -> "Loss | None":
        """Returns the loss of a run with these sources, as its manifest has them; None without a
        loss or for captures."""
        interfaces = [source for source in sources if source["format"] == INTERFACE]
        if not interfaces or drops.total == 0:
            return None
        return cls(drops, sum(one["frames"] + sum(one["drops"].values()) for one in interfaces))

    @property
    def percent(self) -> float:
        """The share of the packets that was lost."""
        return 100 * self.drops.total / max(self.offered, self.drops.total)

    def text(self) -> str:
        """Describes the loss for people: count, place, and remedy."""
        advice = "; give --ring more memory, or use --workers" if self.drops.ring else ""
        share = f"{self.percent:.1f}" if self.percent >= 0.1 else "less than 0.1"
        return (
            f"{self.drops.total:,} of {self.offered:,} packets were lost ({share} %):"
            f" {self.drops.text()}{advice}"
        )


@dataclass(frozen=True, slots=True)
class Away:
    """Number of times that an interface was away while it was to be read, and their length in
    seconds."""

    count: int = 0
    seconds: float = 0.0

    def to_dict(self) -> dict[str, float]:
        """Returns the counts for the manifest."""
        return {"count": self.count, "seconds": round(self.seconds, 3)}


def absences(sources: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns a line for each of these sources, as the manifest has them, that was away."""
    away = [(one["name"], one["away"]) for one in sources if one.get("away", {}).get("count")]
    return [
        f"interface {name} was away {times_in_words(facts['count'])}, for {facts['seconds']:,.1f} s"
        " in all; of that time, only packets that the system counted are among the"
        " lost packets"
        for name, facts in away
    ]


def times_in_words(count: int) -> str:
    """Returns the number of times as text."""
    return "once" if count == 1 else f"{count:,} times"


class Facts(Protocol):
    """The facts that every kind of source has at the end."""

    @property
    def name(self) -> str:
        """The last part of a path, or the interface."""

    @property
    def frames(self) -> int:
        """Frames read."""

    @property
    def warning(self) -> str | None:
        """The reason why it ended early, or None."""

    def to_dict(self) -> dict[str, Any]:
        """Returns the source as the manifest has it."""


class SourceFacts(NamedTuple):
    """Facts about one capture. `name` is only the last part of its path."""

    name: str
    format: str
    compression: str | None
    link_types: Mapping[int, int]
    bytes_read: int
    frames: int
    warning: str | None

    def to_dict(self) -> dict[str, Any]:
        """Returns the source as the manifest has it."""
        return {
            "name": self.name,
            "format": self.format,
            "compression": self.compression,
            "link_types": by_link_type(self.link_types),
            "bytes": self.bytes_read,
            "frames": self.frames,
            "warning": self.warning,
        }
