# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Votes and answers over Kafka's protocol: kafka://HOST:PORT/TOPIC.

A record of TOPIC has frames of votes, and the probe as its key. One of TOPIC-answers has frames of
answers, the probe as its key, and in the header `id` what a second run repeats: no transaction of
the broker's is needed.
"""

from collections.abc import Mapping, Sequence

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from zanon_net.count.by_probe import records_by_probe
from zanon_net.count.commits import Commit
from zanon_net.count.frames import messages_in
from zanon_net.count.transport import Received, Transport
from zanon_net.count.url import Place
from zanon_net.errors import FormatError, ZanonError

RECORDS = 256  # taken at once
PATIENCE_S = 60.0  # wait for an unreachable broker; the journal keeps unpublished answers
CONNECTING_S = 15.0


class KafkaTransport(Transport):
    """Transport that reads all partitions. It joins no group, because the counter's state has the
    offsets.

    Raises ZanonError if no broker answers, or the topic does not exist.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._series = ""
        client = {"bootstrap.servers": place.address, "logger": _quiet, "log_level": 0}
        self._consumer = Consumer(
            {
                **client,
                "group.id": "zanon-net-count",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        self._producer = Producer({**client, "enable.idempotence": True})
        self._positions = dict.fromkeys(self._partitions(), OFFSET_BEGINNING)

    @property
    def positions(self) -> Mapping[str, int]:
        """See Transport."""
        return {str(partition): offset for partition, offset in self._positions.items()}

    def seek(self, positions: Mapping[str, int]) -> None:
        """See Transport."""
        self._positions |= {int(partition): offset for partition, offset in positions.items()}
        self._assign()

    def start(self, series: str) -> None:
        """See Transport."""
        self._series = series
        self._assign()

    def take(self, timeout: float) -> list[Received]:
        """See Transport."""
        received = []
        for record in self._consumer.consume(RECORDS, timeout):
            partition, offset, error = record.partition(), record.offset(), record.error()
            if error is not None or partition is None or offset is None:
                self._check(error)
                continue
            self._positions[partition] = offset + 1
            frames = record.value() or b""
            try:
                received += [Received(votes) for votes in messages_in(frames)]
            except FormatError:
                received.append(Received(frames))  # refused and counted as it is
        return received

    def publish(self, commit: Commit, answers: Sequence[bytes]) -> None:
        """See Transport: records for each probe."""
        topic, failed = f"{self._place.name}-answers", []

        def note(error: KafkaError | None, _record: object) -> None:
            if error is not None:
                failed.append(error)

        try:
            for probe, part, frames in records_by_probe(answers):
                record_id = f"{self._series}-{commit.name}-{probe}-{part}"
                self._producer.produce(
                    topic, frames, probe, headers=[("id", record_id.encode())], on_delivery=note
                )
        except (BufferError, KafkaException):
            raise self._problem() from None
        if self._producer.flush(PATIENCE_S) or failed:
            raise self._problem()

    def close(self) -> None:
        """See Transport."""
        self._consumer.close()

    def _partitions(self) -> list[int]:
        try:
            topic = self._consumer.list_topics(self._place.name, CONNECTING_S)
        except KafkaException:
            raise self._problem() from None
        return list(topic.topics[self._place.name].partitions)

    def _assign(self) -> None:
        self._consumer.assign(
            [TopicPartition(self._place.name, *place) for place in self._positions.items()]
        )

    def _check(self, error: KafkaError | None) -> None:
        """Ends the counter where waiting does not help."""
        if error and (error.fatal() or error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART):
            raise self._problem()

    def _problem(self) -> ZanonError:
        return ZanonError(
            f"no Kafka broker answers on port {self._place.port}, or it has no topic"
            f" {self._place.name}, or refuses the answers; start it, and begin again"
        )


class _Quiet:
    """Takes the client's messages, which have addresses."""

    def log(self, *_arguments: object) -> None:
        """Says nothing."""


_quiet = _Quiet()
