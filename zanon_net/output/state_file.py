# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Manifest of an active run: whole at any time, even if the run is killed."""

import fcntl
import os
from contextlib import suppress
from io import BufferedWriter
from pathlib import Path

from zanon_net.output.files import PARTIAL
from zanon_net.output.new_file import PRIVATE, create_private
from zanon_net.output.transaction import Transaction
from zanon_net.system.log import log

MANIFEST = "manifest.json"
RESERVED = f"{MANIFEST}.reserved{PARTIAL}"
"""The file that a run keeps locked: it reserves disk space for the run's last manifest."""


def lock(handle: int) -> None:
    """Locks the file, so that other runs see that the run of this file is active.

    Without support for locks, other runs take every run for an active run.
    """
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX)  # others lock it briefly when they check


def next_path(manifest: Path) -> Path:
    """Returns the path of the next state, which will replace the present state."""
    return manifest.with_name(f"{manifest.name}.next{PARTIAL}")


class StateFile:
    """MANIFEST.partial, in which each state replaces the previous state by a rename.

    mode: permissions of the files.
    """

    def __init__(self, manifest: Path, transaction: Transaction, mode: int = PRIVATE) -> None:
        self.path = manifest.with_name(manifest.name + PARTIAL)
        self._next = next_path(manifest)
        self._transaction, self._mode = transaction, mode
        self._is_there = self._has_warned = False

    def write(self, state: bytes) -> None:
        """Writes the state of an active run.

        The state is not important enough to end the run or to wait for the disk. A state that
        cannot be written is left out, with a warning for the first. After a power cut the last
        state may be missing.
        """
        try:
            self._write(state, waits=False)
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                log.warning("warning: cannot write %s: %s", self.path, error.strerror)

    def write_last(self, manifest: bytes) -> None:
        """Writes the whole manifest to the disk. Raises OSError."""
        self._write(manifest, waits=True)

    def _write(self, state: bytes, *, waits: bool) -> None:
        with self._transaction.making([self._next]):
            file = BufferedWriter(create_private(self._next, self._mode))
        try:
            with file:
                file.write(state)
                if waits:
                    file.flush()
                    os.fsync(file.fileno())
            self.replace_by(self._next)
        except BaseException:
            with suppress(OSError):
                self._next.unlink()
            raise
        finally:
            self._transaction.forget(self._next)

    def replace_by(self, file: Path) -> None:
        """Gives its name to another file of the run. Raises OSError."""
        if self._is_there:
            file.replace(self.path)
        else:
            self._transaction.rename(file, self.path)
        self._is_there = True
