# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Waiting for what another thread or process does, however slow the machine is."""

import fcntl
import struct
import termios
import time
from collections.abc import Callable

PATIENCE_S = 60


def wait_until(condition: Callable[[], bool]) -> None:
    """Fails when the condition does not come true."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_empty(pipe: int) -> bool:
    """Whether all that was written into a pipe has been read; asked at either end."""
    (unread,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
    return bool(unread == 0)
