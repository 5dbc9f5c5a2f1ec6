# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of a counting job, as plain values that travel to the cluster."""

import json
import sys
from dataclasses import asdict, dataclass
from typing import Self

NS_PER_MS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class CountSettings:
    """Settings of a counting job.

    `votes` is the folder of the probes' messages, and `answers` the folder of the answers, with a
    folder per probe. `shards` is a power of two up to 256. `expect_probes` is the number of probes
    that have to join before anything is decided. `ends` is true to read the existing files and end,
    and false to watch the folder. `restarts` is true if a failed job restarts from its last
    checkpoint, as the module of this name describes. A refusal of a shard ends the job in any case.
    `python` is the Python of the task managers, with PyFlink and zanon_net.
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
        """Returns the settings as one line for `from_json`."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads the line that `to_json` wrote."""
        return cls(**json.loads(text))
