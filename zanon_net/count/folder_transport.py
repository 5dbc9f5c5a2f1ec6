# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Votes and answers as files in a folder that the probes share."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path

from zanon_net.count.by_probe import frames_by_probe
from zanon_net.count.commits import Commit
from zanon_net.count.folders import (
    ANSWERS_SUFFIX,
    FOLDER_MODE,
    VOTES_SUFFIX,
    CounterFolder,
    read_whole,
    sync_commits,
    write_whole,
)
from zanon_net.count.frames import (
    Refusal,
    Welcome,
    framed,
    messages_in,
    probe_of,
    votes_header,
    write_refusal,
)
from zanon_net.count.transport import BATCH_BYTES, Received, Transport
from zanon_net.errors import FormatError, ZanonError
from zanon_net.system.file_errors import explained

POLL_S = 0.1
AGAIN_S = 1.0  # time before a message that has to wait is read again
REFUSAL_NAME = "refusal"
REMOVAL_S = 60.0  # interval at which old files are removed


class FolderTransport(Transport):
    """Transport that reads each file of votes once. Probes remove their files when answered.

    A restarted counter reads the files that are left, and knows which messages it has counted.
    `answers` is a folder for the answers, if they go to another folder. Files that are older than
    `max_age_s` belong to probes that do not return, and are removed.
    """

    def __init__(
        self, folder: Path, welcome: Welcome, max_age_s: float, answers: Path | None = None
    ) -> None:
        self._folder = CounterFolder(folder)
        self._answers = self._folder.answers if answers is None else answers
        for path in (self._folder.votes, self._answers):
            with explained("make", path):
                path.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
        self._folder.write_welcome(welcome)
        self._max_age_s, self._removal_due_s = max_age_s, 0.0
        self._consumed: set[object] = set()
        self._again_s: dict[object, float] = {}
        self._waiting: Iterator[str] = iter(())

    def take(self, timeout: float) -> list[Received]:
        """See Transport."""
        until = time.monotonic() + timeout
        if time.monotonic() >= self._removal_due_s:
            self._removal_due_s = time.monotonic() + REMOVAL_S
            self._remove_old()
        received = self._read()
        while not received:
            self._waiting = self._look()
            received = self._read()
            if received or time.monotonic() >= until:
                break
            time.sleep(min(POLL_S, timeout))
        return received

    def publish(self, commit: Commit, answers: Sequence[bytes]) -> None:
        """See Transport. Writes a file per probe, whose content depends on the commit alone."""
        for probe, frames in frames_by_probe(answers).items():
            self._write(probe, commit.name, frames)

    def sync(self, offset: int) -> None:
        """See Transport."""
        sync_commits((self._answers, *self._answers.glob("*/")), ANSWERS_SUFFIX, offset)

    def refuse(self, received: Received, refusal: Refusal) -> None:
        """See Transport. A final refusal is a file among the answers. The refused file is removed,
        because a counter without this state could take it for the probe's first message."""
        if not refusal.is_final:
            self._again_s[received.origin] = time.monotonic() + AGAIN_S
            return
        with suppress(FormatError):  # without a message no probe can be informed
            probe = votes_header(received.message).probe
            self._write(probe, REFUSAL_NAME, framed(write_refusal(refusal)))
            with suppress(OSError):
                Path(str(received.origin)).unlink()

    def _write(self, probe: int, name: str, frames: bytes) -> None:
        folder = self._answers / f"{probe:016x}"
        with explained("make", folder):
            folder.mkdir(exist_ok=True, mode=FOLDER_MODE)
        write_whole(folder / f"{name}{ANSWERS_SUFFIX}", frames)

    def close(self) -> None:
        """See Transport."""

    def _read(self) -> list[Received]:
        received: list[Received] = []
        size = 0
        for path in self._waiting:
            try:
                messages = _messages_of(path)
            except FileNotFoundError:  # its probe has removed it
                continue
            except FormatError:
                messages = [b""]  # it is refused and counted
            except OSError as error:
                raise ZanonError(f"cannot read {path}: {error.strerror}") from None
            received += [Received(message, path) for message in messages]
            self._consumed.add(path)
            size += sum(map(len, messages))
            if size >= BATCH_BYTES:
                break
        return received

    def _remove_old(self) -> None:
        there = chain.from_iterable(map(_votes_in, self._folders()))
        read = [Path(path) for path in there if path in self._consumed]
        for path in (*read, *self._answers.glob(f"*/*{ANSWERS_SUFFIX}")):
            with suppress(OSError):
                if path.stat().st_mtime < time.time() - self._max_age_s:
                    path.unlink()
        for folder in (*self._folder.votes.glob("*/"), *self._answers.glob("*/")):
            with suppress(OSError):
                if folder.stat().st_mtime < time.time() - self._max_age_s:
                    folder.rmdir()

    def _look(self) -> Iterator[str]:
        """Returns the unread files, in order within each probe, and the probes in turn."""
        there = [_votes_in(folder) for folder in self._folders()]
        now = time.monotonic()
        due = [path for path, again_s in self._again_s.items() if again_s <= now]
        for path in due:
            del self._again_s[path]
        self._consumed.intersection_update(chain.from_iterable(there))
        self._consumed.difference_update(due)
        turns = zip_longest(*there)
        return (path for turn in turns for path in turn if path and path not in self._consumed)

    def _folders(self) -> list[str]:
        with suppress(FileNotFoundError), os.scandir(self._folder.votes) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir())
        return []


def _votes_in(folder: str) -> list[str]:
    """Returns the files of a probe in order; no file if it has just removed its folder."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if entry.name.endswith(VOTES_SUFFIX))
    except FileNotFoundError:
        return []


def _messages_of(path: str) -> list[bytes]:
    """Returns the messages of a file. Raises OSError, and FormatError for a message of another
    probe than its folder's."""
    messages = list(messages_in(read_whole(path)))
    folder = path.rsplit("/", 2)[1]
    if any(f"{probe_of(message):016x}" != folder for message in messages):
        raise FormatError("a message is of another probe than its folder")
    return messages
