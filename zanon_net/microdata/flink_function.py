# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A Publisher for each key of a keyed stream, in the shape of Flink's KeyedProcessFunction.

The module does not import Flink. A function uses Flink's objects by the names of PyFlink alone: a
runtime context with get_state, a value state with value() and update(), a context with
get_current_key() and timer_service(), a timer service with register_event_time_timer. So the
function runs in a job, and in a program or test that has these four objects.
"""

from collections.abc import Iterator
from typing import Any, Protocol

from zanon_net.config.parse import reject
from zanon_net.microdata.plan import Plan
from zanon_net.microdata.publishing import Publisher

NS_PER_MS = 1_000_000
KEYS_MAX = 1024
"""Publishers that a function keeps in memory; all other publishers are restored from their
states."""


class ValueState(Protocol):
    """State of the current key that is part of each checkpoint."""

    def value(self) -> bytes | None:
        """Returns the bytes that were put last."""

    def update(self, value: bytes) -> None:
        """Puts bytes into the state."""


class RuntimeContext(Protocol):
    """Flink's object that opens a function."""

    def get_state(self, descriptor: Any) -> ValueState:
        """Returns the state of this description."""


class TimerService(Protocol):
    """Timers of the current key."""

    def register_event_time_timer(self, timestamp: int) -> None:
        """Makes Flink call on_timer when the stream's time reaches `timestamp`, ms since 1970."""


class Context(Protocol):
    """Flink's object about an element."""

    def get_current_key(self) -> Any:
        """Returns the key."""

    def timer_service(self) -> TimerService:
        """Returns the timers of the key."""


class PublishFunction:
    """Releases the rows of each key as a Publisher of its own.

    An element is a batch of rows (as Publisher.feed takes); the key of all its rows is a part of
    plan.partition(), never the user. Yields tables of released rows. The guarantee holds for the
    releases of each key, and so for all of them together. A key that sees fewer than k users within
    the delay suppresses its rows.

    The state of a key is the state of its Publisher, and it is up to date after each call, so a job
    that restarts from a checkpoint gives the same output. An event-time timer at the deadline of
    the oldest row releases it in time.

    plan, settings: as for Publisher; a delay is needed, because only timers end the last window.
    descriptor: of the state, as the runtime context takes it (PyFlink: ValueStateDescriptor).
    """

    def __init__(self, plan: Plan, *, descriptor: Any = "publisher", **settings: Any) -> None:
        if settings.get("delay") is None:
            reject("delay", "is needed: nothing else ends the last window of a key")
        self._plan, self._settings, self._descriptor = plan, settings, descriptor
        Publisher(plan, **settings)  # wrong settings raise an error now, not in the job
        self._state: ValueState | None = None
        self._live: dict[Any, tuple[bytes, Publisher]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state that a job ships to its workers: no rows."""
        return {**self.__dict__, "_state": None, "_live": {}}

    def open(self, runtime_context: RuntimeContext) -> None:
        """Begins, or resumes from a checkpoint."""
        self._state = runtime_context.get_state(self._descriptor)
        self._live = {}

    def close(self) -> None:
        """Forgets the publishers; their states are the checkpoint's."""
        self._live = {}

    def process_element(self, value: Any, ctx: Context) -> Iterator[Any]:
        """Takes a batch of rows of one key; yields the released rows."""
        publisher = self._publisher(ctx)
        released = publisher.feed(value)
        yield from self._done(publisher, released, ctx)

    def on_timer(self, timestamp: int, ctx: Context) -> Iterator[Any]:
        """Takes a time of the stream, `timestamp` in ms since 1970; yields the released rows."""
        publisher = self._publisher(ctx)
        released = publisher.advance(timestamp * NS_PER_MS)
        yield from self._done(publisher, released, ctx)

    def _publisher(self, ctx: Context) -> Publisher:
        """Returns the publisher of the current key: kept, restored from its state, or new."""
        assert self._state is not None, "open() comes first"
        saved = self._state.value()
        if saved is None:
            return Publisher(self._plan, **self._settings)
        state, publisher = self._live.get(ctx.get_current_key(), (b"", None))
        if publisher is None or state != saved:
            publisher = Publisher.restore(saved, self._plan)
        return publisher

    def _done(self, publisher: Publisher, released: Any, ctx: Context) -> Iterator[Any]:
        assert self._state is not None
        saved = publisher.state(with_plan=False)
        self._state.update(saved)
        while len(self._live) >= KEYS_MAX:
            del self._live[next(iter(self._live))]
        self._live[ctx.get_current_key()] = (saved, publisher)
        deadline = publisher.deadline_ns
        if deadline is not None:
            ctx.timer_service().register_event_time_timer(-(-deadline // NS_PER_MS))
        if released.num_rows:
            yield released
