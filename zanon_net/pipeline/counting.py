# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A run that is one of several probes: its votes go to a counter, and its records are written when
the answers come.

The engine makes the messages and reads the answers; this module moves them.
"""

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from zanon_net._core import PacketEngine
from zanon_net.config.parse import format_duration
from zanon_net.config.settings import Config
from zanon_net.errors import FormatError, ZanonError
from zanon_net.pipeline.probe_sessions import ProbeSessions
from zanon_net.pipeline.vote_sealing import VoteSealer, sealer_of
from zanon_net.system.log import log
from zanon_net.system.signals import Interruption

if TYPE_CHECKING:
    from zanon_net.count.client_base import CountClient
    from zanon_net.count.shard_link import ShardLink

# least wait of names and records for an answer, in intervals of the counter's answers
INTERVALS_HELD = 2
WAIT_S = 0.05  # longest wait for an answer before signals and the clock are looked at
ALIVE_S = 1.0  # between two messages of a probe that reads nothing, as it waits
SIZE_S = 1.0  # between two looks at the size of unanswered messages
MUTE_BYTES = 64 << 20  # unanswered messages from which on no more votes are sent
SPEAK_BYTES = 32 << 20  # and below which they are again
# packet time by which a shard of captures may be ahead of the other shards
SHARD_HOLD_NS = 60_000_000_000
# unanswered messages, mostly marks of clients, from which on they are dropped
ABANDON_BYTES = 256 << 20


class Interrupted(Protocol):
    """A reader that knows if a signal ended the reading."""

    @property
    def interrupted(self) -> bool:
        """True if a signal ended the reading."""


def begin_counting(
    engine: PacketEngine, config: Config, interruption: Interruption, *, is_live: bool
) -> "Counting":
    """Connects a probe with the counter of `count_at`.

    Raises ConfigError, UnopenedError, ZanonError if no counter answers or the counter refuses the
    probe, or KeyboardInterrupt.
    """
    settings = config.count
    assert settings.count_at is not None
    from zanon_net.count.client import connect
    from zanon_net.count.url import TlsFiles

    sealer = sealer_of(config)
    cert, key, ca = settings.count_tls_cert, settings.count_tls_key, settings.count_tls_ca
    tls = None if cert is None or key is None or ca is None else TlsFiles(cert, key, ca)
    probe, number = engine.count_probe
    client = connect(settings.count_at, probe=probe, settings=number, tls=tls)
    try:
        shards = _shards(client, settings.wait_s, interruption)
        engine.count_begin(shards)
    except BaseException:
        client.close()
        raise
    numbers = ProbeSessions(client, shards=shards, patience_s=settings.hold_s)
    return Counting(engine, numbers, sealer, config, is_live=is_live)


def begin_shard(
    engine: PacketEngine, config: Config, link: "ShardLink", *, is_live: bool
) -> "Counting":
    """Connects a shard of a run with the counter of the run. Raises ConfigError."""
    from zanon_net.count.frames import Hello
    from zanon_net.count.shard_link import READY, RingClient

    client = RingClient(link, Hello(*engine.count_probe))
    engine.count_begin(1)
    numbers = ProbeSessions(client, shards=1, patience_s=config.count.hold_s)
    counting = Counting(engine, numbers, sealer_of(config), config, is_live=is_live)
    counting.join(link)
    link.enter(READY)
    return counting


def _shards(client: "CountClient", wait_s: float, interruption: Interruption) -> int:
    """Waits for the counter, and returns its number of shards."""
    until = time.monotonic() + wait_s
    while (welcome := client.welcome(WAIT_S)) is None:
        if interruption.requested:
            raise KeyboardInterrupt
        if time.monotonic() > until:
            raise ZanonError("no counter answers; start it, or correct --count-at (count_at)")
    return welcome.shards


class Counting:
    """Messages of a probe. All calls are made by the run's thread."""

    def __init__(
        self,
        engine: PacketEngine,
        numbers: ProbeSessions,
        sealer: VoteSealer,
        config: Config,
        *,
        is_live: bool,
    ) -> None:
        self._engine, self._numbers, self._is_live = engine, numbers, is_live
        self._sealer = sealer
        self._given_ns = self._hold_ns = self._longest_ns = int(config.count.count_hold)
        self._wait_s = config.count.wait_s
        self._heard = self._sent = self._looked = time.monotonic()
        self._muted = self._given_up = False
        self._is_away = False  # messages were dropped, and the counter has not answered since
        self._link: ShardLink | None = None
        self._follow_interval()

    def join(self, link: "ShardLink") -> None:
        """Makes this a shard of a run. A capture waits for the counter as long as the run lasts,
        and no shard finishes before all votes of the run are decided."""
        self._link, self._wait_s = link, math.inf
        if not self._is_live:  # the shards wait for each other less often
            self._given_ns = self._longest_ns = max(self._given_ns, SHARD_HOLD_NS)
            self._follow_interval()

    @property
    def note(self) -> str | None:
        """A line if answers were waited for longer than --count-hold; else None."""
        return None if self._longest_ns == self._given_ns else self._hold_text(self._longest_ns)

    def close(self) -> None:
        """Ends the connection. A second call does nothing."""
        self._numbers.close()

    def exchange(self, timeout: float = 0.0) -> None:
        """Sends ready messages, and passes answers to the engine. Raises ZanonError if the counter
        refuses the probe.

        timeout: longest wait for the first answer, in seconds.
        """
        now, present = time.monotonic(), self._engine.count_probe[0]
        for message in self._sealer.messages(self._engine.count_messages()):
            self._numbers.send(message, present)
            self._sent = now
        answers = self._numbers.receive(timeout)
        for answer in answers:
            self._take(answer)
        if answers:
            self._heard, self._given_up = time.monotonic(), False
            self._engine.flush()
            self._note_counter()
        self._follow_interval()
        if now - self._looked >= SIZE_S:
            self._look(now)

    def _follow_interval(self) -> None:
        """Makes records wait for answers at least twice as long as the counter's interval of
        answers."""
        hold_ns = max(self._given_ns, INTERVALS_HELD * self._numbers.interval_ns)
        if hold_ns == self._hold_ns:
            return
        self._hold_ns, self._longest_ns = hold_ns, max(hold_ns, self._longest_ns)
        self._engine.count_hold(hold_ns)
        self._numbers.patience_s = self._hold_s
        if self._link is None:
            log.notice(self._hold_text(hold_ns))

    def _hold_text(self, hold_ns: int) -> str:
        if hold_ns == self._given_ns:
            return f"names and records wait for the counter for {format_duration(hold_ns)} again"
        interval = format_duration(hold_ns // INTERVALS_HELD)
        return (
            f"the counter answers every {interval}: names and records wait for it for"
            f" {format_duration(hold_ns)}, not {format_duration(self._given_ns)} (count_hold)"
        )

    @property
    def _hold_s(self) -> float:
        return self._hold_ns * 1e-9

    def _take(self, answer: bytes) -> None:
        try:
            self._engine.count_answer(answer)
        except FormatError as error:  # the votes of the message stay unanswered, and so suppressed
            log.warning("warning: an answer of the counter is left out: %s", error)

    def _look(self, now: float) -> None:
        """Limits the unanswered messages while the counter is away for long."""
        self._looked = now
        unanswered = self._numbers.unanswered_bytes
        if unanswered > ABANDON_BYTES:
            self._abandon()
        self._mute(self._is_away or unanswered > (SPEAK_BYTES if self._muted else MUTE_BYTES))

    def _mute(self, muted: bool) -> None:
        if muted != self._muted:
            self._muted = muted
            self._engine.count_mute(muted)

    def _abandon(self) -> None:
        """Drops unanswered messages and starts a new session.

        A counter that lacks marks of clients must not continue with the session. For the counter
        the session is gone, as if the probe was killed, and a new session begins.
        """
        if not self._is_away:
            log.warning(
                "warning: the counter has not answered for so long that the messages about clients"
                " fill %d MiB; they are dropped, and no name is queried until the counter answers",
                ABANDON_BYTES >> 20,
            )
        self._is_away = True
        self._engine.count_abandon()
        self._engine.suppress_waiting(True)
        self._numbers.abandon(self._engine.count_probe[0])

    def _note_counter(self) -> None:
        """Notes that the counter has answered."""
        if self._is_away:
            log.notice("the counter answers again; this probe has a new session from here on")
        self._is_away = False

    def tick(self, drain: Callable[[], None], reader: Interrupted) -> None:
        """Exchanges messages after a batch.

        If answers are missing for too long, waits for them, or suppresses the votes that they are
        about. drain: takes the engine's output.
        """
        self.exchange()
        if not self._must_wait(reader):
            return
        if self._is_live or self._is_over():
            self._engine.suppress_waiting(False)
            return
        self._engine.count_cut()  # the last queries wait for the time to pass
        while self._must_wait(reader):
            self.exchange(WAIT_S)
            drain()
            if self._is_over():
                self._engine.suppress_waiting(False)
            self._keep_alive()

    def _must_wait(self, reader: Interrupted) -> bool:
        return self._engine.must_wait and not reader.interrupted

    def finish(self, drain: Callable[[], None]) -> None:
        """Ends the input: queries all remaining votes, and waits for the answers until the wait is
        over.

        drain: takes the engine's output. Raises ZanonError if another shard of the run failed.
        """
        self._ask_the_rest(drain)
        if self._link is not None:
            self._link.finish()

    def _ask_the_rest(self, drain: Callable[[], None]) -> None:
        self._heard = time.monotonic()
        while True:
            more = self._engine.finish()
            self.exchange(0.0 if more and not self._engine.must_wait else WAIT_S)
            drain()
            is_done = not more and self._engine.count_waiting == 0
            if is_done and (self._numbers.unanswered_bytes == 0 or self._is_over()):
                return
            if self._is_over():
                self._engine.suppress_waiting(True)
                drain()
            self._keep_alive()

    def _is_over(self) -> bool:
        """Returns true if a further wait for answers is useless."""
        silent_s = time.monotonic() - self._heard
        if self._is_live or not self._numbers.is_connected:
            limit_s = self._hold_s
        else:
            limit_s = max(self._wait_s, self._hold_s)
        self._given_up = self._given_up or silent_s > limit_s
        return self._given_up

    def _keep_alive(self) -> None:
        """Shows the counter that the probe is alive, though it reads nothing."""
        now = time.monotonic()
        if now - self._sent >= ALIVE_S:
            self._engine.count_cut()
