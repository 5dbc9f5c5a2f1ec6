# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Votes and answers over NATS JetStream: nats://HOST:PORT/STREAM.

STREAM has the subjects STREAM.votes.PROBE, whose messages are frames of votes. The stream
STREAM-answers has STREAM.answers.PROBE. JetStream drops a message whose id it has seen lately.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import nats
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, StreamConfig
from nats.js.errors import NotFoundError

from zanon_net.count.by_probe import records_by_probe
from zanon_net.count.commits import Commit
from zanon_net.count.frames import messages_in
from zanon_net.count.streams import LoopThread
from zanon_net.count.transport import Received, Transport
from zanon_net.count.url import Place
from zanon_net.errors import FormatError, ZanonError

MESSAGES = 256  # fetched at once
CONNECTING_S = 10.0
PATIENCE_S = 60.0  # wait for an unreachable server; the journal keeps unpublished answers

POSITION = "sequence"


class NatsTransport(Transport):
    """Transport over streams of JetStream, which it creates if they are missing. Raises ZanonError.

    max_age_s: seconds for which a created stream keeps a message.
    """

    def __init__(self, place: Place, max_age_s: float) -> None:
        self._place, self._max_age_s = place, max_age_s
        self._next = 1
        self._series = ""
        self._votes: JetStreamContext.PullSubscription | None = None
        self._thread = LoopThread("nats")
        try:
            self._stream: JetStreamContext = self._run(self._connect())
        except ZanonError:
            self._thread.close()
            raise

    @property
    def positions(self) -> Mapping[str, int]:
        """See Transport."""
        return {POSITION: self._next}

    def seek(self, positions: Mapping[str, int]) -> None:
        """See Transport."""
        self._next = positions.get(POSITION, 1)

    def start(self, series: str) -> None:
        """See Transport."""
        self._series = series

    def take(self, timeout: float) -> list[Received]:
        """See Transport."""
        received = []
        for message in self._run(self._fetch(timeout)):
            self._next = message.metadata.sequence.stream + 1
            try:
                received += [Received(votes) for votes in messages_in(message.data)]
            except FormatError:
                received.append(Received(message.data))  # refused and counted as it is
        return received

    def publish(self, commit: Commit, answers: Sequence[bytes]) -> None:
        """See Transport: messages for each probe."""
        for probe, part, frames in records_by_probe(answers):
            subject = f"{self._place.name}.answers.{probe}"
            message_id = f"{self._series}-{commit.name}-{probe}-{part}"
            self._run(self._send(subject, frames, message_id))

    def close(self) -> None:
        """See Transport."""
        self._thread.close()

    def _run(self, work: Any) -> Any:
        try:
            return self._thread.wait_for(work, PATIENCE_S + 5)
        except (NatsError, OSError, TimeoutError):
            raise ZanonError(
                f"the NATS server on port {self._place.port} does not answer, or refuses the stream"
                f" {self._place.name}; start it with JetStream, and begin again"
            ) from None

    # ---- in the thread ---------------------------------------------------------------------------

    async def _connect(self) -> JetStreamContext:
        connecting = nats.connect(
            f"nats://{self._place.address}",
            max_reconnect_attempts=-1,  # the first attempt included
            error_cb=_say_nothing,
        )
        client = await asyncio.wait_for(connecting, CONNECTING_S)
        stream = client.jetstream(timeout=5)
        name = self._place.name
        for stream_name, kind in ((name, "votes"), (f"{name}-answers", "answers")):
            try:
                await stream.stream_info(stream_name)
            except NotFoundError:
                await stream.add_stream(
                    StreamConfig(
                        name=stream_name, subjects=[f"{name}.{kind}.>"], max_age=self._max_age_s
                    )
                )
        return stream

    async def _fetch(self, timeout: float) -> list[Msg]:
        try:
            if self._votes is None:
                self._votes = await self._subscribe()
            return list(await self._votes.fetch(MESSAGES, timeout=max(timeout, 0.01)))
        except (TimeoutError, NatsTimeoutError):
            return []
        except NatsError:  # the consumer is gone, as after a restart of the server
            self._votes = None
            await asyncio.sleep(timeout)
            return []

    async def _subscribe(self) -> JetStreamContext.PullSubscription:
        return await self._stream.pull_subscribe(
            f"{self._place.name}.votes.>",
            stream=self._place.name,
            config=ConsumerConfig(
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=self._next,
                ack_policy=AckPolicy.NONE,
            ),
        )

    async def _send(self, subject: str, frames: bytes, message_id: str) -> None:
        until = asyncio.get_running_loop().time() + PATIENCE_S
        while True:
            try:
                await self._stream.publish(subject, frames, headers={"Nats-Msg-Id": message_id})
            except NatsError:
                if asyncio.get_running_loop().time() > until:
                    raise
                await asyncio.sleep(0.5)
            else:
                return


async def _say_nothing(_error: Exception) -> None:
    """Drops an error of the client. The client retries, and the error's text has addresses."""
