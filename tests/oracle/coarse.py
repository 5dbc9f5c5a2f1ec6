# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Coarse positions by brute force: numbers that do not wrap, and division.

`Streams` takes the segments of a flow in their order and says with which numbers each leaves, where
the flow's name is withheld. Numbers of a side are its positions in 2**32 and more: the ones nearest
to the last known.
"""

import copy
import struct
from dataclasses import dataclass, field

from support.packets import ACK, FIN, SYN

from oracle.layers import behind_extensions, ip_of

BLOCK = 16 << 10
WINDOW = 65535
END, NOP, SACK = 0, 1, 5
IP_MOST = 65535
TCP = 6


@dataclass(slots=True)
class Side:
    """What is known of one side's stream. Positions count from its first byte, or what is known
    first of it."""

    first: int | None = None  # number of position 0
    near: int = 0
    fin: int | None = None  # position of the FIN

    def position(self, number: int) -> int:
        """Where a number is in the stream, negative before its start."""
        assert self.first is not None
        distance = (number - self.first - self.near + 2**31) % 2**32 - 2**31
        self.near += distance
        return self.near

    def start(self, number: int) -> None:
        """Takes note of a number that is known to be in the stream."""
        if self.first is None:
            self.first = number

    def shown(self, number: int) -> int:
        """The number that stands for another."""
        assert self.first is not None
        at = self.position(number)
        if self.fin is not None and at > self.fin:
            return self.first + -(-(at - 1) // BLOCK) * BLOCK + 1
        return self.first + -(-at // BLOCK) * BLOCK


@dataclass(slots=True)
class Streams:
    """Both sides of a flow."""

    sides: tuple[Side, Side] = field(default_factory=lambda: (Side(), Side()))

    def take(self, sender: int, flags: int, seq: int, ack: int, length: int) -> "Streams":
        """Takes note of a segment. Returns what is known then."""
        own, other = self.sides[sender], self.sides[1 - sender]
        begins = seq + (flags & SYN != 0)
        own.start(begins)
        if flags & ACK:
            other.start(ack)
        if flags & FIN and own.fin is None:
            own.fin = own.position(begins) + length
        return copy.deepcopy(self)

    def numbers(
        self, sender: int, flags: int, seq: int, ack: int, length: int
    ) -> tuple[int, int, int]:
        """(number, acknowledgement, bytes) that a segment leaves with; the first two modulo
        2**32."""
        own, other = self.sides[sender], self.sides[1 - sender]
        syn = flags & SYN != 0
        first, last = own.shown(seq + syn), own.shown(seq + syn + length)
        return (first - syn) % 2**32, other.shown(ack) % 2**32 if flags & ACK else ack, last - first

    def options(self, sender: int, data: bytes) -> bytes:
        """The options that a segment leaves with: SACK without blocks of which nothing is left."""
        side, out = self.sides[1 - sender], b""
        rest = data
        while rest and rest[0] != END:
            size = 1 if rest[0] == NOP else rest[1] if len(rest) > 1 else 0
            if size < 1 or size > len(rest) or (rest[0] != NOP and size < 2):
                break
            option, rest = rest[:size], rest[size:]
            if option[0] == SACK and size > 2 and (size - 2) % 8 == 0:
                option = self._blocks(side, option)
            out += option
        return out + data[len(out) :]

    @staticmethod
    def _blocks(side: Side, option: bytes) -> bytes:
        edges = struct.unpack(f">{(len(option) - 2) // 4}I", option[2:])
        blocks = b""
        for left, right in zip(edges[::2], edges[1::2], strict=True):
            if side.first is None:
                continue
            shown = side.shown(left), side.shown(right)
            if shown[0] != shown[1]:
                blocks += struct.pack(">II", shown[0] % 2**32, shown[1] % 2**32)
        kept = bytes([SACK, 2 + len(blocks)]) + blocks if blocks else b""
        return kept.ljust(len(option), bytes([NOP]))

    def coarse(self, packet: bytes, sender: int) -> bytes | None:
        """The IP packet that leaves in the place of one of TCP, before addresses, ports and the
        rest of its headers are replaced; None: it would be too long."""
        four = packet[0] >> 4 == 4
        whole = ip_of(packet).rest
        head = packet[: len(packet_headers(packet))]
        offset = 4 * (whole[12] >> 4)
        seq, ack = struct.unpack_from(">II", whole, 4)
        numbers = self.numbers(sender, whole[13], seq, ack, len(whole) - offset)
        segment = (
            whole[:4]
            + struct.pack(">II", *numbers[:2])
            + whole[12:14]
            + struct.pack(">H", WINDOW)
            + whole[16:20]
            + self.options(sender, whole[20:offset])
            + bytes(numbers[2])
        )
        if len(segment) + (20 if four else 0) > IP_MOST:
            return None
        size = (len(head) if four else len(head) - 40) + len(segment)
        at = 2 if four else 4
        return head[:at] + size.to_bytes(2) + head[at + 2 :] + segment


def packet_headers(packet: bytes) -> bytes:
    """The IP header of a packet, with its options or extension headers."""
    if packet[0] >> 4 == 4:
        return packet[: 4 * (packet[0] & 15)]
    size = 40 + int.from_bytes(packet[4:6])
    return packet[: size - len(behind_extensions(packet[6], packet[40:size])[1])]
