# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that watch a run while it is active: Prometheus, node_exporter, the service manager."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from zanon_net._core import PacketEngine
from zanon_net.config.sections import LiveSettings
from zanon_net.output.disk import DiskFacts
from zanon_net.output.sink import Parts
from zanon_net.pipeline.facts import Drops
from zanon_net.pipeline.window_hooks import WindowHooks
from zanon_net.system.service import ServiceManager

if TYPE_CHECKING:
    from zanon_net.pipeline.metrics import Snapshot
    from zanon_net.pipeline.metrics_clock import MetricsClock
    from zanon_net.pipeline.metrics_outputs import MetricsOutputs


class Observers:
    """Reports one run to its observers; costs nothing without observers.

    It must be made while the process has the rights to listen. Raises ZanonError if listening
    fails, or if the library of the metrics is missing.
    """

    def __init__(self, settings: LiveSettings, service: ServiceManager | None = None) -> None:
        self._service = service if service is not None and service.is_there else None
        self._clock: MetricsClock | None = None
        self._metrics: MetricsOutputs | None = None
        if settings.metrics is not None or settings.metrics_file is not None:
            self._metrics = _metrics_outputs(settings)

    def begin(
        self,
        engine: PacketEngine,
        drops: Callable[[], Drops],
        hooks: WindowHooks,
        disk: Callable[[], DiskFacts],
        presence: Callable[[], Mapping[str, int | None]] = dict,
    ) -> None:
        """Starts the reports; the run is about to read, with everything open. Raises
        OutputError."""
        if self._service is not None or self._metrics is not None:
            from zanon_net.pipeline.metrics_clock import MetricsClock

            self._clock = MetricsClock(engine, drops, hooks, self._publish, disk, presence)
            self._clock.tick(time.monotonic())
        if self._metrics is not None:
            self._metrics.start()
        if self._service is not None:
            self._service.ready()

    def count(self, parts: Parts) -> None:
        """Counts output on its way to the sink."""
        if self._clock is not None:
            self._clock.output.add(parts)

    def tick(self) -> None:
        """Reports that the run is alive; to be called after each batch."""
        if self._clock is not None:
            now = time.monotonic()
            self._clock.tick(now)
            if self._service is not None:
                self._service.beat(now)

    def stopping(self) -> None:
        """Reports that the run reads no more, and writes its remaining output."""
        if self._service is not None:
            self._service.stopping()

    def finish(self) -> None:
        """Reports the end of the run with the metrics of its manifest."""
        if self._clock is not None:
            self._clock.take(time.monotonic())

    def close(self) -> None:
        """Ends the server. A second call does nothing."""
        if self._metrics is not None:
            self._metrics.close()

    def _publish(self, snapshot: "Snapshot") -> None:
        if self._metrics is not None:
            self._metrics.publish(snapshot)
        if self._service is not None:
            self._service.status(_status(snapshot))


def _metrics_outputs(settings: LiveSettings) -> "MetricsOutputs":
    from zanon_net.pipeline.metrics import METRICS  # late: most runs have no metrics
    from zanon_net.pipeline.metrics_outputs import MetricsOutputs

    return MetricsOutputs(METRICS, settings.metrics, settings.metrics_file)


def _status(snapshot: "Snapshot") -> str:
    """Returns a status line. Every user of the system may read it, so its values have three digits,
    too."""
    from zanon_net.pipeline.metrics import rounded

    packets, lost = snapshot.totals.counters["frames"], snapshot.drops.total
    away = "".join(f", interface {name} away" for name, up in snapshot.interfaces.items() if not up)
    return (
        f"{rounded(packets):,.0f} packets, {rounded(snapshot.packets_per_s):,.0f} a second,"
        f" {rounded(lost):,.0f} lost{away}"
    )
