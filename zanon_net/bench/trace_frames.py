# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Turns flows into the packets of a capture: one numpy column per header field, times in order.

Headers of thousands of packets are filled at once through structured dtypes. Sequence numbers are
running sums. Checksums are right, with sums of noise from prefix sums over the noise pool.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zanon_net.bench.trace_flows import (
    ACK,
    DNS,
    FIN,
    FULL,
    HTTP,
    MSS,
    OPENING,
    PART,
    QUIC_DATAGRAM,
    RECORD_HEAD,
    SERVER_PORTS,
    SERVERS,
    SHORT,
    SYN,
    TINY,
    TLS,
    Bytes,
    Flows,
    Ints,
    Profile,
    script,
)

START_S = 1_715_677_200  # 2024-05-14 09:00:00 UTC
NOISE_BYTES = 1 << 22
# Rank by which a name's server gets its address; clients are 10.64.0.0 + home and 2001:db8:...
CLIENT_V4, SERVER_V4, RESOLVER_V4 = 0x0A400000, 0xC6120001, 0xC6336435
CLIENT_V6, SERVER_V6, RESOLVER_V6 = 0x20010DB8_10000000, 0x20010DB8_FFFF0000, 0x20010DB8_00000053
TCP_OPTIONS = bytes.fromhex("020405b40103030801010402")  # MSS 1460, window scale 8, SACK

_RECORD = [("sec", "<u4"), ("usec", "<u4"), ("caplen", "<u4"), ("len", "<u4")]
_ETHERNET = [("dst_mac", "S6"), ("src_mac", "S6"), ("ethertype", ">u2")]
_VLAN = [("tpid", ">u2"), ("tci", ">u2")]  # before the EtherType
_IPV4 = [
    ("version_tos", ">u2"), ("ip_len", ">u2"), ("id", ">u2"), ("frag", ">u2"),
    ("ttl_proto", ">u2"), ("ip_sum", ">u2"), ("src", ">u4"), ("dst", ">u4"),
]  # fmt: skip
_IPV6 = [
    ("version_flow", ">u4"), ("ip_len", ">u2"), ("next_hop", ">u2"),
    ("src_net", ">u8"), ("src_host", ">u8"), ("dst_net", ">u8"), ("dst_host", ">u8"),
]  # fmt: skip
_TCP = [
    ("sport", ">u2"), ("dport", ">u2"), ("seq", ">u4"), ("ack", ">u4"),
    ("offset_flags", ">u2"), ("window", ">u2"), ("sum", ">u2"), ("urgent", ">u2"),
]  # fmt: skip
_UDP = [("sport", ">u2"), ("dport", ">u2"), ("udp_len", ">u2"), ("sum", ">u2")]
MACS = (b"\x02\x00\x5e\x00\x00\x01", b"\x02\x00\x5e\xff\x00\x01")


class Noise:
    """Pool of random bytes that serves as encrypted payload.

    `record_starts[n]` is an offset at which n bytes are a whole TLS record of application data; for
    n = MSS, the first half of a record in two segments. No slice of up to RECORD_HEAD bytes is a
    record.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        pool = rng.integers(0, 256, size=NOISE_BYTES, dtype=np.uint8)
        sizes = np.arange(MSS + 1)
        self.record_starts = sizes * 2048
        for size in range(RECORD_HEAD + 1, MSS + 1):
            length = (2 * MSS if size == MSS else size) - RECORD_HEAD
            start = self.record_starts[size]
            pool[start : start + RECORD_HEAD] = [23, 3, 3, *divmod(length, 256)]
        self.data = pool.tobytes()
        words = pool.view(">u2").astype(np.int64)
        self._sums: Ints = np.concatenate([[0], np.cumsum(words)])
        self._pool = pool
        # QUIC short headers: form bit clear, fixed bit set; offsets stay even for the checksum.
        even = np.arange(0, NOISE_BYTES - 4096, 2)
        self.short_starts = even[(pool[even] & 0xC0) == 0x40]

    def sums(self, starts: Ints, sizes: Ints) -> Ints:
        """Returns the 16-bit word sums of slices; a last odd byte counts as the high one."""
        ends = starts // 2 + sizes // 2
        last = self._pool[np.minimum(starts + sizes - 1, NOISE_BYTES - 1)].astype(np.int64) << 8
        total: Ints = self._sums[ends] - self._sums[starts // 2]
        return total + np.where(sizes % 2 == 1, last, 0)


def word_sum(data: bytes) -> int:
    """Returns a number congruent to the sum of 16-bit words, modulo 65535."""
    value = int.from_bytes(data, "big")
    return (value << 8 if len(data) % 2 else value) % 65535


@dataclass(slots=True)
class Ends:
    """Addresses and ports of flows, one entry each; IPv4 addresses are in the `host` columns."""

    ipv6: npt.NDArray[np.bool_]
    nets: tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]
    hosts: tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]
    ports: tuple[Ints, Ints]
    vlan: int

    def server_address(self, flow: int) -> bytes:
        """Returns the packed address that DNS answers name for the flow's hostname."""
        if self.ipv6[flow]:
            net, host = int(self.nets[1][flow]), int(self.hosts[1][flow])
            return net.to_bytes(8, "big") + host.to_bytes(8, "big")
        return int(self.hosts[1][flow]).to_bytes(4, "big")


def assign_ends(flows: Flows, profile: Profile, rng: np.random.Generator) -> Ends:
    """Gives each flow a client address of its home, a server by name, and a 5-tuple of its own."""
    count = len(flows)
    ipv6 = flows.home % 100 < profile.ipv6
    dns = flows.kind == DNS
    server = flows.name % SERVERS
    client_host = np.where(ipv6, (flows.home << 20 | 0x1000) + flows.temporary * 7919,
                           CLIENT_V4 + flows.home)  # fmt: skip
    server_host = np.where(ipv6, server + 1, np.where(dns, RESOLVER_V4, SERVER_V4 + server))
    server_net = np.where(dns, RESOLVER_V6, SERVER_V6).astype(np.uint64)
    port = rng.integers(32768, 61000, size=count)
    service = np.array(SERVER_PORTS)[flows.kind]
    while True:
        key = ((client_host * SERVERS + server_host) << 20 | port << 2) ^ flows.kind
        _, first = np.unique(key, return_index=True)
        if len(first) == count:
            break
        again = np.ones(count, dtype=bool)
        again[first] = False
        port[again] = rng.integers(1024, 65536, size=int(again.sum()))
    client_net = (CLIENT_V6 + (flows.home << 8)).astype(np.uint64)  # a /56 for each: a user
    return Ends(
        ipv6,
        (client_net, server_net),
        (client_host.astype(np.uint64), server_host.astype(np.uint64)),
        (port, service),
        profile.vlan,
    )


@dataclass(slots=True)
class Packets:
    """Columns with one entry a packet, flow after flow until `order` sorts them by time."""

    flow: Ints
    side: Ints
    flags: Ints
    size: Ints
    start: Ints
    special: Ints
    words: Ints
    seq: Ints
    ack: Ints
    t_us: Ints

    def order(self) -> Ints:
        """Returns the packets' indices by time; a flow's packets keep their order."""
        return np.argsort(self.t_us, kind="stable")


def _before(values: Ints, starts: Ints, flow: Ints) -> Ints:
    """Returns for each packet the sum of `values` over the earlier packets of its flow."""
    running = np.cumsum(values) - values
    return running - running[starts][flow]


def _times(steps: tuple[Ints, Ints, Ints], starts: Ints, span_s: int,
           rng: np.random.Generator) -> Ints:  # fmt: skip
    """Returns microseconds: flows start anywhere in the span, answers take half a round trip."""
    flow, side, _ = steps
    flows, packets = len(starts), len(flow)
    half = rng.integers(2_000, 40_000, size=flows)
    turned = np.concatenate([[False], side[1:] != side[:-1]])
    jitter = rng.integers(0, 100, size=packets)
    gap = np.where(turned, half[flow] * (90 + jitter // 2) // 100, 10 + jitter)
    gap[starts] = 0
    begin = rng.integers(0, span_s * 1_000_000, size=flows)
    return begin[flow] + _before(gap, starts, flow) + gap


def _begins_record(kind: Ints, code: Ints, size: Ints) -> npt.NDArray[np.bool_]:
    """Marks packets that begin a record of application data; of two full segments, the first."""
    alone = (code == PART) | (code == TINY) | ((code == FULL) & (np.roll(code, 1) != FULL))
    begins: npt.NDArray[np.bool_] = (kind == TLS) & alone & (size > RECORD_HEAD)
    return begins


def lay_out(flows: Flows, profile: Profile, noise: Noise, span_s: int,
            rng: np.random.Generator) -> Packets:  # fmt: skip
    """Writes every flow's script out into packet columns."""
    known: dict[tuple[int, int, int], Ints] = {}
    scripts = []
    for key in zip(flows.kind.tolist(), flows.parts.tolist(), flows.blocks.tolist(), strict=True):
        if key not in known:
            known[key] = np.array(script(*key, profile), dtype=np.int64)
        scripts.append(known[key])
    lengths = np.array([len(steps) for steps in scripts])
    side, flags, code = np.concatenate(scripts).T
    flow = np.repeat(np.arange(len(flows)), lengths)
    starts = np.cumsum(lengths) - lengths
    special = np.where(code >= 0, flows.first_special[flow] + code, -1)
    special_sizes = np.array([len(data) for data in flows.specials])
    special_words = np.array([word_sum(data) for data in flows.specials])
    size = np.select(
        [code >= 0, code == FULL, code == SHORT, code == PART, code == TINY],
        [special_sizes[special], MSS, QUIC_DATAGRAM, rng.integers(200, MSS, size=len(code)),
         rng.integers(2, 30, size=len(code))],
        0,
    )  # fmt: skip
    start = rng.integers(0, (NOISE_BYTES - 4096) // 2, size=len(code)) * 2
    start = np.where(code == SHORT, noise.short_starts[start % len(noise.short_starts)], start)
    begins = _begins_record(flows.kind[flow], code, size)
    start[begins] = noise.record_starts[size[begins]]
    words = np.where(code >= 0, special_words[special], noise.sums(start, size))
    words[size == 0] = 0
    opening = word_sum(TCP_OPTIONS)
    words[code == OPENING] = opening
    used = size + ((flags & SYN) != 0) + ((flags & FIN) != 0)
    sent = [_before(np.where(side == end, used, 0), starts, flow) for end in (0, 1)]
    first = rng.integers(0, 1 << 32, size=(2, len(flows)))
    seq = np.where(side == 0, first[0][flow] + sent[0], first[1][flow] + sent[1])
    ack = np.where(side == 0, first[1][flow] + sent[1], first[0][flow] + sent[0])
    ack[(flags & ACK) == 0] = 0
    t_us = _times((flow, side, flags), starts, span_s, rng)
    mask = (1 << 32) - 1
    return Packets(flow, side, flags, size, start, special, words, seq & mask, ack & mask, t_us)


def _halves(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Returns the sum of the four 16-bit words of each value."""
    word = np.uint64(0xFFFF)
    return sum((values >> np.uint64(16 * i) & word for i in range(4)), np.zeros_like(values))


def _checksum(total: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Folds word sums to 16 bits and complement them (RFC 1071)."""
    for _ in range(3):
        total = (total & np.uint64(0xFFFF)) + (total >> np.uint64(16))
    return total ^ np.uint64(0xFFFF)


def header_rows(packets: Packets, ends: Ends, chosen: Ints, ipv6: bool, tcp: bool) -> Bytes:
    """Returns one row a packet: pcap record header up to the end of the TCP or UDP header.

    `chosen` are indices of packets that all have this address family and protocol.
    """
    tag = _VLAN if ends.vlan else []
    ethernet = _ETHERNET[:2] + tag + _ETHERNET[2:]
    dtype = np.dtype(_RECORD + ethernet + (_IPV6 if ipv6 else _IPV4) + (_TCP if tcp else _UDP))
    rows = np.zeros(len(chosen), dtype=dtype)
    flow, side = packets.flow[chosen], packets.side[chosen]
    flags, size = packets.flags[chosen], packets.size[chosen]
    options = np.where((flags & SYN) != 0, len(TCP_OPTIONS), 0) if tcp else 0
    l4_size = size + (20 + options if tcp else 8)
    rows["sec"] = START_S + packets.t_us[chosen] // 1_000_000
    rows["usec"] = packets.t_us[chosen] % 1_000_000
    rows["caplen"] = rows["len"] = l4_size + (54 if ipv6 else 34) + (4 if tag else 0)
    if tag:
        rows["tpid"], rows["tci"] = 0x8100, ends.vlan
    rows["src_mac"], rows["dst_mac"] = np.array(MACS)[side], np.array(MACS)[1 - side]
    proto = 6 if tcp else 17
    source_host = np.where(side == 0, ends.hosts[0][flow], ends.hosts[1][flow])
    target_host = np.where(side == 0, ends.hosts[1][flow], ends.hosts[0][flow])
    total = _halves(source_host) + _halves(target_host)
    if ipv6:
        rows["ethertype"], rows["version_flow"], rows["ip_len"] = 0x86DD, 6 << 28, l4_size
        rows["next_hop"] = proto << 8 | 64
        rows["src_net"] = np.where(side == 0, ends.nets[0][flow], ends.nets[1][flow])
        rows["dst_net"] = np.where(side == 0, ends.nets[1][flow], ends.nets[0][flow])
        rows["src_host"], rows["dst_host"] = source_host, target_host
        total = total + _halves(ends.nets[0][flow]) + _halves(ends.nets[1][flow])
    else:
        rows["ethertype"], rows["version_tos"], rows["ip_len"] = 0x0800, 0x4500, 20 + l4_size
        rows["id"], rows["frag"], rows["ttl_proto"] = chosen & 0xFFFF, 0x4000, 60 << 8 | proto
        rows["src"], rows["dst"] = source_host, target_host
        fixed = 0x4500 + 0x4000 + (60 << 8 | proto)
        line = rows["ip_len"].astype(np.uint64) + rows["id"] + np.uint64(fixed)
        rows["ip_sum"] = _checksum(total + line)
    _fill_transport(rows, packets, ends, chosen, total + (l4_size + proto).astype(np.uint64))
    return rows.view(np.uint8).reshape(len(chosen), dtype.itemsize)


def _fill_transport(rows: npt.NDArray[np.void], packets: Packets, ends: Ends, chosen: Ints,
                    pseudo: npt.NDArray[np.uint64]) -> None:  # fmt: skip
    """Fills the TCP or UDP header; `pseudo` is the word sum of the pseudo header."""
    flow, side = packets.flow[chosen], packets.side[chosen]
    rows["sport"] = np.where(side == 0, ends.ports[0][flow], ends.ports[1][flow])
    rows["dport"] = np.where(side == 0, ends.ports[1][flow], ends.ports[0][flow])
    total = pseudo + (ends.ports[0][flow] + ends.ports[1][flow]).astype(np.uint64)
    total = total + packets.words[chosen].astype(np.uint64)
    if "seq" in (rows.dtype.names or ()):
        flags, seq, ack = packets.flags[chosen], packets.seq[chosen], packets.ack[chosen]
        words = np.where((flags & SYN) != 0, (20 + len(TCP_OPTIONS)) // 4, 5)
        rows["seq"], rows["ack"], rows["window"] = seq, ack, 502
        rows["offset_flags"] = words << 12 | flags
        total = total + _halves(seq.astype(np.uint64)) + _halves(ack.astype(np.uint64))
        rows["sum"] = _checksum(total + rows["offset_flags"] + np.uint64(502))
    else:
        rows["udp_len"] = packets.size[chosen] + 8
        answer = _checksum(total + rows["udp_len"])
        rows["sum"] = np.where(answer == 0, 0xFFFF, answer)  # 0 would mean "no checksum"


def frames(flows: Flows, packets: Packets, ends: Ends, noise: Noise, batch: int) -> Iterator[bytes]:
    """Yields pcap records in order of time, `batch` packets joined at a time."""
    order = packets.order()
    is_tcp = np.isin(flows.kind, (TLS, HTTP))
    pool = memoryview(noise.data)
    for begin in range(0, len(order), batch):
        chosen = order[begin : begin + batch]
        flow = packets.flow[chosen]
        group = ends.ipv6[flow] * 2 + is_tcp[flow]
        pieces: list[bytes | memoryview] = [b""] * (2 * len(chosen))
        for i in range(4):
            where = np.flatnonzero(group == i)
            rows = header_rows(packets, ends, chosen[where], i >= 2, i % 2 == 1)
            for place, row in zip((2 * where).tolist(), rows, strict=True):
                pieces[place] = row.data
        columns = (packets.special, packets.start, packets.size, packets.flags)
        lists = (column[chosen].tolist() for column in columns)
        for i, (special, start, size, flags) in enumerate(zip(*lists, strict=True)):
            if special >= 0:
                pieces[2 * i + 1] = flows.specials[special]
            elif size:
                pieces[2 * i + 1] = pool[start : start + size]
            elif flags & SYN:
                pieces[2 * i + 1] = TCP_OPTIONS
        yield b"".join(pieces)
