# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Round-trip times by the letter of Karn and Partridge, over every segment that was ever sent."""

from dataclasses import dataclass, field


@dataclass
class Piece:
    """Bytes first sent together."""

    start: int
    end: int
    t_ns: int
    again: bool = False
    acked: bool = False


@dataclass
class Direction:
    """The segments of one side, and the samples that they gave."""

    pieces: list[Piece] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)

    def send(self, start: int, end: int, t_ns: int) -> None:
        """New bytes become pieces; the first piece sent before is sent now."""
        old = [p for p in self.pieces if p.start < end and start < p.end]
        old.sort(key=lambda p: p.start)
        for n, piece in enumerate(old):
            piece.again = True
            piece.t_ns = t_ns if n == 0 else piece.t_ns
        edges = [start, *(edge for p in old for edge in (p.start, p.end)), end]
        for left, right in zip(edges[::2], edges[1::2], strict=True):
            if left < right:
                self.pieces.append(Piece(left, right, t_ns))

    def acknowledge(self, ack: int, t_ns: int) -> None:
        """A sample when a piece ends there that was sent once, after all before it."""
        covered = [p for p in self.pieces if p.start < ack]
        newest = max((p.t_ns for p in covered), default=0)
        for piece in covered:
            if not piece.acked and piece.end == ack and not piece.again and piece.t_ns == newest:
                self.samples.append(t_ns - piece.t_ns)
            piece.acked = True
