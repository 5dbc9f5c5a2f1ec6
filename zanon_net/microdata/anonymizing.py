# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Generalizes a table until each of its classes meets the requirements of a plan.

`anonymize` is the Python of `zanon-net table anonymize`. `topdown` and `lattice` choose the levels.
After them, the gate (csrc/release/tuple_gate.h) counts the classes of the columns to be written
again, and rows that it refuses are dropped.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from zanon_net._core import CLASS_FAULTS, TupleGate
from zanon_net._text import share
from zanon_net._text import table as text_table
from zanon_net.config.parse import as_int, did_you_mean, reject, shown
from zanon_net.errors import CapacityError, ConfigError, ZanonError
from zanon_net.microdata.arrow import arrow, as_table, compute, empty_as_missing, encoded, texts
from zanon_net.microdata.checking import (
    FAULT_TEXTS,
    class_lines,
    diversity_lines,
    html_table,
    loss_lines,
    report_classes,
)
from zanon_net.microdata.guess import Guess
from zanon_net.microdata.guess import Numbers as GuessedNumbers
from zanon_net.microdata.hierarchy import Round
from zanon_net.microdata.judging import OUT, Judge, Tuples, compacted
from zanon_net.microdata.lattice import Lattice, Levels, Recoded, least_loss
from zanon_net.microdata.measures import (
    Bools,
    Ints,
    Numbers,
    check_feasible,
    joint_numbers,
    measure,
)
from zanon_net.microdata.plan import Plan
from zanon_net.microdata.tables import as_released
from zanon_net.microdata.topdown import Column, top_down

METHODS = ("topdown", "lattice", "fixed")
REASONS = {"unknown": "a value that its hierarchy does not have", **FAULT_TEXTS}
"""The reason why a row was suppressed, for people."""


@dataclass(frozen=True, eq=False)
class AnonymizeReport:
    """Results of anonymizing a table.

    method: the method of generalization. levels: the levels of the quasi-identifiers, if each
        column has one level.
    rows_in, rows_out: rows read and written.
    suppressed: rows that were not written, by REASONS. refused: suppressed rows that the gate
        dropped, because nothing before it had seen a reason to.
    loss: of each column, 0 to 1; a suppressed row counts 1.
    """

    method: str
    levels: Mapping[str, int] | None
    rows_in: int
    rows_out: int
    suppressed: Mapping[str, int]
    refused: int
    loss: Mapping[str, float]
    warnings: Sequence[str]
    _classes: Callable[[], Mapping[str, Any]] = field(repr=False)

    @property
    def mean_loss(self) -> float:
        """The mean of the columns' losses."""
        return float(np.mean(list(self.loss.values())))

    @cached_property
    def classes(self) -> Mapping[str, Any]:
        """Facts that `check` finds in the table written, measured at the first use."""
        return self._classes()

    def to_dict(self) -> dict[str, Any]:
        """Returns the report for programs: counts, shares and names of columns, no value of the
        table."""
        return {
            "method": self.method,
            "levels": None if self.levels is None else dict(self.levels),
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "suppressed": dict(self.suppressed),
            "refused_by_gate": self.refused,
            **self.classes,
            "warnings": list(self.warnings),
        }

    def summary(self, width: int = 80) -> str:
        """Returns the report for people, in lines of `width` columns."""
        return text_table(self._lines(), width)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return html_table(self._lines())

    def _lines(self) -> Iterator[tuple[str, str]]:
        yield "rows in", f"{self.rows_in:,}"
        for reason, count in self.suppressed.items():
            if count:
                portion = count / max(1, self.rows_in)
                yield "suppressed", f"{count:,} ({portion:.2%}): {REASONS[reason]}"
        yield from class_lines(self.classes)
        for name, column in self.classes["sensitive"].items():
            yield from diversity_lines(name, column)
        yield from loss_lines(self.classes["loss"])
        if self.levels is not None:
            yield "levels", ", ".join(f"{name} {level}" for name, level in self.levels.items())
        for note in (*self.classes["notes"], *self.warnings):
            yield "note", note


@dataclass(frozen=True, eq=False)
class Result:
    """A generalized table (pyarrow.Table), its rows sorted by their bytes, and its report."""

    table: Any
    report: AnonymizeReport


def anonymize(
    table: Any,
    plan: Plan,
    *,
    method: str = "topdown",
    suppress: float = 0.0,
    levels: Mapping[str, int] | None = None,
) -> Result:
    """Generalizes a table so that each class meets the requirements of the plan.

    table: pyarrow's, or one that `arrow.as_table` takes: of pandas, polars, DuckDB and others.
    plan: its columns, their generalization, and the requirements of each class. A quasi-identifier
        without a recoding gets the recoding that `guess` finds for its values.
    method: "topdown" splits classes along the hierarchies, and numbers at medians. "lattice" takes
        one level a column, with the least loss. "fixed" takes the levels given. Both suppress the
        rows of classes that fail.
    suppress: share of the rows that may be suppressed, 0 to 1. "topdown" suppresses rows only where
        this lowers the loss.
    levels: of quasi-identifiers, for "fixed". A column without a level gets 0, the values
        themselves.

    Raises ConfigError if no release can meet the plan, or no release of this method with so few
    suppressed rows. Raises it also for a missing column, and for a value that its hierarchy lacks
    (unless plan.unknown allows it).
    """
    return anonymize_rows(
        as_table(table, plan.read_columns),
        plan,
        method=method,
        suppress=suppress,
        levels=levels,
    )


def anonymize_rows(
    rows: Any,
    plan: Plan,
    *,
    method: str = "topdown",
    suppress: float = 0.0,
    levels: Mapping[str, int] | None = None,
) -> Result:
    """Anonymizes a table that `as_table` or `read_table` returned, as `anonymize` does."""
    _check_options(method, suppress)
    work = Work.of(empty_as_missing(rows), plan, method)
    chosen = work.chosen_levels(levels, method)
    if not work.rows:
        columns = [Column(np.zeros(0, np.int64), [], np.zeros(0)) for _name in work.hierarchies]
        return _written(work, columns, np.zeros(0, np.int64), method, chosen)
    if method == "topdown":
        columns, faults = _top_down(work, suppress)
        return _written(work, columns, faults, method, None)
    recoded = _full_domain(work, suppress, chosen)
    columns = [
        Column(nodes, h.labels, h.loss) for nodes, h in zip(recoded.nodes, work.trees, strict=True)
    ]
    return _written(work, columns, recoded.faults, method, recoded.levels)


def _check_options(method: str, suppress: float) -> None:
    if method not in METHODS:
        reject("method", f"must be one of {', '.join(METHODS)}, not {shown(method)}")
    if not _is_share(suppress):
        reject("suppress", f"must be a number from 0 to 1, not {shown(suppress)}")


def _is_share(value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value <= 1  # type: ignore[operator]


# ---- the rows as tuples of nodes ----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Work:
    """A table with the hierarchies of its columns, and its rows as tuples of their nodes.

    table: the rows whose values are known. hierarchies: of the columns; a Scale of numbers that
    split at medians. unknown: the number of rows that were left out. notes: about the columns.
    """

    table: Any
    plan: Plan
    hierarchies: Mapping[str, Any]
    tuples: Tuples
    judge: Judge
    unknown: int
    notes: Sequence[str]

    @classmethod
    def of(cls, table: Any, plan: Plan, method: str) -> "Work":
        """Raises ConfigError for unknown values, and if the plan requires more than the table
        has."""
        with_scales = method == "topdown"
        prepared = {
            name: _Prepared.of(table, plan, name, with_scales) for name in plan.quasi_columns
        }
        hierarchies = {name: of_column.hierarchy for name, of_column in prepared.items()}
        notes = [note for of_column in prepared.values() for note in of_column.notes]
        codes = {name: h.codes(table.column(name)) for name, h in hierarchies.items()}
        known = np.ones(len(table), np.bool_)
        for name, of_column in codes.items():
            missing = of_column < 0
            if not missing.any():
                continue
            if plan.unknown == "error":
                _refuse_unknown(name, missing)
            if plan.unknown == "suppress":
                known &= ~missing
            codes[name] = np.where(missing, hierarchies[name].nodes - 1, of_column)
        unknown = int((~known).sum())
        if unknown:
            table = table.filter(arrow().array(known))
            codes = {name: of_column[known] for name, of_column in codes.items()}
        tuples = Tuples.of(list(codes.values()), [h.nodes for h in hierarchies.values()])
        sensitive = [_numbers(table.column(name)) for name in plan.sensitive_columns]
        users = None if plan.user is None else _numbers(table.column(plan.user))
        asked = sensitive if plan.asks_for_diversity else []
        judge = Judge(plan.rule, tuples, asked, users)
        if len(table) and not judge.good(np.zeros(len(tuples), np.int64), 1)[0]:
            check_feasible(table, plan)
            raise ConfigError("the table as a whole does not meet the requirements")
        return cls(table, plan, hierarchies, tuples, judge, unknown, notes)

    @property
    def rows(self) -> int:
        """Number of rows whose values are known."""
        return len(self.tuples.of_row)

    @property
    def trees(self) -> list[Any]:
        """The hierarchies in the order of the columns."""
        return list(self.hierarchies.values())

    def chosen_levels(self, levels: Mapping[str, int] | None, method: str) -> Levels | None:
        """Returns the level of each column for the method "fixed". Raises ConfigError."""
        if method != "fixed":
            if levels:
                reject("levels", "are for the method fixed; the others choose them")
            return None
        levels = levels or {}
        for name, level in levels.items():
            if name not in self.hierarchies:
                hint = did_you_mean(name, self.hierarchies)
                reject("levels", f"{shown(name)} is not among the quasi-identifiers{hint}")
            top = self.hierarchies[name].levels - 1
            number = as_int(level)
            if number is None or not 0 <= number <= top:
                reject("levels", f"{shown(name)} needs a whole number from 0 to {top}")
        return tuple(levels.get(name, 0) for name in self.hierarchies)


@dataclass(frozen=True)
class _Prepared:
    """The hierarchy of a quasi-identifier, and notes about the column."""

    hierarchy: Any
    notes: Sequence[str]

    @classmethod
    def of(cls, table: Any, plan: Plan, name: str, with_scales: bool) -> "_Prepared":
        """Returns the plan's hierarchy, or the hierarchy that `guess` finds.

        with_scales: true if numbers become a Scale.
        """
        recoding, column, notes = plan.recodings[name], table.column(name), []
        try:
            if recoding is None or isinstance(recoding, Guess):
                recoding, note = (recoding or Guess()).of(column, name)
                notes += [note] if note else []
            scale = None
            if isinstance(recoding, Round | GuessedNumbers):
                scale = recoding.scale(column)
                notes += _outlier_notes(name, scale, column)
            hierarchy = scale if with_scales and scale is not None else recoding.hierarchy(column)
        except (ConfigError, CapacityError) as error:
            raise ConfigError(f"column {shown(name)}: {error}") from None
        return cls(hierarchy, (*hierarchy.warnings, *notes))


def _outlier_notes(name: str, scale: Any, column: Any) -> Iterator[str]:
    """Yields notes that propose to clip a column with a few numbers far from all others."""
    for side, rows in scale.outliers(scale.codes(column)):
        limit = "LOW.." if side == "below" else "..HIGH"
        yield (
            f"column {name!r}: {share(rows, len(column))} rows are far {side} all others, which"
            f" widens ranges; clip them with --round {name}=WIDTH --clip {name}={limit}"
        )


def _refuse_unknown(name: str, missing: Bools) -> None:
    count, row = int(missing.sum()), int(missing.argmax()) + 1
    rows = f"row {row:,}" if count == 1 else f"{count:,} rows, the first one row {row:,},"
    has = "has" if count == 1 else "have"
    raise ConfigError(
        f"column {shown(name)}: {rows} {has} a value that its hierarchy does not have;"
        " add it there, or choose suppress or top for unknown values"
    )


def _numbers(column: Any) -> Numbers:
    """Returns a column as codes, and the number of codes, including a code for missing values."""
    codes, values = encoded(column)
    filled = compute().fill_null(codes, len(values)).to_numpy()
    return filled.astype(np.int64), len(values) + 1


# ---- methods ------------------------------------------------------------------------------------


def _most(work: Work, suppress: float) -> int:
    """Returns the number of rows that may be suppressed."""
    return int(np.floor(suppress * work.rows + 1e-9))


def _top_down(work: Work, suppress: float) -> tuple[list[Column], Ints]:
    """Returns (the columns as they are written, why each tuple is suppressed)."""
    most = _most(work, suppress)
    columns, faults = top_down(work.tuples, work.trees, work.judge, most)
    if work.plan.t is None or not (faults > 0).any():
        return columns, faults
    # Distances are to the rows that are written, so suppressed rows can make a class too far.
    numbers = [(column.nodes + 0, len(column.labels)) for column in columns]
    group, first = joint_numbers(numbers, len(work.tuples))
    group = np.where(faults > 0, len(first), group)
    group, groups = compacted(np.where(group == len(first), OUT, group), len(first))
    if work.judge.faults(group, groups).any():
        return top_down(work.tuples, work.trees, work.judge)
    return columns, faults


def _full_domain(work: Work, suppress: float, levels: Levels | None) -> Recoded:
    """Returns the table with one level a column. Raises ConfigError if too many rows would be
    lost."""
    most = _most(work, suppress)
    lattice = Lattice(work.tuples, work.trees, work.judge)
    if levels is None:
        recoded = least_loss(lattice, most, monotone=work.judge.is_monotone)
        if recoded is None:
            raise ConfigError("no levels are coarse enough for the requirements")
        return recoded
    recoded = lattice.at(levels)
    if recoded.suppressed > most:
        share = recoded.suppressed / work.rows
        raise ZanonError(
            f"{recoded.suppressed:,} of {work.rows:,} rows ({share:.2%}) are in classes that do not"
            f" meet the requirements, more than {suppress:.2%}; take coarser values or levels, or"
            " suppress more"
        )
    return recoded


# ---- the output ----------------------------------------------------------------------------------


def _written(
    work: Work, columns: Sequence[Column], faults: Ints, method: str, levels: Levels | None
) -> Result:
    suppressed = dict.fromkeys(REASONS, 0) | {"unknown": work.unknown}
    of_row = work.tuples.of_row
    for number, reason in enumerate(CLASS_FAULTS, 1):
        suppressed[reason] = int((faults == number)[of_row].sum())
    released, users, places = _released(work, columns, (faults == 0)[of_row])
    refused = _gate(released, users, work.plan)
    if refused.any():
        for number, reason in enumerate(CLASS_FAULTS, 1):
            suppressed[reason] += int((refused == number).sum())
        passes = refused == 0
        released = released.filter(arrow().array(passes))
        users = None if users is None else users[passes]
        places = places[passes]
    rows_in = work.rows + work.unknown
    loss = _losses(work, columns, of_row[places], rows_in)
    report = AnonymizeReport(
        method=method,
        levels=None if levels is None else dict(zip(work.hierarchies, levels, strict=True)),
        rows_in=rows_in,
        rows_out=len(released),
        suppressed=suppressed,
        refused=int((refused > 0).sum()),
        loss=loss,
        warnings=list(work.notes),
        _classes=lambda: _class_facts(released, users, work.plan, loss),
    )
    return Result(released, report)


def _released(work: Work, recoded: Sequence[Column], kept: Bools) -> tuple[Any, Ints | None, Ints]:
    """Returns (rows to be written, in the order of their bytes; the user of each; its place among
    the rows read)."""
    pa, plan = arrow(), work.plan
    rows = np.flatnonzero(kept)
    columns: dict[str, tuple[Numbers, Any]] = {}
    for name, column in zip(work.hierarchies, recoded, strict=True):
        of_rows = column.nodes[work.tuples.of_row[rows]]
        labels = pa.array(column.labels, pa.string())
        columns[name] = (of_rows, len(labels)), labels
    for name in (*plan.sensitive_columns, *plan.passed):
        codes, values = encoded(work.table.column(name))
        numbers = compute().fill_null(codes, len(values)).to_numpy()[rows].astype(np.int64)
        padded = pa.concat_arrays([values, pa.nulls(1, values.type)])
        columns[name] = (numbers, len(padded)), padded
    # Only distinct rows are converted to text and sorted.
    number, first = joint_numbers([numbers for numbers, _values in columns.values()], len(rows))
    distinct = pa.table(
        {
            str(place): values.take(pa.array(numbers[0][first]))
            for place, (numbers, values) in enumerate(columns.values())
        }
        | {str(len(columns)): pa.array(np.arange(len(first)))}
    )
    in_order = as_released(distinct)
    rank = np.empty(len(first), np.int64)
    rank[in_order.column(len(columns)).to_numpy()] = np.arange(len(first))
    order = np.argsort(rank[number], kind="stable")
    taken = pa.array(rank[number][order])
    released = pa.table(
        {name: in_order.column(i).take(taken) for i, name in enumerate(columns)}
    ).combine_chunks()
    places = rows[order]
    users = None
    if plan.user is not None:
        users = _numbers(work.table.column(plan.user))[0][places]
    return released, users, places


def _gate(released: Any, users: Ints | None, plan: Plan) -> Any:
    """Returns the gate's decision on each row, from the columns that are written."""
    gate = TupleGate(plan.rule, len(plan.sensitive_columns))

    def column(name: str) -> tuple[list[bytes | None], Any]:
        codes, values = encoded(released.column(name))
        written = [None if text is None else text.encode() for text in texts(values).to_pylist()]
        filled = compute().fill_null(codes, len(written)).to_numpy().astype(np.int32)
        return [*written, None], filled

    return gate.decide(
        [column(name) for name in plan.quasi_columns],
        [column(name) for name in plan.sensitive_columns],
        users,
        len(released),
    )


def _losses(work: Work, columns: Sequence[Column], written: Ints, rows: int) -> dict[str, float]:
    """Returns the loss of each column.

    written: the tuple of each row written. rows: number of all rows; the loss of suppressed rows is
    1.
    """
    return {
        name: float((column.loss[column.nodes[written]].sum() + rows - len(written)) / max(1, rows))
        for name, column in zip(work.hierarchies, columns, strict=True)
    }


def _class_facts(
    released: Any, users: Ints | None, plan: Plan, loss: Mapping[str, float]
) -> dict[str, Any]:
    table, count = released, None
    if users is not None and plan.user is not None:
        table = released.append_column(plan.user, arrow().array(users))
        count = len(np.unique(users))
    found = report_classes(measure(table, plan), plan, users=count, hierarchies={})
    mean = float(np.mean(list(loss.values())))
    return {**found.facts, "loss": {"mean": mean, "columns": dict(loss), "unknown_rows": {}}}


def loss_curve(
    rows: Any, plan: Plan, numbers: Sequence[int], *, method: str, suppress: float = 0.0
) -> list[tuple[int, float]]:
    """Returns (k, mean loss) of the table for each k of `numbers` that it has users for.

    rows: as of `anonymize_rows`. The plan's other requirements stay. Nothing is written, so the
    gate is not used. Raises ConfigError as `anonymize` does.
    """
    work = Work.of(empty_as_missing(rows), replace(plan, k=1), method)
    found = []
    for k in numbers:
        judge = work.judge.with_k(k)
        if not work.rows or not judge.good(np.zeros(len(work.tuples), np.int64), 1)[0]:
            break
        of_k = replace(work, judge=judge)
        if method == "topdown":
            columns, faults = _top_down(of_k, suppress)
            lost = np.mean([column.loss[column.nodes] for column in columns], axis=0)
            loss = float(work.tuples.weight @ np.where(faults > 0, 1.0, lost)) / work.rows
        else:
            loss = _full_domain(of_k, suppress, None).loss
        found.append((k, (loss * work.rows + work.unknown) / (work.rows + work.unknown)))
    return found
