# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The connections of a probe whose clock is set back: which number says what, and when."""

from dataclasses import dataclass, field

import pytest

from zanon_net._core import VoteWriter, read_votes, write_answers
from zanon_net.count.client_base import CountClient
from zanon_net.count.frames import ENDED, Hello, Welcome
from zanon_net.errors import ZanonError
from zanon_net.pipeline.probe_sessions import ProbeSessions

SETTINGS, SHARDS = 5, 2
OLD, NEW, NEWER = 1, 2, 3


class Client(CountClient):
    """Keeps what is sent; the test says what is answered."""

    def __init__(self, number: int, clients: "dict[int, Client]") -> None:
        super().__init__(Hello(number, SETTINGS))
        self._clients = clients
        clients[number] = self
        self.sent: list[bytes] = []
        self.to_come: list[bytes] = []
        self.connected, self.refused, self.closed = True, False, False

    @property
    def is_connected(self) -> bool:
        return self.connected

    def welcome(self, timeout: float) -> Welcome | None:
        del timeout
        return Welcome(SHARDS, SETTINGS)

    def send(self, message: bytes) -> None:
        if self.refused:
            raise ZanonError("refused")
        self._keep(message)
        self.sent.append(message)

    def receive(self, timeout: float) -> list[bytes]:
        del timeout
        if self.refused:
            raise ZanonError("refused")
        answers, self.to_come = self.to_come, []
        return [answer for answer in answers if self._is_expected(answer)]

    def as_another(self, probe: int) -> "Client":
        return Client(probe, self._clients)

    def answer(self) -> None:
        """Answers all that was sent."""
        for message in self.sent:
            read = read_votes(message)
            place = (read["shard"], read["probe"], read["sequence"], read["settings"])
            self.to_come.append(write_answers(*place, []))

    def close(self) -> None:
        self.closed = True


@dataclass
class Numbers:
    """A probe that began as OLD."""

    patience_s: float = 60.0
    clients: dict[int, Client] = field(default_factory=dict)

    def __post_init__(self) -> None:
        first = Client(OLD, self.clients)
        self.probe = ProbeSessions(first, shards=SHARDS, patience_s=self.patience_s)

    def say(self, number: int, watermark: int, present: int) -> list[bytes]:
        """A message for each shard."""
        messages = [
            bytes(
                VoteWriter(number, shard, SETTINGS, sequence=1 + (watermark == ENDED)).finish(
                    watermark
                )
            )
            for shard in range(SHARDS)
        ]
        for message in messages:
            self.probe.send(message, present)
        return messages


@pytest.fixture
def numbers() -> Numbers:
    """One that has said under both numbers what it had to say."""
    made = Numbers()
    made.say(OLD, 10, OLD)
    made.say(OLD, ENDED, NEW)
    made.say(NEW, 5, NEW)
    return made


def test_a_number_ends_when_its_successor_is_known_in_every_shard(numbers: Numbers) -> None:
    old, new = numbers.clients[OLD], numbers.clients[NEW]
    old.answer()
    numbers.probe.receive(0.0)
    assert (len(old.sent), len(new.sent)) == (SHARDS, SHARDS)
    new.answer()
    one, other = new.to_come
    new.to_come = [one]
    assert numbers.probe.receive(0.0) == [one]
    assert len(old.sent) == SHARDS
    new.to_come = [other]
    assert numbers.probe.receive(0.0) == [other]
    assert len(old.sent) == 2 * SHARDS
    assert not old.closed
    assert numbers.probe.unanswered_bytes
    old.answer()
    assert numbers.probe.receive(0.0) == []  # its answers are for nobody
    assert old.closed
    assert not numbers.probe.unanswered_bytes


@pytest.mark.parametrize("how", ["connected", "refused"])
def test_a_number_that_cannot_end_is_left_alone(numbers: Numbers, how: str) -> None:
    old = numbers.clients[OLD]
    setattr(old, how, how == "refused")
    numbers.probe.receive(0.0)
    assert old.closed
    numbers.clients[NEW].answer()
    assert len(numbers.probe.receive(0.0)) == SHARDS
    assert len(old.sent) == SHARDS
    assert not numbers.probe.unanswered_bytes


def test_the_end_of_a_number_does_not_take_for_ever() -> None:
    numbers = Numbers(patience_s=0.0)
    numbers.say(OLD, 10, OLD)
    numbers.say(OLD, ENDED, NEW)
    numbers.say(NEW, 5, NEW)
    numbers.probe.receive(0.0)
    assert numbers.clients[OLD].closed


def test_two_steps_at_once_lose_no_message(numbers: Numbers) -> None:
    """What was said under the number between them is known to the counter, too."""
    numbers.say(NEW, ENDED, NEWER)
    numbers.say(NEWER, 4, NEWER)
    assert numbers.clients[OLD].closed
    assert len(numbers.clients[NEW].sent) == SHARDS
    numbers.clients[NEWER].answer()
    assert len(numbers.probe.receive(0.0)) == SHARDS
    assert len(numbers.clients[NEW].sent) == 2 * SHARDS


def test_what_is_given_up_is_sent_under_no_number(numbers: Numbers) -> None:
    """Not what waits for an answer, and not the end of the number before."""
    numbers.probe.abandon(NEWER)
    old, new, newer = (numbers.clients[number] for number in (OLD, NEW, NEWER))
    assert old.closed
    assert new.closed
    assert not numbers.probe.unanswered_bytes
    numbers.say(NEWER, 20, NEWER)
    newer.answer()
    assert len(numbers.probe.receive(0.0)) == SHARDS
    assert len(old.sent) == SHARDS


def test_what_is_given_up_behind_the_end_has_no_other_number() -> None:
    numbers = Numbers()
    numbers.say(OLD, ENDED, OLD)
    numbers.probe.abandon(OLD)
    assert list(numbers.clients) == [OLD]
    assert not numbers.probe.unanswered_bytes
    assert numbers.probe.receive(0.0) == []


def test_the_end_of_a_run_is_said_at_once() -> None:
    numbers = Numbers()
    numbers.say(OLD, ENDED, OLD)
    assert len(numbers.clients[OLD].sent) == SHARDS
    numbers.probe.close()
    assert numbers.clients[OLD].closed
