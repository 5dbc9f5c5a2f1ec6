# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the loss of `microdata.anonymize` on UCI Adult, and compares its time with anjana's.

Usage: python bench/microdata_anonymize.py [--repeat 5] [--no-anjana]

education, occupation and native-country are the quasi-identifiers, with the hierarchies next to
adult.py; the income is sensitive. Losses are printed with the bars that they have to reach. The
lattice's loss must be the least of all 36 combinations of levels, which are tried here one by one.
Loss is 0 for values as they are and 1 for "*"; a suppressed row counts 1.

anjana 1.2.3 needs other versions of the libraries that zanon_net uses, so it is installed into
build/anjana and runs in a process of its own (anjana_peer.py). It takes one level a column and
suppresses up to 5 % of the rows. Both start from a table in memory; CPU seconds are compared, the
median of zanon_net's with one run of anjana's. The bar is 200 times as fast.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

import adult
import numpy as np

from zanon_net import microdata as md

ANJANA = adult.ROOT / "build" / "anjana"
PACKAGE = "anjana==1.2.3"
PEER = adult.ROOT / "bench" / "anjana_peer.py"
FASTER = 200
SUPPRESS = 0.05
K = 10
BARS: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("k = 10", {"k": 10}, 0.030),
    ("k = 10, l = 2", {"k": 10, "l": 2}, 0.040),
    ("k = 50", {"k": 50}, 0.090),
)


def cpu(job: Any) -> tuple[float, Any]:
    """Returns (CPU seconds, result) of a call."""
    began = time.process_time()
    result = job()
    return time.process_time() - began, result


def top_down(table: Any, quasi: dict[str, Any], repeat: int) -> list[str]:
    """Prints the losses of top-down recoding; returns the bars that are missed."""
    missed = []
    for name, asked, bar in BARS:
        plan = md.Plan(quasi=quasi, sensitive="income", **asked)
        runs = [cpu(lambda plan=plan: md.anonymize(table, plan)) for _ in range(repeat)]
        report = runs[0][1].report
        seconds = statistics.median(run[0] for run in runs)
        suppressed = report.rows_in - report.rows_out
        print(
            f"| top-down, {name} | {report.mean_loss:.4f} | {bar:.3f} | {suppressed:,}"
            f" | {report.classes['classes']:,} | {seconds:.4f} |"
        )
        if report.mean_loss > bar or suppressed or not report.classes["holds"]:
            missed.append(f"top-down, {name}: loss {report.mean_loss:.4f}")
    return missed


def exhaustive(columns: dict[str, list[str]], suppress: float) -> float:
    """Returns the least loss over all combinations of levels, one after the other."""
    recoded = []
    for name, path in adult.HIERARCHIES.items():
        lines, levels = adult.lines_of(path), []
        for level in range(len(lines[0])):
            label = {line[0]: line[level] for line in lines}
            below = {part: sum(line[level] == part for line in lines) for part in label.values()}
            number = {part: i for i, part in enumerate(sorted(below))}
            codes = np.array([number[label[value]] for value in columns[name]])
            lost = np.array([below[part] - 1 for part in sorted(below)]) / (len(lines) - 1)
            levels.append((codes, lost[codes]))
        recoded.append(levels)
    best = np.inf
    for choice in itertools.product(*recoded):
        keys = np.array([codes for codes, _lost in choice])
        _classes, of_row, sizes = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
        bad = sizes[of_row.reshape(-1)] < K
        if bad.sum() <= suppress * len(bad):
            loss = np.where(bad, 1, np.mean([lost for _codes, lost in choice], axis=0)).mean()
            best = min(best, float(loss))
    return best


def lattice(table: Any, columns: dict[str, list[str]], quasi: dict[str, Any]) -> list[str]:
    """Prints the losses of full-domain recoding; returns the cases that miss the optimum."""
    missed = []
    plan = md.Plan(quasi=quasi, sensitive="income", k=K)
    for suppress in (0.0, SUPPRESS):
        seconds, result = cpu(
            lambda suppress=suppress: md.anonymize(table, plan, method="lattice", suppress=suppress)
        )
        report, least = result.report, exhaustive(columns, suppress)
        print(
            f"| lattice, k = {K}, up to {suppress:.0%} suppressed | {report.mean_loss:.4f}"
            f" | {least:.4f} | {report.rows_in - report.rows_out:,}"
            f" | {report.classes['classes']:,} | {seconds:.4f} |"
        )
        if abs(report.mean_loss - least) > 1e-9:
            missed.append(f"lattice: loss {report.mean_loss:.4f}, the least is {least:.4f}")
    return missed


def anjana() -> tuple[float, list[Any]]:
    """Returns (CPU seconds, labels and number of the rows with them) of anjana, installed if
    necessary."""
    if not ANJANA.exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(ANJANA)]
        subprocess.run([*command, PACKAGE], check=True)
    done = subprocess.run(
        [sys.executable, str(PEER), str(K), str(100 * SUPPRESS)],
        env={**os.environ, "PYTHONPATH": str(ANJANA)},
        stdout=subprocess.PIPE,
        check=True,
    )
    found = json.loads(done.stdout)
    return found["seconds"], found["rows"]


def loss_of(rows: list[Any], quasi: dict[str, Any]) -> float:
    """Returns the loss of a table that anjana wrote."""
    lost, written = 0.0, 0
    loss = [dict(zip(h.labels, h.loss, strict=True)) for h in quasi.values()]
    for *labels, count in rows:
        parts = [float(of[label]) for of, label in zip(loss, labels, strict=True)]
        lost += count * statistics.mean(parts)
        written += count
    return (lost + adult.ROWS - written) / adult.ROWS


def beside_anjana(table: Any, quasi: dict[str, Any], repeat: int) -> list[str]:
    """Prints anjana's time beside ours."""
    theirs, rows = anjana()
    plan, missed = md.Plan(quasi=quasi, sensitive="income", k=K), []
    print(f"\nanjana, k = {K}: {theirs:.2f} s, loss {loss_of(rows, quasi):.4f}")
    for method, suppress in (("topdown", 0.0), ("lattice", SUPPRESS)):
        ours = statistics.median(
            cpu(lambda m=method, s=suppress: md.anonymize(table, plan, method=m, suppress=s))[0]
            for _ in range(repeat)
        )
        print(f"{method}: {ours:.4f} s, {theirs / ours:.0f} times as fast")
        if theirs / ours < FASTER:
            missed.append(f"{method} is only {theirs / ours:.0f} times as fast as anjana")
    return missed


def main() -> int:
    """Prints the tables; returns 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--no-anjana", action="store_true")
    options = parser.parse_args()
    columns, table, quasi = adult.read(), adult.table(), adult.hierarchies()
    print("| method | loss | to reach | suppressed | classes | CPU s |")
    print("|---|---:|---:|---:|---:|---:|")
    missed = top_down(table, quasi, options.repeat) + lattice(table, columns, quasi)
    if not options.no_anjana:
        missed += beside_anjana(table, quasi, options.repeat)
    print("\n".join(missed) or "all bars are reached")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
