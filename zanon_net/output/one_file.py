# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""One output to a file with its manifest beside it, or to nothing."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zanon_net.errors import ConfigError
from zanon_net.output.files import PARTIAL, CaptureFile
from zanon_net.output.sink import Parts, Plan, Sink, Tables
from zanon_net.output.transaction import Transaction, sync_folders
from zanon_net.system.file_errors import explained

MANIFEST_SUFFIX = ".manifest.json"


def manifest_path(path: Path) -> Path:
    """The path of the manifest of a file."""
    return path.with_name(path.name + MANIFEST_SUFFIX)


def _partial(path: Path) -> Path:
    return path.with_name(path.name + PARTIAL)


def refuse_taken(path: Path) -> None:
    """Raises ConfigError where a name that OneFileSink needs for this file is taken."""
    for name in (path, manifest_path(path)):
        if os.path.lexists(name):
            raise ConfigError(f"{name} exists, and nothing is ever overwritten; choose another")
    for name in (_partial(path), _partial(manifest_path(path))):
        if os.path.lexists(name):
            raise ConfigError(f"{name} exists: a run that was killed left it; remove it")


class OneFileSink(Sink):
    """One output of packets to a file, which appears whole and together with its manifest.

    Raises ConfigError or OutputError, having left no trace.
    """

    is_file = True
    may_async_sink = True

    def __init__(self, path: Path, plan: Plan) -> None:
        self.place = self.path = path
        (self._output,) = plan.outputs
        self._transaction = Transaction()
        self._size: int | None = None  # once the file is whole
        refuse_taken(path)
        with self._transaction.making([_partial(path)]):
            self._file = CaptureFile(path, plan.headers[self._output], plan.compress)

    def take(self, parts: Parts, tables: Tables) -> None:
        """See Sink."""
        for _period, texts, _rows in parts:
            if self._output in texts:
                self._file.write(*texts[self._output])

    def finish(self, first_ns: int | None) -> None:
        """See Sink; without a packet the file is a capture of none."""
        self._size = self._file.to_disk()

    def publish(self, manifest: bytes) -> None:
        """See Sink."""
        final = manifest_path(self.path)
        partial = _partial(final)
        with explained("write", final):
            with self._transaction.making([partial]):
                file = partial.open("xb")
            with file:
                file.write(manifest)
                file.flush()
                os.fsync(file.fileno())
        for path in (self.path, final):
            with explained("write", path):
                self._transaction.rename(_partial(path), path)
        sync_folders([self.path.parent])
        self._transaction.keep()

    def discard(self) -> None:
        """See Sink."""
        self._file.remove()
        self._transaction.remove()

    @property
    def files(self) -> list[dict[str, Any]]:
        """See Sink."""
        if self._size is None:
            return []
        name, records = self.path.name, self._file.records
        return [{"file": name, "bytes": self._size, "records": records}]

    @property
    def written(self) -> Mapping[str, int]:
        """See Sink."""
        return {self._output: self._file.records}


class NoSink(Sink):
    """Counts one output, and writes nothing."""

    def __init__(self, plan: Plan) -> None:
        (self._output,) = plan.outputs
        self._records = 0

    def take(self, parts: Parts, tables: Tables) -> None:
        """See Sink."""
        for _period, texts, _rows in parts:
            if self._output in texts:
                self._records += texts[self._output][1]

    def finish(self, first_ns: int | None) -> None:
        """See Sink."""

    def publish(self, manifest: bytes) -> None:
        """See Sink."""

    def discard(self) -> None:
        """See Sink."""

    @property
    def written(self) -> Mapping[str, int]:
        """See Sink."""
        return {self._output: self._records}
