# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A file that appears under its name when it is whole, or not at all."""

import os
from contextlib import suppress
from io import BufferedWriter
from pathlib import Path
from types import TracebackType
from typing import Self

from zanon_net.output.files import PARTIAL
from zanon_net.output.popularity_file import refuse_existing
from zanon_net.output.private_file import create_private
from zanon_net.system.file_errors import explained


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
