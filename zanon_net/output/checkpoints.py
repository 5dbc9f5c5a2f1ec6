# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Places in a file at which a record begins, for a search of its last whole record."""

from collections import deque

NEAR_BYTES = 8 << 20  # before the end: more than any buffer holds


class Checkpoints:
    """The place after the header, and the places near the end, so that a large file is not read
    whole.

    length: bytes of the header.
    """

    def __init__(self, length: int) -> None:
        self._first = (length, 0)
        self._near = deque([self._first])

    def add(self, size: int, records: int) -> None:
        """Notes that `size` more bytes were written. records: all records in the file."""
        end = self._near[-1][0] + size
        self._near.append((end, records))
        while len(self._near) > 1 and self._near[1][0] <= end - NEAR_BYTES:
            self._near.popleft()

    def before(self, limit: int) -> tuple[int, int]:
        """Returns (bytes, records) of the last place at or before `limit`, or of the first
        place."""
        return next((place for place in reversed(self._near) if place[0] <= limit), self._first)
