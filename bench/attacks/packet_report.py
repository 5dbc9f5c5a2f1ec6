# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of the attacks on packets, with the bars to reach."""

import json
from pathlib import Path
from typing import Any

from packet_linking import COUNTED
from packet_suite import BEYOND, IDS, KINDS, Row
from report import Bars, find, header, line, percent, renewed

BEGIN, END = "<!-- made by bench/attacks/run.py, packets -->", "<!-- end of packets -->"
PAGE = Path("docs", "explanation", "packets.md")
FILE = "packet_results.json"
MAIN = ("addresses", "default", "exact", "coarse")
TITLES = {"addresses": "only addresses mapped", "default": "default", "exact": "`--exact`",
          "coarse": "`--suppressed coarse`"}  # fmt: skip
OPTIONS = {
    "linkable": "`--server-address linkable`",
    "port": "`--keep-client-port`",
    "clock": "`--tcp-timestamps keep`",
    "offset": "`--tcp-timestamps offset`",
    "hello": "`--fingerprint keep`",
    "ttl": "`--ttl keep`",
    "checksum": "checksums left as they were",
    "any z": "`--z 1`",
}
LINKS = {
    "sequence numbers": "first sequence numbers that are a clock's",
    "ports": "ports given out one by one",
    "ids": "IP ids counted up",
    "clocks": "what the clock of TCP timestamps says",
    "clock skew": "how fast that clock drifts",
    "tickets": "session IDs and tickets that are reused",
    IDS: "connection IDs of QUIC, drawn for each connection",
    f"{IDS}, kept": "connection IDs of clients that keep theirs",
    "hello": "the hello of TLS",
    "names": "names that are shown",
    "stack": "the SYN's options, window and TTL, the range of ports",
    "names, stack, hello": "names, SYN and hello together",
    "open connections": "connections that stay open over the change of keys, by time",
}
SERVERS = {
    "withheld flows": "flows with names of fewer than z users that left",
    "length of the name": "suppressed name, by the length of its mask",
    "sizes": "suppressed name, by bytes in each direction",
    "sizes, length": "suppressed name, by both",
    "own address": "flows with a suppressed name that have the server's own address",
    "same server": "flows of two users to one server with one address",
    "one pseudonym for two servers": "pair pseudonyms that replace two servers",
    "next port": "the port of a user's next flow",
    "dictionary": "suppressed name, by checksum and length, of 100,000",
    "other names": "captures with other suppressed names whose output differs",
}
LIMITS = (f"{IDS}, kept", "hello", "names", "stack", "names, stack, hello", "open connections")


def bars(rows: list[Row]) -> list[Row]:
    """Returns the bars: chance and two in a hundred, by default; nothing of withheld names."""
    out = Bars()
    for name in (*COUNTED, *LIMITS, "next port"):
        if row := find(rows, view="default", attack=name):
            out.most(f"default, {name}", row["share"], row["baseline"] + BEYOND)
    for view, name in (("default", "withheld flows"), ("default", "other names"),
                       ("exact", "other names"), ("coarse", "other names")):  # fmt: skip
        if row := find(rows, view=view, attack=name):
            out.add(f"{view}, {name}", str(row["hits"]), "0", row["hits"] == 0)
    for name in ("same server", "dictionary"):
        if row := find(rows, view="exact", attack=name):
            out.most(f"exact, {name}", row["share"], row["baseline"] + BEYOND)
    return out.rows


def risen(rows: list[Row], before: dict[str, Any] | None) -> list[str]:
    """Returns a line for each figure of ours that is above the committed one by more than its
    interval."""
    lines = []
    for row in rows:
        if "share" not in row or "control" in row or row["view"] == "addresses":
            continue
        same = {key: row[key] for key in ("view", "attack")}
        old = find(before["rows"], **same) if before else None
        if old and "share" in old and row["low"] > old["high"]:
            lines.append(
                f"packets | {' | '.join(same.values())} rose from {percent(old['share'])} to "
                f"{percent(row['share'])}"
            )
    return lines


def figure(row: Row | None, intervals: bool) -> str:
    """Returns a share of right answers."""
    if row is None or not row.get("trials"):
        return ""
    text = percent(row["share"])
    return f"{text} ({100 * row['low']:.2f} to {100 * row['high']:.2f})" if intervals else text


def chance(rows: list[Row], name: str) -> str:
    """Returns the baseline of an attack, unless it is zero."""
    given = [row["baseline"] for row in rows if row.get("attack") == name and row["trials"]]
    least = min(given, default=0.0)
    return percent(least) if least >= 5e-5 else "0"


def attack_table(rows: list[Row], attacks: dict[str, str], intervals: bool) -> list[str]:
    """Returns a line for each attack: chance, kinds of packets, and the options that open it."""
    there = [key for key in MAIN if find(rows, view=key) and "unavailable" not in (
        find(rows, view=key) or {})]  # fmt: skip
    lines = header(["by", "chance", *(TITLES[key] for key in there), "other settings"])
    for name, text in attacks.items():
        cells = [figure(find(rows, view=key, attack=name), intervals) for key in there]
        others = [
            f"{title}: {figure(row, intervals)}"
            for key, title in OPTIONS.items()
            if (row := find(rows, view=key, attack=name)) and opens(key, name)
        ]
        lines.append(line([text, chance(rows, name), *cells, "; ".join(others)]))
    return lines


def opens(key: str, name: str) -> bool:
    """Returns true if a setting exists for this attack."""
    if key in KINDS:
        return name in (*KINDS[key].links, *KINDS[key].live)
    return name == {"checksum": "dictionary", "any z": "other names"}[key]


def tables(results: dict[str, Any]) -> str:
    """Returns the README's tables."""
    rows, head = results["rows"], results["rows"][0]
    text = (
        f"{head['users']} users of population {head['population']} over two hours, "
        f"{head['flows']:,} flows, {head['frames']:,} packets, z = {head['z']}."
    )
    lines = [
        text,
        "",
        *attack_table(rows, LINKS, True),
        "",
        *attack_table(rows, SERVERS, True),
        "",
        *header(["figure", "measured", "to reach", "reached"]),
    ]
    lines += [
        line([bar["what"], bar["measured"], bar["goal"], "yes" if bar["reached"] else "no"])
        for bar in results["bars"]
    ]
    controls = [row for row in rows if "control" in row]
    held = sum(bool(row["held"]) for row in controls)
    return "\n".join([*lines, "", f"Controls: {held} of {len(controls)} held."])


def short_tables(results: dict[str, Any]) -> str:
    """Returns the tables of the documentation."""
    rows = results["rows"]
    links, servers = (attack_table(rows, which, False) for which in (LINKS, SERVERS))
    return "\n".join([*links, "", *servers])


def pages(here: Path, results: dict[str, Any]) -> dict[Path, str]:
    """Returns the pages with their tables."""
    found = {}
    for path, table in (
        (here / "README.md", tables(results)),
        (here.parents[1] / PAGE, short_tables(results)),
    ):
        found[path] = renewed(path.read_text("utf-8"), table, (BEGIN, END))
    return found


def write(here: Path, results: dict[str, Any]) -> None:
    """Puts the tables into the pages, and the figures beside them."""
    for path, text in pages(here, results).items():
        path.write_text(text, "utf-8")
    (here / FILE).write_text(json.dumps(results, indent=1) + "\n", "utf-8")
