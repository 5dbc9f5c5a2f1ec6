# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Memory and wake-ups that the shards of one run share with its counter, and a shard's client.

The process of the counter makes them and forks the shards.
"""

import mmap
import os
import secrets
import select
from collections import deque
from contextlib import suppress
from typing import Any

from zanon_net._core import VoteRing, VoteRings
from zanon_net.count.client_base import CountClient
from zanon_net.count.frames import Hello, Welcome
from zanon_net.errors import ZanonError

SECRET_BYTES = 16
READING, READY, DONE = 0, 1, 2
"""States of a shard: it opens its sources; it has opened them; all of its votes are decided."""
_STOPPED, _STATES = 0, 1  # places in the shared bytes: then a state and a beat of each shard
WAIT_S = 0.05  # longest wait before the other processes are looked at


class ShardStoppedError(ZanonError):
    """The run ends because of another shard, whose error is reported in its place."""


class ShardLinks:
    """Rings, states and wake-ups of all shards, made before the shards are forked.

    secret: key of the votes' hashes, which no other run has.
    """

    def __init__(self, shards: int) -> None:
        self.shards = shards
        self.secret = secrets.token_bytes(SECRET_BYTES)
        self.rings = VoteRings(shards)
        self.flags = mmap.mmap(-1, _STATES + 2 * shards)
        self.bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.bells = [os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(shards)]
        self.parent = os.getpid()

    def state(self, shard: int) -> int:
        """Returns the state of a shard."""
        return self.flags[_STATES + shard]

    def count(self, state: int) -> int:
        """Returns the number of shards in a state, or in a later state."""
        return sum(self.state(shard) >= state for shard in range(self.shards))

    def take_beat(self, shard: int) -> bool:
        """Returns true if a shard was active since the last call."""
        place = _STATES + self.shards + shard
        beats, self.flags[place] = self.flags[place] != 0, 0
        return beats

    @property
    def is_stopped(self) -> bool:
        """True if the run ends because of an error."""
        return self.flags[_STOPPED] != 0

    def stop(self) -> None:
        """Ends all shards because of an error. Their output is discarded."""
        self.flags[_STOPPED] = 1
        for shard in range(self.shards):
            self.wake(shard)

    def wake(self, shard: int) -> None:
        """Ends the wait of a shard."""
        os.eventfd_write(self.bells[shard], 1)

    def wake_all(self, answered: int) -> None:
        """Ends the waits of the shards that got answers, as LocalCounter.step returns them."""
        for shard in range(self.shards):
            if answered >> shard % 64 & 1:
                self.wake(shard)

    def close(self) -> None:
        """Closes the wake-ups of this process. A second call does nothing."""
        for handle in (self.bell, *self.bells):
            with suppress(OSError):
                os.close(handle)
        self.bell, self.bells = -1, []


class ShardLink:
    """The part of one shard, in its own process."""

    def __init__(self, links: ShardLinks, shard: int) -> None:
        self.shard, self.shards = shard, links.shards
        self.ring = VoteRing(links.rings, shard)
        self._links = links
        self._own = select.poll()
        self._own.register(links.bells[shard], select.POLLIN)

    def engine_arguments(self) -> dict[str, Any]:
        """Returns the arguments of PacketEngine that make it a shard. A lease would cost more than
        the votes that it saves."""
        secret = self._links.secret
        return {"count_probe": f"shard-{self.shard}", "count_secret": secret, "count_leases": False}

    def check(self) -> None:
        """Shows that the shard is active. Raises ShardStoppedError if the run ends because of
        another process."""
        self._links.flags[_STATES + self.shards + self.shard] = 1
        if self._links.is_stopped or os.getppid() != self._links.parent:
            raise ShardStoppedError("the run ended because of another of its processes")

    def ring_bell(self) -> None:
        """Ends the wait of the counter."""
        os.eventfd_write(self._links.bell, 1)

    def wait(self, timeout: float) -> None:
        """Waits for answers, or for the end of the run."""
        if self._own.poll(timeout * 1000):
            with suppress(BlockingIOError):
                os.eventfd_read(self._links.bells[self.shard])

    def enter(self, state: int) -> None:
        """Reports the state of this shard."""
        self._links.flags[_STATES + self.shard] = state
        self.ring_bell()

    def finish(self) -> None:
        """Waits until all votes of all shards are decided. Raises ShardStoppedError if a shard has
        failed, so that no shard publishes its output then."""
        self.enter(DONE)
        while self._links.count(DONE) < self.shards:
            self.check()
            self.wait(WAIT_S)
        self.check()
        for shard in range(self.shards):
            self._links.wake(shard)


class RingClient(CountClient):
    """See CountClient. No message is ever lost or repeated, and the counter ends with the run.

    Messages that find the ring full wait in this process, in their order, for all clients of the
    shard.
    """

    def __init__(self, link: ShardLink, hello: Hello, waiting: deque[bytes] | None = None) -> None:
        super().__init__(hello, Welcome(1, hello.settings))
        self._link = link
        self._waiting: deque[bytes] = deque() if waiting is None else waiting

    @property
    def is_connected(self) -> bool:
        """See CountClient."""
        return True

    def welcome(self, timeout: float) -> Welcome | None:
        """See CountClient."""
        del timeout
        return self._welcome

    def send(self, message: bytes) -> None:
        """See CountClient. Raises ZanonError if the run ends without this shard."""
        self._link.check()
        self._keep(message)
        self._waiting.append(message)
        self._push()

    def receive(self, timeout: float) -> list[bytes]:
        """See CountClient. Raises ZanonError if the run ends without this shard."""
        self._link.check()
        self._push()
        answers = self._take()
        if not answers and timeout:
            self._link.wait(timeout)
            answers = self._take()
        return answers

    def as_another(self, probe: int) -> "RingClient":
        """See CountClient."""
        return RingClient(self._link, Hello(probe, self.hello.settings), self._waiting)

    def close(self) -> None:
        """See CountClient. The rings stay open for the next session."""

    def _push(self) -> None:
        pushed = False
        while self._waiting and self._link.ring.put(self._waiting[0]):
            self._waiting.popleft()
            pushed = True
        if pushed:
            self._link.ring_bell()

    def _take(self) -> list[bytes]:
        answers: list[bytes] = []
        while (answer := self._link.ring.take()) is not None:
            if self._is_expected(answer):
                answers.append(answer)
        return answers
