# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of `microdata.check`, of pyarrow's group_by, and of pycanon's l_diversity.

Usage: python bench/microdata_check.py [--rows 3256100] [--repeat 5] [--made-up]

The table is UCI Adult (bench/adult.py downloads it), repeated; with --made-up, a table of its
shape. Three columns are the quasi-identifiers, then seven; the income is sensitive. group_by counts
the rows and distinct incomes of each class, which gives k and distinct l; `check` gives the whole
report. All start from texts in Arrow (pycanon from pandas) and run in turn in this process; the
medians of CPU seconds are compared. k and l must be equal.

Before that, the examples of Adult in the chapter on k-anonymity are checked.

pycanon 1.3.5 needs other versions of the libraries that zanon_net uses, so it is installed without
its requirements into build/pycanon. The bars: `check` within 1.2 times group_by, and 20 times as
fast as l_diversity.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import adult
import numpy as np
import pyarrow as pa

from zanon_net import microdata as md

ROOT = Path(__file__).resolve().parents[1]
PYCANON = ROOT / "build" / "pycanon"
VERSION = "1.3.5"
BEHIND_GROUP_BY, BEFORE_PYCANON = 1.2, 20
THREE = ("education", "occupation", "native-country")
SEVEN = (*THREE, "workclass", "marital-status", "race", "sex")
SENSITIVE = "income"
ADULT_ROWS = 32_561
# Distinct values of each column of Adult, and an exponent that makes as many classes as Adult has.
SHAPE = {
    "education": (16, 0.9),
    "occupation": (15, 0.5),
    "native-country": (42, 2.7),
    "workclass": (9, 1.5),
    "marital-status": (7, 1.2),
    "race": (5, 2.5),
    "sex": (2, 1.0),
}


def made_up() -> pa.Table:
    """Returns a table of Adult's shape."""
    drawn = np.random.default_rng(25)
    columns = {}
    for name, (values, exponent) in SHAPE.items():
        weights = 1 / np.arange(1, values + 1) ** exponent
        codes = drawn.choice(values, ADULT_ROWS, p=weights / weights.sum())
        columns[name] = pa.array([f"{name} number {i}" for i in range(values)]).take(
            pa.array(codes)
        )
    poor = drawn.random(ADULT_ROWS) < 0.76
    columns[SENSITIVE] = pa.array(np.where(poor, "<=50K", ">50K").tolist())
    return pa.table(columns)


def chapter() -> None:
    """Checks the chapter's statements about Adult's age and education-num, in its own
    generalization: the last digit becomes 0.

    The chapter is wrong about all rows, which have k = 21.
    """
    columns = {name: adult.read()[name] for name in ("age", "education-num")}

    def holds(rows: int, k: int, *, decades: bool, most: int = 10**9) -> bool:
        table = {}
        for name, texts in columns.items():
            numbers = [min(int(text), most if name == "age" else 10**9) for text in texts[:rows]]
            table[name] = [n // 10 * 10 for n in numbers] if decades else numbers
        return md.check(table, md.Plan(quasi=list(table), k=k)).holds

    every = len(columns["age"])
    claims = {
        "100 rows, exact, k=1: yes": holds(100, 1, decades=False),
        "100 rows, exact, k=2: no": not holds(100, 2, decades=False),
        "1,000 rows, decades, k=2: no": not holds(1000, 2, decades=True),
        "500 rows, decades, age up to 60, k=7: yes": holds(500, 7, decades=True, most=60),
        "all rows, decades, k=21: yes (the chapter: not even 2)": holds(every, 21, decades=True),
        "all rows, decades, k=22: no": not holds(every, 22, decades=True),
    }
    for claim, is_so in claims.items():
        print(f"{'ok' if is_so else 'WRONG'}: {claim}")
    if not all(claims.values()):
        raise SystemExit("an example of the chapter came out otherwise")


def pycanon() -> Any:
    """Returns the module pycanon.anonymity, installed first if necessary."""
    if not PYCANON.exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps"]
        command += ["--target", str(PYCANON), f"pycanon=={VERSION}"]
        subprocess.run(command, check=True)
    sys.path.append(str(PYCANON))
    from pycanon import anonymity

    return anonymity


def medians(jobs: dict[str, Callable[[], Any]], repeat: int) -> dict[str, tuple[float, Any]]:
    """Returns (median of CPU seconds, result) of each job; they run in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    results = {}
    for _ in range(repeat):
        for name, job in jobs.items():
            began = time.process_time()
            results[name] = job()
            seconds[name].append(time.process_time() - began)
    return {name: (statistics.median(of), results[name]) for name, of in seconds.items()}


def grouped(table: pa.Table, quasi: tuple[str, ...]) -> tuple[int, int]:
    """Returns (k, distinct l) by pyarrow alone."""
    classes = table.group_by(list(quasi)).aggregate(
        [([], "count_all"), (SENSITIVE, "count_distinct")]
    )
    k = classes.column("count_all").to_numpy().min()
    return int(k), int(classes.column(f"{SENSITIVE}_count_distinct").to_numpy().min())


def measure(table: pa.Table, quasi: tuple[str, ...], repeat: int) -> list[str]:
    """Prints the row of a table; returns the bars that are missed."""
    frame, anonymity = table.to_pandas(), pycanon()
    plan = md.Plan(quasi=quasi, sensitive=SENSITIVE)
    found = medians(
        {
            "group_by": lambda: grouped(table, quasi),
            "check": lambda: md.check(table, plan),
            "pycanon": lambda: anonymity.l_diversity(frame, list(quasi), [SENSITIVE]),
        },
        repeat,
    )
    (group_by, (k, distinct)), (check, report), (peer, peer_l) = found.values()
    facts = report.to_dict()
    if (k, distinct, distinct) != (facts["k"], facts["sensitive"][SENSITIVE]["l"], int(peer_l)):
        raise SystemExit("they disagree on k or l")
    behind, before = check / group_by, peer / check
    print(
        f"| {len(quasi)} | {len(table):,} | {facts['classes']:,} | {group_by:.4f} | {check:.4f}"
        f" | {peer:.3f} | {behind:.2f} | {before:.0f} |"
    )
    missed = [] if behind <= BEHIND_GROUP_BY else [f"{behind:.2f} times group_by"]
    return missed + ([] if before >= BEFORE_PYCANON else [f"only {before:.0f} times pycanon"])


def main() -> int:
    """Prints the table; returns 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100 * ADULT_ROWS)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--made-up", action="store_true")
    options = parser.parse_args()
    if options.made_up:
        rows = made_up()
    else:
        chapter()
        rows = pa.table({name: adult.read()[name] for name in (*SEVEN, SENSITIVE)})
    times = max(1, round(options.rows / len(rows)))
    table = pa.concat_tables([rows] * times).combine_chunks()
    print(
        "| columns | rows | classes | group_by s | check s | pycanon s | / group_by | pycanon / |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    missed = [
        problem for quasi in (THREE, SEVEN) for problem in measure(table, quasi, options.repeat)
    ]
    print("\n".join(missed) or "both bars are reached")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
