# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The command `zanon-net`, one module a command."""

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code. No exception leaves it.

    arguments: those of the command line; None: the process's own.
    """
    from zanon_net.cli.entry import run_command_line  # late: SIGINT is handled before it is loaded

    return run_command_line(arguments)
