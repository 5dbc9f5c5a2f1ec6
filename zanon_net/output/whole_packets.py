# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Whole packets in the content of a capture written by zanon_net, which may end anywhere."""

from collections.abc import Iterable
from struct import Struct

PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
# Bytes of a record up to its length, and bytes that the length does not count.
_PCAP_LENGTH, _PCAP_HEADER = Struct("=8xI"), 16
_PCAPNG_LENGTH, _PCAPNG_BLOCK_MIN = Struct("=4xI"), 12


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
