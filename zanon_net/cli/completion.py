# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Completion of command lines in bash, zsh and fish."""

import os
from typing import TYPE_CHECKING

import click

from zanon_net.cli.messages import COMMAND, EXIT_USAGE, say

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VARIABLE = "_ZANON_NET_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


class PathName(click.types.StringParamType):
    """A text that names a file or a folder. Unlike `click.Path` it refuses none."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem[str]]":
        """See click.ParamType: the shell completes it by the files that are there."""
        from click.shell_completion import CompletionItem  # late: few calls complete anything

        return [CompletionItem(incomplete, type="file")]


PATH_NAME = PathName()


def complete(cli: click.Command) -> int | None:
    """Answers a shell that asks by the variable, on standard output; returns the exit code.

    None: no shell asks.
    """
    instruction = os.environ.get(VARIABLE)
    if not instruction:
        return None
    shell, _underscore, what = instruction.partition("_")
    if shell not in SHELLS or what not in ("source", "complete"):
        say(f"{VARIABLE}: must be bash_source, zsh_source or fish_source")
        return EXIT_USAGE
    from click.shell_completion import shell_complete

    return shell_complete(cli, {}, COMMAND, VARIABLE, instruction)
