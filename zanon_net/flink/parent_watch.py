# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Ends a Python worker whose task manager was killed.

PyFlink starts its workers behind a shell, and a killed task manager can end neither of them. The
worker would wait forever, with the tables of its shards in memory.
"""

import os
import select
import signal
import threading
from functools import cache
from pathlib import Path

JAVA = "java"


@cache
def end_with_task_manager() -> None:
    """Ends this process when its ancestor JVM ends. Does nothing without a JVM as ancestor, as in
    `zanon-net flink job`, and on other systems than Linux."""
    java = _java_above(os.getppid()) if hasattr(os, "pidfd_open") else None
    if java is not None:
        threading.Thread(
            target=_end_after, args=(java,), name="task manager watch", daemon=True
        ).start()


def _java_above(pid: int) -> int | None:
    """Returns a descriptor of the nearest process of Java among a process and its ancestors.

    The descriptor is taken before the name is read, so it cannot be of a later process.
    """
    while pid > 1:
        try:
            descriptor = os.pidfd_open(pid)
        except OSError:
            return None
        try:
            # pid (command) state parent ...; a command may hold spaces and brackets.
            command, _, rest = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")
        except OSError:
            command, rest = "", ""
        if command.partition("(")[2] == JAVA:
            return descriptor
        os.close(descriptor)
        pid = int(rest.split()[1]) if rest else 0
    return None


def _end_after(descriptor: int) -> None:
    """Kills this process when the process of the descriptor has ended. Its state is in checkpoints,
    and no process reads its output any more."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    waiting.poll()
    os.kill(os.getpid(), signal.SIGKILL)
