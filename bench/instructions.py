# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions that commands execute, and compares them with committed figures.

Usage: python bench/instructions.py [--update] [--repeat N]

A figure does not depend on the speed or the load of a machine. It is a difference of two counts by
callgrind: a command reads its input, and reads the first packet or row of the input. The difference
is divided by the number of further packets or rows, so start-up is taken off. `start-up` itself is
a run over a capture of one packet. Seeds, keys and hash secrets are the same in each round.

`bench/instructions.json` has the committed figures, and the tools that made them. The program fails
if a figure is more than 1 % above the committed figure (start-up 5 %, because it depends on the
release of Python and of packages). A figure that is as far below is reported. Figures of another
compiler or Python cannot be compared: the program then prints a warning, and fails in CI.
`--update` writes the file and prints the figures that it replaces. `--repeat` counts N times and
prints the spread.
"""

import argparse
import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from instructions_record import Figure, Record, compare, judge, tools_here

from zanon_net.bench.trace import PCAP_HEADER, Scale, generate
from zanon_net.bench.trace_flows import Ints

RECORD = Path(__file__).with_name("instructions.json")
FIXED_RANDOM = Path(__file__).with_name("fixed_random.c")
PYTHON = sys.executable
COMMAND = (PYTHON, str(Path(PYTHON).with_name("zanon-net")))
# Nothing else of the caller's environment reaches a command, because its size moves the stack.
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONSAFEPATH": "1",
    "LD_PRELOAD": "./fixed_random.so",
    "OPENBLAS_NUM_THREADS": "1",  # NumPy's further threads wait in a loop
}
TRACES = {"isp": 24_000_000, "min64": 16_000_000, "storm1": 8_000_000, "modern": 24_000_000}
SCALE = {"homes": 2_000, "names": 10_000}
INTERNAL = "10.64.0.0/10,2001:db8:1000::/36"  # clients of the traces
ROWS = {"filter": 60_000, "publish": 40_000}
OBSERVATIONS = 400_000
START_S = 1_700_000_000
LEAVES = 16  # values of a quasi-identifier of `publish`
OBSERVE = """
import sys
import numpy as np
from zanon_net import ZTable
count = int(sys.argv[1])
columns = [np.load(f"{name}.npy")[:count] for name in ("time", "user", "name")]
ZTable(20, 3_600_000_000_000).observe_batch(*columns)
"""


@dataclass(frozen=True, slots=True)
class Area:
    """Commands whose difference is a figure.

    `unit` is the object for which instructions are given, and `units` is the number of objects that
    `whole` reads and `first` does not. `first` is None if nothing is taken off. `inputs` are the
    files that `whole` reads.
    """

    name: str
    unit: str
    units: int
    inputs: tuple[str, ...]
    whole: tuple[str, ...]
    first: tuple[str, ...] | None


def write_key(folder: Path) -> None:
    """Writes the key of pseudonyms. Only its owner may read a key."""
    path = folder / "key"
    path.write_bytes(base64.b64encode(bytes(range(32))) + b"\n")
    path.chmod(0o600)


def build_fixed_random(folder: Path) -> None:
    """Builds the library that replaces random keys. Commands load it from their folder."""
    library = folder / "fixed_random.so"
    words = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(FIXED_RANDOM)]
    subprocess.run(words, check=True)


def first_packet(trace: Path) -> bytes:
    """Returns a capture with the first packet of a trace."""
    data = trace.read_bytes()
    start = len(PCAP_HEADER)
    return data[: start + 16 + int.from_bytes(data[start + 8 : start + 12], "little")]


def trace_areas(folder: Path) -> list[Area]:
    """Writes the traces and returns the areas of `run` and `packets`."""
    truths = {
        profile: generate(folder / f"{profile}.pcap", profile, Scale(octets=octets, **SCALE))
        for profile, octets in TRACES.items()
    }
    (folder / "first.pcap").write_bytes(first_packet(folder / "isp.pcap"))

    def run(name: str) -> tuple[str, ...]:
        out = f"out-{name}"
        return (*COMMAND, "run", f"{name}.pcap", "--out", out, "--key-file", "key", "-q")

    def cut(name: str) -> tuple[str, ...]:
        return (*COMMAND, "packets", f"{name}.pcap", f"cut-{name}.pcap", "--payload", "cut",
                "--internal", INTERNAL, "--key-file", "key", "-q")  # fmt: skip

    areas = [Area("start-up", "run", 1, ("first.pcap",), run("first"), None)]
    for profile, truth in truths.items():
        further, inputs = truth["packets"] - 1, (f"{profile}.pcap",)
        areas.append(Area(profile, "packet", further, inputs, run(profile), run("first")))
        if profile == "isp":
            areas.append(Area("packets cut", "packet", further, inputs, cut("isp"), cut("first")))
    return areas


def write_rows(folder: Path, name: str, header: str, row: Callable[[int], str]) -> None:
    """Writes the rows of a command, and in a second file the first of them."""
    lines = [header, *map(row, range(ROWS[name]))]
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="ascii")
    (folder / f"{name}-1.csv").write_text("\n".join(lines[:2]) + "\n", encoding="ascii")


def zipf(count: int, kinds: int, seed: int) -> Ints:
    """Returns `count` numbers below `kinds` by Zipf's law."""
    weights = np.cumsum(1 / np.arange(1, kinds + 1))
    drawn = np.random.default_rng(seed).random(count) * weights[-1]
    return np.asarray(np.searchsorted(weights, drawn), dtype=np.int64)


def row_areas(folder: Path) -> list[Area]:
    """Writes the rows and returns the areas of `filter` and `publish`."""
    count = max(ROWS.values())
    users, items = zipf(count, 20_000, 1).tolist(), zipf(count, 20_000, 2).tolist()
    cities, jobs = zipf(count, LEAVES, 3).tolist(), zipf(count, LEAVES, 4).tolist()
    write_rows(
        folder, "filter", "time,user,attribute",
        lambda i: f"{START_S + i // 100},user{users[i]},item{items[i]}.example",
    )  # fmt: skip
    write_rows(
        folder, "publish", "time,user,city,job,item",
        lambda i: f"{START_S + i // 100},u{users[i]},v{cities[i]},v{jobs[i]},item{items[i] % 9}",
    )  # fmt: skip
    tree = "".join(f"v{i};g{i // 4};*\n" for i in range(LEAVES))
    (folder / "tree.csv").write_text(tree, encoding="ascii")
    options = {
        "filter": ("--key-file", "key"),
        "publish": ("--user", "user", "--quasi", "city,job", "--sensitive", "item", "--l", "2",
                    "--rows", "50", "--hierarchy", "city=tree.csv",
                    "--hierarchy", "job=tree.csv"),
    }  # fmt: skip
    return [
        Area(name, "row", ROWS[name] - 1, (f"{name}.csv",),
             *((*COMMAND, name, "-q", "--time-unit", "s", *options[name], f"{stem}.csv")
               for stem in (name, f"{name}-1")))
        for name in ROWS
    ]  # fmt: skip


def table_area(folder: Path) -> Area:
    """Writes observations and returns the area of `observe_batch`."""
    columns = {
        "time": START_S * 1_000_000_000 + np.arange(OBSERVATIONS, dtype=np.int64) * 1_000_000,
        "user": zipf(OBSERVATIONS, 100_000, 5),
        "name": zipf(OBSERVATIONS, 100_000, 6),
    }
    for name, column in columns.items():
        np.save(folder / f"{name}.npy", column)
    inputs = tuple(f"{name}.npy" for name in columns)
    whole, first = ((PYTHON, "-c", OBSERVE, str(count)) for count in (OBSERVATIONS, 1))
    return Area("observe_batch", "observation", OBSERVATIONS - 1, inputs, whole, first)


def count(words: Sequence[str], folder: Path) -> int:
    """Returns the instructions of a command. Ends the program if the command fails."""
    valgrind = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
    done = subprocess.run(
        [*valgrind, *words], cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"{' '.join(words)} failed:\n{done.stderr[-2000:]}")
    return int(found[1])


def digest(folder: Path, inputs: Sequence[str]) -> str:
    """Returns a short digest of the files that an area reads."""
    whole = hashlib.sha256(b"".join((folder / name).read_bytes() for name in inputs))
    return whole.hexdigest()[:16]


def measure() -> dict[str, Figure]:
    """Counts all areas, a command on each processor at a time."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_key(folder)
        build_fixed_random(folder)
        areas = [*trace_areas(folder), *row_areas(folder), table_area(folder)]
        commands = list(dict.fromkeys(c for area in areas for c in (area.whole, area.first) if c))
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            counts = dict(
                zip(commands, pool.map(lambda words: count(words, folder), commands), strict=True)
            )
        return {
            area.name: Figure(
                round((counts[area.whole] - (counts[area.first] if area.first else 0))
                      / area.units, 2),
                area.unit,
                digest(folder, area.inputs),
            )
            for area in areas
        }  # fmt: skip


def print_spread(rounds: Sequence[dict[str, Figure]]) -> None:
    """Prints how far the figures of several rounds are apart."""
    for name in rounds[0]:
        values = [figures[name].instructions for figures in rounds]
        spread = (max(values) - min(values)) / min(values)
        print(f"{name:14} {min(values):14,.1f} to {max(values):14,.1f}: {spread:.4%}")


def main() -> int:
    """Counts, compares and prints; or writes the file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--update", action="store_true", help="write bench/instructions.json")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="rounds (default 1)")
    arguments = parser.parse_args()
    began = time.monotonic()
    committed = Record.read(RECORD)
    rounds = [measure() for _ in range(arguments.repeat)]
    here = Record(tools_here(), rounds[0])
    if arguments.repeat > 1:
        print_spread(rounds)
    if arguments.update:
        RECORD.write_text(here.to_json(), encoding="utf-8")
        lines, failed = compare(committed, here), False
    else:
        lines, failed = judge(committed, here, os.environ.get("CI") == "true")
    print(*lines, f"{time.monotonic() - began:.0f} s", sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
