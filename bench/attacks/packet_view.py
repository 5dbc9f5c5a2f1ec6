# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The attacker's view of packets: columns of their headers, and bytes of their payloads."""

import base64
import hashlib
import tempfile
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from packet_traffic import HELLO, HELLO_BYTES, RAW_IPV4, TS_HZ, Scene, Traffic
from packets import ACK, SYN
from population import HOUR, Ints
from view import Bools

from zanon_net import CryptoPan, Engine

ETHERNET = 14
INSIDE = 10  # the first byte of users' addresses, which stay in their private network
TCP_PROTO, UDP_PROTO = 6, 17
FEED = 1 << 14
SESSION_LENGTH_AT = 43  # in a hello's record; 0 in a hello without its fingerprint
PLAIN_NAME_AT = 59  # in a hello without its fingerprint; the name's length is before the name
EMPTY = np.zeros(0, dtype=np.int64)

__all__ = ["ACK", "HELLO", "HELLO_BYTES", "SYN", "TS_HZ", "PacketView", "addresses_only", "ours"]


@dataclass(frozen=True)
class PacketView:
    """Packets, one entry a packet, in their order.

    head: where the IP header is. client: the pseudonym of the user's side. begin_ns: of the first
    of two epochs.
    """

    label: str
    data: np.ndarray[Any, np.dtype[np.uint8]]
    head: Ints
    captured: Ints  # bytes from the IP header on
    t_ns: Ints
    up: Bools
    client: Ints
    begin_ns: int

    def __len__(self) -> int:
        return len(self.t_ns)

    def number(self, at: Ints | int, size: int) -> Ints:
        """Returns the number of `size` bytes at a place after each IP header."""
        value = np.zeros(len(self), dtype=np.int64)
        last = len(self.data) - 1
        for i in range(size):
            value = value << 8 | self.data[np.minimum(self.head + at + i, last)].astype(np.int64)
        return value

    def rows(self, which: Ints, at: Ints, size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Returns `size` bytes of these packets, each at its place after its IP header."""
        place = (self.head[which] + at)[:, None] + np.arange(size)
        return self.data[np.minimum(place, len(self.data) - 1)]

    @cached_property
    def proto(self) -> Ints:
        """The transport."""
        return self.number(9, 1)

    @cached_property
    def port(self) -> Ints:
        """The client's port."""
        return np.where(self.up, self.number(20, 2), self.number(22, 2))

    @cached_property
    def service(self) -> Ints:
        """The server's port."""
        return np.where(self.up, self.number(22, 2), self.number(20, 2))

    @cached_property
    def server(self) -> Ints:
        """The server's address, or its replacement."""
        return np.where(self.up, self.number(16, 4), self.number(12, 4))

    @cached_property
    def flags(self) -> Ints:
        """Of TCP; 0 for others."""
        return np.where(self.proto == TCP_PROTO, self.number(33, 1), 0)

    @cached_property
    def payload_at(self) -> Ints:
        """Offset of the payload after the IP header."""
        return np.where(self.proto == TCP_PROTO, 20 + (self.number(32, 1) >> 4) * 4, 28)

    @cached_property
    def flow(self) -> Ints:
        """A number for each flow: ends, ports and protocol, in order of the first packet."""
        key = np.stack([self.client, self.server, self.port << 24 | self.service << 8 | self.proto])
        return np.unique(key, axis=1, return_inverse=True)[1].reshape(-1)

    @cached_property
    def epoch(self) -> Ints:
        """The epoch of each packet's flow, given by its first packet."""
        first = np.full(int(self.flow.max(initial=-1)) + 1, np.iinfo(np.int64).max)
        np.minimum.at(first, self.flow, self.t_ns)
        return (first[self.flow] - self.begin_ns) // HOUR

    @cached_property
    def groups(self) -> tuple[Ints, Ints, Ints]:
        """The (epoch, client) pairs: epochs, clients, the pair of each packet."""
        pairs, of = np.unique(self.epoch << 32 | self.client, return_inverse=True)
        return pairs >> 32, pairs & 0xFFFFFFFF, of.reshape(-1)

    def hellos(self) -> Ints:
        """Returns the packets that carry a whole ClientHello of TLS."""
        room = self.captured - self.payload_at >= HELLO_BYTES
        named = (self.proto == TCP_PROTO) & self.up & room & (self.service == 443)
        which = np.flatnonzero(named)
        return which[self.data[self.head[which] + self.payload_at[which]] == 22]

    def hello_bytes(self, part: str) -> tuple[Ints, np.ndarray[Any, np.dtype[np.uint8]]]:
        """Returns a part of each hello: (packets, its bytes).

        A hello without its fingerprint has the name and one cipher suite that all share: its other
        parts are zeros.
        """
        at, size = HELLO[part]
        which = self.hellos()
        start = self.payload_at[which]
        plain = self.rows(which, start + SESSION_LENGTH_AT, 1)[:, 0] == 0
        rows = self.rows(which, start + np.where(plain, PLAIN_NAME_AT, at), size)
        if part != "name":
            rows[plain] = 0
        return which, rows

    def clocks(self) -> tuple[Ints, Ints]:
        """Returns the clients' timestamps: (packets, value)."""
        which = np.flatnonzero((self.proto == TCP_PROTO) & self.up)
        found, value = np.zeros(len(which), dtype=bool), np.zeros(len(which), dtype=np.int64)
        for at in range(40, 40 + 24 - 9):
            inside = at + 10 <= self.payload_at[which]
            rows = self.rows(which, np.full(len(which), at), 6).astype(np.int64)
            hit = ~found & inside & (rows[:, 0] == 8) & (rows[:, 1] == 10)
            value[hit] = (rows[hit, 2:] << np.array([24, 16, 8, 0])).sum(axis=1)
            found |= hit
        return which[found], value[found]


def addresses_only(scene: Scene) -> PacketView:
    """Returns the output of tools that map addresses alone: clients under a key for each epoch."""
    traffic, flows = scene.traffic, scene.flows
    up = traffic.data[traffic.offset + 12] == INSIDE
    client = np.empty(len(flows), dtype=np.int64)
    epoch = (flows.start_ns - scene.begin_ns) // HOUR
    for one in np.unique(epoch).tolist():
        secret = hashlib.sha256(f"epoch {one}".encode()).digest()
        addresses = CryptoPan(secret).anonymize_v4(scene.population.address.astype(np.uint32))
        client[epoch == one] = addresses[flows.user[epoch == one]]
    return PacketView(
        "addresses only",
        traffic.data,
        traffic.offset,
        traffic.length,
        traffic.t_ns,
        up,
        client[traffic.flow],
        scene.begin_ns,
    )


def ours(scene: Scene, label: str, z: int, **settings: Any) -> tuple[PacketView, dict[str, int]]:
    """Returns the packets of an engine that takes the scene's frames, and its counters."""
    batch, stats = anonymized(scene.traffic, z, scene.population.seed, **settings)
    data, offset, length, t_ns = batch
    up = data[offset + ETHERNET + 12] == INSIDE
    view = PacketView(
        label,
        data,
        offset + ETHERNET,
        length - ETHERNET,
        t_ns,
        up,
        EMPTY,
        scene.begin_ns,
    )
    client = np.where(up, view.number(12, 4), view.number(16, 4))
    return replace(view, client=client), stats


def anonymized(
    traffic: Traffic, z: int, seed: int, **settings: Any
) -> tuple[tuple[np.ndarray[Any, np.dtype[np.uint8]], Ints, Ints, Ints], dict[str, int]]:
    """Returns (data, offset, length, time) of the packets that leave an engine with a fixed key."""
    said = {"z": z, "window": "1h", "rotate": "1h", "internal": "10.0.0.0/8"} | settings
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder, "key")
        key.touch(mode=0o600)
        key.write_bytes(base64.b64encode(hashlib.sha256(b"%d" % seed).digest()) + b"\n")
        with Engine(packets=True, key_file=str(key), **said) as engine:
            for begin in range(0, len(traffic.t_ns), FEED):
                part = slice(begin, begin + FEED)
                low = int(traffic.offset[begin])
                last = min(begin + FEED, len(traffic.t_ns)) - 1
                high = int(traffic.offset[last] + traffic.length[last])
                wire = np.maximum(traffic.wire[part], traffic.length[part])
                engine.feed(traffic.data[low:high], traffic.t_ns[part], traffic.length[part],
                            wire, RAW_IPV4)  # fmt: skip
                engine.records()
                engine.observations()
                parts.append(kept(engine.packets()))
            engine.finish()
            parts.append(kept(engine.packets()))
            stats = engine.stats
    start = np.cumsum([0, *(len(part[0]) for part in parts)])
    offset = np.concatenate([part[1] + at for part, at in zip(parts, start[:-1], strict=True)])
    columns = [np.concatenate([part[i] for part in parts]) for i in (2, 3)]
    return (np.concatenate([part[0] for part in parts]), offset, *columns), stats


MOST = 400  # bytes of a packet that are used


def kept(batch: Any) -> tuple[np.ndarray[Any, np.dtype[np.uint8]], Ints, Ints, Ints]:
    """Returns the first bytes of each packet, back to back: all bytes that are used."""
    length = np.minimum(batch.length, MOST).astype(np.int64)
    offset = np.cumsum(length) - length
    inside = np.arange(int(length.sum())) - np.repeat(offset, length)
    return batch.data[np.repeat(batch.offset, length) + inside], offset, length, batch.t_ns
