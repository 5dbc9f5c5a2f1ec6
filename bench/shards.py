# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Compares `run --shards N` on captures that share no flow with one run over all packets.

Usage: python bench/shards.py [--profile isp] [--bytes 2G] [--shards 2] [--repeat 5]

Generates a trace, divides it by a symmetric hash of addresses and ports, and runs both in turns,
after all modules are imported. "cpu" is the CPU time of all processes, and "busiest" the CPU time
of a shard on average, which is the wall time with a free core for each process. The program ends
with an error if the released observations differ.
"""

import argparse
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import zanon_net
from zanon_net.keys import new_key

HERE = Path(__file__).resolve().parent
PCAP_HEADER, RECORD = 24, struct.Struct("<IIII")
IPV4, IPV6 = b"\x08\x00", b"\x86\xdd"


@dataclass(frozen=True)
class Outcome:
    """Seconds of one run. released: its observations, each with the number of its lines."""

    wall: float
    cpu: float
    busiest: float
    released: Counter[bytes]


def shard_of(frame: memoryview, shards: int) -> int:
    """Returns the shard of a frame of Ethernet, the same for both directions of a flow."""
    kind = bytes(frame[12:14])
    if kind == IPV4:
        begin, length, ports = 26, 4, 14 + (frame[14] & 15) * 4
    elif kind == IPV6:
        begin, length, ports = 22, 16, 54
    else:
        return 0
    source = bytes(frame[begin : begin + length]) + bytes(frame[ports : ports + 2])
    target = bytes(frame[begin + length : begin + 2 * length]) + bytes(frame[ports + 2 : ports + 4])
    return zlib.crc32(min(source, target) + max(source, target)) % shards


def divide(trace: Path, shards: int) -> list[Path]:
    """Writes the frames of each shard to a capture of its own."""
    data = memoryview(trace.read_bytes())
    parts = [bytearray(data[:PCAP_HEADER]) for _ in range(shards)]
    at = PCAP_HEADER
    while at < len(data):
        end = at + RECORD.size + RECORD.unpack_from(data, at)[2]
        parts[shard_of(data[at + RECORD.size : end], shards)] += data[at:end]
        at = end
    paths = [trace.with_suffix(f".{n}.pcap") for n in range(shards)]
    for path, part in zip(paths, parts, strict=True):
        path.write_bytes(part)
    return paths


def cpu_of(who: int) -> float:
    """Returns CPU seconds of this process, or of its children that have ended."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def timed(sources: Sequence[Path], folder: Path, shards: int) -> Outcome:
    """Runs the sources."""
    out = folder / "out"
    before = [cpu_of(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    start = time.monotonic()
    zanon_net.run(
        list(sources),
        out=out,
        shards=shards,
        key_file=folder / "zanon.key",
        internal=("10.0.0.0/8",),
        format=("tstat", "observations"),
    )
    wall = time.monotonic() - start
    after = [cpu_of(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own, children = (now - then for now, then in zip(after, before, strict=True))
    released: Counter[bytes] = Counter()
    for path in out.rglob("observations.jsonl"):
        released.update(path.read_bytes().splitlines())
    shutil.rmtree(out)
    return Outcome(wall, own + children, max(own, children / shards), released)


def main() -> int:
    """Prints a line for each way, and the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--profile", default="isp")
    parser.add_argument("--bytes", default="2G")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        folder = Path(name)
        trace = folder / "trace.pcap"
        size = ("--bytes", options.bytes, "--profile", options.profile)
        subprocess.run([sys.executable, HERE / "gen_trace.py", *size, trace], check=True)
        new_key(folder / "zanon.key")
        ways = {1: [trace], options.shards: divide(trace, options.shards)}
        timed([trace], folder, 1)  # the files are in memory, and all modules are imported
        found: dict[int, list[Outcome]] = {shards: [] for shards in ways}
        for _ in range(options.repeat):
            for shards, sources in ways.items():
                found[shards].append(timed(sources, folder, shards))
    for shards, outcomes in found.items():
        text = ", ".join(
            f"{what} {min(getattr(outcome, what) for outcome in outcomes):.3f} s"
            for what in ("wall", "cpu", "busiest")
        )
        print(f"shards {shards}: {text} (the least of {options.repeat})")
    one, many = found.values()
    for what in ("wall", "cpu", "busiest"):
        ratios = [getattr(a, what) / getattr(b, what) for a, b in zip(one, many, strict=True)]
        print(f"{what}: one run takes {median(ratios):.2f} times the {options.shards} shards' time")
    if any(outcome.released != one[0].released for outcome in (*one, *many)):
        print("the released observations differ", file=sys.stderr)
        return 1
    print(f"released observations: {one[0].released.total():,}, the same in all runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
