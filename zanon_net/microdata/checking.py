# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`check`, which measures the classes of a table, and the part on classes of any report."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from zanon_net._text import share
from zanon_net._text import table as text_table
from zanon_net.config.parse import shown
from zanon_net.errors import CapacityError, ConfigError
from zanon_net.microdata.arrow import ROOT, are_texts, as_table, compute, encoded, texts
from zanon_net.microdata.guess import Guess
from zanon_net.microdata.measures import FAULTS, Classes, Sensitive, column_loss, measure
from zanon_net.microdata.plan import KINDS, Plan

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
RECURSIVE_MAX = 8  # largest l for which a report gives the c of recursive diversity
FAULT_TEXTS = {
    "users": "fewer than k users",
    "diversity": "too few sensitive values, or too uneven ones",
    "share": "one value has too large a share",
    "distance": "too far from the whole",
}
"""The requirement that a class fails, for people."""
SHARE_LINE = "most {max:.1%}, mean {mean:.1%}, {whole:.1%} of the whole"
ENTROPY_LINE = "least {min:.2f}, mean {mean:.2f}, {whole:.2f} bits of the whole"


def class_facts(classes: Classes) -> dict[str, Any]:
    """Returns counts of the classes and their sizes, and the risk that follows from sizes alone."""
    users, rows = classes.users, int(classes.rows.sum())
    sizes = np.sort(users)
    return {
        "classes": len(classes),
        "k": int(sizes[0]) if rows else 0,
        "size": {
            "mean": float(users.mean()) if rows else 0.0,
            **{f"p{q:.0%}".removesuffix("%"): _quantile(sizes, q) for q in QUANTILES},
            "max": int(sizes[-1]) if rows else 0,
        },
        "rows_alone": int(classes.rows[users == 1].sum()),
        "prosecutor": {
            "max": float(1 / sizes[0]) if rows else 0.0,
            "mean": float((classes.rows / users).sum() / rows) if rows else 0.0,
        },
    }


def _quantile(ordered: Any, q: float) -> int:
    """Returns the smallest size that a share q of the classes does not exceed."""
    if not len(ordered):
        return 0
    return int(ordered[max(0, int(np.ceil(q * len(ordered))) - 1)])


def diversity_facts(column: Sensitive) -> dict[str, Any]:
    """Returns the diversity of a sensitive column's values: of the worst class, the mean over
    users, and of the whole.

    The diversity of the whole is the knowledge of an attacker who knows no class.
    """
    whole, entropy, total = column.whole, column.entropy, column.total
    if not column.classes:
        return {"values": column.values}
    occurring = whole[whole > 0]
    whole_entropy = max(0.0, float(-(occurring * np.log(occurring)).sum()))  # never -0.0
    bits = np.log(2)
    return {
        "values": column.values,
        "l": int(column.distinct.min()),
        "entropy_l": float(np.exp(entropy.min())),
        "recursive_c": _recursive(column),
        "entropy_bits": {
            "min": float(entropy.min() / bits),
            "mean": float(np.average(entropy, weights=total) / bits),
            "whole": whole_entropy / bits,
        },
        "share": {
            "max": float(column.share.max()),
            "mean": float(np.average(column.share, weights=total)),
            "whole": float(whole.max()),
        },
        "t": {
            "max": float(column.distance.max()),
            "mean": float(np.average(column.distance, weights=total)),
        },
    }


def _recursive(column: Sensitive) -> dict[str, float]:
    """Returns for each l that all classes have values for the c above which recursive (c,
    l)-diversity holds."""
    found = {}
    for l in range(2, min(int(column.distinct.min()), RECURSIVE_MAX) + 1):  # noqa: E741
        found[str(l)] = float((column.largest / column.tail(l)).max())
    return found


@dataclass(frozen=True)
class CheckReport:
    """Measures of a table's classes.

    facts: the entries of `to_dict`. holds: true if the table meets all requirements of the plan.
    """

    facts: Mapping[str, Any]

    @property
    def holds(self) -> bool:
        """True if the table meets all requirements; true without any requirement."""
        return bool(self.facts["holds"])

    @property
    def k(self) -> int:
        """Users of the smallest class; 0 for a table without rows."""
        return int(self.facts["k"])

    def to_dict(self) -> dict[str, Any]:
        """Returns the report for programs: counts, shares and names of columns, no value of the
        table."""
        return dict(self.facts)

    def summary(self, width: int = 80) -> str:
        """Returns the report for people, in lines of `width` columns."""
        return text_table(self._lines(), width)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return html_table(self._lines())

    def _lines(self) -> Iterator[tuple[str, str]]:
        facts = self.facts
        yield from class_lines(facts)
        for name, column in facts["sensitive"].items():
            yield from diversity_lines(name, column)
        yield from loss_lines(facts["loss"])
        for note in facts["notes"]:
            yield "note", note
        if facts["required"]:
            yield "asked for", ", ".join(f"{key} {value}" for key, value in _asked(facts))
            yield "result", "holds" if facts["holds"] else "does not hold"
            for fault, count in facts["failed"].items():
                if count["classes"]:
                    rows = share(count["rows"], facts["rows"])
                    classes = (
                        "a class" if count["classes"] == 1 else f"{count['classes']:,} classes"
                    )
                    yield "failed", f"{classes} with {rows} rows: {FAULT_TEXTS[fault]}"


def _asked(facts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in facts["required"].items():
        yield name.replace("_", " "), value


def class_lines(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the lines on classes of a report."""
    users = "" if facts["users"] is None else f" of {facts['users']:,} users"
    yield "rows", f"{facts['rows']:,}{users} in {facts['classes']:,} classes"
    yield "k", f"{facts['k']:,}"
    size = facts["size"]
    if facts["rows"]:
        yield "class size", f"mean {size['mean']:.1f}, median {size['p50']:,}"
        prosecutor = facts["prosecutor"]
        yield "prosecutor", f"at most {prosecutor['max']:.1%}, mean {prosecutor['mean']:.1%}"
    if facts["rows_alone"]:
        yield "alone", f"{share(facts['rows_alone'], facts['rows'])} rows, in a class of one"


def diversity_lines(name: str, column: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the lines of a report on a sensitive column."""
    if "l" not in column:
        return
    yield name, f"{column['values']:,} values"
    recursive = "".join(f"; ({c:.2f}, {l})" for l, c in column["recursive_c"].items())  # noqa: E741
    yield "  l", f"{column['l']} distinct, {column['entropy_l']:.2f} by entropy"
    if recursive:
        yield "  (c, l)", f"for c above: {recursive.removeprefix('; ')}"
    portion, bits = column["share"], column["entropy_bits"]
    yield "  share", SHARE_LINE.format(**portion)
    yield "  entropy", ENTROPY_LINE.format(**bits)
    yield "  t", f"{column['t']['max']:.3f}, mean {column['t']['mean']:.3f}"


def loss_lines(loss: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yields the lines of a report on the loss by generalization."""
    if loss and loss["columns"]:
        columns = ", ".join(f"{name} {value:.3f}" for name, value in loss["columns"].items())
        mean = "" if loss["mean"] is None else f"{loss['mean']:.3f}: "
        yield "loss", mean + columns


def html_table(lines: Iterator[tuple[str, str]]) -> str:
    """Returns lines of a report as a table of HTML, for notebooks."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(text)}</td></tr>"
        for name, text in lines
    )
    return f"<table>{rows}</table>"


def required_of(plan: Plan) -> dict[str, Any]:
    """Returns the requirements of a plan, by the names of its fields; empty without
    requirements."""
    asked: dict[str, Any] = {"k": plan.k} if plan.k > 1 else {}
    if plan.l > 1 or plan.l_kind.startswith("recursive"):
        asked |= {"l": plan.l, "l_kind": plan.l_kind}
    asked |= {} if plan.max_share is None else {"max_share": plan.max_share}
    return asked | ({} if plan.t is None else {"t": plan.t})


def report_classes(
    classes: Classes, plan: Plan, *, users: int | None = None, hierarchies: Mapping[str, Any]
) -> CheckReport:
    """Returns the report on classes.

    users: distinct users in the table, if the plan has a user column. hierarchies: of the columns
    whose loss is known.
    """
    rows = int(classes.rows.sum())
    faults = classes.faults(plan.rule)
    failed = {
        name: {"classes": int(found.sum()), "rows": int(classes.rows[found].sum())}
        for name, found in ((name, faults == i + 1) for i, name in enumerate(FAULTS))
    }
    facts = {
        "rows": rows,
        "users": users,
        **class_facts(classes),
        "sensitive": {column.name: diversity_facts(column) for column in classes.sensitive},
        "loss": _loss_of(classes, plan, hierarchies),
        "required": required_of(plan),
        "holds": not faults.any(),
        "failed": failed,
        "notes": list(notes_on(classes, plan)),
    }
    return CheckReport(facts)


def notes_on(classes: Classes, plan: Plan) -> Iterator[str]:
    """Yields warnings about a requirement that a reader should know before trusting it."""
    if plan.l > 1 and KINDS[int(plan.rule["kind"])] == "distinct":
        for column in classes.sensitive:
            rare = np.sort(column.whole[column.whole > 0])[:-1]
            if column.values == plan.l == 2 and len(rare):
                yield (
                    f"2 distinct values of {column.name!r}, one of which {rare[0]:.1%} have, take"
                    f" classes of {1 / rare[0]:.1f} on average"
                )


def _loss_of(classes: Classes, plan: Plan, hierarchies: Mapping[str, Any]) -> dict[str, Any] | None:
    if not hierarchies:
        return None
    found = {name: column_loss(classes, name, hierarchies[name]) for name in hierarchies}
    unknown = {name: rows for name, (_loss, rows) in found.items() if rows}
    columns = {name: loss for name, (loss, _rows) in found.items()}
    is_whole = set(columns) == set(plan.quasi_columns) and not unknown
    mean = float(np.mean(list(columns.values()))) if is_whole else None
    return {"mean": mean, "columns": columns, "unknown_rows": unknown}


def check(table: Any, plan: Plan) -> CheckReport:
    """Measures the classes of a table.

    table: pyarrow's, or one that `arrow.as_table` takes: of pandas, polars, DuckDB and others.
    plan: its columns, and its requirements; passed columns are ignored. Loss is measured for the
        columns whose Hierarchy, or other recoding that needs no raw values, is in `quasi`.

    Raises ConfigError for a missing column.
    """
    wanted = [name for name in plan.read_columns if name not in plan.passed]
    return check_rows(as_table(table, wanted, encode=False), plan)


def check_rows(table: Any, plan: Plan) -> CheckReport:
    """Measures a table that `as_table` or `read_table` returned, as `check` does."""
    classes = measure(table, plan)
    users = None
    if plan.user is not None:
        users = int(measure(table, plan, ()).users.sum())
    report = report_classes(classes, plan, users=users, hierarchies=known_hierarchies(plan))
    if len(classes):
        notes = [*report.facts["notes"], *_note_on_suppressed(classes, plan)]
        return CheckReport({**report.facts, "notes": notes})
    # A table without rows is usually a broken export, so it meets no requirement.
    notes = [*report.facts["notes"], "the table has no row, so there is nothing to check"]
    holds = not report.facts["required"]
    return CheckReport({**report.facts, "holds": holds, "notes": notes})


def _note_on_suppressed(classes: Classes, plan: Plan) -> Iterator[str]:
    """Yields a note if the class of rows with only `*` is the reason why k is too small."""
    found = _class_of_roots(classes)
    if found is None or len(classes) < 2:
        return
    others = int(np.delete(classes.users, found).min())
    if classes.users[found] < min(others, plan.k if plan.k > 1 else others):
        rows = share(int(classes.rows[found]), int(classes.rows.sum()))
        yield (
            f"{rows} rows have only {ROOT!r}, as ARX writes suppressed records; without them, k is"
            f" {others:,}"
        )


def _class_of_roots(classes: Classes) -> int | None:
    """Returns the class whose quasi-identifiers are all `*`."""
    is_root = np.ones(len(classes), np.bool_)
    for column in classes.quasi.columns:
        codes, values = encoded(column)
        root = texts(values).index(ROOT).as_py() if are_texts(values) else -1
        if root < 0:
            return None
        is_root &= compute().fill_null(codes, len(values)).to_numpy() == root
    found = np.flatnonzero(is_root)
    return int(found[0]) if len(found) else None


def known_hierarchies(plan: Plan, original: Any = None) -> dict[str, Any]:
    """Returns the hierarchies of a plan's columns that have a hierarchy; a Scale for numbers.

    original: the raw table, from which a recoding takes its range. Without it, only recodings that
    need no range are returned.
    """
    found = {}
    for name, recoding in plan.recodings.items():
        if recoding is None or isinstance(recoding, Guess):
            continue
        make = getattr(recoding, "scale", recoding.hierarchy)
        try:
            if original is not None:
                found[name] = make(original.column(name))
                continue
        except (ConfigError, CapacityError) as error:
            raise ConfigError(f"column {shown(name)}: {error}") from None
        try:
            found[name] = make(None)
        except ValueError:  # a ConfigError: it needs the values
            continue
    return found
