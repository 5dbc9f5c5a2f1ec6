# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the speed and memory of the z-table, and of tables that could replace it.

Usage: python bench/ztable.py [--only PART ...] [--size F] [--repeat N] [--patience S] [--plot SVG]

Parts: live, window, large-z, hundred-million, growth, single, calls, hostile; all without --only.
--size scales the number of observations, names and users: 1 is the size of the stated figures (16
GB of memory, about half an hour), 0.001 a smoke test. Every case runs in a process of its own. Time
is CPU time, the median of the repeats, with the slowest and the fastest. Before each, the script
waits up to --patience seconds for a quiet machine. The tables in Python get the first 2,000,000 and
250,000 observations of a stream only, once. "zanon-net" is ZTable.observe_batch in Python, hashing
included, 50,000 observations a call.
"""

import argparse
import os
import platform
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from ztable_contenders import Setting, Who, compile_shared, list_buckets
from ztable_measure import Case, Laboratory
from ztable_streams import BURST_NS, BURST_TAIL, STEP_NS, Kind, Stream
from ztable_tables import MILLION, SPEED_HEADER, Line, Plan, goal, name_of, speed, speed_row, table

DAY_NS = 86_400 * 10**9
WINDOW_NS = 10 * 10**9
COLLIDING_CPP = 20_000  # names that collide for the C++ table, whose cost is quadratic in them


def slow_peers(plan: Plan, stream: Stream, setting: Setting) -> list[Line]:
    """Returns the tables in Python, which get the first observations of the stream only, once."""
    first = ((Who.ORDERED, 2 * MILLION), (Who.ZANON, MILLION // 4))
    return [
        Line(Case(who, replace(stream, observations=plan.scaled(n)), setting)) for who, n in first
    ]


def live(plan: Plan) -> str:
    """Returns All tuples live."""
    stream = plan.zipf(10 * MILLION)
    setting = Setting(10, DAY_NS)
    small = replace(setting, keep=16)
    lines = [
        Line(Case(Who.BATCH, stream, small, repeats=plan.repeats), 12, 12),
        Line(Case(Who.BATCH, stream, setting, repeats=plan.repeats), 8, 36),
        Line(Case(Who.CPP, stream, setting, repeats=min(plan.repeats, 3))),
        *slow_peers(plan, stream, setting),
    ]
    return speed(plan, "All tuples live: Zipf(1), z=10, a window of a day", lines)


def window(plan: Plan) -> str:
    """Returns a window of ten seconds, and its memory."""
    width = plan.scaled(WINDOW_NS // STEP_NS) * STEP_NS
    stream = plan.zipf(10 * MILLION)
    setting = Setting(10, width)
    small = replace(setting, keep=16)
    lines = [
        Line(Case(Who.BATCH, stream, small, repeats=plan.repeats), 15),
        Line(Case(Who.BATCH, stream, setting, repeats=plan.repeats), 8),
        Line(Case(Who.CPP, stream, setting, repeats=min(plan.repeats, 3))),
        *slow_peers(plan, stream, setting),
    ]
    text = speed(plan, "A window of 10 s: Zipf(1), z=10, 100,000 observations in it", lines)
    rows = []
    for line in lines[:2]:
        setting = line.case.setting
        one = replace(stream, observations=width // STEP_NS)
        peak = plan.measure(replace(line.case, repeats=1)).peak
        need = plan.measure(Case(Who.BATCH, one, setting)).memory
        name = name_of(Who.BATCH, setting)
        row = [name, f"{peak / 1e6:.2f}", f"{need / 1e6:.2f}", f"{peak / need:.2f}"]
        rows.append([*row, goal(False, peak / need, 2)])
    header = ("table", "most MB ever", "MB of a fresh table with one window", "ratio", "goal")
    return text + "\n" + table("Memory follows what is live", header, rows)


def large_z(plan: Plan) -> str:
    """z and keep of 350."""
    stream = plan.zipf(10 * MILLION)
    lines = [
        Line(Case(Who.BATCH, stream, Setting(350, DAY_NS, 350), repeats=plan.repeats), 6),
        Line(Case(Who.CPP, stream, Setting(350, DAY_NS), repeats=min(plan.repeats, 3))),
    ]
    return speed(plan, "z = 350: the same stream, all tuples live", lines)


def hundred_million(plan: Plan) -> str:
    """Returns a hundred million live tuples: ten times the observations, names and users."""
    stream = plan.zipf(104 * MILLION, 10 * MILLION)
    setting = Setting(10, DAY_NS, max_tuples=1 << 28)
    small = replace(setting, keep=16)
    repeats = min(plan.repeats, 3)
    lines = [
        Line(Case(Who.BATCH, stream, small, repeats=repeats), 8, 10),
        Line(Case(Who.BATCH, stream, setting, repeats=repeats), 5, 36),
    ]
    text = speed(
        plan, "100 M live tuples: Zipf(1) over 10 M names and 10 M users, z=10, growing", lines
    )
    return text + "\n" + reserved(plan, Case(Who.BATCH, stream, setting, repeats=repeats))


def reserved(plan: Plan, case: Case) -> str:
    """Measures with all memory of the caps reserved; the caps just suffice for the stream."""
    caps = {"max_tuples": plan.scaled(102 * MILLION), "max_attributes": plan.scaled(7_500_000)}
    case = replace(case, setting=replace(case.setting, reserve=True, **caps))
    result = plan.measure(case)
    text = table(
        "The same, not growing: all memory that the caps allow taken when the table is opened",
        SPEED_HEADER,
        [speed_row(Line(case), result)],
    )
    if result.missing:
        return text
    took = statistics.median(result.open_seconds)
    each = took / result.observations * 1e9
    return text + (
        f"\nOpening it took {took:.1f} s for {result.memory / 1e6:,.0f} MB, which the rate leaves "
        f"out: {each:.0f} ns more for each of these observations.\n"
    )


@dataclass(frozen=True, slots=True)
class Growth:
    """ns an observation of one table at one number of live tuples."""

    name: str
    live: int
    fill_ns: float
    steady_ns: float
    bytes_each: float  # 0: cannot be said

    @property
    def bytes_text(self) -> str:
        """bytes_each as a cell."""
        return f"{self.bytes_each:.1f}" if self.bytes_each else "-"


def growth_points(plan: Plan) -> list[Growth]:
    """From 10^4 to 10^8 live tuples, the C++ table up to 10^7."""
    points = []
    for exponent in range(4, 9):
        fill = plan.scaled(10**exponent)
        after = min(max(fill, plan.scaled(MILLION)), plan.scaled(10 * MILLION))
        stream = Stream(fill + after, max(fill // 10, 10), max(fill // 10, 10))
        setting = Setting(10, fill * STEP_NS, max_tuples=1 << 28)
        cases = [(Who.BATCH, replace(setting, keep=16)), (Who.BATCH, setting)]
        if exponent <= 7:
            cases.append((Who.CPP, setting))
        for who, how in cases:
            repeats = min(plan.repeats, 3) if exponent <= 7 and who is Who.BATCH else 1
            result = plan.measure(Case(who, stream, how, fill, repeats))
            fill_ns = min(result.fill_seconds) / fill * 1e9
            # A small growth of the process means little.
            known = who is Who.BATCH or result.live >= MILLION // 2
            each = result.memory / result.live if known else 0
            points.append(Growth(name_of(who, how), result.live, fill_ns, 1e3 / result.rate, each))
    return points


def growth(plan: Plan, plot: Path | None) -> str:
    """Cost against live tuples, as a table and a plot."""
    points = growth_points(plan)
    header = ("table", "live tuples", "ns, filling", "ns, steady", "B a live tuple")
    names = list(dict.fromkeys(point.name for point in points))
    rows = [
        [p.name, f"{p.live:,}", f"{p.fill_ns:.0f}", f"{p.steady_ns:.0f}", p.bytes_text]
        for name in names
        for p in points
        if p.name == name
    ]
    if plot is not None:
        draw(points, names, plot)
    title = "Cost an observation against live tuples: a tenth as many names and users"
    return table(title, header, rows)


def draw(points: Sequence[Growth], names: Sequence[str], path: Path) -> None:
    """Writes the plot."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "zanon_net"
    figure, axes = plt.subplots(figsize=(7, 4))
    for name in names:
        mine = [point for point in points if point.name == name]
        across = [point.live for point in mine]
        (line,) = axes.plot(across, [point.steady_ns for point in mine], marker="o", label=name)
        filling = [point.fill_ns for point in mine]
        axes.plot(across, filling, linestyle=":", color=line.get_color())
    axes.set(xscale="log", yscale="log", xlabel="live tuples", ylabel="ns an observation (CPU)")
    axes.set_title("Steady (line) and filling (dots)")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def single(plan: Plan) -> str:
    """One call an observation, from Python."""
    stream = replace(plan.zipf(10 * MILLION), observations=plan.scaled(2 * MILLION))
    lines = [
        Line(Case(Who.SINGLE, stream, Setting(10, DAY_NS, 16), repeats=plan.repeats), 1.5),
        Line(Case(Who.SINGLE, stream, Setting(10, DAY_NS), repeats=plan.repeats), 1.5),
    ]
    return speed(plan, "`observe`, one call an observation, from Python", lines)


def calls(plan: Plan) -> str:
    """Returns the worst single call."""
    fill = plan.scaled(10 * MILLION)
    ranks = plan.scaled(MILLION)
    stream = Stream(2 * fill, ranks, ranks)
    setting = Setting(10, fill * STEP_NS)
    rows = []
    for who, how in (
        (Who.BATCH, replace(setting, keep=16)),
        (Who.BATCH, setting),
        (Who.CPP, setting),
    ):
        burst = Stream(max(plan.scaled(2 * MILLION), 2 * BURST_TAIL), kind=Kind.BURST)
        for phase, part, first, window_ns in (
            ("filling", replace(stream, observations=fill), 0, how.window_ns),
            ("steady", stream, fill, how.window_ns),
            ("a burst leaves", burst, burst.observations - BURST_TAIL, BURST_NS),
        ):
            this = replace(how, window_ns=window_ns)
            best, came = plan.laboratory.calls(Case(who, part, this, first, repeats=3))
            cells = [f"{ns / 1e3:.2f}" for ns in (*best, *came[2:])]
            rows.append([name_of(who, how) + f", {phase}", *cells])
    header = ("table", "median", "99 %", "99.99 %", "max", "99.99 % as it came", "max as it came")
    title = "Single calls at up to 10 M live tuples, from C: us of wall time"
    legend = """
The same input three times: the first four columns have the least that each call took, the last two
all, interrupts included. A burst: 2,000,000 users of one name, all of whom but one leave the window
at once; the 1,000 calls after that.
"""
    return table(title, header, rows) + legend


def hostile(plan: Plan) -> str:
    """Input of an adversary who picks names and addresses."""
    many = plan.scaled(10 * MILLION)
    few = plan.scaled(MILLION)
    colliding = plan.scaled(COLLIDING_CPP)
    multiple = list_buckets(plan.laboratory.folder, colliding)
    streams = [
        Stream(many, kind=Kind.UNIQUE_NAMES),
        Stream(many, kind=Kind.ONE_NAME),
        Stream(few, kind=Kind.LOW_BITS),
        Stream(few, kind=Kind.FNV),
        Stream(few, kind=Kind.REMAINDER, multiple_of=multiple),
    ]
    setting = Setting(10, DAY_NS)
    rows = []
    for stream in streams:
        bounded = replace(setting, keep=16, max_attributes=plan.scaled(MILLION))
        cases = [(Who.BATCH, replace(setting, keep=16)), (Who.BATCH, setting)]
        if stream.kind is Kind.UNIQUE_NAMES:
            cases.append((Who.BATCH, bounded))
        if stream.kind not in (Kind.LOW_BITS, Kind.FNV):  # it uses neither
            cases.append((Who.CPP, setting))
        for who, how in cases:
            fed = stream
            if who is Who.CPP and stream.kind is Kind.REMAINDER:
                fed = replace(stream, observations=colliding)
            result = plan.measure(Case(who, fed, how, repeats=min(plan.repeats, 3)))
            bound = f", at most {how.max_attributes:,} names" if how is bounded else ""
            megabytes = f"{result.memory / 1e6:.2f}"
            each = f"{result.memory / result.live:.1f}"
            n, ns = f"{result.observations:,}", f"{1e3 / result.rate:,.0f}"
            rows.append([stream.kind.value, name_of(who, how) + bound, n, ns, megabytes, each])
    header = ("input", "table", "observations", "ns", "MB", "B an observed tuple")
    return table("Hostile input, z=10, all tuples live", header, rows)


def conditions(plan: Plan, began: datetime) -> str:
    """Returns the machine, the time, and the load before the cases."""
    info = Path("/proc/cpuinfo").read_text()
    model = next((line.split(":")[1] for line in info.split("\n") if "model name" in line), "")
    busy = plan.laboratory.busy
    quiet = f"{max(busy):.0%} busy at most before a case" if busy else "not waited for quiet"
    took = (datetime.now(UTC) - began).total_seconds() / 60
    return (
        f"{began:%Y-%m-%d}, {model.strip()}, {os.cpu_count()} cores, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}, zanon-net "
        f"{version('zanon-net')}; size {plan.size:g}, {plan.repeats} repeats, {took:.0f} minutes; "
        f"load {os.getloadavg()[1]:.2f} at the end, {quiet}."
    )


def main() -> None:
    """Runs the requested parts and prints their tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", nargs="+", metavar="PART", default=[])
    parser.add_argument("--size", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--patience", type=float, default=60.0)
    parser.add_argument("--plot", type=Path, help="write the plot of the growth part here")
    options = parser.parse_args()
    if not 0 < options.size <= 1 or options.repeat < 1:
        parser.error("--size is above 0 and up to 1, --repeat at least 1")
    began = datetime.now(UTC)
    with tempfile.TemporaryDirectory() as folder:
        compile_shared(Path(folder))
        plan = Plan(Laboratory(Path(folder), options.patience), options.size, options.repeat)
        parts: dict[str, Callable[[], str]] = {
            "live": lambda: live(plan),
            "window": lambda: window(plan),
            "large-z": lambda: large_z(plan),
            "hundred-million": lambda: hundred_million(plan),
            "growth": lambda: growth(plan, options.plot),
            "single": lambda: single(plan),
            "calls": lambda: calls(plan),
            "hostile": lambda: hostile(plan),
        }
        unknown = [name for name in options.only if name not in parts]
        if unknown:
            parser.error(f"no part is called {unknown[0]}; there are {', '.join(parts)}")
        for name in options.only or parts:
            print(parts[name](), flush=True)
        print(conditions(plan, began))


if __name__ == "__main__":
    main()
