# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""New files: they appear under their names when they are whole, or not at all."""

import io
import os
from collections.abc import Mapping
from contextlib import suppress
from io import BufferedWriter, FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

from zanon_net.errors import ConfigError
from zanon_net.output.files import PARTIAL
from zanon_net.output.transaction import Transaction
from zanon_net.system.durability import sync_folders
from zanon_net.system.file_errors import explained

PRIVATE = 0o600


def create_private(path: Path, mode: int = PRIVATE) -> FileIO:
    """Creates the file, and opens it for writing without a buffer.

    mode: permissions of the file, whatever the umask is. Raises OSError, also if the name is taken.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(path, flags, PRIVATE)
    try:
        os.fchmod(handle, mode)
    except OSError:
        os.close(handle)
        path.unlink()
        raise
    return FileIO(handle, "wb")


def refuse_existing(path: str | os.PathLike[str]) -> None:
    """Raises ConfigError if the name is taken, OutputError if its folder does not exist."""
    with explained("write", path):
        Path(path).parent.stat()
    if os.path.lexists(path):  # a link too, which the rename would replace
        raise ConfigError(f"{path} exists, and nothing is ever overwritten; choose another file")


class NewFile:
    """A file, readable by its owner only, that is written as NAME.partial until `publish`.

    Raises ConfigError if the name is taken, OutputError if the system refuses.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._partial = path.with_name(path.name + PARTIAL)
        refuse_existing(path)
        with explained("write", self._partial):
            self._file = BufferedWriter(create_private(self._partial))
        self._published = False

    def write(self, data: bytes) -> None:
        """Appends. Raises OutputError."""
        with explained("write", self._path):
            self._file.write(data)

    def publish(self) -> None:
        """Gives the file its name after the disk has the content. Raises ConfigError,
        OutputError."""
        with explained("write", self._path):
            self._file.flush()
            os.fsync(self._file.fileno())
        refuse_existing(self._path)
        with explained("write", self._path):
            self._partial.rename(self._path)
        self._published = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._file.close()
        if not self._published:
            with suppress(OSError):
                self._partial.unlink()


def write_files(contents: Mapping[Path, bytes], modes: Mapping[Path, int] | None = None) -> None:
    """Writes new files, all of them or none; each appears when all are whole on the disk.

    modes: of files whose mode must differ from the umask's.

    Raises ConfigError if a file exists already, and OutputError.
    """
    for path in contents:
        if os.path.lexists(path):
            raise ConfigError(f"{path} exists, and nothing is ever overwritten; choose another")
    transaction = Transaction()
    try:
        for path, content in contents.items():
            partial = path.with_name(path.name + PARTIAL)
            with explained("write", path):
                mode = (modes or {}).get(path)
                with transaction.making([partial]):
                    file = (
                        partial.open("xb", buffering=0)
                        if mode is None
                        else create_private(partial, mode)
                    )
                with file:
                    _write_all(file, content)
                    os.fsync(file.fileno())
        for path in contents:
            with explained("write", path):
                transaction.rename(path.with_name(path.name + PARTIAL), path)
        sync_folders(path.parent for path in contents)
    except BaseException:
        transaction.remove()
        raise
    transaction.keep()


def _write_all(file: io.RawIOBase, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
