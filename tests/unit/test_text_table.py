# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Tables for people: as rich prints them, which takes longer to load than a short run."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table
from rich.text import Text

from zanon_net._text import cells, table, terminal_width

words = st.text("ab,\u00e9\u6f22", min_size=1, max_size=60)
texts = st.lists(words, max_size=6).map(" ".join)
short = st.text("xyz", max_size=9)


def by_rich(rows: list[tuple[str, ...]], width: int, right: tuple[int, ...]) -> str:
    drawn = Table(box=None, show_header=False, pad_edge=False)
    for i in range(len(rows[0]) - 1):
        drawn.add_column(no_wrap=True, justify="right" if i in right else "left")
    drawn.add_column(overflow="fold")
    for row in rows:
        drawn.add_row(*map(Text, row))
    file = io.StringIO()
    Console(file=file, width=width).print(drawn)
    return file.getvalue()


@given(st.lists(st.tuples(short, texts), min_size=1, max_size=4), st.integers(40, 120))
def test_two_columns(rows: list[tuple[str, ...]], width: int) -> None:
    rows = [("title", "text"), *rows]
    assert table(rows, width) == by_rich(rows, width, ())


@given(st.lists(st.tuples(short, short, texts), min_size=1, max_size=4), st.integers(40, 120))
def test_three_columns(rows: list[tuple[str, ...]], width: int) -> None:
    rows = [("title", "1", "text"), *rows]
    assert table(rows, width, right=(1,)) == by_rich(rows, width, (1,))


def test_what_steers_a_terminal_is_blank() -> None:
    assert table([("a", "b\x1b[1m\nc")], 80) == "a  b [1m c\n"
    assert table([], 80) == ""


def test_a_terminal_that_is_too_narrow() -> None:
    assert table([("title", "ab")], 3) == "title  a\n       b\n"


def test_marks_take_no_column() -> None:
    assert (cells("e\u0301"), cells("\u6f22"), cells("abc")) == (1, 2, 3)


def test_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "123")
    assert terminal_width() == 123
    monkeypatch.setenv("COLUMNS", "wide")
    assert terminal_width() > 0
