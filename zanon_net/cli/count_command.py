# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net count`: one z over the votes of many probes."""

import json
from contextlib import closing
from typing import Any

import click

from zanon_net.cli.common import COMMON
from zanon_net.cli.configure import chosen, naming_options
from zanon_net.cli.messages import say, set_verbosity
from zanon_net.cli.options import GroupedCommand, json_option, quiet_option, setting_options
from zanon_net.config.count_settings import CountConfig
from zanon_net.count.url import read_place
from zanon_net.system.service import ServiceManager
from zanon_net.system.signals import Interruption

EPILOG = """\b
DURATION is a number and a unit: 500ms, 90s, 10m, 1h, 1d.
Exit codes: 0 done, 1 could not be done, 2 wrong option.

\b
Examples:
  zanon-net count file:/srv/votes --z 20
  zanon-net count tls://0.0.0.0:9471 --tls-cert counter.pem --tls-key counter.key \\
      --tls-ca ca.pem --state /var/lib/zanon-net/counter --state-key-file counter-state.key
  zanon-net count nats://127.0.0.1:4222/VOTES --shards 4 --metrics 127.0.0.1:9465
"""


def count_options() -> list[click.Parameter]:
    """SOURCE and every option, in the order of the help."""
    return [
        click.Argument(["source"], metavar="SOURCE"),
        *setting_options("count"),
        json_option("Print the counts at the end as JSON, on standard output."),
        quiet_option("No line at the end, only warnings."),
    ]


@click.command(
    "count", cls=GroupedCommand, common=COMMON["count"], params=count_options(), epilog=EPILOG
)
def count_command(source: str, as_json: bool, quiet: bool, **options: Any) -> int:
    """Decide for many probes what z users share.

    Probes (`zanon-net run --count-at`) send hashed votes here, and have a bit for each. SOURCE is
    tls://HOST:PORT to listen on; file:DIR, a folder that they share; nats://HOST:PORT/STREAM or
    kafka://HOST:PORT/TOPIC. It counts until SIGINT or SIGTERM, in one process on one machine. No
    name and no address comes here, nor a key that could test one.
    """
    from zanon_net.pipeline.counter_run import count

    set_verbosity(quiet=quiet, verbose=False)
    place = read_place("SOURCE", source)
    with (
        Interruption() as interruption,
        closing(ServiceManager()) as service,
        naming_options(),
    ):
        config = CountConfig(**chosen(options))
        counts = count(place, config, interruption=interruption, service=service)
    if as_json:
        click.echo(json.dumps(counts, indent=2, sort_keys=True))
    elif not quiet:
        say(
            f"{counts['votes']:,} votes in {counts['messages']:,} messages of"
            f" {counts['probes']:,} probes; {counts['decided']:,} decided,"
            f" {counts['table_released']:,} released"
        )
    return 0
