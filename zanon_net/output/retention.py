# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Removal of whole old parts, by --keep and --max-disk. The open part is never removed."""

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from zanon_net._core import FILE_NAMES
from zanon_net._record import dataclass
from zanon_net.config.formats import FORMAT_OF
from zanon_net.config.parse import format_duration, format_size
from zanon_net.output.disk import DiskRules, Removed
from zanon_net.output.earlier_runs import EarlierPart, earlier_parts, note_removed
from zanon_net.output.files import SUFFIXES
from zanon_net.output.part_files import PartFile, find, folder_of_ours, remove
from zanon_net.system.log import log

AT_ONCE = 4
"""Parts that a run on interfaces removes at one look, because nothing empties the ring
meanwhile."""


def format_of(path: str) -> str | None:
    """Returns the format of an output's file by its name; None if the file is a view's."""
    name = path.rpartition("/")[2]
    for packed in SUFFIXES.values():
        name = name.removesuffix(packed)
    for output, form in FORMAT_OF.items():
        stem, suffix = FILE_NAMES[output]
        if name.startswith(stem) and name.endswith(suffix):
            stamp = name[len(stem) : len(name) - len(suffix)]
            if stamp == "" or (stamp.startswith("-") and "." not in stamp):
                return form.name
    return None


def _records_by_format(files: Iterable[PartFile]) -> dict[str, int]:
    records: Counter[str] = Counter()
    for file in files:
        name = format_of(file.path)
        if name is not None:
            records[name] += file.records
    return dict(records)


def _now_ns() -> int:
    """Returns the time of a clock that is never set and that continues while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock)


@dataclass(slots=True, eq=False)
class _Part:
    """A part that is over.

    over_ns: time of its end. earlier: the part of an earlier run; None if it is of this run.
    is_stuck: true if its removal failed. Other parts are removed all the same, but no younger part
    is removed in its place.
    """

    files: Sequence[PartFile]
    over_ns: int
    earlier: EarlierPart | None = None
    is_stuck: bool = False

    @property
    def bytes(self) -> int:
        """Bytes that the part's files take."""
        return sum(file.bytes for file in self.files)


class Retention:
    """The parts that are over, oldest first, and the removal of parts that are due.

    On interfaces, the age of a part is the time since its end, by a clock that is never set; for a
    part of an earlier run, the time since it was written. On captures, time is packet time, so that
    the same input gives the same output.
    """

    def __init__(self, folder: Path, rules: DiskRules) -> None:
        self._folder, self._rules = folder, rules
        self._parts: list[_Part] = []
        self._has_warned = self._has_warned_of_open = False
        self._own = self._earlier = Removed()
        if rules.removes and rules.is_live:
            now_ns, wall_ns = _now_ns(), time.time_ns()
            for part in earlier_parts(Path(os.path.realpath(folder))):
                age_ns = max(0, wall_ns - part.written_ns)
                self._parts.append(_Part(part.files, now_ns - age_ns, part))

    @property
    def removed(self) -> tuple[Removed, Removed]:
        """The parts removed so far: of this run, and of earlier runs."""
        return self._own, self._earlier

    def add(self, files: Iterable[Mapping[str, Any]], over_ns: int) -> None:
        """Takes a part that is over. over_ns: packet time of its end."""
        if self._rules.removes:
            since_ns = _now_ns() if self._rules.is_live else over_ns
            self._parts.append(_Part([PartFile.of(facts) for facts in files], since_ns))

    def remove_due(self, now_ns: int, open_bytes: int) -> set[str]:
        """Removes the parts that are due; returns the removed files of this run.

        now_ns: packet time. open_bytes: bytes that the open part takes.
        """
        if self._rules.is_live:
            now_ns = _now_ns()
        gone: set[str] = set()
        limit, taken = self._rules.max_bytes, self._taken(open_bytes)
        if limit and taken > limit:
            self._forget_moved()
            taken = self._taken(open_bytes)
        left = AT_ONCE if self._rules.is_live else len(self._parts)
        for part in list(self._parts):
            why = self._why(part, now_ns, taken)
            if why is not None and left > 0:
                self._remove(part, why, gone)
                taken = self._taken(open_bytes)
                left -= not part.is_stuck
        if limit and open_bytes > limit and not self._has_warned_of_open:
            self._has_warned_of_open = True
            log.warning(
                "warning: the open part alone takes more than --max-disk; make parts shorter"
            )
        return gone

    def _why(self, part: _Part, now_ns: int, taken: int) -> str | None:
        """Returns the reason why a part is due after all older parts were looked at; None if it is
        not due."""
        keep_ns, limit = self._rules.keep_ns, self._rules.max_bytes
        if keep_ns and now_ns - part.over_ns > keep_ns:
            return f"over for more than --keep {format_duration(keep_ns)}"
        if limit and taken + (part.bytes if part.is_stuck else 0) > limit:
            return f"all parts took more than --max-disk {format_size(limit)}"
        return None

    def _taken(self, open_bytes: int) -> int:
        return open_bytes + sum(part.bytes for part in self._parts if not part.is_stuck)

    def _place(self, part: _Part) -> Path:
        return part.earlier.folder if part.earlier else Path(os.path.realpath(self._folder))

    def _forget_moved(self) -> None:
        """Forgets files that were moved away or replaced."""
        for part in list(self._parts):
            try:
                with folder_of_ours(self._place(part)) as folder:
                    there = [] if folder is None else list(find(part.files, folder))
            except OSError:
                continue
            part.files = there
            if not there:
                self._parts.remove(part)

    def _remove(self, part: _Part, why: str, gone: set[str]) -> None:
        """Removes as much of a part as the system permits. gone: gets its files, if it is of this
        run."""
        files, removed = part.files, list[PartFile]()
        try:
            with folder_of_ours(self._place(part)) as folder:
                for file in () if folder is None else remove(part.files, folder):
                    removed.append(file)
            self._parts.remove(part)
        except OSError as error:
            part.files = [file for file in files if file not in removed]
            part.is_stuck = True
            self._warn(_described(part, files), error)
        if removed:
            self._count(part, removed)
            log.notice("removed %s: %s", _described(part, removed), why)
        if not part.earlier:
            gone.update(file.path for file in removed)

    def _warn(self, what: str, error: OSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "warning: cannot remove %s: %s; it does not count until it can be removed",
                what,
                error.strerror,
            )

    def _count(self, part: _Part, removed: Sequence[PartFile]) -> None:
        before = self._earlier if part.earlier else self._own
        records = Counter(before.records)
        records.update(_records_by_format(removed))
        octets = before.bytes + sum(file.bytes for file in removed)
        after = Removed(before.parts + 1, octets, dict(records))
        if part.earlier:
            self._earlier = after
            note_removed(part.earlier, removed, _records_by_format(removed))
        else:
            self._own = after


def _described(part: _Part, removed: Sequence[PartFile]) -> str:
    """Describes a part for people: a file or folder of it, the number of further files, and its
    size."""
    name = removed[0].folder if removed[0].is_gathered else removed[0].path
    place = f"{part.earlier.folder.name}/{name}" if part.earlier else name
    more = sum(1 for file in removed if name not in (file.folder, file.path))
    others = f" and {more} more" if more else ""
    return f"{place}{others}, {sum(file.bytes for file in removed):,} bytes"
