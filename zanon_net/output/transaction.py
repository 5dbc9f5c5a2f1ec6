# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Files and folders that a run has made and may have to remove again."""

import contextlib
import errno
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from zanon_net.errors import OutputError
from zanon_net.system.durability import sync_folders

WAITING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Transaction:
    """Files and folders that the run made, until they are kept or removed. Those of others are not
    touched.

    Signals are blocked until each file is both made and noted. A signal in between would leave a
    file behind, or cause the removal of another program's file.
    """

    def __init__(self) -> None:
        self._files: list[Path] = []
        self._folders: list[Path] = []

    @contextlib.contextmanager
    def making(self, files: Sequence[Path], folders: Sequence[Path] = ()) -> Iterator[None]:
        """Notes files and folders as made by the block, unless it raises OSError or OutputError."""
        former = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        there = False
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, WAITING_SIGNALS)  # a pending signal may raise
            there = True
            yield
        except (OSError, OutputError):
            there = False
            raise
        finally:
            if there:
                self._files += files
                self._folders += folders
            signal.pthread_sigmask(signal.SIG_SETMASK, former)

    def folder(self, path: Path) -> None:
        """Makes a folder. Raises OSError; FileExistsError if the name is taken."""
        with self.making((), [path]):
            path.mkdir()

    def forget(self, path: Path) -> None:
        """Forgets a file that does not exist any more."""
        self._files = [file for file in self._files if file != path]

    def has_folder(self, path: Path) -> bool:
        """Returns true if the run made this folder."""
        return path in self._folders

    def rename(self, file: Path, final: Path) -> None:
        """Gives a file of the run its name. Raises OSError as `folder` does."""
        _refuse_existing(final)
        with self.making([final]):
            file.rename(final)

    def rename_folder(self, folder: Path, final: Path) -> None:
        """Gives a folder of the run its name, with all files in it. Raises OSError as `folder`."""
        _refuse_existing(final)
        sync_folders([folder])  # a name must not survive a crash that its files do not survive
        files = [final / file.name for file in self._files if file.parent == folder]
        with self.making(files, [final]):
            folder.rename(final)

    def keep(self, but: Sequence[Path] = ()) -> None:
        """Forgets all files, which then stay, except the files `but`, which may still be
        removed."""
        self._files = [path for path in self._files if path in but]
        self._folders = []

    def remove(self, but: Sequence[Path] = ()) -> None:
        """Removes all files except `but`, as far as the system permits; a folder only if it is
        empty."""
        for path in self._files:
            if path not in but:
                with contextlib.suppress(OSError):
                    path.unlink()
        for folder in reversed(self._folders):
            if folder not in but:
                with contextlib.suppress(OSError):
                    folder.rmdir()
        self._files = [path for path in self._files if path in but]
        self._folders = [folder for folder in self._folders if folder in but]


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):  # also a link, or an empty folder, which the rename would replace
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
