# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Attacks logs and packets of made-up users and reports the results.

Usage: python bench/attacks/run.py [--quick] [--only logs|packets] [--out build/attacks]
[--write-readme]

A process for each population, for forging, for labels and for packets, as many at a time as
processors. Ends with 1 if a control fails, if a figure is above the committed figure by more than
its interval, if logs for partners show more withheld names than the bar allows, or if fewer than z
users stand behind a label. The committed figures are
`results.json` and `packet_results.json` next to this file; `--write-readme` renews them with the
tables.
"""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import packet_report
from forging import forging
from labels import QUICK_LABELS, WHOLE_LABELS, attack_labels
from packet_suite import QUICK_PACKETS, WHOLE_PACKETS, attack_packets
from report import bars, committed, missed, print_rows, risen, write_readme
from suite import QUICK, WHOLE, Plan, Row, attack_population

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def parse_arguments() -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="300 users, one population")
    parser.add_argument("--only", choices=("logs", "packets"), help="attack one kind of output")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "attacks")
    parser.add_argument("--populations", help="only these, separated by commas; for logs")
    parser.add_argument("--write-readme", action="store_true", help="renew the committed figures")
    return parser.parse_args()


def population_rows(kind: str, plan: Plan, folder: Path) -> list[Row]:
    """Attacks the logs of a population in a process of its own, which prints the rows."""
    return printed(attack_population(kind, plan, folder))


def forging_rows(folder: Path, quick: bool) -> list[Row]:
    """Forges users in a process of its own, which prints the rows."""
    return printed(forging(folder, quick=quick))


def label_rows(folder: Path, quick: bool) -> list[Row]:
    """Attacks labels in a process of its own, which prints the rows."""
    return printed(attack_labels(QUICK_LABELS if quick else WHOLE_LABELS, folder))


def packet_rows(quick: bool) -> list[Row]:
    """Attacks packets in a process of its own, which prints the rows."""
    return printed(attack_packets(QUICK_PACKETS if quick else WHOLE_PACKETS))


def printed(rows: Iterable[Row]) -> list[Row]:
    """Returns the rows, and prints each of them when it is known."""
    began, kept = time.monotonic(), []
    for row in rows:
        print_rows([row])
        kept.append(row)
    print(f"{len(kept)} rows in {time.monotonic() - began:.0f} s", flush=True)
    return kept


def attack_logs(arguments: argparse.Namespace, pool: Executor) -> Callable[[], bool]:
    """Starts to attack logs; the result judges: did controls hold, and did no figure rise?"""
    plan = QUICK if arguments.quick else WHOLE
    folder = arguments.out / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    kinds = arguments.populations.split(",") if arguments.populations else plan.kinds
    # The command writes to a folder `out` beside the captures, so each population has its own.
    attacks = [pool.submit(population_rows, kind, plan, made(folder / kind)) for kind in kinds]
    forged = pool.submit(forging_rows, folder / "forging", arguments.quick)
    labelled = pool.submit(label_rows, made(folder / "labels"), arguments.quick)

    def judge() -> bool:
        """Returns whether controls held and no figure rose."""
        rows = [row for attack in attacks for row in attack.result()]
        good = judge_logs(arguments, rows, forged.result(), labelled.result())
        shutil.rmtree(folder)
        return good

    return judge


def made(folder: Path) -> Path:
    """Makes a folder and returns it."""
    folder.mkdir()
    return folder


def judge_logs(
    arguments: argparse.Namespace, rows: list[Row], forged: list[Row], labelled: list[Row]
) -> bool:
    """Keeps the figures of logs; returns whether controls held and no figure rose."""
    results = {
        "schema": 1,
        "quick": arguments.quick,
        "rows": rows,
        "forging": forged,
        "labels": labelled,
        "bars": bars(rows, forged, labelled),
    }
    keep(arguments.out / "results.json", results)
    good = controls_held([*rows, *labelled])
    good = good and not any(row.get("few") or row.get("many") for row in forged)
    if arguments.quick:  # 300 users are too few for the other bars
        return complained(missed(bars([], [], labelled))) and good
    good = complained(missed(results["bars"])) and good
    if arguments.write_readme and good:
        write_readme(HERE, results)
        return True
    return complained(risen(results, committed(HERE))) and good


def attack_frames(arguments: argparse.Namespace, pool: Executor) -> Callable[[], bool]:
    """Starts to attack packets; the result judges: did controls hold, and did no figure rise?"""
    attack = pool.submit(packet_rows, arguments.quick)
    return lambda: judge_frames(arguments, attack.result())


def judge_frames(arguments: argparse.Namespace, rows: list[Row]) -> bool:
    """Keeps the figures of packets; returns whether controls held and no figure rose."""
    results = {
        "schema": 1,
        "quick": arguments.quick,
        "rows": rows,
        "bars": packet_report.bars(rows),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    keep(arguments.out / packet_report.FILE, results)
    good = controls_held(rows)
    if arguments.write_readme and good and not arguments.quick:
        packet_report.write(HERE, results)
        return True
    before = committed(HERE, packet_report.FILE)
    return complained([] if arguments.quick else packet_report.risen(rows, before)) and good


def keep(path: Path, results: dict[str, Any]) -> None:
    """Writes the figures of a run, and prints the bars."""
    path.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    for bar in results["bars"]:
        print(f"{bar['what']}: {bar['measured']}, to reach {bar['goal']}: {bar['reached']}")


def controls_held(rows: Iterable[Row]) -> bool:
    """Returns true if no control failed; prints the controls that failed."""
    bad = [row for row in rows if row.get("held") is False]
    return complained(
        f"the {row['control']} control of {row['attack']} failed: {row['share']:.3f} of "
        f"{row['trials']}, baseline {row['baseline']:.4f}"
        for row in bad
    )


def complained(lines: Iterable[str]) -> bool:
    """Prints the lines; returns true if there were any."""
    said = list(lines)
    for line in said:
        print(line, file=sys.stderr)
    return not said


def main() -> int:
    """Runs it all; returns the exit code."""
    arguments = parse_arguments()
    began = time.monotonic()
    kinds = {"logs": attack_logs, "packets": attack_frames}
    with ProcessPoolExecutor() as pool:
        started = [
            start(arguments, pool)
            for name, start in kinds.items()
            if arguments.only in (None, name)
        ]
        good = [judge() for judge in started]
    print(f"{time.monotonic() - began:.0f} s")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
