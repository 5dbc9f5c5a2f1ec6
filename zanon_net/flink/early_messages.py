# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Messages of votes that wait for their turn."""

from collections.abc import Iterator

MESSAGE_OVERHEAD = 256
"""What a message takes beside its own bytes, about: in the log of a shard, and in memory."""


class EarlyMessages:
    """Messages by probe and number, and how much they are.

    bytes: of all, each with MESSAGE_OVERHEAD.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._messages: dict[int, dict[int, bytes]] = {}
        self._bytes_of: dict[int, int] = {}

    def __contains__(self, probe: int) -> bool:
        return probe in self._messages

    def __iter__(self) -> Iterator[int]:
        """The probes that have some."""
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)

    def messages(self) -> Iterator[bytes]:
        """All of them."""
        for own in self._messages.values():
            yield from own.values()

    def get(self, probe: int, number: int) -> bytes | None:
        """The message of a number; None: it is not here."""
        own = self._messages.get(probe)
        return None if own is None else own.get(number)

    def first_of(self, probe: int) -> int | None:
        """The least number of a message of the probe; None: there is none."""
        return min(self._messages.get(probe, ()), default=None)

    def largest(self) -> int:
        """The probe whose messages have most bytes; there has to be one."""
        return max(self._bytes_of, key=lambda probe: (self._bytes_of[probe], probe))

    def add(self, probe: int, number: int, message: bytes) -> None:
        """Adds a message; one that came before under the same number is replaced."""
        self.remove(probe, number)
        self._messages.setdefault(probe, {})[number] = message
        self._count(probe, len(message) + MESSAGE_OVERHEAD)

    def remove(self, probe: int, number: int) -> None:
        """Removes a message, where it is here."""
        own = self._messages.get(probe)
        if own is not None and number in own:
            self._count(probe, -len(own.pop(number)) - MESSAGE_OVERHEAD)
            if not own:
                self.drop(probe)

    def drop(self, probe: int) -> None:
        """Removes all messages of a probe."""
        self.bytes -= self._bytes_of.pop(probe, 0)
        self._messages.pop(probe, None)

    def _count(self, probe: int, change: int) -> None:
        self._bytes_of[probe] = self._bytes_of.get(probe, 0) + change
        self.bytes += change
