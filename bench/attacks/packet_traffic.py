# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Packets of two epochs: a population's flows from its users' devices, as frames in memory.

The flows are of two hours of a population. In addition, each user has one connection that stays
open over the change of keys and sends something with every other visit (a push service), and one
connection of QUIC in each epoch. No Python runs for a packet except for QUIC. Payloads are cut, but
hellos and DNS are whole. A hello has one length for all names, and its parts have fixed offsets
(`HELLO`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from packets import ACK, IPV4, PSH, RESOLVER, RST, SYN, TCP, UDP, Payloads
from population import DAY, HOUR, ROUND_TRIP_NS, START_NS, Flows, Ints, Population, by_start
from stacks import OPTION_BYTES, Stacks, make_stacks, syn_options

from zanon_net.bench.messages import (
    Dice,
    HelloShape,
    client_hello,
    server_name_extension,
    u16,
    vec,
)
from zanon_net.bench.quic_packets import (
    LongHeader,
    Side,
    client_initials,
    handshake_packet,
    initial_packet,
)

RAW_IPV4 = 101
SEGMENT = 5792  # bytes of a server's segments, as a card joins them
CIPHERS = [0x1301, 0x1302, 0x1303, 0xC02B, 0xC02F, 0xC02C, 0xC030, 0xCCA9, 0xCCA8, 0x009C,
           0x009D, 0x002F, 0x0035, 0xC013, 0xC014, 0x000A]  # fmt: skip
NAME_ROOM = 40
HELLO = {  # (offset, bytes) of a hello's parts; the name with its length before it
    "session": (44, 32),
    "ciphers": (78, 32),
    "ticket": (118, 64),
    "name": (199, 2 + NAME_ROOM),
}
HELLO_BYTES = 260
KEEPALIVE_NS = 60 * 10**9
PUSHED_NS = 300_000_000  # delay of an open connection's data after the begin of a visit
PUSH_SERVICES = 3
TS_HZ, ISN_HZ = 1000, 250_000
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Part = tuple[Ints, Ints, Bytes, Ints]  # times, flows, bytes that are captured, bytes on the wire


@dataclass(frozen=True, slots=True)
class Traffic:
    """Frames back to back, in order of time; no two at the same one. flow: of each frame."""

    data: Bytes
    offset: Ints
    length: Ints
    wire: Ints
    t_ns: Ints
    flow: Ints


@dataclass(frozen=True, slots=True)
class Scene:
    """The traffic of two epochs and its truth.

    flows: DNS and QUIC are not `tcp`. quic: true for QUIC. begin_ns: of the first epoch; an epoch
    is an hour.
    """

    population: Population
    stacks: Stacks
    flows: Flows
    quic: np.ndarray[Any, np.dtype[np.bool_]]
    begin_ns: int
    traffic: Traffic


def mixed(*numbers: Ints) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Returns a number that looks random, of others (splitmix64)."""
    state = np.zeros(1, dtype=np.uint64)
    for values in numbers:
        state = state ^ np.asarray(values).astype(np.uint64)
        state = (state + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return state


def random_bytes(size: int, *numbers: Ints) -> Bytes:
    """Rows of bytes that look random, of numbers."""
    words = [mixed(*numbers, np.int64(i)) for i in range(-(-size // 8))]
    return np.stack(words, axis=1).view(np.uint8).reshape(len(words[0]), -1)[:, :size]


def hello_rows(scene_seed: int, stacks: Stacks, user: Ints, name: Ints, names: list[str]) -> Bytes:
    """Returns the ClientHello of each (user, name), with a constant session ID and ticket."""
    order = [np.random.default_rng([scene_seed, 9, h]).permutation(len(CIPHERS))
             for h in range(int(stacks.hello.max()) + 1)]  # fmt: skip
    ciphers = np.array([[b for c in np.array(CIPHERS)[p].tolist() for b in u16(c)] for p in order])
    tails = [
        server_name_extension(n.encode()) + u16(21) + vec(2, bytes(NAME_ROOM - len(n)))
        for n in names
    ]
    front = b"\3\3" + bytes(32) + vec(1, bytes(32)) + vec(2, bytes(32)) + b"\1\0"
    groups = u16(10) + vec(2, vec(2, u16(29) + u16(23)))
    more = u16(35) + vec(2, bytes(64)) + groups
    extensions = len(more) + len(tails[0])
    filler = HELLO_BYTES - 5 - 4 - len(front) - 2 - extensions
    body = front + u16(extensions + filler) + more
    head = b"\x16\3\1" + u16(HELLO_BYTES - 5) + b"\1" + (HELLO_BYTES - 9).to_bytes(3, "big") + body
    end = u16(0xFF01) + vec(2, bytes(filler - 4))
    table = np.frombuffer(b"".join(t + end for t in tails), dtype=np.uint8).reshape(len(tails), -1)
    rows = np.empty((len(user), HELLO_BYTES), dtype=np.uint8)
    rows[:, : len(head)] = np.frombuffer(head, dtype=np.uint8)
    rows[:, len(head) :] = table[name]
    for key, salt in (("session", 1), ("ticket", 2)):
        at, size = HELLO[key]
        rows[:, at : at + size] = random_bytes(size, user, name, np.int64(salt + scene_seed))
    at, size = HELLO["ciphers"]
    rows[:, at : at + size] = ciphers[stacks.hello[user]]
    return rows


class Maker:
    """Makes the frames of flows."""

    def __init__(self, population: Population, stacks: Stacks, flows: Flows, begin_ns: int) -> None:
        self.population, self.stacks, self.flows = population, stacks, flows
        self.begin_ns = begin_ns
        count = len(flows)
        # The n-th flow of a user has the n-th next port.
        order = np.argsort(flows.user, kind="stable")
        user = flows.user[order]
        nth = np.empty(count, dtype=np.int64)
        nth[order] = np.arange(count) - np.searchsorted(user, user)
        first, ports = stacks.first_port[flows.user], stacks.ports[flows.user]
        self.port = first + (stacks.port[flows.user] + nth) % ports
        ticks = (flows.start_ns - begin_ns) * ISN_HZ // 10**9
        self.isn = (stacks.isn[flows.user] + ticks) & 0xFFFFFFFF
        self.other_isn = mixed(np.arange(count), np.int64(77)).astype(np.int64) & 0xFFFFFFFF
        self.options, self.clock_at = syn_options(stacks)

    def clock(self, user: Ints, times: Ints) -> Ints:
        """Returns the values of the hosts' timestamp clocks."""
        passed = (times - self.begin_ns) / 1e9 * TS_HZ * (1 + self.stacks.skew[user])
        return (self.stacks.clock[user] + passed.astype(np.int64)) & 0xFFFFFFFF

    def ip(self, kind: list[Any], which: Ints, back: bool, proto: int) -> np.ndarray[Any, Any]:
        """Rows whose IP header and ports are filled, but for lengths and the client's id."""
        flows, stacks = self.flows, self.stacks
        user = flows.user[which]
        rows = np.zeros(len(which), dtype=kind)
        client = self.population.address[user]
        service = np.where(flows.tcp[which] | self.quic_of(which), 443, 53)
        server = np.where(
            service == 443, self.population.hosts.address[flows.name[which]], RESOLVER
        )
        rows["version"], rows["proto"] = 0x45, proto
        rows["ttl"] = 57 if back else stacks.ttl[user]
        ends = ("source", "target") if not back else ("target", "source")
        ports = tuple(f"{end}_port" for end in ends)
        rows[ends[0]], rows[ends[1]] = client, server
        rows[ports[0]], rows[ports[1]] = self.port[which], service
        return rows

    def quic_of(self, which: Ints) -> Ints:
        """Returns true for flows that are QUIC: datagrams of more bytes than DNS has."""
        return (~self.flows.tcp[which]) & (self.flows.c_bytes[which] >= 1200)

    def tcp(self, which: Ints, times: Ints, back: bool, said: dict[str, Any]) -> Part:
        """Returns a segment of each flow. said: flags, seq, ack (relative to the two ISNs), wire,
        payload."""
        user, opens = self.flows.user[which], bool(said["flags"] & SYN)
        room = OPTION_BYTES if opens else 12
        payload: Bytes = said.get("payload", np.zeros((len(which), 0), dtype=np.uint8))
        kind = [*IPV4, *TCP, ("options", "u1", (room,)), ("payload", "u1", (payload.shape[1],))]
        rows = self.ip(kind, which, back, 6)
        own, other = (self.other_isn, self.isn) if back else (self.isn, self.other_isn)
        rows["seq"] = (own[which] + said["seq"]) & 0xFFFFFFFF
        if said["flags"] & ACK:
            rows["ack"] = (other[which] + said["ack"]) & 0xFFFFFFFF
        rows["flags"], rows["offset"] = said["flags"], (20 + room) // 4 << 4
        rows["window"] = 64_000 if back else self.stacks.window[user] >> (0 if opens else 5)
        if opens:
            rows["options"] = self.options[0] if back else self.options[user]
            at = np.full(len(which), self.clock_at[0]) if back else self.clock_at[user]
        else:
            rows["options"][:, :4] = (1, 1, 8, 10)
            at = np.full(len(which), 4)
        clock = np.zeros_like(times) if back else self.clock(user, times)
        for i in range(4):
            rows["options"][np.arange(len(which)), at + i] = clock >> (24 - 8 * i) & 255
        rows["payload"] = payload
        wire = 40 + room + np.broadcast_to(said["wire"], times.shape)
        rows["total"] = wire
        return times, which, as_bytes(rows), wire

    def opening(self, which: Ints) -> Iterator[Part]:
        """SYN, SYN-ACK, ACK, the hello, a request whose payload is cut."""
        flows, trip = self.flows, self.flows.start_ns[which] + ROUND_TRIP_NS
        yield self.tcp(which, trip - ROUND_TRIP_NS, False, {"flags": SYN, "seq": 0, "wire": 0})
        answer = {"flags": SYN | ACK, "seq": 0, "ack": 1, "wire": 0}
        yield self.tcp(which, trip, True, answer)
        yield self.tcp(which, trip + 500_000, False, {"flags": ACK, "seq": 1, "ack": 1, "wire": 0})
        rows = hello_rows(self.population.seed, self.stacks, flows.user[which], flows.name[which],
                          self.population.hosts.names)  # fmt: skip
        said = {"flags": ACK | PSH, "seq": 1, "ack": 1, "wire": HELLO_BYTES, "payload": rows}
        yield self.tcp(which, trip + 1_000_000, False, said)
        size = flows.c_bytes[which] - HELLO_BYTES
        said = {"flags": ACK | PSH, "seq": 1 + HELLO_BYTES, "ack": 1, "wire": size}
        yield self.tcp(which, trip + 2_000_000, False, said)

    def answers(self, which: Ints) -> Iterator[Part]:
        """Yields the server's segments, and the RST that ends the connection."""
        flows = self.flows
        sent, received = flows.c_bytes[which], flows.s_bytes[which]
        count = -(-received // SEGMENT)
        row = np.repeat(np.arange(len(which)), count)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        size = np.minimum(SEGMENT, received[row] - nth * SEGMENT)
        times = flows.start_ns[which][row] + 3 * ROUND_TRIP_NS + nth * 2_000_000
        said = {"flags": ACK | PSH, "seq": 1 + nth * SEGMENT, "ack": (1 + sent)[row], "wire": size}
        yield self.tcp(which[row], times, True, said)
        said = {"flags": RST | ACK, "seq": 1 + sent, "ack": 1 + received, "wire": 0}
        end = np.maximum(flows.end_ns[which], flows.start_ns[which] + 10**9)
        yield self.tcp(which, end, False, said)

    def kept_open(self, which: Ints, until_ns: int, visits: tuple[Ints, Ints]) -> Iterator[Part]:
        """Yields the data of long connections: keepalives, and data soon after every other
        visit."""
        flows = self.flows
        sent, received = flows.c_bytes[which], flows.s_bytes[which]
        many = (until_ns - flows.start_ns[which]) // KEEPALIVE_NS
        row = np.repeat(np.arange(len(which)), many)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
        times = flows.start_ns[which][row] + (1 + nth) * KEEPALIVE_NS + mixed(row, nth).astype(
            np.int64) % 10**9  # fmt: skip
        of = np.full(int(flows.user.max()) + 1, -1)
        of[flows.user[which]] = np.arange(len(which))
        user, when = visits
        when = when + mixed(when, user).astype(np.int64) % PUSHED_NS
        ok = (of[user] >= 0) & (mixed(user, when) % np.uint64(2) == 0) & (when < until_ns)
        ok &= when > flows.start_ns[which][np.maximum(of[user], 0)] + 10 * 10**9
        row = np.concatenate([row, of[user][ok]])
        times = np.concatenate([times, when[ok]])
        said = {"flags": ACK, "seq": (1 + sent)[row], "ack": (1 + received)[row], "wire": 0}
        yield self.tcp(which[row], times, False, said)

    def datagrams(self, which: Ints, back: bool, payloads: Payloads) -> Part:
        """Returns the DNS question of each flow, or its answer."""
        flows = self.flows
        texts = payloads.answer if back else payloads.question
        rows = self.ip([*IPV4, *UDP, ("payload", "u1", (texts.shape[1],))], which, back, 17)
        size = (flows.s_bytes if back else flows.c_bytes)[which]
        rows["total"], rows["udp_length"] = 28 + size, 8 + size
        rows["payload"] = texts[flows.name[which]]
        rows["payload"][:, 0], rows["payload"][:, 1] = which >> 8 & 255, which & 255
        times = flows.start_ns[which] + (20_000_000 if back else 0)
        return times, which, as_bytes(rows), 28 + size

    def quic(self, which: Ints) -> Iterator[Part]:
        """Yields the first datagrams of each connection: an Initial both ways, more of the
        handshake."""
        flows, dice = self.flows, Dice(str(self.population.seed))
        pieces: tuple[list[bytes], ...] = ([], [], [])
        for flow in which.tolist():
            user = int(flows.user[flow])
            own = mixed(np.int64(user), np.int64(5)).tobytes()
            scid = own if self.stacks.keeps_id[user] else dice.bytes(8)
            name = self.population.hosts.names[int(flows.name[flow])].encode()
            shape = HelloShape(tls13=True, ech=False, quic_scid=scid)
            dcid, server = dice.bytes(8), dice.bytes(8)
            hello = client_hello(name, shape, dice)
            pieces[0].append(client_initials(hello, LongHeader(dcid, scid, 0), [], dice)[0])
            side = Side(dcid, server=True)
            pieces[1].append(initial_packet(LongHeader(scid, server, 0), side, b"\2\0\0\0\0", 1200))
            pieces[2].append(handshake_packet(server, scid, 1200, dice))
        for i, back in ((0, False), (1, True), (2, False)):
            payload = np.frombuffer(b"".join(pieces[i]), dtype=np.uint8).reshape(len(which), -1)
            size = payload.shape[1]
            rows = self.ip([*IPV4, *UDP, ("payload", "u1", (size,))], which, back, 17)
            rows["total"], rows["udp_length"], rows["payload"] = 28 + size, 8 + size, payload
            times = flows.start_ns[which] + i * ROUND_TRIP_NS
            yield times, which, as_bytes(rows), np.full(len(which), 28 + size)


def as_bytes(rows: np.ndarray[Any, Any]) -> Bytes:
    """Returns the rows of a structure as rows of bytes."""
    return np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)


def joined(parts: list[Part], maker: Maker) -> Traffic:
    """Returns the frames of all parts in order of time, each client's ids counted up."""
    times = np.concatenate([part[0] for part in parts])
    flow = np.concatenate([part[1] for part in parts])
    width = np.concatenate([np.full(len(part[0]), part[2].shape[1]) for part in parts])
    wire = np.concatenate([part[3] for part in parts])
    order = np.argsort(times, kind="stable")
    offset = np.empty(len(order), dtype=np.int64)
    offset[order] = np.cumsum(width[order]) - width[order]
    data = np.zeros(int(width.sum()), dtype=np.uint8)
    begin = 0
    for _, _, rows, _ in parts:
        at = offset[begin : begin + len(rows)]
        for i in range(rows.shape[1]):
            data[at + i] = rows[:, i]
        begin += len(rows)
    index = np.arange(len(order))
    t_ns = np.maximum.accumulate(times[order] - index) + index
    out = Traffic(data, offset[order], width[order], wire[order], t_ns, flow[order])
    count_ids(out, maker)
    return out


def count_ids(traffic: Traffic, maker: Maker) -> None:
    """Gives each client's packets ids that go up by one; a server's stay 0."""
    up = traffic.data[traffic.offset + 12] == 10
    which = np.flatnonzero(up)
    user = maker.flows.user[traffic.flow[which]]
    order = np.argsort(user, kind="stable")
    sorted_user = user[order]
    nth = np.empty(len(which), dtype=np.int64)
    nth[order] = np.arange(len(which)) - np.searchsorted(sorted_user, sorted_user)
    ids = maker.stacks.ip_id[user] + nth
    traffic.data[traffic.offset[which] + 4] = ids >> 8 & 255
    traffic.data[traffic.offset[which] + 5] = ids & 255


def more_flows(
    population: Population, begin_ns: int, active: Ints, rng: np.random.Generator
) -> tuple[Flows, Flows]:
    """Long connections, opened in the first epoch, and QUIC connections, one in each."""
    popular = np.argsort(-np.bincount(population.flows.name), kind="stable")[:PUSH_SERVICES]
    count = len(active)
    one = np.ones(count, dtype=np.int64)
    start = begin_ns + HOUR // 4 + rng.integers(0, HOUR // 2, size=count)
    push = Flows(active, popular[rng.integers(0, PUSH_SERVICES, size=count)], one > 0, start,
                 start + 0, one, one, one * (HELLO_BYTES + 100), one * 3000)  # fmt: skip
    user = np.repeat(active, 2)
    twice = np.ones(2 * count, dtype=np.int64)
    start = begin_ns + np.tile([0, HOUR], count) + rng.integers(60 * 10**9, HOUR - 60 * 10**9,
                                                               size=2 * count)  # fmt: skip
    quic = Flows(user, popular[rng.integers(0, PUSH_SERVICES, size=2 * count)], twice < 0, start,
                 start + 10**9, twice, twice, twice * 1200, twice * 1200)  # fmt: skip
    return push, quic


def make_scene(population: Population, hour: int) -> Scene:
    """Returns the traffic of the hour of the last day and of the one after it."""
    rng = np.random.default_rng([population.seed, 5])
    stacks = make_stacks(rng, population.scale.users)
    begin_ns = START_NS + (population.scale.days - 1) * DAY + hour * HOUR
    low, high = np.searchsorted(population.flows.start_ns, [begin_ns, begin_ns + 2 * HOUR])
    visits = population.flows.part(slice(low, high))
    push, quic = more_flows(population, begin_ns, np.unique(visits.user), rng)
    columns = {
        field: np.concatenate([getattr(part, field) for part in (visits, push, quic)])
        for field in Flows.__slots__
    }
    is_push = np.repeat([False, True, False], [len(visits), len(push), len(quic)])
    order = np.argsort(columns["start_ns"], kind="stable")
    flows, is_push = by_start(Flows(**columns)), is_push[order]
    tcp_sizes = np.maximum(flows.c_bytes, HELLO_BYTES + 5)
    flows = Flows(**{f: getattr(flows, f) for f in Flows.__slots__} | {
        "c_bytes": np.where(flows.tcp, tcp_sizes, flows.c_bytes)})  # fmt: skip
    maker = Maker(population, stacks, flows, begin_ns)
    is_quic = maker.quic_of(np.arange(len(flows)))
    tcp = np.flatnonzero(flows.tcp)
    parts = [*maker.opening(tcp), *maker.answers(tcp[~is_push[tcp]])]
    contacts = visits.tcp
    parts += maker.kept_open(
        np.flatnonzero(is_push),
        begin_ns + 2 * HOUR,
        (visits.user[contacts], visits.start_ns[contacts]),
    )
    dns = np.flatnonzero(~flows.tcp & ~is_quic)
    payloads = Payloads(population)
    parts += [maker.datagrams(dns, back, payloads) for back in (False, True)]
    parts += maker.quic(np.flatnonzero(is_quic))
    return Scene(population, stacks, flows, is_quic, begin_ns, joined(parts, maker))
