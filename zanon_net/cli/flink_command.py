# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net flink`: counting on a cluster of Apache Flink."""

from typing import Any

import click

from zanon_net.cli.common import COMMON
from zanon_net.cli.configure import naming_options, read_options
from zanon_net.cli.messages import say
from zanon_net.cli.options import GroupedCommand, GroupedOption, setting_options

EPILOG = """\b
DURATION is a number and a unit: 500ms, 90s, 10m, 1h, 1d.
Exit codes: 0 done, 1 could not be done, 2 wrong option.

\b
Examples:
  zanon-net flink job --votes /srv/votes --z 20
  zanon-net flink submit --cluster 127.0.0.1:8081 --votes /srv/votes --z 20 --parallelism 2
"""


@click.command(
    "job",
    cls=GroupedCommand,
    common=COMMON["flink job"],
    params=setting_options("flink"),
    epilog=EPILOG,
)
def flink_job(**options: Any) -> int:
    """Run the counting job in a cluster of its own, within this process.

    It decides as `zanon-net count` does. Needs `pip install 'zanon-net[flink]'` and a JDK of
    Java 17.
    """
    from zanon_net.flink.client import run_here

    with naming_options():
        settings = read_options("flink", options)
    run_here(settings)
    return 0


@click.command(
    "submit",
    cls=GroupedCommand,
    common=COMMON["flink submit"],
    params=[
        GroupedOption(
            ["--cluster"],
            group="Job",
            required=True,
            metavar="HOST:PORT",
            help="The job manager's address for requests (rest.port).",
        ),
        *setting_options("flink"),
    ],
    epilog=EPILOG,
)
def flink_submit(cluster: str, **options: Any) -> int:
    """Start the counting job on a cluster, and print its number.

    The folders have to be there on all machines of the cluster, and so has the Python.
    """
    from zanon_net.flink.client import submit

    with naming_options():
        settings = read_options("flink", options)
        job = submit(cluster, settings)
    say(f"job {job} runs; stop it with: flink stop -m {cluster} {job}")
    click.echo(job)
    return 0
