# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A client over a folder that a probe and a counter share."""

import time
from contextlib import suppress
from pathlib import Path

from zanon_net.count.client_base import CountClient
from zanon_net.count.folders import FOLDER_MODE, CounterFolder, read_whole, write_whole
from zanon_net.count.frames import (
    REFUSAL,
    Hello,
    Welcome,
    framed,
    messages_in,
    read_refusal,
)
from zanon_net.errors import ZanonError
from zanon_net.system.file_errors import explained

POLL_S = 0.05


class FileClient(CountClient):
    """See CountClient. A message is a file until it is answered, so no message is sent again."""

    def __init__(self, folder: str, hello: Hello, welcome: Welcome | None = None) -> None:
        super().__init__(hello, welcome)
        self._path = folder
        self._folder = CounterFolder(Path(folder))
        self._votes = self._folder.votes_of(hello.probe)
        self._incoming = self._folder.answers_of(hello.probe)
        with explained("make", self._votes):
            self._votes.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)

    @property
    def is_connected(self) -> bool:
        """See CountClient. Files always reach the folder."""
        return self._welcome is not None

    def welcome(self, timeout: float) -> Welcome | None:
        """See CountClient."""
        until = time.monotonic() + timeout
        while self._welcome is None:
            self._welcome = self._folder.read_welcome()
            if self._welcome is None and time.monotonic() >= until:
                return None
            if self._welcome is None:
                time.sleep(POLL_S)
        if self._welcome.settings != self.hello.settings:
            raise ZanonError(
                "the counter has other settings;"
                " give --z, --window, --rotate and --count-rotate as it has them"
            )
        return self._welcome

    def send(self, message: bytes) -> None:
        """See CountClient. Raises OutputError if the file cannot be written."""
        self._check_counter()
        key = self._keep(message)
        with explained("make", self._votes):  # the counter removes a folder that is long empty
            self._votes.mkdir(exist_ok=True, mode=FOLDER_MODE)
        write_whole(self._votes / self._folder.votes_name(key), framed(message))

    def receive(self, timeout: float) -> list[bytes]:
        """See CountClient."""
        until = time.monotonic() + timeout
        answers = self._read_answers()
        while not answers and time.monotonic() < until:
            time.sleep(min(POLL_S, timeout))
            answers = self._read_answers()
        return answers

    def as_another(self, probe: int) -> "FileClient":
        """See CountClient."""
        return FileClient(self._path, Hello(probe, self.hello.settings), self._welcome)

    def close(self) -> None:
        """See CountClient."""
        for key in self._unanswered:
            (self._votes / self._folder.votes_name(key)).unlink(missing_ok=True)
        self._unanswered.clear()
        with suppress(OSError):
            self._votes.rmdir()  # the other is the counter's, which may be about to write there

    def _check_counter(self) -> None:
        welcome = None
        with suppress(OSError):  # for now; a file that cannot be written is said
            welcome = self._folder.read_welcome()
        if welcome is None:
            return
        if problem := self._problem_of(welcome):
            raise self._refused(problem)
        self._welcome = welcome

    def _read_answers(self) -> list[bytes]:
        expected = []
        for path in self._folder.answers_in(self._incoming):
            with suppress(FileNotFoundError):
                for message in messages_in(read_whole(path)):
                    if message[:4] == REFUSAL:
                        raise self._refused(read_refusal(message).text)
                    if self._is_expected(message):
                        expected.append(message)
                        (self._votes / self._folder.votes_name_of(message)).unlink(missing_ok=True)
                path.unlink()
        return expected
