# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The first bytes of a stream as a dict."""

STREAM_MAX, RANGES_MAX = 20480, 16


class StreamOracle:
    """First copy wins, a differing copy taints, at most RANGES_MAX separate ranges."""

    def __init__(self) -> None:
        self.byte: dict[int, int] = {}
        self.tainted = False

    def ranges(self, places: set[int]) -> int:
        """Maximal runs of neighbouring places."""
        return sum(place - 1 not in places for place in places)

    def add(self, offset: int, data: bytes) -> str:
        """Places bytes at an offset from the base, modulo 2**32; returns the stream's answer."""
        if self.tainted:
            return "conflict"
        if offset >= STREAM_MAX:
            return "outside"
        piece = {offset + i: b for i, b in enumerate(data) if offset + i < STREAM_MAX}
        if any(self.byte.get(place, b) != b for place, b in piece.items()):
            self.tainted = True
            return "conflict"
        if piece.keys() <= self.byte.keys():
            return "nothing"
        if self.ranges(self.byte.keys() | piece.keys()) > RANGES_MAX:
            return "outside"
        before = len(self.head())
        self.byte |= piece
        return "grew" if len(self.head()) > before else "stored"

    def head(self, start: int = 0) -> bytes:
        """The contiguous bytes from the base, or from another place, on."""
        end = next(place for place in range(start, STREAM_MAX + 1) if place not in self.byte)
        return bytes(self.byte[place] for place in range(start, end))
