# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Reads and writes files of tables: CSV, JSON Lines and Parquet. Needs pyarrow (zanon-net[table]).

Text is read as strictly as `zanon-net filter` reads it (csrc/rows), so that no two readers can
disagree on the end of a value. A row that cannot be read is an error here, because a table without
it is another table. No message contains a value of the data.
"""

import importlib
import io
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zanon_net.config import rules
from zanon_net.errors import ConfigError, FormatError, ZanonError
from zanon_net.microdata.arrow import arrow, check_names, compute, encoded, select, texts
from zanon_net.system.decompress import unpacked
from zanon_net.system.streams import STDIN, refuse_stdout

FORMATS = ("csv", "jsonl", "parquet")
SUFFIXES = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"} | {
    ".parquet": "parquet"
}
PIECE_BYTES = 1 << 24  # of a text that are examined at a time
BOM = b"\xef\xbb\xbf"

COLUMNS = "not as many columns as the header"
QUOTES = "a quote or a line break in the wrong place"
UTF8 = "not UTF-8"
CONTROL = "a control character"
JSON = "not a JSON object"
TWICE = "a column twice"
NEEDS_QUOTES = "which CSV holds in quotes only; write another format, or choose --quote csv"

_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")
_DELIMITERS = set(",;|:\t ")
_BLANKS = re.compile(rb"[ \t\r\n]*+(.?)", re.DOTALL)
_LINE_END = re.compile("[\t\n\r\u2028\u2029]")
_CONTROL_VALUE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")

Source = str | os.PathLike[str]


# ---- reading ------------------------------------------------------------------------------------


def read_table(
    source: Source,
    columns: Iterable[str],
    *,
    form: str = "auto",
    delimiter: str = ",",
    quote: str | None = None,
) -> Any:
    """Reads columns of a file as a pyarrow.Table, in the order of `columns`.

    source: a path, or "-" for standard input. Compressed data is unpacked.
    form: "csv", "jsonl", "parquet" or "auto": Parquet by its first bytes, JSON Lines if the first
        byte is "{".
    delimiter: of CSV, a character or the word tab.
    quote: of CSV, "csv" or "none"; None: none if the delimiter is a tab, else csv.

    CSV has a header line; its values are texts, and an empty text is missing. Values of JSON Lines
    are texts, whole numbers, numbers or truth values, one kind a column; null, or no member, is a
    missing value. Texts get one dictionary a column.

    Raises ConfigError for a missing column, FormatError with the line for a row that cannot be
    read, ZanonError for a file that cannot.
    """
    wanted, name = list(columns), name_of(source)
    data = _bytes_of(source)
    if form == "auto":
        form = _form_of(data, name)
    if form == "parquet":
        return _read_parquet(data, wanted, name)
    data = data[len(BOM) :] if data[: len(BOM)] == BOM else data
    if form == "jsonl":
        return _read_json_lines(data, wanted, name)
    return _read_csv(data, wanted, name, _Syntax.of(delimiter, quote))


def name_of(source: Source) -> str:
    """Returns the name of a source in messages."""
    return "standard input" if source == STDIN else Path(source).name


def _bytes_of(source: Source) -> Any:
    """Returns all bytes of a file, unpacked."""
    name = name_of(source)
    try:
        if source == STDIN:
            if sys.stdin is None:
                raise ZanonError("standard input is closed")
            if os.isatty(0):
                raise ConfigError("standard input is a terminal; give a file")
            return unpacked(sys.stdin.buffer.read(), name)
        path = Path(source)
        if path.is_dir():
            raise ZanonError(f"{path} is a folder; name a file")
        refuse_stdout(path, name)
        return unpacked(path.read_bytes(), name)
    except OSError as error:
        raise ZanonError(f"{source} cannot be read: {error.strerror}") from None


def _form_of(data: bytes, name: str) -> str:
    """Returns the format of data by its first bytes. Raises FormatError for a format that is not
    read."""
    if data[:4] == b"PAR1":
        return "parquet"
    if data[:4] == b"PK\x03\x04":
        raise FormatError(f"{name}: it is a ZIP archive or a workbook; save the table as CSV")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in (data[0:1], data[1:2]):
        raise FormatError(f"{name}: its text is UTF-16 or UTF-32; save it as UTF-8")
    first = _BLANKS.match(data[:PIECE_BYTES].removeprefix(BOM))
    start = first[1] if first is not None else b""
    if start == b"[":
        raise FormatError(
            f"{name}: a JSON array is not JSON Lines, which have an object a line;"
            " jq -c '.[]' makes them"
        )
    return "jsonl" if start == b"{" else "csv"


def _read_parquet(data: bytes, wanted: Sequence[str], name: str) -> Any:
    pa, parquet = arrow(), importlib.import_module("pyarrow.parquet")
    try:
        file = parquet.ParquetFile(pa.BufferReader(data))
        check_names(file.schema_arrow.names, wanted, name)
        table = file.read(columns=list(wanted))
        table.validate(full=True)  # else an error of another library could quote a damaged text
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"{name}: it is no Parquet file, or damaged") from error
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise FormatError(f"{name}: it is no Parquet file, or damaged") from error
    return select(table, wanted, name)


def _fault(name: str, line: int, problem: str) -> FormatError:
    return FormatError(f"{name}: line {line}: {problem}")


def _check_text(data: bytes, name: str) -> None:
    """Raises FormatError for bytes that are not UTF-8, or a control character."""
    if data.isascii():
        match = _CONTROLS.search(data)
    else:
        try:
            for piece in _pieces(data):
                piece.decode()
        except UnicodeDecodeError:
            raise _fault(name, _line_that_is_no_text(data), UTF8) from None
        match = _CONTROLS.search(data)
    if match is not None:
        raise _fault(name, data.count(b"\n", 0, match.start()) + 1, CONTROL)


def _pieces(data: bytes) -> Iterator[bytes]:
    """Yields the bytes in portions that end with lines."""
    at = 0
    while at < len(data):
        end = data.find(b"\n", at + PIECE_BYTES) + 1 or len(data)
        yield data[at:end]
        at = end


def _line_that_is_no_text(data: bytes) -> int:
    for number, line in enumerate(data.split(b"\n"), start=1):
        try:
            line.decode()
        except UnicodeDecodeError:
            return number
    return 1  # unreachable: a line feed is no part of a character


# ---- CSV ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Syntax:
    """Syntax of a CSV file.

    delimiter: one character. quotes: true if fields can be quoted. Otherwise a quote is a character
    of its field.
    """

    delimiter: str
    quotes: bool

    @classmethod
    def of(cls, delimiter: str, quote: str | None) -> "_Syntax":
        quoting = rules.quote({"delimiter": delimiter, "quote": quote})
        return cls("\t" if delimiter == "tab" else delimiter, quoting == "csv")

    def field(self) -> bytes:
        """Returns pattern of a field."""
        end = re.escape(self.delimiter.encode())
        if self.quotes:
            return rb'(?:"(?:[^"]|"")*+"|[^"\r\n' + end + rb"]*+)"
        return rb"[^\r\n" + end + rb"]*+"

    def row(self) -> re.Pattern[bytes]:
        """Returns pattern of a row with its end, or of the incomplete last row."""
        field, part = self.field(), re.escape(self.delimiter.encode())
        return re.compile(field + rb"(?:" + part + field + rb")*+(?:\r?\n|\Z)")


def _read_csv(data: bytes, wanted: Sequence[str], name: str, syntax: _Syntax) -> Any:
    pa, csv = arrow(), importlib.import_module("pyarrow.csv")
    _check_text(data, name)
    header, body = _header_of(data, name, syntax)
    if len(header) == 1 and wanted != header and _DELIMITERS & set(header[0]):
        raise ConfigError(
            f"{name}: the header is a single column; choose the --delimiter between its columns"
        )
    check_names(header, wanted, name)
    quoted = syntax.quotes and b'"' in data
    if quoted or b"\r" in data:
        _check_rows(data, body, len(header), name, syntax, quick=True)
    kind = pa.dictionary(pa.int32(), pa.string())
    if not data[body:].strip(b"\r\n"):
        return pa.table({column: pa.array([], kind) for column in wanted})
    try:
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(data)[body:]),
            read_options=csv.ReadOptions(
                column_names=[str(i) for i in range(len(header))], block_size=PIECE_BYTES
            ),
            parse_options=csv.ParseOptions(
                delimiter=syntax.delimiter,
                quote_char='"' if syntax.quotes else False,
                newlines_in_values=quoted,
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(map(str, range(len(header))), kind),
                include_columns=[str(header.index(column)) for column in wanted],
                null_values=[""],
                strings_can_be_null=True,
                check_utf8=False,
            ),
        )
    except pa.ArrowException:
        _check_rows(data, body, len(header), name, syntax, quick=False)
        raise FormatError(f"{name}: it cannot be read as CSV") from None
    return select(table.rename_columns(list(wanted)), wanted, name)


def _header_of(data: bytes, name: str, syntax: _Syntax) -> tuple[list[str], int]:
    """Returns the names of the columns, and the offset of the first row."""
    match = syntax.row().match(data)
    if not data.strip():
        raise FormatError(f"{name}: it is empty; the first line of CSV has the columns' names")
    if match is None:
        raise _fault(name, 1, QUOTES)
    fields = _fields(match[0], syntax)
    names = [(_unquoted(field) if syntax.quotes else field).decode() for field in fields]
    return names, match.end()


def _fields(row: bytes, syntax: _Syntax) -> Iterator[bytes]:
    """Yields the fields of a row that the row pattern matches."""
    line = row.rstrip(b"\n").removesuffix(b"\r")
    field, at = re.compile(syntax.field()), 0
    while True:
        match = field.match(line, at)
        assert match is not None
        yield match[0]
        if match.end() == len(line):
            return
        at = match.end() + 1


def _unquoted(field: bytes) -> bytes:
    return field[1:-1].replace(b'""', b'"') if field[:1] == b'"' else field


def _check_rows(
    data: bytes, at: int, width: int, name: str, syntax: _Syntax, *, quick: bool
) -> None:
    """Raises FormatError at the first text that is not a row. quick: true if only quotes are
    examined."""
    row = syntax.row()
    if quick and re.compile(rb"(?:" + row.pattern + rb")*+").fullmatch(data, at):
        return
    line = data.count(b"\n", 0, at) + 1
    while at < len(data):
        match = row.match(data, at)
        if match is None or match.end() == at:
            raise _fault(name, line, QUOTES)
        text = match[0]
        if text.strip(b"\r\n") and sum(1 for _field in _fields(text, syntax)) != width:
            raise _fault(name, line, COLUMNS)
        line += text.count(b"\n")
        at = match.end()


# ---- JSON Lines ---------------------------------------------------------------------------------

_KINDS: dict[frozenset[type], str] = {
    frozenset(): "string",
    frozenset({str}): "string",
    frozenset({int}): "int64",
    frozenset({float}): "float64",
    frozenset({int, float}): "float64",
    frozenset({bool}): "bool_",
}
_WORDS = {str: "a text", int: "a number", float: "a number", bool: "true or false"}


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise KeyError
    return found


def _no_constant(_text: str) -> Any:
    raise ValueError  # NaN and Infinity are not JSON


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError  # 1e999 could not be written again
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_constant=_no_constant, parse_float=_finite
)


def _read_json_lines(data: bytes, wanted: Sequence[str], name: str) -> Any:
    pa = arrow()
    _check_text(data, name)
    columns: list[list[Any]] = [[] for _ in wanted]
    lines: list[int] = []
    seen: set[str] = set()
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        found = _object_of(line, name, number)
        seen |= found.keys()
        lines.append(number)
        for column, values in zip(wanted, columns, strict=True):
            values.append(found.get(column))
    if lines:
        check_names(sorted(seen), wanted, name)
    typed = {
        column: _typed(values, column, lines, name)
        for column, values in zip(wanted, columns, strict=True)
    }
    return select(pa.table(typed), wanted, name)


def _object_of(line: bytes, name: str, number: int) -> dict[str, Any]:
    try:
        found = _DECODER.decode(line.decode())
    except KeyError:
        raise _fault(name, number, TWICE) from None
    except (ValueError, RecursionError):
        raise _fault(name, number, JSON) from None
    if not isinstance(found, dict):
        raise _fault(name, number, JSON)
    return found


def _typed(values: list[Any], column: str, lines: Sequence[int], name: str) -> Any:
    """Returns one column's values as an Arrow array."""
    pa = arrow()
    kinds: set[type] = set()
    for line, value in zip(lines, values, strict=True):
        kind = type(value)
        if value is None or kind in kinds:
            continue
        if kind not in _WORDS:
            raise _fault(name, line, f"column {column!r} holds a list or an object")
        if frozenset(kinds | {kind}) not in _KINDS:
            others = " and ".join(sorted({_WORDS[other] for other in kinds}))
            problem = f"column {column!r} has {_WORDS[kind]} where lines above have {others}"
            raise _fault(name, line, problem)
        kinds.add(kind)
    if str in kinds:
        for line, value in zip(lines, values, strict=True):
            if value is not None and (_CONTROL_VALUE.search(value) or _is_broken(value)):
                raise _fault(name, line, CONTROL)
    try:
        return pa.array(values, getattr(pa, _KINDS[frozenset(kinds)])())
    except (pa.ArrowException, OverflowError):
        raise FormatError(f"{name}: column {column!r} has numbers beyond 64 bits") from None


def _is_broken(text: str) -> bool:
    """Returns true if a text contains half a character, which an escape of JSON can write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


# ---- writing ------------------------------------------------------------------------------------


def form_of_path(path: Source, form: str = "auto") -> str:
    """Returns the format of a file to write: `form`, or the format of its name's end. Raises
    ConfigError."""
    if form != "auto":
        return form
    if path == STDIN:
        return "csv"
    try:
        return SUFFIXES[Path(path).suffix]
    except KeyError:
        raise ConfigError(
            f"{name_of(path)}: its name does not end in {', '.join(SUFFIXES)}; choose one of them"
        ) from None


def as_released(table: Any) -> Any:
    """Returns the table as it may leave.

    Its rows are sorted by their bytes as CSV, so that their order discloses nothing. It has no
    metadata, and no word of a dictionary that no row has.
    """
    pa, pc = arrow(), compute()
    order = pc.array_sort_indices(_csv_lines(table, _Syntax.of(",", None)))
    bare = {
        name: column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pa.table(bare).take(order).combine_chunks()


def table_bytes(table: Any, form: str, *, delimiter: str = ",", quote: str | None = None) -> bytes:
    """Returns a table as the bytes of a file, its rows sorted by their bytes.

    form: "csv" with a header line, "jsonl" or "parquet". delimiter, quote: as for `read_table`.

    Raises FormatError for a value that no text format can contain: a control character, which does
    not come from a text that was read here. Without quoting, a value with the delimiter or a line
    break is an error, too.
    """
    if form == "parquet":
        sink = io.BytesIO()
        importlib.import_module("pyarrow.parquet").write_table(as_released(table), sink)
        return sink.getvalue()
    if form == "jsonl":
        return _lines_bytes(_json_lines(table))
    syntax = _Syntax.of(delimiter, quote)
    header = syntax.delimiter.join(_csv_cell(name, syntax) for name in table.column_names)
    return f"{header}\n".encode() + _lines_bytes(_csv_lines(table, syntax))


def _lines_bytes(lines: Any) -> bytes:
    pc = compute()
    listed = lines.take(pc.array_sort_indices(lines))
    ended = pc.binary_join_element_wise(*map(_as_large, [listed, "", "\n"]))
    return b"".join(bytes(_text_of(piece)) for piece in _as_chunks(ended))


def _as_chunks(array: Any) -> list[Any]:
    return list(array.chunks) if isinstance(array, arrow().ChunkedArray) else [array]


def _text_of(piece: Any) -> Any:
    """Returns the bytes of all texts of a large_string array, one after the other."""
    offsets = piece.buffers()[1]
    if offsets is None or not len(piece):
        return b""
    ends = memoryview(offsets).cast("q")
    data = piece.buffers()[2]
    first, last = ends[piece.offset], ends[piece.offset + len(piece)]
    return b"" if data is None else memoryview(data)[first:last]


def _cells(column: Any, cell: Callable[[Any], str], missing: str) -> Any:
    """Returns the texts of a column; each distinct value is converted once."""
    pa, pc = arrow(), compute()
    codes, values = encoded(column)
    written = pa.array([cell(value) for value in _written(values)], pa.large_string())
    return pc.fill_null(written.take(codes.combine_chunks()), missing)


def _written(values: Any) -> list[Any]:
    """Returns distinct values as Python has them for JSON: texts, numbers, truth values."""
    types = arrow().types
    kind = values.type
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return list(values.to_pylist())
    return list(texts(values).to_pylist())


def _csv_lines(table: Any, syntax: _Syntax) -> Any:
    """Returns each row as a line of CSV without its end, as large_string."""
    pc = compute()
    cells = [
        _cells(column, lambda value: _csv_cell(_as_text(value), syntax), "")
        for column in table.columns
    ]
    if len(cells) == 1:  # an empty line is no row
        empty = pc.equal(cells[0], "")
        if not syntax.quotes and pc.any(empty).as_py():
            raise FormatError(f"the only column has an empty value, {NEEDS_QUOTES}")
        return pc.if_else(empty, '""', cells[0])
    return pc.binary_join_element_wise(*cells, _as_large(syntax.delimiter))


def _as_text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool | float) else str(value)


def _csv_cell(text: str, syntax: _Syntax) -> str:
    _refuse_control(text)
    if not syntax.quotes:
        if syntax.delimiter in text or "\n" in text or "\r" in text:
            raise FormatError(f"a value has the delimiter or a line break, {NEEDS_QUOTES}")
        return text
    if text and (
        syntax.delimiter in text or '"' in text or text != text.strip() or _LINE_END.search(text)
    ):
        return '"' + text.replace('"', '""') + '"'
    return text


def _refuse_control(text: str) -> None:
    if _CONTROL_VALUE.search(text):
        raise FormatError("a value has a control character, which no text may hold")


def _json_lines(table: Any) -> Any:
    """Returns each row as an object of JSON, as large_string."""
    pc = compute()
    parts: list[Any] = []
    for i, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        parts += ["{" if i == 0 else ",", json.dumps(name, ensure_ascii=False) + ":"]
        parts.append(_cells(column, _json_cell, "null"))
    return pc.binary_join_element_wise(*map(_as_large, [*parts, "}", ""]))


_ESCAPED = {0x2028: "\\u2028", 0x2029: "\\u2029"}
"""Characters that some readers take for the end of a line, and that JSON leaves unescaped."""


def _as_large(part: Any) -> Any:
    pa = arrow()
    return pa.scalar(part, pa.large_string()) if isinstance(part, str) else part


def _json_cell(value: Any) -> str:
    if isinstance(value, str):
        _refuse_control(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise FormatError("a number is not finite, which JSON cannot say")
    return json.dumps(value, ensure_ascii=False).translate(_ESCAPED)
