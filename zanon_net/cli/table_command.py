# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net table check` and `table risk`: whole tables, checked and attacked."""

import time
from typing import Any

import click

from zanon_net.cli.common import COMMON
from zanon_net.cli.messages import EXIT_PROMISE
from zanon_net.cli.options import GroupedCommand
from zanon_net.cli.table_options import (
    checked_plan,
    command_settings,
    print_facts,
    say_summary,
    table_options,
)
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


@click.command(
    "check",
    cls=GroupedCommand,
    common=COMMON["table check"],
    params=table_options("table check"),
    epilog=CHECK_EPILOG,
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
    plan = checked_plan(settings)
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
        print_facts("table check", settings, facts, time.monotonic() - began)
    elif not quiet:
        say_summary(report.summary)
    return 0 if report.holds else EXIT_PROMISE


@click.command(
    "risk",
    cls=GroupedCommand,
    common=COMMON["table risk"],
    params=table_options("table risk"),
    epilog=RISK_EPILOG,
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
    plan = checked_plan(settings)
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
        print_facts("table risk", settings, facts, time.monotonic() - began)
    elif not quiet:
        say_summary(report.summary)
    return 0
