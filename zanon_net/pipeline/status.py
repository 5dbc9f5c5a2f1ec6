# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""State of an active run: one snapshot an interval. Counts only, no names."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import field

from zanon_net._core import PacketEngine
from zanon_net._record import dataclass
from zanon_net._text import iso_time
from zanon_net.output.sink import Sent
from zanon_net.pipeline.facts import Drops
from zanon_net.pipeline.totals import Totals


@dataclass(frozen=True, slots=True)
class Status:
    """A run at one moment; rates are over the time since the previous snapshot.

    time_ns: the moment by the system's clock, ns since the epoch. seconds: since the run began.
    sent: the packets that were to leave through an interface; None if the output is no interface.
    away: the interfaces that are away, and the time when they went away, in ns since the epoch.
    """

    time_ns: int
    seconds: float
    packets: int
    packets_per_s: float
    bits_per_s: float
    flows: int
    flows_open: int
    observations: int
    released: int
    decided: int
    drops: Drops
    memory_bytes: int
    sent: Sent | None = None
    away: Mapping[str, int] = field(default_factory=dict)

    @property
    def released_share(self) -> float:
        """Released names among those decided so far, 0 to 1."""
        return self.released / self.decided if self.decided else 0.0

    def rows(self) -> list[tuple[str, str]]:
        """Returns (title, text) of every figure, for a table."""
        return [
            ("running", f"{self.seconds:,.0f} s"),
            ("packets", f"{self.packets:,} ({self.packets_per_s:,.0f}/s)"),
            ("on the wire", f"{self.bits_per_s * 1e-9:,.3f} Gbit/s"),
            ("flows", f"{self.flows:,} ({self.flows_open:,} open)"),
            ("observations", f"{self.observations:,}"),
            ("names released", f"{self.released_share:.1%}"),
            ("dropped", self.drops.text()),
            *((f"interface {name} away since", _timestamp(ns)) for name, ns in self.away.items()),
            *([] if self.sent is None else [("left", self.sent.text())]),
            ("memory", f"{self.memory_bytes / 2**20:,.0f} MiB"),
        ]

    @property
    def time(self) -> str:
        """The moment in UTC, as RFC 3339 has it, down to seconds."""
        return _timestamp(self.time_ns)

    def line(self) -> str:
        """Returns the time and all figures in one line."""
        return ", ".join([self.time, *(f"{title} {text}" for title, text in self.rows())])

    def to_json(self) -> str:
        """Returns the time and all figures as an object of JSON in one line."""
        return json.dumps(
            {
                "time": self.time,
                "seconds": round(self.seconds, 3),
                "packets": self.packets,
                "packets_per_s": round(self.packets_per_s),
                "bits_per_s": round(self.bits_per_s),
                "flows": self.flows,
                "flows_open": self.flows_open,
                "observations": self.observations,
                "names_decided": self.decided,
                "names_released": self.released,
                "capture_drops": self.drops.to_dict(),
                "interfaces_away": {name: _timestamp(ns) for name, ns in self.away.items()},
                "interface": None if self.sent is None else self.sent.to_dict(),
                "memory_bytes": self.memory_bytes,
            }
        )


def _timestamp(time_ns: int) -> str:
    """Returns the time in UTC in the form of RFC 3339, down to seconds."""
    return f"{iso_time(time_ns)[:19]}Z"


class StatusClock:
    """Makes a snapshot whenever `interval_s` seconds have passed, and calls `notify` with it."""

    def __init__(
        self,
        engine: PacketEngine,
        drops: Callable[[], Drops],
        interval_s: float,
        notify: Callable[[Status], None],
        sent: Callable[[], Sent | None] = lambda: None,
        presence: Callable[[], Mapping[str, int | None]] = dict,
    ) -> None:
        self._engine, self._drops, self._notify = engine, drops, notify
        self._sent, self._presence = sent, presence
        self._interval_s = interval_s
        self._began = self._before = time.monotonic()
        self._due = self._began + interval_s
        self._packets = self._bytes = 0

    def tick(self) -> None:
        """Makes a snapshot if one is due; cheap enough to be called often."""
        now = time.monotonic()
        if now >= self._due:
            self._due += self._interval_s * ((now - self._due) // self._interval_s + 1)
            self._notify(self._snapshot(now))

    def _snapshot(self, now: float) -> Status:
        totals, counters = Totals.of(self._engine), self._engine.stats
        packets, octets = counters["frames"], counters["bytes_wire"]
        seconds = max(now - self._before, 1e-9)
        flows = counters["flows_tcp"] + counters["flows_udp"]
        status = Status(
            time_ns=time.time_ns(),
            seconds=now - self._began,
            packets=packets,
            packets_per_s=(packets - self._packets) / seconds,
            bits_per_s=(octets - self._bytes) * 8 / seconds,
            flows=flows,
            flows_open=flows - counters["flows_closed"],
            observations=counters["observations"],
            released=counters["released"],
            decided=totals.decided,
            drops=self._drops(),
            memory_bytes=totals.memory_bytes,
            sent=self._sent(),
            away={name: ns for name, ns in self._presence().items() if ns is not None},
        )
        self._before, self._packets, self._bytes = now, packets, octets
        return status
