# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Released names in a folder that an active run writes observations into."""

import json
import os
from collections import Counter
from pathlib import Path

from zanon_net._text import printable
from zanon_net.errors import ConfigError, ZanonError

PATTERNS = ("observations*.jsonl", "observations*.jsonl.partial")
NAMESPACES = (None, "name", "dns")  # observations of names; others are of attributes
CHUNK = 16 << 20  # bytes that one call reads of a file at most


class ReleasedNames:
    """Counts the observations of each name, as lines are added to the files.

    folder: the run's folder. unreadable: lines that were not observations. Raises ConfigError if
    there is no such folder.
    """

    def __init__(self, folder: Path):
        if not folder.is_dir():
            raise ConfigError(f"--names: {folder} is no folder")
        self._folder = folder
        # bytes of each file, because parts change their names
        self._read: dict[tuple[int, int], int] = {}
        self.counts: Counter[str] = Counter()
        self.unreadable = 0

    def update(self) -> None:
        """Reads new lines. Raises ZanonError if the system refuses."""
        for pattern in PATTERNS:
            for path in sorted(self._folder.glob(pattern)):
                try:
                    self._read_on(path)
                except FileNotFoundError:  # it was renamed meanwhile; the next call finds it
                    continue
                except OSError as error:
                    raise ZanonError(f"cannot read {path}: {error.strerror}") from None

    def _read_on(self, path: Path) -> None:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            place = (status.st_dev, status.st_ino)
            begin = self._read.get(place, 0)
            if begin > status.st_size:  # another file, in the place of a file that was removed
                begin = 0
            file.seek(begin)
            chunk = file.read(CHUNK)
        whole = chunk[: chunk.rfind(b"\n") + 1]
        self._read[place] = begin + len(whole)
        for line in whole.splitlines():
            self._count(line)

    def _count(self, line: bytes) -> None:
        try:
            observation = json.loads(line)
            if observation.get("namespace") not in NAMESPACES:
                return
            name = observation["name"]
        except (ValueError, TypeError, KeyError, AttributeError):
            name = None
        if isinstance(name, str):
            self.counts[printable(name)] += 1
        else:
            self.unreadable += 1
