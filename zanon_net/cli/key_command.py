# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net key`: makes and checks key files."""

import click

from zanon_net.cli.messages import say
from zanon_net.cli.options import help_alone
from zanon_net.keys import check_key, new_key


@click.group("key", invoke_without_command=True)
@click.pass_context
def key_command(ctx: click.Context) -> None:
    """Make or check a key file for --key-file."""
    help_alone(ctx)


@key_command.command("new")
@click.argument("file")
def key_new(file: str) -> int:
    """Write a new random key to FILE, which must not exist.

    Whoever holds the key can undo the pseudonyms made with it: keep it apart from the logs.
    """
    new_key(file)
    say(f"wrote a new key to {file}; keep it secret and apart from the logs")
    return 0


@key_command.command("check")
@click.argument("file")
def key_check(file: str) -> int:
    """Check that FILE holds a key and that nobody else can read it."""
    check_key(file)
    say(f"{file} is a good key file")
    return 0
