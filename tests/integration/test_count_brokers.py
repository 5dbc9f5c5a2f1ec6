# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A counter behind NATS JetStream, the real server, and Kafka's protocol, librdkafka's mock."""

import asyncio
import contextlib
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.cli import run_main
from support.counting import Votes, answered, counter, counts_of, key_file, start_counter

from zanon_net._core import write_answers
from zanon_net.count.commits import Commit
from zanon_net.count.frames import framed, messages_in
from zanon_net.count.url import read_place
from zanon_net.errors import ZanonError

KILLS = 3


@pytest.fixture(scope="module")
def votes() -> Votes:
    return Votes(shards=2, seconds=40)


# ---- NATS ----------------------------------------------------------------------------------------


@pytest.fixture
def nats_port(tmp_path: Path) -> Iterator[int]:
    server = shutil.which("nats-server")
    if server is None:
        pytest.skip("no nats-server (apt-get install nats-server)")
    pytest.importorskip("nats")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    command = [server, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(tmp_path / "nats")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _try in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


async def publish_votes(port: int, votes: Votes, seconds: float) -> None:
    import nats
    from nats.js.errors import NoStreamResponseError

    client = await nats.connect(f"nats://127.0.0.1:{port}")
    stream = client.jetstream()
    turns = votes.in_turns()
    for number, (probe, message) in enumerate(turns):
        while True:
            try:
                await stream.publish(
                    f"VOTES.votes.{probe:016x}",
                    framed(message),
                    headers={"Nats-Msg-Id": f"{probe}-{number}"},
                )
                break
            except NoStreamResponseError:  # the counter makes the streams
                await asyncio.sleep(0.1)
        await asyncio.sleep(seconds / len(turns))
    await client.close()


async def answers_on(port: int, until: int) -> list[bytes]:
    """The messages of the stream of answers, `until` answers of votes."""
    import nats

    client = await nats.connect(f"nats://127.0.0.1:{port}")
    subscription = await client.jetstream().subscribe("VOTES.answers.>", ordered_consumer=True)
    found: list[bytes] = []
    with contextlib.suppress(TimeoutError, nats.errors.TimeoutError):
        while len(found) < until:
            message = await subscription.next_msg(timeout=5)
            found += messages_in(message.data)
    await client.close()
    return found


def test_nats_with_kills_has_each_answer_once(votes: Votes, nats_port: int, tmp_path: Path) -> None:
    arguments = (
        *(f"nats://127.0.0.1:{nats_port}/VOTES", *votes.options, "--expect-probes", 3, "--json"),
        *("--state", tmp_path / "state", "--state-key-file", key_file(tmp_path), "--until-done"),
    )
    rng = random.Random()
    process = start_counter(*arguments)

    async def feed_and_kill() -> None:
        nonlocal process
        feeding = asyncio.create_task(publish_votes(nats_port, votes, 1.2 * KILLS))
        for _kill in range(KILLS):
            await asyncio.sleep(rng.uniform(0.7, 1.4))
            process.kill()
            process.communicate()
            process = start_counter(*arguments)
        await feeding

    try:
        asyncio.run(feed_and_kill())
        assert counts_of(process)["decided"] == sum(map(len, votes.answers.values()))
    finally:
        process.kill()
        process.communicate()
    found = asyncio.run(answers_on(nats_port, len(votes.answers)))
    assert answered(found) == votes.answers


def test_nats_that_is_not_there_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("nats")
    from zanon_net.count import nats_transport

    monkeypatch.setattr(nats_transport, "CONNECTING_S", 1.0)
    assert run_main("count", "nats://127.0.0.1:9/VOTES") == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "the NATS server on port 9 does not answer" in err


# ---- Kafka ---------------------------------------------------------------------------------------


class Broker:
    """librdkafka's mock cluster, in a producer of this process."""

    def __init__(self) -> None:
        kafka = pytest.importorskip("confluent_kafka")
        self._kafka = kafka
        self.producer = kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
        (broker,) = self.producer.list_topics(timeout=10).brokers.values()
        self.port = broker.port
        for topic in ("votes", "votes-answers"):
            self.producer.list_topics(topic, timeout=10)  # makes it

    def put(self, probe: int, message: bytes) -> None:
        self.producer.produce("votes", framed(message), f"{probe:016x}")
        self.producer.poll(0)

    def answers(self, count: int) -> dict[bytes, bytes]:
        """The records of answers by id; repeats have to be equal."""
        consumer = self._kafka.Consumer(
            {"bootstrap.servers": f"127.0.0.1:{self.port}", "group.id": "test", "log_level": 0}
        )
        topic = self.producer.list_topics("votes-answers").topics["votes-answers"]
        consumer.assign(
            [
                self._kafka.TopicPartition("votes-answers", partition, 0)
                for partition in topic.partitions
            ]
        )
        found: dict[bytes, bytes] = {}
        until = time.monotonic() + 20
        while time.monotonic() < until and _answers_of(found) < count:
            for record in consumer.consume(500, 0.5):
                assert record.error() is None
                ((_name, record_id),) = record.headers()
                assert found.setdefault(record_id, record.value()) == record.value()
        consumer.close()
        return found


def _answers_of(records: dict[bytes, bytes]) -> int:
    return sum(len(list(messages_in(frames))) for frames in records.values())


def test_kafka_with_kills_repeats_answers_under_equal_ids_only(
    votes: Votes, tmp_path: Path
) -> None:
    broker, rng = Broker(), random.Random()
    arguments = (
        *(f"kafka://127.0.0.1:{broker.port}/votes", *votes.options, "--expect-probes", 3),
        *("--state", tmp_path / "state", "--state-key-file", key_file(tmp_path)),
    )
    turns = votes.in_turns()
    for part in range(KILLS):
        process = start_counter(*arguments)
        for probe, message in turns[part * len(turns) // KILLS : (part + 1) * len(turns) // KILLS]:
            broker.put(probe, message)
        broker.producer.flush()
        time.sleep(rng.uniform(0.7, 2))
        process.kill()
        process.communicate()
    with counter(*arguments, "--until-done", "--json") as process:
        assert counts_of(process)["decided"] == sum(map(len, votes.answers.values()))
    records = broker.answers(len(votes.answers))
    found = [message for frames in records.values() for message in messages_in(frames)]
    assert answered(found) == votes.answers


def test_kafka_takes_more_answers_than_a_record_can_have() -> None:
    """As when a probe that all have waited for comes back."""
    broker = Broker()
    from zanon_net.count.kafka_transport import KafkaTransport

    transport = KafkaTransport(read_place("SOURCE", f"kafka://127.0.0.1:{broker.port}/votes"))
    answers = [write_answers(0, 1, 1 + k, 7, np.ones(1 << 20, bool)) for k in range(9)]
    transport.publish(Commit(0, []), answers)
    transport.close()
    records = broker.answers(len(answers))
    assert [message for frames in records.values() for message in messages_in(frames)] == answers


def test_a_record_that_kafka_refuses_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    from zanon_net.count import by_probe
    from zanon_net.count.kafka_transport import KafkaTransport

    monkeypatch.setattr(by_probe, "RECORD_BYTES", 1 << 24)
    transport = KafkaTransport(read_place("SOURCE", f"kafka://127.0.0.1:{broker.port}/votes"))
    answers = [write_answers(0, 1, 1 + k, 7, np.ones(1 << 20, bool)) for k in range(9)]
    with pytest.raises(ZanonError, match="no Kafka broker answers"):
        transport.publish(Commit(0, []), answers)
    transport.close()


def test_kafka_that_is_not_there_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("confluent_kafka")
    from zanon_net.count import kafka_transport

    monkeypatch.setattr(kafka_transport, "CONNECTING_S", 1.0)
    assert run_main("count", "kafka://127.0.0.1:9/votes") == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "no Kafka broker answers on port 9" in err
