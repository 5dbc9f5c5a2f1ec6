# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures how many frames a second the sender of `zanon-net packets --to` puts into an interface.

Makes a network namespace with a virtual cable, and sends frames of 60 bytes, and of mixed sizes,
into one end as fast as it goes: with our sender, with a bare sender (bench/live_sender.c), and with
`tcpreplay -t -K` where it is installed, in turn. All traffic stays inside the namespace and is
bounded in time. Root only.
"""

import argparse
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from live import build_sender  # noqa: E402
from support import wire  # noqa: E402
from support.netns import Namespace  # noqa: E402

from zanon_net._core import PacketSender  # noqa: E402
from zanon_net.bench.machine import cpu_model  # noqa: E402

FRAMES = 20_000
COUNT_MAX = 2_000_000_000
SIZES = {"60 B": (60,), "mixed": (60, 66, 1514, 1514, 60, 590, 1514, 66, 1514, 60)}
FILE_HEADER = struct.pack("=IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1)
RATED = re.compile(r"Rated: .*?([\d.]+) pps")


def records(sizes: tuple[int, ...]) -> bytes:
    """Frames of these sizes in turn, as records of a capture file."""
    out = []
    for n in range(FRAMES):
        payload = n.to_bytes(4, "big") + bytes(sizes[n % len(sizes)] - 46)
        frame = wire.ethernet(wire.ipv4(wire.udp(payload), wire.UDP))
        out.append(struct.pack("=IIII", 1_700_000_000, n, len(frame), len(frame)) + frame)
    return b"".join(out)


@dataclass(frozen=True, slots=True)
class Rate:
    """Frames a second that passes, and a second of processor time: the machine may be shared."""

    wall: float
    cpu: float


def ours(data: bytes, seconds: float) -> Rate:
    """Measures zanon_net's sender; packets that found the queue full do not count."""
    sender = PacketSender("b")
    began, used = time.monotonic(), time.process_time()
    while time.monotonic() - began < seconds:
        sender.send(data)
    took, used = time.monotonic() - began, time.process_time() - used
    sent = sender.counts["sent"]
    assert sender.counts["oversize"] == sender.counts["error"] == 0
    sender.close()
    return Rate(sent / took, sent / used)


def program(command: Sequence[str | Path], rate: Callable[[str], float]) -> Rate:
    """Returns a program, which prints what `rate` reads its frames a second from."""
    before, began = os.times(), time.monotonic()
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    took, after = time.monotonic() - began, os.times()
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    wall = rate(done.stdout)
    return Rate(wall, wall * took / used)


def bare_rate(said: str) -> float:
    """Returns the rate of the bare sender, without frames that found the queue full."""
    sent, _octets, lost, took = said.split()
    return (int(sent) - int(lost)) / float(took)


def tcpreplay_rate(said: str) -> float:
    """Returns the rate that tcpreplay gives itself."""
    found = RATED.search(said)
    if found is None:
        raise SystemExit("tcpreplay does not say how fast it was")
    return float(found[1])


def measure(senders: Mapping[str, Callable[[], Rate]], runs: int) -> dict[str, Rate]:
    """Returns the median rates of each; they take turns."""
    rates: dict[str, list[Rate]] = {name: [] for name in senders}
    for _ in range(runs):
        for name, send in senders.items():
            rates[name].append(send())
    median = statistics.median
    return {
        name: Rate(median(one.wall for one in found), median(one.cpu for one in found))
        for name, found in rates.items()
    }


def row(name: str, rates: Mapping[str, Rate]) -> str:
    """Returns a line of the table."""
    cells = [name]
    for sender in ("ours", "bare", "tcpreplay"):
        rate = rates.get(sender)
        cells += ["-"] if rate is None else [f"{rate.wall / 1e6:.2f} ({rate.cpu / 1e6:.2f})"]
    for peer in ("bare", "tcpreplay"):
        other = rates.get(peer)
        cells += ["-"] if other is None else [f"{rates['ours'].cpu / other.cpu:.2f}"]
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    """Measures both kinds of frames; prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="of each run")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print(
        f"{datetime.now(UTC).date()}, {cpu_model()}, {os.cpu_count()} cores, medians of"
        f" {arguments.runs} runs of {arguments.seconds:g} s\n"
    )
    print("M frames a second (a second of processor time, which the ratios compare)\n")
    print("| frames | ours | bare | tcpreplay | ours : bare | ours : tcpreplay |")
    print("|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as scratch, Namespace() as net, net.inside():
        net.cable("a", "b")
        bare = build_sender(Path(scratch))
        capture, seconds = Path(scratch) / "frames.pcap", arguments.seconds
        replay = ["tcpreplay", "-t", "-K", "--loop=0", f"--duration={max(1, round(seconds))}"]
        for name, sizes in SIZES.items():
            data = records(sizes)
            capture.write_bytes(FILE_HEADER + data)
            limits = [str(seconds), str(COUNT_MAX), "0"]
            senders: dict[str, Callable[[], Rate]] = {
                "ours": partial(ours, data, seconds),
                "bare": partial(program, [bare, "b", capture, *limits], bare_rate),
            }
            if shutil.which("tcpreplay") is not None:
                senders["tcpreplay"] = partial(
                    program, [*replay, "-i", "b", capture], tcpreplay_rate
                )
            print(row(name, measure(senders, arguments.runs)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
