# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Traces of the benchmark suite, kept in build/bench/traces, and the clock of child processes."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from turns import generate, renew, spend

BENCH = Path(__file__).resolve().parent
KEPT = BENCH.parent / "build" / "bench" / "traces"
GENERATORS = [*sorted(BENCH.glob("flow_tra*.py")), *(BENCH.parent / "zanon_net/bench").glob("*.py")]
RENEWED: set[Path] = set()


class ChildClock:
    """Clock that advances by the CPU time of each child: what the child reports, or all of it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.memory_mb = 0.0

    def now(self) -> float:
        """Returns the CPU seconds of all children so far."""
        return self.seconds

    def spend(self, command: Sequence[str], reports: bool = False) -> str:
        """Runs a child to its end and returns its output."""
        turn, text = spend(command, reports)
        self.seconds += turn.cpu_s
        self.memory_mb = turn.memory_mb
        return text


CLOCK = ChildClock()


@dataclass(frozen=True, slots=True)
class Trace:
    """A generated trace. names_sha256: the digest of the names that it contains."""

    path: Path
    packets: int
    names_sha256: str


def kept(name: str, make: Callable[[Path], dict[str, object]]) -> Trace:
    """Returns the trace with this name, which `make` writes unless it was kept.

    The name contains a digest of the generators, so that a change of them makes a new trace.
    """
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(GENERATORS)))
    path = KEPT / f"{name}-{digest.hexdigest()[:12]}.pcap"
    truth = path.with_suffix(".json")
    if not truth.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        for old in KEPT.glob(f"{name}-*"):
            old.unlink()
        truth.write_text(json.dumps(make(path)), encoding="utf-8")
    elif path not in RENEWED:
        renew(path)
    RENEWED.add(path)
    found = json.loads(truth.read_text(encoding="utf-8"))
    return Trace(path, int(found["packets"]), found["names_sha256"])


def trace_of(profile: str, octets: int) -> Trace:
    """Returns the trace of a profile with about this number of bytes."""

    def make(path: Path) -> dict[str, object]:
        made, truth = generate(profile, str(octets), path.parent)
        made.rename(path)
        return truth

    return kept(f"{profile}-{octets}", make)
