# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Files of a run's parts: their names, and their removal without harm to other files.

A part is identified by the time of its begin.

A file is removed only if it is a regular file of the size that the manifest has. A run may be
killed in the middle of a removal. Each file is removed at once; a folder of Tstat's is renamed
first, and a later removal finds the rest by that name. A dataset's folder stays.
"""

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from zanon_net._record import dataclass
from zanon_net.config.formats import DATASET_OF, IN_FOLDER
from zanon_net.output.files import PARTIAL
from zanon_net.output.sink import Plan

REMOVED = f".removed{PARTIAL}"
"""The suffix of a folder whose files are being removed."""

_FOLDER_SUFFIX = ".out"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_DATASETS = "|".join(sorted(set(DATASET_OF.values())))
_PARTITION = r"day=\d{4}-\d\d-\d\d/(?:hour=\d\d/)?"
_PATH = re.compile(rf"(?:{_NAME}\{_FOLDER_SUFFIX}/|(?:{_DATASETS})/(?:{_PARTITION})?)?{_NAME}")
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def tstat_folder(first_ns: int) -> str:
    """Returns the name of Tstat's folder for a first packet at `first_ns`, in UTC."""
    return _utc(first_ns, "%Y_%m_%d_%H_%M.out")


class PartNames:
    """Names of a part's files, with "-2" and so on if another part has the same stamp.

    stamp_ns: begin of the part, ns since the Unix epoch.
    taken: names of earlier parts' files.
    divided: true if the run has several parts, so that all names carry the stamp.
    """

    def __init__(self, plan: Plan, stamp_ns: int, taken: Set[str], *, divided: bool) -> None:
        self._plan, self._stamp_ns, self._divided = plan, stamp_ns, divided
        self._taken = set(taken)
        self._number = 1
        while not self._taken.isdisjoint(map(self._name, plan.outputs)):
            self._number += 1

    def take(self, output: str, partition: str = "") -> str:
        """Returns a name of a file of an output, and of a partition of it, that is not taken yet.

        partition: the folder in the output's folder; empty: the output has no partitions.
        """
        number = self._number
        while (name := self._name(output, number, partition)) in self._taken:
            number += 1
        self._taken.add(name)
        return name

    def _name(self, output: str, number: int = 0, partition: str = "") -> str:
        number = number or self._number
        name = _name(self._plan, output, self._stamp_ns, number, divided=self._divided)
        if not partition:
            return name
        folder, _slash, name = name.rpartition("/")
        return f"{folder}/{partition}/{name}"


def _name(plan: Plan, output: str, stamp_ns: int, number: int, *, divided: bool) -> str:
    again = "" if number == 1 else f"-{number}"
    if output in IN_FOLDER:
        folder = tstat_folder(stamp_ns)
        return f"{folder.removesuffix('.out')}{again}.out/{plan.file_name(output)}"
    stamp = (_utc(stamp_ns, "-%Y%m%dT%H%M%SZ") if divided else "") + again
    name = plan.file_name(output, stamp)
    return f"{DATASET_OF[output]}/{name}" if output in DATASET_OF else name


def _utc(t_ns: int, form: str) -> str:
    return datetime.fromtimestamp(t_ns // 1_000_000_000, UTC).strftime(form)


def is_gathered(folder: str) -> bool:
    """Returns true if a folder in a run's folder is of Tstat's logs, which appear together."""
    return folder.endswith(_FOLDER_SUFFIX)


@dataclass(frozen=True, slots=True)
class PartFile:
    """A file of a part. path: relative to the folder of its run."""

    path: str
    bytes: int
    records: int

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "PartFile":
        """Returns the file of an entry of a manifest's `outputs`. Raises ValueError if zanon_net
        never writes such a file."""
        path, size, records = facts["file"], facts["bytes"], facts["records"]
        if not _PATH.fullmatch(str(path)):
            raise ValueError("no path of a part")
        if type(size) is not int or type(records) is not int or str(path).endswith(PARTIAL):
            raise ValueError("no file of a part")
        return cls(str(path), size, records)

    @property
    def folder(self) -> str:
        """The folder that contains the file, relative to the run's; empty: the run's folder."""
        return self.path.rpartition("/")[0]

    @property
    def is_gathered(self) -> bool:
        """True if the file lies in a folder of Tstat's, whose files appear and go together."""
        return is_gathered(self.folder)

    @property
    def name(self) -> str:
        """The file's name without that folder."""
        return self.path.rpartition("/")[2]


@contextmanager
def folder_of_ours(name: str | Path, within: int | None = None) -> Iterator[int | None]:
    """Opens a folder as a descriptor; None if it is missing, or if a link or a file is in its
    place.

    name: a path; or the path in the folder `within`, of which no part may be a link.
    """
    first, _slash, rest = str(name).partition("/") if within is not None else (name, "", "")
    if rest:
        with folder_of_ours(first, within) as outer:
            if outer is None:
                yield None
                return
            with folder_of_ours(rest, outer) as handle:
                yield handle
        return
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
    """Returns the existing files of a part, even if its removal was killed. Raises OSError."""
    found: dict[PartFile, os.stat_result] = {}
    for folder, inside in _by_folder(files).items():
        for name in (folder, folder + REMOVED) if is_gathered(folder) else (folder or ".",):
            with folder_of_ours(name, run_folder) as handle:
                for file in inside if handle is not None else ():
                    seen = _seen(file, handle)
                    if seen is not None:
                        found.setdefault(file, seen)
    return found


def remove(files: Iterable[PartFile], run_folder: int) -> Iterator[PartFile]:
    """Removes the existing files of a part; yields each removed file. Raises OSError."""
    for folder, inside in _by_folder(files).items():
        if is_gathered(folder):
            yield from _remove_folder(folder, inside, run_folder)
            continue
        with folder_of_ours(folder or ".", run_folder) as handle:
            yield from _unlink(inside, handle)
        _remove_empty_partitions(folder, run_folder)


def _remove_empty_partitions(folder: str, run_folder: int) -> None:
    """Removes the folder of a partition, and the folder around it, if they are empty."""
    while "=" in folder:
        outer, _slash, name = folder.rpartition("/")
        with folder_of_ours(outer, run_folder) as handle, suppress(OSError):
            if handle is not None:
                os.rmdir(name, dir_fd=handle)
        folder = outer


def _by_folder(files: Iterable[PartFile]) -> dict[str, list[PartFile]]:
    folders: dict[str, list[PartFile]] = {}
    for file in files:
        folders.setdefault(file.folder, []).append(file)
    return folders


def _seen(file: PartFile, folder: int | None) -> os.stat_result | None:
    """Returns the state of the file in this folder; None if it is missing or replaced by another
    file."""
    try:
        found = os.stat(file.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    is_ours = stat.S_ISREG(found.st_mode) and found.st_size == file.bytes
    return found if is_ours else None


def _unlink(files: Iterable[PartFile], folder: int | None) -> Iterator[PartFile]:
    for file in files if folder is not None else ():
        if _seen(file, folder) is not None:
            # another program may move parts away at the same time
            with suppress(FileNotFoundError):
                os.unlink(file.name, dir_fd=folder)
                yield file


def _remove_folder(name: str, files: Sequence[PartFile], run_folder: int) -> Iterator[PartFile]:
    """Removes a folder of Tstat's that contains nothing but files of the part."""
    leaving = name + REMOVED
    with folder_of_ours(name, run_folder) as handle:
        if handle is not None:
            ours = {file.name for file in files if _seen(file, handle) is not None}
            with os.scandir(handle) as entries:
                is_ours_alone = {entry.name for entry in entries} == ours
            if not ours or not is_ours_alone:
                return
            with suppress(FileNotFoundError):  # another program may move it away at the same time
                os.rename(name, leaving, src_dir_fd=run_folder, dst_dir_fd=run_folder)
    with folder_of_ours(leaving, run_folder) as handle:
        if handle is None:
            return
        yield from _unlink(files, handle)
    try:
        os.rmdir(leaving, dir_fd=run_folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise  # another program has just put a file there, which stays
