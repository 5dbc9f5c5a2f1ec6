# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Outputs of metrics, for any table of metrics: a server, a file, both or neither."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from zanon_net.config.listen_address import ListenAddress
from zanon_net.errors import MissingExtraError
from zanon_net.pipeline.metrics import Metric

if TYPE_CHECKING:
    from zanon_net.pipeline.metrics_export import MetricsCollector, MetricsFile, MetricsServer


class MetricsOutputs:
    """Listens, or opens the file, at once. Raises ZanonError if that fails, or if the library of
    the metrics is missing."""

    def __init__(
        self, metrics: Sequence[Metric], address: str | None, path: str | os.PathLike[str] | None
    ) -> None:
        self._collector: MetricsCollector | None = None
        self._server: MetricsServer | None = None
        self._file: MetricsFile | None = None
        if address is not None or path is not None:
            self._open(metrics, address, path)

    def _open(
        self, metrics: Sequence[Metric], address: str | None, path: str | os.PathLike[str] | None
    ) -> None:
        try:
            from prometheus_client.registry import CollectorRegistry

            from zanon_net.pipeline.metrics_export import (
                MetricsCollector,
                MetricsFile,
                MetricsServer,
            )
        except ImportError:
            raise MissingExtraError(
                "metrics need prometheus-client; install it with: pip install 'zanon-net[metrics]'"
            ) from None
        self._collector, registry = MetricsCollector(metrics), CollectorRegistry()
        registry.register(self._collector)
        if address is not None:
            self._server = MetricsServer(ListenAddress.of(address), registry)
        if path is not None:
            self._file = MetricsFile(path, registry)

    @property
    def is_there(self) -> bool:
        """True if metrics are exported."""
        return self._collector is not None

    def start(self) -> None:
        """Starts to answer."""
        if self._server is not None:
            self._server.start()

    def publish(self, snapshot: Any) -> None:
        """Replaces the metrics. Raises OutputError."""
        if self._collector is not None:
            self._collector.take(snapshot)
        if self._file is not None:
            self._file.write()

    def close(self) -> None:
        """Ends the server. A second call does nothing."""
        if self._server is not None:
            self._server.close()
