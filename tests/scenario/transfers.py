# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""TCP connections that transfer data, over networks and past taps that lose segments.

The client begins with a hello that names `host`. What the tap sees depends on the dice; without
faults they decide on pauses and windows alone.
"""

import random
import struct
from dataclasses import dataclass, field

from support import wire
from support.packets import (
    ACK,
    CLIENT,
    FIN,
    MS,
    PSH,
    SERVER,
    SERVER_ADDRESS,
    START,
    SYN,
    Frame,
    hello,
    to_ip,
)

RARE = b"rare.example"
SYN_OPTIONS = b"\2\4\5\xb4\1\3\3\7\4\2\0\0"
FAULTS = ("late", "twice", "unseen", "again otherwise")
BLOCKS_MOST = 3  # of SACK
PORT = 443


@dataclass(frozen=True, slots=True)
class Plan:
    """What a connection is like. Pairs are of the client and the server."""

    sizes: tuple[int, int] = (2000, 100_000)
    starts: tuple[int, int] = (1000, 500_000)  # sequence numbers of the SYNs
    segment: int = 1460
    faults: float = 0.0  # share of segments to which something happens
    whole: bool = True  # with its handshake
    closes: bool = True
    client: str = "10.7.0.1"
    server: str = SERVER_ADDRESS
    t_ns: int = START
    host: bytes = RARE


@dataclass(slots=True)
class Half:
    """A side's stream: what the other side has of it, as ranges in order, and what is to come."""

    number: int  # of the first byte
    data: bytes
    got: list[tuple[int, int]] = field(default_factory=list)
    late: list[tuple[int, int, int]] = field(default_factory=list)  # when, from, to
    fin: bool = False

    def receive(self, start: int, end: int) -> None:
        """The other side gets a range."""
        merged: list[tuple[int, int]] = []
        for one, other in sorted([*self.got, (start, end)]):
            if merged and one <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(other, merged[-1][1])
            else:
                merged.append((one, other))
        self.got = merged

    @property
    def acked(self) -> int:
        """Bytes from the start without a hole."""
        return self.got[0][1] if self.got and self.got[0][0] == 0 else 0


def records(n: int) -> bytes:
    """n bytes of TLS records with application data, the last one cut where it does not fit."""
    record = b"\x17\x03\x03\x3f\xfb".ljust(16 << 10, b"\xa5")
    return (record * (n // len(record) + 1))[: max(0, n)]


class Transfer:
    """A connection as a tap saw it, in `frames`."""

    def __init__(self, plan: Plan, dice: random.Random) -> None:
        self.plan, self.dice = plan, dice
        self.frames: list[Frame] = []
        self.t_ns = plan.t_ns
        said = hello(plan.host)
        streams = said + records(plan.sizes[CLIENT] - len(said)), records(plan.sizes[SERVER])
        self.halves = [
            Half(start + 1, data) for start, data in zip(plan.starts, streams, strict=True)
        ]
        self.ports = (40_000, PORT)
        if plan.whole:
            self._send(CLIENT, SYN, options=SYN_OPTIONS, seq=plan.starts[CLIENT])
            self._send(SERVER, SYN | ACK, options=SYN_OPTIONS, seq=plan.starts[SERVER])
            self._send(CLIENT, ACK)
        self._data(CLIENT, 0, len(said))
        self._send(SERVER, ACK)
        self._run({CLIENT: len(said), SERVER: 0})
        if plan.closes:
            self._close()

    def _send(
        self,
        side: int,
        flags: int,
        payload: bytes = b"",
        *,
        seq: int | None = None,
        options: bytes = b"",
    ) -> None:
        own, other = self.halves[side], self.halves[1 - side]
        if seq is None:
            seq = own.number + len(own.data) + own.fin if own.fin else own.number + self._sent(own)
        ack = other.number + other.acked + (other.fin and other.acked == len(other.data))
        ports = self.ports if side == CLIENT else self.ports[::-1]
        numbers = seq % 2**32, ack % 2**32 if flags & ACK else 0
        offset = (5 + len(options) // 4) << 12
        window = self.dice.randrange(1, 65536)
        header = struct.pack(">HHIIHHHH", *ports, *numbers, offset | flags, window, 0, 0)
        ends = (self.plan.client, self.plan.server)
        packet, kind = to_ip(
            header + options + payload, wire.TCP, ends if side == CLIENT else ends[::-1]
        )
        data = wire.ethernet(packet, kind)
        self.frames.append(Frame(self.t_ns, data, len(data)))
        self.t_ns += self.dice.choice((MS, MS, 3 * MS)) // 10

    @staticmethod
    def _sent(half: Half) -> int:
        """Bytes up to the last one that the tap or the other side saw."""
        return half.got[-1][1] if half.got else 0

    def _data(self, side: int, start: int, end: int, *, seen: bool = True) -> None:
        half = self.halves[side]
        half.receive(start, end)
        if seen:
            self._send(side, PSH | ACK, half.data[start:end], seq=half.number + start)

    def _acknowledge(self, side: int) -> None:
        """The other side of `side` tells what it has."""
        half = self.halves[side]
        blocks = [one for one in half.got if one[0] > half.acked][:BLOCKS_MOST]
        edges = [(half.number + at) % 2**32 for one in reversed(blocks) for at in one]
        options = b"\1\1\5" + bytes([2 + 4 * len(edges)]) if edges else b""
        options += struct.pack(f">{len(edges)}I", *edges)
        self._send(1 - side, ACK, options=options)

    def _run(self, at: dict[int, int]) -> None:
        """Sends what is left of both streams, from `at` on."""
        turn, dice = 0, self.dice
        while any(at[side] < len(self.halves[side].data) or self.halves[side].late for side in at):
            turn += 1
            side = turn % 2 if dice.random() < 0.5 else SERVER
            half = self.halves[side]
            start, end = at[side], min(at[side] + self.plan.segment, len(half.data))
            if self.plan.faults:
                end = min(start + dice.choice((1, 100, end - start, end - start)), end)
            at[side] = end
            if start < end:
                self._one(side, start, end, turn)
            for one in [one for one in half.late if one[0] <= turn or start == end]:
                half.late.remove(one)
                self._data(side, *one[1:])
            if turn % 2 == 0:
                self._acknowledge(side)

    def _one(self, side: int, start: int, end: int, turn: int) -> None:
        dice, half = self.dice, self.halves[side]
        what = dice.choice(FAULTS) if dice.random() < self.plan.faults else ""
        if what == "late":
            half.late.append((turn + dice.randrange(2, 12), start, end))
            return
        self._data(side, start, end, seen=what != "unseen")
        if what == "twice":
            self._data(side, start, end)
        elif what == "again otherwise":
            first = max(0, start - dice.randrange(3000))
            self._data(side, first, min(first + dice.randrange(1, 3000), end))

    def _close(self) -> None:
        for side in (SERVER, CLIENT):
            half = self.halves[side]
            self._send(side, FIN | ACK, seq=half.number + len(half.data))
            half.fin = True
            self._send(1 - side, ACK)
