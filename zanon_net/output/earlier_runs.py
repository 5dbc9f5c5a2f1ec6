# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of earlier runs of the same service, which lie in folders next to the run's folder.

A service without --out gets a folder `zanon-<UTC start>` for each start. Such a folder is covered
if its manifest is of a run on interfaces which removed parts and has ended, or was killed. No other
folder is touched. In a covered folder, a file that the manifest does not name is not touched.
"""

import fcntl
import json
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from zanon_net._record import dataclass
from zanon_net.output.files import PARTIAL
from zanon_net.output.part_files import PartFile, find, folder_of_ours
from zanon_net.output.state_file import MANIFEST, RESERVED, next_path

RUN_FOLDER = re.compile(r"zanon-\d{8}T\d{6}Z")
_STATE, _NEXT = f"{MANIFEST}{PARTIAL}", next_path(Path(MANIFEST)).name
_MANIFEST_MAX = 1 << 26
_NOT_OURS = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""Exceptions that a manifest raises if it was written or changed by others."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class EarlierPart:
    """A part of an earlier run. written_ns: time at which it was written, by the system's clock, in
    ns."""

    folder: Path
    files: tuple[PartFile, ...]
    written_ns: int


def earlier_parts(run_folder: Path) -> list[EarlierPart]:
    """Returns the parts of earlier runs, oldest first; empty if the run's folder is not a default
    folder."""
    if not RUN_FOLDER.fullmatch(run_folder.name):
        return []
    found: list[EarlierPart] = []
    with suppress(OSError):
        for folder in run_folder.parent.iterdir():
            if RUN_FOLDER.fullmatch(folder.name) and folder.name != run_folder.name:
                with suppress(OSError):
                    found += _parts_in(folder)
    return sorted(found, key=lambda part: part.written_ns)


def note_removed(part: EarlierPart, files: Sequence[PartFile], formats: Mapping[str, int]) -> None:
    """Adds to the manifest of the earlier run that files of it were removed.

    formats: records of the removed files by format. A manifest that cannot be written stays. It
    then names files that do not exist, as it does after files are moved.
    """
    with suppress(OSError, *_NOT_OURS), folder_of_ours(part.folder) as folder:
        found = None if folder is None else _read_manifest(folder)
        if folder is not None and found is not None:
            name, manifest = found
            _write_manifest(folder, name, _without(manifest, files, formats))


def _parts_in(path: Path) -> Iterator[EarlierPart]:
    with folder_of_ours(path) as folder:
        if folder is None or _is_running(folder):
            return
        found = _read_manifest(folder)
        for files in _listed(found[1]) if found is not None else ():
            seen = find(files, folder)
            if seen:
                written_ns = max(one.st_mtime_ns for one in seen.values())
                yield EarlierPart(path, tuple(seen), written_ns)


def _is_running(folder: int) -> bool:
    """Returns true if an active run has locked a file of the folder, or if locks are not
    supported."""
    for name in (RESERVED, _STATE):
        try:
            handle = os.open(name, _READ, dir_fd=folder)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(handle)
    return False


def _read_manifest(folder: int) -> tuple[str, dict[str, Any]] | None:
    """Returns the name and content of the manifest of a run that removes parts: the last manifest,
    or the last state of a killed run."""
    for name in (MANIFEST, _STATE):
        try:
            with os.fdopen(os.open(name, _READ, dir_fd=folder), "rb") as file:
                text = file.read(_MANIFEST_MAX + 1)
            manifest: dict[str, Any] = json.loads(text) if len(text) <= _MANIFEST_MAX else {}
            return (name, manifest) if _removes_parts(manifest) else None
        except FileNotFoundError:
            continue
        except _NOT_OURS:
            return None
    return None


def _removes_parts(manifest: Any) -> bool:
    """Returns true if the manifest is of a run on interfaces with --keep or --max-disk."""
    output = manifest["configuration"]["output"]
    return bool(
        manifest["name"] == "zanon-net"
        and (output["keep"] is not None or output["max_disk"] is not None)
        and all(source["format"] == "interface" for source in manifest["sources"])
    )


def _listed(manifest: Mapping[str, Any]) -> Collection[list[PartFile]]:
    """Returns the files of each part; empty if the manifest lists a file that zanon_net never
    writes."""
    parts: dict[int, list[PartFile]] = {}
    try:
        for facts in manifest["outputs"]:
            parts.setdefault(int(facts["part"]), []).append(PartFile.of(facts))
    except _NOT_OURS:
        return ()
    return parts.values()


def _without(
    manifest: Mapping[str, Any], files: Sequence[PartFile], formats: Mapping[str, int]
) -> dict[str, Any]:
    gone, before = {file.path for file in files}, manifest["removed"]
    records = {
        name: before["records"].get(name, 0) + formats.get(name, 0)
        for name in (
            *before["records"],
            *(name for name in formats if name not in before["records"]),
        )
    }
    removed = {
        **before,
        "parts": before["parts"] + 1,
        "bytes": before["bytes"] + sum(file.bytes for file in files),
        "records": records,
    }
    left = [facts for facts in manifest["outputs"] if facts["file"] not in gone]
    return {**manifest, "removed": removed, "outputs": left}


def _write_manifest(folder: int, name: str, manifest: Mapping[str, Any]) -> None:
    """Replaces a manifest by a rename and keeps its permissions.

    Raises OSError, and the old manifest then stays.
    """
    mode = stat.S_IMODE(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    with suppress(FileNotFoundError):
        os.unlink(_NEXT, dir_fd=folder)  # left by a run that was killed here
    handle = os.open(
        _NEXT, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder
    )
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write((json.dumps(manifest, indent=2) + "\n").encode("ascii"))
            file.flush()
            os.fsync(file.fileno())
        os.rename(_NEXT, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(_NEXT, dir_fd=folder)
        raise
