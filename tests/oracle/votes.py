# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The oracle of many probes: messages by docs/reference/vote-messages.md, and brute force over all
probes' observations."""

import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from oracle.siphash import blocks_of, siphash
from oracle.ztable import ZOracle

END = (1 << 63) - 1  # the watermark of a probe that ends
NAME, PEEK, CLIENT, ADDR, DNS_ADDR, ADDR_CHECK, ADDR_PEEK, DNS_ADDR_PEEK, LEASE, ONLY = range(1, 11)
LEASE_UNIT_NS = 1000
LEASE_Z_MAX = 64
USER_BITS = (1 << 32) - 1 | 0xFF << 56
HI_BITS = (1 << 44) - 1 | 0xFF << 56
RULES = 32 | 56 << 8  # --user-prefix 32,56, and all else as it is without options


@dataclass(frozen=True, slots=True)
class Vote:
    kind: int
    t_ns: int
    user: int
    lo: int
    hi: int

    def kept(self) -> "Vote":
        """What a message has of it."""
        return replace(self, user=self.user & USER_BITS, hi=self.hi & HI_BITS)


@dataclass(frozen=True, slots=True)
class Message:
    shard: int
    probe: int
    sequence: int
    settings: int
    watermark_ns: int
    votes: Sequence[Vote]
    rules: int = RULES


# ---- messages -----------------------------------------------------------------------------------


def checksum(data: bytes) -> bytes:
    return struct.pack("<Q", siphash(b"zanon-net/1/vote", blocks_of(data)))


def leb128(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def folded(user: int) -> bytes:
    """The five bytes of a user."""
    return struct.pack("<IB", user & 0xFFFFFFFF, user >> 56)


def encode(message: Message) -> tuple[bytes, list[int]]:
    """A message, and of each vote in it the place among those given."""
    base = min((vote.t_ns for vote in message.votes), default=0)
    last = max((vote.t_ns for vote in message.votes), default=0)
    width = max(1, ((last - base).bit_length() + 7) // 8)
    groups: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for i, vote in enumerate(message.votes):
        groups[vote.kind, vote.lo, vote.hi & HI_BITS].append(i)
    out = bytearray(b"ZNVM")
    out += struct.pack("<BBH3Q", 1, 0, message.shard, message.probe, message.sequence,
                       message.settings)  # fmt: skip
    later = [key for key in groups if key[0] > DNS_ADDR_PEEK]
    out += struct.pack("<qqIIB", message.watermark_ns, base, len(groups), len(message.votes), width)
    rules = message.rules.to_bytes(8, "little")
    out += rules[:3] + struct.pack("<I", len(later)) + rules[3:]
    order = []
    for kind, lo, hi in [*(key for key in groups if key not in later), *later]:
        places = groups[kind, lo, hi]
        out += struct.pack("<Q", lo)
        form = (kind - 1) % 8 | (len(places) > 1) << 3
        out += (hi & (1 << 44) - 1 | hi >> 56 << 44 | form << 52).to_bytes(7, "little")
        out += leb128(len(places)) if len(places) > 1 else b""
        for i in places:
            vote = message.votes[i]
            out += (vote.t_ns - base).to_bytes(width, "little") + folded(vote.user)
            order.append(i)
    return bytes(out + checksum(out)), order


def decode(data: bytes) -> Message:
    """The message that encode() writes; its votes in their order there."""
    assert data[-8:] == checksum(data[:-8])
    magic, version, flags, shard, probe, sequence, settings = struct.unpack_from("<4sBBH3Q", data)
    assert (magic, version, flags) == (b"ZNVM", 1, 0)
    watermark, base, groups, count, width = struct.unpack_from("<qqIIB", data, 32)
    rules = int.from_bytes(data[57:60] + data[64:69], "little")
    later, at, votes = int.from_bytes(data[60:64], "little"), 69, []
    for group in range(groups):
        first = 1 if group < groups - later else LEASE
        lo, upper = struct.unpack("<QQ", data[at : at + 15] + b"\0")
        at += 15
        hi = upper & (1 << 44) - 1 | (upper >> 44 & 0xFF) << 56
        n = shift = 0
        while upper >> 55:
            n |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                break
        for _ in range(n or 1):
            since = int.from_bytes(data[at : at + width], "little")
            low, high = struct.unpack_from("<IB", data, at + width)
            votes.append(Vote((upper >> 52 & 7) + first, base + since, high << 56 | low, lo, hi))
            at += width + 5
    assert len(votes) == count
    assert at == len(data) - 8
    return Message(shard, probe, sequence, settings, watermark, votes, rules)


def encode_answers(message: Message, answers: Iterable[bool]) -> bytes:
    """The answer message to one whose votes are in their order there."""
    bits = bytearray((len(message.votes) + 7) // 8)
    for i, answer in enumerate(answers):
        bits[i // 8] |= answer << i % 8
    out = b"ZNVA" + struct.pack("<BBH3QI", 1, 0, message.shard, message.probe, message.sequence,
                                message.settings, len(message.votes)) + bits  # fmt: skip
    return out + checksum(out)


# ---- decisions ----------------------------------------------------------------------------------


def attribute_of(vote: Vote) -> tuple[int, int]:
    """What a vote counts for."""
    apart = 0x444E53 << 40 if vote.kind in (DNS_ADDR, DNS_ADDR_PEEK) else 0
    return vote.lo ^ apart, vote.hi & HI_BITS


@dataclass
class ShardOracle:
    """Brute force over the votes in the order in which they are given."""

    z: int
    window_ns: int
    rotate_ns: int = 0
    clients: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.table = ZOracle(self.z, self.window_ns)
        self.leases: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        self.epochs = -1, -1  # that had votes about addresses: the last but one, the last

    def epoch(self, t_ns: int) -> int:
        return t_ns // self.rotate_ns if self.rotate_ns else 0

    def lease(self, vote: Vote) -> bool:
        """Whether a lease is taken, which is noted."""
        reach = LEASE_UNIT_NS * (vote.user & 0xFFFFFFFF | vote.user >> 56 << 32)
        taken = reach <= self.window_ns and self.z <= LEASE_Z_MAX
        if taken:
            self.leases[attribute_of(vote)].append((vote.t_ns, vote.t_ns + reach))
        return taken

    def is_leased(self, vote: Vote) -> bool:
        """Whether a lease that came before lasts at the vote's time."""
        known = self.leases[attribute_of(vote)]
        return any(since <= vote.t_ns <= until for since, until in known)

    def decide(self, vote: Vote) -> bool:
        """Whether the vote's answer is yes."""
        if vote.kind == LEASE:
            return self.lease(vote)
        if vote.kind == ONLY:
            self.table.observe(vote.t_ns, vote.user & USER_BITS, attribute_of(vote))
            return False
        epoch = self.epoch(vote.t_ns)
        if CLIENT <= vote.kind <= DNS_ADDR_PEEK and epoch != self.epochs[1]:
            self.epochs = self.epochs[1], epoch
        if vote.kind == CLIENT:
            self.clients.add((epoch, vote.lo))
            return False
        if ADDR <= vote.kind <= DNS_ADDR_PEEK and self.clients & {
            (e, vote.lo) for e in self.epochs
        }:
            return False
        if vote.kind == ADDR_CHECK:
            return True
        attribute = attribute_of(vote)
        if vote.kind in (PEEK, ADDR_PEEK, DNS_ADDR_PEEK):
            leased = vote.kind == PEEK and self.is_leased(vote)
            return leased or self.table.users(vote.t_ns, attribute) >= self.z
        released = self.table.observe(vote.t_ns, vote.user & USER_BITS, attribute)
        return released or (vote.kind == NAME and self.is_leased(vote))


def decide_all(
    oracle: ShardOracle, messages: Iterable[Message]
) -> dict[tuple[int, int], list[bool]]:
    """The answers to messages whose votes are in their order there, by probe and sequence, when all
    are known before the first decision."""
    entries = [
        (vote.t_ns, message.probe, message.sequence, i, vote)
        for message in messages
        for i, vote in enumerate(message.votes)
    ]
    entries.sort(key=lambda entry: entry[:4])
    answers: dict[tuple[int, int], dict[int, bool]] = defaultdict(dict)
    for _, probe, sequence, i, vote in entries:
        answers[probe, sequence][i] = oracle.decide(vote)
    return {key: [found[i] for i in range(len(found))] for key, found in answers.items()}
