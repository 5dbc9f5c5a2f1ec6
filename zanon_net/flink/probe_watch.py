# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Clocks of the probes of one shard: which are silent, and which stay behind.

Nothing here knows Flink. csrc/count/probe_watch.h decides.
"""

import time
from collections.abc import Callable, Mapping

from zanon_net._core import VoteWatch
from zanon_net.flink.logged_shard import LoggedShard

SECOND_LOOK_NS = 1  # a probe is late if it was behind at an earlier look, too


class ProbeWatch:
    """Watch over the sessions of a shard, and over those whose messages wait for their turn.

    lags: nanoseconds by which the probes that send were behind at the last look.
    """

    def __init__(
        self, shard: LoggedShard, timeout_ns: int, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.lags: Mapping[int, int] = {}
        self._shard, self._clock = shard, clock
        self._watch = VoteWatch(timeout_ns, clock())

    def __len__(self) -> int:
        return len(self._watch)

    @property
    def speakers(self) -> set[int]:
        """Sessions that send although the newest session joined long ago. A session may replace a
        session that the shard never heard of, if its job started without state; no speaker does."""
        return self._watch.speakers

    def hear(self, probe: int) -> None:
        """Notes messages of a session, unless they wait for a missing message."""
        is_new = probe not in self._watch
        if is_new or not self._shard.is_stuck(probe):
            self._watch.hear(probe, self._clock(), joins=is_new)

    def silent(self) -> list[int]:
        """Returns the awaited sessions that were silent for the timeout, once in each timeout."""
        self._look()
        return self._watch.take_silent(self._clock())

    def late(self) -> Mapping[int, int]:
        """Returns the lags of the sending sessions that were behind at this look and the last.
        Forgets the sessions that the shard no longer knows."""
        now = self._clock()
        self._look()
        self._watch.forget_unknown()
        self._watch.note_late(now)
        self.lags = self._watch.late(now, 0)
        return self._watch.late(now, SECOND_LOOK_NS)

    def all_present(self, expected: int) -> bool:
        """Returns true if as many sessions are probes of their own as probes are expected."""
        return self._watch.all_present([self._shard.shard], expected)

    def _look(self) -> None:
        self._watch.look([self._shard.shard], self._clock(), self._shard.early_probes)
