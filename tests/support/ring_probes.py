# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Engines that are shards of one run: their counter gets votes over rings."""

from dataclasses import dataclass

from support.probes import Probes
from zanon_net._core import LocalCounter, VoteRing, VoteRings

SECRET = bytes(range(16))


@dataclass
class RingProbes(Probes):
    """Probes, all in this process, whose messages and answers pass through rings."""

    def __post_init__(self) -> None:
        """Opens all."""
        self.settings = self.settings | {"count_secret": SECRET}
        super().__post_init__()
        rings = VoteRings(self.count)
        self.ends = [VoteRing(rings, n) for n in range(self.count)]
        self.local = LocalCounter(self.counter[0], rings)

    def deliver(self, n: int) -> None:
        """Puts one message of a probe into its ring, and brings all answers."""
        if self.waiting[n]:
            assert self.ends[n].put(self.waiting[n].popleft())
        more = True
        while more:
            more, answered = self.local.step(self.count)
            for probe, end in enumerate(self.ends):
                answers = []
                while (answer := end.take()) is not None:
                    answers.append(answer)
                assert bool(answers) == bool(answered >> probe & 1)
                self.answer(answers)
