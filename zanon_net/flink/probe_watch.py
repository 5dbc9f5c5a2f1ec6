# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Which probes of a shard are silent, and which stay behind: all that clocks decide.

Nothing here knows Flink.
"""

import time
from collections.abc import Callable, Mapping

from zanon_net.flink.logged_shard import LoggedShard


class ProbeWatch:
    """When the probes of a shard were last heard of: those that it waits for, and those that are
    late, of which it knows a limited number.

    lags: by how many nanoseconds probes were behind in the last look that sent, though.
    speakers: the probes that send though the newest came long ago. A number may have taken the
    place of one that the shard never heard of, as its job began without state; none of these did.
    """

    def __init__(
        self, shard: LoggedShard, timeout_ns: int, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.lags: Mapping[int, int] = {}
        self._shard, self._timeout_ns, self._clock = shard, timeout_ns, clock
        self._heard: dict[int, int] = {}
        self._joined = clock()  # when the newest of them came
        self.speakers = set[int]()

    def __len__(self) -> int:
        return len(self._heard)

    def hear(self, probe: int) -> None:
        """Notes that messages of a probe came; those that wait for a missing one are no sign."""
        now, is_new = self._clock(), probe not in self._heard
        if not is_new and self._shard.is_stuck(probe):
            return
        self._heard[probe] = now
        if is_new:
            self._joined = now
            self.speakers.clear()
        elif now - self._joined > self._timeout_ns:
            self.speakers.add(probe)

    def silent(self) -> list[int]:
        """The probes that are waited for and have been silent too long, each once in that time."""
        now = self._clock()
        gone = [
            probe
            for probe in sorted(self._shard.probes)
            if now - self._heard.setdefault(probe, now) >= self._timeout_ns
        ]
        for probe in gone:
            del self._heard[probe]
            self.speakers.discard(probe)
        return gone

    def late(self) -> Mapping[int, int]:
        """By how much probes are behind that send, in this look and the one before. Forgets all
        that the shard does not know any more."""
        behind, heard_after = self._shard.lags(), self._clock() - self._timeout_ns
        known = self._shard.probes | behind.keys()
        self._heard = {probe: at for probe, at in self._heard.items() if probe in known}
        self.speakers.intersection_update(self._heard)
        before = self.lags
        self.lags = {
            probe: by_ns
            for probe, by_ns in behind.items()
            if self._heard.get(probe, heard_after) > heard_after
        }
        return {probe: self.lags[probe] for probe in self.lags.keys() & before.keys()}
