# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of `count`: a frozen dataclass, checked when it is made.

The dataclass gives the rows of the schema types for type checkers, like the dataclasses of
`sections`.
"""

import os

from zanon_net._record import dataclass
from zanon_net.config import rules
from zanon_net.config.schema import rows_of
from zanon_net.config.setting import View, describe

COUNT = {row.name: row for row in rows_of("count")}


@dataclass(frozen=True, slots=True, kw_only=True)
class CountConfig(View):
    """The settings of a counter."""

    rows = rows_of("count")

    z: int = COUNT["z"].default
    window: int | str = COUNT["window"].default
    rotate: int | str | None = COUNT["rotate"].default
    count_rotate: int | str | None = COUNT["count_rotate"].default
    out: str | os.PathLike[str] | None = COUNT["out"].default
    releases: str | os.PathLike[str] | None = COUNT["releases"].default
    mode: str = COUNT["mode"].default
    sealed_out: str | os.PathLike[str] | None = COUNT["sealed_out"].default
    observations_out: str | os.PathLike[str] | None = COUNT["observations_out"].default
    threshold_epochs: int = COUNT["threshold_epochs"].default
    tls_cert: str | os.PathLike[str] | None = COUNT["tls_cert"].default
    tls_key: str | os.PathLike[str] | None = COUNT["tls_key"].default
    tls_ca: str | os.PathLike[str] | None = COUNT["tls_ca"].default
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

    @property
    def window_ns(self) -> int:
        """The window in nanoseconds."""
        return int(self.window)

    @property
    def rotate_ns(self) -> int:
        """The length of an epoch in nanoseconds."""
        return rules.rotate_ns(self.settings())

    @property
    def count_rotate_ns(self) -> int | None:
        """The length of a generation of hash keys in nanoseconds; None: one key for all time."""
        return None if self.count_rotate is None else int(self.count_rotate)


describe(CountConfig)
