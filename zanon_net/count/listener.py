# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Transport of a counter over TCP, with TLS, or without TLS on one machine."""

import asyncio
import hashlib
import json
import os
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import Empty, Queue
from threading import Lock
from typing import Any

from zanon_net.count.commits import COUNTED, UNCOUNTED, Commit
from zanon_net.count.frames import (
    FRAME_MAX,
    HELLO_BYTES,
    OTHER_SETTINGS,
    RECEIPT,
    Hello,
    Key,
    Refusal,
    VotesHeader,
    Welcome,
    answers_header,
    framed,
    messages_in,
    read_hello,
    read_receipts,
    votes_header,
    write_refusal,
    write_welcome,
)
from zanon_net.count.streams import LoopThread, read_frame, watch_peer
from zanon_net.count.tls import server_context
from zanon_net.count.transport import BATCH_BYTES, Received, Transport
from zanon_net.count.url import Place, TlsFiles
from zanon_net.errors import FormatError, ZanonError
from zanon_net.system.log import log

INTRODUCTION_S = 5.0  # time for a client to show its certificate and send its hello
WAITING_BYTES_MAX = 4 * BATCH_BYTES  # messages that were read and not taken
UNSENT_BYTES_MAX = 1 << 24  # answers that a client does not read
RETAINED_MAX = 1 << 16  # unconfirmed answers that are kept for a session
RETAINED_BYTES = 1 << 26  # bytes of these answers
RETAINED_S = 3600.0  # time for which they are kept while the session is not connected
OWNERS_MAX = 1 << 16  # sessions whose certificates are known
REFUSED_MAX = 1 << 12  # sessions that are known to be refused for good
PROBES_MAX = 16  # connected sessions of one certificate; each probe should have its own
FINISHING_S, POLL_S = 5.0, 0.02


class _Connection:
    """Connection of a probe, in the thread of the event loop.

    unheard: shards in which no message of the session was counted yet. Only the main thread uses
    it.
    """

    def __init__(self, hello: Hello, owner: str, writer: asyncio.StreamWriter, shards: int) -> None:
        self.probe, self.owner = hello.probe, owner
        self.unheard = set(range(shards))
        self._writer = writer

    def send(self, message: bytes) -> None:
        """Sends a message, unless the connection has ended. A client that does not read is cut off,
        and gets the message when it is back."""
        if self._writer.is_closing():  # asyncio raises on any call to a TLS transport closed twice
            return
        if self._writer.transport.get_write_buffer_size() > UNSENT_BYTES_MAX:
            self._writer.transport.abort()
        else:
            self._writer.write(framed(message))

    def end(self, refusal: Refusal | None = None) -> None:
        """Ends the connection, with a reason if one is given."""
        if refusal is not None:
            self.send(write_refusal(refusal))
        self._writer.close()


class _Retained:
    """Unconfirmed answers to one session, oldest first."""

    def __init__(self) -> None:
        self._messages: dict[Key, bytes] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._messages)

    def messages(self) -> list[bytes]:
        """Returns all messages."""
        return list(self._messages.values())

    def add(self, key: Key, message: bytes) -> int:
        """Keeps a message. Returns the number of messages that were dropped for it."""
        self.remove(key)
        self._messages[key] = message
        self._bytes += len(message)
        dropped = 0
        while len(self._messages) > RETAINED_MAX or self._bytes > RETAINED_BYTES:
            self.remove(next(iter(self._messages)))
            dropped += 1
        return dropped

    def remove(self, key: Key) -> None:
        """Forgets a message, if it is kept."""
        self._bytes -= len(self._messages.pop(key, b""))


class Listener(Transport):
    """Transport that keeps the answers to each probe until the probe confirms them, and sends them
    again to a probe that comes back.

    A session belongs to the certificate with which it first connected. Raises ZanonError if it
    cannot listen, ConfigError for files without certificates.
    """

    def __init__(self, place: Place, welcome: Welcome, tls: TlsFiles | None) -> None:
        self._welcome = welcome
        self._inbox: Queue[Received] = Queue()  # a signal can make SimpleQueue.get wait forever
        self._lock = Lock()
        self._waiting_bytes = 0
        self._may_read: asyncio.Event | None = None
        self._connections: dict[int, _Connection] = {}
        self._retained: dict[int, _Retained] = {}
        self._owners: dict[int, str] = {}
        self._lost: list[int] = []
        self._left_s: dict[int, float] = {}
        self._counts = {"answers_dropped": 0, "owners_forgotten": 0}
        self._refused: dict[int, Refusal] = {}
        context = None if tls is None else server_context(tls, self._say_refused)
        self._thread = LoopThread("listener")
        try:
            self._server = self._thread.wait_for(self._listen(place, context))
        except OSError as error:
            self._thread.close()
            reason = os.strerror(error.errno) if error.errno else "the address is unknown"
            raise ZanonError(
                f"cannot listen on port {place.port}: {reason}; choose another address or port"
            ) from None

    def start(self, series: str) -> None:
        """See Transport."""
        del series
        self._thread.wait_for(self._server.start_serving())
        log.notice("counting on port %d", self.port)

    @property
    def port(self) -> int:
        """Port on which it listens."""
        return int(self._server.sockets[0].getsockname()[1])

    def take(self, timeout: float) -> list[Received]:
        """See Transport."""
        received: list[Received] = []
        size = 0
        with suppress(Empty):
            received.append(self._inbox.get(timeout=timeout))
            while (size := size + len(received[-1].message)) < BATCH_BYTES:
                received.append(self._inbox.get_nowait())
        if received:
            self._thread.call(self._taken, sum(len(item.message) for item in received))
        return received

    def publish(self, commit: Commit, answers: Sequence[bytes]) -> None:
        """See Transport."""
        for entry in commit.entries:
            if entry.kind in (COUNTED, UNCOUNTED):
                self._note_heard(entry.header)
        with self._lock:
            for message in answers:
                self._retain(message)
            self._forget_long_gone()
        if answers:
            self._thread.call(self._send, answers)

    def refuse(self, received: Received, refusal: Refusal) -> None:
        """See Transport."""
        if isinstance(received.origin, _Connection):
            self._thread.call(self._end, received.origin, refusal)

    def take_lost(self) -> list[int]:
        """See Transport."""
        with self._lock:
            lost, self._lost = self._lost, []
        return lost

    @property
    def counts(self) -> Mapping[str, int]:
        """See Transport."""
        return self._counts

    def dump(self) -> bytes:
        """See Transport. Returns the unconfirmed answers, and the certificate of each session."""
        with self._lock:
            owners = json.dumps(self._owners).encode()
            frames = [
                framed(message) for kept in self._retained.values() for message in kept.messages()
            ]
        return b"".join((framed(owners.ljust(4)), *frames))

    def load(self, dumped: bytes) -> None:
        """See Transport."""
        if not dumped:
            return
        owners, *answers = messages_in(dumped)
        with self._lock:
            self._owners = {int(probe): owner for probe, owner in json.loads(owners).items()}
            for message in answers:
                self._retain(message)

    def finish(self) -> None:
        """See Transport. Waits for the receipts of the connected probes."""
        until = time.monotonic() + FINISHING_S
        while self._has_unconfirmed() and time.monotonic() < until:
            time.sleep(POLL_S)

    def _has_unconfirmed(self) -> bool:
        with self._lock:
            return any(
                len(kept) and probe in self._connections for probe, kept in self._retained.items()
            )

    def close(self) -> None:
        """See Transport."""
        self._thread.call(self._server.close)
        self._thread.close()

    def _retain(self, message: bytes) -> None:
        header = answers_header(message)
        kept = self._retained.setdefault(header.probe, _Retained())
        self._counts["answers_dropped"] += kept.add(header.key, message)

    def _note_heard(self, header: VotesHeader) -> None:
        """Notes a counted message of a session. Once every shard has counted one, decisions wait
        for the session, and so they need not wait for its previous session any more."""
        connection = self._connections.get(header.probe)
        if connection is not None and connection.unheard:
            connection.unheard.discard(header.shard)
            if not connection.unheard:
                self._thread.call(self._leave_former, connection.probe, connection.owner)

    def _forget_long_gone(self) -> None:
        """Forgets sessions that are not connected for RETAINED_S. Their names are suppressed by
        now."""
        now = time.monotonic()
        for probe in list(self._retained):
            if probe in self._connections:
                self._left_s.pop(probe, None)
            elif now - self._left_s.setdefault(probe, now) > RETAINED_S:
                self._forget(probe)

    def _forget(self, probe: int) -> None:
        self._owners.pop(probe, None)
        self._retained.pop(probe, None)
        self._left_s.pop(probe, None)

    def _bound_owners(self) -> None:
        """Forgets the oldest session that is not connected, if too many are known."""
        if len(self._owners) > OWNERS_MAX:
            gone = (probe for probe in self._owners if probe not in self._connections)
            self._counts["owners_forgotten"] += 1
            self._forget(next(gone))

    # ---- in the thread ---------------------------------------------------------------------------

    async def _listen(self, place: Place, context: ssl.SSLContext | None) -> asyncio.Server:
        self._may_read = asyncio.Event()
        self._may_read.set()
        handshake: dict[str, Any] = {"ssl_handshake_timeout": INTRODUCTION_S} if context else {}
        return await asyncio.start_server(
            self._serve, place.host, place.port, ssl=context, start_serving=False, **handshake
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        watch_peer(writer)
        connection = None
        try:
            introduction = await asyncio.wait_for(read_frame(reader, HELLO_BYTES), INTRODUCTION_S)
            connection = self._accept(read_hello(introduction), writer)
            while connection is not None:
                self._take_in(await read_frame(reader, FRAME_MAX), connection)
                await self._can_read()
        except (OSError, ssl.SSLError, EOFError, TimeoutError, asyncio.CancelledError):
            pass  # the client reconnects, or is gone, or this process ends
        except FormatError as error:
            log.warning("warning: a client was cut off: %s", error)
            writer.write(framed(write_refusal(Refusal(str(error), is_final=True))))
        finally:
            if connection is not None and self._connections.get(connection.probe) is connection:
                del self._connections[connection.probe]
            writer.close()

    def _say_refused(self, reason: str) -> None:
        self._thread.warn(f"a client is refused: {reason}")

    def _accept(self, hello: Hello, writer: asyncio.StreamWriter) -> _Connection | None:
        connection = _Connection(hello, _owner(writer), writer, self._welcome.shards)
        if problem := self._problem(hello, connection.owner):
            log.warning("warning: probe %016x is refused: %s", hello.probe, problem.text)
            connection.end(problem)
            return None
        if hello.probe in self._connections:  # the system has not noticed its loss yet
            self._connections[hello.probe].end()
        self._connections[hello.probe] = connection
        connection.send(write_welcome(self._welcome))
        with self._lock:
            retained = self._retained.get(hello.probe, _Retained()).messages()
        for message in retained:
            connection.send(message)
        return connection

    def _end(self, connection: _Connection, refusal: Refusal) -> None:
        """Ends a connection. A client that was writing may not read the reason before the cut, and
        gets it when it is back."""
        if refusal.is_final:
            self._refused[connection.probe] = refusal
            if len(self._refused) > REFUSED_MAX:
                del self._refused[next(iter(self._refused))]
        connection.end(refusal)

    def _problem(self, hello: Hello, owner: str) -> Refusal | None:
        """Returns the refusal of a client; None if it can be that session."""
        if hello.probe in self._refused:
            return self._refused[hello.probe]
        if hello.settings != self._welcome.settings:
            return Refusal(OTHER_SETTINGS, True)
        own = [probe for probe, link in self._connections.items() if link.owner == owner != ""]
        if len(own) >= PROBES_MAX and hello.probe not in own:
            return Refusal("its certificate has as many probes as one may have", False)
        with self._lock:
            if self._owners.setdefault(hello.probe, owner) != owner:
                return Refusal("it came with another certificate before", True)
            self._bound_owners()
        return None

    def _leave_former(self, present: int, owner: str) -> None:
        """Forgets the previous sessions of a certificate, unless they are connected."""
        if not owner:
            return
        with self._lock:
            numbers = [probe for probe, its in self._owners.items() if its == owner]
            before = numbers[: numbers.index(present)] if present in numbers else []
            former = [probe for probe in before if probe not in self._connections]
            for probe in former:
                self._forget(probe)
            self._lost += former

    def _take_in(self, message: bytes, connection: _Connection) -> None:
        if message[:4] == RECEIPT:
            with self._lock:
                kept = self._retained.get(connection.probe, _Retained())
                for key in read_receipts(message):
                    kept.remove(key)
        elif votes_header(message).probe != connection.probe:
            raise FormatError("a message of another probe came over its connection")
        else:
            self._waiting_bytes += len(message)
            self._inbox.put(Received(message, connection, connection.owner))

    async def _can_read(self) -> None:
        """Waits while many bytes are read and not taken, so that clients wait, too."""
        assert self._may_read is not None
        if self._waiting_bytes > WAITING_BYTES_MAX:
            self._may_read.clear()
        await self._may_read.wait()

    def _taken(self, size: int) -> None:
        assert self._may_read is not None
        self._waiting_bytes -= size
        if self._waiting_bytes <= WAITING_BYTES_MAX:
            self._may_read.set()

    def _send(self, answers: Sequence[bytes]) -> None:
        for message in answers:
            connection = self._connections.get(answers_header(message).probe)
            if connection is not None:
                connection.send(message)


def _owner(writer: asyncio.StreamWriter) -> str:
    """Returns a digest of the subject of the client's certificate, which a renewed certificate
    shares. A certificate without subject is digested itself. Returns "" without TLS."""
    certificate = writer.get_extra_info("peercert")
    if not certificate:
        return ""
    whole = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    name = repr(certificate["subject"]).encode() if certificate["subject"] else whole
    return hashlib.sha256(name).hexdigest()[:32]
