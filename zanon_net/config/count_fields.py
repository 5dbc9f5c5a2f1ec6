# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Made by scripts/make_settings.py from zanon_net/config/schema.py.
"""Fields of the settings of `count`, with types for type checkers."""

import os

from zanon_net._record import dataclass
from zanon_net.config.schema import rows_of
from zanon_net.config.setting import View

COUNT = {row.name: row for row in rows_of("count")}
"""The settings by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountFields(View):
    """Fields of the settings of `count`."""

    rows = rows_of("count")

    z: int = COUNT["z"].default
    window: int | str = COUNT["window"].default
    rotate: int | str | None = COUNT["rotate"].default
    count_rotate: int | str | None = COUNT["count_rotate"].default
    out: str | os.PathLike[str] | None = COUNT["out"].default
    releases: str | os.PathLike[str] | None = COUNT["releases"].default
    sealed_out: str | os.PathLike[str] | None = COUNT["sealed_out"].default
    observations_out: str | os.PathLike[str] | None = COUNT["observations_out"].default
    tls_cert: str | os.PathLike[str] | None = COUNT["tls_cert"].default
    tls_key: str | os.PathLike[str] | None = COUNT["tls_key"].default
    tls_ca: str | os.PathLike[str] | None = COUNT["tls_ca"].default
    mode: str = COUNT["mode"].default
    threshold_epochs: int = COUNT["threshold_epochs"].default
    shards: int = COUNT["shards"].default
    expect_probes: int = COUNT["expect_probes"].default
    until_done: bool = COUNT["until_done"].default
    probe_timeout: int | str = COUNT["probe_timeout"].default
    max_skew: int | str = COUNT["max_skew"].default
    max_users_per_probe: int | None = COUNT["max_users_per_probe"].default
    state: str | os.PathLike[str] | None = COUNT["state"].default
    state_key_file: str | os.PathLike[str] | None = COUNT["state_key_file"].default
    metrics: str | None = COUNT["metrics"].default
    metrics_anywhere: bool = COUNT["metrics_anywhere"].default
    metrics_file: str | os.PathLike[str] | None = COUNT["metrics_file"].default
    max_tuples: int = COUNT["max_tuples"].default
    max_attributes: int = COUNT["max_attributes"].default
    max_clients: int = COUNT["max_clients"].default
    max_pending: int = COUNT["max_pending"].default
