# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What was released, as hashes, for audits and tests: a file a commit, FIRST-LAST.npy."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from zanon_net.count.commits import Commit
from zanon_net.count.folders import FOLDER_MODE, sync_commits, write_whole
from zanon_net.system.file_errors import explained

SUFFIX = ".npy"


class ReleaseFolder:
    """The folder. Its files are NumPy's, of rows (t_ns, user, lo, hi). Raises OutputError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with explained("make", folder):
            folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)

    def write(self, commit: Commit, rows: "np.ndarray[Any, np.dtype[np.void]]") -> None:
        """Writes what a commit has released; the same again when it is done again."""
        if len(rows):
            content = BytesIO()
            np.save(content, rows, allow_pickle=False)
            write_whole(self._folder / f"{commit.name}{SUFFIX}", content.getvalue())

    def sync(self, offset: int) -> None:
        """Waits for the disk to have what was released since an offset."""
        sync_commits([self._folder], SUFFIX, offset)
