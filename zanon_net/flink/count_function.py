# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The counter's shards as keyed state of Flink."""

import logging
from collections.abc import Iterator

from pyflink.common import Types
from pyflink.datastream import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ListStateDescriptor, ValueStateDescriptor

from zanon_net.count.by_probe import frames_by_probe
from zanon_net.count.frames import (
    Refusal,
    framed,
    messages_in,
    votes_header,
    write_refusal,
)
from zanon_net.count.lateness import lag_text
from zanon_net.errors import FormatError
from zanon_net.flink.count_settings import NS_PER_MS, CountSettings
from zanon_net.flink.last_numbers import LastNumbers
from zanon_net.flink.logged_shard import (
    ALL_PRESENT,
    EARLY_BYTES_MAX,
    PROBES_MAX,
    LoggedShard,
    probe_gone,
)
from zanon_net.flink.parent_watch import end_with_task_manager
from zanon_net.flink.probe_watch import ProbeWatch

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
LOOKS_A_TIMEOUT = 2
"""Number of looks for silent probes within a time-out."""

_log = logging.getLogger("zanon_net")


class CountFunction(KeyedProcessFunction):
    """Function that takes messages of votes by shard, and yields messages of answers, or a refusal
    as the last message. Messages are in frames, and an element has messages of one probe.

    The state of a shard is a snapshot and the log of entries since, so a checkpoint grows with the
    new messages. The process keeps the shard in memory, and reads the state once after a restart.
    """

    def __init__(self, settings: CountSettings) -> None:
        self._settings = settings
        self._shards: dict[int, LoggedShard] = {}
        self._watches: dict[int, ProbeWatch] = {}
        self._look_at: dict[int, int] = {}
        self._said_late = LastNumbers()

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens the state, which is empty or comes from a checkpoint."""
        end_with_task_manager()
        self._snapshot = runtime_context.get_state(ValueStateDescriptor("snapshot", BYTES))
        self._log = runtime_context.get_list_state(ListStateDescriptor("log", BYTES))
        metrics = runtime_context.get_metrics_group()
        self._refusals = metrics.counter("probesRefused")
        self._limits_reached = metrics.counter("earlyLimitReached")
        metrics.gauge("probeLagMs", self._most_lag_ms)

    def process_element(self, value: bytes, ctx: KeyedProcessFunction.Context) -> Iterator[bytes]:
        """Takes messages of a probe."""
        yield from _refusing(self._process(value, ctx))

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[bytes]:
        """Continues without the probes that were silent."""
        yield from _refusing(self._look(timestamp, ctx))

    def _process(self, value: bytes, ctx: KeyedProcessFunction.Context) -> Iterator[bytes]:
        number = ctx.get_current_key()
        shard = self._shards.get(number) or self._begin(number, ctx)
        yield from self._take(shard, value)
        self._watches[number].hear(_probe_of(value))

    def _look(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[bytes]:
        number = ctx.get_current_key()
        shard = self._shards.get(number) or self._begin(number, ctx)
        if timestamp != self._look_at[number]:  # a timer from before a restart would never end
            return
        watch = self._watches[number]
        for probe in watch.silent():
            yield from self._take(shard, probe_gone(probe))
        if not shard.has_begun and watch.all_present(self._settings.expect_probes):
            yield from self._take(shard, ALL_PRESENT)
        for probe, lag_ns in watch.late().items():
            if probe not in self._said_late:
                self._said_late.add(probe)
                _log.warning("%s", lag_text(probe, lag_ns))
        self._look_later(ctx)

    def _take(self, shard: LoggedShard, entry: bytes) -> Iterator[bytes]:
        self._log.add(entry)
        yield from frames_by_probe(shard.take(entry)).values()
        for refused in shard.take_refused():
            self._refusals.inc()
            _log.warning("probe %016x is refused: %s", refused.header.probe, refused.reason)
            yield refused.frames
        for probe in shard.take_over_limit():
            self._limits_reached.inc()
            _log.warning("%s", _over_limit_text(probe))
        if shard.is_snapshot_due:
            snapshot, log = shard.snapshot()
            self._snapshot.update(snapshot)
            self._log.update(log)

    def _most_lag_ms(self) -> int:
        """Returns the largest lag of a probe of the shards here, in milliseconds."""
        lags = (max(watch.lags.values(), default=0) for watch in self._watches.values())
        return max(lags, default=0) // NS_PER_MS

    def _begin(self, number: int, ctx: KeyedProcessFunction.Context) -> LoggedShard:
        """Returns the shard, restored from its state."""
        if number >= self._settings.shards:
            raise FormatError(
                f"a message is for shard {number} of {self._settings.shards}: a probe was told"
                " another number of shards"
            )
        shard = LoggedShard.restore(
            self._settings, number, self._snapshot.value(), self._log.get() or ()
        )
        self._shards[number] = shard
        self._watches[number] = ProbeWatch(shard, self._settings.probe_timeout_ns)
        self._look_later(ctx)
        return shard

    def _look_later(self, ctx: KeyedProcessFunction.Context) -> None:
        service = ctx.timer_service()
        pause_ms = max(1, self._settings.probe_timeout_ns // NS_PER_MS // LOOKS_A_TIMEOUT)
        at_ms = service.current_processing_time() + pause_ms
        self._look_at[ctx.get_current_key()] = at_ms
        service.register_processing_time_timer(at_ms)


def _refusing(answers: Iterator[bytes]) -> Iterator[bytes]:
    """Ends with a refusal, which ends the job, if an entry cannot be read. A restart would not
    help."""
    try:
        yield from answers
    except FormatError as error:
        yield framed(write_refusal(Refusal(str(error), is_final=True)))


def _probe_of(frames: bytes) -> int:
    """Returns the session of the first message, which is the session of all messages of a file."""
    return votes_header(next(messages_in(frames))).probe


def _over_limit_text(probe: int) -> str:
    return (
        f"probe {probe:016x} is gone: messages of {EARLY_BYTES_MAX >> 20} MiB, or of {PROBES_MAX}"
        " probes, wait in a shard, most of them its own, since one before them is missing or other"
        " probes are far behind; its votes there are late, or have no answer until it starts again"
    )
