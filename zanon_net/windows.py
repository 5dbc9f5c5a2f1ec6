# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What a run does at the end of each window: remember its counts, set z for the next."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zanon_net._core import Engine
from zanon_net.adapting import ZController
from zanon_net.config import Config
from zanon_net.errors import ConfigError, ZanonError
from zanon_net.popularity import Popularity, PopularityWindow

PARTIAL = ".partial"


def bins_of(counts: NDArray[np.uint32]) -> tuple[int, ...]:
    """How many of the counts, each at least 1, are from 2^j to 2^(j+1) - 1, by j."""
    if len(counts) == 0:
        return ()
    powers = np.frexp(counts.astype(np.float64))[1] - 1
    return tuple(np.bincount(powers).tolist())


class PopularityFile:
    """The file of --popularity: appears whole, at the end, readable by its owner only.

    Raises ConfigError when there is something of this name, ZanonError when the system refuses.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._partial = self._path.with_name(self._path.name + PARTIAL)
        self._published = False
        if self._path.exists():
            raise ConfigError(f"popularity: {path} exists, and nothing is ever overwritten")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._handle = os.open(self._partial, flags, 0o600)
        except OSError as error:
            raise ZanonError(f"cannot write {self._partial}: {error.strerror}") from None
        self._file = os.fdopen(self._handle, "wb")

    def publish(self, popularity: Popularity) -> None:
        """Writes it and gives it its name. Raises ZanonError."""
        try:
            self._file.write(popularity.to_bytes())
            self._file.flush()
            os.fsync(self._handle)
            self._file.close()
            self._partial.rename(self._path)
            self._published = True
        except OSError as error:
            raise ZanonError(f"cannot write {self._path}: {error.strerror}") from None

    def discard(self) -> None:
        """Takes away what was written, also under its final name."""
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            (self._path if self._published else self._partial).unlink()


class Windows:
    """Reads each window that an engine has closed. Made before anything is read or written."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._seen: list[PopularityWindow] = []
        self._controller = ZController(config.anonymity) if config.anonymity.dynamic else None
        path = config.output.popularity
        self.file = None if path is None else PopularityFile(path)

    def see(self, engine: Engine) -> bool:
        """Takes the window that the engine has closed; false when there is none."""
        closed = engine.window()
        if closed is None:
            return False
        if self.file is not None:
            bins = bins_of(closed.counts)
            window = PopularityWindow(closed.start_ns, closed.whole, closed.users, bins)
            self._seen.append(window.rounded())
        if self._controller is not None and closed.whole:
            engine.set_z(self._controller.see(closed.end_ns, closed.users, closed.counts))
        return True

    def publish(self) -> None:
        """Writes the popularity file, where one was asked for. Raises ZanonError."""
        anonymity = self.config.anonymity
        if self.file is not None:
            self.file.publish(Popularity.of(anonymity.z, anonymity.window_ns, self._seen))

    def discard(self) -> None:
        """Takes the popularity file away again."""
        if self.file is not None:
            self.file.discard()

    def facts(self) -> Mapping[str, Any]:
        """What the manifest says about it."""
        if self._controller is None:
            return {}
        return {"z_changes": [change.to_dict() for change in self._controller.changes]}
