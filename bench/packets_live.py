# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the rate of `zanon-net packets a --to c` from one interface to another without loss.

Makes a network namespace with two virtual cables, sends traces into the first at a steady rate, and
compares the packets sent with the packets at the far end of the second, and with the manifest: each
frame that arrived left, or is counted. With --z 1, the default, nearly all of a trace leaves. All
traffic stays inside the namespace and is bounded in time and count. Root only.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from live import COUNT_MAX, build_sender, cpu_of, start  # noqa: E402
from support.netns import Namespace  # noqa: E402

from zanon_net.bench.machine import cpu_model  # noqa: E402

LOST_IN, LOST_OUT = ("ring", "interface", "us"), ("tx_full", "tx_oversize", "tx_error")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The counts of one trace at one rate."""

    sent: int
    octets: int
    seconds: float
    came: int
    left: int
    cpu_s: float
    manifest: dict[str, Any]

    def lost_in(self) -> list[int]:
        """Packets lost on the way in, as LOST_IN."""
        return [self.manifest["capture_drops"][name] for name in LOST_IN]

    def lost_out(self) -> list[int]:
        """Packets lost on the way out, as LOST_OUT."""
        return [self.manifest["packets"]["interface"][name] for name in LOST_OUT]

    def row(self, name: str) -> str:
        """Returns a line of the table."""
        cells = [
            name,
            f"{self.sent / self.seconds / 1e6:.3f}",
            f"{self.octets * 8 / self.seconds / 1e9:.2f}",
            f"{self.left / self.seconds / 1e6:.3f}",
            f"{self.came:,}",
            f"{self.left:,}",
            "/".join(map(str, self.lost_in())),
            "/".join(map(str, self.lost_out())),
            f"{self.came / self.cpu_s / 1e6:.2f}",
        ]
        return "| " + " | ".join(cells) + " |"


def measure(trace: Path, arguments: argparse.Namespace, folder: Path, rate: float) -> Outcome:
    """Sends a trace at a rate, in packets a second; reads it, and counts the packets that leave."""
    command = [str(arguments.zanon_net), "packets", "a", "--to", "c", "--internal", "any", "-v"]
    command += ["--addresses", "wide", "--json", "--ring", arguments.ring, "--z", str(arguments.z)]
    sender = [str(folder / "live_sender"), "b", str(trace), str(arguments.seconds)]
    with Namespace() as net:
        net.cable("a", "b")
        net.cable("d", "c")
        process = start(net, [*command, *arguments.setting], subprocess.PIPE)
        before = cpu_of(process.pid)
        with net.inside():
            load = subprocess.run(
                [*sender, str(COUNT_MAX), str(rate)], stdout=subprocess.PIPE, check=True
            )
        sent, octets, _refused, seconds = load.stdout.split()
        time.sleep(0.5)
        cpu_s = cpu_of(process.pid) - before
        process.send_signal(signal.SIGTERM)
        written, _said = process.communicate(timeout=120)
        manifest = json.loads(written)
        return Outcome(
            sent=int(sent),
            octets=int(octets),
            seconds=float(seconds),
            came=net.counter("a", "rx_packets"),
            left=net.counter("d", "rx_packets"),
            cpu_s=cpu_s,
            manifest=manifest,
        )


def check(outcome: Outcome) -> None:
    """Fails unless all packets that came were read or counted as lost, and all counted packets
    left."""
    fates, frames = outcome.manifest["packets"], outcome.manifest["packets"]["frames"]
    if outcome.came != frames + outcome.manifest["capture_drops"]["ring"]:
        raise SystemExit(f"{outcome.came} came, and {frames} were read")
    handed = fates["passed"] + fates["masked"]
    lost = sum(outcome.lost_out())
    if outcome.left + lost < handed:
        raise SystemExit(f"{handed} passed, and {outcome.left} left")


def main() -> int:
    """Measures each trace at each rate; prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", type=Path, nargs="+", metavar="TRACE", help="pcap files")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rates", type=float, nargs="+", default=[400_000.0, 0.0], metavar="N")
    parser.add_argument("--ring", default="256M")
    parser.add_argument("--z", type=int, default=1)
    parser.add_argument("--setting", nargs="*", default=[], help="further options of the command")
    beside = Path(sys.executable).parent / "zanon-net"
    parser.add_argument("--zanon-net", type=Path, default=beside, metavar="PATH")
    arguments = parser.parse_args()
    print(
        f"{datetime.now(UTC).date()}, {cpu_model()}, {os.cpu_count()} cores, {arguments.ring} ring,"
        f" z {arguments.z}, load {os.getloadavg()[0]:.1f}"
    )
    columns = ("trace", "M packets/s in", "Gbit/s", "M packets/s out", "came", "left")
    lost = ("lost in: ring/interface/us", "out: full/oversize/error", "M packets/CPU-s")
    print("\n|", *(f"{name} |" for name in (*columns, *lost)))
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        build_sender(folder)
        for trace in arguments.traces:
            for rate in arguments.rates:
                outcome = measure(trace, arguments, folder, rate)
                print(outcome.row(trace.stem), flush=True)
                check(outcome)
    return 0


if __name__ == "__main__":
    sys.exit(main())
