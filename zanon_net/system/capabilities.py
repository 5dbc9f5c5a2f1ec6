# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Capabilities of a process that is not root's.

Capturing needs CAP_NET_RAW. CAP_IPC_LOCK locks keys in memory beyond the usual limit.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_CAP_NET_RAW, _CAP_IPC_LOCK = 1 << 13, 1 << 14
_VERSION = 0x20080522  # of both structures of capset(2)
_PR_SET_KEEPCAPS = 8


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Half(ctypes.Structure):
    """Half of each capability set: 32 capabilities."""

    _fields_ = tuple((name, ctypes.c_uint32) for name in ("effective", "permitted", "inheritable"))


def use_permitted() -> None:
    """Puts both capabilities in force if the thread is permitted to.

    The file of a program can permit a capability, as in a container, without being refused if the
    capability is missing.

    Raises OSError, or AttributeError on a system without capabilities.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    header, sets = _Header(_VERSION, 0), (_Half * 2)()
    _check(libc.capget(ctypes.byref(header), sets))
    unused = sets[0].permitted & ~sets[0].effective & (_CAP_NET_RAW | _CAP_IPC_LOCK)
    if unused:
        sets[0].effective |= unused
        _check(libc.capset(ctypes.byref(header), sets))


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
    """Puts the capability that `leave_capture` left in force inside the block; without it does
    nothing."""
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
