# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Waits for another thread or process, however slow the machine is."""

import fcntl
import os
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PATIENCE_S = 60


def wait_until(condition: Callable[[], bool]) -> None:
    """Fails when the condition does not come true."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_empty(pipe: int) -> bool:
    """Whether all bytes written into a pipe have been read; takes either end."""
    (unread,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))
    return bool(unread == 0)


@contextmanager
def running(command: list[str], **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is killed at the end of the block, so that a failed test does not wait."""
    with subprocess.Popen(command, **more) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def filled(fifo: Path, data: bytes) -> Iterator[None]:
    """Makes a named pipe; inside, a thread writes the data into it, as far as it is read."""

    def write() -> None:
        with suppress(BrokenPipeError):
            fifo.write_bytes(data)

    os.mkfifo(fifo)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        while writer.is_alive():
            os.close(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))  # unblocks a writer without reader
            writer.join(0.02)
