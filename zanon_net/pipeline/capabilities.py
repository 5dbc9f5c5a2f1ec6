# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""CAP_NET_RAW, the one capability that capturing needs, of a process that is no longer root's."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_CAP_NET_RAW = 1 << 13
_VERSION = 0x20080522  # of both structures, capset(2)
_PR_SET_KEEPCAPS = 8


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Half(ctypes.Structure):
    """Half of each set, of 32 capabilities."""

    _fields_ = tuple((name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable"))


def keep_over_change_of_user() -> None:
    """Lets the thread keep its capabilities, though not in force, when its user changes.

    Raises OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.prctl(_PR_SET_KEEPCAPS, *(ctypes.c_ulong(n) for n in (1, 0, 0, 0))))


def leave_capture(*, in_force: bool = False) -> None:
    """Takes every capability but CAP_NET_RAW from the thread. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    sets = (_Half * 2)(_Half(_CAP_NET_RAW if in_force else 0, _CAP_NET_RAW, 0))
    _check(libc.capset(ctypes.byref(_Header(_VERSION, 0)), sets))


@contextmanager
def capture_in_force() -> Iterator[None]:
    """Inside, the capability that `leave_capture` left is in force; without it nothing happens."""
    with suppress(OSError):
        leave_capture(in_force=True)
    try:
        yield
    finally:
        with suppress(OSError):
            leave_capture()


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
