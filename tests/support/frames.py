# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of observations in memory, of each library, and their rows read back."""

import csv
import io
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

from support.filter import sift
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.rows.report import RowTotals, build_filter_manifest

COLUMNS = ("time", "user", "attribute", "row")
UNITS_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
Row = tuple[int | None, str | None, str | None]  # ns, user, attribute


class Stream:
    """An object that has nothing but a stream of Arrow."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def _pandas(table: pa.Table, *, has_objects: bool = False) -> pd.DataFrame:
    """A DataFrame whose texts are objects or not, and whose numbers with missing ones are Int64."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        columns[name] = column.to_pandas()
        if pa.types.is_integer(column.type) and column.null_count:
            dtype = str(column.type).capitalize().replace("Ui", "UI")
            columns[name] = pd.Series(pd.array(column.to_pylist(), dtype=dtype))
        elif has_objects and columns[name].dtype == "str":
            columns[name] = columns[name].astype(object)
    return pd.DataFrame(columns)


KINDS: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": _pandas,
    "pandas of NumPy": partial(_pandas, has_objects=True),
    "pandas of Arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame,
    "polars lazy": lambda table: pl.DataFrame(table).lazy(),
    "Table": lambda table: table,
    "RecordBatch": lambda table: table.combine_chunks().to_batches()[0],
    "RecordBatchReader": lambda table: table.to_reader(),
    "DuckDB": duckdb.from_arrow,
    "other": Stream,
}


def as_table(result: Any) -> pa.Table:
    """The result as a table of pyarrow."""
    if isinstance(result, pd.DataFrame):
        return pa.Table.from_pandas(result, preserve_index=False)
    if isinstance(result, pa.RecordBatch):
        return pa.Table.from_batches([result])
    if isinstance(result, pa.RecordBatchReader):
        return result.read_all()
    if isinstance(result, pl.LazyFrame):
        result = result.collect()
    return pa.table(result)


def rows_of(result: Any, tick_ns: int = 1) -> list[tuple[Any, ...]]:
    """The rows of a result; times in ns. tick_ns: the unit of times that are numbers."""
    table = as_table(result)
    place = table.column_names.index("time")
    kind = table.schema.field("time").type
    if pa.types.is_timestamp(kind):
        tick_ns = UNITS_NS[kind.unit]
    times = [t * tick_ns for t in table.column("time").cast(pa.int64()).to_pylist()]
    columns = [table.column(name).to_pylist() for name in table.column_names]
    columns[place] = times
    return list(zip(*columns, strict=True))


def by_the_command(
    rows: Sequence[Row], **options: Any
) -> tuple[list[tuple[Any, ...]], dict[str, Any]]:
    """The rows that the command writes for these rows as CSV, each with its place, and the
    manifest."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for i, (t_ns, user, attribute) in enumerate(rows):
        writer.writerow((t_ns, user, attribute, i))
    out, row_filter = sift(text.getvalue().encode(), time_unit="ns", passed=("row",), **options)
    found = csv.reader(io.StringIO(out.decode(), newline=""), strict=True)
    written = [
        (int(t), *some, attribute or None, int(i)) for t, *some, attribute, i in [*found][1:]
    ]
    totals = RowTotals.of(row_filter)
    return written, build_filter_manifest(FilterConfig(), totals, [], interrupted=False)
