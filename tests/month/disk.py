# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A small file system for the output, which can be filled up."""

import os
import subprocess
from pathlib import Path


class Disk:
    """A file system in memory. Raises CalledProcessError where mounting is not permitted."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"
        folder.mkdir()
        options = f"size={size},mode=700"
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        subprocess.run(command, check=True, capture_output=True)

    @property
    def free(self) -> int:
        """Bytes that can be written."""
        told = os.statvfs(self.folder)
        return told.f_bavail * told.f_bsize

    def fill(self, left: int) -> None:
        """Leaves only so many bytes."""
        with self._ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, self.free - left)

    def clear(self) -> None:
        """Gives the room back."""
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        subprocess.run(["umount", "-l", str(self.folder)], check=True)
