# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The command `zanon-net`: the group of its commands, and the start and end of each call."""

import io
import os
import sys
from collections.abc import Sequence

import click

from zanon_net._version import __version__
from zanon_net.cli.commands import EPILOG, HELP_OPTIONS, LazyGroup, help_alone
from zanon_net.cli.completion import VARIABLE as COMPLETION
from zanon_net.cli.completion import complete
from zanon_net.cli.messages import COMMAND, explain, flush_stdout, say
from zanon_net.system.log import log
from zanon_net.system.streams import ClosedStdout

DEBUG_VARIABLE = "ZANON_DEBUG"


@click.group(
    cls=LazyGroup,
    context_settings=HELP_OPTIONS,
    invoke_without_command=True,
    epilog=EPILOG,
)
@click.version_option(__version__, prog_name=COMMAND, message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Turn network traffic into flow logs in which every name is shared by at least z users."""
    help_alone(ctx)
    from zanon_net.pipeline.hardening import harden  # late: --help needs no core

    harden()
    ctx.with_resource(log.printing(say))


def _invoke(arguments: Sequence[str]) -> int:
    # Not cli.main(): it prints and exits by itself on some errors.
    with cli.make_context(COMMAND, list(arguments)) as ctx:
        return int(cli.invoke(ctx) or 0)


def run_command_line(arguments: Sequence[str] | None) -> int:
    """Runs the command as `zanon_net.cli.main` does."""
    sys.stdout = sys.stdout or ClosedStdout()  # None if the process began without one
    if isinstance(sys.stdout, io.TextIOWrapper):  # a character outside the locale is no error
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error has it
    failed = False
    try:
        if arguments is None and (instruction := os.environ.get(COMPLETION)):
            code = complete(cli, instruction)
        else:
            code = _invoke(sys.argv[1:] if arguments is None else arguments)
    except click.exceptions.Exit as wish:
        code = wish.exit_code
    except BaseException as error:
        if os.environ.get(DEBUG_VARIABLE) == "1":
            import traceback

            traceback.print_exc()
        code, failed = explain(error), True
    return flush_stdout(failed) or code
