# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Turns of tools on generated traces, each in a process of its own: for packets.py and the suite.

A trace is written again before it is measured, in writes of 4 MiB. The age and the manner of the
writing decide how much of the trace the page cache contains, and in pages of which size. Reading
small pages costs up to twice as much.
"""

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
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOOLS = HERE / "turn_tools.py"
WRITE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a tool: seconds, peak memory in MB."""

    cpu_s: float
    wall_s: float
    memory_mb: float


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
    cpu_s, memory_mb = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
    if reports:
        report = json.loads(text.splitlines()[-1])
        cpu_s, wall_s = report["cpu_s"], report.get("wall_s", wall_s)
        memory_mb = report.get("memory_mb", memory_mb)
    return Turn(cpu_s, wall_s, memory_mb), text


def own(tool: str, *more: str) -> Callable[[Path], Sequence[str]]:
    """Returns the command of a tool of turn_tools.py."""
    return lambda trace: [sys.executable, str(TOOLS), tool, str(trace), *more]


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
        # An earlier revision that is compared reads traces, but lacks what writes this one.
        import flow_trace

        from zanon_net.config.parse import parse_size

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
