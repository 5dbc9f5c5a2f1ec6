# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The file of `--never`, which a run reads again on SIGHUP."""

from typing import Any

from zanon_net._core import PacketEngine
from zanon_net.config.parse import NeverList, parse_never
from zanon_net.config.settings import Config
from zanon_net.errors import ConfigError
from zanon_net.system.log import log
from zanon_net.system.signals import Interruption


class NeverFile:
    """Gives an engine the suffixes of the file each time that a signal requests it.

    If the file cannot be read or has no suffix, the list stays as it is, with a warning.
    """

    def __init__(self, engine: PacketEngine, config: Config, interruption: Interruption) -> None:
        self._engine, self._interruption = engine, interruption
        never = config.anonymity.never
        self._path = never.path if isinstance(never, NeverList) else None
        self._times, self._suffixes = 0, 0

    def tick(self) -> None:
        """Reads the file again if a signal requested it. Call it between two batches."""
        if not self._interruption.take_reread() or self._path is None:
            return
        try:
            suffixes = parse_never("never", self._path)
            if not suffixes:
                raise ConfigError(f"never: {self._path} holds no suffix")
        except ConfigError as error:
            log.warning("warning: %s; the list from before stays in use", error)
            return
        self._engine.set_never([suffix.encode("ascii") for suffix in suffixes])
        self._times, self._suffixes = self._times + 1, len(suffixes)
        log.notice("never: %s was read again: %d suffixes", self._path, self._suffixes)

    def facts(self) -> dict[str, Any]:
        """Returns the manifest's entry of a list that was read again; empty if the list did not
        change."""
        if not self._times:
            return {}
        return {"never_reread": {"times": self._times, "suffixes": self._suffixes}}
