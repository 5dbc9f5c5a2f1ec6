# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A counter in this process, on a clock that the test sets."""

from collections.abc import Sequence

from support.counting import NAME, SECOND, START, answered, hashed
from zanon_net._core import VoteWriter
from zanon_net.count.admission import Clocks
from zanon_net.count.commits import Commit
from zanon_net.count.frames import ENDED, Refusal
from zanon_net.count.service import CounterService, Outputs
from zanon_net.count.settings import CounterSettings
from zanon_net.count.transport import Received, Transport

HOUR = 3600 * SECOND


class Inbox(Transport):
    """Takes nothing by itself; keeps what is published and refused."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.refusals: list[Refusal] = []

    def take(self, timeout: float) -> list[Received]:
        del timeout
        return []

    def publish(self, commit: Commit, answers: Sequence[bytes]) -> None:
        del commit
        self.answers += answers

    def refuse(self, received: Received, refusal: Refusal) -> None:
        del received
        self.refusals.append(refusal)

    def close(self) -> None:
        pass


class Desk:
    """A counter of z = 2 and one shard, on a clock that the test sets."""

    def __init__(self, **settings: object) -> None:
        usual = {"z": 2, "window_ns": HOUR, "rotate_ns": HOUR, "probe_timeout_s": 30.0}
        self.settings = CounterSettings(**{**usual, **settings})  # type: ignore[arg-type]
        self.now_s = 0.0
        clocks = Clocks(lambda: START + int(self.now_s * SECOND), lambda: self.now_s)
        self.transport = Inbox()
        self.service = CounterService(self.settings, self.transport, Outputs(), clocks=clocks)
        self._writers: dict[int, VoteWriter] = {}

    def message(self, probe: int, votes: dict[int, Sequence[int]], watermark_s: float) -> bytes:
        """votes: the users that are seen with name 1, by the second at which they are."""
        writer = self._writers.setdefault(probe, VoteWriter(probe, 0, self.settings.number))
        for second, users in votes.items():
            for user in users:
                writer.add(NAME, START + second * SECOND, hashed(user), hashed(-1), hashed(-2))
        mark = START + int(watermark_s * SECOND) if watermark_s != ENDED else ENDED
        return bytes(writer.finish(mark))

    def send(self, probe: int, votes: dict[int, Sequence[int]], watermark_s: float) -> bytes:
        message = self.message(probe, votes, watermark_s)
        self.put(message)
        return message

    def put(self, *messages: bytes) -> None:
        self.service.step([Received(message) for message in messages])

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.service.step([])

    @property
    def answers(self) -> dict[tuple[int, int], list[bool]]:
        return {(probe, key.sequence): bits for (probe, key), bits in self._answered().items()}

    def _answered(self) -> dict[tuple[int, object], list[bool]]:
        return answered(self.transport.answers)  # type: ignore[return-value]

    def count(self, name: str) -> int:
        return self.service.facts().counts.get(name, 0)
