# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the command: `python -m zanon_net` is `zanon-net`."""

import signal
import sys


def start() -> None:
    """Runs the command and ends the process.

    SIGINT ends it without a traceback also while it is loaded and behind its end, where nobody
    handles it. Where it is ignored, as in the background of a shell, it stays so.
    """
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from zanon_net.cli.entry import run_command_line

    if heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = run_command_line(None)
    except KeyboardInterrupt:  # right behind what handles it
        code = 128 + signal.SIGINT
    if heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)


if __name__ == "__main__":
    start()
