# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Waits for space on a full disk, in the middle of a write, so that no data is lost.

Only runs on captures wait here, because captures wait as long as their run does. Runs on interfaces
use `waiting_folder`.
"""

import errno
import time
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import TypeVar

from zanon_net.errors import OutputError
from zanon_net.output.disk import DiskRules
from zanon_net.system.log import log

CHECK_S = 2.0  # between two attempts to write
_SIGNAL_S = 0.1  # within which a signal ends the wait
# conditions that may pass; no wait helps at a limit on file sizes
_FREED = (errno.ENOSPC, errno.EDQUOT)

_Result = TypeVar("_Result")


class Room:
    """Repeats a call that found no space, if the rules let the run wait. A signal ends the wait.

    waits: true if the run ever waits. times: number of waits.
    """

    def __init__(self, rules: DiskRules) -> None:
        self._rules = rules
        self.waits = rules.waits and not rules.is_live
        self.times = 0

    def do(self, path: Path, call: Callable[[], _Result]) -> _Result:
        """Calls a function that may raise OSError or OutputError. If it raises, it must have no
        effect."""
        has_waited = False
        while True:
            try:
                result = call()
            except (OSError, OutputError) as error:
                if not self._wait(path, error, begins=not has_waited):
                    raise
                has_waited = True
            else:
                if has_waited:
                    log.notice("there is space again: the run continues")
                return result

    def _wait(self, path: Path, error: OSError | OutputError, *, begins: bool) -> bool:
        """Waits until the next attempt is due; returns false if there is no next attempt."""
        cause = error.__cause__ if isinstance(error, OutputError) else error
        is_full = isinstance(cause, OSError) and cause.errno in _FREED
        if not self.waits or not is_full or self._rules.gives_up():
            return False
        assert isinstance(cause, OSError)
        if begins:
            self.times += 1
            log.warning("warning: cannot write %s: %s; waiting for space", path, cause.strerror)
        due = time.monotonic() + CHECK_S
        while time.monotonic() < due and not self._rules.gives_up():
            time.sleep(_SIGNAL_S)
        return not self._rules.gives_up()


class PatientFile(FileIO):
    """New file whose writes wait for space."""

    def __init__(self, path: Path, room: Room) -> None:
        super().__init__(path, "xb")
        self._path, self._room = path, room

    def write(self, data: bytes, /) -> int:  # type: ignore[override]
        """Writes some of the data, as FileIO does."""
        return self._room.do(self._path, lambda: FileIO.write(self, data))
