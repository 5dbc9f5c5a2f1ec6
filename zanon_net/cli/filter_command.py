# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net filter`: rows of observations through z-anonymity."""

from typing import Any

import click

from zanon_net.cli.common import COMMON
from zanon_net.cli.configure import chosen, naming_options
from zanon_net.cli.messages import conclude, warn
from zanon_net.cli.options import FILTER_EPILOG, GroupedCommand, filter_options
from zanon_net.config.filter_settings import FilterConfig
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
def filter_command(source: tuple[str, ...], as_json: bool, quiet: bool, **options: Any) -> int:
    """Release the observations whose attribute at least z users share.

    FILE is CSV or JSON Lines, or - for standard input, which is also read when there is none; give
    several in the order of their times. Standard output gets the time, the user's pseudonym and the
    attribute of each row, at once; all other columns are left out.
    """
    with naming_options():
        config = FilterConfig(**chosen(options))
    for column in config.passed:
        warn(f"column {column!r} is written as it is: it is not anonymized")
    with Interruption() as interruption:
        report = filter_rows(source or (STDIN,), config, interruption=interruption, warn=warn)
    return conclude(report, as_json=as_json, quiet=quiet)
