# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Compares `zanon-net filter` with the csv or json module and OrderedDicts.

Usage: python bench/filter.py [--rows 2000000] [--peer-rows 200000] [--repeat 3]

Attributes and users are drawn by Zipf's law from 100,000 each; z = 20 within an hour. Both read the
same files and write files, as child processes in turn: only the ratio of one run means anything.
CPU seconds are the children's user and system time, start-up included; the peer gets fewer rows,
and rows per CPU-second are compared. Of those rows the two must release the same.
"""

import argparse
import csv
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

import numpy as np

PEER = Path(__file__).resolve().parent / "filter_peer.py"
Z, WINDOW_S = 20, 3600
KINDS = 100_000  # of attributes, and of users
ROWS_PER_S = 100
START_S = 1_700_000_000


def draw(rows: int, seed: int) -> np.ndarray:
    """Returns `rows` numbers below KINDS by Zipf's law."""
    weights = 1 / np.arange(1, KINDS + 1)
    picked = np.random.default_rng(seed).choice(KINDS, rows, p=weights / weights.sum())
    return np.asarray(picked)


def write_inputs(folder: Path, rows: int, name: str) -> dict[str, Path]:
    """Writes the same rows as CSV and as JSON Lines; returns the paths."""
    paths = {format: folder / f"{name}.{format}" for format in ("csv", "jsonl")}
    with paths["csv"].open("w") as table, paths["jsonl"].open("w") as lines:
        table.write("time,user,attribute\n")
        for i, (user, attribute) in enumerate(zip(draw(rows, 1), draw(rows, 2), strict=True)):
            t = f"{START_S + i // ROWS_PER_S}.{i % ROWS_PER_S:02}"
            table.write(f"{t},user{user},item{attribute}.example\n")
            lines.write(f'{{"time": {t}, "user": "user{user}", ')
            lines.write(f'"attribute": "item{attribute}.example"}}\n')
    return paths


def cpu_seconds(command: Sequence[str], source: IO[bytes], out: IO[bytes]) -> float:
    """Runs a child to its end and returns its CPU time; raises SystemExit if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdin=source, stdout=out, stderr=subprocess.PIPE, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{command[0]} ended with {done.returncode}: {done.stderr[-500:]!r}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(commands: Sequence[tuple[list[str], Path, Path]], repeat: int) -> list[float]:
    """Runs the commands in turn, `repeat` times; returns the median CPU time of each."""
    costs: list[list[float]] = [[] for _ in commands]
    for _ in range(repeat):
        for cost, (command, source, out) in zip(costs, commands, strict=True):
            source.read_bytes()  # into the page cache
            with source.open("rb") as reader, out.open("wb") as writer:
                cost.append(cpu_seconds(command, reader, writer))
    return [statistics.median(cost) for cost in costs]


def shown(format: str, path: Path) -> Iterable[tuple[float, str]]:
    """Returns the time and the attribute of each row; pseudonyms are random."""
    with path.open(newline="") as lines:
        if format == "csv":
            return [(float(row["time"]), row["attribute"]) for row in csv.DictReader(lines)]
        read = [json.loads(line) for line in lines]
    return [(float(row["time"]), row["attribute"]) for row in read]


def compare(format: str, folder: Path, arguments: argparse.Namespace) -> None:
    """Prints a line of the table for one format."""
    whole = write_inputs(folder, arguments.rows, "whole")[format]
    part = write_inputs(folder, arguments.peer_rows, "part")[format]
    ours = [str(arguments.zanon_net), "filter", "--time-unit", "s", "--z", str(Z), "-q"]
    peer = [sys.executable, str(PEER), format, str(Z), str(WINDOW_S)]
    outs = [folder / name for name in ("ours", "peer", "check")]
    seconds, peer_seconds, _ = measure(
        [(ours, whole, outs[0]), (peer, part, outs[1]), (ours, part, outs[2])], arguments.repeat
    )
    released = list(shown(format, outs[2]))
    if released != list(shown(format, outs[1])):
        raise SystemExit(f"{format}: the two release different rows: no comparison")
    rate, peer_rate = arguments.rows / seconds, arguments.peer_rows / peer_seconds
    share = len(released) / arguments.peer_rows
    print(f"| {format} | {rate:,.0f} | {peer_rate:,.0f} | {rate / peer_rate:.1f} | {share:.0%} |")


def main() -> None:
    """Measures both formats."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--peer-rows", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=3)
    beside = Path(sys.executable).parent / "zanon-net"
    parser.add_argument("--zanon-net", type=Path, default=beside, metavar="PATH")
    arguments = parser.parse_args()
    print("| input | zanon-net filter, rows/CPU-s | Python, rows/CPU-s | ratio | released |")
    print("|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for format in ("csv", "jsonl"):
            compare(format, Path(folder), arguments)


if __name__ == "__main__":
    main()
