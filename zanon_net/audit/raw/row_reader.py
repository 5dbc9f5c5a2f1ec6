# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of CSV and JSON Lines, by the text of docs/reference/filter.md, without the filter's code.

A row that cannot be read costs its line only. The rows of the input and of the release are read by
the same functions.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from zanon_net.audit.raw.packed_files import GZIP, ZSTD, unpacked
from zanon_net.errors import FormatError

ROW_MAX = 1 << 20  # bytes
TIME_MAX = (1 << 63) - 1
PACKINGS = {b"\x1f\x8b": GZIP, b"\x28\xb5\x2f\xfd": ZSTD}
OTHERS = {b"\xfd7zXZ": "xz", b"BZh": "bzip2", b"\x04\x22\x4d\x18": "lz4", b"PAR1": "Parquet"}
MARK = b"\xef\xbb\xbf"  # byte order mark of UTF-8
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
DECIMALS = {"s": 9, "ms": 6, "us": 3, "ns": 0}
NUMBER = re.compile(r"([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?"
    r"(?P<offset> ?(?:[Zz]|UTC|([+-])([0-9]{2})(?::?([0-9]{2}))?))?)?"
)
SECOND_NS = 10**9
OWN = 3  # columns that are read: time, user and attribute; columns of --pass follow


class Spelled(str):
    """A value of JSON that is no text, as it is spelled: a number, true, false or an object."""

    __slots__ = ()


Value = str | None
"""Value of a cell; None: it is missing."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a file. number: of its first line. cells: None if the row cannot be read."""

    number: int
    cells: Sequence[Value] | None
    text: bytes = b""


def opened(path: Path) -> AbstractContextManager[BinaryIO]:
    """Opens a file for its unpacked bytes; its first bytes give the packing. Raises FormatError if
    it cannot be read."""
    return unpacked(path, partial(packing_of, path))


def packing_of(path: Path, file: BinaryIO) -> str:
    """Returns GZIP, ZSTD or an empty text for an open file. Raises FormatError for Parquet and
    other compressions."""
    first = file.read(8)
    file.seek(0)
    for magic, name in OTHERS.items():
        if first.startswith(magic):
            raise FormatError(
                f"{path}: raw rows of {name} cannot be checked; give CSV or JSON Lines"
            )
    return next((kind for magic, kind in PACKINGS.items() if first.startswith(magic)), "")


def lines_of(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yields the lines with their numbers, without the line feed and without a mark at the start.

    A line of more than ROW_MAX bytes is cut to ROW_MAX + 1 bytes.
    """
    number = 0
    while line := stream.readline(ROW_MAX + 1):
        number += 1
        rest = line
        while not rest.endswith(b"\n") and (rest := stream.readline(ROW_MAX)):
            pass
        if number == 1:
            line = line.removeprefix(MARK)
        yield number, line.removesuffix(b"\n")


@dataclass(frozen=True, slots=True)
class Form:
    """Form of CSV."""

    delimiter: bytes
    has_quotes: bool

    def fields(self, row: bytes) -> list[bytes] | None:
        """Returns the fields of a row, or None if a quote or a carriage return is in a wrong
        place."""
        row = row.removesuffix(b"\r")
        if b"\r" not in row and not (self.has_quotes and b'"' in row):
            return row.split(self.delimiter)
        found, at = [], 0
        while True:
            if self.has_quotes and row[at : at + 1] == b'"':
                parts, at = [], at + 1
                while True:
                    end = row.find(b'"', at)
                    if end < 0:
                        return None
                    parts.append(row[at:end])
                    at = end + 1
                    if row[at : at + 1] != b'"':
                        break
                    at += 1
                found.append(b'"'.join(parts))
            else:
                end = row.find(self.delimiter, at)
                field = row[at:] if end < 0 else row[at:end]
                if b"\r" in field or (self.has_quotes and b'"' in field):
                    return None
                found.append(field)
                at += len(field)
            if at == len(row):
                return found
            if row[at : at + 1] != self.delimiter:
                return None
            at += 1

    def is_open(self, line: bytes, inside: bool) -> bool:
        """Returns whether a quoted field continues behind a line. inside: whether it begins in a
        quoted field."""
        at = 0
        while True:
            quote = line.find(b'"', at)
            if quote < 0:
                return inside
            at = quote + 1
            if not inside:
                inside = quote == 0 or line[quote - 1 : quote] == self.delimiter
            elif line[at : at + 1] == b'"':
                at += 1
            else:
                inside = False

    def rows(
        self, stream: BinaryIO, columns: int = 0, *, has_blank: bool = False
    ) -> Iterator[tuple[int, bytes, list[bytes] | None]]:
        """Yields each row that is not blank: its line, its bytes and its fields.

        columns: number of columns; 0: the first row has it. has_blank: yields blank rows, too.
        If a row of several lines cannot be read, only its first line is dropped. Each line between
        the first and the last line is then a row.
        """
        waiting: list[tuple[int, bytes]] = []  # lines to read again
        source = lines_of(stream)
        single = 0
        while True:
            first = waiting.pop(0) if waiting else next(source, None)
            if first is None:
                return
            lines = [first]
            is_single, single = single > 0, max(single - 1, 0)
            inside = self.has_quotes and not is_single and self.is_open(first[1], inside=False)
            size = len(first[1])
            while inside and size <= ROW_MAX:
                line = waiting.pop(0) if waiting else next(source, None)
                if line is None:
                    break
                lines.append(line)
                size += len(line[1]) + 1
                inside = self.is_open(line[1], inside=True)
            row = b"\n".join(line for _number, line in lines)
            if row in (b"", b"\r") and not has_blank:
                continue
            fields = None if size > ROW_MAX else self.fields(row)
            if columns and len(lines) > 1 and (fields is None or len(fields) != columns):
                waiting, single = lines[1:] + waiting, len(lines) - 2
                yield first[0], first[1], None
                continue
            columns = columns or len(fields or ())
            yield first[0], row, fields


def texts_of(row: bytes, fields: Sequence[bytes] | None, columns: int) -> list[str] | None:
    """Returns the fields of a row as text, or None if the row cannot be read."""
    if fields is None or len(fields) != columns:
        return None
    try:
        text = row.decode()
    except UnicodeDecodeError:
        return None
    if not text.isprintable() and CONTROL.search(text):
        return None
    return [field.decode() for field in fields]


def csv_lines(
    stream: BinaryIO, form: Form, wanted: Sequence[str], header: str, refuse: Callable[[], None]
) -> Iterator[Line]:
    """Yields the wanted columns of a file of CSV. header: columns of a file without a header line.

    refuse: called if the header has not each wanted column once; it raises an error.
    """
    names = form.fields(header.encode()) if header else None
    places: list[int] = []
    for number, row, fields in form.rows(stream, len(names or ())):
        if names is None or not places:
            found = names or fields or []
            try:
                words = [name.decode() for name in found]
            except UnicodeDecodeError:
                words = []
            if any(words.count(name) != 1 for name in wanted):
                refuse()
            places = [words.index(name) for name in wanted]
            is_header, names = names is None, found
            if is_header:
                continue
        texts = texts_of(row, fields, len(names))
        cells = None if texts is None else [texts[place] for place in places]
        yield Line(number, cells, row)


class Members(list[tuple[str, Any]]):
    """Members of an object of JSON, in their order."""

    __slots__ = ()


def refuse_constant(_text: str) -> None:
    """Raises ValueError, because NaN and Infinity are not JSON."""
    raise ValueError


DECODER = json.JSONDecoder(
    object_pairs_hook=Members,
    parse_int=Spelled,
    parse_float=Spelled,
    parse_constant=refuse_constant,
)


def parsed(row: bytes) -> Members | None:
    """Returns the object of a line of JSON; None for anything else."""
    try:
        found = DECODER.decode(row.decode().strip(" \t\r"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Members) else None


def scalar(value: Any) -> Value:
    """Returns a value of JSON as text. Numbers, true and false are Spelled.

    Raises ValueError for objects, arrays, half characters and control characters.
    """
    if value is None:
        return None
    if value is True or value is False:
        return Spelled(str(value).lower())
    if isinstance(value, list):
        raise ValueError
    text: str = value
    text.encode()
    if CONTROL.search(text):
        raise ValueError
    return text


def wanted_members(
    found: Members, wanted: Sequence[str], before: str = ""
) -> Iterator[tuple[int, Any]]:
    """Yields the members that are wanted columns, by name or by path."""
    for name, value in found:
        path = f"{before}.{name}" if before else name
        if path in wanted:
            yield wanted.index(path), value
        elif isinstance(value, Members) and any(one.startswith(f"{path}.") for one in wanted):
            yield from wanted_members(value, wanted, path)


def json_cells(row: bytes, wanted: Sequence[str]) -> list[Value] | None:
    """Returns the wanted members of a line of JSON, or None if the row cannot be read."""
    found = parsed(row)
    if found is None:
        return None
    cells: list[Value] = [None] * len(wanted)
    seen = set()
    try:
        for place, value in wanted_members(found, wanted):
            if place in seen:
                return None
            seen.add(place)
            if place < OWN or isinstance(value, str):
                cells[place] = scalar(value)
    except ValueError:
        return None
    return cells


def json_lines(stream: BinaryIO, wanted: Sequence[str]) -> Iterator[Line]:
    """Yields the wanted members of the lines of JSON."""
    for number, row in lines_of(stream):
        if row.strip(b" \t").removesuffix(b"\r"):
            is_long = len(row) > ROW_MAX
            yield Line(number, None if is_long else json_cells(row, wanted), row)


def time_of(text: str, unit: str) -> int | None:
    """Returns a time in ns since the Unix epoch, or None if the text is no time of the unit."""
    found = iso_time(text) if unit == "iso" else number_time(text, DECIMALS[unit])
    return found if found is not None and 0 <= found <= TIME_MAX else None


def number_time(text: str, decimals: int) -> int | None:
    """Returns a time that is a number of a unit with `decimals` digits down to the nanosecond."""
    match = NUMBER.fullmatch(text)
    if match is None:
        return None
    whole, fraction, exponent = match.groups()
    digits = whole + (fraction or "")
    if not digits.strip("0"):
        return 0
    left = len(whole) + int((exponent or "0")[:20]) + decimals
    if left > len(digits) + 19:
        return None
    return int((digits + "0" * max(left - len(digits), 0))[:left]) if left > 0 else 0


def iso_time(text: str) -> int | None:
    """Returns a time of ISO 8601. Without an offset it is in UTC."""
    match = ISO.fullmatch(text)
    if match is None:
        return None
    date, hour, minute, second, fraction, _offset, sign, hours, minutes = match.groups()
    try:
        day = datetime.fromisoformat(date).replace(tzinfo=UTC)
    except ValueError:
        return None
    clock = [int(part or 0) for part in (hour, minute, second, hours, minutes)]
    limits = (23, 59, 59, 23, 59)
    if not 1969 <= day.year <= 2262 or any(
        part > most for part, most in zip(clock, limits, strict=True)
    ):
        return None
    seconds = round((day - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    seconds += clock[0] * 3600 + clock[1] * 60 + clock[2]
    offset = clock[3] * 3600 + clock[4] * 60
    seconds += offset if sign == "-" else -offset
    return seconds * SECOND_NS + int(((fraction or "") + "0" * 9)[:9])
