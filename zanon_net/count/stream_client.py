# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Client of a counter over TCP, with TLS, or without TLS on one machine."""

import asyncio
import os
import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from queue import Empty, Queue
from threading import Event

from zanon_net.count.client_base import CountClient
from zanon_net.count.frames import (
    ANSWERS,
    FRAME_MAX,
    REFUSAL,
    Hello,
    Key,
    Welcome,
    answers_header,
    framed,
    read_refusal,
    read_welcome,
    write_hello,
    write_receipts,
)
from zanon_net.count.streams import LoopThread, read_frame, watch_peer
from zanon_net.count.tls import not_accepted
from zanon_net.count.url import Place
from zanon_net.errors import FormatError
from zanon_net.system.log import log

PATIENCE_S = (0.1, 5.0)  # first and longest time between two attempts to connect
CONNECTING_S = 10.0


class StreamClient(CountClient):
    """See CountClient. A thread connects, and reconnects after each loss.

    said: problems that are not logged again before there is a connection.
    """

    def __init__(
        self,
        place: Place,
        hello: Hello,
        tls: ssl.SSLContext | None,
        said: frozenset[str] = frozenset(),
        welcome: Welcome | None = None,
    ) -> None:
        super().__init__(hello, welcome)
        self._place, self._tls = place, tls
        self._answers: Queue[bytes | None] = Queue()  # see Listener
        self._writer: asyncio.StreamWriter | None = None
        self._answered = Event()  # set by the first welcome or refusal
        self._refusal: str | None = None
        self._said = set(said)  # problems since there was a connection
        self._thread = LoopThread("counting")
        self._thread.start(self._run())

    @property
    def is_connected(self) -> bool:
        """See CountClient."""
        return self._writer is not None

    def welcome(self, timeout: float) -> Welcome | None:
        """See CountClient."""
        self._answered.wait(timeout)
        self._check()
        return self._welcome

    def send(self, message: bytes) -> None:
        """See CountClient."""
        self._check()
        self._keep(message)
        self._thread.call(self._write, message)

    def receive(self, timeout: float) -> list[bytes]:
        """See CountClient."""
        answers: list[bytes | None] = []
        with suppress(Empty):
            answers.append(self._answers.get(timeout=timeout) if timeout else None)
            while True:
                answers.append(self._answers.get_nowait())
        self._check()
        return [answer for answer in answers if answer is not None and self._is_expected(answer)]

    def as_another(self, probe: int) -> "StreamClient":
        """See CountClient."""
        hello, said = Hello(probe, self.hello.settings), frozenset(self._said)
        return StreamClient(self._place, hello, self._tls, said, self._welcome)

    def close(self) -> None:
        """See CountClient."""
        self._thread.close()

    def _check(self) -> None:
        if self._refusal is not None:
            raise self._refused(self._refusal)

    # ---- in the thread ---------------------------------------------------------------------------

    async def _run(self) -> None:
        patience = PATIENCE_S[0]
        while self._refusal is None:
            try:
                reader, writer = await asyncio.wait_for(self._connect(), CONNECTING_S)
            except (OSError, ssl.SSLError, TimeoutError) as error:
                self._say(f"no counter answers: {_reason(error)}")
            else:
                try:
                    await self._talk(reader, writer)  # until it is refused
                except (OSError, ssl.SSLError, EOFError, FormatError) as error:
                    if self._writer is not None:
                        patience = PATIENCE_S[0]
                        self._say(f"the connection to the counter is lost: {_reason(error)}")
                    else:
                        self._say(f"no counter answers: {self._reason_at_first(error)}")
                finally:
                    self._writer = None
                    writer.transport.abort()
            await asyncio.sleep(patience)
            patience = min(2 * patience, PATIENCE_S[1])

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            self._place.host,
            self._place.port,
            ssl=self._tls,
            server_hostname=self._place.host if self._tls else None,
        )

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reads messages until the connection ends, or the counter refuses the probe."""
        watch_peer(writer)
        writer.write(framed(write_hello(self.hello)))
        while True:
            message = await read_frame(reader, FRAME_MAX)
            if message[:4] == REFUSAL:
                return self._be_refused(message)
            if message[:4] == ANSWERS:
                writer.write(framed(write_receipts([answers_header(message).key])))
                self._answers.put(message)
            elif problem := self._problem_of(welcome := read_welcome(message)):
                return self._stop(problem)
            else:
                self._begin(welcome, writer)

    def _begin(self, welcome: Welcome, writer: asyncio.StreamWriter) -> None:
        self._welcome, self._writer = welcome, writer
        self._said.clear()
        self._answered.set()
        # A message that `send` keeps meanwhile is written twice, which the counter notices.
        unanswered: Iterable[tuple[Key, bytes]] = list(self._unanswered.items())
        for _key, message in unanswered:
            self._write(message)

    def _write(self, message: bytes) -> None:
        if self._writer is not None:
            self._writer.write(framed(message))

    def _be_refused(self, message: bytes) -> None:
        refusal = read_refusal(message)
        if refusal.is_final:
            self._stop(refusal.text)
        else:
            self._thread.warn(
                f"the counter refuses this probe for now: {refusal.text}; names stay suppressed",
                subject="refusal",  # it has another figure each time
            )

    def _stop(self, refusal: str) -> None:
        self._refusal = refusal
        self._answered.set()
        self._answers.put(None)  # ends a wait for answers

    def _say(self, problem: str) -> None:
        """Warns once of each problem until a counter answers."""
        if problem not in self._said:
            self._said.add(problem)
            log.warning("warning: %s; names stay suppressed until it answers", problem)

    def _reason_at_first(self, error: BaseException) -> str:
        """Returns the reason why a connection ended without a message. In TLS 1.3 the peer refuses
        a certificate after the handshake, and without a reason."""
        if self._tls is not None and isinstance(error, EOFError | ConnectionError):
            return (
                "it ends the connection at once, as where it does not accept the certificate of"
                " this probe; what it logs says why"
            )
        return _reason(error)


def _reason(error: BaseException) -> str:
    """Returns the reason of the system or of TLS, without an address or a host name."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return not_accepted(error)
    if isinstance(error, ssl.SSLError):
        return f"TLS fails ({(error.reason or 'unknown').replace('_', ' ').lower()})"
    if isinstance(error, EOFError):
        return "it was closed"
    if isinstance(error, TimeoutError):
        return "it takes too long"
    if isinstance(error, socket.gaierror):
        return "its name is unknown"
    if isinstance(error, OSError):  # asyncio puts the address into the text of some
        return os.strerror(error.errno) if error.errno else "no reason is known"
    return str(error)
