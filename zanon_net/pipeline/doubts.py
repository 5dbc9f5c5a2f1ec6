# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Events of a run that lower its releases though nothing failed, as counts and sentences."""

from collections.abc import Mapping
from typing import Self

from zanon_net._record import dataclass
from zanon_net.pipeline.facts import times_in_words


@dataclass(frozen=True, slots=True)
class Doubts:
    """Doubtful events of a run.

    questions: hashed queries to the counter of all probes. unanswered: queries that it did not
    answer in time. names: names that were suppressed because of missing answers. clock_steps: how
    often a step of the clock made the run forget all users.
    """

    questions: int
    unanswered: int
    names: int
    clock_steps: int

    @classmethod
    def of(cls, counters: Mapping[str, int], table: Mapping[str, int]) -> Self:
        """Returns the events of an engine with these counters. table: the counters of its
        z-table."""
        return cls(
            questions=counters["questions"],
            unanswered=counters["questions_unanswered"],
            names=counters["suppressed_unanswered"],
            clock_steps=max(counters["clock_rebased"], table["clock_jumps"]),
        )

    @property
    def lost_decisions(self) -> bool:
        """True if names or addresses were never decided."""
        return self.unanswered != 0 or self.names != 0

    def unanswered_text(self) -> str | None:
        """Returns a sentence about missing answers; None if every answer came."""
        if not self.lost_decisions:
            return None
        return (
            f"the counter did not answer {self.unanswered:,} of {self.questions:,} questions in"
            f" time (--count-hold): {self.names:,} names were suppressed for want of an answer"
        )

    def clock_text(self) -> str | None:
        """Returns a sentence about steps of the clock; None if there was no step."""
        if not self.clock_steps:
            return None
        return (
            f"the time of the packets was set back {times_in_words(self.clock_steps)}: all users"
            " were forgotten, and fewer names were released until they were counted again"
        )

    def texts(self) -> list[str]:
        """Returns all sentences."""
        return [text for text in (self.unanswered_text(), self.clock_text()) if text is not None]
