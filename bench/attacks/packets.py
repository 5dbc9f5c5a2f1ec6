# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The capture of a population: pcap with nanoseconds, raw IPv4, an hour of flows at a time.

No Python runs for a packet. There are four shapes of records (a TCP segment without its payload, a
ClientHello, a DNS question, a DNS answer), each a structured dtype whose size is a multiple of
eight bytes, so that records are put in order of time as whole words. Payloads are cut, as with a
small snaplen: the lengths in the headers are the sent lengths.

Usage: python bench/attacks/packets.py usual OUT.pcap [--users 3000] [--days 4] [--seed 1]

writes the capture and, as OUT.truth.npz, the flows, the names and the users' addresses.
"""

import argparse
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from population import (
    HELLO_BYTES,
    HOUR,
    ROUND_TRIP_NS,
    TASTES,
    Flows,
    Ints,
    Population,
    Scale,
    make,
)

from zanon_net.bench.messages import (
    dns_labels,
    dns_query,
    dns_response,
    server_name_extension,
    u16,
    vec,
)

PCAP_NS = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101)
SYN, RST, PSH, ACK = 2, 4, 8, 16
RESOLVER = 203 << 24 | 113 << 8 | 53
NAME_ROOM = 40  # the longest name's, in a hello

RECORD = [("s", "<u4"), ("ns", "<u4"), ("captured", "<u4"), ("length", "<u4")]
IPV4 = [
    ("version", "u1"), ("tos", "u1"), ("total", ">u2"), ("ident", ">u2"), ("fragment", ">u2"),
    ("ttl", "u1"), ("proto", "u1"), ("ip_sum", ">u2"), ("source", ">u4"), ("target", ">u4"),
]  # fmt: skip
TCP = [
    ("source_port", ">u2"), ("target_port", ">u2"), ("seq", ">u4"), ("ack", ">u4"),
    ("offset", "u1"), ("flags", "u1"), ("window", ">u2"), ("sum", ">u2"), ("urgent", ">u2"),
]  # fmt: skip
UDP = [("source_port", ">u2"), ("target_port", ">u2"), ("udp_length", ">u2"), ("sum", ">u2")]


def shape(headers: list[tuple[str, str]], payload: int) -> np.dtype:
    """Returns a record with these headers and room for a payload, padded to whole words."""
    plain = np.dtype(RECORD + headers)
    room = -(-(plain.itemsize + payload) // 8) * 8 - plain.itemsize
    return np.dtype(RECORD + headers + ([("payload", "u1", (room,))] if room else []))


def hello_head() -> bytes:
    """Returns a ClientHello's record up to the extensions, which are two: the name, and padding."""
    block = len(server_name_extension(b"")) + 4 + NAME_ROOM
    body = b"\3\3" + bytes(range(32)) + vec(1, b"") + vec(2, b"\x13\x01\x13\x02") + b"\1\0"
    filler = HELLO_BYTES - 5 - 4 - len(body) - 2 - block
    extensions = u16(35) + vec(2, bytes(filler - 4))
    hello = b"\1" + (HELLO_BYTES - 9).to_bytes(3, "big") + body
    return b"\x16\3\1" + u16(HELLO_BYTES - 5) + hello + u16(filler + block) + extensions


def table(rows: list[bytes]) -> npt.NDArray[np.uint8]:
    """Rows of bytes, filled up with zeros."""
    width = max(map(len, rows))
    joined = b"".join(row.ljust(width, b"\0") for row in rows)
    return np.frombuffer(joined, dtype=np.uint8).reshape(len(rows), width)


class Payloads:
    """Messages about each name: the last part of a hello, DNS questions and answers."""

    def __init__(self, population: Population) -> None:
        names = [name.encode() for name in population.hosts.names]
        self.head = hello_head()
        self.hello = table(
            [server_name_extension(n) + u16(21) + vec(2, bytes(NAME_ROOM - len(n))) for n in names]
        )
        assert len(self.head) + self.hello.shape[1] == HELLO_BYTES
        labels = [dns_labels(name) for name in names]
        addresses = [address.to_bytes(4, "big") for address in population.hosts.address.tolist()]
        self.question = table([dns_query(0, text, 1, edns=False) for text in labels])
        self.answer = table(
            [dns_response(0, text, 1, [a]) for text, a in zip(labels, addresses, strict=True)]
        )


def stamp(rows: npt.NDArray, times: Ints, room: int, length: Ints | int) -> None:
    """Writes a record's header: its time, bytes captured, bytes sent."""
    rows["s"], rows["ns"] = times // 10**9, times % 10**9
    rows["captured"], rows["length"] = room - 16, np.maximum(length, room - 16)


def ends(rows: npt.NDArray, population: Population, which: Ints, back: npt.NDArray | bool) -> None:
    """Writes the addresses and ports of these flows' packets; `back`: from the server."""
    flows = population.flows
    client = population.address[flows.user[which]]
    server = np.where(flows.tcp[which], population.hosts.address[flows.name[which]], RESOLVER)
    port = 1024 + which % 64_000
    service = np.where(flows.tcp[which], 443, 53)
    for near, far, ours, theirs in (
        ("source", "target", client, server),
        ("source_port", "target_port", port, service),
    ):
        rows[near] = np.where(back, theirs, ours)
        rows[far] = np.where(back, ours, theirs)


def headers(kind: np.dtype, count: int, proto: int) -> npt.NDArray:
    """Rows whose IP header is filled but for lengths and addresses."""
    rows = np.zeros(count, dtype=kind)
    rows["version"], rows["fragment"], rows["ttl"], rows["proto"] = 0x45, 0x4000, 64, proto
    return rows


class Traffic:
    """Makes the records of flows."""

    def __init__(self, population: Population) -> None:
        self.population = population
        self.payloads = Payloads(population)

    def segments(self, which: Ints) -> Iterator[tuple[Ints, npt.NDArray]]:
        """Yields the TCP packets of these flows: SYN, SYN-ACK, hello with request, answers, RST."""
        flows = self.population.flows
        bursts = flows.s_pkts[which] - 1
        isn, other = which * 2_654_435_761, which * 2_246_822_519
        sent, received = flows.c_bytes[which], flows.s_bytes[which]
        start, end = flows.start_ns[which], flows.end_ns[which]
        trip = start + ROUND_TRIP_NS
        yield self.plain(which, start, False, SYN, isn, isn * 0, 0)
        yield self.plain(which, trip, True, SYN | ACK, other, isn + 1, 0)
        yield self.hellos(which, trip + 1_000_000, isn + 1, other + 1, sent)
        flow = np.repeat(np.arange(len(which)), bursts)
        nth = np.arange(len(flow)) - np.repeat(np.cumsum(bursts) - bursts, bursts)
        size = received[flow] // bursts[flow]
        last = nth == bursts[flow] - 1
        length = np.where(last, received[flow] - size * nth, size)
        yield self.plain(
            which[flow],
            (trip + 2 * ROUND_TRIP_NS)[flow] + nth * 15_000_000,
            True,
            ACK | PSH,
            (other + 1)[flow] + size * nth,
            (isn + 1 + sent)[flow],
            length,
        )
        yield self.plain(which, end, False, RST | ACK, isn + 1 + sent, other + 1 + received, 0)

    def plain(
        self, which: Ints, times: Ints, back: bool, flags: int, seq: Ints, ack: Ints,
        payload: Ints | int,
    ) -> tuple[Ints, npt.NDArray]:  # fmt: skip
        """Returns a segment of each flow, whose payload is cut off."""
        kind = shape(TCP_IP, 0)
        return times, self.tcp(kind, which, times, back, (flags, seq, ack, payload))

    def tcp(
        self, kind: np.dtype, which: Ints, times: Ints, back: bool,
        said: tuple[int, Ints, Ints, Ints | int],
    ) -> npt.NDArray:  # fmt: skip
        """Rows with all headers filled."""
        flags, seq, ack, payload = said
        rows = headers(kind, len(which), 6)
        ends(rows, self.population, which, back)
        rows["seq"], rows["ack"] = seq & 0xFFFFFFFF, ack & 0xFFFFFFFF
        rows["offset"], rows["flags"], rows["window"] = 0x50, flags, 8192
        rows["total"] = 40 + payload
        stamp(rows, times, kind.itemsize, 40 + payload)
        return rows

    def hellos(
        self, which: Ints, times: Ints, seq: Ints, ack: Ints, sent: Ints
    ) -> tuple[Ints, npt.NDArray]:
        """Returns the client's hello, followed in the segment by a request that is cut off."""
        head, tails = self.payloads.head, self.payloads.hello
        kind = shape(TCP_IP, HELLO_BYTES + 5)
        rows = self.tcp(kind, which, times, False, (ACK | PSH, seq, ack, sent))
        at = len(head)
        rows["payload"][:, :at] = np.frombuffer(head, dtype=np.uint8)
        rows["payload"][:, at:HELLO_BYTES] = tails[self.population.flows.name[which]]
        request = sent - HELLO_BYTES - 5
        for i, value in enumerate((0x17, 3, 3, request >> 8, request & 255)):
            rows["payload"][:, HELLO_BYTES + i] = value
        return times, rows

    def datagrams(self, which: Ints, back: bool) -> tuple[Ints, npt.NDArray]:
        """Returns the DNS question of each flow, or its answer."""
        flows = self.population.flows
        texts = self.payloads.answer if back else self.payloads.question
        kind = shape(IPV4 + UDP, texts.shape[1])
        rows = headers(kind, len(which), 17)
        ends(rows, self.population, which, back)
        size = (flows.s_bytes if back else flows.c_bytes)[which]
        rows["total"], rows["udp_length"] = 28 + size, 8 + size
        rows["payload"][:, : texts.shape[1]] = texts[flows.name[which]]
        rows["payload"][:, 0], rows["payload"][:, 1] = which >> 8 & 255, which & 255
        times = (flows.end_ns if back else flows.start_ns)[which]
        stamp(rows, times, kind.itemsize, 28 + size)
        return times, rows


TCP_IP = IPV4 + TCP


def merge(parts: list[tuple[Ints, npt.NDArray]]) -> npt.NDArray[np.uint64]:
    """Returns the records of all parts in order of time, as words."""
    times = np.concatenate([t for t, _ in parts])
    width = np.concatenate([np.full(len(t), rows.dtype.itemsize // 8) for t, rows in parts])
    order = np.argsort(times, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    ordered = width[order]
    place[order] = np.cumsum(ordered) - ordered
    out = np.empty(int(width.sum()), dtype=np.uint64)
    begin = 0
    for t, rows in parts:
        words = rows.view(np.uint64).reshape(len(t), -1)
        at = place[begin : begin + len(t)]
        for i in range(words.shape[1]):
            out[at + i] = words[:, i]
        begin += len(t)
    return out


def chunks(
    population: Population, from_ns: int = 0, step: int = HOUR
) -> Iterator[npt.NDArray[np.uint64]]:
    """Yields the records of flows that start at `from_ns` or later, an hour at a time."""
    traffic, flows = Traffic(population), population.flows
    waiting: list[tuple[Ints, npt.NDArray]] = []
    first, last = max(from_ns, int(flows.start_ns[0])), int(flows.start_ns[-1])
    for begin in range(first, last + 1, step):
        low, high = np.searchsorted(flows.start_ns, [begin, begin + step])
        which = np.arange(low, high)
        tcp = which[flows.tcp[low:high]]
        dns = which[~flows.tcp[low:high]]
        parts = waiting + list(traffic.segments(tcp))
        parts += [traffic.datagrams(dns, back) for back in (False, True)]
        is_last = begin + step > last
        now = [(t, rows) if is_last else (t[t < begin + step], rows[t < begin + step])
               for t, rows in parts]  # fmt: skip
        waiting = [(t[t >= begin + step], rows[t >= begin + step]) for t, rows in parts]
        waiting = [(t, rows) for t, rows in waiting if len(t)]
        if any(len(t) for t, _ in now):
            yield merge(now)


def write(population: Population, path: Path, from_ns: int = 0) -> int:
    """Writes the capture of flows that start at `from_ns` or later; returns its size in bytes."""
    with path.open("wb", buffering=0) as out:
        out.write(PCAP_NS)
        for words in chunks(population, from_ns):
            rest = memoryview(words).cast("B")
            while rest:
                rest = rest[out.write(rest) :]
        return out.tell()


def main() -> None:
    """Writes a population's capture and its truth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=list(TASTES))
    parser.add_argument("out", type=Path, metavar="OUT.pcap")
    parser.add_argument("--users", type=int, default=Scale().users)
    parser.add_argument("--days", type=int, default=Scale().days)
    parser.add_argument("--seed", type=int, default=1)
    said = parser.parse_args()
    began = time.monotonic()
    population = make(said.kind, Scale(users=said.users, days=said.days), said.seed)
    size = write(population, said.out)
    columns = {field: getattr(population.flows, field) for field in Flows.__slots__}
    np.savez(said.out.with_suffix(".truth.npz"), names=np.array(population.hosts.names),
             address=population.address, **columns)  # fmt: skip
    print(f"{len(population.flows)} flows, {size} bytes, {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
