# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the speed of `zanon-net run` with dpkt doing the same job in Python.

Usage: python bench/run_vs_dpkt.py TRACE [--repeat 3]

Both run as child processes in turn, in the same session: machines and hours differ, so only the
ratio of one run means anything. CPU time is the children's user and system time, start-up included.
dpkt gets the first packets of the trace only; packets per CPU-second are compared.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import dpkt  # type: ignore[import-untyped]

PEER = Path(__file__).resolve().parent / "dpkt_peer.py"
READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Cost:
    """One child's seconds, and its output."""

    cpu_s: float
    wall_s: float
    output: str


@dataclass(frozen=True, slots=True)
class Result:
    """The median of several runs over `packets` packets of `octets` captured bytes."""

    tool: str
    packets: int
    octets: int
    cpu_s: float
    wall_s: float

    @property
    def per_cpu_second(self) -> float:
        """Packets per CPU-second."""
        return self.packets / self.cpu_s


def measure(command: Sequence[str]) -> Cost:
    """Runs a child to its end; raises SystemExit with its last words if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall_s = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{command[0]} ended with {done.returncode}: {done.stderr[-500:]}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(cpu_s, wall_s, done.stdout)


def packet_sizes(trace: Path, limit: int) -> tuple[int, int, int, int]:
    """Returns (packets, bytes) of the whole trace, then of its first `limit` packets.

    Reading also puts the file into the page cache before anything is timed.
    """
    packets = octets = first_packets = first_octets = 0
    with trace.open("rb") as capture:
        for _, frame in dpkt.pcap.UniversalReader(capture):
            packets += 1
            octets += len(frame)
            if packets <= limit:
                first_packets, first_octets = packets, octets
    return packets, octets, first_packets, first_octets


def cpu_model() -> str:
    """Returns the processor's name."""
    for line in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def median_of(tool: str, costs: Sequence[Cost], packets: int, octets: int) -> Result:
    """Returns the median CPU and wall time of one tool's runs."""
    cpu_s = statistics.median(cost.cpu_s for cost in costs)
    wall_s = statistics.median(cost.wall_s for cost in costs)
    return Result(tool, packets, octets, cpu_s, wall_s)


def print_table(trace: Path, results: Sequence[Result], repeat: int) -> None:
    """Prints the machine and a line for each tool."""
    today = datetime.now(UTC).date().isoformat()
    size = trace.stat().st_size / 1e6
    print(f"{today}, {cpu_model()}, {os.cpu_count()} cores, {platform.system()}")
    print(f"{trace.name}: {size:.0f} MB, page-cached; median of {repeat}, processes alternating")
    print(f"Python {platform.python_version()}, dpkt {version('dpkt')}")
    print()
    print("| tool | packets | CPU s | wall s | packets/CPU-s | Gbit/CPU-s |")
    print("|---|---:|---:|---:|---:|---:|")
    for item in results:
        gigabits = item.octets * 8 / item.cpu_s / 1e9
        print(
            f"| {item.tool} | {item.packets} | {item.cpu_s:.2f} | {item.wall_s:.2f} "
            f"| {item.per_cpu_second:.0f} | {gigabits:.2f} |"
        )


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trace", type=Path, metavar="TRACE", help="pcap or pcapng, uncompressed")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--dpkt-packets", type=int, default=200000)
    beside = Path(sys.executable).parent / "zanon-net"
    parser.add_argument("--zanon-net", type=Path, default=beside, metavar="PATH")
    return parser.parse_args()


def main() -> int:
    """Measures both and prints the ratio; without zanon-net, dpkt alone and exit code 1."""
    arguments = parse_arguments()
    trace: Path = arguments.trace
    packets, octets, first_packets, first_octets = packet_sizes(trace, arguments.dpkt_packets)
    installed = arguments.zanon_net.exists()
    ours: list[Cost] = []
    theirs: list[Cost] = []
    with tempfile.TemporaryDirectory() as scratch:
        for i in range(arguments.repeat):
            if installed:
                folder = f"{scratch}/out-{i}"
                command = [str(arguments.zanon_net), "run", str(trace), "--out", folder]
                ours.append(measure([*command, "--z", "20", "-q"]))
            peer = [sys.executable, str(PEER), str(trace), "--out", f"{scratch}/flows-{i}"]
            theirs.append(measure([*peer, "--packets", str(arguments.dpkt_packets)]))
    slow = median_of("dpkt", theirs, first_packets, first_octets)
    results = [slow]
    if installed:
        results.insert(0, median_of("zanon-net run", ours, packets, octets))
    print_table(trace, results, arguments.repeat)
    counts = json.loads(theirs[-1].output)
    print(f"\ndpkt saw {counts['flows']} flows, {counts['named']} names (it has no QUIC)")
    if not installed:
        print("zanon-net is not installed beside this Python: no ratio", file=sys.stderr)
        return 1
    print(f"ratio: {results[0].per_cpu_second / slow.per_cpu_second:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
