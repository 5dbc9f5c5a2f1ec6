# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures rows/s of buffered release: the windows alone, CSV to CSV, Arrow to Arrow; memory over a
stream.

python bench/publish.py [--rows 300000] [--repeat 3]

One core, CPU seconds, the least of the repeats, at k = 10, 50 rows a window, l = 2, three
quasi-identifiers. `filter` runs on these rows, too, and the tests' oracle in plain Python on these
windows. The longer of two runs shows the memory that a row leaves behind; --rows 100M is the bar.
"""

import argparse
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from oracle.publishing import Came, Stream
from oracle.suhdsa import Grouper, Rule, Tree

from zanon_net import microdata as md
from zanon_net._core import CodedPublisher, RowFilter, RowPublisher
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.config.parse import parse_size
from zanon_net.config.schema import rows_of
from zanon_net.config.setting import core_arguments, read_settings

K, WINDOW, L = 10, 50, 2
BLOCK = 100_000  # rows that are made once and fed again
PORTION = 1 << 18
SIZES = (20, 16, 41)
NAMES = ("city", "job", "land")
VALUES = 9


def hierarchy(size: int) -> md.Hierarchy:
    """Leaves in groups of four, and these in groups of four."""
    lines = [(f"v{i}", f"g{i // 4}", f"h{i // 16}", "*") for i in range(size)]
    return md.Hierarchy.from_lines(lines)


HIERARCHIES = [hierarchy(size) for size in SIZES]


@cache
def codes() -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Skewed quasi-identifiers, sensitive values and users of a block."""
    chance = np.random.default_rng(1)
    quasi = [np.minimum(chance.zipf(1.6, BLOCK) - 1, size - 1).astype(np.int32) for size in SIZES]
    sensitive = np.minimum(chance.zipf(1.5, BLOCK), VALUES).astype(np.uint64)
    return quasi, sensitive, chance.integers(0, 50_000, BLOCK).astype(np.uint64)


def texts() -> bytes:
    """Returns the block as CSV, without a header."""
    quasi, sensitive, users = codes()
    lines = zip(*(column.tolist() for column in (users, *quasi, sensitive)), strict=True)
    return "".join(
        f"{1_700_000_000 + i // 50},u{user},v{a},v{b},v{c},item{value},x\n"
        for i, (user, a, b, c, value) in enumerate(lines)
    ).encode()


HEADER = b"time,user,city,job,land,item,other\n"


def row_publisher() -> RowPublisher:
    """Returns As the command opens it."""
    rows = rows_of("publish")
    options = {
        "user": "user",
        "quasi": NAMES,
        "sensitive": "item",
        "k": K,
        "l": L,
        "rows": WINDOW,
        "hierarchy": [f"{name}=unread" for name in NAMES],
        "time_unit": "s",
    }
    settings = read_settings(rows, {row.name: row.default for row in rows} | options)
    return RowPublisher([h.taxonomy for h in HIERARCHIES], **core_arguments(rows, settings))


def cpu(job: Callable[[], object], repeat: int) -> float:
    """Returns the least CPU seconds of a job."""
    least = float("inf")
    for _ in range(repeat):
        began = time.process_time()
        job()
        least = min(least, time.process_time() - began)
    return least


def portions(body: bytes, rows: int) -> Iterator[bytes]:
    """Yields the header, and the body as often as it takes."""
    yield HEADER
    for _ in range(max(rows // BLOCK, 1)):
        for i in range(0, len(body), PORTION):
            yield body[i : i + PORTION]


def feed(reader: Any, body: bytes, rows: int) -> None:
    """Rows through a reader, its output thrown away."""
    for portion in portions(body, rows):
        reader.feed(portion)
        reader.take()
    reader.end()
    reader.finish()


def core(rows: int) -> None:
    """The windows alone."""
    quasi, sensitive, users = codes()
    publisher = CodedPublisher(
        [h.taxonomy for h in HIERARCHIES],
        k=K,
        l=L,
        kind=0,
        c=1.0,
        max_share=1.0,
        sensitive_count=1,
        with_user=True,
        rows=WINDOW,
        delay_ns=0,
        sliding=False,
        neighbours=3,
        growth=3,
        lambda_=0.7,
        adapt_l=0,
        adapt_way=0,
        once_ns=0,
    )
    times = np.arange(BLOCK, dtype=np.int64)
    for i in range(max(rows // BLOCK, 1)):
        publisher.feed(times, users, quasi, [sensitive], i * BLOCK)
        publisher.take()


def arrow_table() -> Any:
    """Returns the block as Arrow has it."""
    import pyarrow as pa

    quasi, sensitive, users = codes()
    columns = {"time": 1_700_000_000 + np.arange(BLOCK) // 50, "user": users}
    columns |= {
        name: pa.array([f"v{i}" for i in codes_of])
        for name, codes_of in zip(NAMES, quasi, strict=True)
    }
    return pa.table(columns | {"item": sensitive})


def arrow(table: Any, rows: int) -> None:
    """Arrow to Arrow."""
    plan = md.Plan(
        quasi=dict(zip(NAMES, HIERARCHIES, strict=True)), sensitive="item", user="user", k=K, l=L
    )
    publisher = md.Publisher(plan, rows=WINDOW, time_unit="s")
    for _ in range(max(rows // BLOCK, 1)):
        publisher.feed(table)
    publisher.flush()


def plain(rows: int) -> None:
    """Runs the windows through the oracle."""
    quasi, sensitive, users = codes()
    trees = [Tree(h.parent.tolist()) for h in HIERARCHIES]
    stream = Stream(Grouper(trees, Rule(K, L)), [h.labels for h in HIERARCHIES], WINDOW)
    for i in range(rows):
        nodes = tuple(int(column[i]) for column in quasi)
        stream.take(Came(i, nodes, (int(sensitive[i]),), int(users[i])))
    stream.end()


def memory_mib() -> float:
    """Returns the most that this process had in memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="300000", help="rows of the long run; 100M is the bar")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    rows = parse_size("rows", options.rows) if options.rows.isdigit() else _rows(options.rows)
    random.seed(1)
    body, few = texts(), 300_000
    setting = FilterConfig(time_unit="s", z=5, attribute="item", no_user=True)
    feed(row_publisher(), body, BLOCK)
    before = memory_mib()
    feed(row_publisher(), body, rows)
    grown = memory_mib() - before
    table = arrow_table()
    speeds = {
        "windows alone (core)": few / cpu(lambda: core(few), options.repeat),
        "CSV to CSV": few / cpu(lambda: feed(row_publisher(), body, few), options.repeat),
        "Arrow to Arrow (md.Publisher)": few / cpu(lambda: arrow(table, few), options.repeat),
        "filter, CSV to CSV": few
        / cpu(lambda: feed(RowFilter(**setting.row_filter_arguments()), body, few), options.repeat),
        "oracle in plain Python": 2_000 / cpu(lambda: plain(2_000), 1),
    }
    slowest = speeds["oracle in plain Python"]
    print(f"k = {K}, {WINDOW} rows a window, l = {L}; rows per CPU second of one core\n")
    print("| | rows/s | times the oracle | of filter |\n|---|---:|---:|---:|")
    for name, speed in speeds.items():
        of_filter = speed / speeds["filter, CSV to CSV"]
        print(f"| {name} | {speed:,.0f} | {speed / slowest:,.0f} | {of_filter:.2f} |")
    print(
        f"\nmemory after {BLOCK:,} rows: {before:,.1f} MiB; after {rows:,} more: +{grown:.1f} MiB"
    )


def _rows(text: str) -> int:
    return int(float(text[:-1]) * {"k": 10**3, "M": 10**6}[text[-1]])


if __name__ == "__main__":
    main()
