# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures for bench/ztable.py: each case in a process of its own, when the machine is quiet.

The repeats of a case follow each other in one process. Touching memory for the first time costs
most when the host of a virtual machine has to provide it, which later repeats are partly spared;
the kernel's share of the time is stated.
"""

import multiprocessing
import resource
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from ztable_contenders import Contender, Setting, Shared, Who, make
from ztable_streams import Columns, Stream

from zanon_net import CapacityError

QUIET = 0.10  # busy share of all processors, below which timing starts
REPEAT_S = 0.2  # shorter measurements are repeated until they took as long together
REPEATS_MAX = 50


@dataclass(frozen=True, slots=True)
class Case:
    """A stream for a contender: one line of a table. The first `fill` observations count apart."""

    who: Who
    stream: Stream
    setting: Setting
    fill: int = 0
    repeats: int = 1


@dataclass(slots=True)
class Result:
    """The cost of a case: CPU seconds of each repeat, bytes at the end of the first."""

    observations: int
    live: int
    seconds: list[float] = field(default_factory=list)
    fill_seconds: list[float] = field(default_factory=list)
    kernel_seconds: list[float] = field(default_factory=list)  # of all, as the kernel guesses it
    open_seconds: list[float] = field(default_factory=list)  # not among the others
    memory: int = 0  # as the table reports it, or the growth of the process if it does not
    resident: int = 0  # the growth of the process
    peak: int = 0  # the largest value that the table reported
    missing: str = ""

    @property
    def rate(self) -> float:
        """Millions of observations per CPU second: the median."""
        return self.observations / statistics.median(self.seconds) / 1e6

    @property
    def kernel_ns(self) -> float:
        """Nanoseconds of an observation that went into the kernel: the median."""
        return statistics.median(self.kernel_seconds) / self.observations * 1e9

    @property
    def range(self) -> tuple[float, float]:
        """The slowest and the fastest repeat, in the same unit."""
        rates = [self.observations / seconds / 1e6 for seconds in self.seconds]
        return min(rates), max(rates)


def resident_bytes() -> int:
    """Physical memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def feed(case: Case, table: Contender, columns: Columns, result: Result) -> tuple[float, float]:
    """Feeds everything; returns CPU seconds of the first `fill` observations and of the rest."""
    seconds = [0.0, 0.0]
    kernel = 0.0
    for part, span in enumerate(((0, case.fill), (case.fill, len(columns)))):
        for chunk in columns.chunks(*span):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_stime
            seconds[part] += table.run(chunk)
            kernel += resource.getrusage(resource.RUSAGE_SELF).ru_stime - before
            result.peak = max(result.peak, table.memory())
    result.kernel_seconds.append(kernel)
    return seconds[0], seconds[1]


def run_once(case: Case, columns: Columns, folder: Path, result: Result) -> None:
    """Feeds everything to a new table and notes the cost."""
    before = resident_bytes()
    table = make(case.who, case.setting, folder)
    result.open_seconds.append(getattr(table, "open_seconds", 0.0))
    fill_seconds, seconds = feed(case, table, columns, result)
    result.fill_seconds.append(fill_seconds)
    result.seconds.append(seconds)
    if len(result.seconds) == 1:
        result.resident = resident_bytes() - before
        result.memory = table.memory() or result.resident
    table.close()


def measure_here(case: Case, folder: Path) -> Result:
    """Measures in this process."""
    columns = case.stream.columns()
    window = case.setting.window_ns // max(int(np.diff(columns.t_ns[:2]).sum()), 1) + 1
    live = columns.distinct(min(window, len(columns)))
    result = Result(len(columns) - case.fill, live)
    try:
        make(case.who, case.setting, folder).close()  # loads its code, which does not count
        while len(result.seconds) < case.repeats or (
            sum(result.seconds) < REPEAT_S and len(result.seconds) < REPEATS_MAX
        ):
            run_once(case, columns, folder, result)
    except ModuleNotFoundError as error:
        result.missing = f"{error.name} is not installed"
    except CapacityError as error:
        result.missing = str(error)
    return result


def calls_here(case: Case, folder: Path) -> tuple[list[float], list[float]]:
    """Percentiles 50, 99, 99.99 and 100 of single calls in ns: at their best, and as they came.

    The calls after the first `fill` observations are timed. An interrupt hits another call each
    time, so the least time of a call over several runs is its own; "as they came" includes all.
    """
    columns = case.stream.columns()
    prefix = "list" if case.who is Who.CPP else "calls"
    best = came = np.empty(0, np.uint32)
    for _ in range(case.repeats):
        table = Shared(folder, prefix, case.setting)
        for chunk in columns.chunks(0, case.fill):
            table.each(chunk)
        parts = [table.each(chunk) for chunk in columns.chunks(case.fill, len(columns))]
        table.close()
        took = np.concatenate(parts)
        best = np.minimum(best, took) if len(best) else took
        came = np.concatenate((came, took))
    at = (50, 99, 99.99, 100)
    return np.percentile(best, at).tolist(), np.percentile(came, at).tolist()


def busy_share(seconds: float) -> float:
    """Returns the part of all processors' time that was in use, now."""

    def read() -> tuple[int, int]:
        ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        return sum(ticks), ticks[3] + ticks[4]

    total, idle = read()
    time.sleep(seconds)
    total_after, idle_after = read()
    return 1 - (idle_after - idle) / max(total_after - total, 1)


class Laboratory:
    """Runs cases one by one; `patience_s` is how long each may wait for a quiet machine."""

    def __init__(self, folder: Path, patience_s: float) -> None:
        self.folder = folder
        self.patience_s = patience_s
        self.busy: list[float] = []  # share in use before each case

    def _wait(self) -> None:
        if self.patience_s <= 0:
            return
        end = time.monotonic() + self.patience_s
        while (busy := busy_share(1.0)) > QUIET and time.monotonic() < end:
            pass
        self.busy.append(busy)

    def _child(self) -> ProcessPoolExecutor:
        self._wait()
        return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))

    def measure(self, case: Case) -> Result:
        """One case, in a child."""
        with self._child() as child:
            return child.submit(measure_here, case, self.folder).result()

    def calls(self, case: Case) -> tuple[list[float], list[float]]:
        """Returns the single calls of one case, in a child."""
        with self._child() as child:
            return child.submit(calls_here, case, self.folder).result()
