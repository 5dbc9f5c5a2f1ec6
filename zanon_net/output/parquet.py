# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Parquet: Arrow types of a flow's fields, and one file while it is written. Needs pyarrow."""

import contextlib
import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from zanon_net._core import FULL_ROWS, RowBatch, TableRows
from zanon_net.errors import ConfigError
from zanon_net.output.files import LogFile
from zanon_net.output.schema import Field, described
from zanon_net.system.file_errors import explained

CODECS = {"none": "snappy", "gzip": "gzip", "zstd": "zstd"}  # of Parquet by --compress
LEVELS = {"gzip": 4, "zstd": 1}
ROW_GROUP_ROWS = FULL_ROWS
BATCH_ROWS = 1 << 16  # that pyarrow encodes at a time


def arrow() -> Any:
    """pyarrow, or a ConfigError that says how to get it."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        raise ConfigError(
            "Parquet and Arrow need pyarrow; install it with: pip install 'zanon-net[parquet]'"
        ) from None


def parquet() -> Any:
    """The module pyarrow.parquet, or a ConfigError that says how to get it."""
    arrow()
    importlib.import_module("pyarrow.compute")  # pyarrow needs it to unify dictionaries
    return importlib.import_module("pyarrow.parquet")


class Schema:
    """Arrow types of an engine's fields, and tables out of what it drains.

    fields: as `_core.PacketEngine.fields` returns them. about: texts for the metadata of files.
    """

    def __init__(self, fields: Sequence[Field], about: Mapping[str, object]) -> None:
        self._pa = pa = arrow()
        self._parquet = parquet()
        types = {
            "bool": pa.bool_(),
            "ms": pa.float64(),
            "s": pa.float64(),
            "time": pa.timestamp("ns", tz="UTC"),
            "text": pa.dictionary(pa.int32(), pa.string()),
        }
        self._fields = described(fields)
        listed = []
        for name, kind, nullable, about_field in self._fields:
            arrow_type = types.get(kind) or getattr(pa, kind)()
            listed.append(pa.field(name, arrow_type, nullable, metadata=about_field))
        metadata = {name: json.dumps(value) for name, value in about.items()}
        self._schema = pa.schema(listed, metadata=metadata)
        self._names = {
            kind: [name for name, of, _nullable in fields if of == kind]
            for kind in ("text", "time", "ms", "s")
        }

    def table(self, table: TableRows, start: int, end: int) -> Any:
        """Rows start to end of what an engine drained, as an Arrow table over the same memory."""
        pa = self._pa
        batch = pa.record_batch(RowBatch(self._fields, table, start, end))
        columns = batch.columns
        if end - start != len(table):  # these rows need not use every word
            columns = [
                column.dictionary_decode().dictionary_encode()
                if pa.types.is_dictionary(column.type)
                else column
                for column in columns
            ]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def joined(self, tables: Sequence[Any]) -> Any:
        """The rows of Arrow tables as one of its own, with its words in the order of its rows."""
        pa = self._pa
        columns = []
        for field, column in zip(self._schema, pa.concat_tables(tables).columns, strict=True):
            if pa.types.is_dictionary(field.type):
                words = [piece.dictionary_decode() for piece in column.chunks]
                column = pa.chunked_array(words).dictionary_encode()
            columns.append(column.combine_chunks())
        return pa.Table.from_arrays(columns, schema=self._schema)

    def writer(self, file: BinaryIO, compress: str = "none") -> Any:
        """A ParquetWriter into the file.

        compress: a value of the option; "none" takes least time. Times are encoded by their
        differences, which leaves little to compress; durations hardly get smaller at all.
        """
        codec = CODECS[compress]
        alone = self._names["time"]
        if compress == "none":
            alone = [*alone, *self._names["ms"], *self._names["s"]]
        return self._parquet.ParquetWriter(
            file,
            self._schema,
            compression={
                field.name: "none" if field.name in alone else codec for field in self._schema
            },
            compression_level={
                field.name: LEVELS[codec]
                for field in self._schema
                if codec in LEVELS and field.name not in alone
            },
            use_dictionary=self._names["text"],
            column_encoding=dict.fromkeys(self._names["time"], "DELTA_BINARY_PACKED"),
            write_statistics=["t_start_ns", "t_end_ns"],
            write_batch_size=BATCH_ROWS,
        )


class ParquetFile(LogFile):
    """Rows; each write makes a row group, or several of ROW_GROUP_ROWS.

    gathers: rows are gathered, so that every row group but the last has ROW_GROUP_ROWS: where
    a table is drained before it is full, the rows of a write differ with the number of workers.
    """

    def __init__(self, path: Path, schema: Schema, compress: str, *, gathers: bool) -> None:
        super().__init__(path)
        self._schema = schema
        self._gathers = gathers
        self._gathered: list[Any] = []
        with explained("write", path):
            self._writer = schema.writer(self._file, compress)

    def write(self, table: TableRows, start: int, end: int) -> None:
        """Appends rows start to end of the table. Raises OutputError."""
        rows = self._schema.table(table, start, end)
        with explained("write", self.path):
            if self._gathers:
                self._gather(rows)
            else:
                self._writer.write_table(rows, ROW_GROUP_ROWS)
        self.records += end - start

    def _gather(self, rows: Any) -> None:
        while (room := ROW_GROUP_ROWS - sum(map(len, self._gathered))) <= len(rows):
            self._gathered.append(rows[:room])
            self._write_gathered()
            rows = rows[room:]
        if len(rows):
            self._gathered.append(rows)

    def _write_gathered(self) -> None:
        group, self._gathered = self._schema.joined(self._gathered), []
        self._writer.write_table(group)

    def _end(self) -> None:
        if self._gathered:
            self._write_gathered()
        self._writer.close()

    def remove(self) -> None:
        """See LogFile."""
        with contextlib.suppress(Exception):  # the writer cannot write its footer any more
            self._writer.close()
        super().remove()
