# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Completion by bash, zsh and fish: click's own, and paths where a parameter names a file."""

import click

from zanon_net.cli.commands import LazyGroup
from zanon_net.cli.messages import COMMAND, EXIT_OPERATIONAL

VARIABLE = (
    "_ZANON_NET_COMPLETE"  # what the shells' scripts set: `bash_source`, `bash_complete`, ...
)


def complete(cli: click.Group, instruction: str) -> int:
    """Prints the script or the words that a shell asks for; returns the exit code."""
    from click.shell_completion import shell_complete  # late: no other call needs it

    LazyGroup.prepare = _know_paths
    try:
        return shell_complete(cli, {}, COMMAND, VARIABLE, instruction)
    except (KeyError, ValueError):  # no shell asked: it would set the words and a number
        return EXIT_OPERATIONAL


def _know_paths(command: click.Command) -> None:
    """Makes words into paths for this call, which runs nothing: only these are completed."""
    for parameter in command.params:
        if isinstance(parameter, click.Argument) or parameter.metavar in ("FILE", "DIR"):
            parameter.type = click.Path(file_okay=parameter.metavar != "DIR")
