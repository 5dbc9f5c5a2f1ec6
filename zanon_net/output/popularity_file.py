# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""File of --popularity while windows end. It appears whole after the last window, or not at all."""

import contextlib
import errno
import os
from collections import deque
from collections.abc import Mapping
from io import BufferedWriter
from pathlib import Path

from zanon_net._core import ClosedLevels, ClosedWindow
from zanon_net.output.files import PARTIAL
from zanon_net.output.new_file import PRIVATE, create_private, refuse_existing
from zanon_net.popularity import (
    LEVELS_MAX,
    WINDOWS_MAX,
    Exposures,
    LevelShares,
    Popularity,
    PopularityWindow,
)
from zanon_net.system.file_errors import explained


class PopularityFile:
    """Remembers the last WINDOWS_MAX windows, the last LEVELS_MAX with shares by level, and writes
    them.

    mode: permissions of the file.

    Raises ConfigError if the name is taken, OutputError if the system refuses.
    """

    def __init__(
        self, path: str | os.PathLike[str], z: int, window_ns: int, *, mode: int = PRIVATE
    ) -> None:
        self._path = Path(path)
        self._partial = self._path.with_name(self._path.name + PARTIAL)
        self._z, self._window_ns = z, window_ns
        self._windows: deque[PopularityWindow] = deque()
        self._omitted = 0
        self._published = False
        refuse_existing(path)
        with explained("write", self._partial):
            self._file = BufferedWriter(create_private(self._partial, mode))

    def add(
        self,
        closed: ClosedWindow,
        z: int | None = None,
        levels: ClosedLevels | None = None,
        attributes: Mapping[str, ClosedWindow] | None = None,
    ) -> None:
        """Keeps a window, unless it has fewer users than z. z: None means the z given at the
        start. levels: sums of the window by level. attributes: the counts of each attribute besides
        names in the window."""
        least = self._z if z is None else z
        if closed.users < least:
            self._omitted += 1
            return
        exposures, shares = (0, ()) if levels is None else shares_of(levels)
        window = PopularityWindow(
            closed.start_ns,
            closed.whole,
            closed.users,
            closed.bins,
            exposures,
            shares,
            {
                word: Exposures(counts.whole, counts.users, counts.bins)
                for word, counts in (attributes or {}).items()
                if counts.users >= least
            },
        )
        self._windows.append(window.rounded())
        if len(self._windows) > LEVELS_MAX:
            self._windows[-1 - LEVELS_MAX] = self._windows[-1 - LEVELS_MAX].without_levels()
        if len(self._windows) > WINDOWS_MAX:
            self._windows.popleft()
            self._omitted += 1

    def publish(self) -> None:
        """Writes the file and gives it its name. Raises OutputError."""
        content = Popularity(self._z, self._window_ns, tuple(self._windows), self._omitted)
        with explained("write", self._path):
            self._file.write(content.to_bytes())
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            if os.path.lexists(self._path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            self._partial.rename(self._path)
            self._published = True

    def discard(self) -> None:
        """Removes the file, whether it has its final name or not."""
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            (self._path if self._published else self._partial).unlink()


def shares_of(levels: ClosedLevels) -> tuple[int, tuple[LevelShares, ...]]:
    """Returns the exposures of a window, and their shares by level up to the first z at which
    nothing is shared; none without exposures."""
    n = levels.exposures
    shares = []
    for z, *counts, kept in levels.rows if n else ():
        name, domain, category = (count / n for count in counts)
        shares.append(LevelShares(z, name, domain, category, kept))
        if not any(counts):
            break
    return n, tuple(shares)
