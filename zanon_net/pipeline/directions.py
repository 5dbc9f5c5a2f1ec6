# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Finds captures that overlap in time and contain one direction of a link each.

Sources are read one after the other, so the packets of the second capture come late. Handshakes
that are split between the two captures prove nothing.
"""

from collections.abc import Mapping
from dataclasses import field

from zanon_net._core import PacketEngine
from zanon_net._record import dataclass
from zanon_net.config.settings import Config
from zanon_net.errors import ZanonError
from zanon_net.pipeline.sources import OpenSource
from zanon_net.system.log import log

SAMPLE_FRAMES = 16384
"""Frames from the start of a capture that show whether it holds one direction."""
SAMPLE_FLOWS = 16384


Counters = Mapping[str, int]
COUNTERS = ("clock_late", "clock_rejected", "clock_rebased")
"""Counters of an engine that show if a capture comes late."""


@dataclass(slots=True)
class Directions:
    """The sources that were read so far, and the pairs of them that belong together.

    read: each source that was read, and the latest packet time up to its end, in ns. pairs: the
    names of the two captures of each pair.
    """

    config: Config
    read: list[tuple[OpenSource, int]] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)

    def note(self) -> str | None:
        """Returns a sentence that says how to merge the pairs; None without pairs."""
        if not self.pairs:
            return None
        first, second = self.pairs[0]
        more = len(self.pairs) - 1
        others = f" ({more:,} more such {'pair' if more == 1 else 'pairs'})" if more else ""
        return (
            f"{first} and {second} overlap in time and look like two directions of one link"
            f"{others}; merge them first: mergecap -w both.pcap {first} {second}"
        )

    def see(self, source: OpenSource, last_ns: int | None, before: Counters, now: Counters) -> None:
        """Takes a source that was read.

        last_ns: the latest packet time so far, in ns. before, now: the engine's COUNTERS before and
        after the source was read.
        """
        if last_ns is None:
            return
        if source.is_file and _came_late(source, before, now):
            self._find_pair(source)
        self.read.append((source, last_ns))

    def _find_pair(self, source: OpenSource) -> None:
        first_ns = source.first_ns
        if first_ns is None or not self._is_one_sided(source):
            return
        for other, last_ns in reversed(self.read):
            if last_ns <= first_ns:
                return
            if other.is_file and self._is_one_sided(other):
                self.pairs.append((other.name, source.name))
                if len(self.pairs) == 1:
                    log.warning("%s", self.note())
                return

    def _is_one_sided(self, source: OpenSource) -> bool:
        """Returns true if at least half of the TCP flows at the start of a capture have packets of
        one side only."""
        try:
            counters = _sample(source, self.config)
        except ZanonError:  # such as a file that was removed meanwhile
            return False
        return 0 < counters["flows_tcp"] <= 2 * counters["flows_one_sided"]


def _came_late(source: OpenSource, before: Counters, now: Counters) -> bool:
    """Returns true if most frames of a source are older than frames of earlier sources."""
    late = now["clock_late"] - before["clock_late"]
    late += now["clock_rejected"] - before["clock_rejected"]
    return 2 * late > source.frames or now["clock_rebased"] > before["clock_rebased"]


def _sample(source: OpenSource, config: Config) -> Counters:
    """Returns the counters of an engine that read the start of a source."""
    sample = source.again()
    arguments = Config().engine_arguments()
    arguments |= {"outputs": (), "popularity": False, "max_flows": SAMPLE_FLOWS}
    engine = PacketEngine(**arguments)
    try:
        left = SAMPLE_FRAMES
        while left > 0 and (read := engine.run(sample.capture, left)) > 0:
            left -= read
        while engine.finish():
            pass
        return engine.stats
    finally:
        sample.close()
        engine.close()
