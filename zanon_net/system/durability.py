# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Names of files that outlive a power cut: the disk has to have the entries of their folders."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def sync_folders(folders: Iterable[Path]) -> None:
    """Brings the folders' entries to disk, if the file system can."""
    for folder in dict.fromkeys(folders):
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
