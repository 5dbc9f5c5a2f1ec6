# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of `table anonymize`: its rows of the table in `schema`."""

import re
from functools import partial

from zanon_net.config import table_rows
from zanon_net.config.column_types import COLUMN_LIST, pairs_of
from zanon_net.config.parse import reject, shown
from zanon_net.config.rules import Settings
from zanon_net.config.setting import Setting
from zanon_net.config.types import FILE_MODE, Type, one_of

COMMAND = "table anonymize"
METHODS = ("topdown", "lattice", "fixed")

_LEVEL = re.compile("[0-9]{1,3}")


def _levels(name: str, value: object) -> tuple[tuple[str, int], ...]:
    pairs = pairs_of("LEVEL")(name, value)
    for _column, level in pairs:
        if not _LEVEL.fullmatch(level):
            reject(name, f"must be COLUMN=LEVEL with a whole number, not {shown(level)}")
    return tuple((column, int(level)) for column, level in pairs)


def _shown_levels(settings: Settings) -> dict[str, object]:
    return {"level": dict(settings["level"])}


LEVELS = Type(read=_levels, range="0 or more a column", metavar="COL=LEVEL", many=True)

_row = partial(Setting, commands=(COMMAND,), section=table_rows.SECTION, manifest="as it is")

PASSED = _row(
    heading="Columns",
    name="passed",
    type=COLUMN_LIST,
    default=(),
    option=("--pass",),
    help="Write these columns as they are, too, unprotected. Columns that no option names are"
    " left out.",
)

METHOD = (
    _row(
        heading="Generalization",
        name="unknown",
        type=one_of(table_rows.UNKNOWN, f"must be one of {', '.join(table_rows.UNKNOWN)}"),
        default="error",
        help="Treatment of a value that its hierarchy lacks: an error; suppress the row;"
        " or write it as the hierarchy's top.",
    ),
    _row(
        heading="Generalization",
        name="method",
        type=one_of(METHODS, f"must be one of {', '.join(METHODS)}"),
        default="topdown",
        help="topdown splits classes value by value, and numbers at medians, while they meet the"
        " requirements; lattice picks one level a column, with the least loss; fixed takes"
        " --level's.",
    ),
    _row(
        heading="Generalization",
        name="level",
        type=LEVELS,
        default=(),
        help="With --method fixed: how coarse a column becomes; 0, without this option, is the"
        " values themselves, or the ranges of --round.",
        manifest=_shown_levels,
    ),
    _row(
        heading="Generalization",
        name="suppress",
        type=table_rows.SHARE,
        default=0.0,
        help="Most of the rows that may be left out, such as 5%. topdown leaves out rows only where"
        " this lowers the loss.",
        usual="none",
    ),
)

ROWS = (
    *table_rows.columns(COMMAND),
    table_rows.user(COMMAND),
    PASSED,
    *table_rows.requirements(COMMAND),
    *table_rows.recodings(COMMAND),
    table_rows.dates(COMMAND),
    *METHOD,
    *table_rows.formats(COMMAND),
    _row(
        heading="Input and output",
        name="mode",
        type=FILE_MODE,
        default="600",
        help="The mode of the manifest, such as 640.",
        manifest="nothing",
    ),
)
