# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Whole records of a file that may end anywhere: where records begin, and packets of a capture."""

from collections import deque
from collections.abc import Iterable
from struct import Struct

NEAR_BYTES = 8 << 20  # before the end: more than any buffer holds
PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
# Bytes of a record up to its length, and bytes that the length does not count.
_PCAP_LENGTH, _PCAP_HEADER = Struct("=8xI"), 16
_PCAPNG_LENGTH, _PCAPNG_BLOCK_MIN = Struct("=4xI"), 12


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


def whole_packets(pieces: Iterable[bytes], limit: int, *, is_blocks: bool) -> tuple[int, int]:
    """Returns (packets, bytes) of the whole packets at the begin of a content.

    pieces: the content from the begin of a packet on. limit: number of bytes to look at. is_blocks:
    true for pcapng.
    """
    length_of = _PCAPNG_LENGTH if is_blocks else _PCAP_LENGTH
    extra, least = (0, _PCAPNG_BLOCK_MIN) if is_blocks else (_PCAP_HEADER, 0)
    packets = begins = seen = 0  # begins: offset of the packet whose end is searched
    ends: int | None = None
    held = b""  # bytes from `begins` on, if its length was incomplete
    for piece in pieces:
        piece = piece[: max(0, limit - seen)]
        start, seen, piece = seen - len(held), seen + len(piece), held + piece
        held = b""
        while True:
            if ends is None:
                at = begins - start
                if at + length_of.size > len(piece):
                    held = piece[at:]
                    break
                (length,) = length_of.unpack_from(piece, at)
                ends = begins + extra + max(length, least)
            if ends > seen:
                break
            packets, begins, ends = packets + 1, ends, None
    return packets, begins
