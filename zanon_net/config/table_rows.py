# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of `table` and its commands: their rows of the table in `schema`.

A row that several commands have is made by a function of the command's name.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from zanon_net.config import parse, rules
from zanon_net.config.column_types import (
    COLUMN_LIST,
    FILES,
    PARTS_OF_DATES,
    RANGES,
    WIDTHS,
    shown_files,
)
from zanon_net.config.filter_rows import QUOTE, QUOTE_HELP, QUOTE_USUAL, TIME_UNITS
from zanon_net.config.parse import reject, shown
from zanon_net.config.rules import COUNT_MAX, Settings
from zanon_net.config.setting import Setting
from zanon_net.config.types import COLUMN, DELIMITER, DURATION, FILE, Type, one_of, whole_number

SECTION = "table"  # of configuration files
TABLE_FORMATS = ("auto", "csv", "jsonl", "parquet")
UNKNOWN = ("error", "suppress", "top")
_SHARE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?%?")


# ---- types --------------------------------------------------------------------------------------


def _portion(name: str, value: object) -> float:
    """Reads a number from 0 to 1; `Plan` checks the rest."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        reject(name, f"must be a number from 0 to 1, not {shown(value)}")
    return float(value)


def _share(name: str, value: object) -> float:
    """Reads a share: a number from 0 to 1, or a text such as 5%."""
    if isinstance(value, str) and _SHARE.fullmatch(value):
        value = float(value[:-1]) / 100 if value.endswith("%") else float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        reject(name, f"must be a share such as 5% or 0.05, not {shown(value)}")
    return float(value)


def _texts(name: str, value: object) -> tuple[str, ...]:
    """Reads texts between commas, or a list of a configuration file."""
    texts = value.split(",") if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or not texts:
        reject(name, "must be a list, separated by commas")
    return tuple(str(text).strip() for text in texts)


LIST = Type(read=_texts, range="a list", metavar="LIST", written=",".join)
SHARE = Type(read=_share, unit="1", range="0% to 100%", metavar="SHARE")
PORTION = Type(read=_portion, unit="1", range="0 to 1", metavar="P", number=float)
DIVERSITY = Type(
    read=parse.readable_text,
    range="distinct, entropy, recursive:C",
    metavar="distinct|entropy|recursive:C",
)
DATA_FILE = replace(FILE, anchored=lambda value, folder: str(folder / value))


def _name_of(path: str | None) -> str | None:
    return None if path is None else Path(path).name


# ---- rows that several commands have ------------------------------------------------------------


def _shown_pairs(name: str) -> Callable[[Settings], Mapping[str, Any]]:
    return lambda settings: {name: dict(settings[name])}


def _row(command: str, heading: str, **members: Any) -> Setting:
    return Setting(
        **{"commands": (command,), "section": SECTION, "heading": heading, "manifest": "as it is"}
        | members
    )


def columns(command: str) -> tuple[Setting, ...]:
    """Returns the rows about the roles of columns."""
    heading = "Columns"
    return (
        _row(
            command,
            heading,
            name="quasi",
            type=COLUMN_LIST,
            default=(),
            help="The quasi-identifiers: what others may know of a person. Separated by commas, or"
            " with the option repeated.",
        ),
        _row(
            command,
            heading,
            name="sensitive",
            type=COLUMN_LIST,
            default=(),
            help="The columns whose values must stay unknown of a person.",
        ),
    )


def user(command: str) -> Setting:
    """Returns the row about the user of a row."""
    return _row(
        command,
        "Columns",
        name="user",
        type=COLUMN,
        default=None,
        help="The column of a row's person: k and l then count people.",
        usual="each row is a person",
    )


def requirements(command: str) -> tuple[Setting, ...]:
    """Returns the rows about the requirements of each class."""
    heading = "Requirements (each class of rows with the same quasi-identifiers must meet them)"
    return (
        _row(
            command,
            heading,
            name="k",
            type=whole_number("users", 1, COUNT_MAX),
            default=1,
            help="Users.",
        ),
        _row(
            command,
            heading,
            name="l",
            type=whole_number("values", 1, COUNT_MAX),
            default=1,
            help="The least diversity of each sensitive column's values.",
        ),
        _row(
            command,
            heading,
            name="l_kind",
            type=DIVERSITY,
            default="distinct",
            help="Meaning of --l: l distinct values; an entropy of at least log l; or the most"
            " frequent value has less than C times the users of all from the l-th on.",
        ),
        _row(
            command,
            heading,
            name="max_share",
            type=PORTION,
            default=None,
            help="Most that one sensitive value has of a class: the bound on what others learn.",
        ),
        _row(
            command,
            heading,
            name="t",
            type=PORTION,
            default=None,
            help="Most that a class's sensitive values differ from the whole table's.",
        ),
    )


def recodings(command: str) -> tuple[Setting, ...]:
    """Returns the rows about the generalization of quasi-identifiers."""
    heading = "Generalization"
    return (
        _row(
            command,
            heading,
            name="hierarchy",
            type=FILES,
            default=(),
            help="A column's hierarchy: a line a value, its ever coarser labels, '*' last, as ARX"
            " has them.",
            manifest=shown_files,
        ),
        _row(
            command,
            heading,
            name="hierarchy_delimiter",
            type=DELIMITER,
            default=";",
            help="The character between the labels of a hierarchy, or the word tab.",
        ),
        _row(
            command,
            heading,
            name="round",
            type=WIDTHS,
            default=(),
            help="Numbers as ranges of this width, such as 30-39; coarser ones double it.",
            manifest=_shown_pairs("round"),
        ),
        _row(
            command,
            heading,
            name="clip",
            type=RANGES,
            default=(),
            help="With --round: numbers below LOW join LOW's range, those above HIGH that of HIGH;"
            " ..90 and 18.. have one end.",
            manifest=_shown_pairs("clip"),
        ),
    )


def dates(command: str) -> Setting:
    """Returns the row about dates, which a stream cannot have: its dates are not known."""
    return _row(
        command,
        "Generalization",
        name="dates",
        type=PARTS_OF_DATES,
        default=(),
        help="Dates as these parts, from finer to coarser, such as birth=month,year,decade; without"
        " a column, for all dates that no option names. Parts: day, month, quarter, year, decade.",
        usual="day,month,year",
        manifest=_shown_pairs("dates"),
    )


def formats(command: str) -> tuple[Setting, ...]:
    """Returns the rows about the format of the input."""
    heading = "Input and output"
    return (
        _row(
            command,
            heading,
            name="format",
            type=one_of(TABLE_FORMATS, f"must be one of {', '.join(TABLE_FORMATS)}"),
            default="auto",
            help="Format of the input: CSV with a header line, JSON Lines or Parquet. auto looks at"
            " the first bytes.",
        ),
        _row(
            command,
            heading,
            name="delimiter",
            type=DELIMITER,
            default=",",
            help="The character between CSV's columns, or the word tab.",
        ),
        _row(
            command,
            heading,
            name="quote",
            type=QUOTE,
            default=None,
            help=QUOTE_HELP,
            usual=QUOTE_USUAL,
            manifest=rules.shown_quote,
        ),
    )


# ---- the commands -------------------------------------------------------------------------------

CHECK = (
    *columns("table check"),
    user("table check"),
    *requirements("table check"),
    *recodings("table check"),
    *formats("table check"),
)

RISK = (
    *columns("table risk"),
    _row(
        "table risk",
        "Columns",
        name="time",
        type=COLUMN,
        default=None,
        help="For a stream: the column of the time in both files. The attack is then made on rows,"
        " too, that were released within --delay of the target's time.",
    ),
    *recodings("table risk"),
    dates("table risk"),
    _row(
        "table risk",
        "Input and output",
        name="original",
        type=DATA_FILE,
        default=None,
        help="The table before it was generalized, in the same format or another.",
        manifest=lambda settings: {"original": _name_of(settings["original"])},
    ),
    _row(
        "table risk",
        "Input and output",
        name="population",
        type=DATA_FILE,
        default=None,
        help="All people of whom the table has some, in the same format or another: for the risk"
        " of an attacker who does not know whether a person is in the table.",
        manifest=lambda settings: {"population": _name_of(settings["population"])},
    ),
    _row(
        "table risk",
        "Input and output",
        name="sampling",
        type=SHARE,
        default=None,
        help="Share of the population that the table has, such as 10%, to estimate the same without"
        " --population.",
    ),
    *formats("table risk"),
    _row(
        "table risk",
        "Input and output",
        name="delay",
        type=DURATION,
        default=None,
        help="With --time: for how long a row may have been held back.",
    ),
    _row(
        "table risk",
        "Input and output",
        name="time_unit",
        type=one_of(TIME_UNITS, f"must be one of {', '.join(TIME_UNITS)}"),
        default="iso",
        help="Unit of times counted from 1970, or iso: 2024-05-14T09:00:00.5+02:00 (UTC without an"
        " offset).",
    ),
)

HIERARCHY = (
    _row(
        "table hierarchy",
        "Column",
        name="column",
        type=COLUMN,
        default=None,
        help="The column whose values the hierarchy is made of.",
    ),
    _row(
        "table hierarchy",
        "Levels (one of these; without any, all values lie below '*')",
        name="prefix",
        type=LIST,
        default=None,
        help="Characters that each level keeps, from more to fewer, such as 5,3,2,0: 13053, 130**,"
        " 13***, '*'. For IP addresses: bits, such as /24,/16.",
    ),
    _row(
        "table hierarchy",
        "Levels (one of these; without any, all values lie below '*')",
        name="intervals",
        type=LIST,
        default=None,
        help="Widths of numbers' intervals, each a multiple of the one before, such as 5,10,20: 37,"
        " 35-39, 30-39, 20-39, '*'.",
    ),
    _row(
        "table hierarchy",
        "Levels (one of these; without any, all values lie below '*')",
        name="dates",
        type=LIST,
        default=None,
        help="Parts of dates, from finer to coarser: of day, month, quarter, year and decade.",
    ),
    *formats("table hierarchy"),
)

ROWS = (*CHECK, *RISK, *HIERARCHY)
