#!/usr/bin/env python3
# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the input and the output of a run: docs/demo.svg.

The left half shows visits of pcaps/demo.truth.jsonl. The right half shows the records that the run
of `make demo` writes for these visits. A second run with z = 1 finds the time at which the flow of
a suppressed visit ends. The key is fixed, so the script always draws the same picture. It fails if
a record contradicts the number of users.

Usage: python scripts/draw_demo.py [--check]
"""

import base64
import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "pcaps"))

from truth import user_of  # noqa: E402

import zanon_net  # noqa: E402

PICTURE = ROOT / "docs" / "demo.svg"
Z = 5
WINDOW_NS = 3600 * 10**9
MINUTE_NS = 60 * 10**9
# The name in each row, and the number of users of the name once the row's visit has come.
ROWS = [
    ("alice-nas.example", 1),
    ("match-live.example", 4),
    ("match-live.example", 6),
    ("www.search.example", 29),
    ("match-live.example", 8),
    ("target-clinic.example", 1),
]

Record = dict[str, Any]


class Visit(NamedTuple):
    """A visit of the truth, the number of users of its name so far, and the record of its flow."""

    seen: Record
    users: int
    record: Record


def records_of(z: int, folder: Path, *, exact: bool) -> list[Record]:
    """Returns the records that a run on the demo writes."""
    key = folder / "key"
    if not key.exists():
        key.touch(mode=0o600)
        key.write_bytes(base64.b64encode(hashlib.sha256(b"docs/demo.svg").digest()))
    out = folder / str(z)
    zanon_net.run(
        ROOT / "pcaps/demo.pcap", z=z, exact=exact, key_file=key, format=["jsonl"], out=out
    )
    return [json.loads(line) for line in (out / "flows.jsonl").open(encoding="utf-8")]


def visits() -> Iterator[tuple[Record, int]]:
    """Returns each confirmed visit with the number of users of its name in the window."""
    last: dict[str, dict[str, int]] = {}
    with (ROOT / "pcaps/demo.truth.jsonl").open(encoding="utf-8") as lines:
        next(lines)
        for seen in map(json.loads, lines):
            if seen["source"] == "dns" or not (seen["established"] and seen["valid"]):
                continue
            users = last.setdefault(seen["name"], {})
            users[user_of(seen["client"])] = seen["t_ns"]
            yield seen, sum(t_ns > seen["t_ns"] - WINDOW_NS for t_ns in users.values())


def is_of(record: Record, seen: Record) -> bool:
    """Returns true if a visit is in the flow of a record with a name."""
    same = record["name"] == seen["name"] and record["name_source"] == seen["source"]
    return same and record["t_start_ns"] <= seen["t_ns"] <= record["t_end_ns"]


def chosen() -> list[Visit]:
    """Returns the visits of the rows, each with the record that the run of the demo writes."""
    first: dict[tuple[str, int], Record] = {}
    for seen, users in visits():
        first.setdefault((seen["name"], users), seen)
    with tempfile.TemporaryDirectory() as folder:
        written = records_of(Z, Path(folder), exact=False)
        exact = records_of(1, Path(folder), exact=True)
    found = []
    for name, users in ROWS:
        seen = first[name, users]
        (whole,) = [record for record in exact if is_of(record, seen)]
        if users >= Z:
            (record,) = [record for record in written if is_of(record, seen)]
        else:
            end_ns = whole["t_end_ns"] // MINUTE_NS * MINUTE_NS
            kind = ("suppressed", seen["source"], end_ns)
            keys = ("name_status", "name_source", "t_end_ns")
            record = next(r for r in written if tuple(r[key] for key in keys) == kind)
        found.append(Visit(seen, users, record))
    return found


STYLE = """
svg { font: 13px ui-monospace, Menlo, Consolas, monospace; background: #ffffff }
text { fill: #333333 } .title { font: bold 15px sans-serif; fill: #111111 }
.note { font: 12px sans-serif; fill: #666666 } .in { fill: #f3ecd3; stroke: #998833 }
.out { fill: #dceaf7; stroke: #4477aa } .gone { fill: #b03030 } .kept { fill: #1d6b2f }
.gone, .kept, .middle { text-anchor: middle }
@media (prefers-color-scheme: dark) {
svg { background: #16191d } text { fill: #cccccc } .title { fill: #ffffff }
.note { fill: #999999 } .in { fill: #433c1e; stroke: #bbaa55 }
.out { fill: #1d3850; stroke: #6699cc } .gone { fill: #ff9090 } .kept { fill: #80d090 } }
"""
WIDTH, TOP, ROW = 1000, 92, 28
IN = (22, 98, 232)  # left edges of time, client and name
MIDDLE = 470
OUT = (540, 616, 736, 900)  # of time, client, name and server
NOTE = (
    f"Made-up traffic of the demo, z = {Z}. A name leaves if {Z} users exposed it within the last"
    " hour. A record without its name shows only a minute."
)
BOXES = (8, 404, 526, 466)  # left edge and width of each box


def clock(t_ns: int, pattern: str) -> str:
    """Returns the time of day of a time stamp."""
    return datetime.fromtimestamp(t_ns // 10**9, UTC).strftime(pattern)


def texts(y: int, places: Sequence[int], words: Sequence[str], kind: str = "") -> str:
    """Returns a line of texts, each at its place."""
    style = f' class="{kind}"' if kind else ""
    cells = zip(places, words, strict=True)
    return "\n".join(f'<text{style} x="{x}" y="{y}">{word}</text>' for x, word in cells)


def box(kind: str, x: int, width: int, height: int) -> str:
    """Returns the box around a half of the picture."""
    return f'<rect class="{kind}" x="{x}" y="8" width="{width}" height="{height}" rx="8"/>'


def row(y: int, visit: Visit) -> Iterator[str]:
    """Returns the texts of a visit, the number of its users, and the fields of its record."""
    seen, users, record = visit
    yield texts(y, IN, (clock(seen["t_ns"], "%H:%M:%S"), seen["client"], seen["name"]))
    yield texts(y, [MIDDLE - 6], [str(users)], "kept" if users >= Z else "gone")
    time = clock(record["t_start_ns"], "%H:%M:%S" if record["name"] else "%H:%M")
    yield texts(y, OUT, (time, *(record[key] or "-" for key in ("client", "name", "server"))))


def picture() -> str:
    """Returns the whole SVG."""
    rows = chosen()
    bottom = TOP + ROW * len(rows)
    heads = ("time", "client", "name", "server")
    left, left_width, right, right_width = BOXES
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 26}">',
        f"<title>Visits of the demo capture, and the records that leave at z = {Z}</title>",
        f"<style>{STYLE}</style>",
        box("in", left, left_width, bottom - 16),
        box("out", right, right_width, bottom - 16),
        texts(32, IN[:1], ["What users do"], "title"),
        texts(32, [MIDDLE - 6], ["Users"], "title middle"),
        texts(32, OUT[:1], ["What leaves"], "title"),
        texts(58, IN, heads[:3], "note"),
        texts(58, [MIDDLE - 6], ["of this name"], "note middle"),
        texts(58, OUT, heads, "note"),
        *(part for n, visit in enumerate(rows) for part in row(TOP - 8 + ROW * n, visit)),
        texts(bottom + 12, IN[:1], [NOTE], "note"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    """Writes the picture, or says that it is stale."""
    if sys.argv[1:] == ["--check"]:
        if PICTURE.read_text("utf-8") != picture():
            raise SystemExit("docs/demo.svg is stale: run scripts/draw_demo.py")
    elif sys.argv[1:]:
        raise SystemExit("Usage: python scripts/draw_demo.py [--check]")
    else:
        PICTURE.write_text(picture(), encoding="utf-8")


main()
