# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Converts tables of other libraries to pyarrow's, and columns to codes of their distinct
values."""

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

from zanon_net.config.parse import did_you_mean, is_harmless, shown
from zanon_net.errors import ConfigError, MissingExtraError

ROOT = "*"
"""Label of the root of a hierarchy."""


def arrow() -> Any:
    """Returns pyarrow, or raises a MissingExtraError that says how to install it."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        raise MissingExtraError(
            "tables need pyarrow; install it with: pip install 'zanon-net[table]'"
        ) from None


def compute() -> Any:
    """Returns the module pyarrow.compute, or raises a MissingExtraError that says how to install
    it."""
    arrow()
    return importlib.import_module("pyarrow.compute")


def as_table(
    source: Any, columns: Iterable[str], name: str = "the table", *, encode: bool = True
) -> Any:
    """Returns columns of a table of any library as a pyarrow.Table, texts with one dictionary a
    column.

    source: pyarrow's Table or RecordBatch; an object that exports Arrow data by __arrow_c_stream__
        or __arrow_c_array__, such as DataFrames of pandas and polars and relations of DuckDB; or a
        mapping from names to lists.
    name: the name of the table in errors.
    encode: False leaves texts without a dictionary as they are, which takes less time.

    Raises ConfigError for another object, for a column that is missing or is there twice, and for a
    column of lists or structs.
    """
    pa, wanted = arrow(), list(columns)
    source = _narrowed(source, wanted)
    try:
        if not isinstance(source, pa.Table):
            is_stream = hasattr(source, "__arrow_c_stream__") or isinstance(source, dict)
            if not is_stream and hasattr(source, "__arrow_c_array__"):
                source = pa.Table.from_batches([pa.record_batch(source)])
            else:
                source = pa.table(source)
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        kind = type(source).__name__
        names = [str(label) for label in getattr(source, "columns", ())]
        check_names(names, [column for column in wanted if column in names], name)
        column = _unreadable(source, wanted)
        if column is not None:
            problem = "has values of several kinds, or of a kind that Arrow cannot read"
            raise ConfigError(f"{name}: column {shown(column)} {problem}") from None
        raise ConfigError(f"{name}: a {kind} is not a table that Arrow can read") from None
    return select(source, wanted, name, encode=encode)


def _narrowed(source: Any, wanted: Sequence[str]) -> Any:
    """Returns a DataFrame or a mapping without the columns that are not wanted.

    Arrow converts all columns of an object, and one column that it cannot convert ends that.
    """
    if isinstance(source, dict):
        return {name: values for name, values in source.items() if name in wanted}
    library = type(source).__module__.partition(".")[0]
    if library == "polars" and hasattr(source, "select"):
        return source.select([name for name in source.columns if name in wanted])
    if library == "pandas" and hasattr(source, "loc"):
        if not set(wanted) & set(map(str, source.index.names)):
            source = source.reset_index(drop=True)
        return source.loc[:, [str(name) in wanted for name in source.columns]]
    return source


def _unreadable(source: Any, wanted: Sequence[str]) -> str | None:
    """Returns the first wanted column of a DataFrame or a mapping that Arrow cannot convert."""
    pa = arrow()
    for name in wanted:
        part = _narrowed(source, [name])
        if part is source:
            return None
        try:
            pa.table(part)
        except (TypeError, ValueError, OverflowError, pa.ArrowException):
            return name
    return None


def select(table: Any, columns: Iterable[str], name: str, *, encode: bool = True) -> Any:
    """Returns the columns of a pyarrow.Table, as `as_table` does. Raises ConfigError."""
    pa, wanted = arrow(), list(columns)
    check_names(table.column_names, wanted, name)
    plain = {column: _plain(table.column(column), column, name) for column in wanted}
    for column, values in plain.items():
        if _is_words(values.type) or (_is_text(values.type) and encode):
            plain[column] = _as_dictionary(values)
        elif pa.types.is_string_view(values.type):
            plain[column] = values.cast(pa.string())
    return pa.table(plain)


def check_names(present: Sequence[str], wanted: Iterable[str], name: str) -> None:
    """Raises ConfigError unless each wanted column is there, once."""
    for column in wanted:
        count = present.count(column)
        if count == 0:
            close = did_you_mean(column, filter(is_harmless, present))
            if any("," in other and other.startswith(column) for other in present):
                hint = "on the command line, a name with a comma is in double quotes"
                close = f"{close} ({hint})" if close else f"; {hint}"
            raise ConfigError(f"{name}: there is no column {shown(column)}{close}")
        if count > 1:
            raise ConfigError(f"{name}: there are {count} columns {column!r}")


def _plain(column: Any, label: str, name: str) -> Any:
    """Converts types that few functions of Arrow take; texts of the column get one dictionary."""
    pa, types = arrow(), arrow().types
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        column = pa.chunked_array([piece.storage for piece in column.chunks], kind.storage_type)
        kind = column.type
    if types.is_dictionary(kind) and not _is_text(kind.value_type):
        if types.is_nested(kind.value_type):
            raise ConfigError(f"{name}: column {label!r} holds lists or structs")
        column = column.cast(kind.value_type)
        kind = column.type
    if types.is_nested(kind):
        raise ConfigError(f"{name}: column {label!r} holds lists or structs")
    if types.is_null(kind):
        column = column.cast(pa.string())
    elif types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        raise ConfigError(f"{name}: column {label!r} holds bytes, not texts")
    try:
        texts(encoded(column.slice(0, 1))[1])
    except pa.ArrowException:
        raise ConfigError(f"{name}: column {label!r} holds values that are no texts") from None
    return column


def _is_text(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_words(kind: Any) -> bool:
    return bool(arrow().types.is_dictionary(kind))


def _as_dictionary(column: Any) -> Any:
    """Returns a column of texts as dictionary<int32, string>, with one dictionary of distinct
    texts."""
    pa = arrow()
    wanted = pa.dictionary(pa.int32(), pa.string())
    if column.type == wanted:
        column = column.unify_dictionaries()
        words = column.chunk(0).dictionary if column.num_chunks else None
        if words is None or (not words.null_count and len(words.unique()) == len(words)):
            return column
    if _is_words(column.type):
        column = pa.chunked_array(
            [piece.dictionary.cast(pa.string()).take(piece.indices) for piece in column.chunks],
            pa.string(),
        )
    return column.cast(pa.string()).dictionary_encode().unify_dictionaries()


def are_texts(values: Any) -> bool:
    """Returns true for an Arrow array of texts."""
    return _is_text(values.type)


def encoded(column: Any) -> tuple[Any, Any]:
    """Returns (codes, values) of a column of `as_table`, as Arrow arrays.

    The codes are int32 indices into the distinct values, with nulls for missing values.
    """
    pa = arrow()
    if not _is_words(column.type):
        column = column.dictionary_encode().unify_dictionaries()
    if not column.num_chunks:
        return pa.chunked_array([], pa.int32()), pa.array([], column.type.value_type)
    return (
        pa.chunked_array([piece.indices for piece in column.chunks]),
        column.chunk(0).dictionary,
    )


def texts(column: Any) -> Any:
    """Returns an Arrow array as texts, in the form of the text formats; nulls stay."""
    pa = arrow()
    if _is_words(column.type):
        column = column.cast(column.type.value_type)
    if column.type != pa.string():
        return column.cast(pa.string())
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:  # its text, or Python's own error about it, could quote a value
        raise ConfigError("a text in the table is not UTF-8") from None
    return column


def empty_as_missing(table: Any) -> Any:
    """Returns the table with each empty text as a missing value, as in CSV."""
    pa = arrow()
    for i, name in enumerate(table.column_names):
        column = table.column(i)
        if not _is_words(column.type) or not column.num_chunks:
            continue
        words = column.chunk(0).dictionary
        empty = words.index("").as_py()
        if empty >= 0:
            pieces = [_without(piece, empty) for piece in column.chunks]
            table = table.set_column(i, name, pa.chunked_array(pieces, column.type))
    return table


def _without(piece: Any, code: int) -> Any:
    """Returns a dictionary array with nulls instead of one of its codes."""
    pa, pc = arrow(), compute()
    indices = pc.if_else(pc.equal(piece.indices, code), None, piece.indices)
    return pa.DictionaryArray.from_arrays(indices.cast(pa.int32()), piece.dictionary)
