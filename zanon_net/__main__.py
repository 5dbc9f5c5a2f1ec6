# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the command: `python -m zanon_net` is `zanon-net`."""

import gc
import signal
import sys


def start() -> None:
    """Runs the command and ends the process.

    Imports leave no garbage, so the collector rests during them, and during the end of the process.

    SIGINT ends the process without a traceback also while the command is imported and after its
    end, when no handler of zanon_net is installed. A SIGINT that the process was started to ignore,
    as in the background of a shell, stays ignored.
    """
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()
    from zanon_net.cli.commands import import_command
    from zanon_net.cli.entry import run_command_line

    import_command(sys.argv[1:])
    gc.freeze()
    gc.enable()
    if heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = run_command_line(None)
    except KeyboardInterrupt:  # the signal came after the command's own handler was removed
        code = 128 + signal.SIGINT
    if heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    start()
