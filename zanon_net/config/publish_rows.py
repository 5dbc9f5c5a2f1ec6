# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of `publish`: its rows of the table in `schema`."""

from dataclasses import replace
from functools import partial

from zanon_net.config import filter_rows, publish_rules, table_rows
from zanon_net.config.column_types import COLUMN_LIST
from zanon_net.config.publish_rules import ADAPT_L
from zanon_net.config.rules import COUNT_MAX
from zanon_net.config.setting import Setting
from zanon_net.config.table_rows import DIVERSITY, PORTION
from zanon_net.config.types import COLUMN, COLUMNS, DURATION, SIZE, one_of, whole_number

SECTION = "publish"  # of configuration files
BUFFERS = ("tumbling", "sliding")
PSEUDONYMS = ("none", "release")
ROWS_MAX = 1 << 24
L_MAX = 255  # less than ZN_WINDOW_L_MAX

_publish = partial(Setting, commands=("publish",), section=SECTION, manifest="as it is")


_columns = partial(_publish, heading="Columns")
_COLUMNS = (
    _columns(
        name="time",
        type=COLUMN,
        default="time",
        help="The column of the time; each row is written with the time of its release.",
        check=publish_rules.check_columns,
    ),
    _columns(
        name="user",
        type=COLUMN,
        default=None,
        help="The column of the row's user; it is not written.",
        usual="each row is a user of its own",
        check=publish_rules.check_user,
        core="window.with_user",
        core_value=publish_rules.core_with_user,
    ),
    _columns(
        name="quasi",
        type=COLUMN_LIST,
        default=(),
        help="The quasi-identifiers, separated by commas: columns by which a person could be"
        " found.",
        check=publish_rules.check_quasi,
    ),
    _columns(
        name="sensitive",
        type=COLUMN_LIST,
        default=(),
        help="The columns whose values must be diverse in each class.",
        check=publish_rules.check_diversity,
        core="window.groups.sensitive_count",
        core_value=publish_rules.core_sensitive_count,
    ),
    _columns(
        name="passed",
        type=COLUMNS,
        default=(),
        option=("--pass",),
        help="Write this column, too, as it is, not protected; repeatable.",
        check=publish_rules.check_columns,
        core="columns",
        core_value=publish_rules.core_columns,
        core_kind="row columns",
    ),
)


_classes = partial(_publish, heading="Requirements of each class of a release")
_CLASSES = (
    _classes(
        name="k",
        type=whole_number("users", 1, COUNT_MAX),
        default=10,
        help="Users with the same quasi-identifiers, as written.",
        check=publish_rules.check_window,
        core="window.groups.rule.k",
    ),
    _classes(
        name="l",
        type=whole_number("values", 1, L_MAX),
        default=1,
        help="Different values of each sensitive column, or the l of --l-kind; 1 asks for nothing.",
        check=publish_rules.check_window,
        core="window.groups.rule.l",
    ),
    _classes(
        name="l_kind",
        type=DIVERSITY,
        default="distinct",
        help="The kind of l-diversity.",
        check=publish_rules.check_diversity,
        core="window.groups.rule.kind",
        core_value=publish_rules.core_l_kind,
        core_kind="l kind",
    ),
    _classes(
        name="max_share",
        type=PORTION,
        default=None,
        help="Most that one sensitive value may have of a class.",
        usual="all of it",
        check=publish_rules.check_diversity,
        core="window.groups.rule.max_share",
        core_value=publish_rules.core_max_share,
    ),
)


_GENERALIZATION = (
    *(
        replace(row, section=SECTION, check=publish_rules.check_quasi)
        for row in table_rows.recodings("publish")
    ),
    _publish(
        heading="Generalization",
        name="unknown",
        type=one_of(table_rows.UNKNOWN, f"must be one of {', '.join(table_rows.UNKNOWN)}"),
        default="error",
        help="Treatment of a row with a value that its hierarchy lacks: an error, suppress the"
        " row, or write the hierarchy's top.",
        core="unknown",
        core_value=publish_rules.core_unknown,
    ),
)


_buffer = partial(_publish, heading="Buffer")
_BUFFER = (
    _buffer(
        name="rows",
        type=whole_number("rows", 1, ROWS_MAX),
        default=1000,
        help="Rows that are released together.",
        core="window.rows",
    ),
    _buffer(
        name="delay",
        type=DURATION,
        default=None,
        help="No row leaves later than this after its own time; a row without a group waits as"
        " long.",
        usual="no bound, and no row waits for the next window",
        manifest=publish_rules.shown_delay,
        core="window.delay_ns",
        core_value=publish_rules.core_delay,
    ),
    _buffer(
        name="buffer",
        type=one_of(BUFFERS, f"must be one of {', '.join(BUFFERS)}"),
        default="tumbling",
        help="Release all rows of the buffer together, or the oldest with those near it.",
        check=publish_rules.check_adapt,
        core="window.sliding",
        core_value=publish_rules.core_sliding,
    ),
    _buffer(
        name="neighbours",
        type=whole_number("groups", 1, 1000),
        default=3,
        help="Near groups with which a group that is not diverse can exchange rows.",
        core="window.groups.neighbours",
    ),
    _buffer(
        name="growth",
        type=whole_number("times k", 1, 1000),
        default=3,
        help="Most rows of a merged group, in multiples of k, while another way is left.",
        core="window.groups.growth",
    ),
    _buffer(
        name="lambda_",
        type=PORTION,
        default=0.7,
        option=("--lambda",),
        help="Weight of the detail that a repair loses, relative to the repair's work.",
        core="window.groups.lambda_",
    ),
    _buffer(
        name="adapt_l",
        type=ADAPT_L,
        default=None,
        help="Have repairs aim at an l up to MAX that follows the entropy of the first sensitive"
        " column: up when it falls, or down with it. The guarantee stays l.",
        usual="off",
        check=publish_rules.check_adapt,
        core="window.adapt",
        core_value=publish_rules.core_adapt,
        core_kind="adaptive l",
    ),
    _buffer(
        name="once",
        type=DURATION,
        default=None,
        help="Drop a user's further rows within this time; needs --delay.",
        usual="keep them",
        manifest=publish_rules.shown_once,
        check=publish_rules.check_once,
        core="window.once_ns",
        core_value=publish_rules.core_once,
    ),
    _buffer(
        name="idle",
        type=DURATION,
        default=None,
        help="With a pipe: release the rows that wait when no row has come for this long.",
        usual="wait",
        manifest=publish_rules.shown_idle,
    ),
    _buffer(
        name="max_memory",
        type=SIZE,
        default=1 << 30,
        help="Memory at which rows leave before their window is full.",
        core="max_memory",
    ),
    _buffer(
        name="pseudonym",
        type=one_of(PSEUDONYMS, f"must be one of {', '.join(PSEUDONYMS)}"),
        default="none",
        help="Write a pseudonym in the user's column, a new one in each release.",
        check=publish_rules.check_user,
        core="pseudonyms",
        core_value=publish_rules.core_pseudonyms,
    ),
)


_SHARED = ("format", "to", "time_unit", "delimiter", "quote", "header", "strict")
_FORMATS = tuple(
    replace(row, commands=("publish",), section=SECTION)
    for row in filter_rows.ROWS
    if row.name in _SHARED
)


ROWS = (*_COLUMNS, *_CLASSES, *_GENERALIZATION, *_BUFFER, *_FORMATS)
