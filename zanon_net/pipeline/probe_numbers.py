# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The connections of a probe under its numbers: the present one, and the one before.

A probe whose clock was set back goes on under another number, whose messages begin at 1; the first
says that the counter may lack marks of clients, so that it suppresses what they would. The one
before ends once the counter has heard of its successor in every shard: so there is no time in which
the counter decides without the probe. Where that cannot be, as its connection is lost, or as the
counter refuses a message of it that is of the future, it is left alone: the counter takes it for a
probe that is gone, and suppresses what it may have had to say of clients. So it does with a number
that was given up, as the counter did not answer for too long.
"""

import logging
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from zanon_net.count.frames import ENDED, answers_header, votes_header
from zanon_net.errors import ZanonError

if TYPE_CHECKING:
    from zanon_net.count.client import CountClient

_log = logging.getLogger("zanon_net")


class ProbeNumbers:
    """Sends each message under the number that it has, and gives the answers to the present one.

    client: of the first one. patience_s: how long the end of one may take; it may change.
    """

    def __init__(self, client: "CountClient", *, shards: int, patience_s: float) -> None:
        self._client, self._shards, self.patience_s = client, shards, patience_s
        self._last: list[bytes] = []
        self._former: _Former | None = None

    @property
    def unanswered_bytes(self) -> int:
        """Memory of the messages that wait for their answers."""
        former = 0 if self._former is None else self._former.unanswered_bytes
        return self._client.unanswered_bytes + former

    @property
    def is_connected(self) -> bool:
        """Whether there is a counter at the moment, as far as can be known."""
        return self._client.is_connected

    @property
    def interval_ns(self) -> int:
        """Time between two answers, as the counter said last."""
        return self._client.interval_ns

    def send(self, message: bytes, present: int) -> None:
        """Sends the next message. present: the probe's number by now.

        Raises ZanonError where the counter refuses this probe.
        """
        header = votes_header(message)
        if header.probe != self._client.hello.probe:
            self._renew(header.probe)
        if header.watermark == ENDED and header.probe != present:
            self._last.append(message)
        else:
            self._client.send(message)

    def receive(self, timeout: float) -> list[bytes]:
        """The answers that came; waits for the first. Raises ZanonError where the counter refuses
        this probe."""
        answers = self._client.receive(timeout)
        if self._former is not None:
            self._former.go_on(answers)
            if self._former.is_over:
                self._leave_former()
        return answers

    def close(self) -> None:
        """Ends the connections; again is fine."""
        self._leave_former()
        self._client.close()

    def abandon(self, present: int) -> None:
        """Forgets all messages that have no answer, and what waits for its turn. present: the
        probe's number from now on; the same where no message follows."""
        self._leave_former()
        self._last = []
        self._client.abandon()
        if present != self._client.hello.probe:
            self._client = self._client.as_another(present)

    def _renew(self, number: int) -> None:
        _log.warning(
            "warning: the packets' clock was set back; for the counter this probe is another one"
            " from here on"
        )
        self._leave_former()
        until = time.monotonic() + self.patience_s
        self._former = _Former(self._client, self._last, self._shards, until)
        self._last = []
        self._client = self._client.as_another(number)

    def _leave_former(self) -> None:
        if self._former is not None:
            self._former.close()
            self._former = None


class _Former:
    """A number that ends. last: its last messages, of each shard. until: when it is left alone."""

    def __init__(self, client: "CountClient", last: list[bytes], shards: int, until: float) -> None:
        self._client, self._last, self._until = client, last, until
        self._unheard = set(range(shards))
        self._is_refused = False

    @property
    def unanswered_bytes(self) -> int:
        return self._client.unanswered_bytes + sum(map(len, self._last))

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or cannot."""
        can_end = self._client.is_connected and not self._is_refused
        return not self.unanswered_bytes or not can_end or time.monotonic() > self._until

    def go_on(self, answers: Iterable[bytes]) -> None:
        """Ends it when its successor has an answer of every shard."""
        self._unheard.difference_update(answers_header(answer).shard for answer in answers)
        try:
            if not self._unheard:
                while self._last:
                    self._client.send(self._last.pop(0))
            self._client.receive(0.0)  # nobody waits for what it is told
        except ZanonError:
            self._is_refused = True

    def close(self) -> None:
        """Ends the connection; again is fine."""
        self._client.close()
