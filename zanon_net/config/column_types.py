# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Types of settings about columns: lists of column names, and pairs of a column and a value."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from zanon_net.config import parse
from zanon_net.config.parse import reject, shown
from zanon_net.config.rules import Settings
from zanon_net.config.types import Type

Pairs = tuple[tuple[str, str], ...]


def _column_list(name: str, value: object) -> tuple[str, ...]:
    """Reads names of columns.

    A list, as in a configuration file, has a name in each item. A text or a tuple of texts, as on
    the command line, has names separated by commas. There a name with a comma is in double quotes.
    """
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        reject(name, "must be names of columns")
    parts = ([text] if isinstance(value, list) else parse.names_in(name, text) for text in texts)
    names = tuple(column for part in parts for column in part)
    for number, column in enumerate(names):
        parse.column_name(name, column)
        if column in names[:number]:
            reject(name, f"{shown(column)} is named twice")
    return names


def pairs_of(what: str, *, others: bool = False) -> Callable[[str, Any], Pairs]:
    """Returns a reader of texts COLUMN=VALUE or of a table of a configuration file.

    Pairs that were read already stay as they are. what: the name of VALUE in error messages.
    others: true if a text may be a VALUE alone, which is for all other columns; its column is
    empty.
    """

    def read(name: str, value: object) -> Pairs:
        if isinstance(value, Mapping):
            value = tuple(value.items())
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, Sequence):
            reject(name, f"must be COLUMN={what}")
        pairs: list[tuple[str, str]] = []
        for text in texts:
            if isinstance(text, tuple):
                text = "=".join(map(str, text))
            column, equals, rest = str(text).partition("=")
            if others and not equals and column:
                column, equals, rest = "", "=", column
            if not equals or not rest:
                reject(name, f"must be COLUMN={what}, not {shown(text)}")
            if column or not others:
                parse.column_name(name, column)
            if column in [known for known, _rest in pairs]:
                reject(name, f"{shown(column)} is given twice" if column else "is given twice")
            pairs.append((column, rest))
        return tuple(pairs)

    return read


def _pair_in_folder(text: str, folder: Path) -> str:
    column, equals, path = text.partition("=")
    return f"{column}{equals}{folder / path}"


COLUMN_LIST = Type(read=_column_list, range="columns", metavar="NAMES", many=True, written=",".join)
FILES = Type(
    read=pairs_of("FILE"),
    annotation="Mapping[str, str] | Sequence[str]",
    range="a file a column",
    metavar="COL=FILE",
    many=True,
    anchored=_pair_in_folder,
)
WIDTHS = Type(
    read=pairs_of("WIDTH"), range="a number above 0 a column", metavar="COL=WIDTH", many=True
)
RANGES = Type(
    read=pairs_of("LOW..HIGH"),
    range="two numbers a column, or either",
    metavar="COL=LOW..HIGH",
    many=True,
)


PARTS_OF_DATES = Type(
    read=pairs_of("PARTS", others=True),
    range="of day, month, quarter, year, decade",
    metavar="[COL=]PARTS",
    many=True,
)


def shown_files(settings: Settings) -> Mapping[str, Any]:
    """Returns the names of the hierarchies' files, without their folders."""
    return {"hierarchy": {column: Path(path).name for column, path in settings["hierarchy"]}}
