# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the packets a second of a run, of other tools, and of reading alone.

Usage: python bench/throughput.py [--bytes 500M] [--repeat 5] [--profiles isp,min64,storm]

The script generates the traces and measures all tools on them in turn, each in a process of its
own. `flows` has 500,000 flows that are all live, `flowsx3` has three times as many packets; the
other profiles are gen_trace.py's. "x4" at the end of a name means four times as much data in each
flow. A trace is written again before each turn, in writes of 4 MiB. The age and the manner of the
writing decide how much of the trace the page cache contains, and in pages of which size. Reading
small pages costs up to twice as much. zanon_net, NFStream and mercury-python are measured inside
their processes, without the start of Python and its imports. nfpcapd and ndpiReader, which are
programs, are measured with their start. The names that zanon_net finds are compared with the truth.

NFStream, mercury-python and ndpiReader get the first part of each trace: they take much longer, and
for mostly new flows more memory than there is. Tools that are not installed are listed.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import flow_trace

from zanon_net.bench.trace import WRITE_BYTES
from zanon_net.config.parse import parse_size

HERE = Path(__file__).resolve().parent
TOOLS = HERE / "throughput_tools.py"
PART_BYTES = 300_000_000  # of a trace, for slow tools; their start is negligible in comparison
SMALL_PART_BYTES = 60_000_000  # of a trace, for tools that take memory for each new flow


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a tool: seconds, peak memory in MB."""

    cpu_s: float
    wall_s: float
    memory_mb: float


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool and its command for a trace, or a part; `reports`: it prints its own CPU time."""

    name: str
    command: Callable[[Path], Sequence[str]]
    part: bool = False
    reports: bool = False


def spend(command: Sequence[str], reports: bool = False) -> tuple[Turn, str]:
    """Runs a child to its end; raises SystemExit with its last words if it fails."""
    with tempfile.TemporaryFile("w+") as out:
        began = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(child.pid, 0)
        wall_s = time.monotonic() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    if child.returncode:
        raise SystemExit(f"{command[0]} ended with {child.returncode}: {text[-500:]}")
    cpu_s = used.ru_utime + used.ru_stime
    if reports:
        report = json.loads(text.splitlines()[-1])
        cpu_s, wall_s = report["cpu_s"], report.get("wall_s", wall_s)
    return Turn(cpu_s, wall_s, used.ru_maxrss / 1024), text


def own(tool: str, *more: str) -> Callable[[Path], Sequence[str]]:
    """Returns the command of a tool of throughput_tools.py."""
    return lambda trace: [sys.executable, str(TOOLS), tool, str(trace), *more]


def find_tools(scratch: Path) -> tuple[list[Tool], list[str]]:
    """Returns the tools to measure, and the names of the missing tools."""
    walk, missing = scratch / "walk", []
    subprocess.run(["cc", "-O2", str(HERE / "walk.c"), "-o", str(walk)], check=True)
    tools = [
        Tool("zanon-net", own("ours"), reports=True),
        Tool("zanon-net, core columns", own("ours", "core"), reports=True),
        Tool("zanon-net, two workers", own("ours", "core,layer7", "2"), reports=True),
        Tool("limit: walk, mapped", lambda trace: [str(walk), "map", str(trace)], reports=True),
        Tool("limit: walk, read", lambda trace: [str(walk), "read", str(trace)], reports=True),
    ]
    flows = scratch / "nfpcapd"
    flows.mkdir()
    programs: list[tuple[str, Callable[[Path], Sequence[str]]]] = [
        ("nfpcapd", lambda trace: ["nfpcapd", "-r", str(trace), "-w", str(flows)]),
        ("ndpiReader", lambda trace: ["ndpiReader", "-q", "-i", str(trace)]),
    ]
    for name, command in programs:
        if shutil.which(name):
            tools.append(Tool(name, command, part=name == "ndpiReader"))
        else:
            missing.append(name)
    for name, module in (("mercury-python", "mercury"), ("nfstream", "nfstream")):
        if find_spec(module):
            tools.append(Tool(name, own(module), part=True, reports=True))
        else:
            missing.append(name)
    return tools, missing


def cut(trace: Path, out: Path, most: int) -> tuple[int, int]:
    """Writes the first records, at most `most` bytes; returns packets and bytes of packets."""
    packets = octets = 0
    with trace.open("rb") as file, out.open("wb", buffering=WRITE_BYTES) as part:
        part.write(file.read(24))
        while part.tell() < most and len(header := file.read(16)) == 16:
            data = file.read(int.from_bytes(header[8:12], "little"))
            part.write(header + data)
            packets += 1
            octets += len(data)
    return packets, octets


def generate(
    profile: str, size: str, scratch: Path, seed: int = 1
) -> tuple[Path, dict[str, object]]:
    """Writes a trace and its truth."""
    trace, truth = scratch / f"{profile}.pcap", scratch / f"{profile}.json"
    kind, _, data = profile.partition("x")
    if kind == "flows":
        octets = parse_size("bytes", size) * int(data or "1")
        return trace, flow_trace.generate(trace, octets)
    command = [sys.executable, str(HERE / "gen_trace.py"), str(trace), "--profile", kind]
    command += ["--data", data or "1", "--seed", str(seed)]
    subprocess.run([*command, "--bytes", size, "--truth", str(truth)], check=True)
    return trace, json.loads(truth.read_text(encoding="utf-8"))


def renew(trace: Path) -> None:
    """Writes a trace again, so that the page cache contains all of it, in large pieces.

    Some machines drop pages that are not read within a minute. The kernel then reads them back one
    by one, in the time of the tool whose turn it is.
    """
    anew = trace.with_suffix(".anew")
    with trace.open("rb") as old, anew.open("wb", buffering=0) as new:
        shutil.copyfileobj(old, new, WRITE_BYTES)
        os.fsync(new.fileno())  # nothing is written to disk during a measurement
    anew.replace(trace)


def machine() -> str:
    """Returns the time and the machine of the measurement."""
    processor = platform.processor() or platform.machine()
    return (f"{datetime.now(UTC).date()}, {processor}, {os.cpu_count()} cores, "
            f"{platform.platform()}")  # fmt: skip


def middle(turns: Sequence[Turn]) -> Turn:
    """Returns the medians."""
    return Turn(
        statistics.median(turn.cpu_s for turn in turns),
        statistics.median(turn.wall_s for turn in turns),
        statistics.median(turn.memory_mb for turn in turns),
    )


def print_row(name: str, packets: int, octets: int, turn: Turn, first_ns: float) -> float:
    """Prints a line of the table and returns ns a packet."""
    each_ns = turn.cpu_s / packets * 1e9
    ratio = f"{each_ns / first_ns:.1f}" if first_ns else "1.0"
    print(
        f"| {name} | {packets:,} | {packets / turn.cpu_s / 1e6:.2f} "
        f"| {octets * 8 / turn.cpu_s / 1e9:.1f} | {each_ns:.0f} "
        f"| {packets / turn.wall_s / 1e6:.2f} | {turn.memory_mb:.0f} | {ratio} |"
    )
    return each_ns


def check_names(trace: Path, truth: dict[str, object]) -> str:
    """Returns whether a run finds each name of the trace, in the number of its occurrences."""
    _, text = spend([sys.executable, str(TOOLS), "names", str(trace)])
    found = json.loads(text.splitlines()[-1])
    same = found["names_sha256"] == truth["names_sha256"]
    return f"{found['names']:,} names, {'all as' if same else 'NOT AS'} the generator wrote them"


def measure(profile: str, arguments: argparse.Namespace, scratch: Path) -> bool:
    """Measures all tools on one trace; returns true if the names were right."""
    tools, missing = find_tools(scratch)
    trace, truth = generate(profile, arguments.bytes, scratch)
    part = scratch / "part.pcap"
    opening = profile.startswith(("flows", "storm"))
    some = cut(trace, part, SMALL_PART_BYTES if opening else PART_BYTES)
    size = trace.stat().st_size
    packets = int(str(truth["packets"]))
    octets = size - 24 - 16 * packets
    turns: dict[str, list[Turn]] = {tool.name: [] for tool in tools}
    for _ in range(arguments.repeat):
        for tool in tools:
            read = part if tool.part else trace
            renew(read)
            turns[tool.name].append(spend(tool.command(read), tool.reports)[0])
    named = check_names(trace, truth)
    print(f"\n### {profile}: {size / 1e6:.0f} MB, {octets / packets:.0f} bytes a packet, "
          f"{truth['flows']:,} flows\n")  # fmt: skip
    print(
        "| tool | packets | M packets/CPU-s | Gbit/CPU-s | ns | M packets/s of wall | MB | ratio |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    first_ns = 0.0
    for tool in tools:
        count, length = some if tool.part else (packets, octets)
        each_ns = print_row(tool.name, count, length, middle(turns[tool.name]), first_ns)
        first_ns = first_ns or each_ns
    print("".join(f"\n{name}: not installed" for name in missing))
    print(f"{profile}: {named}")
    trace.unlink()
    return "NOT AS" not in named


def main() -> int:
    """Measures; returns 1 if a name was wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bytes", default="500M", help="size of each trace (500M)")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--profiles", default="isp,isplong,min64,flows,flowsx3,storm")
    parser.add_argument("--scratch", type=Path, help="a folder for the traces (temporary)")
    arguments = parser.parse_args()
    right = True
    print(machine())
    for profile in arguments.profiles.split(","):
        with tempfile.TemporaryDirectory(dir=arguments.scratch) as scratch:
            right &= measure(profile, arguments, Path(scratch))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
