# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Folders of released votes and rows, with one file per commit, FIRST-LAST and a suffix."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from zanon_net.count.commits import Commit
from zanon_net.count.folders import FOLDER_MODE, sync_commits, write_whole
from zanon_net.system.file_errors import explained


class RowFolder:
    """Folder of the released rows that came with votes. Raises OutputError."""

    def __init__(self, folder: Path, suffix: str) -> None:
        self._folder, self._suffix = folder, suffix
        with explained("make", folder):
            folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)

    def write(self, commit: Commit, rows: bytes) -> None:
        """Writes the released rows of a commit. A repeated commit writes an equal file."""
        if rows:
            write_whole(self._folder / f"{commit.name}{self._suffix}", rows, waits=True)

    def sync(self, offset: int) -> None:
        """Waits until the files of all commits from an offset on are on the disk."""
        sync_commits([self._folder], self._suffix, offset)


class ReleaseFolder:
    """Folder of the released votes as hashes, for audits and tests. Raises OutputError.

    Its files are NumPy's, with rows (t_ns, user, lo, hi).
    """

    SUFFIX = ".npy"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with explained("make", folder):
            folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)

    def write(self, commit: Commit, rows: "np.ndarray[Any, np.dtype[np.void]]") -> None:
        """Writes the released votes of a commit. A repeated commit writes an equal file."""
        if len(rows):
            content = BytesIO()
            np.save(content, rows, allow_pickle=False)
            write_whole(self._folder / f"{commit.name}{self.SUFFIX}", content.getvalue())

    def sync(self, offset: int) -> None:
        """Waits until the files of all commits from an offset on are on the disk."""
        sync_commits([self._folder], self.SUFFIX, offset)
