# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net table check` and `table risk`: whole tables, checked and attacked."""

import time
from typing import Any

import click

from zanon_net.cli.common import COMMON
from zanon_net.cli.configure import naming_options
from zanon_net.cli.messages import EXIT_PROMISE
from zanon_net.cli.options import GroupedCommand
from zanon_net.cli.table_options import (
    OPTIONS,
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
  zanon-net table risk shared.csv --population register.csv --quasi age,zip,sex
  zanon-net table risk shared.csv --sampling 10% --quasi age,zip,sex
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
    how often is the most frequent sensitive value of those the person's? --population or --sampling
    give the risk of an attacker who does not know whether a person is in FILE.
    """
    from zanon_net.microdata.attack import risk_of_rows
    from zanon_net.microdata.tables import name_of, read_table

    began = time.monotonic()
    settings = command_settings("table risk", config_file, options)
    sources = {
        name: settings[name] for name in ("original", "population") if settings[name] is not None
    }
    if not sources and settings["sampling"] is None:
        raise ConfigError(
            "--original: name the table before it was generalized, or --population or --sampling"
        )
    if (settings["time"] is None) != (settings["delay"] is None):
        missing = "--time" if settings["time"] is None else "--delay"
        raise ConfigError(f"{missing}: give --time and --delay together")
    plan = checked_plan(settings)
    columns = list(plan.read_columns)
    columns += [] if settings["time"] is None else [settings["time"]]
    read_as = {name: settings[name] for name in ("delimiter", "quote")}
    tables = {
        name: read_table(
            source,
            plan.quasi_columns if name == "population" else columns,
            form=settings["format"],
            **read_as,
        )
        for name, source in (*sources.items(), ("released", file))
    }
    with naming_options(OPTIONS):
        report = risk_of_rows(
            tables.get("original"),
            tables["released"],
            plan,
            population=tables.get("population"),
            sampling=settings["sampling"],
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
