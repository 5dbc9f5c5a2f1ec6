# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a counter: opens its state and transports, counts, and closes them."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from zanon_net.config.count_settings import CountConfig
from zanon_net.count.attachments import SealedStore, ShareStore
from zanon_net.count.facts import CounterFacts
from zanon_net.count.frames import Welcome
from zanon_net.count.lateness import ANSWERS_NS
from zanon_net.count.release_folders import ReleaseFolder, RowFolder
from zanon_net.count.service import CounterService, Outputs
from zanon_net.count.settings import CounterSettings
from zanon_net.count.transports import open_transport
from zanon_net.count.url import Place
from zanon_net.errors import ConfigError, MissingExtraError
from zanon_net.pipeline.counter_metrics import COUNTER_METRICS
from zanon_net.pipeline.metrics import rounded
from zanon_net.pipeline.metrics_outputs import MetricsOutputs
from zanon_net.system.service import ServiceManager
from zanon_net.system.signals import Interruption

if TYPE_CHECKING:
    from zanon_net.count.state import StateFolder

REFRESH_S = 10.0  # as of a run


def count(
    place: Place, config: CountConfig, *, interruption: Interruption, service: ServiceManager
) -> Mapping[str, int]:
    """Counts the votes that come to `place` until it is interrupted; returns the counts.

    Raises ConfigError and MissingExtraError before anything is read, ZanonError later.
    """
    settings = CounterSettings.of(config)
    with ExitStack() as stack:
        metrics = MetricsOutputs(COUNTER_METRICS, config.metrics, config.metrics_file)
        stack.callback(metrics.close)
        state = _open_state(config, settings)
        if state is not None:
            stack.callback(state.close)
        welcome = Welcome(settings.shards, settings.number, ANSWERS_NS)
        transport = stack.enter_context(closing(open_transport(place, config, welcome)))
        observers = _Observers(metrics, service)
        outputs = Outputs(state, _open_releases(config), _open_rows(config))
        counter = CounterService(settings, transport, outputs, on_tick=observers.tick)
        observers.begin(counter.facts)
        counter.run(interruption, until_done=config.until_done)
        service.stopping()
        observers.publish(counter.facts)
        facts = counter.facts()
    return {**facts.counts, "probes": facts.probes}


def _open_state(config: CountConfig, settings: CounterSettings) -> "StateFolder | None":
    if config.state is None or config.state_key_file is None:
        return None
    try:
        from zanon_net.count.sealed_files import read_key
        from zanon_net.count.state import StateFolder
    except ImportError:
        raise MissingExtraError(
            "--state needs cryptography; install it with: pip install 'zanon-net[count]'"
        ) from None
    return StateFolder(Path(config.state), read_key(config.state_key_file), settings.for_state())


def _open_releases(config: CountConfig) -> ReleaseFolder | None:
    if config.releases is None:
        return None
    folder = Path(config.releases)
    if config.state is None and any(folder.glob("*.npy")):
        raise ConfigError(f"releases: {folder} belongs to another counter; give another folder")
    return ReleaseFolder(folder)


def _open_rows(config: CountConfig) -> RowFolder | None:
    if config.sealed_out is not None:
        return RowFolder(Path(config.sealed_out), SealedStore.suffix)
    if config.observations_out is not None:
        return RowFolder(Path(config.observations_out), ShareStore.suffix)
    return None


class _Observers:
    """Reports to Prometheus and the service manager."""

    def __init__(self, metrics: MetricsOutputs, service: ServiceManager) -> None:
        self._metrics, self._service = metrics, service
        self._due = 0.0

    def begin(self, facts: Callable[[], CounterFacts]) -> None:
        """Starts the reports; the counter is about to count."""
        self.publish(facts)
        self._metrics.start()
        self._service.ready()

    def tick(self, facts: Callable[[], CounterFacts]) -> None:
        """Reports that the counter is alive; to be called often."""
        now = time.monotonic()
        self._service.beat(now)
        if now >= self._due and (self._metrics.is_there or self._service.is_there):
            self.publish(facts)

    def publish(self, facts: Callable[[], CounterFacts]) -> None:
        """Publishes the present metrics."""
        self._due = time.monotonic() + REFRESH_S
        now = facts()
        self._metrics.publish(now)
        votes, probes = rounded(now.counts.get("votes", 0)), len(now.last_seen_s)
        self._service.status(f"{votes:,.0f} votes, {probes} probes")
