# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A run that is one of several probes: its votes go to a counter, and what waits for the answers is
written when they come. The engine makes the messages and reads the answers; here they are moved.
"""

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from zanon_net._core import PacketEngine
from zanon_net.config.parse import format_duration
from zanon_net.config.settings import Config
from zanon_net.errors import FormatError, ZanonError
from zanon_net.pipeline.probe_numbers import ProbeNumbers
from zanon_net.pipeline.vote_sealing import VoteSealer, sealer_of
from zanon_net.system.log_levels import NOTICE
from zanon_net.system.signals import Interruption

if TYPE_CHECKING:
    from zanon_net.count.client import CountClient

INTERVALS_HELD = 2  # of the counter's answers: how long names and records wait for one at least
WAIT_S = 0.05  # longest wait for an answer before signals and the clock are looked at
ALIVE_S = 1.0  # between two messages of a probe that reads nothing, as it waits
SIZE_S = 1.0  # between two looks at how much is unanswered
MUTE_BYTES = 64 << 20  # unanswered messages from which on no more votes are sent
SPEAK_BYTES = 32 << 20  # and below which they are again
ABANDON_BYTES = 256 << 20  # of marks of clients, mostly: from which on they are given up

_log = logging.getLogger("zanon_net")


class Interrupted(Protocol):
    """What tells whether a signal ended the reading."""

    @property
    def interrupted(self) -> bool:
        """Whether it did."""


def begin_counting(
    engine: PacketEngine, config: Config, interruption: Interruption, *, is_live: bool
) -> "Counting | None":
    """Connects a probe with its counter; None for a run that counts by itself.

    Raises ConfigError, UnopenedError, ZanonError when no counter answers or it refuses, or
    KeyboardInterrupt.
    """
    settings = config.count
    if settings.count_at is None:
        return None
    from zanon_net.count.client import connect
    from zanon_net.count.tls import TlsFiles

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
    numbers = ProbeNumbers(client, shards=shards, patience_s=settings.hold_s)
    return Counting(engine, numbers, sealer, config, is_live=is_live)


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
    """The messages of a probe. All its calls are those of the run's thread."""

    def __init__(
        self,
        engine: PacketEngine,
        numbers: ProbeNumbers,
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
        self._is_away = False  # the counter: messages were given up, and none has an answer since
        self._follow_interval()

    @property
    def note(self) -> str | None:
        """Says that answers were waited for longer than --count-hold; None: they were not."""
        return None if self._longest_ns == self._given_ns else self._hold_text(self._longest_ns)

    def close(self) -> None:
        """Ends the connection; again is fine."""
        self._numbers.close()

    def exchange(self, timeout: float = 0.0) -> None:
        """Sends what is ready, and has the engine do what is answered; waits so long for the first
        answer. Raises ZanonError where the counter refuses the probe."""
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
        """Waits for answers at least twice as long as the counter takes between two of them."""
        hold_ns = max(self._given_ns, INTERVALS_HELD * self._numbers.interval_ns)
        if hold_ns == self._hold_ns:
            return
        self._hold_ns, self._longest_ns = hold_ns, max(hold_ns, self._longest_ns)
        self._engine.count_hold(hold_ns)
        self._numbers.patience_s = self._hold_s
        _log.log(NOTICE, self._hold_text(hold_ns))

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
        except FormatError as error:  # what it is about stays unanswered, and so suppressed
            _log.warning("warning: an answer of the counter is left out: %s", error)

    def _look(self, now: float) -> None:
        """While the counter is away for long, keeps what is to be sent again small."""
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
        """A counter that lacks marks of clients must not count on under the same number: to it the
        probe is gone, as if it were killed, and another one begins."""
        if not self._is_away:
            _log.warning(
                "warning: the counter has not answered for so long that the clients to tell it of"
                " fill %d MiB; they are given up, and no name is asked for until it answers",
                ABANDON_BYTES >> 20,
            )
        self._is_away = True
        self._engine.count_abandon()
        self._engine.give_up(True)
        self._numbers.abandon(self._engine.count_probe[0])

    def _note_counter(self) -> None:
        """Notes that the counter has answered."""
        if self._is_away:
            _log.log(
                NOTICE, "the counter answers again; for it this probe is another one from here on"
            )
        self._is_away = False

    def tick(self, drain: Callable[[], None], reader: Interrupted) -> None:
        """After a batch: exchanges messages, and where answers are missing for too long, waits for
        them, or gives up on them. drain: takes the engine's output."""
        self.exchange()
        if not self._must_wait(reader):
            return
        if self._is_live or self._is_over():
            self._engine.give_up(False)
            return
        self._engine.count_cut()  # the last of what was asked waits for the time to pass
        while self._must_wait(reader):
            self.exchange(WAIT_S)
            drain()
            if self._is_over():
                self._engine.give_up(False)
            self._keep_alive()

    def _must_wait(self, reader: Interrupted) -> bool:
        return self._engine.asks_too_much and not reader.interrupted

    def finish(self, drain: Callable[[], None]) -> None:
        """After the end of input: asks about all that is left, and waits for the answers until it
        is over. drain: takes the engine's output."""
        self._heard = time.monotonic()
        while True:
            more = self._engine.finish()
            self.exchange(0.0 if more and not self._engine.asks_too_much else WAIT_S)
            drain()
            is_done = not more and self._engine.count_waiting == 0
            if is_done and (self._numbers.unanswered_bytes == 0 or self._is_over()):
                return
            if self._is_over():
                self._engine.give_up(True)
                drain()
            self._keep_alive()

    def _is_over(self) -> bool:
        """Whether it is no use to wait for answers any longer."""
        silent_s = time.monotonic() - self._heard
        if self._is_live or not self._numbers.is_connected:
            limit_s = self._hold_s
        else:
            limit_s = max(self._wait_s, self._hold_s)
        self._given_up = self._given_up or silent_s > limit_s
        return self._given_up

    def _keep_alive(self) -> None:
        """Tells the counter that the probe is there, though it reads nothing."""
        now = time.monotonic()
        if now - self._sent >= ALIVE_S:
            self._engine.count_cut()
