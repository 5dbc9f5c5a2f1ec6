# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Protection of a process that holds traffic: no core dumps, and no new privileges."""

import ctypes
import resource
import sys
from contextlib import suppress

from zanon_net.system.capabilities import use_permitted

_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38


def harden() -> None:
    """Forbids core dumps, raises the limit of open files to the most that is allowed, and uses the
    capabilities that the program's file has."""
    forbid_core_dumps()
    with suppress(OSError, AttributeError):
        use_permitted()
    with suppress(OSError, ValueError):  # a run may have more sources than the usual 1024 files
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def forbid_core_dumps() -> None:
    """Disables core dumps, which could hold traffic. Best effort: systems differ in the means."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(_PR_SET_DUMPABLE, 0)


def gain_no_privileges() -> None:
    """Keeps the process, and programs that it starts, from privileges of a program's file."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
