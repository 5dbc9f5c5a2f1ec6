# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of `filter`: its rows of the table in `schema`."""

from dataclasses import replace
from functools import partial

from zanon_net.config import ladder_rules, list_rows, log_rules, rules
from zanon_net.config.column_types import FILES
from zanon_net.config.rules import COUNT_MAX, Z_MAX
from zanon_net.config.setting import KEY_HELP, RANDOM_KEY, Setting
from zanon_net.config.types import (
    COLUMN,
    COLUMNS,
    DELIMITER,
    DURATION,
    FILE_MODE,
    FLAG,
    HEADER,
    KEY_FILE,
    NETWORKS,
    NEW_FILE,
    NULLS,
    PREFIX_LENGTHS,
    SUFFIXES,
    one_of,
    whole_number,
)

SECTION = "filter"  # of configuration files
SUPPRESSED = ("drop", "blank")
ROW_FORMATS = ("auto", "csv", "jsonl")
OUTPUTS = (*ROW_FORMATS, "parquet")
UNKNOWN = ("error", "suppress", "top")
TIME_UNITS = ("s", "ms", "us", "ns", "iso")
TUPLES, ATTRIBUTES = 1 << 26, 1 << 24
QUOTE = one_of(rules.QUOTES, f"must be one of {', '.join(rules.QUOTES)}")
QUOTE_HELP = (
    "The quoting of CSV's fields: csv as in RFC 4180, or none, with which a quote is a character of"
    " its field and every line is a row."
)
QUOTE_USUAL = "none with --delimiter tab, else csv"


# "frames" is the function `filter`, which takes tables in memory.
_anonymity = partial(Setting, commands=("filter", "frames"), heading="Anonymity")
_ANONYMITY = (
    _anonymity(
        name="z",
        type=whole_number("users", 1, Z_MAX),
        default=20,
        help="Users that must share an attribute before it is released; 1 releases every one.",
        manifest="as it is",
        core="gate.z",
    ),
    _anonymity(
        name="window",
        type=DURATION,
        default="1h",
        help="For how long a user's exposure of an attribute counts.",
        manifest=rules.shown_window,
        core="gate.window_ns",
    ),
    _anonymity(
        name="never",
        type=SUFFIXES,
        default=(),
        help="A file of suffixes, one a line; names that end in one are never released.",
        manifest=rules.shown_never,
        core="gate.never",
        core_value=rules.core_never,
        core_kind="texts",
    ),
    _anonymity(
        name="suppressed",
        type=one_of(SUPPRESSED, f"must be one of {', '.join(SUPPRESSED)}"),
        default="drop",
        help="Treatment of a row whose attribute is suppressed: drop the row, or blank the"
        " attribute (with --preset: all that identifies, and round the rest).",
        manifest="as it is",
        core="gate.keep_suppressed",
        core_value=rules.core_keep_suppressed,
    ),
)


_columns = partial(Setting, commands=("filter", "frames"), heading="Columns")
_COLUMNS = (
    _columns(
        name="time",
        type=COLUMN,
        default="time",
        help="The column of the time.",
        check=rules.check_columns,
        manifest="as it is",
    ),
    _columns(
        name="user",
        type=COLUMN,
        default="user",
        help="The column of the user.",
        check=rules.check_columns,
        manifest="as it is",
    ),
    _columns(
        name="attribute",
        type=COLUMN,
        default="attribute",
        help="The column of the attribute; with --levels several, separated by commas.",
        check=rules.check_columns,
        manifest="as it is",
    ),
    _columns(
        name="passed",
        type=COLUMNS,
        default=(),
        option=("--pass",),
        help="Write this column, too, as it is, not anonymized; repeatable.",
        check=rules.check_columns,
        manifest="as it is",
        core="columns",
        core_value=rules.core_columns,
        core_kind="row columns",
    ),
)


_logs = partial(
    Setting, commands=("filter",), heading="Logs of other tools", check=log_rules.check_preset
)
_LOGS = (
    _logs(
        name="preset",
        type=one_of(log_rules.PRESETS, f"must be one of {', '.join(log_rules.PRESETS)}"),
        default=None,
        help="The input is a log of this tool. It leaves as a log of the tool, with pseudonyms for"
        " clients and with names and servers that z users share.",
        manifest="as it is",
        core="preset",
        core_value=log_rules.core_preset,
    ),
    _logs(
        name="evidence",
        type=one_of(("established", "any"), "must be established or any"),
        default="established",
        help="Evidence that a client counts as a user: a column that shows the server's answer, or"
        " no evidence (any).",
        manifest=log_rules.shown_evidence,
        core="established",
        core_value=rules.core_established,
    ),
    _logs(
        name="internal",
        type=NETWORKS,
        default=None,
        help="The users' networks: a list such as 10.0.0.0/8,fd00::/8, a file with one a"
        " line, or 'any'.",
        usual="private ranges, else the client",
        manifest=log_rules.shown_internal,
        core="internal",
        core_value=rules.core_internal,
        core_kind="networks",
    ),
    _logs(
        name="user_prefix",
        type=PREFIX_LENGTHS,
        default=(32, 56),
        help="Leading bits of an IPv4 and of an IPv6 address that tell users apart.",
        manifest=log_rules.shown_user_prefix,
        core="user_prefix",
        core_kind="prefix lengths",
    ),
)


_ladder = partial(
    Setting, commands=("filter",), heading="Generalization", check=ladder_rules.check_ladder
)
_LADDER = (
    _ladder(
        name="levels",
        type=ladder_rules.LEVELS,
        default=None,
        help="Release a rare row as a coarser row that z users share: in steps that coarsen one"
        " column at a time by its --hierarchy (chain), or in the steps of a file. Release a rare"
        " name as its domain,category, or a rare address as its as,country.",
        manifest=ladder_rules.shown_levels,
        core="gate.labels.levels",
        core_value=ladder_rules.levels_of_attribute,
        core_kind="levels",
    ),
    _ladder(
        name="hierarchy",
        type=FILES,
        default=(),
        help="A column's hierarchy: a line a value, its ever coarser labels, '*' last, as ARX"
        " has them; repeatable.",
        manifest=ladder_rules.shown_hierarchy,
    ),
    _ladder(
        name="hierarchy_delimiter",
        type=DELIMITER,
        default=";",
        help="The character between the labels of a hierarchy, or the word tab.",
        manifest="nothing",
    ),
    _ladder(
        name="unknown",
        type=one_of(UNKNOWN, f"must be one of {', '.join(UNKNOWN)}"),
        default="error",
        help="Treatment of a row with a value that its hierarchy lacks: end the run, suppress"
        " the row, or take the value for '*'.",
        manifest=ladder_rules.shown_unknown,
    ),
)


_LISTS = tuple(
    replace(
        row,
        commands=("filter",),
        check=ladder_rules.check_labels,
        manifest=ladder_rules.shown_with_labels(row.manifest),
        core=row.core and f"gate.labels.{row.core}",
    )
    for row in list_rows.ROWS
    if callable(row.manifest)
)


_pseudonyms = partial(Setting, commands=("filter", "frames"), heading="Pseudonyms")
_PSEUDONYMS = (
    _pseudonyms(
        name="no_user",
        type=FLAG,
        default=False,
        help="Leave out the user's column, which otherwise holds a pseudonym.",
        manifest="as it is",
        core="gate.with_user",
        core_value=rules.core_with_user,
    ),
    _pseudonyms(
        name="rotate",
        type=DURATION,
        default=None,
        help="The time for which a user keeps one pseudonym.",
        usual="the window",
        manifest=rules.shown_rotate,
        core="gate.rotate_ns",
        core_value=rules.rotate_ns,
    ),
    _pseudonyms(
        name="key_file",
        type=KEY_FILE,
        default=None,
        help=KEY_HELP,
        usual=RANDOM_KEY,
        manifest=rules.shown_key,
        core="gate.key_file",
        core_kind="path",
    ),
)


_formats = partial(Setting, commands=("filter",), heading="Input and output")
_FORMATS = (
    _formats(
        name="format",
        type=one_of(ROW_FORMATS, f"must be one of {', '.join(ROW_FORMATS)}"),
        default="auto",
        help="Format of the input: CSV with a header line, or JSON Lines. auto takes JSON Lines if"
        " the input begins with '{'.",
        manifest="as it is",
        core="format",
        core_kind="row format",
    ),
    _formats(
        name="to",
        type=one_of(OUTPUTS, f"must be one of {', '.join(OUTPUTS)}", offered=OUTPUTS[1:]),
        default="auto",
        help="Format of the output.",
        usual="the input's",
        manifest="as it is",
        core="to",
        core_value=rules.core_to,
        core_kind="row format",
    ),
    _formats(
        name="time_unit",
        commands=("filter", "frames"),
        type=one_of(TIME_UNITS, f"must be one of {', '.join(TIME_UNITS)}"),
        default="iso",
        help="Unit of times counted from 1970, or iso: 2024-05-14T09:00:00.5+02:00 (UTC"
        " without an offset).",
        manifest="as it is",
        core="unit",
        core_kind="time unit",
    ),
    _formats(
        name="delimiter",
        type=DELIMITER,
        default=",",
        help="The character between CSV's columns, or the word tab.",
        manifest="as it is",
        core="delimiter",
        core_value=rules.core_delimiter,
    ),
    _formats(
        name="quote",
        type=QUOTE,
        default=None,
        help=QUOTE_HELP,
        usual=QUOTE_USUAL,
        manifest=rules.shown_quote,
        core="quotes",
        core_value=rules.core_quotes,
    ),
    _formats(
        name="null",
        type=NULLS,
        default=(),
        help="A text that means no value, such as Zeek's -; repeatable.",
        manifest="as it is",
        core="nulls",
        core_value=log_rules.core_nulls,
        core_kind="texts",
    ),
    _formats(
        name="header",
        type=HEADER,
        default="",
        help="The columns of CSV without a header line, such as time,user,attribute; the"
        " output then has no header line, either.",
        check=rules.check_header,
        manifest=rules.shown_header,
        core="header",
        core_value=rules.core_header,
        core_kind="text",
    ),
    _formats(
        name="strict",
        commands=("filter", "frames"),
        type=FLAG,
        default=False,
        rank=1,
        help="End at the first row that cannot be read; by default it is dropped and counted.",
        manifest="as it is",
        core="strict",
    ),
    _formats(
        name="mode",
        type=FILE_MODE,
        default="600",
        help="The mode of the file of --popularity, such as 640.",
        manifest="nothing",
    ),
    _formats(
        name="popularity",
        type=NEW_FILE,
        default=None,
        help="Count how many users share attributes, too, for 'zanon-net model' and 'tune';"
        " for the operator, not for release.",
        manifest=rules.shown_popularity,
        core="gate.popularity",
        core_value=rules.core_row_popularity,
    ),
)


_limits = partial(
    Setting, commands=("filter", "frames"), heading="Limits (at which more is suppressed)"
)
_LIMITS = (
    _limits(
        name="max_tuples",
        type=whole_number("pairs", 1, COUNT_MAX),
        default=TUPLES,
        help="Pairs of attribute and user kept at once.",
        manifest="as it is",
        core="gate.max_tuples",
    ),
    _limits(
        name="max_attributes",
        type=whole_number("attributes", 1, COUNT_MAX),
        default=ATTRIBUTES,
        help="Attributes kept at once.",
        manifest="as it is",
        core="gate.max_attributes",
    ),
)


_ALL = (
    *_ANONYMITY,
    *_COLUMNS,
    *_LOGS,
    *_LADDER,
    *_LISTS,
    *_PSEUDONYMS,
    *_FORMATS,
    *_LIMITS,
)
ROWS = tuple(replace(row, section=SECTION) for row in _ALL)
