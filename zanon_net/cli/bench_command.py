# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net bench`: the speed of this machine, on traffic that is generated first."""

import json
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import click

from zanon_net._text import table, terminal_width
from zanon_net.bench.machine import describe_machine
from zanon_net.bench.measure import Measured, measure
from zanon_net.bench.traffic import TRAFFIC, USUAL_TRAFFIC
from zanon_net.config.parse import parse_size, reject
from zanon_net.system.file_errors import explained

BYTES_MIN = 1 << 20
REPEAT_MAX = 100
USUAL_BYTES = "500M"
EPILOG = """\b
The captures are written below $TMPDIR, one at a time, and removed again.

\b
Examples:
  zanon-net bench
  zanon-net bench --traffic isp --bytes 2G --repeat 5
  zanon-net bench --json > bench.json
"""


@dataclass(frozen=True, slots=True)
class Result:
    """One kind of traffic: the content of its capture, and the cost of reading it."""

    traffic: str
    truth: Mapping[str, Any]
    measured: Measured

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        measured = self.measured
        return {
            "traffic": self.traffic,
            "packets": measured.packets,
            "bytes": measured.octets,
            "flows": measured.flows,
            "names": measured.names,
            "names_sent": sum(self.truth["name_flows"].values()),
            "whole": {
                **measured.rates(),
                "cpu_s": round(measured.cpu_s, 6),
                "wall_s": round(measured.wall_s, 6),
                "peak_memory_bytes": measured.memory_bytes,
            },
            "stages": {
                name: {"share": round(share, 4), **measured.rates(share)}
                for name, share in measured.shares.items()
            },
            "samples": measured.samples,
        }

    def print(self) -> None:
        """For people."""
        measured = self.measured
        rows = [("stage", "time", "ns a packet", "M packets/s", "Gbit/s")]
        for name, share in measured.shares.items():
            rows.append((name, f"{share:.1%}", *_cells(measured.rates(share))))
        rows.append(("whole", "", *_cells(measured.rates())))
        facts = (
            f"{measured.packets:,} packets of {measured.octets / measured.packets:,.0f} bytes,"
            f" {measured.flows:,} flows, {measured.names:,} names; {measured.wall_s:.2f} s,"
            f" {measured.cpu_s:.2f} CPU s,"
            f" at most {measured.memory_bytes / 2**20:,.0f} MiB of memory"
        )
        for line in ("", f"{self.traffic}: {TRAFFIC[self.traffic]}", facts):
            click.echo(line)
        click.echo(table(rows, terminal_width(), right=range(1, len(rows[0]))), nl=False)


def _cells(rates: Mapping[str, float]) -> tuple[str, str, str]:
    return (
        f"{rates['ns_per_packet']:,.1f}",
        f"{rates['packets_per_s'] / 1e6:,.2f}",
        f"{rates['gbit_per_s']:,.2f}",
    )


def measure_traffic(traffic: str, octets: int, repeat: int) -> Result:
    """Generates and measures one kind of traffic. Raises ZanonError or OSError."""
    from zanon_net.bench.trace import Scale, generate  # late: other commands do without its time

    with tempfile.TemporaryDirectory() as scratch:
        trace = Path(scratch, f"{traffic}.pcap")
        with explained("write", trace):
            truth = generate(trace, traffic, Scale(octets=octets))
        return Result(traffic, truth, measure(trace, repeat))


@click.command("bench", epilog=EPILOG)
@click.option(
    "--traffic",
    type=click.Choice(list(TRAFFIC)),
    multiple=True,
    help=f"The kind of traffic; repeatable. [default: {', '.join(USUAL_TRAFFIC)}]",
)
@click.option(
    "--bytes",
    "octets",
    metavar="BYTES",
    default=USUAL_BYTES,
    show_default=True,
    help="Size of each capture.",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, REPEAT_MAX),
    metavar="N",
    default=3,
    show_default=True,
    help="How often each is read; the median counts.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON instead of tables.")
def bench_command(traffic: Sequence[str], octets: str, repeat: int, as_json: bool) -> int:
    """Measure what this machine does, on generated traffic.

    Each capture is read by the whole of `run` on one core, from the page cache to the logs. Rates
    are per CPU-second, so what else runs here matters little. The stages are parts of the whole:
    reading the file, decoding packets, the flow table, reading names, Crypto-PAn, z-anonymity, and
    writing.
    """
    size = parse_size("--bytes", octets)
    if size < BYTES_MIN:
        reject("--bytes", "must be at least 1M")
    machine = describe_machine()
    results = []
    if not as_json:
        click.echo(_machine_line(machine))
    with _other_signals_as_interrupts():
        for kind in traffic or USUAL_TRAFFIC:
            results.append(measure_traffic(kind, size, repeat))
            if not as_json:
                results[-1].print()
    if as_json:
        answer = {"machine": machine, "repeat": repeat, "results": [r.to_dict() for r in results]}
        click.echo(json.dumps(answer, indent=2))
    return 0


@contextmanager
def _other_signals_as_interrupts() -> Iterator[None]:
    """SIGTERM and SIGHUP, unless ignored, end the block as SIGINT does: no capture is left."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    former = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) != signal.SIG_IGN}
    for number in former:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _machine_line(machine: Mapping[str, str | int]) -> str:
    return (
        f"{machine['date']}, {machine['processor']}, one of {machine['cores']} cores used,"
        f" {machine['system']}, Python {machine['python']}, zanon_net {machine['zanon_net']}"
    )
