# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net table`: whole tables, checked, attacked and generalized."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import click

from zanon_net._version import __version__
from zanon_net.cli.configure import chosen, naming_options
from zanon_net.cli.messages import EXIT_PROMISE, print_manifest, warn
from zanon_net.cli.options import (
    INPUT_AND_OUTPUT,
    GroupedCommand,
    GroupedOption,
    help_alone,
    json_option,
    quiet_option,
    setting_options,
)
from zanon_net.cli.table_hierarchy import table_hierarchy
from zanon_net.config.schema import SETTINGS, rows_of
from zanon_net.config.setting import manifest_of
from zanon_net.config.table_rows import SECTION
from zanon_net.config.table_settings import table_settings
from zanon_net.errors import ConfigError

CHECK_EPILOG = """\b
Exit codes: 0 done, and what was asked for holds; 1 could not be done; 2 wrong option, or a column
that is not there; 3 it does not hold.

\b
Examples:
  zanon-net table check shared.csv --quasi age,zip,sex --sensitive disease
  zanon-net table check shared.parquet --quasi age,zip --sensitive disease --k 5 --l 3 -q
"""

RISK_EPILOG = """\b
DURATION is a number and a unit: 500ms, 90s, 10m, 1h, 1d.
Exit codes: 0 done, 1 could not be done, 2 wrong option, or a column that is not there.

\b
Examples:
  zanon-net table risk data.csv --original data.csv --quasi age,zip,sex --sensitive disease
  zanon-net table risk shared.csv --original data.csv --quasi age,zip --sensitive disease \\
      --round age=10 --hierarchy zip=zip.csv
"""

OPTIONS = {
    name: row.options[0]
    for row in SETTINGS
    if row.section == SECTION
    for name in (row.name, row.label)
}
"""The option of each setting; an error that begins with another word stays as it is."""


@click.group("table", invoke_without_command=True)
@click.pass_context
def table_command(ctx: click.Context) -> None:
    """Check and generalize whole tables; say what they disclose."""
    help_alone(ctx)


def table_options(command: str) -> list[click.Parameter]:
    """FILE and every option of a command of `table`, in the order of its help."""
    options = setting_options(command)
    last = max(i for i, option in enumerate(options) if option.group == INPUT_AND_OUTPUT)
    return [
        click.Argument(["file"]),
        *options[: last + 1],
        GroupedOption(
            ["--config", "config_file"],
            group=INPUT_AND_OUTPUT,
            metavar="FILE",
            help="Settings from the section [table] of a TOML file, by the options' names; options"
            " override them.",
        ),
        *options[last + 1 :],
        json_option("Print the manifest, not the summary."),
        quiet_option("No summary."),
    ]


def command_settings(
    command: str, config_file: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings of a command. Raises ConfigError with a text that begins with the option."""
    with naming_options(OPTIONS):
        return table_settings(command, config_file, chosen(options))


def _plan(settings: Mapping[str, Any]) -> Any:
    """The plan of the settings; says what is odd about a hierarchy."""
    from zanon_net.microdata.settings import plan_of

    with naming_options(OPTIONS):
        plan = plan_of(settings)
    for recoding in plan.recodings.values():
        for warning in getattr(recoding, "warnings", ()):
            warn(warning)
    return plan


def _print(
    command: str,
    settings: Mapping[str, Any],
    facts: Mapping[str, Any],
    seconds: float,
) -> None:
    """Prints a manifest on standard output."""
    manifest = {
        "name": f"zanon-net {command}",
        "version": __version__,
        "configuration": manifest_of(rows_of(command), settings),
        **facts,
    }
    print_manifest(manifest, {"seconds": round(seconds, 6)}, err=False)


def _say(summary: Callable[[int], str]) -> None:
    """Prints a summary on standard output: it is what was asked for."""
    from zanon_net._text import terminal_width

    click.echo(summary(terminal_width()), nl=False)


@table_command.command(
    "check", cls=GroupedCommand, params=table_options("table check"), epilog=CHECK_EPILOG
)
def table_check(
    file: str, config_file: str | None, as_json: bool, quiet: bool, **options: Any
) -> int:
    """Say what holds in a table, or whether what was asked for does.

    FILE is CSV, JSON Lines or Parquet, or - for standard input. Without --k, --l and the like the
    summary says the largest that hold.
    """
    from zanon_net.microdata.checking import check_rows
    from zanon_net.microdata.tables import name_of, read_table

    began = time.monotonic()
    settings = command_settings("table check", config_file, options)
    plan = _plan(settings)
    rows = read_table(
        file,
        plan.read_columns,
        form=settings["format"],
        delimiter=settings["delimiter"],
        quote=settings["quote"],
    )
    report = check_rows(rows, plan)
    if as_json:
        facts = {"source": name_of(file), **report.to_dict()}
        _print("table check", settings, facts, time.monotonic() - began)
    elif not quiet:
        _say(report.summary)
    return 0 if report.holds else EXIT_PROMISE


@table_command.command(
    "risk", cls=GroupedCommand, params=table_options("table risk"), epilog=RISK_EPILOG
)
def table_risk(
    file: str, config_file: str | None, as_json: bool, quiet: bool, **options: Any
) -> int:
    """Say what somebody who knows people's quasi-identifiers learns from a table.

    FILE is the table that is to be shared, --original the one before it was generalized. How often
    is a person's row among the first, or the first five, that fit what is known of the person, and
    how often is the most frequent sensitive value of those the person's?
    """
    from zanon_net.microdata.attack import risk_of_rows
    from zanon_net.microdata.tables import name_of, read_table

    began = time.monotonic()
    settings = command_settings("table risk", config_file, options)
    if not settings["original"]:
        raise ConfigError("--original: name the table before it was generalized")
    if (settings["time"] is None) != (settings["delay"] is None):
        missing = "--time" if settings["time"] is None else "--delay"
        raise ConfigError(f"{missing}: give --time and --delay together")
    plan = _plan(settings)
    columns = list(plan.read_columns)
    columns += [] if settings["time"] is None else [settings["time"]]
    original, released = (
        read_table(
            source,
            columns,
            form=settings["format"],
            delimiter=settings["delimiter"],
            quote=settings["quote"],
        )
        for source in (settings["original"], file)
    )
    report = risk_of_rows(
        original,
        released,
        plan,
        time=settings["time"],
        delay=settings["delay"],
        time_unit=settings["time_unit"],
    )
    if as_json:
        facts = {"source": name_of(file), **report.to_dict()}
        _print("table risk", settings, facts, time.monotonic() - began)
    elif not quiet:
        _say(report.summary)
    return 0


table_command.add_command(table_hierarchy)
