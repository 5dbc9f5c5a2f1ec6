# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Where metrics leave a run: an HTTP server for Prometheus, a file for node_exporter.

Both get what the run's own loop has made; the server's thread touches nothing else of the run.
"""

import errno
import logging
import os
import socket
import time
from collections.abc import Iterable, Sequence
from http.server import HTTPServer
from pathlib import Path
from socketserver import TCPServer
from threading import Thread
from typing import Any

from prometheus_client import MetricsHandler, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector, CollectorRegistry

from zanon_net.config.listen_address import ListenAddress
from zanon_net.errors import OutputError, ZanonError
from zanon_net.pipeline.metrics import METRICS, Moment, rounded
from zanon_net.system.file_errors import explained
from zanon_net.system.signals import signals_blocked

CLIENT_TIMEOUT_S = 5.0  # of a client that connects and says nothing
POLL_S = 0.2  # the longest that the end of a run waits for the server
FILE_MODE = 0o644  # node_exporter is another user, and the file holds nothing of the traffic
AGE_NAME = "zanon_snapshot_age_seconds"
AGE_HELP = "Seconds since these metrics were made; more than 10 when the run waits for something."
_ADVICE = {
    errno.EADDRINUSE: "choose another port",
    errno.EACCES: "choose a port above 1023",
    errno.EADDRNOTAVAIL: "choose an address of this machine",
}

_log = logging.getLogger("zanon_net")


class Snapshot(Collector):
    """The metrics that are given out: those of the last moment, and how old they are."""

    def __init__(self) -> None:
        self._made: tuple[float, Sequence[Family]] = (time.monotonic(), ())

    def take(self, moment: Moment) -> None:
        """Replaces the metrics at once, for whichever thread reads them."""
        self._made = (time.monotonic(), [_family(metric, moment) for metric in METRICS])

    def collect(self) -> Iterable[Family]:
        """See Collector."""
        made, families = self._made
        yield from families
        yield GaugeMetricFamily(AGE_NAME, AGE_HELP, rounded(time.monotonic() - made))


def _family(metric: Any, moment: Moment) -> Family:
    is_counter = metric.kind == "counter"
    kind = CounterMetricFamily if is_counter else GaugeMetricFamily
    family = kind(metric.full_name, metric.help, labels=[metric.label] if metric.label else [])
    for labels, number in metric.samples(moment):
        family.add_metric(labels, number)
    return family


class MetricsServer(HTTPServer):
    """Listens from now on, and answers once it is started: one client at a time, in one thread.

    Raises ZanonError where it cannot listen.
    """

    def __init__(self, address: ListenAddress, registry: CollectorRegistry) -> None:
        self.address_family = socket.AF_INET6 if address.is_ipv6 else socket.AF_INET
        handler = type("_Handler", (MetricsHandler,), {"registry": registry} | _HANDLING)
        try:
            super().__init__((address.host, address.port), handler)
        except OSError as error:
            advice = _ADVICE.get(error.errno or 0, "choose another address")
            raise ZanonError(
                f"cannot serve metrics on port {address.port}: {os.strerror(error.errno or 0)};"
                f" {advice}"
            ) from None
        self._thread: Thread | None = None

    def server_bind(self) -> None:
        """See HTTPServer, which would look its own name up, and wait for an answer."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of a client that went away."""

    def start(self) -> None:
        """Starts the thread, with the rights that the process has now."""
        thread = Thread(target=self.serve_forever, args=(POLL_S,), name="metrics", daemon=True)
        self._thread = thread
        with signals_blocked():
            thread.start()
        _log.info("serving metrics on port %d", self.server_port)

    def close(self) -> None:
        """Ends it; again is fine."""
        if self._thread is not None and self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        self.server_close()


_HANDLING = {"timeout": CLIENT_TIMEOUT_S, "server_version": "zanon-net", "sys_version": ""}


class MetricsFile:
    """The file, which readers find whole at any time."""

    def __init__(self, path: str | os.PathLike[str], registry: CollectorRegistry) -> None:
        self._path = Path(path)
        self._registry = registry
        self._written = False
        self._fails = False

    def write(self) -> None:
        """Replaces it. Raises OutputError the first time; later it warns, and the run goes on."""
        try:
            with explained("write", self._path):
                self._replace(generate_latest(self._registry))
            self._written, self._fails = True, False
        except OutputError as error:
            if not self._written:
                raise
            if not self._fails:
                _log.warning("warning: %s; the run goes on", error)
            self._fails = True

    def _replace(self, content: bytes) -> None:
        partial = self._path.with_name(f".{self._path.name}.partial")  # node_exporter skips it
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(partial, flags, FILE_MODE), "wb") as file:
                os.fchmod(file.fileno(), FILE_MODE)
                file.write(content)
            partial.replace(self._path)
        except OSError:
            partial.unlink(missing_ok=True)
            raise
