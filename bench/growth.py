# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Memory and CPU time as the work grows: live flows, names, and tuples of the z-table.

Runs read 6 packets of each live flow, or one packet with a new name of each flow (the profile
storm1). A table of tuples contains a tuple for each observation: a new user and one of the names,
which have 100 users each. The greatest number of tuples is the largest power of ten that fits into
10 GiB and into the free memory. The cost of an empty trace is taken off. The last column compares a
row with the row before: 1.00 is linear growth.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import flow_trace
import numpy as np
from traces import Trace, kept, trace_of
from turn_tools import EMPTY
from turns import own, spend

from zanon_net import ZTable
from zanon_net.model.charts import Line, Panel, check_path, draw

WORK = (10_000, 31_623, 100_000, 316_228, 1_000_000)
TUPLES_MIN = 100_000
TUPLE_BYTES = 64  # more than any tuple takes
MEMORY_MAX = 10 << 30  # bytes of a table
KEEP = 16
Z = 10
CHUNK = 1_000_000
USERS_OF_NAME = 100
PACKETS_OF_FLOW = 6
STORM_PACKET = 350  # bytes of a packet of storm1 in its file


@dataclass(frozen=True, slots=True)
class Row:
    """Cost of some work.

    items: number of flows, names or tuples.
    steps: number of packets or observations.
    """

    items: int
    steps: int
    megabytes: float
    seconds: float

    @property
    def ns(self) -> float:
        """Returns the CPU time of a step in ns."""
        return self.seconds / self.steps * 1e9


def spent(source: Path, rounds: int) -> tuple[float, float]:
    """Returns the least CPU seconds of a run on a capture, and its least peak memory in MB."""
    turns = [spend(own("ours")(source), reports=True)[0] for _ in range(rounds)]
    return min(turn.cpu_s for turn in turns), min(turn.memory_mb for turn in turns)


def live(flows: int) -> Trace:
    """Returns a trace of flows that are all live."""

    def make(path: Path) -> dict[str, object]:
        return flow_trace.write(path, flows, PACKETS_OF_FLOW)

    return kept(f"live-{flows}", make)


def storm(names: int) -> Trace:
    """Returns a trace of flows of one packet with about this number of names."""
    return trace_of("storm1", names * STORM_PACKET)


def runs(make: Callable[[int], Trace], rounds: int, sizes: Iterable[int]) -> Iterator[Row]:
    """Yields the cost of a run on the trace of each size, less the cost of an empty trace."""
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder, "empty.pcap")
        empty.write_bytes(EMPTY)
        base_seconds, base_megabytes = spent(empty, rounds)
    for size in sizes:
        trace = make(size)
        seconds, megabytes = spent(trace.path, rounds)
        yield Row(size, trace.packets, megabytes - base_megabytes, seconds - base_seconds)


def free_bytes() -> int:
    """Returns the memory that programs can still take."""
    text = Path("/proc/meminfo").read_text(encoding="ascii")
    return int(text.partition("MemAvailable:")[2].split()[0]) << 10


def tuple_counts(memory: int) -> tuple[int, ...]:
    """Returns the powers of ten of tuples for which `memory` bytes suffice."""
    most = max(memory // TUPLE_BYTES, TUPLES_MIN)
    return tuple(10**i for i in range(len(str(TUPLES_MIN)) - 1, len(str(most))))


def tuples(keep: int | None, sizes: Iterable[int]) -> Iterator[Row]:
    """Yields the cost of a z-table as it grows. Exits if tuples do not fit."""
    for size in sizes:
        rng = np.random.default_rng(1)
        table = ZTable(Z, 10**15, keep=keep, max_tuples=size, max_attributes=size)
        seconds = 0.0
        for done in range(0, size, CHUNK):
            user = np.arange(done, min(done + CHUNK, size), dtype=np.uint64)  # new in each tuple
            name = rng.integers(0, size // USERS_OF_NAME, len(user), dtype=np.uint64)
            t_ns = user.astype(np.int64) + 1
            before = time.process_time()
            table.observe_batch(t_ns, user, name)
            seconds += time.process_time() - before
        if table.stats["no_room"] or table.stats["evicted"]:
            sys.exit(f"growth.py: a table of {size:,} tuples has no room for them")
        yield Row(size, size, table.memory_bytes / 2**20, seconds)
        del table


def growth(before: Row, row: Row) -> tuple[float, float]:
    """Returns by which factor memory and time grew, each divided by linear growth."""
    return (
        row.megabytes / before.megabytes / (row.items / before.items),
        row.seconds / before.seconds / (row.steps / before.steps),
    )


def print_rows(title: str, item: str, rows: Iterable[Row]) -> list[Row]:
    """Prints each row of a table of Markdown when it comes. Returns the rows."""
    step = "observation" if item == "tuple" else "packet"
    print(f"\n| {title} | MB | bytes per {item} | ns per {step} | memory, time to row before |")
    print("|---:|---:|---:|---:|---:|", flush=True)
    found: list[Row] = []
    for row in rows:
        size = row.megabytes * 2**20 / row.items
        factors = ", ".join(f"{x:.2f}" for x in growth(found[-1], row)) if found else ""
        print(
            f"| {row.items:,} | {row.megabytes:,.0f} | {size:,.1f} | {row.ns:,.0f} | {factors} |",
            flush=True,
        )
        found.append(row)
    return found


def panels(found: dict[str, list[Row]]) -> Sequence[Panel]:
    """Returns memory and time over the number of items."""

    def lines(value: Callable[[Row], float]) -> list[Line]:
        return [
            Line(title, [row.items for row in rows], list(map(value, rows)), marked=True)
            for title, rows in found.items()
        ]

    memory, cpu = lines(lambda row: row.megabytes), lines(lambda row: row.ns)
    return (
        Panel("memory", "items", "MB", memory, x_log=True, y_log=True),
        Panel("CPU time of a packet or observation", "items", "ns", cpu, True, False, (0, None)),
    )


def main() -> None:
    """Prints a table for each kind of work and draws them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each trace (default 3)")
    parser.add_argument("--largest", type=float, default=1e9, help="leave out larger work")
    parser.add_argument("--plot", type=check_path, metavar="FILE.svg")
    arguments = parser.parse_args()
    rounds = arguments.rounds
    work = tuple(size for size in WORK if size <= arguments.largest)
    counts = tuple(
        size for size in tuple_counts(min(MEMORY_MAX, free_bytes())) if size <= arguments.largest
    )
    print(
        f"At most {counts[-1]:,} tuples, which take less than {MEMORY_MAX >> 30} GiB.", flush=True
    )
    found = {
        title: print_rows(title, item, rows)
        for title, item, rows in (
            (f"tuples, keep {KEEP}", "tuple", tuples(KEEP, counts)),
            ("tuples, each user kept", "tuple", tuples(None, counts)),
            ("live flows", "flow", runs(live, rounds, work)),
            ("names", "name", runs(storm, rounds, work)),
        )
    }
    if arguments.plot is not None:
        draw(arguments.plot, "Memory and time as the work grows", panels(found))


if __name__ == "__main__":
    main()
