# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Parquet of `zanon-net filter`: files as input, and standard output as a Parquet file."""

import importlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from zanon_net.config import rules
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.config.parse import UNITS_NS, reject, shown
from zanon_net.config.schema import rows_of
from zanon_net.errors import ConfigError, FormatError, ZanonError
from zanon_net.output.parquet import arrow, parquet
from zanon_net.output.stdout import standard_output
from zanon_net.rows.frames import COMMAND
from zanon_net.rows.frames import filter as filter_frame
from zanon_net.rows.report import FilterReport, RowSource
from zanon_net.system.file_errors import explained
from zanon_net.system.signals import Interruption
from zanon_net.system.streams import STDIN, Source, open_path, refuse_stdout

BATCH_ROWS = 1 << 16
BUFFER_BYTES = 1 << 22  # of CSV, which become a row group


class ParquetOutput:
    """A Parquet file on standard output, of tables or of the lines of a row filter's CSV."""

    def __init__(self, config: FilterConfig) -> None:
        self._config = config
        self._pa, self._parquet = arrow(), parquet()
        self._stream = standard_output()
        if os.isatty(self._stream.fileno()):
            reject("to", "Parquet is not for a terminal; redirect standard output into a file")
        self._writer: Any = None
        self._schema: Any = None
        self._csv = bytearray()

    def begin(self, schema: Any) -> None:
        """Fixes the columns."""
        self._schema = schema
        with explained("write", "standard output"):
            self._writer = self._parquet.ParquetWriter(self._stream, schema, compression="zstd")

    def write(self, table: Any) -> None:
        """Writes a Table or a RecordBatch as a row group."""
        with explained("write", "standard output"), _without_cells("parquet"):
            self._writer.write(table) if table.num_rows else None

    def take(self, lines: bytes) -> None:
        """Takes lines of CSV, the header first."""
        self._csv += lines
        if len(self._csv) >= BUFFER_BYTES:
            self._write_lines()

    def finish(self) -> None:
        """Writes the rest and the footer, the footer also after an error."""
        try:
            if self._csv or self._writer is None:
                self._write_lines()
        finally:
            with explained("write", "standard output"):
                if self._writer is not None:
                    self._writer.close()
                self._stream.flush()

    def _write_lines(self) -> None:
        pa, csv = self._pa, importlib.import_module("pyarrow.csv")
        config, lines = self._config, bytes(self._csv)
        self._csv.clear()
        names = self._names()
        if self._writer is None:
            kinds = [pa.timestamp("ns", "UTC"), *(pa.string() for _name in names[1:])]
            self.begin(pa.schema(list(zip(names, kinds, strict=True))))
            lines = lines[lines.find(b"\n") + 1 :]  # the header
        if not lines:
            return
        unit = config.time_unit
        kind = self._schema.field(0).type if unit == "iso" else pa.decimal128(38, 9)
        with _without_cells("parquet"):
            table = csv.read_csv(
                pa.BufferReader(lines),
                read_options=csv.ReadOptions(
                    column_names=names,
                    block_size=len(lines),
                    use_threads=False,  # a thread that starts while Python ends aborts the process
                ),
                parse_options=csv.ParseOptions(
                    delimiter="\t" if config.delimiter == "tab" else config.delimiter,
                    quote_char='"' if rules.quote(config.settings()) == "csv" else False,
                    newlines_in_values=True,
                ),
                convert_options=csv.ConvertOptions(
                    column_types=dict.fromkeys(names[1:], pa.string()) | {names[0]: kind},
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            if unit != "iso":
                table = table.set_column(0, self._schema.field(0), self._times(table.column(0)))
        self.write(table)

    def _times(self, counts: Any) -> Any:
        """Returns times that count units, exactly, with nine decimals."""
        pa, compute = self._pa, importlib.import_module("pyarrow.compute")
        unit_ns = UNITS_NS[self._config.time_unit]
        digits = len(str(unit_ns))
        unit = pa.scalar(Decimal(unit_ns), pa.decimal128(digits, 0))
        ns = compute.multiply(counts.cast(pa.decimal128(29 - digits, 9)), unit)
        return ns.cast(pa.int64(), safe=False).cast(self._schema.field(0).type)

    def _names(self) -> list[str]:
        config = self._config
        user = [] if config.no_user else [config.user]
        return [config.time, *user, *config.attributes, *config.passed]


def filter_parquet(
    sources: Sequence[Source], config: FilterConfig, interruption: Interruption
) -> FilterReport:
    """Filters Parquet files as one stream, in row groups, to standard output.

    sources: paths, or "-" for standard input that is a file.

    The output is Parquet with the types of the input, or with `to` CSV. Returns the report. Raises
    ConfigError if the settings or the columns do not fit, FormatError for a damaged file, and
    otherwise as `filter_rows`.
    """
    _refuse_others(config)
    began = time.monotonic()
    reports: list[FilterReport] = []
    settings = config.settings()
    chosen = {row.name: settings[row.name] for row in rows_of(COMMAND)}
    with ExitStack() as stack:
        input_ = _Files(sources, config, interruption, stack)
        rows = filter_frame(input_.reader(), report=reports.append, **chosen)
        _write(rows, config)
    [report] = reports
    manifest = dict(report.manifest) | {
        "configuration": {**config.to_dict(), "format": "parquet"},
        "interrupted": interruption.requested,
        "complete": report.manifest["complete"] and not interruption.requested,
        "sources": [source.to_dict() for source in input_.facts()],
    }
    return FilterReport(manifest, report.totals, time.monotonic() - began)


def _refuse_others(config: FilterConfig) -> None:
    """Refuses settings that tables do not have, so that none is ignored."""
    known, settings = {row.name for row in rows_of(COMMAND)}, config.settings()
    for row in config.rows:
        if row.name not in known | {"to"} and settings[row.name] != row.default:
            reject(row.name, "does not apply to Parquet; convert it to CSV first")
    if config.to == "jsonl":
        reject("to", "Parquet can be written as parquet or csv")


@contextmanager
def _without_cells(form: str) -> Iterator[None]:
    """Replaces an error of pyarrow, whose text could quote a row."""
    try:
        yield
    except arrow().ArrowException:
        raise FormatError(f"a row cannot be written as {form}; choose another --to") from None


def _check_types(schema: Any) -> None:
    """Refuses a column that CSV cannot hold, such as one of lists."""
    pa, csv = arrow(), importlib.import_module("pyarrow.csv")
    for field in schema:
        try:
            csv.CSVWriter(pa.BufferOutputStream(), pa.schema([field])).close()
        except pa.ArrowException:
            kept = "leave the column out, or write Parquet"
            reject("to", f"CSV cannot hold column {shown(field.name)}; {kept}")


def _write(rows: Any, config: FilterConfig) -> None:
    if config.to == "csv":
        _check_types(rows.schema)
        csv = importlib.import_module("pyarrow.csv")
        stream = standard_output()
        with explained("write", "standard output"), csv.CSVWriter(stream, rows.schema) as writer:
            for batch in rows:
                with _without_cells("csv"):
                    writer.write(batch)
                stream.flush()
        return
    output = ParquetOutput(config)
    output.begin(rows.schema)
    try:
        for batch in rows:
            output.write(batch)
    finally:
        output.finish()  # so that the rows before an error can be read


class _Files:
    """Parquet files that are read one after the other."""

    def __init__(
        self,
        sources: Sequence[Source],
        config: FilterConfig,
        interruption: Interruption,
        stack: ExitStack,
    ) -> None:
        self._pa, self._parquet = arrow(), parquet()
        self._interruption = interruption
        self._names = [Path(s).name if s != STDIN else "standard input" for s in sources]
        self._raw: list[Any] = []
        self._files = [
            self._open(source, name, stack)
            for source, name in zip(sources, self._names, strict=True)
        ]
        self._rows = [0] * len(sources)
        self._bytes = [os.fstat(raw.fileno()).st_size for raw in self._raw]
        first = self._files[0].schema_arrow
        wanted = {config.time, config.user, config.attribute, *config.passed}
        self._columns = [name for name in first.names if name in wanted]
        self._schema = self._pa.schema([first.field(name) for name in self._columns])

    def _open(self, source: Source, name: str, stack: ExitStack) -> Any:
        try:
            fd = os.dup(0) if source == STDIN else open_path(Path(source), is_file=True)
        except OSError as error:
            raise ZanonError(f"{source} cannot be opened: {error.strerror}") from error
        raw = stack.enter_context(os.fdopen(fd, "rb"))
        self._raw.append(raw)
        refuse_stdout(raw.fileno(), name)
        try:
            return self._parquet.ParquetFile(raw)
        except (self._pa.ArrowException, OSError, ValueError) as error:
            raise FormatError(f"{name}: it is no Parquet file, or damaged") from error

    def reader(self) -> Any:
        """Returns the batches as a RecordBatchReader."""
        return self._pa.RecordBatchReader.from_batches(self._schema, self._batches())

    def _batches(self) -> Iterator[Any]:
        for i, file in enumerate(self._files):
            name = self._names[i]
            try:
                for batch in self._batches_of(file):
                    self._rows[i] += batch.num_rows
                    yield self._fitted(batch, name)
            except (self._pa.ArrowException, OSError) as error:
                raise FormatError(f"{name}: the Parquet data is damaged") from error

    def _batches_of(self, file: Any) -> Iterator[Any]:
        """Yields the rows of a file, each row group alone: another may be damaged."""
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(BATCH_ROWS, [group], columns=self._columns):
                if self._interruption.requested:
                    return
                batch.validate(full=True)
                yield batch

    def _fitted(self, batch: Any, name: str) -> Any:
        """Returns a batch with the columns of the first file, in their order."""
        missing = [column for column in self._columns if column not in batch.schema.names]
        if not missing:
            batch = batch.select(self._columns)
        if missing or not batch.schema.equals(self._schema, check_metadata=False):
            first = self._names[0]
            raise ConfigError(f"{name}: its columns and the columns of {first} differ in type")
        return batch

    def facts(self) -> list[RowSource]:
        """Returns the facts of the sources."""
        each = zip(self._names, self._bytes, self._rows, strict=True)
        return [RowSource(name, None, size, rows) for name, size, rows in each]
