# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Connections of a probe under its sessions: the present session, and the previous one.

If its clock is set back, a probe starts a new session, whose messages begin at 1. The first message
says that the counter may lack marks of clients, so that the counter suppresses names that they
would suppress. The previous session ends when every shard of the counter has heard of its
successor, so the counter never decides without the probe. If the connection is lost, or the counter
refuses a message that is ahead of time, the previous session is left alone. The counter then treats
it as an ended probe without its last marks, and suppresses what they may have affected. A session
that was abandoned because the counter did not answer for too long is treated in the same way.
"""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from zanon_net.count.frames import ENDED, answers_header, votes_header
from zanon_net.errors import ZanonError
from zanon_net.system.log import log

if TYPE_CHECKING:
    from zanon_net.count.client_base import CountClient


class ProbeSessions:
    """Sends each message under its session, and gives the answers to the present session.

    client: the client of the first session. patience_s: longest time for the end of a session, in
    s; it may change.
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
        """True if a counter is connected at the moment, as far as is known."""
        return self._client.is_connected

    @property
    def interval_ns(self) -> int:
        """Time between two answers, as the counter last reported it."""
        return self._client.interval_ns

    def send(self, message: bytes, present: int) -> None:
        """Sends the next message. present: the probe's present session.

        Raises ZanonError if the counter refuses this probe.
        """
        header = votes_header(message)
        if header.probe != self._client.hello.probe:
            self._renew(header.probe)
        if header.watermark == ENDED and header.probe != present:
            self._last.append(message)
        else:
            self._client.send(message)

    def receive(self, timeout: float) -> list[bytes]:
        """Returns the answers that came; waits for the first. Raises ZanonError if the counter
        refuses this probe."""
        answers = self._client.receive(timeout)
        if self._former is not None:
            self._former.go_on(answers)
            if self._former.is_over:
                self._leave_former()
        return answers

    def close(self) -> None:
        """Ends the connections. A second call does nothing."""
        self._leave_former()
        self._client.close()

    def abandon(self, present: int) -> None:
        """Forgets all messages without an answer, and all messages that wait for their turn.

        present: the probe's session from now on; the old session if no message follows.
        """
        self._leave_former()
        self._last = []
        self._client.abandon()
        if present != self._client.hello.probe:
            self._client = self._client.as_another(present)

    def _renew(self, number: int) -> None:
        log.warning(
            "warning: the packets' clock was set back; for the counter this probe has a new session"
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
    """A session that ends.

    last: its last messages, for each shard. until: time at which it is left alone, monotonic, in
    seconds.
    """

    def __init__(self, client: "CountClient", last: list[bytes], shards: int, until: float) -> None:
        self._client, self._last, self._until = client, last, until
        self._unheard = set(range(shards))
        self._is_refused = False

    @property
    def unanswered_bytes(self) -> int:
        return self._client.unanswered_bytes + sum(map(len, self._last))

    @property
    def is_over(self) -> bool:
        """True if the session has ended, or cannot end."""
        can_end = self._client.is_connected and not self._is_refused
        return not self.unanswered_bytes or not can_end or time.monotonic() > self._until

    def go_on(self, answers: Iterable[bytes]) -> None:
        """Ends the session if its successor has an answer of every shard."""
        self._unheard.difference_update(answers_header(answer).shard for answer in answers)
        try:
            if not self._unheard:
                while self._last:
                    self._client.send(self._last.pop(0))
            self._client.receive(0.0)  # the answer is not needed
        except ZanonError:
            self._is_refused = True

    def close(self) -> None:
        """Ends the connection. A second call does nothing."""
        self._client.close()
