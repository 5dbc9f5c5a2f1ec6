# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Loop of a counter: takes messages, commits them, publishes answers, and keeps the state."""

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zanon_net.count.admission import Admission, Admitted, Clocks
from zanon_net.count.commits import Commit, Snapshot
from zanon_net.count.counter import Counter, Outcome
from zanon_net.count.facts import CounterFacts
from zanon_net.count.frames import ENDED, Refusal, votes_header
from zanon_net.count.release_folders import ReleaseFolder, RowFolder
from zanon_net.count.settings import NS, CounterSettings
from zanon_net.count.transport import Received, Transport
from zanon_net.errors import FormatError
from zanon_net.system.log import log
from zanon_net.system.signals import Interruption

if TYPE_CHECKING:  # its library is needed for it alone
    from zanon_net.count.state import StateFolder

WAIT_S = 0.2  # longest wait for messages, after which other due work is done
SNAPSHOTS_A_WINDOW = 12
SNAPSHOT_SHARE = 0.05  # share of the time that snapshots may take
REPEATED_S = 60.0  # time between two warnings of one subject
DEFAULT_CLOCKS = Clocks()


@dataclass(frozen=True, slots=True)
class Outputs:
    """Folders for the state, the released votes and the released rows of a counter, or None."""

    state: "StateFolder | None" = None
    releases: ReleaseFolder | None = None
    rows: RowFolder | None = None


class CounterService:
    """Counts until it is interrupted, or until all probes have ended.

    on_tick: function that is called often, with a function that returns the facts for metrics.
    """

    def __init__(
        self,
        settings: CounterSettings,
        transport: Transport,
        outputs: Outputs,
        on_tick: Callable[[Callable[[], CounterFacts]], None] = lambda _facts: None,
        clocks: Clocks = DEFAULT_CLOCKS,
    ) -> None:
        self._settings, self._transport, self._outputs = settings, transport, outputs
        self._on_tick, self._clocks = on_tick, clocks
        self._series = secrets.token_hex(8)
        self._warned: dict[str, float] = {}
        self._snapshot_due_s = 0.0
        self._snapshot_mark = 0
        self._snapshot_offset = 0
        self._state_s: float | None = None
        self.counter = Counter(settings)
        self._recover()
        self._admission = Admission(settings, self.counter, clocks)

    def run(self, interruption: Interruption, *, until_done: bool = False) -> None:
        """Runs the loop. Raises ZanonError if a file or the network ends it."""
        while not interruption.requested and not (until_done and self.is_done):
            self.step(self._transport.take(WAIT_S))
            self._on_tick(self.facts)
        self._transport.finish()
        self._keep_state()

    @property
    def is_done(self) -> bool:
        """True if all expected probes and all present sessions have ended. The previous session of
        a probe whose clock was set back has ended, too, while the probe sends under a new one."""
        return self.counter.is_done and self._admission.last_seen.keys() <= self.counter.ended

    def facts(self) -> CounterFacts:
        """Returns the facts about the counter now."""
        watermark, settings = self.counter.watermark, self._settings
        now, now_ns = self._clocks.seconds(), self._clocks.time_ns()
        last_seen, late = self._admission.last_seen, self.counter.lags()
        return CounterFacts(
            counts={**self.counter.stats(), **self._transport.counts},
            window_s=settings.window_ns * NS,
            pending_max=settings.max_pending * settings.shards,
            lag_s=None if watermark in (0, ENDED) else (now_ns - watermark) * NS,
            last_seen_s={f"{probe:016x}": now - seen for probe, seen in last_seen.items()},
            probe_lag_s={
                f"{probe:016x}": (now_ns - mark) * NS
                for probe, mark in self.counter.watermarks().items()
            },
            probe_late_s={f"{probe:016x}": late.get(probe, 0) / 1e9 for probe in last_seen},
            state_age_s=None if self._state_s is None else time.monotonic() - self._state_s,
            probes_missing=self.counter.probes_missing,
            memory_bytes=self.counter.memory_bytes,
            probes=self.counter.probes,
        )

    # ---- a commit --------------------------------------------------------------------------------

    def step(self, received: list[Received]) -> None:
        """Counts the received messages, and does other due work."""
        admitted = self._admission.look_at(received, self._transport.take_lost())
        for subject, text in admitted.warnings.items():
            self._warn(subject, text)
        for item, refusal, name in admitted.refused:
            self._refuse(item, refusal, name)
        if admitted.entries:
            commit = Commit(self.counter.offset, admitted.entries, self._transport.positions)
            if self._outputs.state is not None:
                self._outputs.state.append(commit)
            self._refuse_late(admitted, self._commit(commit))
            self._keep_state_if_due()

    def _commit(self, commit: Commit) -> Outcome:
        """Applies a commit of the journal, for the first time or again after a restart."""
        outcome = self.counter.apply(commit)
        if self._outputs.releases is not None:
            self._outputs.releases.write(commit, self.counter.releases())
        if self._outputs.rows is not None:
            self._outputs.rows.write(commit, outcome.rows)
        self._transport.publish(commit, outcome.answers)
        return outcome

    def _refuse_late(self, admitted: Admitted, outcome: Outcome) -> None:
        """Refuses the messages that a shard did not take. A refusal is final if the message itself
        is wrong, and not if a message before it has to come again."""
        for place, error in outcome.problems.items():
            item = admitted.sources[place]
            if item is not None:
                is_next = self.counter.is_next(votes_header(item.message))
                is_final = isinstance(error, FormatError) and is_next
                self._refuse(item, Refusal(str(error), is_final), "shard")

    def _refuse(self, item: Received, refusal: Refusal, subject: str) -> None:
        self._warn(subject, f"a probe's votes are refused: {refusal.text}")
        self._transport.refuse(item, refusal)

    def _warn(self, subject: str, text: str) -> None:
        """Logs a warning, unless one of its subject was logged lately."""
        now = self._clocks.seconds()
        if now - self._warned.get(subject, -REPEATED_S) >= REPEATED_S:
            self._warned = {old: at for old, at in self._warned.items() if now - at < REPEATED_S}
            self._warned[subject] = now
            log.warning("warning: %s", text)

    # ---- state -----------------------------------------------------------------------------------

    def _recover(self) -> None:
        """Restores the snapshot, and applies the commits since then again."""
        state = self._outputs.state
        snapshot = None if state is None else state.read_snapshot()
        commits: Iterator[Commit] = iter(())
        if state is not None and snapshot is not None:
            self._series = snapshot.about["series"]
            self._transport.seek(snapshot.about["positions"])
            self.counter.load(snapshot.offset, snapshot.parts)
            self._snapshot_offset = snapshot.offset
            self._transport.load(snapshot.parts["transport"])
            commits = state.read_commits(snapshot.offset)
        self._transport.start(self._series)
        for commit in commits:
            self._commit(commit)
            self._transport.seek(commit.positions)
        self._keep_state()

    def _keep_state_if_due(self) -> None:
        state = self._outputs.state
        if state is None or time.monotonic() < self._snapshot_due_s:
            return
        interval_ns = self._settings.window_ns // SNAPSHOTS_A_WINDOW
        has_advanced = self.counter.watermark - self._snapshot_mark >= interval_ns
        if has_advanced or state.is_journal_long:
            self._keep_state()

    def _keep_state(self) -> None:
        if self._outputs.state is None:
            return
        began = time.monotonic()
        self._snapshot_mark = self.counter.watermark
        for output in (self._transport, self._outputs.releases, self._outputs.rows):
            if output is not None:
                output.sync(self._snapshot_offset)  # the journal of these commits ends
        parts = {**self.counter.dump(), "transport": self._transport.dump()}
        about = {"series": self._series, "positions": dict(self._transport.positions)}
        self._outputs.state.write_snapshot(Snapshot(self.counter.offset, about, parts))
        self._snapshot_offset = self.counter.offset
        ended = self._state_s = time.monotonic()
        self._snapshot_due_s = ended + (ended - began) / SNAPSHOT_SHARE
