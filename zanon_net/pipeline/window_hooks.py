# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What a run does at the end of each window: remember its counts, set z for the next."""

from typing import TYPE_CHECKING, Any

from zanon_net._core import PacketEngine
from zanon_net.config.sections import ZParams
from zanon_net.config.settings import Config
from zanon_net.output.popularity_file import PopularityFile

if TYPE_CHECKING:
    from zanon_net.pipeline.adaptive_z import ZController


def controller(anonymity: ZParams) -> "ZController":
    """What sets z. Raises MissingExtraError."""
    from zanon_net.pipeline.adaptive_z import (
        ZController,  # with NumPy, which no other run waits for
    )

    return ZController(anonymity)


class WindowHooks:
    """Reads each window that an engine has closed. Made before anything is read or written."""

    def __init__(self, config: Config) -> None:
        self.config = config
        anonymity, path = config.anonymity, config.output.popularity
        self._z = anonymity.z
        self._controller = controller(anonymity) if anonymity.dynamic else None
        self._file = None
        if path is not None:
            self._file = PopularityFile(path, anonymity.z, anonymity.window_ns)

    def see(self, engine: PacketEngine) -> bool:
        """Takes the window that the engine has closed; false when there is none."""
        closed = engine.window()
        if closed is None:
            return False
        if self._file is not None:
            self._file.add(closed, self._z)
        if self._controller is not None and closed.whole:
            counts = engine.window_counts()
            self._z = self._controller.see(closed.end_ns, closed.users, counts)
            engine.set_z(self._z)
        return True

    def publish(self) -> None:
        """Writes the popularity file, where one was asked for. Raises ZanonError."""
        if self._file is not None:
            self._file.publish()

    def discard(self) -> None:
        """Takes the popularity file away again."""
        if self._file is not None:
            self._file.discard()

    def facts(self) -> dict[str, Any]:
        """What the manifest says about it."""
        if self._controller is None:
            return {}
        return self._controller.facts()
