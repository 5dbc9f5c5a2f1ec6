# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net publish`: whole rows of a stream, in classes, after a bounded delay."""

from collections.abc import Mapping
from typing import Any

import click

from zanon_net.cli.common import COMMON
from zanon_net.cli.configure import chosen, naming_options
from zanon_net.cli.messages import conclude, warn
from zanon_net.cli.options import (
    INPUT_AND_OUTPUT,
    GroupedCommand,
    GroupedOption,
    json_option,
    quiet_option,
    setting_options,
)
from zanon_net.config.publish_rows import SECTION
from zanon_net.config.schema import rows_of
from zanon_net.config.table_settings import table_settings
from zanon_net.rows.publishing import publish_rows
from zanon_net.system.signals import Interruption
from zanon_net.system.streams import STDIN

EPILOG = """\b
DURATION is a number and a unit: 500ms, 90s, 10m, 1h, 1d. SIZE is bytes: 500M, 20G.
Exit codes: 0 done, 1 could not be done, 2 wrong option, or a column that is not there.

\b
Examples:
  zanon-net publish --time t --user card --quasi city,age --hierarchy city=city.csv \\
      --round age=10 --clip age=0..99 --sensitive product --k 10 --l 3 --rows 1000 --delay 60s \\
      < shop.csv > shared.csv
  tail -n +1 -f trips.jsonl | zanon-net publish --time t --quasi zone --hierarchy zone=zone.csv \\
      --k 20 --rows 5000 --delay 10m --idle 1m
"""

OPTIONS = {name: row.options[0] for row in rows_of("publish") for name in (row.name, row.label)}
"""The option of each setting; an error that begins with another word stays as it is."""


def publish_options() -> list[click.Parameter]:
    """FILE and every option, in the order of the help."""
    options = setting_options("publish")
    return [
        click.Argument(["source"], nargs=-1, metavar="[FILE]..."),
        *options,
        GroupedOption(
            ["--config", "config_file"],
            group=INPUT_AND_OUTPUT,
            metavar="FILE",
            help=f"Settings from the section [{SECTION}] of a TOML file, by the options' names;"
            " options override them.",
        ),
        json_option("Print the manifest, not the summary, on stderr."),
        quiet_option("No summary, only warnings."),
    ]


def _taxonomies(settings: Mapping[str, Any]) -> list[Any]:
    """The hierarchies of the quasi-identifiers, in their order; says what is odd about them."""
    from zanon_net.microdata.settings import plan_of  # late: it needs NumPy

    with naming_options(OPTIONS):
        plan = plan_of(settings)
        found = []
        for recoding in plan.recodings.values():
            assert recoding is not None  # the settings were checked
            found.append(recoding.hierarchy(None))
    for hierarchy in found:
        for warning in hierarchy.warnings:
            warn(warning)
    return [hierarchy.taxonomy for hierarchy in found]


@click.command(
    "publish", cls=GroupedCommand, common=COMMON["publish"], params=publish_options(), epilog=EPILOG
)
def publish_command(
    source: tuple[str, ...], config_file: str | None, as_json: bool, quiet: bool, **options: Any
) -> int:
    """Release whole rows in classes of k users, after a bounded delay.

    FILE is CSV or JSON Lines, or - for standard input, which is also read when there is none; give
    several in the order of their times. Standard output gets releases: rows that were put together
    until each class of the same quasi-identifiers has k users and diverse sensitive values. All
    other columns are left out.
    """
    with naming_options(OPTIONS):
        settings = table_settings("publish", config_file, chosen(options))
    taxonomies = _taxonomies(settings)
    for column in settings["passed"]:
        warn(f"column {column!r} is written as it is: it is not protected")
    with naming_options(OPTIONS), Interruption() as interruption:
        report = publish_rows(
            source or (STDIN,), settings, taxonomies, interruption=interruption, warn=warn
        )
    return conclude(report, as_json=as_json, quiet=quiet)
