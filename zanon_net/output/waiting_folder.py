# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Folder for the logs of interfaces, which waits for space on a full disk while the run continues.

The open part is cut to whole records and appears. Later records are lost, and counted, until there
is space for a new part.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from zanon_net.config.formats import FORMAT_OF
from zanon_net.errors import OutputError, ZanonError
from zanon_net.output.disk import DiskFacts
from zanon_net.output.files import PARTIAL
from zanon_net.output.folder import FolderSink, reserve
from zanon_net.output.sink import Parts, Plan, Tables
from zanon_net.system.file_errors import explained, lacks_room
from zanon_net.system.log import log

SPACE_BYTES = 16 << 20  # free space that a new part needs, or a share of the file system
SPACE_SHARE = 20


class WaitingFolderSink(FolderSink):
    """A FolderSink that raises no errors of a full disk, except if the disk is full from the
    start."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._is_full = False
        self._times_full = 0
        self._given = Counter[str]()  # records, by output
        self._lost = Counter[str]()  # records lost until writing resumed
        self._began_ns = time.time_ns()
        super().__init__(folder, plan)

    def take(self, parts: Parts, tables: Tables) -> None:
        """See Sink."""
        rows: dict[str, int] = {}
        for _period, texts, ends in parts:
            for output, (_lines, count) in texts.items():
                self._given[output] += count
            rows |= ends
        self._given.update(rows)
        self._unless_full(lambda: FolderSink.take(self, parts, tables))

    def rotate(self, first_ns: int, now_ns: int) -> None:
        """See Sink."""
        self._unless_full(lambda: FolderSink.rotate(self, first_ns, now_ns))

    def flush(self, *, blocks: bool) -> None:
        """See Sink."""
        self._unless_full(lambda: FolderSink.flush(self, blocks=blocks))

    def finish(self, first_ns: int | None) -> None:
        """See Sink."""
        self._unless_full(lambda: FolderSink.finish(self, first_ns))

    def _unless_full(self, write: Callable[[], None]) -> None:
        """Writes, unless the disk is full, or is found to be full."""
        if self._is_full:
            return
        try:
            write()
        except OutputError as error:
            if not lacks_room(error):
                raise
            self._stop_writing(error)

    def _stop_writing(self, error: OutputError) -> None:
        """Makes the whole records of the open part appear, and waits for space."""
        assert isinstance(error.__cause__, OSError)
        reason = error.__cause__.strerror
        log.warning(
            "warning: cannot write to %s: %s; records are lost until there is space",
            self.folder,
            reason,
        )
        self._divided = True
        if self._stamp_ns is None:
            self._stamp_ns = self._began_ns
        with suppress(OSError, ZanonError, ValueError):  # the last two are pyarrow's
            if not self._about_to_appear and self._keep_whole_records(self._stamp_ns):
                self._part_is_over(time.time_ns())
        self._remove_unfinished()
        self._is_full = True
        self._times_full += 1

    def tend(self) -> bool:
        """See Sink."""
        has_removed = super().tend()
        if not self._is_full:
            return has_removed
        try:
            self._need_space()
            self._begin()
        except OutputError as error:
            self._remove_unfinished()
            if not lacks_room(error):
                raise
            return has_removed
        self._stamp_ns = time.time_ns()
        self._lost = self._unwritten()
        self._is_full = False
        log.notice("there is space again: a new part begins; %s", self.disk.note())
        return True

    def _need_space(self) -> None:
        """Raises OutputError if the disk has no space for a new part.

        A file of that size is created and removed at once, because it also finds a user's quota.
        """
        self._reserve_for(len(self._files) + len(self._plan.outputs))
        probe = self.folder / f"space{PARTIAL}"
        with explained("write", probe):
            found = os.statvfs(self.folder)
            size = min(SPACE_BYTES, found.f_frsize * found.f_blocks // SPACE_SHARE)
            with self._transaction.making([probe]):
                file = probe.open("xb", buffering=0)
            try:
                with file:
                    reserve(file, size)
            finally:
                probe.unlink()
                self._transaction.forget(probe)

    def _unwritten(self) -> Counter[str]:
        """Returns the records that are in no file, while no file is open."""
        return Counter({output: n - self.written[output] for output, n in self._given.items()})

    @property
    def lost(self) -> Mapping[str, int]:
        """See Sink."""
        return self._unwritten() if self._is_full else self._lost

    @property
    def disk(self) -> DiskFacts:
        """See Sink."""
        lost = Counter[str]()
        for output, count in self.lost.items():
            view = self._plan.views.get(output)
            lost[FORMAT_OF[output].name if view is None else f"view {view}"] += count
        return replace(
            super().disk,
            times_full=self._times_full,
            waits=self._is_full,
            lost={name: count for name, count in sorted(lost.items()) if count},
        )
