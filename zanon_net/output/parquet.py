# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Parquet: Arrow types of a flow's fields, and a file while it is written. Needs pyarrow."""

import contextlib
import errno
import importlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

from zanon_net._core import FULL_ROWS, RowBatch, TableRows
from zanon_net.errors import ConfigError
from zanon_net.output.files import LogFile
from zanon_net.output.room import Room
from zanon_net.output.schema import Field, described
from zanon_net.system.file_errors import explained

CODECS = {"none": "snappy", "gzip": "gzip", "zstd": "zstd"}  # of Parquet by --compress
LEVELS = {"gzip": 4, "zstd": 1}
ROW_GROUP_ROWS = FULL_ROWS
BATCH_ROWS = 1 << 16  # rows that pyarrow encodes at a time


def arrow() -> Any:
    """Returns pyarrow, or raises a ConfigError that says how to install it."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        raise ConfigError(
            "Parquet and Arrow need pyarrow; install it with: pip install 'zanon-net[parquet]'"
        ) from None


def parquet() -> Any:
    """Returns the module pyarrow.parquet, or raises a ConfigError that says how to install it."""
    arrow()
    importlib.import_module("pyarrow.compute")  # pyarrow needs it to unify dictionaries
    return importlib.import_module("pyarrow.parquet")


class Schema:
    """Arrow types of an engine's fields, and tables of the rows that the engine drains.

    fields: as `_core.PacketEngine.fields` returns them. about: texts for the metadata of files.
    every: the fields of the table, in which `fields` are; the others are null. None: `fields`.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        about: Mapping[str, object],
        every: Sequence[Field] | None = None,
    ) -> None:
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
        for name, kind, nullable, about_field in described(every or fields):
            arrow_type = types.get(kind) or getattr(pa, kind)()
            listed.append(pa.field(name, arrow_type, nullable, metadata=about_field))
        metadata = {name: json.dumps(value) for name, value in about.items()}
        self._schema = pa.schema(listed, metadata=metadata)
        self._names = {
            kind: [name for name, of, _nullable in every or fields if of == kind]
            for kind in ("text", "time", "ms", "s")
        }

    def table(self, table: TableRows, start: int, end: int) -> Any:
        """Returns rows start to end of a drained table, as an Arrow table over the same memory."""
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
        there = dict(zip(batch.schema.names, columns, strict=True))
        columns = [
            there[field.name] if field.name in there else pa.nulls(len(batch), field.type)
            for field in self._schema
        ]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def joined(self, tables: Sequence[Any]) -> Any:
        """Returns the rows of Arrow tables as one table with its own words, in the order of its
        rows."""
        pa = self._pa
        columns = []
        for field, column in zip(self._schema, pa.concat_tables(tables).columns, strict=True):
            if pa.types.is_dictionary(field.type):
                words = [piece.dictionary_decode() for piece in column.chunks]
                column = pa.chunked_array(words).dictionary_encode()
            columns.append(column.combine_chunks())
        return pa.Table.from_arrays(columns, schema=self._schema)

    def writer(self, file: io.RawIOBase, compress: str = "none") -> Any:
        """Returns a ParquetWriter into the file.

        compress: a value of the option; "none" takes least time. Times are encoded by their
        differences, which leaves little to compress. Durations hardly get smaller at all.
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


class _Target(io.RawIOBase):
    """File that a ParquetWriter writes to.

    An error of the file does not reach the writer, because the writer could then not end its file.
    `check` raises the error after each write.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file: BinaryIO | None = file
        self._error: OSError | None = None
        self._at = file.tell()
        self.rest = bytearray()  # bytes written since `end`

    def writable(self) -> bool:
        """See io.RawIOBase."""
        return True

    def tell(self) -> int:
        """Returns the offset of the next byte, as if there were space for all bytes."""
        return self._at

    def write(self, data: Any, /) -> int:
        """Writes all of the data, or notes the error."""
        view = memoryview(data).cast("B")
        self._at += len(view)
        try:
            if self._file is None:
                self.rest += view
            elif self._error is None:
                self._file.write(view)
        except OSError as error:
            self._error = error
        return len(view)

    def end(self) -> None:
        """Keeps the bytes that are written from now on, and does not write them to the file."""
        self._file = None

    def check(self) -> None:
        """Raises the error of the file, if there is an error."""
        if self._error is not None:
            raise self._error


class _CutFile(io.RawIOBase):
    """File of which only the first bytes exist, with its end at its usual place."""

    def __init__(self, file: FileIO, there: int, end: bytes, size: int) -> None:
        self._file, self._there, self._end, self._size = file, there, end, size
        self._at = 0

    def readable(self) -> bool:
        """See io.RawIOBase."""
        return True

    def seekable(self) -> bool:
        """See io.RawIOBase."""
        return True

    def tell(self) -> int:
        """See io.RawIOBase."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """See io.RawIOBase."""
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """Returns the existing bytes, zeros for missing bytes, and the end."""
        stop = self._size if size < 0 else min(self._at + size, self._size)
        data = os.pread(self._file.fileno(), max(0, min(stop, self._there) - self._at), self._at)
        end_at = self._size - len(self._end)
        data += bytes(max(0, min(stop, end_at) - self._at - len(data)))
        data += self._end[max(0, self._at + len(data) - end_at) : max(0, stop - end_at)]
        self._at += len(data)
        return data


def _group_end(group: Any) -> int:
    """Returns the offset after a row group."""
    end = 0
    for column in (group.column(i) for i in range(group.num_columns)):
        starts = (column.dictionary_page_offset, column.data_page_offset)
        end = max(end, min(start for start in starts if start) + column.total_compressed_size)
    return end


class RowGroups:
    """Gathers Arrow tables into row groups, so that all but the last have ROW_GROUP_ROWS rows.

    A table is drained before it is full in runs with parts. Without this, the rows of a write would
    differ with the number of workers.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._gathered: list[Any] = []

    def add(self, rows: Any) -> Iterator[Any]:
        """Takes rows; yields each group that is full."""
        while (room := ROW_GROUP_ROWS - sum(map(len, self._gathered))) <= len(rows):
            self._gathered.append(rows[:room])
            yield from self.rest()
            rows = rows[room:]
        if len(rows):
            self._gathered.append(rows)

    def rest(self) -> Iterator[Any]:
        """Yields the last group, unless it is empty."""
        if self._gathered:
            gathered, self._gathered = self._gathered, []
            yield self._schema.joined(gathered)


class ParquetFile(LogFile):
    """Rows; each write makes a row group, or several of ROW_GROUP_ROWS.

    gathers: if true, rows are gathered; see RowGroups.
    """

    def __init__(
        self,
        path: Path,
        schema: Schema,
        compress: str,
        *,
        gathers: bool,
        room: Room | None = None,
    ) -> None:
        super().__init__(path, room)
        self._schema = schema
        self._groups = RowGroups(schema) if gathers else None
        with explained("write", path):
            self._target = _Target(self._file)
            self._compress = compress
            self._writer = schema.writer(self._target, compress)

    def write(self, table: TableRows, start: int, end: int) -> None:
        """Appends rows start to end of the table. Raises OutputError."""
        rows = self._schema.table(table, start, end)
        if self._groups is None:
            self.write_group(rows)
            return
        for group in self._groups.add(rows):
            self.write_group(group)

    def write_group(self, rows: Any) -> None:
        """Appends rows of an Arrow table as row groups. Raises OutputError."""
        with explained("write", self.path):
            self._writer.write_table(rows, ROW_GROUP_ROWS)
            self._target.check()
        self.records += len(rows)

    def _end(self) -> None:
        if self._groups is not None:
            for group in self._groups.rest():
                self.write_group(group)
        self._target.check()
        self._target.end()  # so that `cut` has the end if there is no space for it
        self._writer.close()
        self._file.write(self._target.rest)

    def cut(self, spare: int) -> int | None:
        """See LogFile. Whole row groups are kept; `spare` is ignored, because row groups are
        large."""
        self._target.end()
        self._writer.close()
        self._shut()
        with self.partial.open("r+b", buffering=0) as file:
            there, size = os.fstat(file.fileno()).st_size, self._target.tell()
            source = _CutFile(file, there, bytes(self._target.rest), size)
            groups = parquet().ParquetFile(source)
            ends = [_group_end(groups.metadata.row_group(i)) for i in range(groups.num_row_groups)]
            whole = sum(end <= there for end in ends)
            while whole:
                with contextlib.suppress(OSError):
                    return self._end_behind(file, groups, ends[:whole])
                whole -= 1  # its place is space for the end of the file
        return None

    def _end_behind(self, file: FileIO, groups: Any, ends: Sequence[int]) -> int:
        """Writes the row groups again, byte for byte in their places, and the file's end.

        Raises OSError if there is no space, or if a row group would change its place.
        """
        file.seek(0)
        target = _Target(file)
        writer = self._schema.writer(target, self._compress)
        self.records = 0
        for number, end in enumerate(ends):
            rows = groups.read_row_group(number)
            writer.write_table(rows, ROW_GROUP_ROWS)
            self.records += len(rows)
            if target.tell() != end:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        writer.close()
        target.check()
        file.truncate(target.tell())
        os.fsync(file.fileno())
        return target.tell()

    def remove(self) -> None:
        """See LogFile."""
        self._shut()
        with contextlib.suppress(Exception):  # the writer cannot write its footer
            self._writer.close()
        super().remove()
