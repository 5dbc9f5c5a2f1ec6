# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that watch a run while it goes on: Prometheus, node_exporter, the service manager."""

import time
from collections.abc import Callable

from zanon_net._core import PacketEngine
from zanon_net.config.sections import LiveSettings
from zanon_net.output.sink import Parts
from zanon_net.pipeline.facts import Drops
from zanon_net.pipeline.metrics import METRICS, Snapshot, rounded
from zanon_net.pipeline.metrics_clock import MetricsClock
from zanon_net.pipeline.metrics_outputs import MetricsOutputs
from zanon_net.pipeline.window_hooks import WindowHooks
from zanon_net.system.service import ServiceManager


class Observers:
    """Tells them about one run; where there are none, nothing is done for them.

    Made while the process has the rights to listen. Raises ZanonError where it cannot, or where
    the library of the metrics is missing.
    """

    def __init__(self, settings: LiveSettings, service: ServiceManager | None = None) -> None:
        self._service = service if service is not None and service.is_there else None
        self._clock: MetricsClock | None = None
        self._metrics = MetricsOutputs(METRICS, settings.metrics, settings.metrics_file)

    def begin(self, engine: PacketEngine, drops: Callable[[], Drops], hooks: WindowHooks) -> None:
        """The run is about to read, with everything open. Raises OutputError."""
        if self._service is not None or self._metrics.is_there:
            self._clock = MetricsClock(engine, drops, hooks, self._publish)
            self._clock.tick(time.monotonic())
        self._metrics.start()
        if self._service is not None:
            self._service.ready()

    def count(self, parts: Parts) -> None:
        """Counts output on its way to the sink."""
        if self._clock is not None:
            self._clock.output.add(parts)

    def tick(self) -> None:
        """The run is alive; to be called after each batch."""
        if self._clock is not None:
            now = time.monotonic()
            self._clock.tick(now)
            if self._service is not None:
                self._service.beat(now)

    def stopping(self) -> None:
        """The run reads no more, and writes what is left."""
        if self._service is not None:
            self._service.stopping()

    def finish(self) -> None:
        """The run is over, and the last metrics are those of its manifest."""
        if self._clock is not None:
            self._clock.take(time.monotonic())

    def close(self) -> None:
        """Ends the server; again is fine."""
        self._metrics.close()

    def _publish(self, snapshot: Snapshot) -> None:
        self._metrics.publish(snapshot)
        if self._service is not None:
            self._service.status(_status(snapshot))


def _status(snapshot: Snapshot) -> str:
    """A line that every user of the system may read, so that it has three digits, too."""
    packets, lost = snapshot.totals.counters["frames"], snapshot.drops.total
    return (
        f"{rounded(packets):,.0f} packets, {rounded(snapshot.packets_per_s):,.0f} a second,"
        f" {rounded(lost):,.0f} lost"
    )
