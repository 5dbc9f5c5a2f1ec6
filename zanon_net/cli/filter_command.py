# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net filter`: rows of observations through z-anonymity."""

from pathlib import Path
from typing import Any

import click

from zanon_net.cli.common import COMMON
from zanon_net.cli.configure import chosen, naming_options
from zanon_net.cli.messages import conclude, warn
from zanon_net.cli.options import FILTER_EPILOG, GroupedCommand, filter_options
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.config.table_settings import load_table
from zanon_net.rows.filtering import filter_rows
from zanon_net.system.signals import Interruption
from zanon_net.system.streams import STDIN


@click.command(
    "filter",
    cls=GroupedCommand,
    common=COMMON["filter"],
    params=filter_options(),
    epilog=FILTER_EPILOG,
)
def filter_command(
    source: tuple[str, ...], config_file: str | None, as_json: bool, quiet: bool, **options: Any
) -> int:
    """Release the observations whose attribute at least z users share.

    FILE is CSV or JSON Lines, or - for standard input, which is also read when there is none; give
    several in the order of their times. Standard output gets the time, the user's pseudonym and the
    attribute of each row, at once; all other columns are left out. With --preset, FILE is a log of
    another tool, and standard output gets a log of the same form.
    """
    written = {} if config_file is None else load_table(Path(config_file), "filter")
    with naming_options():
        config = FilterConfig(**written | chosen(options))
    for column in config.passed:
        warn(f"column {column!r} is written as it is: it is not anonymized")
    names = {row.name: f"--{row.name.replace('_', '-')}" for row in config.rows}
    with Interruption() as interruption, naming_options(names):
        report = filter_rows(source or (STDIN,), config, interruption=interruption, warn=warn)
    return conclude(report, as_json=as_json, quiet=quiet)
