# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The system's errors about files, as one line that says what to do."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from zanon_net.errors import OutputError

_ADVICE = {
    errno.ENOSPC: "free some space and run again",
    errno.EDQUOT: "the disk quota is used up: free some space and run again",
    errno.EFBIG: "the limit on file sizes is reached: raise it with ulimit -f and run again",
    errno.EACCES: "choose a folder you may write to",
    errno.EPERM: "choose a folder you may write to",
    errno.EROFS: "choose a folder you may write to",
    errno.ENOENT: "make the folder it is to lie in first",
}

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of writing alone


def explanation(action: str, path: object, error: OSError) -> str:
    """Returns a line that says what failed, where, and what to do.

    action: a verb such as "write". path: the file, or a name for it.
    """
    advice = _ADVICE.get(error.errno or 0)
    text = f"cannot {action} {path}: {error.strerror or error}"
    return f"{text}; {advice}" if advice else text


@contextmanager
def explained(action: str, path: object) -> Iterator[None]:
    """Turns an OSError into an OutputError that says what failed, where, and what to do."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(explanation(action, path, error)) from error


def lacks_room(error: BaseException) -> bool:
    """Returns true if an OutputError is about a full disk, or a limit on sizes."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in NO_ROOM
