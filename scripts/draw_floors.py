#!/usr/bin/env python3
# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the folders of the sources and their includes or imports: docs/explanation/floors.svg.

The script reads the arrows from the sources. PLACES has the position of each folder in the picture,
and the line of text in its box. A folder without a place ends the script. An arrow from a to b is
left out if other arrows already lead from a to b. An arrow that points up is never left out, and it
is red.

Usage: python scripts/draw_floors.py [--check]
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "explanation" / "floors.svg"

Edges = dict[str, set[str]]


class Place(NamedTuple):
    """Position of a box (row from the top, column) and the purpose of its folder."""

    row: int
    column: float
    line: str


PLACES = {
    "cli": Place(0, 2, "commands, exit codes"),
    "public API": Place(1, 2, "run, Engine, ZTable, ..."),
    "top": Place(1, 0.5, "zanon-net top"),
    "audit": Place(1, 3.25, "zanon-net audit"),
    "bench": Place(1, 4.5, "zanon-net bench"),
    "pipeline": Place(2, 2, "sources to outputs"),
    "count": Place(4, 3.75, "one z over many probes"),
    "flink": Place(2, 0.75, "zanon-net flink"),
    "rows": Place(2, 3.25, "zanon-net filter"),
    "report": Place(3, 0.25, "zanon-net report"),
    "microdata": Place(2, 4.5, "zanon-net table"),
    "model": Place(4, 0.5, "k-anonymity of a z"),
    "output": Place(4, 2.5, "files, all or nothing"),
    "_core": Place(5, 2.5, "the one extension module"),
    "popularity": Place(5, 1.25, "counts, read and written"),
    "system": Place(7, 0.25, "signals, streams"),
    "config": Place(6, 0, "settings, checked"),
    "csrc/engine": Place(6, 1.5, "batches, threads, outputs"),
    "csrc/rows": Place(6, 4, "rows: bytes in, rows out"),
    "csrc/rewrite": Place(7, 1, "anonymized packets"),
    "csrc/output": Place(7, 2.5, "Tstat, CSV, JSON, Arrow"),
    "csrc/release": Place(8, 3, "the gate: policy"),
    "csrc/analyzer": Place(9, 2, "packets to names, votes"),
    "csrc/flow": Place(10, 1, "flows, timers, TCP"),
    "csrc/build": Place(10, 2.15, "protocols: spans to bytes"),
    "csrc/count": Place(10, 3.25, "votes of many probes"),
    "csrc/microdata": Place(9, 4.25, "classes of rows"),
    "csrc/capture": Place(11, 0, "files, interfaces"),
    "csrc/packet": Place(11, 1, "headers, tunnels"),
    "csrc/proto": Place(11, 2, "TLS, QUIC, HTTP, DNS"),
    "csrc/anonymity": Place(11, 3, "the z-table"),
    "csrc/crypto": Place(11, 4, "keys, Crypto-PAn"),
}
FLOOR = "csrc/util"
"""Folder that all other folders of csrc/ may include. It is a bar at the bottom, without arrows."""
PUBLIC_HEADERS = {"csrc/include", "csrc/zanon"}
"""Folders of the headers that `make lib` installs. They are not in the picture."""
ALL_IMPORT = {"errors", "_record", "_text", "_version"}
API = "public API"
"""Box of the flat modules that have no other place, including `__init__`, and of `parse`."""

COLUMN, ROW, WIDTH, HEIGHT = 190, 84, 168, 50
LEFT, TOP = 20, 44
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"(\w+)/', re.MULTILINE)
EXTERN = re.compile(r'^cdef extern from "(\w+)/', re.MULTILINE)
CYTHON_IMPORT = re.compile(r"^[ \t]*from[ \t]+zanon_net\.(\w+)", re.MULTILINE)


def includes() -> Iterator[tuple[str, str]]:
    """Yields (folder, included folder) for each #include in csrc/."""
    for path in sorted((ROOT / "csrc").rglob("*.[ch]")):
        for included in INCLUDE.findall(path.read_text("utf-8")):
            yield f"csrc/{path.relative_to(ROOT / 'csrc').parts[0]}", f"csrc/{included}"


def box_of(module: str) -> str:
    """Returns the box of a module or folder in zanon_net."""
    if module in ("cli", "__main__"):
        return "cli"
    if module in ("core", "_core"):
        return "_core"
    if module == "parse":
        return API
    return module if module in PLACES or (ROOT / "zanon_net" / module).is_dir() else API


def imported(path: Path) -> Iterator[str]:
    """Yields the module or folder in zanon_net of each import of a Python file."""
    package = ["zanon_net", *path.relative_to(ROOT / "zanon_net").parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = [*above, *(node.module.split(".") if node.module else [])]
            names = [[*base, alias.name] for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        else:
            continue
        yield from (name[1] for name in names if name[0] == "zanon_net" and len(name) > 1)


def imports() -> Iterator[tuple[str, str]]:
    """Yields (box, imported box) for each import in zanon_net/, and for each include of _core."""
    package = ROOT / "zanon_net"
    for path in sorted(package.rglob("*.p[yx]*")):
        inner = path.relative_to(package)
        module = inner.parts[0].partition(".")[0]
        if path.suffix in (".pyx", ".pxd"):
            text = path.read_text("utf-8")
            yield from (("_core", f"csrc/{folder}") for folder in EXTERN.findall(text))
            wanted = (name for name in CYTHON_IMPORT.findall(text) if name not in ALL_IMPORT)
            yield from (("_core", box_of(name)) for name in wanted)
        elif path.suffix == ".py" and module not in ALL_IMPORT:
            wanted = (name for name in imported(path) if name not in ALL_IMPORT)
            yield from ((box_of(module), box_of(name)) for name in wanted)


def all_edges() -> Edges:
    """Returns the boxes that each box includes or imports, without FLOOR and without itself."""
    edges: Edges = defaultdict(set)
    for source, target in (*includes(), *imports()):
        if source != target and not {source, target} & {FLOOR, *PUBLIC_HEADERS}:
            edges[source].add(target)
    unplaced = (set(edges) | set().union(*edges.values())) - PLACES.keys()
    if unplaced:
        raise SystemExit(f"give {', '.join(sorted(unplaced))} a place in {Path(__file__).name}")
    return edges


def reached(edges: Edges, start: str, without: tuple[str, str]) -> set[str]:
    """Returns every box that can be reached from `start` if the arrow `without` is left out."""
    found: set[str] = set()
    ahead = [start]
    while ahead:
        box = ahead.pop()
        for target in edges.get(box, set()) - found:
            if (box, target) != without:
                found.add(target)
                ahead.append(target)
    return found


def points_up(source: str, target: str) -> bool:
    """Returns true if the target of an arrow is not below its source."""
    return PLACES[target].row <= PLACES[source].row


def arrows(edges: Edges) -> Iterator[tuple[str, str]]:
    """Yields the arrows to draw."""
    down = {a: {b for b in targets if not points_up(a, b)} for a, targets in edges.items()}
    for source in sorted(edges):
        for target in sorted(edges[source]):
            implied = target in reached(down, source, (source, target))
            if points_up(source, target) or not implied:
                yield source, target


def corner(box: str) -> tuple[float, float]:
    """Returns the upper left corner of a box."""
    place = PLACES[box]
    return LEFT + place.column * COLUMN, TOP + place.row * ROW


def line(source: str, target: str) -> str:
    """Returns an arrow from the lower edge of a box to the upper edge of another box, as SVG."""
    (x1, y1), (x2, y2) = corner(source), corner(target)
    lean = max(-0.35, min(0.35, (x2 - x1) / COLUMN / 4)) * WIDTH
    start, end = x1 + WIDTH / 2 + lean, x2 + WIDTH / 2 - lean / 2
    kind = ' class="up"' if points_up(source, target) else ""
    ends = f'x1="{start:.0f}" y1="{y1 + HEIGHT:.0f}" x2="{end:.0f}" y2="{y2 - 3:.0f}"'
    return f'<line{kind} {ends} marker-end="url(#tip)"/>'


def box(name: str, x: float, y: float, width: float, text: str) -> str:
    """Returns a box with a folder's name and purpose, as SVG."""
    kind = "c" if name.startswith("csrc/") else "python"
    middle = x + width / 2
    return (
        f'<rect class="{kind}" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{HEIGHT}"'
        f' rx="6"/>\n<text class="name" x="{middle:.0f}" y="{y + 21:.0f}">{name}</text>\n'
        f'<text x="{middle:.0f}" y="{y + 38:.0f}">{text}</text>'
    )


STYLE = """
svg { font: 12px sans-serif; background: #ffffff }
text { text-anchor: middle; fill: #333333 }
.name { font-weight: bold; font-size: 14px; fill: #111111 }
.c { fill: #dceaf7; stroke: #4477aa } .python { fill: #f3ecd3; stroke: #998833 }
line { stroke: #777777; stroke-width: 1.3 } .up { stroke: #cc2222 } #tip path { fill: #777777 }
@media (prefers-color-scheme: dark) {
svg { background: #16191d } text { fill: #cccccc } .name { fill: #ffffff }
.c { fill: #1d3850; stroke: #6699cc } .python { fill: #433c1e; stroke: #bbaa55 }
line { stroke: #999999 } #tip path { fill: #999999 } }
"""


def picture() -> str:
    """Returns the complete SVG."""
    width = 2 * LEFT + WIDTH + COLUMN * max(place.column for place in PLACES.values())
    last = TOP + ROW * (1 + max(place.row for place in PLACES.values())) - (ROW - HEIGHT) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {last + ROW:.0f}">',
        "<title>The folders of the sources, with arrows to included folders</title>",
        f"<style>{STYLE}</style>",
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8"'
            ' markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>'
        ),
        (
            f'<text x="{width / 2:.0f}" y="24">An arrow leads to an included or imported folder;'
            " arrows that other arrows imply are left out</text>"
        ),
        *(line(source, target) for source, target in arrows(all_edges())),
        *(box(name, *corner(name), WIDTH, place.line) for name, place in PLACES.items()),
        box(FLOOR, LEFT, last, width - 2 * LEFT, "cursor, arena, hash, clock: included by all"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    """Writes the picture. With --check, fails if the picture is stale."""
    if sys.argv[1:] == ["--check"]:
        if PICTURE.read_text("utf-8") != picture():
            raise SystemExit("docs/explanation/floors.svg is stale: run scripts/draw_floors.py")
    elif sys.argv[1:]:
        raise SystemExit("Usage: python scripts/draw_floors.py [--check]")
    else:
        PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
