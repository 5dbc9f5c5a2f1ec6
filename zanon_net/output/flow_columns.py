# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Columns of flows as Arrow has them, in one schema for the logs of all formats. Needs pyarrow.

The schema has the rows of csrc/release/columns.h: the columns of every flow, and Tstat's columns
without its addresses and ports, which every flow has under other names.
"""

import importlib
import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from zanon_net.errors import FormatError
from zanon_net.output.parquet import arrow
from zanon_net.output.schema import columns, described

OPTIONAL_SETS = ("E2E", "P2P", "OPTIONS", "LEVELS", "ATTRIBUTES")
"""The groups of columns that a table has only if a file has them."""
FLOW_NEEDS = ("t_start_ns", "proto")
"""Columns whose values are never missing: a file without them is no log of flows."""


def arrow_type(kind: str) -> Any:
    """Returns the type of a column in a table, by its type in csrc/release/columns.h."""
    pa = arrow()
    types = {
        "bool": pa.bool_(),
        "ms": pa.float64(),
        "s": pa.float64(),
        "time": pa.timestamp("ns", tz="UTC"),
        "text": pa.string(),
    }
    return types.get(kind) or getattr(pa, kind)()


def time_of_ms(values: Any) -> Any:
    """Converts ms, texts or decimals with up to six decimals, into times. Raises ArrowInvalid."""
    pa, compute = arrow(), importlib.import_module("pyarrow.compute")
    ms = compute.cast(values, pa.decimal128(22, 6))
    ns = compute.multiply(ms, pa.scalar(10**6, pa.decimal128(7, 0)))
    return compute.cast(compute.cast(ns, pa.int64()), pa.timestamp("ns", tz="UTC"))


def cast(values: Any, kind: str) -> Any:
    """Converts values as a file has them. Raises ArrowException."""
    pa, compute = arrow(), importlib.import_module("pyarrow.compute")
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if kind == "bool" and pa.types.is_integer(values.type):
        if compute.any(compute.greater(values, 1)).as_py():
            raise pa.ArrowInvalid("neither 0 nor 1")
        return compute.equal(values, 1)
    if kind == "time" and (pa.types.is_string(values.type) or pa.types.is_decimal(values.type)):
        return time_of_ms(values)
    return values.cast(arrow_type(kind))


def as_flows(path: Path, there: Mapping[str, Any]) -> Any:
    """Returns columns as a table with the types of the schema; a column without a name in it stays
    as it is."""
    pa, found = arrow(), dict(there)
    for name, values in there.items():
        column = columns().get(name)
        if column is None:
            continue
        try:
            found[name] = cast(values, str(column.type))
        except pa.ArrowException:
            raise FormatError(f"{path}: column {name} holds a value of another type") from None
    check_needed(path, found, FLOW_NEEDS)
    return pa.table(found)


def check_needed(path: Path, there: Mapping[str, Any], needs: Sequence[str]) -> None:
    """Raises FormatError if a column is not there, or if a value of the column is missing."""
    for name in needs:
        if name not in there or there[name].null_count:
            raise FormatError(f"{path}: a row has no {name}, so it is no log of zanon_net")


def csv_problem(message: str, names: Sequence[str], held: str, form: str) -> str:
    """Returns a complaint of pyarrow without the log's content, which may be an address or a name.

    names: the columns of the header. held: words for a wrong value. form: the format of the file.
    """
    column = re.match(r"In CSV column #(\d+)", message)
    if column and int(column[1]) < len(names):
        name = names[int(column[1])]
        is_name = re.fullmatch(r"\w+", name, re.ASCII)  # the header may be damaged, too
        return f"column {name if is_name else int(column[1]) + 1} holds {held}"
    width = re.match(r"CSV parse error: (?:Row #\d+: )?Expected (\d+) columns, got (\d+)", message)
    if width:
        return f"a line has {width[2]} columns, its header {width[1]}"
    return f"it cannot be read as {form}"


def joined(path: Path, tables: Sequence[Any], *, is_observations: bool) -> Any:
    """Returns the rows of tables as one table, whose columns do not depend on the format."""
    pa = arrow()
    if not is_observations:
        there = set(itertools.chain.from_iterable(table.column_names for table in tables))
        tables = [_completed(table, there) for table in tables]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        raise FormatError(f"{path}: one of its columns has another type in another file") from None


def _completed(table: Any, there: Collection[str]) -> Any:
    """Returns a table with all columns of the schema, in its order, and then its other columns.

    there: the columns of any file, by which the optional sets are chosen.
    """
    pa, known = arrow(), columns()
    groups = {known[name].group for name in there if name in known}
    wanted = [
        (name, str(column.type), True)
        for name, column in known.items()
        if column.group not in OPTIONAL_SETS
        or (name in there if column.group == "ATTRIBUTES" else column.group in groups)
    ]
    fields = [
        pa.field(name, arrow_type(kind), nullable, metadata=about)
        for name, kind, nullable, about in described(wanted)
    ]
    extra = [field for field in table.schema if field.name not in known]
    arrays = [
        table[field.name] if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in (*fields, *extra)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema([*fields, *extra]))
