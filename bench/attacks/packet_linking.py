# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Links the pseudonyms of one epoch to the pseudonyms of the next by the headers of packets.

Knowledge: the packets alone, and how hosts count. Each attack computes how alike a pseudonym of the
second epoch and a pseudonym of the first are. The most alike is the guess, ties by chance. A number
that hosts count up (ports, ids, sequence numbers, clocks) is followed from a pseudonym's last
packet of the first epoch to the first packet of the second. A value that stays (tickets, connection
IDs, stacks, hellos) is compared, and weighs more the fewer pseudonyms have it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from linking import counted, unit_rows
from packet_traffic import ISN_HZ
from packet_view import ACK, SYN, TS_HZ, PacketView
from population import HOUR, Floats, Ints
from scipy import sparse

QUIC_PORT, DNS_PORT = 443, 53
NEAR_NS = 1_500_000_000  # within which an open connection and a new connection belong to one visit
WRAP16, WRAP32 = 1 << 16, 1 << 32


@dataclass(frozen=True)
class Two:
    """The two epochs of a view: its pairs of the first and of the second, by number."""

    view: PacketView
    earlier: Ints
    later: Ints

    @classmethod
    def of(cls, view: PacketView) -> "Two":
        epochs = view.groups[0]
        return cls(view, np.flatnonzero(epochs == 0), np.flatnonzero(epochs == 1))

    def last(self, which: Ints, value: Ints, of: Ints | None = None) -> tuple[Floats, Floats]:
        """Returns the last value of each pair of the first epoch, and the first value of each of
        the second.

        NaN if a pair has no value.
        """
        pair = (self.view.groups[2] if of is None else of)[which]
        found = np.full((2, len(self.view.groups[0])), np.nan)
        found[0, pair] = value  # the last value is written last
        found[1, pair[::-1]] = value[::-1]
        return found[0, self.earlier], found[1, self.later]


Attack = Callable[[Two], Floats]


def near(later: Floats, earlier: Floats, wrap: float, forward: bool) -> Floats:
    """Returns the nearness of each value of the second epoch to each of the first, after it if
    `forward`."""
    apart = (later[:, None] - earlier[None, :]) % wrap
    if not forward:
        apart = np.minimum(apart, wrap - apart)
    return np.nan_to_num(-apart, nan=-np.inf).astype(np.float32)


def sequence_numbers(two: Two) -> Floats:
    """Compares hosts whose first sequence numbers are a clock's, by the clock's begin."""
    view = two.view
    which = np.flatnonzero(view.up & (view.flags & (SYN | ACK) == SYN))
    start = view.number(24, 4)[which] - (view.t_ns[which] - view.begin_ns) * ISN_HZ // 10**9
    earlier, later = two.last(which, start % WRAP32)
    return near(later, earlier, WRAP32, forward=False)


def ports(two: Two) -> Floats:
    """Hosts that give out their ports one by one."""
    view = two.view
    which = np.flatnonzero(view.up & (first_packets(view) | (view.flags & (SYN | ACK) == SYN)))
    earlier, later = two.last(which, view.port[which])
    return near(later, earlier, WRAP16, forward=True)


def first_packets(view: PacketView) -> np.ndarray:
    """Returns the first packet of each flow."""
    first = np.zeros(len(view), dtype=bool)
    first[np.unique(view.flow, return_index=True)[1]] = True
    return first


def ids(two: Two) -> Floats:
    """Hosts that count the ids of their packets."""
    view = two.view
    numbers = view.number(4, 2)
    # Of flows that stay open over the change of keys, the flows before the change.
    late = (view.t_ns - view.begin_ns) // HOUR > view.epoch
    which = np.flatnonzero(view.up & (numbers > 0) & ~late)
    earlier, later = two.last(which, numbers[which])
    return near(later, earlier, WRAP16, forward=True)


def clocks(two: Two) -> Floats:
    """Compares the begins of the timestamp clocks."""
    which, value = two.view.clocks()
    since = (two.view.t_ns[which] - two.view.begin_ns) * TS_HZ // 10**9
    earlier, later = two.last(which, (value - since) % WRAP32)
    return near(later, earlier, WRAP32, forward=False)


def skew(two: Two) -> Floats:
    """Compares the drift of the timestamp clocks: the slope of one line through all flows."""
    view = two.view
    which, value = view.clocks()
    first, flow = np.unique(view.flow[which], return_index=True, return_inverse=True)[1:]
    pair = view.groups[2][which]
    seconds = (view.t_ns[which] - view.begin_ns) / 1e9
    drift = value - seconds * TS_HZ
    count = np.bincount(flow)
    drift = (drift - drift[first][flow] + WRAP32 / 2) % WRAP32 - WRAP32 / 2
    drift -= (np.bincount(flow, drift) / count)[flow]
    seconds = seconds - (np.bincount(flow, seconds) / count)[flow]
    many = len(view.groups[0])
    spread = np.bincount(pair, seconds**2, minlength=many)
    slope = np.bincount(pair, seconds * drift, minlength=many) / np.where(
        spread > 1, spread, np.nan
    )
    return near(slope[two.later], slope[two.earlier], 1e9, forward=False)


def tokens(two: Two, parts: list[tuple[Ints, Ints]]) -> Floats:
    """Cosines of what pairs have. parts: (packets, values of one kind)."""
    rows = np.concatenate([two.earlier, two.later])
    place = np.full(len(two.view.groups[0]), -1)
    place[rows] = np.arange(len(rows))
    matrices = []
    for which, value in parts:
        row = place[two.view.groups[2][which]]
        values, column = np.unique(value[row >= 0], return_inverse=True)
        shape = (len(rows), max(1, len(values)))
        matrices.append(counted(row[row >= 0], column.reshape(-1), shape))
    joined = unit_rows(sparse.hstack(matrices, format="csr").tocsr())
    split = len(two.earlier)
    return (joined[split:] @ joined[:split].T).toarray().astype(np.float32)


def as_values(rows: np.ndarray) -> Ints:
    """Returns a number for each row of bytes, equal for equal rows; -1 for zeros."""
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    number = np.unique(np.ascontiguousarray(rows).view(f"V{rows.shape[1]}").ravel(),
                       return_inverse=True)[1].reshape(-1)  # fmt: skip
    return np.where((rows != 0).any(axis=1), number, -1)


def nonzero(which: Ints, rows: np.ndarray) -> tuple[Ints, Ints]:
    """Returns the packets whose bytes are not all zero, and their values."""
    value = as_values(rows)
    return which[value >= 0], value[value >= 0]


def tickets(two: Two) -> Floats:
    """Session IDs and session tickets that come again."""
    return tokens(two, [nonzero(*two.view.hello_bytes(part)) for part in ("session", "ticket")])


def connection_ids(two: Two) -> Floats:
    """Connection IDs of QUIC that a client keeps, or that come again."""
    view = two.view
    quic = (view.proto == 17) & (view.service == QUIC_PORT) & (view.captured > 60)
    which = np.flatnonzero(quic)
    which = which[view.data[view.head[which] + 28] & 0x80 > 0]
    # After the first byte and the version: a length of 8, the receiver's, 8, the sender's.
    ids = [view.rows(which, np.full(len(which), at), 8) for at in (34, 43)]
    return tokens(two, [nonzero(which, rows) for rows in ids])


def stack_parts(view: PacketView) -> list[tuple[Ints, Ints]]:
    """Returns the features of a host in a SYN: options in their order, window, TTL, and the kind of
    port."""
    which = np.flatnonzero(view.up & (view.flags & (SYN | ACK) == SYN))
    window, ttl = view.number(34, 2)[which], view.number(8, 1)[which]
    options = view.rows(which, np.full(len(which), 40), 24).copy()
    # The value of a timestamp is the clock's: see `clocks`.
    for at in range(24 - 9):
        hit = (options[:, at] == 8) & (options[:, at + 1] == 10)
        options[hit, at + 2 : at + 10] = 0
    port = view.port[which]
    kind = (port >= 1024).astype(np.int64) + (port >= 32_768)
    return [(which, (as_values(options) << 24 | window << 8 | ttl) << 2 | kind)]


def hello_parts(view: PacketView) -> list[tuple[Ints, Ints]]:
    """Returns the fingerprint of ClientHellos."""
    return [nonzero(*view.hello_bytes("ciphers"))]


def name_parts(view: PacketView) -> list[tuple[Ints, Ints]]:
    """Names of hellos that are not masked."""
    which, rows = view.hello_bytes("name")
    named = (rows[:, 2] > 0) & (rows[:, 2] != ord("x"))
    return [(which[named], as_values(rows[named]))]


def stack(two: Two) -> Floats:
    """Compares the features of hosts in their SYNs."""
    return tokens(two, stack_parts(two.view))


def hello(two: Two) -> Floats:
    """Returns the fingerprint of ClientHellos."""
    return tokens(two, hello_parts(two.view))


def names(two: Two) -> Floats:
    """Returns the names that are shown, as in logs."""
    return tokens(two, name_parts(two.view))


def all_that_stays(two: Two) -> Floats:
    """Names, stack and hello together."""
    view = two.view
    return tokens(two, name_parts(view) + stack_parts(view) + hello_parts(view))


def open_flows(two: Two) -> Floats:
    """Compares the sending times of the first epoch's pseudonyms with the begins of the second's.

    A connection keeps its pseudonym over the change of keys. Its packets that come right after a
    new connection of the other pseudonym are counted, against the number by chance.
    """
    view = two.view
    pair = view.groups[2]
    place = np.full(len(view.groups[0]), -1)
    place[two.earlier] = np.arange(len(two.earlier))
    place[two.later] = np.arange(len(two.later))
    change = view.begin_ns + HOUR
    opens = np.flatnonzero(first_packets(view) & (view.epoch == 1))
    says = np.flatnonzero(view.up & (view.epoch == 0) & (view.t_ns >= change + HOUR // 60))
    if not len(opens) or not len(says):
        return np.zeros((len(two.later), len(two.earlier)), dtype=np.float32)
    low = np.searchsorted(view.t_ns[opens], view.t_ns[says] - NEAR_NS)
    high = np.searchsorted(view.t_ns[opens], view.t_ns[says])
    count = high - low
    row = np.repeat(np.arange(len(says)), count)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    theirs = place[pair[opens[low[row] + nth]]]
    ours = place[pair[says[row]]]
    shape = (len(two.later), len(two.earlier))
    # A visit opens several connections, but says one thing.
    key = np.unique((row * shape[0] + theirs) * shape[1] + ours)
    both = sparse.csr_matrix(
        (np.ones(len(key)), (key // shape[1] % shape[0], key % shape[1])), shape=shape
    ).toarray()
    spoken = np.bincount(place[pair[says]], minlength=shape[1])
    expected = both.sum(axis=1, keepdims=True) * spoken[None, :] / max(1, len(says))
    return (both - expected).astype(np.float32) / np.sqrt(expected + 0.5).astype(np.float32)


COUNTED: dict[str, Attack] = {
    "sequence numbers": sequence_numbers,
    "ports": ports,
    "ids": ids,
    "clocks": clocks,
    "clock skew": skew,
    "tickets": tickets,
    "connection IDs": connection_ids,
}
STAYING: dict[str, Attack] = {
    "stack": stack,
    "hello": hello,
    "names": names,
    "names, stack, hello": all_that_stays,
    "open connections": open_flows,
}


def guess(two: Two, attack: Attack, rng: np.random.Generator) -> Ints:
    """Returns for each pair of the second epoch the most alike of the first; ties by chance."""
    alike = attack(two)
    mixed = rng.permutation(len(two.earlier))
    return two.earlier[mixed[alike[:, mixed].argmax(axis=1)]]
