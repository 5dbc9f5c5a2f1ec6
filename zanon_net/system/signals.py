# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Signals that end the reading of a run, or request new files."""

import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any, Self

REMOVAL_S = 2.0  # more than the removal of a run's files takes


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Blocks signals in threads that are started inside.

    A signal has to end the engine's wait for packets, which is in the main thread.
    """
    former = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


class StopReading(Exception):  # noqa: N818  (a request, not an error)
    """A signal came while the core was waiting for packets."""


class Interruption:
    """Inside `with Interruption()`, SIGINT and SIGTERM end the reading instead of the process.

    The run then finishes and writes all that it has read. A second signal raises KeyboardInterrupt,
    wherever the run may be, so that its files are removed; further signals are ignored for
    REMOVAL_S seconds. Main thread only.

    rotates: SIGHUP requests new files, and that lists are read again, unless the process ignores
        SIGHUP, as under nohup.
    """

    def __init__(self, *, rotates: bool = False) -> None:
        self.requested = False
        self._gave_up: float | None = None  # monotonic time of the second signal
        self._hears_hangups = rotates
        self.rotation = False  # new files are requested; take_rotation resets it
        self._reread = False  # lists are to be read again; take_reread resets it
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
            self._reading = self._rotates = False  # raises only once, also in `reading` itself
            raise StopReading

    def _on_hangup(self, _number: int, _frame: FrameType | None) -> None:
        self.rotation = self._reread = True
        self._rotation_missed = not self._rotates
        if self._rotates:
            self._reading = self._rotates = False  # raises only once, also in `reading` itself
            raise StopReading

    def obey(self, number: int) -> None:
        """Makes this process, which was just forked, take `number` for SIGTERM. It ignores SIGINT
        and SIGTERM, which may come to both processes, and a signal that came to its parent."""
        self.requested = False
        for ignored in (signal.SIGINT, signal.SIGTERM):
            signal.signal(ignored, signal.SIG_IGN)
        signal.signal(number, self._on_signal)

    def take_rotation(self) -> bool:
        """Returns true if SIGHUP requested new files since the last call."""
        self._rotation_missed = False
        asked, self.rotation = self.rotation, False
        return asked

    def take_reread(self) -> bool:
        """Returns true if SIGHUP requested since the last call that lists are read again."""
        asked, self._reread = self._reread, False
        return asked

    def reading(self, *, rotates: bool = True) -> AbstractContextManager[None]:
        """Makes a signal inside the block raise StopReading; SIGHUP only if `rotates`.

        An earlier SIGHUP that take_rotation has not reported yet raises it here, once, because the
        stream may be silent for a long time.
        """
        return _Reading(self, rotates=rotates)

    def _begin_reading(self, *, rotates: bool) -> None:
        """Makes signals raise StopReading from now on; see `reading`."""
        self._reading, self._rotates = True, rotates
        missed = rotates and self._rotation_missed
        if missed:
            self._rotation_missed = False
        if self.requested or missed:
            self._end_reading()
            raise StopReading

    def _end_reading(self) -> None:
        """Makes signals raise no StopReading from now on."""
        self._reading = self._rotates = False


class _Reading:
    """Block of `Interruption.reading`. A generator takes longer, once for each capture."""

    def __init__(self, interruption: Interruption, *, rotates: bool) -> None:
        self._interruption, self._rotates = interruption, rotates

    def __enter__(self) -> None:
        self._interruption._begin_reading(rotates=self._rotates)

    def __exit__(self, *exc: object) -> None:
        self._interruption._end_reading()
