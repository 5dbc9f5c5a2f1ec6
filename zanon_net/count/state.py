# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A counter's state on disk: a snapshot, and the journal of the commits since.

A commit is in the journal before its answers are published. A restarted counter applies the last
commits again, and publishes answers again under equal names. The name of a file has the offset at
which the file begins. Older files are removed when a newer snapshot is complete.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from zanon_net.count.commits import Commit, Snapshot
from zanon_net.count.sealed_files import SealedWriter, StateError, read_records
from zanon_net.errors import ZanonError
from zanon_net.system.file_errors import explained

SNAPSHOT, JOURNAL = ".snapshot", ".journal"
JOURNAL_BYTES = 1 << 28  # length from which on a journal is long
CHUNK_BYTES = 1 << 26  # part of a snapshot in a record
BEGIN = b"begin"
"""First record of a journal. The records behind it may be torn."""


class StateFolder:
    """Folder of a counter's state, for one process at a time. Only its owner can read the files.

    settings: settings of the counter; a state of other settings is refused. Raises ZanonError.
    """

    def __init__(self, folder: Path, key: bytes, settings: Mapping[str, Any]) -> None:
        self._folder, self._key, self._settings = folder, key, dict(settings)
        self._journal: SealedWriter | None = None
        self._snapshot_bytes = 0
        with explained("make", folder):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise ZanonError(f"another counter uses {folder}; end it, or give another") from None

    def read_snapshot(self) -> Snapshot | None:
        """Returns the newest snapshot; None for a new folder. Raises StateError."""
        offsets = self._offsets(SNAPSHOT)
        if not offsets:
            return None
        path = self._path(max(offsets), SNAPSHOT)
        records = read_records(path, self._key)
        about = json.loads(next(records, b"{}"))
        if about.get("settings") != self._settings:
            raise StateError(_another_setting(path, about.get("settings", {}), self._settings))
        parts = {
            name: b"".join(next(records, b"") for _chunk in range(chunks))
            for name, chunks, _size in about["parts"]
        }
        if any(len(parts[name]) != size for name, _chunks, size in about["parts"]):
            raise StateError(f"{path} is damaged: it ends too early; give another folder")
        return Snapshot(max(offsets), about["about"], parts)

    def read_commits(self, offset: int) -> Iterator[Commit]:
        """Yields the commits since the snapshot of this offset. Raises StateError."""
        path = self._path(offset, JOURNAL)
        if path.exists():
            records = read_records(path, self._key, may_be_torn=True)
            next(records, None)
            for record in records:
                commit = Commit.from_bytes(record)
                if commit.first != offset:
                    raise StateError(f"{path} is damaged: commits are missing; give another folder")
                offset = commit.end
                yield commit

    def write_snapshot(self, snapshot: Snapshot) -> None:
        """Writes a snapshot and begins the journal behind it. Raises OutputError."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        with SealedWriter(self._path(snapshot.offset, SNAPSHOT), self._key) as file:
            chunks = {name: _chunks(part) for name, part in snapshot.parts.items()}
            about = {
                "settings": self._settings,
                "about": dict(snapshot.about),
                "parts": [[name, len(chunks[name]), len(snapshot.parts[name])] for name in chunks],
            }
            file.append(json.dumps(about).encode())
            for part in chunks.values():
                for chunk in part:
                    file.append(chunk)
            # An older journal of this offset has no complete commit.
            journal = SealedWriter(self._path(snapshot.offset, JOURNAL), self._key)
            journal.append(BEGIN)
            journal.publish()
            file.publish()
            self._snapshot_bytes = file.bytes
        self._journal = journal
        self._remove_before(snapshot.offset)

    @property
    def is_journal_long(self) -> bool:
        """True if the journal is much longer than a snapshot would be."""
        least = max(JOURNAL_BYTES, self._snapshot_bytes)
        return self._journal is not None and self._journal.bytes > least

    def append(self, commit: Commit) -> None:
        """Adds a commit to the journal, and waits for the disk. Raises OutputError."""
        assert self._journal is not None, "no snapshot was written"
        self._journal.append(commit.to_bytes())
        self._journal.sync()

    def close(self) -> None:
        """Closes the files. A second call does nothing."""
        if self._journal is not None:
            self._journal.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _path(self, offset: int, suffix: str) -> Path:
        return self._folder / f"{offset:020d}{suffix}"

    def _offsets(self, suffix: str) -> list[int]:
        return [int(path.stem) for path in self._folder.glob(f"*{suffix}") if path.stem.isdigit()]

    def _remove_before(self, offset: int) -> None:
        for suffix in (SNAPSHOT, JOURNAL):
            for older in self._offsets(suffix):
                if older < offset:
                    with suppress(OSError):
                        self._path(older, suffix).unlink()


def _chunks(part: bytes) -> list[bytes]:
    return [part[at : at + CHUNK_BYTES] for at in range(0, len(part), CHUNK_BYTES)]


def _another_setting(path: Path, former: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    names = [name for name in now if former.get(name) != now[name]]
    before = ", ".join(f"--{name} {former.get(name)}" for name in names)
    return f"{path} is of a counter with {before}; give that, or another folder"
