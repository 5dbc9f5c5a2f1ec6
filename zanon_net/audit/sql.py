# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Pieces of SQL: texts, names of columns, and files as sources of rows."""

from collections.abc import Mapping
from glob import escape
from pathlib import Path

LINE_MAX = 1 << 20
NEVER = "\x01"
"""Character that is in no line of a log: the filter and the engine write no control characters."""


def quoted(text: str | Path) -> str:
    """Returns a text as a literal."""
    return "'" + str(text).replace("'", "''") + "'"


def column(name: str) -> str:
    """Returns the name of a column."""
    return '"' + name.replace('"', '""') + '"'


def csv_source(path: Path, types: Mapping[str, str], options: str) -> str:
    """Returns the rows of a file of text. types: of each column, in the order of the file."""
    return (
        f"read_csv({_literal(path)}, columns = {_struct(types)}, auto_detect = false,"
        f" strict_mode = true, max_line_size = {LINE_MAX}, {options})"
    )


def json_source(path: Path, types: Mapping[str, str]) -> str:
    """Returns the rows of JSON Lines. types: of each member that is read."""
    return (
        f"read_json({_literal(path)}, columns = {_struct(types)}, format = 'newline_delimited',"
        f" auto_detect = false, maximum_object_size = {LINE_MAX})"
    )


def objects_source(path: Path) -> str:
    """Returns the rows of JSON Lines as objects, in the column `json`."""
    return (
        f"read_ndjson_objects({_literal(path)}, maximum_object_size = {LINE_MAX},"
        " ignore_errors = false)"
    )


def parquet_source(path: Path) -> str:
    """Returns the rows of a file of Parquet."""
    return f"read_parquet({_literal(path)}, hive_partitioning = false)"


def lines_source(path: Path) -> str:
    """Returns the lines of a file of text, in the column `line`."""
    options = f"header = false, delim = '{NEVER}', quote = '', escape = ''"
    return csv_source(path, {"line": "VARCHAR"}, options)


def _literal(path: Path) -> str:
    """Returns a path as a literal that DuckDB does not take for a pattern."""
    return quoted(escape(str(path)))


def _struct(types: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in types.items()) + "}"
