# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The options of `zanon-net filter` and their help; `FilterConfig` has the defaults."""

import click

from zanon_net._core import ROW_FORMATS, TIME_UNITS
from zanon_net.cli.options import MESSAGES, GroupedOption, json_option, setting
from zanon_net.config.filter_settings import SUPPRESSED, FilterConfig

FILTER_EPILOG = """\b
DURATION is a number and a unit: 500ms, 90s, 10m, 1h, 1d.
Exit codes: 0 done, 1 could not be done, 2 wrong option, or a column that is not there.

\b
Examples:
  zanon-net filter --z 5 --window 7d --user card --attribute product shop.csv > shared.csv
  zanon-net filter --time t --time-unit ms --attribute cell --suppressed blank trips.jsonl
  tail -n +1 -f meter.csv | zanon-net filter --user home --attribute appliance --no-user
"""


def filter_options() -> list[click.Parameter]:
    """FILE and every option of `filter`, in the order of its help."""
    return [
        click.Argument(["source"], nargs=-1, metavar="[FILE]..."),
        *_anonymity(),
        *_columns(),
        *_pseudonyms(),
        *_formats(),
        *_limits(),
        *_messages(),
    ]


def _anonymity() -> list[GroupedOption]:
    group, default = "Anonymity", FilterConfig()
    return [
        setting(
            group,
            "--z",
            "Users that must share an attribute before it is released; 1 releases every one.",
            default.z,
            metavar="N",
            type=int,
        ),
        setting(
            group,
            "--window",
            "For how long a user's exposure of an attribute counts.",
            default.window,
            metavar="DURATION",
        ),
        setting(
            group,
            "--suppressed",
            "What becomes of a row whose attribute is suppressed: drop it, or blank the attribute.",
            default.suppressed,
            type=click.Choice(SUPPRESSED),
        ),
    ]


def _columns() -> list[GroupedOption]:
    group, default = "Columns", FilterConfig()
    return [
        setting(group, "--time", "The column of the time.", default.time, metavar="NAME"),
        setting(group, "--user", "The column of the user.", default.user, metavar="NAME"),
        setting(
            group, "--attribute", "The column of the attribute.", default.attribute, metavar="NAME"
        ),
        GroupedOption(
            ["--pass", "passed"],
            group=group,
            metavar="NAME",
            multiple=True,
            help="Also write this column as it is, not anonymized; repeatable.",
        ),
    ]


def _pseudonyms() -> list[GroupedOption]:
    group = "Pseudonyms"
    return [
        GroupedOption(
            ["--no-user"],
            group=group,
            is_flag=True,
            default=None,
            help="Leave out the user's column, which otherwise holds a pseudonym.",
        ),
        setting(
            group,
            "--rotate",
            "How long a user keeps a pseudonym.",
            "the window",
            metavar="DURATION",
        ),
        setting(
            group,
            "--key-file",
            "The key of the pseudonyms, made by 'zanon-net key new': the same in every run.",
            "a random key that is never stored",
            metavar="FILE",
        ),
    ]


def _formats() -> list[GroupedOption]:
    group, default = "Input and output", FilterConfig()
    return [
        setting(
            group,
            "--format",
            "Format of the input: CSV with a header line, or JSON Lines. auto: JSON Lines if it"
            " begins with '{'.",
            default.format,
            type=click.Choice(ROW_FORMATS),
        ),
        setting(
            group,
            "--to",
            "Format of the output.",
            "the input's",
            type=click.Choice(ROW_FORMATS[1:]),
        ),
        setting(
            group,
            "--time-unit",
            "Unit of times counted from 1970, or iso: 2024-05-14T09:00:00.5+02:00 (UTC without an"
            " offset).",
            default.time_unit,
            type=click.Choice(TIME_UNITS),
        ),
        setting(
            group,
            "--delimiter",
            "The character between CSV's columns, or the word tab.",
            default.delimiter,
            metavar="C",
        ),
        setting(
            group,
            "--header",
            "The columns of CSV without a header line, such as time,user,attribute; the output has"
            " none either.",
            metavar="LINE",
        ),
        setting(
            group,
            "--popularity",
            "Also count how many users share attributes, for 'zanon-net model' and 'tune'; for the"
            " operator, not for release.",
            metavar="FILE",
        ),
        GroupedOption(
            ["--strict"],
            group=group,
            is_flag=True,
            default=None,
            help="End at the first row that cannot be read; by default it is dropped and counted.",
        ),
    ]


def _limits() -> list[GroupedOption]:
    group, default = "Limits (at which more is suppressed)", FilterConfig()
    return [
        setting(
            group,
            "--max-tuples",
            "Pairs of attribute and user kept at once.",
            default.max_tuples,
            metavar="N",
            type=int,
        ),
        setting(
            group,
            "--max-attributes",
            "Attributes kept at once.",
            default.max_attributes,
            metavar="N",
            type=int,
        ),
    ]


def _messages() -> list[GroupedOption]:
    return [
        json_option("Print the manifest, not the summary, on stderr."),
        GroupedOption(
            ["-q", "--quiet"], group=MESSAGES, is_flag=True, help="No summary, only warnings."
        ),
    ]
