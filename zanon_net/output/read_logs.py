# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Reads logs into tables: logs of Tstat and of zanon_net, and zanon_net's Parquet. Needs pyarrow
(zanon-net[parquet])."""

import importlib
import itertools
import os
import re
import zoneinfo
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zanon_net.errors import ConfigError, FormatError
from zanon_net.output.files import PARTIAL
from zanon_net.output.parquet import arrow

LOGS = ("tcp_complete", "tcp_nocomplete", "udp_complete")
KINDS = ("pandas", "polars", "arrow")
MISSING = ["-", "---"]

_TEXT = re.compile(
    r"[cs]_ip|c_tls_SNI|s_tls_SCN|fqdn|dns_rslv|http_hostname|http_res|[cs]_TLSvers"
    r"|quic_(SNI|UA|[cs]_vers)"
)
_TIME = re.compile(r"first|last|[cs]_first_abs|re[qs]_tm")
_DURATION = re.compile(
    r"durat|[cs]_(durat|first|last|first_ack|last_handshakeT|appdataT|rtt_(avg|min|max|std))"
)


def read_log(
    path: str | os.PathLike[str], log: str = "tcp_complete", *, into: str = "pandas"
) -> Any:
    """Reads a log as a table: flows in the order of their lines.

    path: a log file, or a folder. In a folder, every file of that log in it and below is read, in
        the order of their folders' times and numbers. Logs of Tstat and of zanon_net are read
        alike, also compressed; a .parquet file as it is.
    log: the log of a folder: tcp_complete, tcp_nocomplete or udp_complete.
    into: "pandas" for a DataFrame, "polars" for one of polars, "arrow" for a pyarrow.Table.

    Columns have Tstat's names. Times of day are timestamps in UTC with ns, durations in ms (c_durat
    and s_durat of UDP: s), "-" is null. Bytes of a text that are not UTF-8 become U+FFFD. Raises
    ConfigError for a wrong argument or a missing library, FormatError for a file that is not a log.
    """
    _check_one_of("into", into, KINDS)
    _check_one_of("log", log, LOGS)
    return read_files(_files(Path(path), log), into)


def read_files(files: Sequence[Path], into: str) -> Any:
    """Reads log files of one kind as one table; see read_log."""
    _check_one_of("into", into, KINDS)
    tables = [_read_file(file) for file in files]
    return converted(arrow().concat_tables(tables, promote_options="default"), into)


def _check_one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name}: must be {', '.join(allowed)}, not {value!r}")


def converted(table: Any, into: str) -> Any:
    """Converts an object that exports Arrow data into another library's table (see KINDS).

    Raises ConfigError if that library is not installed.
    """
    try:
        library = importlib.import_module("pyarrow" if into == "arrow" else into)
    except ImportError:
        raise ConfigError(
            f"into: {into} is not installed; install it with: pip install {into}"
        ) from None
    if into == "polars":
        return library.DataFrame(table)
    rows = arrow().table(table)
    return rows if into == "arrow" else rows.to_pandas()


def _files(path: Path, log: str) -> list[Path]:
    if not path.is_dir():
        if not path.exists():
            raise ConfigError(f"{path}: there is no such file or folder")
        return [path]
    names = re.compile(rf"log_{log}(\.gz|\.zst)?")
    logs = (
        file
        for file in path.rglob("log_*")
        if names.fullmatch(file.name) and not file.parent.name.endswith(PARTIAL)
    )
    files = sorted(logs, key=_as_written)
    if not files:
        raise ConfigError(f"{path}: there is no log_{log} in it")
    return files


def _as_written(path: Path) -> tuple[Path, str, int, str]:
    """Returns the sort key of a part's file: of one stamp, the file without a number is the
    first."""
    part = re.fullmatch(r"(.+)-([0-9]+)\.out", path.parent.name)
    if part is None:
        return path.parent.parent, path.parent.name.removesuffix(".out"), 1, path.name
    return path.parent.parent, part[1], int(part[2]), path.name


def _read_file(path: Path) -> Any:
    pa = arrow()
    if path.suffix == ".parquet":
        try:
            table = importlib.import_module("pyarrow.parquet").read_table(path)
            table.validate(full=True)  # else an error of pandas could quote a damaged value
            _check_schema(table.schema)
            return table
        except (pa.ArrowException, OSError, ValueError) as error:  # damage raises any of them
            if isinstance(error, OSError) and error.errno is not None:
                raise FormatError(f"{path}: cannot be read: {error.strerror}") from None
            raise FormatError(f"{path}: it is no Parquet file, or damaged") from None
    try:
        with pa.input_stream(path, compression="detect") as stream:
            data = stream.read()
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error}") from None
    if not data.isascii():  # Tstat writes names unchanged; pandas and polars take UTF-8 only
        data = data.decode("utf-8", "replace").encode()
    header, _newline, lines = data.partition(b"\n")
    names = _names(path, header)
    # Tstat's header of log_tcp_nocomplete names columns that its lines do not have.
    width = lines.partition(b"\n")[0].count(b" ") + 1 if lines else len(names)
    if width > len(names):
        raise FormatError(f"{path}: line 2 has {width} columns, its header {len(names)}")
    if len(set(names[:width])) != width:
        raise FormatError(f"{path}: its header names a column twice")
    return _typed(path, _parse(path, lines, names[:width]))


def _check_schema(schema: Any) -> None:
    """Raises ValueError for texts and time zones with which pandas or polars would fail or
    panic."""
    fields = list(schema)
    _check_texts(schema.metadata)
    while fields:
        field = fields.pop()
        field.name.encode()
        _check_texts(field.metadata)
        kind = getattr(field.type, "storage_type", field.type)  # for extension types
        if not kind.num_fields:
            kind = getattr(kind, "value_type", kind)  # of a dictionary
        zone = getattr(kind, "tz", None)
        if zone not in (None, "UTC") and zone not in zoneinfo.available_timezones():
            raise ValueError("there is no such time zone")
        fields += [kind.field(i) for i in range(kind.num_fields)]


def _check_texts(metadata: dict[bytes, bytes] | None) -> None:
    for text in itertools.chain(*(metadata or {}).items()):
        text.decode()


def _names(path: Path, header: bytes) -> list[str]:
    words = header.decode("ascii", "replace").split(" ")
    names = [word.rpartition("#")[2].partition(":")[0] for word in words]
    if not header.startswith(b"#") or names[0] != "c_ip":
        raise FormatError(f"{path}: it does not start with the header of a Tstat log")
    return names


def _parse(path: Path, lines: bytes, names: list[str]) -> Any:
    pa, csv = arrow(), importlib.import_module("pyarrow.csv")
    kinds = {name: _read_as(name) for name in names}
    if not lines:
        return pa.table({name: pa.array([], kinds[name]) for name in names})
    try:
        return csv.read_csv(
            pa.BufferReader(lines),
            read_options=csv.ReadOptions(column_names=names),
            parse_options=csv.ParseOptions(delimiter=" ", quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types=kinds,
                null_values=MISSING,
                strings_can_be_null=True,
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise FormatError(f"{path}: {_what_is_wrong(str(error), names)}") from None


def _what_is_wrong(message: str, names: list[str]) -> str:
    """Returns pyarrow's complaint without the log's content, which may be an address or a name."""
    column = re.match(r"In CSV column #(\d+)", message)
    if column:
        return f"column {names[int(column[1])]} holds something else than a number"
    width = re.match(r"CSV parse error: (?:Row #\d+: )?Expected (\d+) columns, got (\d+)", message)
    if width:
        return f"a line has {width[2]} columns, its header {width[1]}"
    return "it cannot be read as a Tstat log"


def _read_as(name: str) -> Any:
    """Returns the type of a column while it is read: times stay text, so that no digit is lost."""
    pa = arrow()
    if _TEXT.fullmatch(name) or _TIME.fullmatch(name):
        return pa.string()
    return pa.float64() if _DURATION.fullmatch(name) else pa.int64()


def _typed(path: Path, table: Any) -> Any:
    """Converts texts in ms into times; 0 becomes null."""
    pa, compute = arrow(), importlib.import_module("pyarrow.compute")
    for i, name in enumerate(table.column_names):
        if not _TIME.fullmatch(name):
            continue
        try:
            ns = _nanoseconds(table.column(i))
        except pa.ArrowInvalid:
            raise FormatError(f"{path}: column {name} holds something else than a time") from None
        times = compute.cast(ns, pa.timestamp("ns", tz="UTC"))
        never = compute.equal(ns, 0)
        table = table.set_column(i, name, compute.if_else(never, None, times))
    return table


def _nanoseconds(column: Any) -> Any:
    """Converts texts of milliseconds with up to six decimals into ns. Raises ArrowInvalid."""
    pa, compute = arrow(), importlib.import_module("pyarrow.compute")
    ms = compute.cast(column, pa.decimal128(22, 6))
    ns = compute.multiply(ms, pa.scalar(10**6, pa.decimal128(7, 0)))
    return compute.cast(ns, pa.int64())
