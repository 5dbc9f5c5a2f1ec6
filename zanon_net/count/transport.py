# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Interface of every transport, from which a counter reads votes and to which it publishes."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from zanon_net.count.commits import Commit
from zanon_net.count.frames import Refusal

BATCH_BYTES = 1 << 23
"""Approximate largest size of the messages that `take` returns."""


class Received(NamedTuple):
    """Received message. A refusal goes to `origin`, an object of the transport. `sender` is the
    sender, if the transport knows it better than the message."""

    message: bytes
    origin: object = None
    sender: str = ""


class Transport(ABC):
    """Transport of messages and answers. The messages of a session to a shard stay in order, and
    a repeated commit publishes its answers under equal names."""

    def start(self, series: str) -> None:  # noqa: B027
        """Allows publishing. It is called after `load` and before `take`.

        series: name of all commits of one state. Their offsets occur in no other series.
        """

    @abstractmethod
    def take(self, timeout: float) -> list[Received]:
        """Returns the available messages, and waits for the first message. Raises ZanonError."""

    @abstractmethod
    def publish(self, commit: Commit, answers: Sequence[bytes]) -> None:
        """Sends the answers of a commit to their probes. Raises ZanonError."""

    def refuse(self, received: Received, refusal: Refusal) -> None:  # noqa: B027
        """Informs the sender of a message that it is not counted, if the transport can.

        Unless the refusal is final, the message comes again if the transport can repeat it.
        """

    def take_lost(self) -> list[int]:
        """Returns the sessions that were found to be gone since the last call."""
        return []

    @property
    def positions(self) -> Mapping[str, int]:
        """Positions up to which a log was read, for a log that can be read again from there."""
        return {}

    def seek(self, positions: Mapping[str, int]) -> None:  # noqa: B027
        """Continues reading from these positions."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Counts of forgotten data by name, for metrics."""
        return {}

    def sync(self, offset: int) -> None:  # noqa: B027
        """Waits until the published answers of all commits from an offset on are on the disk. A
        snapshot that states so is written next. Raises ZanonError."""

    def dump(self) -> bytes:
        """Returns the transport's state that has to survive this process."""
        return b""

    def load(self, dumped: bytes) -> None:  # noqa: B027
        """Restores the state that `dump` returned. It is called before `start`."""

    def finish(self) -> None:  # noqa: B027
        """Waits a little for the last published answers to arrive."""

    @abstractmethod
    def close(self) -> None:
        """Ends the transport. A second call does nothing."""
