# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Buffer of messages of votes that wait for their turn."""

from collections.abc import Iterator

MESSAGE_OVERHEAD = 256
"""Approximate bytes of a message in a log and in memory, in addition to its own bytes."""


class EarlyMessages:
    """Messages by session and sequence, and their size.

    bytes: size of all messages, each with MESSAGE_OVERHEAD.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._messages: dict[int, dict[int, bytes]] = {}
        self._bytes_of: dict[int, int] = {}

    def __contains__(self, probe: int) -> bool:
        return probe in self._messages

    def __iter__(self) -> Iterator[int]:
        """Yields the sessions that have early messages."""
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def messages(self) -> Iterator[bytes]:
        """Yields all messages."""
        for own in self._messages.values():
            yield from own.values()

    def get(self, probe: int, number: int) -> bytes | None:
        """Returns the message of a sequence; None if it has not come."""
        own = self._messages.get(probe)
        return None if own is None else own.get(number)

    def first_of(self, probe: int) -> int | None:
        """Returns the smallest sequence of a session's messages; None if it has no messages."""
        return min(self._messages.get(probe, ()), default=None)

    def largest(self) -> int:
        """Returns the session whose messages have most bytes. The buffer must not be empty."""
        return max(self._bytes_of, key=lambda probe: (self._bytes_of[probe], probe))

    def add(self, probe: int, number: int, message: bytes) -> None:
        """Adds a message. It replaces an earlier message of its sequence."""
        self.remove(probe, number)
        self._messages.setdefault(probe, {})[number] = message
        self._count(probe, len(message) + MESSAGE_OVERHEAD)

    def remove(self, probe: int, number: int) -> None:
        """Removes a message, if it is in the buffer."""
        own = self._messages.get(probe)
        if own is not None and number in own:
            self._count(probe, -len(own.pop(number)) - MESSAGE_OVERHEAD)
            if not own:
                self.drop(probe)

    def drop(self, probe: int) -> None:
        """Removes all messages of a session."""
        self.bytes -= self._bytes_of.pop(probe, 0)
        self._messages.pop(probe, None)

    def _count(self, probe: int, change: int) -> None:
        self._bytes_of[probe] = self._bytes_of.get(probe, 0) + change
        self.bytes += change
