# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The sink that writes aside: what it hands on, in which thread, and what becomes of errors."""

import gc
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from zanon_net import Config
from zanon_net._core import PacketEngine
from zanon_net.errors import OutputError
from zanon_net.output.async_sink import AsyncSink
from zanon_net.output.sink import Parts, Plan, Sink, Tables

PATIENCE_S = 20.0


class Slow(Sink):
    """A sink that waits until it may write, and can run out of room."""

    def __init__(self, *, fails_at: int = 0) -> None:
        self.may_write = threading.Event()
        self.begun = threading.Event()
        self.taken: list[bytes] = []
        self.ends: list[str] = []
        self.threads: set[threading.Thread] = set()
        self.signals: set[int] = set()
        self._fails_at = fails_at

    def take(self, parts: Parts, tables: Tables) -> None:
        """Keeps the text."""
        self.begun.set()
        assert self.may_write.wait(PATIENCE_S)
        self.threads.add(threading.current_thread())
        self.signals = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        if len(self.taken) + 1 == self._fails_at:
            raise OutputError("cannot write: no room")
        self.taken += [bytes(text) for _at, texts, _rows in parts for text, _n in texts.values()]

    def finish(self, first_ns: int | None) -> None:
        """Notes it."""
        self.ends.append("finish")

    def publish(self, manifest: bytes) -> None:
        """Notes it."""
        self.ends.append("publish")

    def discard(self) -> None:
        """Notes it."""
        self.ends.append("discard")

    def abandon(self, manifest: Callable[[], bytes], kept_from: int | None = None) -> None:
        """Notes it, with what was taken by then."""
        self.ends.append(f"abandon {len(self.taken)}")

    @property
    def is_large(self) -> bool:
        """After two pieces."""
        return len(self.taken) >= 2

    @property
    def written(self) -> Mapping[str, int]:
        """The pieces."""
        return {"packets": len(self.taken)}


def piece(text: bytes | memoryview) -> tuple[Parts, Tables]:
    """What an engine's output is drained into."""
    return [(None, {"packets": (text, 1)}, {})], {}


@pytest.fixture
def slow() -> Iterator[Slow]:
    """A sink whose thread ends with the test."""
    sink = Slow()
    yield sink
    sink.may_write.set()


def aside(sink: Slow, **plan: Any) -> AsyncSink:
    """A sink that has this one write in a thread of an engine."""
    engine = PacketEngine(**Config().replace(workers=2).engine_arguments())
    return AsyncSink(sink, Plan(("packets",), **plan), engine.call_aside)


def test_a_piece_is_written_while_the_next_is_made(slow: Slow) -> None:
    sink = aside(slow)
    sink.take(*piece(b"a"))
    assert slow.begun.wait(PATIENCE_S)
    assert slow.taken == []
    threading.Timer(0.05, slow.may_write.set).start()
    sink.take(*piece(b"b"))  # waits for the first
    assert slow.taken[0] == b"a"
    sink.finish(0)
    assert slow.taken == [b"a", b"b"]
    sink.publish(b"")
    assert slow.ends == ["finish", "publish"]
    assert threading.main_thread() not in slow.threads
    assert signal.SIGINT in slow.signals
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_the_memory_of_a_piece_is_free_when_the_next_is_taken(slow: Slow) -> None:
    class Memory(bytearray):
        """Bytes that can be watched."""

    slow.may_write.set()
    sink = aside(slow)
    memory = Memory(b"a")
    gone = weakref.ref(memory)
    sink.take(*piece(memoryview(memory)))
    del memory
    sink.take(*piece(b"b"))
    gc.collect()
    assert gone() is None
    sink.discard()


def test_nothing_to_write_does_not_wait(slow: Slow) -> None:
    sink = aside(slow)
    sink.take(*piece(b"a"))
    began = time.monotonic()
    sink.take([(None, {}, {})], {})
    assert not sink.is_large
    assert time.monotonic() - began < PATIENCE_S / 2
    slow.may_write.set()
    sink.discard()
    assert slow.taken == [b"a"]


def test_an_error_is_raised_by_the_next_take() -> None:
    slow = Slow(fails_at=1)
    slow.may_write.set()
    sink = aside(slow)
    sink.take(*piece(b"a"))
    with pytest.raises(OutputError, match="no room"):
        sink.take(*piece(b"b"))
    sink.abandon(lambda: b"")
    sink.discard()
    assert (slow.taken, slow.ends) == ([], ["abandon 0", "discard"])


def test_an_error_of_the_last_piece_is_raised_at_the_end() -> None:
    slow = Slow(fails_at=2)
    slow.may_write.set()
    sink = aside(slow)
    sink.take(*piece(b"a"))
    sink.take(*piece(b"b"))
    with pytest.raises(OutputError, match="no room"):
        sink.finish(0)
    with pytest.raises(OutputError, match="no room"):
        sink.rotate(0, 1)
    sink.abandon(lambda: b"")
    assert (slow.taken, slow.ends) == ([b"a"], ["abandon 1"])


@pytest.mark.parametrize("end", ["discard", "abandon", "written", "files"])
def test_every_end_waits_for_the_thread(slow: Slow, end: str) -> None:
    sink = aside(slow)
    sink.take(*piece(b"a"))
    threading.Timer(0.05, slow.may_write.set).start()
    if end == "abandon":
        sink.abandon(lambda: b"")
    elif end == "discard":
        sink.discard()
    else:
        _ = getattr(sink, end)
    assert slow.taken == [b"a"]
    assert sink.written == {"packets": 1}


def test_the_size_is_asked_for_only_where_it_ends_parts(slow: Slow) -> None:
    slow.may_write.set()
    sink = aside(slow, split_bytes=1)
    sink.take(*piece(b"a"))
    assert not sink.is_large
    sink.take(*piece(b"b"))
    assert sink.is_large
    sink.discard()


def test_without_a_piece_no_thread_is_asked_for(slow: Slow) -> None:
    calls: list[Callable[[], None]] = []
    sink = AsyncSink(slow, Plan(("packets",)), calls.append)
    sink.finish(None)
    sink.publish(b"")
    assert calls == []
    assert slow.ends == ["finish", "publish"]


def test_an_engine_waits_for_a_call_that_is_under_way(slow: Slow) -> None:
    engine = PacketEngine(**Config().replace(workers=2).engine_arguments())
    sink = AsyncSink(slow, Plan(("packets",)), engine.call_aside)
    sink.take(*piece(b"a"))
    assert slow.begun.wait(PATIENCE_S)
    threading.Timer(0.05, slow.may_write.set).start()
    engine.close()
    assert slow.taken == [b"a"]
    with pytest.raises(ValueError, match="closed"):
        engine.call_aside(lambda: None)
