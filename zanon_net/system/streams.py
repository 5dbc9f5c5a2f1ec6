# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Standard streams and named pipes: checks, and reads whose wait a signal ends."""

import io
import os
import select
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from zanon_net.errors import ConfigError, ZanonError

STDIN = "-"
WAIT_MS = 200

Source = str | os.PathLike[str]
"""A path, or "-" for standard input."""


def check_sources(sources: Sequence[Source]) -> None:
    """Raises ConfigError for sources that are surely a mistake, whether they exist or not."""
    if not sources or list(sources).count(STDIN) > 1:
        raise ConfigError("give one source or more, and standard input only once")
    if "" in sources:
        raise ConfigError("a source without a name was given; was it a variable that is not set?")
    if any("\0" in str(source) for source in sources):  # the system would cut it there
        raise ConfigError("the name of a source holds a zero byte")


def wait_for_bytes(fd: int) -> None:
    """Waits for bytes, a connection, or the end.

    A signal that comes right before the wait is handled, too.
    """
    waiting = select.poll()
    waiting.register(fd, select.POLLIN)
    while not waiting.poll(WAIT_MS):
        pass  # Python runs its handlers here


def read_stream(fd: int, most: int) -> bytes:
    """Reads as os.read, up to `most` bytes; a signal right before the wait is handled, too."""
    wait_for_bytes(fd)
    return os.read(fd, most)


def open_path(path: Path, *, is_file: bool = False) -> int:
    """Opens for reading as os.open. Waits for a named pipe's writer as read_stream waits for
    bytes.

    is_file: true if the path is known to be a regular file.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY
    # on other systems poll takes the missing writer for the end
    if is_file or sys.platform != "linux" or not path.is_fifo():
        return os.open(path, flags)
    fd = os.open(path, flags | os.O_NONBLOCK)
    try:
        wait_for_bytes(fd)
        os.set_blocking(fd, True)
    except BaseException:
        os.close(fd)
        raise
    return fd


class ClosedStdout(io.StringIO):
    """Replaces a standard output that was closed, to which Python would silently write nothing."""

    def write(self, _text: str, /) -> int:
        """Raises ZanonError."""
        raise ZanonError("standard output is closed")


def writes_to_file() -> bool:
    """Returns true if standard output is a regular file."""
    try:
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (AttributeError, OSError, ValueError):  # closed, or no file
        return False


def refuse_stdout(file: int | str | os.PathLike[str], name: str) -> None:
    """Raises ConfigError, with `name`, if `file` is a regular file that is also standard output.

    The file would grow by all bytes read from it, and reading would never end.
    """
    try:
        output = os.fstat(sys.stdout.fileno())
        found = os.fstat(file) if isinstance(file, int) else Path(file).stat()
    except (AttributeError, OSError, ValueError):  # closed, or not a file
        return
    if stat.S_ISREG(output.st_mode) and os.path.samestat(output, found):
        raise ConfigError(f"{name} is also where standard output goes; choose another file")
