# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The folder that probes and a counter share, and files that are whole when they appear.

counter.json                              the counter's welcome
votes/PROBE/SHARD-SEQUENCE.znv            a message of votes; its probe removes it when answered
answers/PROBE/FIRST-LAST.zna              the answers of a commit; their probe removes the file
answers/PROBE/refusal.zna                 the reason of the counter's refusal
"""

import errno
import json
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from zanon_net.count.frames import (
    FRAME_MAX,
    VERSION,
    Key,
    Welcome,
    answers_header,
    checked_welcome,
)
from zanon_net.errors import FormatError
from zanon_net.system.durability import sync_folders
from zanon_net.system.file_errors import explained

FILE_MODE, FOLDER_MODE = 0o600, 0o700
PARTIAL = ".partial"
VOTES_SUFFIX, ANSWERS_SUFFIX = ".znv", ".zna"
FILE_MAX = 2 * FRAME_MAX  # largest size of a file, in bytes


class CounterFolder:
    """Names of the files in the shared folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.votes, self.answers = root / "votes", root / "answers"
        self._about = root / "counter.json"

    def votes_of(self, probe: int) -> Path:
        """Returns the folder of a session's messages."""
        return self.votes / f"{probe:016x}"

    def answers_of(self, probe: int) -> Path:
        """Returns the folder of the answers to a session."""
        return self.answers / f"{probe:016x}"

    @staticmethod
    def votes_name(key: Key) -> str:
        """Returns the name of a message's file."""
        return f"{key.shard:03d}-{key.sequence:020d}{VOTES_SUFFIX}"

    def votes_name_of(self, answers: bytes) -> str:
        """Returns the name of the file whose message is answered."""
        return self.votes_name(answers_header(answers).key)

    @staticmethod
    def answers_in(folder: Path) -> list[Path]:
        """Returns the complete files of answers, in order."""
        return sorted(folder.glob(f"*{ANSWERS_SUFFIX}"))

    def write_welcome(self, welcome: Welcome) -> None:
        """Writes the counter's welcome. Raises OutputError."""
        about = {"version": VERSION, **welcome._asdict()}
        write_whole(self._about, json.dumps(about).encode() + b"\n")

    def read_welcome(self) -> Welcome | None:
        """Returns the counter's welcome; None if no counter wrote it yet. Raises FormatError."""
        try:
            about = json.loads(self._about.read_bytes())
            if about["version"] != VERSION:
                raise FormatError(f"{self._about} is of another version of the counter")
            return checked_welcome(Welcome(*(int(about[name]) for name in Welcome._fields)))
        except FileNotFoundError:
            return None
        except (KeyError, TypeError, ValueError):
            raise FormatError(f"{self._about} was not written by a counter") from None


def read_whole(path: str | Path) -> bytes:
    """Returns the content of a file of frames.

    Raises OSError, and FormatError for a link, a device, a pipe, or too large a file.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise FormatError("it is no file of messages") from None
        raise
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_size > FILE_MAX:
            raise FormatError("it is no file of messages")
        content = os.read(fd, about.st_size)
        while len(content) < about.st_size and (more := os.read(fd, about.st_size - len(content))):
            content += more
        return content
    finally:
        os.close(fd)


def sync_commits(folders: Iterable[Path], suffix: str, offset: int) -> None:
    """Waits until the existing files of all commits from an offset on are on the disk. Raises
    OutputError."""
    there = [folder for folder in folders if folder.is_dir()]
    for folder in there:
        for path in folder.glob(f"*{suffix}"):
            if path.name >= f"{offset:020d}":
                _sync(path)
    sync_folders([*there, *(folder.parent for folder in there)])


def _sync(path: Path) -> None:
    with explained("write", path):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):  # its probe removed it
                return
            raise
        try:
            if stat.S_ISREG(os.fstat(fd).st_mode):
                os.fsync(fd)
        finally:
            os.close(fd)


def write_whole(path: Path, content: bytes, *, waits: bool = False) -> None:
    """Writes a file that appears when it is complete, and replaces a file of its name.

    waits: whether to wait for the disk. Raises OutputError.
    """
    partial = path.with_name(f".{path.name}{PARTIAL}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with explained("write", path):
        try:
            with os.fdopen(os.open(partial, flags, FILE_MODE), "wb") as file:
                file.write(content)
                if waits:
                    file.flush()
                    os.fsync(file.fileno())
            partial.replace(path)
        except OSError:
            with suppress(OSError):
                partial.unlink()
            raise
