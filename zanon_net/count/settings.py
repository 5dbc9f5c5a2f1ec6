# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The settings of a counter, in the units that it works with."""

from dataclasses import dataclass
from typing import Any

from zanon_net._core import VoteShard, vote_settings
from zanon_net.config.count_settings import CountConfig
from zanon_net.config.parse import format_duration
from zanon_net.count.lateness import MAX_LAG_NS

NS = 1e-9


@dataclass(frozen=True, slots=True)
class CounterSettings:
    """Settings of a counter. Limits are per shard, except max_users_per_probe."""

    z: int
    window_ns: int
    rotate_ns: int
    count_rotate_ns: int | None = None
    shards: int = 1
    expect_probes: int = 0
    probe_timeout_s: float = 30.0
    max_skew_ns: int = 600_000_000_000
    max_users_per_probe: int | None = None
    max_tuples: int = 1 << 26
    max_attributes: int = 1 << 24
    max_clients: int = 1 << 22
    max_pending: int = 1 << 24
    keep_releases: bool = False
    mode: str = "ask"
    threshold_epochs: int = 4

    @classmethod
    def of(cls, config: CountConfig) -> "CounterSettings":
        """Returns the settings of a command's configuration."""
        return cls(
            z=config.z,
            window_ns=config.window_ns,
            rotate_ns=config.rotate_ns,
            count_rotate_ns=config.count_rotate_ns,
            shards=config.shards,
            expect_probes=config.expect_probes,
            probe_timeout_s=int(config.probe_timeout) * NS,
            max_skew_ns=int(config.max_skew),
            max_users_per_probe=config.max_users_per_probe,
            max_tuples=_share(config.max_tuples, config.shards),
            max_attributes=_share(config.max_attributes, config.shards),
            max_clients=_share(config.max_clients, config.shards),
            max_pending=_share(config.max_pending, config.shards),
            keep_releases=config.releases is not None,
            mode=config.mode,
            threshold_epochs=config.threshold_epochs,
        )

    @property
    def number(self) -> int:
        """Digest of z, window, epochs and generations that every message has."""
        return int(vote_settings(self.z, self.window_ns, self.rotate_ns, self.count_rotate_ns))

    def new_shard(self, number: int) -> VoteShard:
        """Returns an empty shard."""
        return VoteShard(
            self.z,
            self.window_ns,
            rotate_ns=self.rotate_ns,
            count_rotate_ns=self.count_rotate_ns,
            shard=number,
            max_tuples=self.max_tuples,
            max_attributes=self.max_attributes,
            max_clients=self.max_clients,
            max_pending=self.max_pending,
            max_lag_ns=MAX_LAG_NS,
            keep_releases=self.keep_releases,
        )

    def for_state(self) -> dict[str, Any]:
        """Returns the options that a state has to have been made with."""
        length = self.count_rotate_ns
        return {
            "z": self.z,
            "window": format_duration(self.window_ns),
            "rotate": format_duration(self.rotate_ns),
            "count-rotate": "never" if length is None else format_duration(length),
            "shards": self.shards,
            "max-tuples": self.max_tuples * self.shards,
            "max-attributes": self.max_attributes * self.shards,
            "max-clients": self.max_clients * self.shards,
            "max-pending": self.max_pending * self.shards,
            "releases": "DIR" if self.keep_releases else "not",
            "mode": self.mode,
            "threshold-epochs": self.threshold_epochs,
        }


def _share(total: int, shards: int) -> int:
    """Returns each shard's part of a limit. Hashes spread evenly over the shards."""
    return max(total // shards, 1)
