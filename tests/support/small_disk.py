# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A small file system, which can be filled and freed."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def can_mount(folder: Path, size: str) -> bool:
    """Mounts a file system of this size on the folder; false where that is not permitted."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    return shutil.which("mount") is not None and (
        subprocess.run(command, check=False, capture_output=True).returncode == 0
    )


class SmallDisk:
    """A mounted file system. path: of its root."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, free: int = 0) -> None:
        """Takes all space but so many bytes."""
        found = os.statvfs(self.path)
        size = (found.f_bavail - -(-free // found.f_frsize)) * found.f_frsize
        if size > 0:
            with self._ballast.open("ab") as file:
                os.posix_fallocate(file.fileno(), file.tell(), size)

    def free(self) -> None:
        """Gives the space back."""
        self._ballast.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[SmallDisk]:
    """A file system of this size, mounted on a new folder; skips the test where that is refused."""
    folder.mkdir()
    if not can_mount(folder, size):
        pytest.skip("mounting a tmpfs takes privileges")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
