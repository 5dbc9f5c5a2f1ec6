# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Attacks logs and packets of made-up users and reports the results.

Usage: python bench/attacks/run.py [--quick] [--only logs|packets] [--out build/attacks]
[--write-readme]

Ends with 1 if a control fails, if a figure is above the committed figure by more than its interval,
or if logs for partners show more withheld names than the bar allows. The committed figures are
`results.json` and `packet_results.json` next to this file; `--write-readme` renews them with the
tables.
"""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import packet_report
from forging import forging
from packet_suite import QUICK_PACKETS, WHOLE_PACKETS, attack_packets
from report import bars, committed, missed, print_rows, risen, write_readme
from suite import QUICK, WHOLE, Row, attack_population

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


def attack_logs(arguments: argparse.Namespace) -> bool:
    """Attacks logs; returns whether controls held and no figure rose."""
    plan = QUICK if arguments.quick else WHOLE
    folder = arguments.out / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    rows: list[Row] = []
    began = time.monotonic()
    kinds = arguments.populations.split(",") if arguments.populations else plan.kinds
    for kind in kinds:
        for row in attack_population(kind, plan, folder):
            print_rows([row])
            rows.append(row)
        print(f"{kind}: {time.monotonic() - began:.0f} s so far", flush=True)
    forged = list(forging(folder / "forging", quick=arguments.quick))
    print_rows(forged)
    shutil.rmtree(folder)
    results = {
        "schema": 1,
        "quick": arguments.quick,
        "rows": rows,
        "forging": forged,
        "bars": bars(rows, forged),
    }
    keep(arguments.out / "results.json", results)
    good = controls_held(rows) and not any(row.get("few") or row.get("many") for row in forged)
    if arguments.quick:  # 300 users are too few for these bars
        return good
    good = complained(missed(results["bars"])) and good
    if arguments.write_readme and good:
        write_readme(HERE, results)
        return True
    return complained(risen(results, committed(HERE))) and good


def attack_frames(arguments: argparse.Namespace) -> bool:
    """Attacks packets; returns whether controls held and no figure rose."""
    rows: list[Row] = []
    for row in attack_packets(QUICK_PACKETS if arguments.quick else WHOLE_PACKETS):
        print_rows([row])
        rows.append(row)
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
    good = [run(arguments) for name, run in kinds.items() if arguments.only in (None, name)]
    print(f"{time.monotonic() - began:.0f} s")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
