# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Writes what the reference has of the core's tables: the page of columns, the table of counters.

Run from the repository's top, with the package installed: python tests/support/reference_docs.py
"""

from collections.abc import Iterator
from pathlib import Path

from zanon_net._core import STAT_INFO, Column, columns

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGE, OUTPUT_PAGE = REFERENCE / "columns.md", REFERENCE / "output.md"
COUNTERS_HEAD = "| group | counter | meaning |\n|---|---|---|\n"

GROUPS = {
    "FLOW": "Every flow: CSV, JSON Lines, Parquet",
    "TCP": "Tstat's TCP logs: core",
    "E2E": "Tstat's TCP log: E2E",
    "P2P": "Tstat's TCP log: P2P",
    "OPTIONS": "Tstat's TCP log: OPTIONS",
    "LAYER7": "Tstat's TCP log: LAYER7",
    "UDP": "Tstat's UDP log",
    "LEVELS": "With `--levels`; in Tstat's logs with `--columns levels`",
    "ATTRIBUTES": "With `--attributes`: the chosen ones",
}
CLASSES = {
    "ALWAYS": "as it is",
    "ROUNDED": "rounded",
    "EXACT": "blank",
    "CLIENT": "blank unless `--coarse-client pseudonym`",
    "RELEASED": "blank, also with `--exact`",
    "OWN": "only if itself released",
    "COMPUTED(client_port)": "0, also with `--exact`",
    "COMPUTED(server_port)": "0 unless 53, 80, 443 or 853; also with `--exact`",
    "COMPUTED(udp_type)": "19 for all DNS, also with `--exact`",
    "COMPUTED(fqdn)": "as `name`; with `--dn-hunter` blank, also with `--exact`",
    "COMPUTED(epoch)": "0 unless `--coarse-client pseudonym` and `--rotate` is whole minutes",
}
TYPES = {"ms": "double", "s": "double", "time": "timestamp", None: "Tstat's logs only"}
HEAD = """\
# Columns

This page lists every column of the flow logs, in the order of a line.
`python tests/support/reference_docs.py` makes it from `csrc/release/columns.h`.
[output.md](output.md) describes what all formats have in common. [tstat.md](tstat.md) describes
how Tstat's columns are measured.

The type is the type in Parquet. The last column is the value in a **coarse** record, which is a
record with a suppressed name:

- *rounded* times are whole minutes, and with `--coarse-end none` the minute of closing;
- *rounded* packets and bytes are rounded up to a power of `--coarse-steps`;
- *blank* is zero, no text, or Tstat's "missing" value.

All other records have times and counts as set by `--times` and `--sizes`.
"""


def row(column: Column) -> str:
    """A line of a table."""
    kind = TYPES.get(column.type, column.type)
    cells = (f"`{column.name}`", kind, column.unit, column.description, CLASSES[column.disclosure])
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |".replace("|  |", "| |")


def page() -> Iterator[str]:
    """The lines of the page."""
    yield HEAD
    listed = columns()
    for group, heading in GROUPS.items():
        yield f"## {heading}\n"
        yield "| column | type | unit | meaning | in a coarse record |"
        yield "|---|---|---|---|---|"
        yield from (row(column) for column in listed if column.group == group)
        yield ""


def output_page(text: str) -> str:
    """The page of the output with the counters of csrc/util/stats.h in its table."""
    before, head, rest = text.partition(COUNTERS_HEAD)
    assert head, f"{OUTPUT_PAGE} has no table of counters"
    rows = (f"| `{group}` | `{name}` | {counts} |\n" for name, group, counts in STAT_INFO)
    return before + head + "".join(rows) + "\n" + rest.partition("\n\n")[2]


if __name__ == "__main__":
    OUTPUT_PAGE.write_text(output_page(OUTPUT_PAGE.read_text("utf-8")), encoding="utf-8")
    PAGE.write_text("\n".join(page()), encoding="utf-8")
