# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the settings of two papers on tables and buffered streams on UCI Adult.

Usage: python bench/microdata.py [page | speed] [--out docs/explanation]

Writes OUT/paper-microdata.md and OUT/paper/microdata-*.svg: each number of the paper on l-diverse
streams beside ours, the examples of the chapter on k-anonymity, and the figures that the design
asks for. It is the same each time, so it holds no measured time; `speed` prints those instead, of
the core and of the plain Python oracle. Adult is downloaded (bench/adult.py). Takes a minute.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from microdata_page import page
from microdata_runs import CLASS, MODES, Stream

from zanon_net.model.charts import draw

ROOT = Path(__file__).resolve().parents[1]
SPEEDS = ((10, 50, "k only"), (10, 50, "strict"), (3, 100, "strict"), (10, 1000, "strict"))
COPIES = 30


def cpu(call: Callable[[], object], repeat: int = 5) -> float:
    """Returns the least process time of a call, in seconds."""
    times = []
    for _ in range(repeat):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times)


def speed(stream: Stream) -> None:
    """Prints rows per CPU second: of the core, and of the oracle."""
    sys.path.insert(0, str(ROOT / "tests"))
    from oracle.suhdsa import Grouper, Row, Rule, Tree

    one = next(stream.shuffled())
    trees = [Tree([int(up) for up in of.parent]) for of in one.hierarchies]
    rows = [
        Row(tuple(int(node) for node in quasi), (int(value),))
        for quasi, value in zip(one.quasi, one.sensitive[CLASS], strict=True)
    ]
    many = stream.taken(
        np.random.default_rng(0).permutation(np.tile(np.arange(len(stream)), COPIES))
    )
    for k, window, mode in SPEEDS:
        groups = many.groups(window, k, 2, **MODES[mode])
        taken = cpu(lambda: groups.window(many.quasi, many.sensitive[CLASS], rows=window))  # noqa: B023
        oracle = Grouper(trees, Rule(k, 2), **MODES[mode])
        few = rows[: max(2000, window)]
        plain = cpu(
            lambda: [oracle.window(few[at : at + window]) for at in range(0, len(few), window)],  # noqa: B023
            repeat=1,
        )
        core_rate, plain_rate = len(many) / taken, len(few) / plain
        print(
            f"({k}, {window}, 2) {mode}: {core_rate / 1e6:.2f} M rows per CPU second,"
            f" {core_rate / plain_rate:.0f} times the oracle's {plain_rate:,.0f}"
        )
    print("bar: 3 M rows per CPU second at (10, 50, 2), strict")


def main() -> None:
    """Runs, draws and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("what", nargs="?", choices=("page", "speed"), default="page")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "explanation")
    arguments = parser.parse_args()
    stream = Stream.adult()
    if arguments.what == "speed":
        speed(stream)
        return
    (arguments.out / "paper").mkdir(parents=True, exist_ok=True)
    text, figures, missed = page(stream)
    for figure in figures:
        draw(arguments.out / "paper" / f"{figure.name}.svg", figure.caption, figure.panels)
    (arguments.out / "paper-microdata.md").write_text(text, encoding="utf-8")
    for bar in missed:
        print("MISSED", bar)
    print(f"{arguments.out / 'paper-microdata.md'}: {len(missed)} bars missed")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
