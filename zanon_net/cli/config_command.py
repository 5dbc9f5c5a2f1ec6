# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net config`: every setting and its default."""

import click

from zanon_net.cli.messages import say
from zanon_net.config.example import example, write_example


@click.command("config")
@click.argument("file", required=False)
def config_command(file: str | None) -> int:
    """Write a configuration file with every setting and its default.

    To FILE, which must not exist, or to standard output.
    """
    if file is None:
        click.echo(example(), nl=False)
        return 0
    write_example(file)
    say(f"wrote every setting to {file}; use it with run --config {file}")
    return 0
