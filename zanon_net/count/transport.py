# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What a counter reads votes from and publishes answers to: the interface of every transport."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from zanon_net.count.commits import Commit
from zanon_net.count.frames import Refusal

BATCH_BYTES = 1 << 23
"""About what `take` returns at most."""


class Received(NamedTuple):
    """A message; what to refuse it to, an object of the transport's; and who has sent it, if that
    is known better than by the message."""

    message: bytes
    origin: object = None
    sender: str = ""


class Transport(ABC):
    """Messages in an order that is kept for each probe and shard; answers under names that a second
    run repeats."""

    def start(self, series: str) -> None:  # noqa: B027
        """Begins to publish, after `load`; `take` comes later.

        series: stands for all commits of one state, whose offsets no other series has.
        """

    @abstractmethod
    def take(self, timeout: float) -> list[Received]:
        """The messages that are there; waits for the first one. Raises ZanonError."""

    @abstractmethod
    def publish(self, commit: Commit, answers: Sequence[bytes]) -> None:
        """Hands the answers of a commit to their probes. Raises ZanonError."""

    def refuse(self, received: Received, refusal: Refusal) -> None:  # noqa: B027
        """Says to the sender of a message that it is not counted, where that can be.

        Unless the refusal is final, the message comes again where that can be.
        """

    def take_lost(self) -> list[int]:
        """The probes that are known to be gone, since the last call."""
        return []

    @property
    def positions(self) -> Mapping[str, int]:
        """How far the log was read, for a log that can be read again from there."""
        return {}

    def seek(self, positions: Mapping[str, int]) -> None:  # noqa: B027
        """Reads on from there."""

    @property
    def counts(self) -> Mapping[str, int]:
        """What it had to forget, by name, for metrics."""
        return {}

    def sync(self, offset: int) -> None:  # noqa: B027
        """Waits for the disk to have what was published of the commits from an offset on: a
        snapshot is about to say so. Raises ZanonError."""

    def dump(self) -> bytes:
        """What else has to survive this process."""
        return b""

    def load(self, dumped: bytes) -> None:  # noqa: B027
        """Takes up what `dump` gave; before `start`."""

    def finish(self) -> None:  # noqa: B027
        """Waits a little for what was published to arrive; there will be no more."""

    @abstractmethod
    def close(self) -> None:
        """Ends it; again is fine."""
