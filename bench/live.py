# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures how much an interface can carry before `zanon-net run` loses a packet.

Makes a network namespace with a virtual cable, sends a generated trace into one end, reads the
other, and compares the packets sent with the counts of the interface and of the manifest. All
traffic stays inside the namespace and is bounded in time and count. Root only.

With --soak MINUTES it sends at a steady rate instead, and fails if memory grows.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from support.netns import Namespace  # noqa: E402

from zanon_net.bench.machine import cpu_model  # noqa: E402

COUNT_MAX = 2_000_000_000
GROWTH_MAX = 1.10


@dataclass(frozen=True, slots=True)
class Outcome:
    """The counts of one trace at one rate."""

    sent: int
    octets: int
    seconds: float
    arrived: int
    refused: int
    frames: int
    drops: dict[str, int]
    cpu_s: float

    def row(self, name: str) -> str:
        """Returns a line of the table."""
        rate, bits = self.sent / self.seconds, self.octets * 8 / self.seconds
        lost = "/".join(str(self.drops[key]) for key in ("ring", "interface", "us"))
        return (
            f"| {name} | {rate / 1e6:.3f} | {bits / 1e9:.2f} | {self.sent} | {self.arrived} "
            f"| {self.frames} | {lost} | {self.frames / self.cpu_s / 1e6:.2f} |"
        )


def build_sender(folder: Path) -> Path:
    """Compiles the sender."""
    program = folder / "live_sender"
    command = [
        "cc",
        "-O2",
        "-D_GNU_SOURCE",
        "-Wall",
        "-Wextra",
        "-Werror",
        str(HERE / "live_sender.c"),
    ]
    subprocess.run([*command, "-o", str(program)], check=True)
    return program


def memory_of(pid: int) -> int:
    """Resident bytes of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def cpu_of(pid: int) -> float:
    """Returns CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(
    net: Namespace, command: list[str], stdout: int | None = None
) -> "subprocess.Popen[bytes]":
    """Starts a run and waits until it reads."""
    with net.inside():
        process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE)
    assert process.stderr is not None
    for line in process.stderr:
        if b"listening on" in line:
            return process
    raise SystemExit(f"{command[0]} ended at once")


def measure(
    trace: Path, arguments: argparse.Namespace, folder: Path, samples: list[int]
) -> Outcome:
    """Sends a trace and reads it; `samples` receives the memory once a second."""
    out = folder / f"out-{trace.stem}-{time.monotonic_ns()}"
    command = [str(arguments.zanon_net), "run", "a", "--internal", "any", "-v"]
    command += ["--out", str(out), "--window", "1m"]
    sender = [str(folder / "live_sender"), "b", str(trace), str(arguments.seconds)]
    with Namespace() as net:
        net.cable("a", "b")
        process = start(net, [*command, "--ring", arguments.ring])
        before = cpu_of(process.pid)
        with net.inside():
            load = subprocess.Popen(
                [*sender, str(COUNT_MAX), str(arguments.rate)], stdout=subprocess.PIPE
            )
        while load.poll() is None:
            time.sleep(1)
            samples.append(memory_of(process.pid))
        assert load.stdout is not None
        sent, octets, refused, seconds = load.stdout.read().split()
        time.sleep(0.3)
        cpu_s = cpu_of(process.pid) - before
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
        arrived = net.counter("a", "rx_packets")
    manifest = json.loads((out / "manifest.json").read_text("ascii"))
    return Outcome(
        sent=int(sent),
        octets=int(octets),
        seconds=float(seconds),
        arrived=arrived,
        refused=int(refused),
        frames=manifest["sources"][0]["frames"],
        drops=manifest["capture_drops"],
        cpu_s=cpu_s,
    )


def check(outcome: Outcome) -> None:
    """Fails unless every packet that arrived was read or counted as lost by the ring."""
    if outcome.arrived != outcome.frames + outcome.drops["ring"]:
        raise SystemExit(
            f"{outcome.arrived} arrived, but {outcome.frames} were read and"
            f" {outcome.drops['ring']} dropped by the ring"
        )


def check_memory(samples: list[int]) -> None:
    """Fails if memory grew between the second third of the run and the last."""
    third = len(samples) // 3
    early, late = statistics.median(samples[third : 2 * third]), statistics.median(samples[-third:])
    print(f"\nmemory: {early / 2**20:.1f} MiB in the second third, {late / 2**20:.1f} in the last")
    if late > early * GROWTH_MAX:
        raise SystemExit("memory grows")


def main() -> int:
    """Measures each trace; prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", type=Path, nargs="+", metavar="TRACE", help="pcap files")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=0.0, help="packets/s; 0: as fast as it goes")
    parser.add_argument("--ring", default="64M")
    parser.add_argument("--soak", type=float, default=0.0, metavar="MINUTES")
    beside = Path(sys.executable).parent / "zanon-net"
    parser.add_argument("--zanon-net", type=Path, default=beside, metavar="PATH")
    arguments = parser.parse_args()
    if arguments.soak:
        arguments.seconds = arguments.soak * 60
    print(
        f"{datetime.now(UTC).date()}, {cpu_model()}, {os.cpu_count()} cores, {arguments.ring} ring"
    )
    columns = ("trace", "M packets/s sent", "Gbit/s", "sent", "arrived", "read")
    print("\n|", *(f"{name} |" for name in columns), "lost ring/interface/us | M packets/CPU-s |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        build_sender(folder)
        for trace in arguments.traces:
            samples: list[int] = []
            outcome = measure(trace, arguments, folder, samples)
            print(outcome.row(trace.stem), flush=True)
            check(outcome)
            if arguments.soak:
                check_memory(samples)
    return 0


if __name__ == "__main__":
    sys.exit(main())
