# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Protection of a process that holds traffic: no core dumps, and no new privileges."""

import resource
from contextlib import suppress
from pathlib import Path

from zanon_net._core import set_process

STATUS = Path("/proc/thread-self/status")
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38


def harden() -> None:
    """Forbids core dumps, raises the limit of open files to the most that is allowed, and uses the
    capabilities that the program's file has."""
    forbid_core_dumps()
    if _may_have_unused():
        from zanon_net.system.capabilities import use_permitted  # late: it imports ctypes

        with suppress(OSError, AttributeError):
            use_permitted()
    with suppress(OSError, ValueError):  # a run may have more sources than the usual 1024 files
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _may_have_unused() -> bool:
    """Returns false if every capability that the thread is permitted to use is in force."""
    sets = {}
    with suppress(OSError), STATUS.open("rb") as file:
        for line in file:
            name, _colon, value = line.partition(b":")
            if name in (b"CapPrm", b"CapEff"):
                sets[name] = int(value, 16)
    return len(sets) < 2 or sets[b"CapPrm"] & ~sets[b"CapEff"] != 0


def forbid_core_dumps() -> None:
    """Disables core dumps, which could hold traffic. Best effort: systems differ in the means."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    set_process(_PR_SET_DUMPABLE, 0)


def gain_no_privileges() -> None:
    """Keeps the process, and programs that it starts, from privileges of a program's file."""
    set_process(_PR_SET_NO_NEW_PRIVS, 1)
