# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Attacks logs of made-up users and says what comes of it.

Usage: python bench/attacks/run.py [--quick] [--out build/attacks] [--write-readme]

Ends with 1 where a control fails, or where a figure is above the committed one by more than its
interval (`results.json` beside this file, which `--write-readme` renews with the table).
"""

import argparse
import json
import shutil
import sys
import time
from pathlib import Path

from forging import forging
from report import bars, committed, print_rows, risen, write_readme
from suite import QUICK, WHOLE, Row, attack_population

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="300 users, one population")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "attacks")
    parser.add_argument("--populations", help="only these, separated by commas")
    parser.add_argument("--write-readme", action="store_true", help="renew the committed figures")
    return parser.parse_args()


def main() -> int:
    """Run it all; returns the exit code."""
    arguments = parse_arguments()
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
    (arguments.out / "results.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    for bar in results["bars"]:
        print(f"{bar['what']}: {bar['measured']}, to reach {bar['goal']}: {bar['reached']}")
    bad = [row for row in rows if row.get("held") is False]
    for row in bad:
        print(
            f"the {row['control']} control of {row['attack']} failed: {row['share']:.3f} of "
            f"{row['trials']}, baseline {row['baseline']:.4f}",
            file=sys.stderr,
        )
    bad += [row for row in forged if row.get("few") or row.get("many")]
    worse = [] if arguments.quick else risen(results, committed(HERE))
    for line in worse:
        print(line, file=sys.stderr)
    if arguments.write_readme and not bad and not arguments.quick:
        write_readme(HERE, results)
        worse = []
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if bad or worse else 0


if __name__ == "__main__":
    sys.exit(main())
