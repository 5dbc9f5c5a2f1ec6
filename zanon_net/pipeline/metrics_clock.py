# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Takes the snapshots of a run for its metrics every ten seconds, in the run's loop."""

import time
from collections import Counter
from collections.abc import Callable, Mapping

from zanon_net._core import PacketEngine
from zanon_net.config.formats import FORMAT_OF
from zanon_net.output.disk import DiskFacts
from zanon_net.output.sink import Parts
from zanon_net.pipeline.facts import Drops
from zanon_net.pipeline.metrics import Snapshot
from zanon_net.pipeline.totals import Totals
from zanon_net.pipeline.window_hooks import WindowHooks

REFRESH_S = 10.0
"""Least time between two snapshots, except before the last: shorter steps would disclose single
flows."""


class OutputCounts:
    """Bytes and records of the output so far, by format; views of packets are not counted."""

    def __init__(self, formats: tuple[str, ...]) -> None:
        self._bytes, self._records = Counter[str](), Counter[str]()
        self._formats = formats

    def add(self, parts: Parts) -> None:
        """Counts output that goes to the sink."""
        ends: dict[str, int] = {}
        for _period, texts, tables in parts:
            for output, (lines, records) in texts.items():
                name = FORMAT_OF[output].name if output in FORMAT_OF else ""
                self._bytes[name] += len(lines)
                self._records[name] += records
            ends |= tables
        for output, rows in ends.items():
            self._records[FORMAT_OF[output].name] += rows

    def by_format(self) -> dict[str, tuple[int, int]]:
        """Returns (bytes, records) of each format that is written."""
        return {name: (self._bytes[name], self._records[name]) for name in self._formats}


class MetricsClock:
    """Makes a snapshot whenever one is due, and calls `notify` with it."""

    def __init__(
        self,
        engine: PacketEngine,
        drops: Callable[[], Drops],
        hooks: WindowHooks,
        notify: Callable[[Snapshot], None],
        disk: Callable[[], DiskFacts] = DiskFacts,
        presence: Callable[[], Mapping[str, int | None]] = dict,
    ) -> None:
        self._disk = disk
        self._engine, self._drops, self._hooks, self._notify = engine, drops, hooks, notify
        self._presence = presence
        self.output = OutputCounts(tuple(hooks.config.output.format))
        self._before = self._due = time.monotonic()
        self._packets = self._octets = self._lost = 0

    def tick(self, now: float) -> None:
        """Makes a snapshot if one is due; cheap enough to be called often."""
        if now >= self._due:
            self._due = now + REFRESH_S
            self.take(now)

    def take(self, now: float) -> None:
        """Makes a snapshot even if none is due: the last one."""
        totals, drops = Totals.of(self._engine), self._drops()
        packets, octets = totals.counters["frames"], totals.counters["bytes_wire"]
        seconds = max(now - self._before, 1e-9)
        read, lost = packets - self._packets, drops.total - self._lost
        self._notify(
            Snapshot(
                totals=totals,
                drops=drops,
                z=self._hooks.z,
                rotate_ns=self._hooks.config.rotate_ns,
                ztable_bytes=self._engine.table_memory_bytes,
                output=self.output.by_format(),
                disk=self._disk(),
                packets_per_s=read / seconds,
                bits_per_s=(octets - self._octets) * 8 / seconds,
                lost_share=lost / max(read + lost, 1),
                interfaces={name: since is None for name, since in self._presence().items()},
            )
        )
        self._before, self._packets, self._octets, self._lost = now, packets, octets, drops.total
