# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of reading a name, by protocol, beside other tools on the same bytes.

Usage: python bench/names.py [--count 40000] [--repeat 3]

Each message is distinct and comes from a user and a flow of its own. `engine` is the whole job for
a message: decoding its frames (over TCP also a SYN), opening the flow, reading the name, its vote,
the record. `parse` is one call of zanon_net.parse for each message. Peers that are not installed
are left out with a note. Figures are CPU time of this process, the best of several turns.
"""

import argparse
import platform
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from zanon_net import Config, _core, parse
from zanon_net.bench.messages import (
    Dice,
    HelloShape,
    client_hello,
    dns_labels,
    dns_query,
    hello_record,
    http_request,
)
from zanon_net.bench.quic_packets import LongHeader, client_initials

BATCH = 8192
START_NS = 1_700_000_000 * 10**9
ETHERNET = bytes.fromhex("020000000001020000000002") + b"\x08\0"


@dataclass(frozen=True, slots=True)
class Sample:
    """Messages to a port, each in one or more payloads, and the name in each."""

    what: str
    tcp: bool
    port: int
    messages: list[list[bytes]]
    names: list[str]

    def first(self, n: int) -> "Sample":
        """Returns the first n messages of it."""
        return replace(self, messages=self.messages[:n], names=self.names[:n])


Reader = Callable[[Sample], int]
"""Reads all of a sample and returns how many of its names it found."""


def names_of(count: int) -> list[str]:
    """Returns `count` different names."""
    return [f"host{n}.bench.example" for n in range(count)]


def quic_sample(count: int) -> Sample:
    """Returns Initials as browsers send them: two CRYPTO frames out of order, a PING, PADDING."""
    dice, messages = Dice("bench/names"), []
    for name in names_of(count):
        hello = client_hello(name.encode(), HelloShape(quic_scid=b""), dice)
        ids = LongHeader(dice.bytes(8), b"", 0)
        messages.append(client_initials(hello, ids, (), dice))
    return Sample("QUIC Initial", False, 443, messages, names_of(count))


def tls_sample(count: int, split: bool) -> Sample:
    """Returns ClientHellos, each in one segment, or one with ML-KEM's key share in two."""
    dice, messages = Dice("bench/names"), []
    for name in names_of(count):
        hello = hello_record(name.encode(), HelloShape(mlkem=split), dice)
        messages.append([hello[:1400], hello[1400:]] if split else [hello])
    what = "TLS hello in 2" if split else "TLS hello"
    return Sample(what, True, 443, messages, names_of(count))


def http_sample(count: int) -> Sample:
    """Returns small GET requests."""
    messages = [[http_request(b"GET", b"/index.html", name.encode())] for name in names_of(count)]
    return Sample("HTTP request", True, 80, messages, names_of(count))


def dns_sample(count: int) -> Sample:
    """Returns queries with EDNS."""
    messages = [
        [dns_query(n & 0xFFFF, dns_labels(name.encode()), 1, edns=True)]
        for n, name in enumerate(names_of(count))
    ]
    return Sample("DNS query", False, 53, messages, names_of(count))


def frame(sample: Sample, user: int, segment: bytes) -> bytes:
    """Returns a frame with a segment or datagram from an address of the user's own."""
    ends = struct.pack(">II", 0x0A000000 + user, 0xC6336407)
    proto = 6 if sample.tcp else 17
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), 0, 0x4000, 64, proto, 0)
    return ETHERNET + head + ends + segment


def frames_of(sample: Sample) -> Iterator[bytes]:
    """Yields the frames of each message; over TCP a SYN comes first."""
    for user, payloads in enumerate(sample.messages):
        if not sample.tcp:
            for payload in payloads:
                udp = struct.pack(">HHHH", 40000, sample.port, 8 + len(payload), 0)
                yield frame(sample, user, udp + payload)
            continue
        sequence = 1000
        for payload, flags in zip([b"", *payloads], [2, *[0x18] * len(payloads)], strict=True):
            numbers = struct.pack(">II", sequence, 0 if flags == 2 else 1)
            tcp = struct.pack(">HH", 40000, sample.port) + numbers
            tcp += struct.pack(">BBHHH", 0x50, flags, 65535, 0, 0)
            yield frame(sample, user, tcp + payload)
            sequence += 1 if flags == 2 else len(payload)


# ---- ours ---------------------------------------------------------------------------------------


def make_engine(count: int) -> _core.PacketEngine:
    """Returns an engine that releases every name when it is seen."""
    room = 2 * count + 1024
    limits = {"max_flows": room, "max_tuples": room, "max_attributes": room}
    config = Config(z=1, evidence="any", format="jsonl", columns="core", **limits)
    return _core.PacketEngine(**config.engine_arguments())


def engine_reader(sample: Sample) -> Reader:
    """Returns a reader that feeds a fresh engine; frames are laid out before it runs."""
    frames = list(frames_of(sample))
    batches = []
    for at in range(0, len(frames), BATCH):
        part = frames[at : at + BATCH]
        sizes = np.array([len(frame) for frame in part], dtype=np.uint32)
        times = np.arange(at, at + len(part), dtype=np.int64) * 1000 + START_NS
        batches.append((b"".join(part), times, sizes))

    def read(sample: Sample) -> int:
        engine = make_engine(len(sample.messages))
        for data, times, sizes in batches:
            engine.feed(data, times, sizes, sizes, 1)
            engine.take("jsonl")
        engine.finish()
        released = engine.stats["released"]
        engine.close()
        return released

    return read


def parse_reader(sample: Sample) -> int:
    """Reads each message with zanon_net.parse, which wants it in one piece."""
    parsers: dict[str, Callable[[bytes], parse.Parsed]] = {
        "QUIC": parse.quic_initial,
        "TLS": parse.tls_client_hello,
        "HTTP": parse.http_host,
        "DNS": parse.dns_question,
    }
    parser = parsers[sample.what.split(" ", maxsplit=1)[0]]
    pairs = zip(sample.messages, sample.names, strict=True)
    return sum(parser(b"".join(payloads)).name == name for payloads, name in pairs)


# ---- peers --------------------------------------------------------------------------------------


def aioquic_reader(sample: Sample) -> int:
    """Opens each Initial with aioquic and reads the ClientHello with its TLS."""
    from aioquic.buffer import Buffer  # type: ignore[import-not-found]
    from aioquic.quic.crypto import CryptoPair  # type: ignore[import-not-found]
    from aioquic.quic.packet import pull_quic_header  # type: ignore[import-not-found]
    from aioquic.tls import pull_client_hello  # type: ignore[import-not-found]

    found = 0
    for (payload,), name in zip(sample.messages, sample.names, strict=True):
        datagram = Buffer(data=payload)
        header = pull_quic_header(datagram)
        pair = CryptoPair()
        pair.setup_initial(header.destination_cid, is_client=False, version=header.version)
        _, plain, _ = pair.decrypt_packet(payload, datagram.tell(), 0)
        frames, pieces = Buffer(data=plain), {}
        while (kind := frames.pull_uint_var()) != 0:
            if kind == 6:
                offset = frames.pull_uint_var()
                pieces[offset] = frames.pull_bytes(frames.pull_uint_var())
        hello = b"".join(pieces[offset] for offset in sorted(pieces))
        found += pull_client_hello(Buffer(data=hello)).server_name == name
    return found


def mercury_reader(sample: Sample) -> int:
    """Gives each frame to mercury-python and takes the name from its JSON."""
    import mercury  # type: ignore[import-not-found]

    reader = mercury.Mercury()
    wanted, found = set(sample.names), 0
    for data in frames_of(sample):
        record = reader.get_mercury_json(data) or {}
        found += record.get("tls", {}).get("client", {}).get("server_name") in wanted
        found += record.get("http", {}).get("request", {}).get("host") in wanted
    return found


def dpkt_reader(sample: Sample) -> int:
    """Decodes each frame with dpkt and reads the name with its TLS, HTTP or DNS."""
    import dpkt  # type: ignore[import-untyped]

    def server_name(hello: bytes) -> str:
        records, _ = dpkt.ssl.tls_multi_factory(hello)
        for kind, body in dpkt.ssl.TLSHandshake(records[0].data).data.extensions:
            if kind == 0:
                return str(body[5:].decode())
        return ""

    found = 0
    names = iter(sample.names)
    for data in frames_of(sample):
        transport = dpkt.ethernet.Ethernet(data).data.data
        if not transport.data:
            continue
        if sample.what.startswith("TLS"):
            name = server_name(transport.data)
        elif sample.what.startswith("HTTP"):
            name = dpkt.http.Request(transport.data).headers["host"]
        else:
            name = dpkt.dns.DNS(transport.data).qd[0].name
        found += name == next(names)
    return found


PEERS: dict[str, tuple[str, Reader, tuple[str, ...]]] = {
    # label: (distribution, reader, the samples that it can read)
    "aioquic": ("aioquic", aioquic_reader, ("QUIC Initial",)),
    "mercury-python": (
        "mercury-python",
        mercury_reader,
        ("QUIC Initial", "TLS hello", "HTTP request"),
    ),
    "dpkt": ("dpkt", dpkt_reader, ("TLS hello", "HTTP request", "DNS query")),
}
SHARE = 8  # peers, which are slow, get an eighth of the messages


def measure(reader: Reader, sample: Sample, repeat: int) -> float:
    """Returns the best turn's messages per CPU-second; raises SystemExit if a name was missed."""
    best = 0.0
    for _ in range(repeat):
        began = time.process_time()
        found = reader(sample)
        seconds = time.process_time() - began
        if found != len(sample.names):
            raise SystemExit(f"{found} of {len(sample.names)} names were found")
        best = max(best, len(sample.names) / seconds)
    return best


def report(sample: Sample, label: str, rate: float) -> None:
    """Prints a line of the table."""
    print(f"{sample.what:<16} {label:<24} {rate / 1e3:>10.1f} k/s {1e9 / rate:>10.0f} ns")


def bench(sample: Sample, repeat: int) -> None:
    """Measures our readers and the peers' on one sample."""
    report(sample, "zanon_net engine", measure(engine_reader(sample), sample, repeat))
    report(sample, "zanon_net.parse", measure(parse_reader, sample, repeat))
    for label, (distribution, reader, samples) in PEERS.items():
        if sample.what not in samples:
            continue
        try:
            named = f"{label} {version(distribution)}"
        except PackageNotFoundError:
            print(f"{sample.what:<16} {label:<24} not installed (pip install {distribution})")
            continue
        part = sample.first(len(sample.names) // SHARE)
        report(part, named, measure(reader, part, repeat))


def main(arguments: Sequence[str]) -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=40_000, help="messages of each kind")
    parser.add_argument("--repeat", type=int, default=3, help="turns; the best counts")
    chosen = parser.parse_args(arguments)
    print(f"{platform.machine()}, Python {platform.python_version()}, {chosen.count} messages")
    for sample in (
        tls_sample(chosen.count, split=False),
        tls_sample(chosen.count, split=True),
        http_sample(chosen.count),
        dns_sample(chosen.count),
        quic_sample(chosen.count),
    ):
        bench(sample, chosen.repeat)


if __name__ == "__main__":
    main(sys.argv[1:])
