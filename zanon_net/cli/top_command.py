# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net top`: a run that goes on, on a terminal."""

import sys
from pathlib import Path

import click

from zanon_net.cli.options import GroupedCommand
from zanon_net.errors import ZanonError

EPILOG = """\b
Exit codes: 0 done, 1 no run answers, 2 wrong option.

\b
Examples:
  zanon-net top 127.0.0.1:9464
  zanon-net top 127.0.0.1:9464 --names /var/lib/zanon-net/logs
"""


@click.command("top", cls=GroupedCommand, epilog=EPILOG)
@click.argument("address", metavar="ADDR:PORT")
@click.option(
    "--names",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Show the names released most often, too: those in the observations that the run writes"
    " into DIR, without compression.",
)
def top_command(address: str, names: Path | None) -> int:
    """Watch a run: rates, decisions, drops and the z-table.

    ADDR:PORT is where the run serves its metrics (`run --metrics`). Without --names no name is
    shown. Figures have three digits, as the metrics have. Needs `pip install 'zanon-net[top]'`.
    """
    from zanon_net.top.app import Top
    from zanon_net.top.released_names import ReleasedNames
    from zanon_net.top.scrape import Endpoint

    endpoint = Endpoint(address)
    released = None if names is None else ReleasedNames(names)
    first = endpoint.scrape()
    if not sys.stdout.isatty():
        raise ZanonError("top needs a terminal; programs read the metrics themselves")
    app = Top(endpoint, first, released)
    app.run()
    return app.return_code or 0
