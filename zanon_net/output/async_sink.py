# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A sink whose thread writes the last piece while the engine continues."""

from collections.abc import Callable, Mapping
from threading import Event
from typing import Any

from zanon_net.output.disk import DiskFacts
from zanon_net.output.sink import Parts, Plan, Sink, Tables
from zanon_net.system.signals import signals_blocked


class AsyncSink(Sink):
    """Passes pieces to the real sink in calls that another thread makes.

    call_aside: starts a call in another thread, one at a time, and returns at once. At most one
    piece waits or is being written, because the engine has memory for two outputs. An error of the
    other thread is raised by the next call of `take`, `rotate`, `flush`, `tend`, `keep_state` or
    `finish`, and nothing is written after it. The calls that end a run wait for the piece first.
    """

    def __init__(
        self, sink: Sink, plan: Plan, call_aside: Callable[[Callable[[], None]], None]
    ) -> None:
        self._sink, self._call_aside = sink, call_aside
        self._is_divided_by_size = plan.split_bytes != 0
        self.place, self.is_file = sink.place, sink.is_file
        self._last: Event | None = None  # set when the last piece is written
        self._error: BaseException | None = None

    # A signal may raise KeyboardInterrupt anywhere in the main thread: each wait can be repeated.

    def _writing(self, parts: Parts, tables: Tables, done: Event) -> Callable[[], None]:
        """Returns a call that writes a piece, once."""
        piece = [(parts, tables)]

        def write() -> None:
            try:
                self._sink.take(*piece.pop())  # the engine can use their memory again
            except BaseException as error:  # raised in a call whose errors the run handles
                self._error = error
            done.set()

        return write

    def _resting(self) -> Sink:
        """Returns the real sink when nothing is being written, even if the last write failed."""
        if self._last is not None:
            self._last.wait()
        return self._sink

    def _idle(self) -> Sink:
        """Returns the real sink when nothing is being written. Raises the error of the last
        write."""
        sink = self._resting()
        if self._error is not None:
            raise self._error
        return sink

    def take(self, parts: Parts, tables: Tables) -> None:
        """See Sink."""
        if not any(texts for _period, texts, _rows in parts) and not tables and len(parts) == 1:
            return
        self._idle()
        done = Event()
        call = self._writing(parts, tables, done)
        del parts, tables
        with signals_blocked():
            self._call_aside(call)
            self._last = done

    def rotate(self, first_ns: int, now_ns: int) -> None:
        """See Sink."""
        self._idle().rotate(first_ns, now_ns)

    @property
    def is_large(self) -> bool:
        """See Sink."""
        return self._is_divided_by_size and self._idle().is_large

    @property
    def parts(self) -> int:  # type: ignore[override]
        """See Sink. Does not wait for the thread."""
        return self._sink.parts

    def flush(self, *, blocks: bool) -> None:
        """See Sink."""
        self._idle().flush(blocks=blocks)

    def keep_state(self, manifest: Callable[[], bytes]) -> None:
        """See Sink."""
        self._idle().keep_state(manifest)

    def tend(self) -> bool:
        """See Sink."""
        return self._idle().tend()

    @property
    def disk(self) -> DiskFacts:
        """See Sink."""
        return self._resting().disk

    @property
    def lost(self) -> Mapping[str, int]:
        """See Sink."""
        return self._resting().lost

    def finish(self, first_ns: int | None) -> None:
        """See Sink."""
        self._idle().finish(first_ns)

    def publish(self, manifest: bytes) -> None:
        """See Sink."""
        self._resting().publish(manifest)

    def discard(self) -> None:
        """See Sink."""
        self._resting().discard()

    def abandon(self, manifest: Callable[[], bytes], kept_from: int | None = None) -> None:
        """See Sink."""
        self._resting().abandon(manifest, kept_from)

    @property
    def was_cut(self) -> bool:  # type: ignore[override]
        """See Sink."""
        return self._resting().was_cut

    @property
    def files(self) -> list[dict[str, Any]]:
        """See Sink."""
        return self._resting().files

    @property
    def written(self) -> Mapping[str, int]:
        """See Sink."""
        return self._resting().written
