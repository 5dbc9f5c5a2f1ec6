# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The rows that `filter` wrote, read by their text alone, with check `format`."""

import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.row_reader import (
    Spelled,
    Value,
    lines_of,
    opened,
    parsed,
    scalar,
    texts_of,
    time_of,
)
from zanon_net.audit.raw.row_source import (
    JSON_MARK,
    NOTHING,
    Indices,
    Numbers,
    RawRows,
    RowRules,
    Words,
    attribute_key,
)
from zanon_net.audit.raw.shown import reading

ISO = re.compile(r"[0-9-]{10}T[0-9:]{8}(?:\.(?:[0-9]{3}){1,3})?Z")
COUNT = re.compile(r"[0-9]+(?:\.[0-9]*[1-9])?")
PSEUDONYM = re.compile("[0-9a-f]{32}")
TIME, USER, ATTRIBUTE = "time", "user", "attribute"
BATCH_ROWS = 4096
STEP = 1 << 20
NOBODY = NOTHING
UNKNOWN = NOTHING - 1  # attribute that no raw row has


@dataclass(frozen=True, slots=True)
class Shown:
    """A row of the release.

    cells: by role, time, user and attribute; empty for a row that cannot be read. extra: texts of
    columns that no run writes. text: of a row that cannot be read.
    """

    number: int
    cells: Mapping[str, Any] = field(default_factory=dict)
    extra: Sequence[str] = ()
    text: bytes = b""


@dataclass(slots=True)
class ShownRows:
    """Columns of the rows that can be read.

    rows: the number of each row in its file. names: numbers of attributes; NOTHING: none, UNKNOWN:
    no raw row has the attribute. users: numbers of pseudonyms, or NOBODY.
    strange: texts of unknown attributes, by the place of the row. odd: texts that may have no
    secret, with row and column. written: number of all rows.
    """

    pseudonyms: Words
    rows: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    t_ns: Numbers = field(default_factory=lambda: np.empty(0, np.int64))
    names: Indices = field(default_factory=lambda: np.empty(0, np.uint32))
    users: Indices = field(default_factory=lambda: np.empty(0, np.uint32))
    strange: dict[int, str] = field(default_factory=dict)
    odd: list[tuple[int, str, bytes]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    written: int = 0


def read_release(path: Path, rules: RowRules, raw: RawRows, memory: int) -> ShownRows:
    """Reads the rows of a release, with the findings about their form."""
    shown = ShownRows(Words(memory))
    findings, file = shown.findings, path.name
    look_up = numbers_of(rules, raw)
    rows, times, names, users = array("q"), array("q"), array("I"), array("I")

    def report(row: int, column: str, measured: float, needed: float) -> None:
        findings.append(Finding("format", file, row, column, measured, needed))

    for one in release_rows(path, rules, report):
        shown.written += 1
        if not one.cells:
            report(one.number, "line", 0, 1)
            shown.odd.append((one.number, "line", one.text))
            continue
        t_ns = time_in(one.cells[TIME], rules)
        if t_ns is None:
            report(one.number, TIME, 0, 1)
            shown.odd.append((one.number, TIME, str(one.cells[TIME]).encode()))
            continue
        rows.append(one.number)
        times.append(t_ns)
        users.append(pseudonym_in(one, rules, shown, report))
        names.append(attribute_in(one, rules, shown, look_up, len(rows) - 1, report))
        shown.odd += [(one.number, "columns", text.encode()) for text in one.extra]
    shown.rows, shown.t_ns = np.frombuffer(rows, np.int64), np.frombuffer(times, np.int64)
    shown.names, shown.users = np.frombuffer(names, np.uint32), np.frombuffer(users, np.uint32)
    return shown


Report = Callable[[int, str, float, float], None]


def pseudonym_in(one: Shown, rules: RowRules, shown: ShownRows, report: Report) -> int:
    """Returns the number of a row's pseudonym, or NOBODY."""
    if not rules.has_user:
        return NOBODY
    user = one.cells[USER]
    if isinstance(user, str) and not isinstance(user, Spelled) and PSEUDONYM.fullmatch(user):
        return shown.pseudonyms.number(user)
    report(one.number, USER, 0, 1)
    shown.odd.append((one.number, USER, str(user).encode()))
    return NOBODY


def attribute_in(
    one: Shown,
    rules: RowRules,
    shown: ShownRows,
    look_up: Mapping[str, int],
    place: int,
    report: Report,
) -> int:
    """Returns the number of a row's attribute."""
    value = one.cells[ATTRIBUTE]
    if not value:
        is_empty = value is None or rules.target == "csv"
        if not (rules.is_blank and is_empty):
            report(one.number, ATTRIBUTE, 0, 1)
        return NOTHING
    found = look_up.get(attribute_key(value, rules) if rules.has_kinds else str(value))
    if found is None:
        shown.strange[place] = str(value)
        return UNKNOWN
    return found


def numbers_of(rules: RowRules, raw: RawRows) -> Mapping[str, int]:
    """Returns the number of each attribute as the release spells it.

    If the release does not show whether a value of JSON was a text, both have the number of one.
    """
    if rules.has_kinds or rules.source == "csv":
        return raw.attributes.numbers
    found: dict[str, int] = {}
    for text, number in raw.attributes.numbers.items():
        found.setdefault(spelled(text.removeprefix(JSON_MARK), rules), number)
    return found


def spelled(text: str, rules: RowRules) -> str:
    """Returns a text as a field without quotes, in which digits replace what would end it."""
    if rules.form.has_quotes:
        return text
    for end in (rules.form.delimiter.decode(), "\r", "\n"):
        text = text.replace(end, f"\\x{ord(end):02x}")
    return text


def time_in(value: Any, rules: RowRules) -> int | None:
    """Returns a time in ns, or None if it has another form than the run gives it."""
    if isinstance(value, int):
        return value
    is_number = rules.unit != "iso"
    if not isinstance(value, str):
        return None
    if rules.target == "jsonl" and isinstance(value, Spelled) != is_number:
        return None
    form = COUNT if is_number else ISO
    return time_of(value, rules.unit) if form.fullmatch(value) else None


def release_rows(path: Path, rules: RowRules, report: Report) -> Iterator[Shown]:
    """Yields the rows of a release."""
    if rules.target == "parquet":
        with reading(path):
            yield from parquet_rows(path, rules, report)
        return
    with opened(path) as stream:
        read = json_rows if rules.target == "jsonl" else csv_rows
        yield from read(stream, rules, report)
    with opened(path) as stream:
        last, lines = b"\n", 0
        while data := stream.read(STEP):
            last, lines = data[-1:], lines + data.count(b"\n")
    if last != b"\n":
        report(lines + 1, "end of line", 0, 1)


def csv_rows(stream: Any, rules: RowRules, report: Report) -> Iterator[Shown]:
    """Yields the rows of CSV."""
    names = rules.written if rules.header else None
    for number, row, fields in rules.form.rows(stream, len(names or ()), has_blank=True):
        if names is None:
            names = texts_of(row, fields, len(fields or ())) or []
            if names != rules.written:
                report(number, "columns", len(names), len(rules.written))
                names = [*rules.written, *(["?"] * max(len(names) - len(rules.written), 0))]
            continue
        texts = texts_of(row, fields, len(names))
        yield Shown(number, text=row) if texts is None else row_of(number, names, texts, rules)


def row_of(number: int, names: Sequence[str], cells: Sequence[Any], rules: RowRules) -> Shown:
    """Returns a row whose first columns are the columns of the run."""
    roles = [TIME, USER, ATTRIBUTE] if rules.has_user else [TIME, ATTRIBUTE]
    more = cells[len(rules.written) : len(names)]
    own = dict(zip(roles, cells, strict=False))
    return Shown(number, own, [str(cell) for cell in more if cell is not None])


def json_rows(stream: Any, rules: RowRules, report: Report) -> Iterator[Shown]:
    """Yields the rows of JSON Lines."""
    count = len(rules.written)
    for number, line in lines_of(stream):
        found = parsed(line)
        try:
            cells: list[Value] | None = (
                None
                if found is None
                else [value if name in rules.passed else scalar(value) for name, value in found]
            )
        except ValueError:
            cells = None
        if found is None or cells is None:
            yield Shown(number, text=line)
            continue
        names = [name for name, _value in found]
        if names[:count] != rules.written:
            yield Shown(number, text=line)
            continue
        if len(names) > count:
            report(number, "columns", len(names), count)
        yield row_of(number, names, cells, rules)


def parquet_rows(path: Path, rules: RowRules, report: Report) -> Iterator[Shown]:
    """Yields the rows of Parquet. Times are numbers of ns."""
    number, count = 0, len(rules.written)
    with pq.ParquetFile(path) as source:
        names = source.schema_arrow.names
        if names != rules.written:
            report(1, "columns", len(names), count)
        is_whole = names[:count] == rules.written
        for batch in source.iter_batches(batch_size=BATCH_ROWS):
            columns = [
                (one.cast("int64") if str(one.type) == "timestamp[ns, tz=UTC]" else one).to_pylist()
                for one in batch.columns
            ]
            for cells in zip(*columns, strict=True):
                number += 1
                if is_whole:
                    yield row_of(number, names, cells, rules)
                else:
                    yield Shown(number, text=",".join(map(str, cells)).encode())
