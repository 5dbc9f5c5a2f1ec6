# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The state of a counter at one time: counts only."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterFacts:
    """counts: of all shards together, and of what was refused.

    lag_s: from the time up to which all is decided until now; None where that says nothing.
    last_seen_s: since the last message of each probe that was not given up. probe_lag_s: from its
    watermark until now. probe_late_s: by how much it is behind what is decided; 0: decisions wait
    for it. state_age_s: since the state was last written; None: there is none.
    probes: that ever came. probes_missing: that are expected, and have not come.
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
