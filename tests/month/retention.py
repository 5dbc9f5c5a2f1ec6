# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The parts of all runs that are on the disk: old ones are removed, and no others."""

import time
from dataclasses import dataclass
from pathlib import Path

from month.broken import Broken

LATE_S = 15.0  # two looks at old parts, and a busy machine
PART_FILES = 6  # of a part, which goes at once


@dataclass(frozen=True, slots=True)
class Rule:
    """What a run was asked to remove: parts older than seconds, or what is more than bytes.

    slack_s: how much older a part may be than the time since its files were first read here.
    """

    keep_s: float | None = None
    max_bytes: int | None = None
    slack_s: float = 0.0

    def options(self) -> list[object]:
        """For the command."""
        if self.keep_s is not None:
            return ["--keep", f"{self.keep_s * 1000:.0f}ms"]
        return ["--max-disk", self.max_bytes]


@dataclass(slots=True)
class _File:
    bytes: int
    seen_s: float  # monotonic
    run: int


class Shelf:
    """All final files that were read and are not known to be removed."""

    def __init__(self) -> None:
        self._files: dict[Path, _File] = {}

    def add(self, path: Path, size: int, run: int, seen_s: float) -> None:
        """A file that has appeared. seen_s: when that was looked for, by the monotonic clock, which
        is the same for all that had appeared then, as nobody knows their order."""
        self._files[path] = _File(size, seen_s, run)

    def look(self, rule: Rule, run: int) -> tuple[int, int]:
        """(bytes of its own files, bytes of earlier runs' files) that a run has removed since the
        last look. Raises Broken for one that had to stay."""
        now = time.monotonic()
        # the newest first: what goes meanwhile is older than what was seen to be gone
        gone = {path: file for path, file in reversed(self._files.items()) if not path.exists()}
        left = [file for path, file in self._files.items() if path not in gone]
        for path, file in gone.items():
            if rule.keep_s is not None and now - file.seen_s < rule.keep_s - rule.slack_s:
                raise Broken("a part is removed too early", f"{path.name}, {now - file.seen_s} s")
            if rule.keep_s is None and any(one.seen_s < file.seen_s for one in left):
                raise Broken("a part is removed before an older one", path.name)
            del self._files[path]
        own = sum(file.bytes for file in gone.values() if file.run == run)
        return own, sum(file.bytes for file in gone.values()) - own

    def check_removed(self, rule: Rule) -> None:
        """Nothing is left that had to go."""
        now = time.monotonic()
        for path, file in self._files.items():
            age_s = now - file.seen_s
            if rule.keep_s is not None and age_s > rule.keep_s + LATE_S and path.exists():
                raise Broken("an old part is still there", f"{path}, {age_s:.0f} s")
        left = sum(file.bytes for path, file in self._files.items() if path.exists())
        largest = max((file.bytes for file in self._files.values()), default=0)
        if rule.max_bytes is not None and left > rule.max_bytes + PART_FILES * largest:
            raise Broken("parts take too much", f"{left} bytes, at most {rule.max_bytes}")
