# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Signals that end the reading of a run, or ask it for new files."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

REMOVAL_S = 2.0  # more than it takes to remove a run's files


class StopReading(Exception):  # noqa: N818  (no error: a wish)
    """A signal came while the core was waiting for packets."""


class Interruption:
    """While entered, SIGINT and SIGTERM end the reading instead of the process.

    What was read is then finished and written. A second signal raises KeyboardInterrupt, wherever
    the run may be, so that what it wrote is removed; others do not disturb that for REMOVAL_S.
    rotates: SIGHUP asks for new files, but stays ignored where it was, as nohup wants it. Main
    thread only.
    """

    def __init__(self, *, rotates: bool = False) -> None:
        self.requested = False
        self._gave_up: float | None = None  # when the second one came
        self._hears_hangups = rotates
        self.rotation = False  # asked for, and for whoever does it to take back
        self._reading = self._rotates = self._rotation_missed = False
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._former[number] = signal.signal(number, self._on_signal)
        if self._hears_hangups and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            self._former[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._on_hangup)
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.requested:
            now, before = time.monotonic(), self._gave_up
            if before is not None and now - before < REMOVAL_S:
                return
            self._gave_up = now
            raise KeyboardInterrupt
        self.requested = True
        if self._reading:
            self._reading = self._rotates = False  # once, also where `reading` begins or ends
            raise StopReading

    def _on_hangup(self, _number: int, _frame: FrameType | None) -> None:
        self.rotation = True
        self._rotation_missed = not self._rotates
        if self._rotates:
            self._reading = self._rotates = False  # once, also where `reading` begins or ends
            raise StopReading

    def take_rotation(self) -> bool:
        """Whether SIGHUP asked for new files since this was asked last."""
        self._rotation_missed = False
        asked, self.rotation = self.rotation, False
        return asked

    @contextmanager
    def reading(self, *, rotates: bool = True) -> Iterator[None]:
        """Inside, and only there, a signal raises StopReading; SIGHUP only if `rotates`.

        A SIGHUP that came before, and that nobody has taken yet, raises it here, once: what is read
        may have nothing to give for a long time.
        """
        self._reading, self._rotates = True, rotates
        try:
            missed = rotates and self._rotation_missed
            if missed:
                self._rotation_missed = False
            if self.requested or missed:
                raise StopReading
            yield
        finally:
            self._reading = self._rotates = False
