# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Messages of a TCP flow (Tstat's pkts_push), against a set of sequence numbers."""

import random

import pytest
from support.engine import TCP_COMPLETE, run
from support.examples import each
from support.packets import ACK, CLIENT, FIN, PSH, SERVER, SYN, Tcp

Segment = tuple[int, int, int]  # flags, sequence number, bytes


class Sides:
    """A connection whose segments are noted by their sender."""

    def __init__(self) -> None:
        self.talk = Tcp()
        self.sent: dict[int, list[Segment]] = {CLIENT: [], SERVER: []}

    def segment(self, side: int, flags: int, length: int = 0, back: int = 0) -> None:
        """One segment, `back` bytes before what comes next (below 0: ahead of it)."""
        seq = self.talk.next[side] - back
        self.sent[side].append((flags, seq, length))
        if back:
            self.talk.segment(side, flags, bytes(length), seq=seq)
        else:
            self.talk.segment(side, flags, bytes(length))

    def handshake(self) -> None:
        """SYN, SYN-ACK, ACK."""
        self.segment(CLIENT, SYN)
        self.segment(SERVER, SYN | ACK)
        self.segment(CLIENT, ACK)

    def counted(self) -> tuple[int, int]:
        """What the log says of client and server, once they closed."""
        self.segment(CLIENT, FIN | ACK)
        self.segment(SERVER, FIN | ACK)
        self.segment(CLIENT, ACK)
        (line,) = run(self.talk.frames, z=1).log(TCP_COMPLETE)
        return int(line["c_pkts_push"]), int(line["s_pkts_push"])


def messages(segments: list[Segment]) -> int:
    """PSH or FIN ends a message where bytes that were not sent before came since the last one."""
    first = segments[0][1]
    seen: set[int] = set()
    count, message, sent = 0, first, first
    for flags, seq, length in segments:
        start = seq + (flags & SYN > 0)
        places = range(seq, start + length + (flags & FIN > 0))
        again = any(place < first or place in seen for place in places)
        seen.update(places)
        if flags & SYN:
            message = sent = start
        if not again:
            sent = start + length
        if flags & ACK and flags & (PSH | FIN) and sent > message:
            count, message = count + 1, sent
    return count


@each("seed", range(60))
def test_messages_are_counted_in_any_order_of_segments(seed: int) -> None:
    dice = random.Random(seed)
    sides = Sides()
    sides.handshake()
    for _ in range(120):
        flags = ACK | dice.choice((0, 0, PSH))
        length = dice.choice((0, 0, 1, 3, 20))
        back = dice.choice((0, 0, 0, 0, 0, 1, 5, -4))
        sides.segment(dice.choice((CLIENT, SERVER)), flags, length, back)
    counted = sides.counted()
    assert counted == (messages(sides.sent[CLIENT]), messages(sides.sent[SERVER]))


@pytest.mark.parametrize("pushes", [255, 256, 257, 600])
def test_many_messages(pushes: int) -> None:
    sides = Sides()
    sides.handshake()
    for _ in range(pushes):
        sides.segment(SERVER, PSH | ACK, 4)
    sides.segment(CLIENT, ACK)
    assert sides.counted() == (0, pushes)
