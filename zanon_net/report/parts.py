# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a report, without their form: a page and a terminal show the same parts."""

from collections.abc import Sequence

from zanon_net._record import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts. The first column has titles.

    is_words: true if the other columns are sentences; false if they are numbers. marks: (text of a
    cell, class of the page's style).
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    is_words: bool = False
    marks: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one kind, one for each bin of time. kind: a colour, a class of the page's style."""

    label: str
    kind: str
    values: Sequence[int]


@dataclass(frozen=True, slots=True)
class TimeBars:
    """Stacked bars over time. starts: of the bins, ns since the Unix epoch. unit: of the values."""

    title: str
    starts: Sequence[int]
    width_ns: int
    series: Sequence[Series]
    unit: str


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars. rows: (label, value, the value as text). ranges: the interval of each value,
    or empty."""

    title: str
    rows: Sequence[tuple[str, int, str]]
    kind: str = "released"
    ranges: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class Steps:
    """A line of steps over time. values: of the bins."""

    title: str
    starts: Sequence[int]
    width_ns: int
    values: Sequence[int]
    unit: str


@dataclass(frozen=True, slots=True)
class Cells:
    """Shares in a grid of rows and columns; a larger share is darker. columns: their titles. rows:
    (title, share of each column)."""

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[float]]]


Chart = TimeBars | Bars | Steps | Cells


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part.

    text: sentences.
    chart: shows the same figures as the table.
    blanks: titles of lines that people fill in by hand.
    """

    title: str
    text: Sequence[str] = ()
    chart: Chart | None = None
    table: Table | None = None
    blanks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Contents:
    """A whole report.

    period: time from the first to the last packet.
    is_good: true if all input was read and all output written, or if an audit passed.
    state: a sentence about that.
    tiles: (title, figure, explanation).
    notes: of the run.
    footer: a sentence about what the page has.
    """

    title: str
    period: str
    is_good: bool
    state: str
    tiles: Sequence[tuple[str, str, str]]
    notes: Sequence[str]
    sections: Sequence[Section]
    version: str
    footer: str
