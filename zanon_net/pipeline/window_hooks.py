# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Work of a run at the end of each window: keep its counts, set z for the next."""

from typing import TYPE_CHECKING, Any

from zanon_net._core import PacketEngine
from zanon_net.config.sections import ZParams
from zanon_net.config.settings import Config

if TYPE_CHECKING:
    from zanon_net.pipeline.adaptive_z import ZController


def controller(anonymity: ZParams) -> "ZController":
    """Returns the controller of a z that follows the stream. Raises MissingExtraError."""
    from zanon_net.pipeline.adaptive_z import (
        ZController,  # late: it imports NumPy, which other runs do not need
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
            from zanon_net.output.popularity_file import PopularityFile

            self._file = PopularityFile(
                path, anonymity.z, anonymity.window_ns, mode=config.output.file_mode
            )

    @property
    def z(self) -> int:
        """The z of the window that is open."""
        return self._z

    def see(self, engine: PacketEngine) -> bool:
        """Takes the window that the engine has closed; returns true if there was one."""
        closed = engine.window()
        if closed is None:
            return False
        if self._file is not None:
            attributes = engine.attribute_windows()
            self._file.add(closed, self._z, engine.window_levels(), attributes)
        if self._controller is not None and closed.whole:
            counts = engine.window_counts()
            self._z = self._controller.see(closed.end_ns, closed.users, counts)
            engine.set_z(self._z)
        return True

    def publish(self) -> None:
        """Writes the popularity file, if one was requested. Raises ZanonError."""
        if self._file is not None:
            self._file.publish()

    def discard(self) -> None:
        """Removes the popularity file."""
        if self._file is not None:
            self._file.discard()

    def facts(self) -> dict[str, Any]:
        """Returns the changes of z for the manifest; empty for a fixed z."""
        if self._controller is None:
            return {}
        return self._controller.facts()
