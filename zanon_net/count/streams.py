# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Connections that carry frames: an event loop in its own thread, and reading a frame."""

import asyncio
import os
import socket
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Any

from zanon_net.count.frames import length_of
from zanon_net.errors import FormatError
from zanon_net.system.log import log
from zanon_net.system.signals import signals_blocked

DEAD_AFTER_S = 15  # time without an answer of the peer's system while there are bytes to send
CLOSING_S = 2.0
REPEATED_S = 60.0  # time between two warnings of one subject


async def read_frame(reader: asyncio.StreamReader, most: int) -> bytes:
    """Returns the next message, of up to `most` bytes. Raises FormatError, IncompleteReadError,
    OSError."""
    length = length_of(await reader.readexactly(4))
    if length > most:
        raise FormatError(f"a message of {length} bytes cannot come here")
    return await reader.readexactly(length)


def watch_peer(writer: asyncio.StreamWriter) -> None:
    """Lets the system end a connection whose peer is gone or cut off."""
    connection = writer.get_extra_info("socket")
    options = [
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPIDLE", None), DEAD_AFTER_S),
        (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPINTVL", None), DEAD_AFTER_S // 3),
        (socket.IPPROTO_TCP, getattr(socket, "TCP_KEEPCNT", None), 3),
        (socket.IPPROTO_TCP, getattr(socket, "TCP_USER_TIMEOUT", None), DEAD_AFTER_S * 1000),
    ]
    for level, name, value in options:
        if name is not None and connection is not None:  # it may be lost by now
            with suppress(OSError):
                connection.setsockopt(level, name, value)


class LoopThread:
    """Event loop in a daemon thread that takes no signals."""

    def __init__(self, name: str) -> None:
        self._warned: dict[str, float] = {}
        self._tasks: list[Future[Any]] = []  # a loop has weak references to its tasks
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._say)
        self._thread = Thread(target=self._loop.run_forever, name=name, daemon=True)
        with signals_blocked():
            self._thread.start()

    def call(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Calls a function in the thread soon. Does nothing after `close`."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Starts a task in the thread and keeps it until it ends."""
        self._tasks.append(asyncio.run_coroutine_threadsafe(work, self._loop))

    def wait_for(self, work: Coroutine[Any, Any, Any], timeout: float | None = None) -> Any:
        """Runs a task in the thread, and returns its result. Raises TimeoutError."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout)
        except TimeoutError:
            future.cancel()
            raise

    def warn(self, text: str, subject: str = "") -> None:
        """Logs a warning that may recur, from the thread. subject: key of texts that differ."""
        now, subject = time.monotonic(), subject or text
        if now - self._warned.get(subject, -REPEATED_S) >= REPEATED_S:
            self._warned[subject] = now
            log.warning("warning: %s", text)

    def close(self) -> None:
        """Ends the tasks and the thread. A second call does nothing."""
        if self._thread.is_alive():
            with suppress(TimeoutError):
                self.wait_for(_cancel_others(), CLOSING_S)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(CLOSING_S)
        if not self._thread.is_alive():
            self._loop.close()

    def _say(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Logs an error in one line, because asyncio would log a trace with addresses."""
        error = context.get("exception")
        number = error.errno if isinstance(error, OSError) else None
        if error is not None:  # a context without an error is about asyncio's own tasks
            reason = os.strerror(number) if number else type(error).__name__
            self.warn(f"a connection cannot be served: {reason}")


async def _cancel_others() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
