# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Counts of a counter at one time, for metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterFacts:
    """Facts about a counter. Times are in seconds.

    `counts` has the sums over all shards, and counts of refusals. `lag_s` is the time from the
    decided time until now, or None before the first and after the last decision. `last_seen_s` is
    the time since the last message of each session that is not gone. `probe_lag_s` is the time from
    a session's watermark until now. `probe_late_s` is the time by which a session is behind the
    decided time, or 0 if decisions wait for it. `state_age_s` is the time since the state was last
    written, or None without a state. `probes` is the number of sessions that ever joined, and
    `probes_missing` the number of expected probes that have not joined.
    """

    counts: Mapping[str, int]
    window_s: float
    pending_max: int
    lag_s: float | None = None
    last_seen_s: Mapping[str, float] = field(default_factory=dict)
    probe_lag_s: Mapping[str, float] = field(default_factory=dict)
    probe_late_s: Mapping[str, float] = field(default_factory=dict)
    state_age_s: float | None = None
    probes_missing: int = 0
    memory_bytes: int = 0
    probes: int = 0
