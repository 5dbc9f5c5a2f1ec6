# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Interface of a probe to its counter: sends votes, receives answers, and repeats messages."""

from abc import ABC, abstractmethod

from zanon_net.count.frames import Hello, Key, Welcome, answers_header, votes_header
from zanon_net.errors import ZanonError

OVERHEAD_BYTES = 256  # memory of a message in addition to its own bytes


class CountClient(ABC):
    """Client that keeps each message until it is answered, over any loss of the connection.

    One thread at a time may call it. Only `welcome` and `receive` wait for the counter.

    `hello` is the introduction of this probe. `welcome` is the welcome to a previous session.
    """

    def __init__(self, hello: Hello, welcome: Welcome | None = None) -> None:
        self.hello, self._welcome = hello, welcome
        self._unanswered: dict[Key, bytes] = {}
        self._unanswered_bytes = 0

    @property
    def unanswered_bytes(self) -> int:
        """Memory of the messages that wait for their answers."""
        return self._unanswered_bytes

    @property
    def interval_ns(self) -> int:
        """Nanoseconds between two answers, by the last welcome; 0 if there was no welcome yet."""
        return 0 if self._welcome is None else self._welcome.interval_ns

    @property
    @abstractmethod
    def is_connected(self) -> bool:
        """True if a counter is reachable now, as far as the client knows."""

    @abstractmethod
    def welcome(self, timeout: float) -> Welcome | None:
        """Returns the welcome of the counter; None if no counter answers within `timeout` seconds.

        Raises ZanonError if the counter refuses this probe.
        """

    @abstractmethod
    def send(self, message: bytes) -> None:
        """Sends a message of votes. Raises ZanonError if the counter refuses this probe."""

    @abstractmethod
    def receive(self, timeout: float) -> list[bytes]:
        """Returns the messages of answers that came, each once. Waits for the first message.

        Raises ZanonError if the counter refuses this probe.
        """

    @abstractmethod
    def as_another(self, probe: int) -> "CountClient":
        """Returns a client of the same counter under a new session. It reads no certificate again,
        because this process may no longer be allowed to."""

    @abstractmethod
    def close(self) -> None:
        """Ends the client without waiting for answers. A second call does nothing."""

    @staticmethod
    def _refused(text: str) -> ZanonError:
        """Returns the error of a final refusal."""
        return ZanonError(f"the counter refuses this probe: {text}")

    def _problem_of(self, welcome: Welcome) -> str:
        """Reason why a restarted counter cannot be used, or "". With another number of shards, the
        clients that this probe reported would be missing in some shards."""
        before = self._welcome
        if before is None or before.shards == welcome.shards:
            return ""
        return (
            f"the counter has {welcome.shards} shards by now and had {before.shards}:"
            " start this run again"
        )

    def abandon(self) -> None:
        """Ends the client and forgets the unanswered messages."""
        self.close()
        self._unanswered.clear()
        self._unanswered_bytes = 0

    def _keep(self, message: bytes) -> Key:
        """Notes that a message waits for its answer."""
        key = votes_header(message).key
        self._unanswered[key] = message
        self._unanswered_bytes += len(message) + OVERHEAD_BYTES
        return key

    def _is_expected(self, answers: bytes) -> bool:
        """Returns true if a message waited for these answers, and stops its wait."""
        header = answers_header(answers)
        is_ours = header.probe == self.hello.probe
        message = self._unanswered.pop(header.key, None) if is_ours else None
        if message is None:
            return False
        self._unanswered_bytes -= len(message) + OVERHEAD_BYTES
        return True
