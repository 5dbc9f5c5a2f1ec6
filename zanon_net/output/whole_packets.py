# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The whole packets in the content of a capture of ours, which may end anywhere."""

from collections.abc import Iterable
from struct import Struct

PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
# The bytes of a record up to its length, and what the length leaves out.
_PCAP_LENGTH, _PCAP_HEADER = Struct("=8xI"), 16
_PCAPNG_LENGTH, _PCAPNG_BLOCK_MIN = Struct("=4xI"), 12


def whole_packets(pieces: Iterable[bytes], limit: int, *, is_blocks: bool) -> tuple[int, int]:
    """(packets, bytes) of the whole packets that a content begins with.

    pieces: from where a packet begins. limit: of the bytes to look at. is_blocks: of pcapng.
    """
    length_of = _PCAPNG_LENGTH if is_blocks else _PCAP_LENGTH
    extra, least = (0, _PCAPNG_BLOCK_MIN) if is_blocks else (_PCAP_HEADER, 0)
    packets = begins = seen = 0  # begins: the packet of which the end is sought
    ends: int | None = None
    held = b""  # the bytes from `begins` on, where its length was not whole
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
