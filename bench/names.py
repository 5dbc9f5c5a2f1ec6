# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What it costs to read a name, by protocol, beside other tools on the same bytes.

Usage: python bench/names.py [--count 40000] [--repeat 3]

Each message is distinct and comes from a user and a flow of its own. `engine` is the whole job for
it: decoding the frame, opening the flow, reading the name, its vote, the record. `parse` is one
call of zanon_net.parse for each message. Peers that are not installed are left out with a note.
CPU time of this process, the best of several turns.
"""

import argparse
import platform
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from zanon_net import _core, parse

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "pcaps"))

from quic_initial import LongHeader, client_initials
from traffic import Dice, HelloShape, client_hello

BATCH = 8192
START_NS = 1_700_000_000 * 10**9
ETHERNET = bytes.fromhex("020000000001020000000002") + b"\x08\0"


@dataclass(frozen=True, slots=True)
class Sample:
    """UDP payloads to a port, and the name in each."""

    what: str
    port: int
    payloads: list[bytes]
    names: list[str]


Reader = Callable[[Sample], int]
"""Reads all of a sample and returns how many of its names it found."""


def quic_sample(count: int) -> Sample:
    """Return Initials as browsers send them: two CRYPTO frames out of order, a PING, PADDING."""
    dice = Dice("bench/names")
    payloads, names = [], []
    for n in range(count):
        name = f"host{n}.bench.example"
        hello = client_hello(name.encode(), HelloShape(quic_scid=b""), dice)
        ids = LongHeader(dice.bytes(8), b"", 0)
        payloads += client_initials(hello, ids, (), dice)
        names.append(name)
    return Sample("QUIC Initial", 443, payloads, names)


def frames_of(sample: Sample) -> Iterator[bytes]:
    """Yield a frame for each payload, each from an address of its own."""
    for n, payload in enumerate(sample.payloads):
        udp = struct.pack(">HHHH", 40000, sample.port, 8 + len(payload), 0)
        ends = struct.pack(">II", 0x0A000000 + n, 0xC6336407)
        head = struct.pack(">BBHHHBBH", 0x45, 0, 28 + len(payload), 0, 0x4000, 64, 17, 0)
        yield ETHERNET + head + ends + udp + payload


# ---- ours ---------------------------------------------------------------------------------------


def make_engine(count: int) -> _core.Engine:
    """Return an engine that releases every name when it is seen."""
    room = 2 * count + 1024
    return _core.Engine(
        z=1, window_ns=3600 * 10**9, rotate_ns=3600 * 10**9, established=False, dns_votes=True,
        internal=None, never=(), user_prefix=(32, 64), key_file=None, keep_client_port=False,
        exact=False, outputs=("jsonl",), layer7=False, max_flows=room, max_tuples=room,
        max_attributes=room,
    )  # fmt: skip


def engine_reader(sample: Sample) -> Reader:
    """Return a reader that feeds a fresh engine; frames are laid out before it runs."""
    frames = list(frames_of(sample))
    batches = []
    for at in range(0, len(frames), BATCH):
        part = frames[at : at + BATCH]
        sizes = np.array([len(frame) for frame in part], dtype=np.uint32)
        times = np.arange(at, at + len(part), dtype=np.int64) * 1000 + START_NS
        batches.append((b"".join(part), times, sizes))

    def read(sample: Sample) -> int:
        engine = make_engine(len(sample.payloads))
        for data, times, sizes in batches:
            engine.feed(data, times, sizes, sizes, 1)
            engine.take("jsonl")
        engine.finish()
        released = engine.stats["released"]
        engine.close()
        return released

    return read


def parse_reader(sample: Sample) -> int:
    """Read each payload with zanon_net.parse."""
    pairs = zip(sample.payloads, sample.names, strict=True)
    return sum(parse.quic_initial(payload).name == name for payload, name in pairs)


# ---- peers --------------------------------------------------------------------------------------


def aioquic_reader(sample: Sample) -> int:
    """Open each Initial with aioquic and read the ClientHello with its TLS."""
    from aioquic.buffer import Buffer  # type: ignore[import-not-found]
    from aioquic.quic.crypto import CryptoPair  # type: ignore[import-not-found]
    from aioquic.quic.packet import pull_quic_header  # type: ignore[import-not-found]
    from aioquic.tls import pull_client_hello  # type: ignore[import-not-found]

    found = 0
    for payload, name in zip(sample.payloads, sample.names, strict=True):
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
    """Give each frame to mercury-python and take the name from its JSON."""
    import mercury  # type: ignore[import-not-found]

    reader = mercury.Mercury()
    found = 0
    for frame, name in zip(frames_of(sample), sample.names, strict=True):
        record = reader.get_mercury_json(frame)
        found += record["tls"]["client"]["server_name"] == name
    return found


PEERS: dict[str, tuple[str, Reader, int]] = {
    # label: (distribution, reader, a share of the messages is enough: they are slow)
    "aioquic": ("aioquic", aioquic_reader, 8),
    "mercury-python": ("mercury-python", mercury_reader, 8),
}


def measure(reader: Reader, sample: Sample, repeat: int) -> float:
    """Return the best turn's messages per CPU-second; raise SystemExit when a name was missed."""
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
    """Print a line of the table."""
    print(f"{sample.what:<16} {label:<24} {rate / 1e3:>10.1f} k/s {1e9 / rate:>10.0f} ns")


def bench(sample: Sample, repeat: int) -> None:
    """Measure our readers and the peers' on one sample."""
    report(sample, "zanon_net engine", measure(engine_reader(sample), sample, repeat))
    report(sample, "zanon_net.parse", measure(parse_reader, sample, repeat))
    for label, (distribution, reader, share) in PEERS.items():
        try:
            named = f"{label} {version(distribution)}"
        except PackageNotFoundError:
            print(f"{sample.what:<16} {label:<24} not installed (pip install {distribution})")
            continue
        n = len(sample.names) // share
        part = Sample(sample.what, sample.port, sample.payloads[:n], sample.names[:n])
        report(part, named, measure(reader, part, repeat))


def main(arguments: Sequence[str]) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=40_000, help="messages of each kind")
    parser.add_argument("--repeat", type=int, default=3, help="turns; the best counts")
    chosen = parser.parse_args(arguments)
    print(f"{platform.machine()}, Python {platform.python_version()}, {chosen.count} messages")
    bench(quic_sample(chosen.count), chosen.repeat)


if __name__ == "__main__":
    main(sys.argv[1:])
