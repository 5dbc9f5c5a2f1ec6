# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A set of numbers of probes that does not grow for ever."""

from collections.abc import Iterator

NUMBERS_MAX = 4096
"""Number of sessions that a shard knows."""


class LastNumbers:
    """Numbers that were added last. Beyond NUMBERS_MAX the oldest number is forgotten."""

    def __init__(self) -> None:
        self._numbers: dict[int, None] = {}

    def __contains__(self, number: int) -> bool:
        return number in self._numbers

    def __iter__(self) -> Iterator[int]:
        """Yields the numbers in the order of their addition."""
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, number: int) -> None:
        """Adds a number. A number that was added before keeps its place."""
        self._numbers[number] = None
        if len(self._numbers) > NUMBERS_MAX:
            del self._numbers[next(iter(self._numbers))]
