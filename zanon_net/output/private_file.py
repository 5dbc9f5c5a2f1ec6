# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""New files that only their owner may read, unless a mode says otherwise."""

import os
from io import FileIO
from pathlib import Path

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
