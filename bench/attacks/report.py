# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Figures as tables, with the bars to reach and the committed figures."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from suite import Row
from views import OURS

BEGIN, END = "<!-- made by bench/attacks/run.py -->", "<!-- end of it -->"
LIMITS = Path("docs", "explanation", "limits.md")
PARTNER_MOST = 0.03
"""The largest share of withheld names that may be guessed in logs for partners."""
PLACES = ("population", "view", "attack", "setting", "way")
LABELS = {
    "raw": "raw addresses",
    "hash": "plain hash of clients",
    "crypto-pan": "no names hidden, Crypto-PAn with one key",
    "tstat": "no names hidden, Crypto-PAn each hour (as Tstat)",
    "alpha-mon": "names below z at their length, all else exact (as alpha-MON)",
} | {key: ours.label for key, ours in OURS.items()}
WHOSE = {
    "link": "link",
    "tree": "tree",
    "link, tree": "link + tree",
    "operator": "operator",
    "five operators": "five operators",
    "five operators, by set": "five, by set",
    "singling out": "singling out",
    "re-ID@1, 1 s": "re-ID@1, 1 s",
    "re-ID@1, 60 s": "re-ID@1, 60 s",
    "re-ID@5, 60 s": "re-ID@5, 60 s",
    "markers": "markers",
}
WHAT = {
    "suppressed": "suppressed",
    "suppressed, with context": "suppressed, context",
    "suppressed, category": "suppressed, category",
    "differencing": "differencing",
}
COLUMNS = WHOSE | WHAT
LABEL_LOGS = {
    "ours": "ours, `--levels`",
    "naive": "each exposure counts at each level",
    "cascade": "each exposure counts up to the level at which it is published",
    "categories alone": "categories alone, each exposure counts",
}
END_OF_RECORD = "end of a coarse record"
BASELINE = "guess without the log"
KNOWN = "the attacker knows"


def print_rows(rows: Iterable[Row]) -> None:
    """One line a row."""
    for row in rows:
        where = " | ".join(str(row[key]) for key in PLACES if key in row)
        print(f"{where}: {said(row)}", flush=True)


def said(row: Row) -> str:
    """Returns the result of a row as text."""
    if "unavailable" in row:
        return f"unavailable, {row['unavailable']}"
    if "flows" in row:
        return f"{row['flows']} flows, {row['names']} names"
    if "way" in row:
        return cost(row)
    if "smallest" in row:
        text = isolated(row)
    else:
        text = f"{percent(row['share'])} [{percent(row['low'])}, {percent(row['high'])}] of "
        text += f"{row['trials']}, baseline {percent(row['baseline'])}, risk {percent(row['risk'])}"
    if "seconds" in row:
        text += f", median {row['seconds']} s"
    if "control" in row:
        text += f", {row['control']} control {'held' if row['held'] else 'FAILED'}"
    return text


def isolated(row: Row) -> str:
    """Returns the result of the attack on labels."""
    few = f"{row['hits']:,} of {row['trials']:,} labels with fewer than {row['z']} users"
    return f"{few}, smallest group {row['smallest']}"


def cost(row: Row) -> str:
    """Returns the cost of a way of forging, and its releases."""
    what = [text for key, text in (("tls", "TLS"), ("dns", "DNS")) if row[key]]
    if not what:
        return "no"
    return f"{row['packets']} packets, {row['bytes'] / 1000:.1f} kB: {' and '.join(what)}"


def percent(share: float) -> str:
    """Returns a share for people."""
    return f"{100 * share:.2f} %" if share < 0.1 else f"{100 * share:.1f} %"


def find(rows: list[Row], **wanted: str) -> Row | None:
    """Returns the first row with these values."""
    return next((row for row in rows if wanted.items() <= row.items()), None)


class Bars:
    """The bars, and whether each is reached. A bar that must be reached fails the run if it is
    missed."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(
        self, what: str, measured: str, goal: str, reached: bool, *, must: bool = False
    ) -> None:
        """Adds a bar."""
        row = {"what": what, "measured": measured, "goal": goal, "reached": reached}
        self.rows.append(row | {"must": True} if must else row)

    def most(self, what: str, share: float, goal: float, *, must: bool = False) -> None:
        """Adds the bar of a share that is at most the goal."""
        self.add(what, percent(share), f"<= {percent(goal)}", share <= goal, must=must)


def bars(rows: list[Row], forged: list[Row], labelled: list[Row]) -> list[Row]:
    """Returns the bars for each population with figures, for forging, and for labels."""
    out = Bars()
    for kind in dict.fromkeys(row["population"] for row in rows if "flows" in row):
        mine = [row for row in rows if row["population"] == kind and "attack" in row]
        for view in ("default", "public"):
            of = {row["attack"]: row for row in mine if row["view"] == view}
            if of:
                view_bars(out, f"{kind}, {view}", of, view == "public")
    way = "spoofed DNS query that a resolver answers"
    for setting in ("default", "--for internal", "--for partner", "--for public"):
        row = find(forged, way=way, setting=setting)
        if row and "tls" in row:
            public = setting == "--for public"
            goal = "no record" if public else "no name of TLS"
            reached = not row["tls"] and not (public and row["dns"])
            out.add(f"spoofed DNS, {setting}", cost(row), goal, reached)
    for row in labelled:
        if "control" not in row:
            none = row["hits"] == 0 < row["trials"]
            out.add(row["attack"], isolated(row), "0 labels", none, must=True)
    return out.rows


def view_bars(out: Bars, where: str, of: dict[str, Row], public: bool) -> None:
    """Adds the bars of one log."""
    both = max(of[name]["share"] for name in ("link, tree", "link, tree, all bits"))
    added = both - of["link"]["share"]
    out.add(f"{where}: the tree adds", percent(added), "<= 1 %", added <= 0.01)
    alone = of["tree"]
    reached = alone["low"] <= alone["baseline"]
    out.add(f"{where}: the tree alone", percent(alone["share"]), "chance", reached)
    errors = [row["seconds"] for row in of.values() if "seconds" in row]
    least = 14.0 if public else 5.0
    if errors:
        error = min(errors)
        out.add(f"{where}: median error of an end", f"{error} s", f">= {least} s", error >= least)
    row = of["suppressed, with context"]
    goal = row["baseline"] + 0.01 if public else PARTNER_MOST
    out.most(f"{where}: suppressed, with context", row["share"], goal, must=not public)
    if public:
        out.most(f"{where}: five operators", of["five operators"]["share"], 0.006)


def missed(rows: list[Row]) -> list[str]:
    """Returns a line for each bar that must be reached and is not."""
    return [
        f"{row['what']}: {row['measured']}, to reach {row['goal']}"
        for row in rows
        if row.get("must") and not row["reached"]
    ]


def committed(here: Path, name: str = "results.json") -> dict[str, Any] | None:
    """Returns the figures in the sources."""
    path = here / name
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def risen(results: dict[str, Any], before: dict[str, Any] | None) -> list[str]:
    """Returns a line for each figure of ours that is above the committed one by more than its
    interval."""
    lines = []
    for row in results["rows"]:
        if "share" not in row or "control" in row or row["view"] not in OURS:
            continue
        same = {key: row[key] for key in ("population", "view", "attack")}
        old = find(before["rows"], **same) if before else None
        if old and "share" in old and row["low"] > old["high"]:
            lines.append(
                f"{' | '.join(same.values())} rose from {percent(old['share'])} to "
                f"{percent(row['share'])}"
            )
    for row in results["forging"]:
        same = {key: row[key] for key in ("way", "setting")}
        old = find(before["forging"], **same) if before else None
        if (
            old
            and "tls" in old
            and "tls" in row
            and (row["tls"], row["dns"]) > (old["tls"], old["dns"])
        ):
            lines.append(f"{' | '.join(same.values())} releases what it did not")
    return lines


def tables(results: dict[str, Any]) -> str:
    """Returns the README's tables."""
    rows, lines = results["rows"], []
    for kind in dict.fromkeys(row["population"] for row in rows if "flows" in row):
        lines += population_table([row for row in rows if row["population"] == kind])
    lines += forging_table(results["forging"]) + label_table(results["labels"])
    lines += ["### What is to be reached", ""]
    lines += header(["figure", "measured", "to reach", "reached"])
    lines += [
        line([bar["what"], bar["measured"], bar["goal"], "yes" if bar["reached"] else "no"])
        for bar in results["bars"]
    ]
    controls = [row for row in rows + results["labels"] if "control" in row]
    held = sum(bool(row["held"]) for row in controls)
    return "\n".join([*lines, "", f"Controls: {held} of {len(controls)} held."])


def line(cells: Iterable[str]) -> str:
    """Returns a line of a table."""
    return f"| {' | '.join(cells)} |"


def header(cells: list[str]) -> list[str]:
    """Returns a table's first two lines."""
    return [line(cells), line(["---"] * len(cells))]


def population_table(rows: list[Row]) -> list[str]:
    """Returns the figures of one population."""
    head, yard = rows[0], find(rows, attack="yardstick") or rows[0]
    lines = [f"### Population {head['population']}", ""]
    text = (
        f"{head['users']} users, {head['days']} days, {head['flows']:,} flows, "
        f"{head['names']:,} names, z = {head['z']}. From one day to the next, unfiltered names "
        f"find {percent(yard['share'])} of users again."
    )
    lines += [text, ""]
    for title, columns in (("Whose pseudonym", WHOSE), ("Which name, when", WHAT)):
        last = [END_OF_RECORD] if columns is WHAT else []
        lines += header([title, *columns.values(), *last])
        for key, label in LABELS.items():
            mine = [row for row in rows if row.get("view") == key]
            if mine and "unavailable" in mine[0]:
                lines.append(line([label, "not measured", *[""] * (len(columns) - 1 + len(last))]))
            elif any(row["attack"] in columns for row in mine):
                cells = [cell(mine, attack) for attack in columns]
                lines.append(line([label, *cells, *(ends(mine) for _ in last)]))
        ends_known = [known(rows, "order, by place") for _ in last]
        lines += [
            line([BASELINE, *(baseline(rows, attack) for attack in columns), *[""] * len(last)]),
            line([KNOWN, *(known(rows, attack) for attack in columns), *ends_known]),
        ]
        lines.append("")
    return lines


def baseline(rows: list[Row], attack: str) -> str:
    """Returns what a guess without the log reaches, for the log with the default settings."""
    row = find(rows, view="default", attack=attack)
    return percent(row["baseline"]) if row else ""


def known(rows: list[Row], attack: str) -> str:
    """Returns what the attacker knows."""
    row = find(rows, attack=attack)
    return str(row["knowledge"]) if row else ""


def forging_table(rows: list[Row]) -> list[str]:
    """Yields the cost of each way under each setting, and its releases."""
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    titles = [f"`{text}`" if text.startswith("-") else text for text in settings]
    lines = ["### Forging", "", *header(["way", *titles])]
    for way in dict.fromkeys(row["way"] for row in rows):
        found = [find(rows, way=way, setting=setting) for setting in settings]
        lines.append(line([way, *(forging_cell(row) for row in found)]))
    return [*lines, ""]


def label_table(rows: list[Row]) -> list[str]:
    """Returns the number of labels of each log, and the number that isolates users."""
    titles = ["log", "labels of", "labels", "with fewer than z users behind them", "smallest group"]
    lines = ["### Labels", "", *header(titles)]
    for row in rows:
        few = f"{row['hits']:,} ({percent(row['share'])})"
        what, log = row["attack"].removeprefix("labels of "), LABEL_LOGS[row["view"]]
        lines.append(line([log, what, f"{row['trials']:,}", few, str(row["smallest"])]))
    return [*lines, ""]


def forging_cell(row: Row | None) -> str:
    """Returns the cost of a way, if this build has the setting."""
    return cost(row) if row and "tls" in row else "not measured"


def cell(rows: list[Row], attack: str) -> str:
    """Returns a figure with its interval."""
    row = find(rows, attack=attack)
    if row is None:
        return ""
    digits = 2 if row["share"] < 0.1 else 1
    low, high = (f"{100 * row[end]:.{digits}f}" for end in ("low", "high"))
    return f"{percent(row['share'])} ({low} to {high})"


def ends(rows: list[Row]) -> str:
    """Returns the best guess of an end."""
    errors = [row["seconds"] for row in rows if "seconds" in row]
    return f"{min(errors)} s" if errors else ""


def short_table(results: dict[str, Any]) -> str:
    """Returns the table of limits.md: population usual, and distinct in square brackets."""
    columns = {key: COLUMNS[key] for key in SHORT}
    lines = header(["log", *columns.values(), END_OF_RECORD])
    for key, label in LABELS.items():
        kinds = [
            [row for row in results["rows"] if row["population"] == kind and row.get("view") == key]
            for kind in ("usual", "distinct")
        ]
        if not any("share" in row for row in kinds[0]):
            continue
        cells = [in_brackets([cell(rows, attack) for rows in kinds]) for attack in columns]
        lines.append(line([label, *cells, in_brackets([ends(rows) for rows in kinds])]))
    return "\n".join(lines)


SHORT = (
    "link",
    "link, tree",
    "re-ID@1, 60 s",
    "five operators",
    "five operators, by set",
    "suppressed, with context",
    "differencing",
)


def in_brackets(texts: list[str]) -> str:
    """Returns the first figure, and the second in brackets."""
    first, second = texts
    return f"{first} [{second}]" if first and second else first


def renewed(page: str, table: str, marks: tuple[str, str] = (BEGIN, END)) -> str:
    """Returns the page with another table between its marks."""
    begin, end = marks
    before, rest = page.split(begin)
    return f"{before}{begin}\n\n{table}\n\n{end}{rest.split(end)[1]}"


def write_readme(here: Path, results: dict[str, Any]) -> None:
    """Writes the tables into README.md and limits.md, and the figures next to README.md."""
    for page, table in (
        (here / "README.md", tables(results)),
        (here.parents[1] / LIMITS, short_table(results)),
    ):
        page.write_text(renewed(page.read_text("utf-8"), table), "utf-8")
    (here / "results.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
