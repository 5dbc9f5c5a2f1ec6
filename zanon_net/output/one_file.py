# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""One output and its views to files, with a manifest next to them, or to nothing."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from zanon_net._core import FILE_NAMES
from zanon_net.errors import ConfigError
from zanon_net.output.files import PARTIAL, SUFFIXES, CaptureFile
from zanon_net.output.sink import Parts, Plan, Sink, Tables
from zanon_net.output.state_file import StateFile, next_path
from zanon_net.output.transaction import Transaction
from zanon_net.system.durability import sync_folders
from zanon_net.system.file_errors import explained

MANIFEST_SUFFIX = ".manifest.json"


def manifest_path(path: Path) -> Path:
    """Returns the path of the manifest of a file."""
    return path.with_name(path.name + MANIFEST_SUFFIX)


def _partial(path: Path) -> Path:
    return path.with_name(path.name + PARTIAL)


def view_path(path: Path, ending: str, view: str) -> Path:
    """Returns the path of a view's file, next to the main file: the view's name precedes the
    ending."""
    name = path.name
    return path.with_name(f"{name[: -len(ending)]}.{view}{name[-len(ending) :]}")


def refuse_taken(path: Path, views: Iterable[Path] = ()) -> None:
    """Raises ConfigError if a name that OneFileSink needs for these files is taken."""
    names = [path, *views, manifest_path(path)]
    for name in names:
        if os.path.lexists(name):
            raise ConfigError(f"{name} exists, and nothing is ever overwritten; choose another")
    for name in (*map(_partial, names), next_path(manifest_path(path))):
        if os.path.lexists(name):
            raise ConfigError(f"{name} exists: a run that was killed left it; remove it")


class OneFileSink(Sink):
    """One output of packets to a file, which appears whole and together with its manifest and the
    files of its views.

    Raises ConfigError or OutputError and then leaves no trace.
    """

    is_file = True
    may_async_sink = True

    def __init__(self, path: Path, plan: Plan) -> None:
        self.place = self.path = path
        ending = FILE_NAMES[plan.outputs[0]][1] + SUFFIXES[plan.compress]
        paths = {
            output: view_path(path, ending, plan.views[output]) if output in plan.views else path
            for output in plan.outputs
        }
        self._transaction = Transaction()
        self._open: dict[str, CaptureFile] = {}
        self._sizes: dict[str, int] = {}  # of the whole files
        self._state = StateFile(manifest_path(path), self._transaction, plan.mode)
        refuse_taken(path, [file for file in paths.values() if file != path])
        try:
            for output, file in paths.items():
                with self._transaction.making([_partial(file)]):
                    self._open[output] = CaptureFile(file, plan.headers[output], plan.compress)
        except BaseException:
            self.discard()
            raise

    def take(self, parts: Parts, tables: Tables) -> None:
        """See Sink."""
        for _period, texts, _rows in parts:
            for output, lines in texts.items():
                self._open[output].write(*lines)

    def flush(self, *, blocks: bool) -> None:
        """See Sink."""
        for file in self._open.values():
            file.flush(blocks=blocks)

    def keep_state(self, manifest: Callable[[], bytes]) -> None:
        """See Sink."""
        self._state.write(manifest())

    def finish(self, first_ns: int | None) -> None:
        """See Sink. Without a packet, a file is a capture without packets."""
        for output, file in self._open.items():
            self._sizes[output] = file.to_disk()

    def publish(self, manifest: bytes) -> None:
        """See Sink."""
        final = manifest_path(self.path)
        with explained("write", final):
            self._state.write_last(manifest)
        for path in (*(file.path for file in self._open.values()), final):
            with explained("write", path):
                self._transaction.rename(_partial(path), path)
        sync_folders([self.path.parent])
        self._transaction.keep()

    def discard(self) -> None:
        """See Sink."""
        for file in self._open.values():
            file.remove()
        self._transaction.remove()

    @property
    def files(self) -> list[dict[str, Any]]:
        """See Sink."""
        return [
            {"file": file.path.name, "bytes": self._sizes[output], "records": file.records}
            for output, file in self._open.items()
            if output in self._sizes
        ]

    @property
    def written(self) -> Mapping[str, int]:
        """See Sink."""
        return {output: file.records for output, file in self._open.items()}


class NoSink(Sink):
    """Counts outputs, and writes nothing."""

    def __init__(self, plan: Plan) -> None:
        self._records = dict.fromkeys(plan.outputs, 0)

    def take(self, parts: Parts, tables: Tables) -> None:
        """See Sink."""
        for _period, texts, _rows in parts:
            for output, (_lines, count) in texts.items():
                self._records[output] += count

    def finish(self, first_ns: int | None) -> None:
        """See Sink."""

    def publish(self, manifest: bytes) -> None:
        """See Sink."""

    def discard(self) -> None:
        """See Sink."""

    @property
    def written(self) -> Mapping[str, int]:
        """See Sink."""
        return self._records
