# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The counter's shards as keyed state of Flink."""

import logging
import time
from collections.abc import Iterator

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor

from zanon_net.count.frames import (
    Refusal,
    answers_header,
    framed,
    messages_in,
    votes_header,
    write_refusal,
)
from zanon_net.count.lateness import lag_text
from zanon_net.errors import FormatError
from zanon_net.flink.count_settings import NS_PER_MS, CountSettings
from zanon_net.flink.logged_shard import LoggedShard, probe_gone
from zanon_net.flink.parent_watch import end_with_task_manager

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
LOOKS_A_TIMEOUT = 2
"""How often a shard looks for silent probes."""

_log = logging.getLogger("zanon_net")


class CountFunction(KeyedProcessFunction):
    """Takes messages of votes by their shard; yields those of answers, or a refusal as the last.
    All are in frames, and those of one element are of one probe.

    State of a shard is a snapshot and the log of entries since, so a checkpoint grows by what came,
    and the process has the shard at hand: it reads the state once after a restart.
    """

    def __init__(self, settings: CountSettings) -> None:
        self._settings = settings
        self._shards: dict[int, LoggedShard] = {}
        self._heard: dict[int, dict[int, int]] = {}
        self._lags: dict[int, dict[int, int]] = {}
        self._said_late: set[int] = set()

    def open(self, runtime_context: RuntimeContext) -> None:
        """Begins, or goes on from a checkpoint."""
        end_with_task_manager()
        self._snapshot = runtime_context.get_state(ValueStateDescriptor("snapshot", BYTES))
        self._log = runtime_context.get_list_state(ListStateDescriptor("log", BYTES))
        metrics = runtime_context.get_metrics_group()
        self._refusals = metrics.counter("probesRefused")
        metrics.gauge("probeLagMs", self._most_lag_ms)

    def process_element(self, value: bytes, ctx: KeyedProcessFunction.Context) -> Iterator[bytes]:
        """Takes messages of a probe."""
        yield from _refusing(self._process(value, ctx))

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[bytes]:
        """Goes on without the probes that were silent."""
        yield from _refusing(self._look(ctx))

    def _process(self, value: bytes, ctx: KeyedProcessFunction.Context) -> Iterator[bytes]:
        number = ctx.get_current_key()
        shard = self._shards.get(number) or self._begin(number, ctx)
        yield from self._take(shard, value)
        probe = _probe_of(value)
        if not shard.is_stuck(probe) or probe not in self._heard[number]:
            self._heard[number][probe] = time.monotonic_ns()

    def _look(self, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[bytes]:
        number = ctx.get_current_key()
        shard = self._shards.get(number) or self._begin(number, ctx)
        heard, now = self._heard[number], time.monotonic_ns()
        for probe in sorted(shard.probes):
            if now - heard.setdefault(probe, now) >= self._settings.probe_timeout_ns:
                yield from self._take(shard, probe_gone(probe))
                del heard[probe]
        self._warn_of_late(number, shard)
        self._look_later(ctx)

    def _take(self, shard: LoggedShard, entry: bytes) -> Iterator[bytes]:
        self._log.add(entry)
        answers: dict[int, list[bytes]] = {}
        for answer in shard.take(entry):
            answers.setdefault(answers_header(answer).probe, []).append(framed(answer))
        yield from map(b"".join, answers.values())
        for refused in shard.take_refused():
            self._refusals.inc()
            _log.warning("probe %016x is refused: %s", refused.header.probe, refused.reason)
            yield refused.frames
        if shard.is_snapshot_due:
            snapshot, log = shard.snapshot()
            self._snapshot.update(snapshot)
            self._log.update(log)

    def _warn_of_late(self, number: int, shard: LoggedShard) -> None:
        """Says once of each probe that it stays behind, though it sends."""
        heard_after = time.monotonic_ns() - self._settings.probe_timeout_ns
        heard, before = self._heard[number], self._lags.get(number, {})
        behind = {
            probe: by_ns
            for probe, by_ns in shard.lags().items()
            if heard.get(probe, heard_after) > heard_after
        }
        self._lags[number] = behind
        for probe in (behind.keys() & before.keys()) - self._said_late:
            self._said_late.add(probe)
            _log.warning("%s", lag_text(probe, behind[probe]))

    def _most_lag_ms(self) -> int:
        """By how much a probe of a shard here is behind at most."""
        most_ns = max((max(b.values(), default=0) for b in self._lags.values()), default=0)
        return most_ns // NS_PER_MS

    def _begin(self, number: int, ctx: KeyedProcessFunction.Context) -> LoggedShard:
        """The shard out of the state, where there is some."""
        if number >= self._settings.shards:
            raise FormatError(
                f"a message is for shard {number} of {self._settings.shards}: a probe was told"
                " another number of shards"
            )
        shard = LoggedShard.restore(
            self._settings, number, self._snapshot.value(), self._log.get() or ()
        )
        self._shards[number], self._heard[number] = shard, {}
        self._look_later(ctx)
        return shard

    def _look_later(self, ctx: KeyedProcessFunction.Context) -> None:
        service = ctx.timer_service()
        pause_ms = max(1, self._settings.probe_timeout_ns // NS_PER_MS // LOOKS_A_TIMEOUT)
        service.register_processing_time_timer(service.current_processing_time() + pause_ms)


def _refusing(answers: Iterator[bytes]) -> Iterator[bytes]:
    """Ends with a refusal where something cannot be read, which ends the job: it stays so."""
    try:
        yield from answers
    except FormatError as error:
        yield framed(write_refusal(Refusal(str(error), is_final=True)))


def _probe_of(frames: bytes) -> int:
    """The probe of the first message, which is that of all messages of a file."""
    return votes_header(next(messages_in(frames))).probe
