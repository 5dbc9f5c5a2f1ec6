# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The rows of a released log, read by their text alone."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import zstandard
from pyarrow.lib import ArrowException

from zanon_net.errors import FormatError

Cells = Mapping[str, Any]
OBSERVATIONS, BROKEN = "observations", "broken"


@dataclass(frozen=True, slots=True)
class Row:
    """Row of a log.

    form: flows, tstat, observations, or BROKEN. cells: text or value of each column; a missing
    value is None.
    """

    file: str
    number: int
    form: str
    cells: Cells

    def number_of(self, column: str) -> int | None:
        """Returns a whole number, or None."""
        value = self.cells.get(column)
        return None if value is None else int(value)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns errors in reading a file into a FormatError."""
    try:
        yield
    except (OSError, EOFError, zlib.error, zstandard.ZstdError, ArrowException, UnicodeError):
        raise FormatError(f"{path}: it cannot be read; is it whole?") from None


def text_of(path: Path) -> bytes:
    """Returns the bytes of a text file, unpacked. Raises FormatError if it is damaged."""
    with reading(path):
        data = path.read_bytes()
        if path.suffix == ".gz":
            return gzip.decompress(data)
        if path.suffix == ".zst":
            unpacker = zstandard.ZstdDecompressor()
            with unpacker.stream_reader(data, read_across_frames=True) as reader:
                return reader.read()
        return data


def rows_of(path: Path, file: str) -> Iterator[Row]:
    """Yields the rows of a file. Lines count from 1, and so do rows of Parquet.

    Raises FormatError if the file is damaged.
    """
    if path.suffix == ".parquet":
        with reading(path):
            yield from parquet_rows(path, file)
        return
    text = text_of(path).decode("ascii", "replace")
    if path.name.startswith("log_"):
        yield from tstat_rows(text, file)
    elif ".jsonl" in path.suffixes:
        form = OBSERVATIONS if path.name.startswith(OBSERVATIONS) else "flows"
        for number, line in enumerate(text.split("\n"), 1):
            if line:
                yield json_row(line, file, number, form)
    else:
        yield from csv_rows(text, file)


def json_row(line: str, file: str, number: int, form: str) -> Row:
    """Returns the row of a line of JSON, or a BROKEN row."""
    try:
        cells = json.loads(line, object_pairs_hook=without_twins)
    except (ValueError, RecursionError):
        cells = None
    return (
        Row(file, number, form, cells) if isinstance(cells, dict) else Row(file, number, BROKEN, {})
    )


def without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the members of an object. Raises ValueError if two have one name."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def csv_rows(text: str, file: str) -> Iterator[Row]:
    """Yields the rows of a CSV file with a header."""
    lines = csv.reader(io.StringIO(text))
    names = next(lines, [])
    for number, cells in enumerate(lines, 2):
        values = (cell or None for cell in cells)
        form = "flows" if len(cells) == len(names) == len(set(names)) else BROKEN
        yield Row(file, number, form, dict(zip(names, values, strict=False)))


def tstat_rows(text: str, file: str) -> Iterator[Row]:
    """Yields the rows of one of Tstat's logs."""
    header, _newline, rest = text.partition("\n")
    names = [word.rpartition("#")[2].partition(":")[0] for word in header.split(" ")]
    for number, line in enumerate(rest.split("\n"), 2):
        cells = line.split(" ")
        if line:
            values = (None if cell in ("-", "---") else cell for cell in cells)
            yield Row(file, number, "tstat", dict(zip(names, values, strict=False)))


def parquet_rows(path: Path, file: str) -> Iterator[Row]:
    """Yields the rows of a Parquet file. Times are numbers of ns."""
    number = 0
    with pq.ParquetFile(path) as source:
        for batch in source.iter_batches(batch_size=4096):
            columns = {}
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                kind = str(column.type)
                columns[name] = (
                    column.cast("int64") if kind.startswith("timestamp") else column
                ).to_pylist()
            for at in range(batch.num_rows):
                number += 1
                yield Row(
                    file, number, "flows", {name: values[at] for name, values in columns.items()}
                )
