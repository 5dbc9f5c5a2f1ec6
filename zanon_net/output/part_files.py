# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The files of a part that is over, and their removal: those alone, whatever lies in their place.

A file is taken for one of ours if it is a regular file of the size that the manifest has. A part
may be killed in the middle of its removal: each file goes at once, a folder of Tstat's gets another
name first, by which a later removal finds the rest.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zanon_net.output.files import PARTIAL

REMOVED = f".removed{PARTIAL}"
"""The suffix of a folder whose files are being removed."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_FOLDER_SUFFIX = ".out"
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class PartFile:
    """A file of a part. path: in the folder of its run."""

    path: str
    bytes: int
    records: int

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "PartFile":
        """The file of a manifest's `outputs`. Raises ValueError where it is none of ours."""
        path, size, records = facts["file"], facts["bytes"], facts["records"]
        *folders, name = str(path).split("/")
        is_ours = len(folders) <= 1 and all(_NAME.fullmatch(one) for one in (*folders, name))
        if not is_ours or not all(folder.endswith(_FOLDER_SUFFIX) for folder in folders):
            raise ValueError("no path of a part")
        if type(size) is not int or type(records) is not int or name.endswith(PARTIAL):
            raise ValueError("no file of a part")
        return cls(str(path), size, records)

    @property
    def folder(self) -> str:
        """The folder of Tstat's that it lies in; empty: none."""
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """Its name without that folder."""
        return self.path.rpartition("/")[2]


@contextmanager
def folder_of_ours(name: str | Path, within: int | None = None) -> Iterator[int | None]:
    """A folder as a descriptor; None: there is none, or a link or a file in its place."""
    try:
        handle = os.open(name, _OPEN_FOLDER, dir_fd=within)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        yield None
        return
    try:
        yield handle
    finally:
        os.close(handle)


def find(files: Iterable[PartFile], run_folder: int) -> dict[PartFile, os.stat_result]:
    """The files of a part that are there, also of one whose removal was killed. Raises OSError."""
    found: dict[PartFile, os.stat_result] = {}
    for folder, inside in _by_folder(files).items():
        for name in (folder, folder + REMOVED) if folder else (".",):
            with folder_of_ours(name, run_folder) as handle:
                for file in inside if handle is not None else ():
                    seen = _seen(file, handle)
                    if seen is not None:
                        found.setdefault(file, seen)
    return found


def remove(files: Iterable[PartFile], run_folder: int) -> Iterator[PartFile]:
    """Removes the files of a part that are there; yields each that is gone. Raises OSError."""
    for folder, inside in _by_folder(files).items():
        if folder:
            yield from _remove_folder(folder, inside, run_folder)
        else:
            yield from _unlink(inside, run_folder)


def _by_folder(files: Iterable[PartFile]) -> dict[str, list[PartFile]]:
    folders: dict[str, list[PartFile]] = {}
    for file in files:
        folders.setdefault(file.folder, []).append(file)
    return folders


def _seen(file: PartFile, folder: int | None) -> os.stat_result | None:
    """Our file in this folder; None: there is none, or another one in its place."""
    try:
        found = os.stat(file.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    is_ours = stat.S_ISREG(found.st_mode) and found.st_size == file.bytes
    return found if is_ours else None


def _unlink(files: Iterable[PartFile], folder: int) -> Iterator[PartFile]:
    for file in files:
        if _seen(file, folder) is not None:
            with suppress(FileNotFoundError):  # somebody moves parts away at the same time
                os.unlink(file.name, dir_fd=folder)
                yield file


def _remove_folder(name: str, files: Sequence[PartFile], run_folder: int) -> Iterator[PartFile]:
    """Removes a folder of Tstat's in which nothing but our files is left."""
    leaving = name + REMOVED
    with folder_of_ours(name, run_folder) as handle:
        if handle is not None:
            ours = {file.name for file in files if _seen(file, handle) is not None}
            with os.scandir(handle) as entries:
                is_ours_alone = {entry.name for entry in entries} == ours
            if not ours or not is_ours_alone:
                return
            with suppress(FileNotFoundError):  # moved away at the same time, too
                os.rename(name, leaving, src_dir_fd=run_folder, dst_dir_fd=run_folder)
    with folder_of_ours(leaving, run_folder) as handle:
        if handle is None:
            return
        yield from _unlink(files, handle)
    try:
        os.rmdir(leaving, dir_fd=run_folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise  # else somebody has just put something there, which stays
