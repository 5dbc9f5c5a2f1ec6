# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Exports metrics of a run: an HTTP server for Prometheus, a file for node_exporter.

Both get the snapshots that the run's own loop takes; the server's thread touches nothing else of
the run.
"""

import errno
import os
import socket
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from http.server import HTTPServer
from pathlib import Path
from socketserver import TCPServer
from threading import Condition, Thread
from typing import Any

from prometheus_client import MetricsHandler, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector, CollectorRegistry

from zanon_net.config.listen_address import ListenAddress
from zanon_net.errors import ConfigError, OutputError, ZanonError
from zanon_net.pipeline.metrics import METRICS, Metric, rounded
from zanon_net.system.file_errors import explained
from zanon_net.system.log import log
from zanon_net.system.signals import signals_blocked

CLIENT_TIMEOUT_S = 5.0  # for a client to send its request and to read the answer
CLIENTS_MAX = 8  # that are answered at a time
QUEUE_MAX = 128  # connections that wait to be accepted
POLL_S = 0.1  # the longest that the end of a run waits for the server
OURS = b"# HELP zanon_"  # the first bytes of a file of metrics
FILE_MODE = 0o644  # node_exporter is another user, and the file holds nothing of the traffic
AGE_NAME = "zanon_snapshot_age_seconds"
AGE_HELP = "Seconds since these metrics were taken; more than 10 when the run waits."
_ADVICE = {
    errno.EADDRINUSE: "choose another port",
    errno.EACCES: "choose a port above 1023",
    errno.EADDRNOTAVAIL: "choose an address of this machine",
}


class MetricsCollector(Collector):
    """The metrics that are exported: the metrics of the last snapshot, and their age."""

    def __init__(self, metrics: Sequence[Metric] = METRICS) -> None:
        self._metrics = metrics
        self._latest: tuple[float, Sequence[Family]] = (time.monotonic(), ())

    def take(self, snapshot: Any) -> None:
        """Replaces the metrics at once, for every thread that reads them."""
        self._latest = (time.monotonic(), [_family(metric, snapshot) for metric in self._metrics])

    def collect(self) -> Iterable[Family]:
        """See Collector."""
        taken_at, families = self._latest
        yield from families
        yield GaugeMetricFamily(AGE_NAME, AGE_HELP, rounded(time.monotonic() - taken_at))


def _family(metric: Metric, snapshot: Any) -> Family:
    is_counter = metric.kind == "counter"
    kind = CounterMetricFamily if is_counter else GaugeMetricFamily
    family = kind(metric.full_name, metric.help, labels=[metric.label] if metric.label else [])
    for labels, number in metric.samples(snapshot):
        family.add_metric(labels, number)
    return family


class MetricsServer(HTTPServer):
    """Server that listens from its creation, and answers after start(): each client in a thread of
    its own.

    At most CLIENTS_MAX clients are answered at once. A further client ends the connection of the
    oldest client, so that slow clients keep out no other client.

    Raises ZanonError if it cannot listen.
    """

    allow_reuse_port = False  # two runs on one port would take turns
    request_queue_size = QUEUE_MAX

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
        self.timeout = POLL_S  # of handle_request
        self._thread: Thread | None = None
        self._changed = Condition()  # guards _clients
        # clients that are answered, and the time of their arrival
        self._clients: dict[socket.socket, float] = {}
        self._is_closing = False

    def server_bind(self) -> None:
        """See HTTPServer, whose method would look its own name up, and wait for an answer."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """See HTTPServer."""
        with self._changed:
            if len(self._clients) >= CLIENTS_MAX:
                _cut_off(next(iter(self._clients)))
                self._changed.wait_for(self._has_room, POLL_S)
            if self._is_closing or not self._has_room():
                self.shutdown_request(request)
                return
            self._clients[request] = time.monotonic()
        try:
            Thread(target=self._answer, args=(request, client_address), daemon=True).start()
        except RuntimeError:  # the system has no thread for it
            self._end(request)

    def _has_room(self) -> bool:
        return len(self._clients) < CLIENTS_MAX

    def _answer(self, request: Any, client_address: Any) -> None:
        with suppress(Exception):  # a client that went away is not reported
            self.finish_request(request, client_address)
        self._end(request)

    def _end(self, client: socket.socket) -> None:
        self.shutdown_request(client)
        with self._changed:
            del self._clients[client]
            self._changed.notify_all()

    def start(self) -> None:
        """Starts the thread, with the rights that the process has now."""
        self._thread = Thread(target=self._serve, name="metrics", daemon=True)
        with signals_blocked():  # threads for clients inherit this
            self._thread.start()
        log.info("serving metrics on port %d", self.server_port)

    def _serve(self) -> None:
        while not self._is_closing:
            self.handle_request()
            self._end_slow(time.monotonic() - CLIENT_TIMEOUT_S)

    def _end_slow(self, since: float) -> None:
        """Ends the connections of clients that arrived then or before."""
        with self._changed:
            for client, began in self._clients.items():
                if began <= since:
                    _cut_off(client)

    def close(self) -> None:
        """Ends the server, and cuts off slow clients. A second call does nothing."""
        self._is_closing = True
        if self._thread is not None:
            self._thread.join()
        self._end_slow(time.monotonic())
        with self._changed:
            self._changed.wait_for(lambda: not self._clients, CLIENT_TIMEOUT_S)
        self.server_close()


def _cut_off(client: socket.socket) -> None:
    """Ends a connection, which may be closed already."""
    with suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)


_HANDLING: dict[str, Any] = {
    "timeout": CLIENT_TIMEOUT_S,
    "server_version": "zanon-net",
    "sys_version": "",
}


class MetricsFile:
    """File that readers find whole at any time. It replaces only a file of metrics.

    Raises ConfigError if there is another file.
    """

    def __init__(self, path: str | os.PathLike[str], registry: CollectorRegistry) -> None:
        self._path = Path(path)
        self._refuse_another()
        self._registry = registry
        self._written = False
        self._fails = False

    def _refuse_another(self) -> None:
        begin = b""
        if self._path.is_file():
            with suppress(OSError), self._path.open("rb") as there:  # writing will then fail, too
                begin = there.read(len(OURS))
        if begin not in (b"", OURS):
            raise ConfigError(
                f"metrics_file: {self._path} exists and holds no metrics; choose another"
            )

    def write(self) -> None:
        """Replaces the file. Raises OutputError the first time; later it warns, and the run
        continues."""
        try:
            with explained("write", self._path):
                self._replace(generate_latest(self._registry))
            self._written, self._fails = True, False
        except OutputError as error:
            if not self._written:
                raise
            if not self._fails:
                log.warning("warning: %s; the run continues", error)
            self._fails = True

    def _replace(self, content: bytes) -> None:
        partial = self._path.with_name(f".{self._path.name}.partial")  # node_exporter skips it
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            partial.unlink(missing_ok=True)  # left by a run that was killed
            with os.fdopen(os.open(partial, flags, FILE_MODE), "wb") as file:
                os.fchmod(file.fileno(), FILE_MODE)
                file.write(content)
            partial.replace(self._path)
        except OSError:
            partial.unlink(missing_ok=True)
            raise
