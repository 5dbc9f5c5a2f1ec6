# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Counts and times as texts, for people and for manifests."""

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

NS_PER_S = 1_000_000_000
GAP = "  "  # between the columns of a table

_WORD = re.compile(r"\s*\S+\s*")


def readable(text: str) -> str:
    """Returns the text with replacement characters for bytes that are not UTF-8.

    A file's or interface's name can have such bytes. Python has half surrogate pairs for them.
    """
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def iso_time(t_ns: int) -> str:
    """Returns `t_ns` (ns since the epoch) in UTC with nine decimals."""
    utc = datetime.fromtimestamp(t_ns // NS_PER_S, UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{t_ns % NS_PER_S:09d}Z"


def time_range(range_ns: tuple[int, int] | None) -> dict[str, Any] | None:
    """Returns first and last time (ns since the epoch) as a manifest has them; None for None."""
    if range_ns is None:
        return None
    first_ns, last_ns = range_ns
    return {
        "first": iso_time(first_ns),
        "last": iso_time(last_ns),
        "first_ns": first_ns,
        "last_ns": last_ns,
    }


def time_span(range_ns: tuple[int, int]) -> str:
    """Returns first and last time (ns since the epoch) as text, and the seconds between them."""
    first_ns, last_ns = range_ns
    seconds = (last_ns - first_ns) / NS_PER_S
    return f"{iso_time(first_ns)[:19]}Z to {iso_time(last_ns)[:19]}Z, {seconds:,.1f} s"


def printable(text: str) -> str:
    """Returns `text` without a character that could end the line or control a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def share(part: int, whole: int) -> str:
    """Returns `part` of `whole` as text, and the percentage unless `whole` is 0."""
    return f"{part:,} of {whole:,}" + (f" ({part / whole:.1%})" if whole else "")


UNITS = ("", " k", " M", " G", " T")
UNKNOWN = "-"


def short(number: float | None, unit: str = "") -> str:
    """Returns a number with its unit and three digits, the precision of metrics: 12.3 MB."""
    if number is None:
        return UNKNOWN
    step = 0
    while abs(number) >= 1000 and step + 1 < len(UNITS):
        number, step = number / 1000, step + 1
    gap = " " if unit and not step else ""
    return f"{number:.3g}{UNITS[step]}{gap}{unit}"


def cells(text: str) -> int:
    """Returns the columns of a terminal that printable `text` takes."""
    if text.isascii():
        return len(text)
    return sum(map(_cell, text))


def _cell(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Me", "Mn", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def table(rows: Iterable[Sequence[str]], width: int, *, right: Sequence[int] = ()) -> str:
    """Returns rows as a text table, a line each, whose last column is folded at `width`.

    width: columns of the terminal. right: indices of the columns that are aligned to the right.
    """
    listed = [[printable(text) for text in row] for row in rows]
    if not listed:
        return ""
    widths = [max(map(cells, column)) for column in zip(*listed, strict=True)]
    widths[-1] = max(1, min(widths[-1], width - sum(widths[:-1]) - len(GAP) * (len(widths) - 1)))
    lines = []
    for row in listed:
        titles: Sequence[str] = row[:-1]
        for piece in _folded(row[-1], widths[-1]):
            lines.append(GAP.join(_aligned([*titles, piece], widths, right)) + "\n")
            titles = [""] * len(titles)
    return "".join(lines)


def _aligned(row: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> Iterator[str]:
    for i, (text, width) in enumerate(zip(row, widths, strict=True)):
        blank = " " * (width - cells(text))
        yield blank + text if i in right else text + blank


def _folded(text: str, width: int) -> list[str]:
    """Returns the lines of `text`, cut between words, or within words longer than a line."""
    lines, line = [], ""
    for match in _WORD.finditer(text):
        word = match[0]
        if cells(line) + cells(word.rstrip()) > width:
            if line:
                lines.append(line)
            *whole, line = _chopped(word, width) if cells(word.rstrip()) > width else [word]
            lines += whole
        else:
            line += word
    return [line.rstrip() for line in [*lines, line]]


def _chopped(word: str, width: int) -> list[str]:
    """Cuts a word into parts as wide as a line."""
    pieces = [""]
    for character in word:
        if cells(pieces[-1]) + cells(character) > width:
            pieces.append("")
        pieces[-1] += character
    return pieces


def terminal_width() -> int:
    """Returns the columns of the terminal of one of the standard streams; 80 if none is a
    terminal."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns):
        return int(columns)
    for stream in range(3):
        with suppress(OSError):
            return os.get_terminal_size(stream).columns or 80
    return 80
