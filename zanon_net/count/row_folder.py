# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What was released of the rows that came with votes: a file a commit, FIRST-LAST and a suffix."""

from pathlib import Path

from zanon_net.count.commits import Commit
from zanon_net.count.folders import FOLDER_MODE, sync_commits, write_whole
from zanon_net.system.file_errors import explained


class RowFolder:
    """The folder. Raises OutputError."""

    def __init__(self, folder: Path, suffix: str) -> None:
        self._folder, self._suffix = folder, suffix
        with explained("make", folder):
            folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)

    def write(self, commit: Commit, rows: bytes) -> None:
        """Writes what a commit has released; the same again when it is done again."""
        if rows:
            write_whole(self._folder / f"{commit.name}{self._suffix}", rows, waits=True)

    def sync(self, offset: int) -> None:
        """Waits for the disk to have what was released since an offset."""
        sync_commits([self._folder], self._suffix, offset)
