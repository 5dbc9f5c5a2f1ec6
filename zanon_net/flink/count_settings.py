# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What a counting job is made of; plain values, as they travel to the cluster."""

import json
import sys
from dataclasses import asdict, dataclass
from typing import Self

NS_PER_MS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class CountSettings:
    """votes: the folder of the probes' messages; answers: that of the answers, a folder a probe.

    shards: a power of two up to 256. expect_probes: nothing is decided before so many were there.
    ends: reads what is there and ends, instead of watching the folder.

    restarts: whether a job that fails begins again from its last checkpoint, as `restarts` says.
    What a shard refuses ends the job all the same.

    python: the Python of the task managers, with PyFlink and zanon_net.
    """

    votes: str
    answers: str
    z: int
    window_ns: int
    rotate_ns: int
    count_rotate_ns: int | None = None
    shards: int = 16
    expect_probes: int = 1
    probe_timeout_ns: int = 30_000_000_000
    parallelism: int = 1
    checkpoint_ms: int = 10_000
    checkpoints: str | None = None
    savepoint: str | None = None
    ends: bool = False
    restarts: bool = True
    python: str = sys.executable

    def to_json(self) -> str:
        """One line, for `from_json`."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote."""
        return cls(**json.loads(text))
