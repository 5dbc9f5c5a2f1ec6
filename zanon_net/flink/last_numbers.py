# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A set of numbers of probes that does not grow for ever."""

from collections.abc import Iterator

NUMBERS_MAX = 4096
"""As many as a shard knows probes."""


class LastNumbers:
    """The numbers that were added last; beyond NUMBERS_MAX the oldest is forgotten."""

    def __init__(self) -> None:
        self._numbers: dict[int, None] = {}

    def __contains__(self, number: int) -> bool:
        return number in self._numbers

    def __iter__(self) -> Iterator[int]:
        """In the order in which they were added."""
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, number: int) -> None:
        """Adds a number; one that is there keeps its place."""
        self._numbers[number] = None
        if len(self._numbers) > NUMBERS_MAX:
            del self._numbers[next(iter(self._numbers))]
