# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs captures to logs: opens, reads in batches, writes; an error leaves no output."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from zanon_net._core import FULL_ROWS, OUTPUTS, TABLES, PacketEngine
from zanon_net._version import __version__
from zanon_net.config.settings import Config
from zanon_net.errors import ConfigError, FormatError, OutputError, ZanonError
from zanon_net.output.choice import open_sink
from zanon_net.output.disk import DiskRules
from zanon_net.output.folder import check_out
from zanon_net.output.sink import Plan, Sink
from zanon_net.pipeline import packet_fates
from zanon_net.pipeline.diagnostics import MergeWarning
from zanon_net.pipeline.facts import Facts
from zanon_net.pipeline.interfaces import interfaces_of
from zanon_net.pipeline.manifest import Ending, build_manifest, manifest_bytes
from zanon_net.pipeline.never_file import NeverFile
from zanon_net.pipeline.observers import Observers
from zanon_net.pipeline.reader import (
    Progress,
    Reader,
    Started,
    reader_opener,
)
from zanon_net.pipeline.report import Report
from zanon_net.pipeline.status import Status, StatusClock
from zanon_net.pipeline.totals import Totals
from zanon_net.pipeline.upkeep import Upkeep
from zanon_net.pipeline.window_hooks import WindowHooks
from zanon_net.system.file_errors import lacks_room
from zanon_net.system.log import log
from zanon_net.system.service import ServiceManager
from zanon_net.system.signals import Interruption
from zanon_net.system.streams import STDIN, Source

if TYPE_CHECKING:
    import pwd
    from typing import Unpack

    from zanon_net.config.keywords import RunSettings
    from zanon_net.count.shard_link import ShardLink
    from zanon_net.pipeline.counting import Counting
    from zanon_net.pipeline.live import LiveReader
    from zanon_net.pipeline.live_interfaces import LiveInterfaces


def run(
    source: Source | Iterable[Source],
    config: Config | None = None,
    *,
    out: Source | None = None,
    progress: Progress | None = None,
    on_status: Callable[[Status], None] | None = None,
    interruption: Interruption | None = None,
    started: Started | None = None,
    service: ServiceManager | None = None,
    **settings: "Unpack[RunSettings]",
) -> Report:
    """Turns captures, or the traffic of network interfaces, into anonymized logs.

    source: a capture's path, a folder of captures, "-" for standard input, or several of them. They
        are read in the order of their first packets' times, and unpacked if compressed. Or one or
        more interfaces, which are read until interrupted.
    config: the settings; the defaults if None.
    out: a folder that is new or empty, "-" for standard output, None for ./zanon-<UTC start>.
    progress: called after each batch; see Progress. It is not called with shards.
    on_status: called every `config.live.status`, if that is set.
    interruption: an Interruption inside whose `with` block `run` is called: signals then end the
        reading.
    started: called when the first packet was read; see Started. It is not called with shards.
    service: the service manager that waits for this run, such as systemd; see ServiceManager.
    settings: single settings, which override config, such as z=10 or window="30m".

    Returns the Report, whose `failure` says if a lost interface ended the run.

    Raises ConfigError, CaptureError (a source cannot be read), FormatError (it is no capture),
    CapacityError or OutputError, each a ZanonError. After any error only whole files have their
    final names: the files of finished parts, and the last part if there was no space for more.
    Then, or if the output could not be written, the manifest lists the files and counts the lost
    records.
    """
    config = (config or Config()).replace(**settings)
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    _check_outputs(out, sources, config)
    if config.limits.shards > 1:
        from zanon_net.pipeline.shard_run import run_shards

        return run_shards(
            sources,
            config,
            out=out,
            on_status=on_status,
            interruption=interruption or Interruption(),
            service=service,
        )
    return run_into(
        folder_sinks(out, config),
        sources,
        config,
        progress=progress,
        on_status=on_status,
        interruption=interruption,
        started=started,
        service=service,
    )


def _check_outputs(out: Source | None, sources: Sequence[Source], config: Config) -> None:
    """Raises ConfigError if an output is a source, or a view would go to standard output."""
    check_out(out, sources, config.output.popularity)
    if config.views and out == STDIN:
        raise ConfigError("view: a view needs a file of its own; name a folder with --out")


SinkFor = Callable[["pwd.struct_passwd | None", ExitStack], Callable[[Plan], Sink]]
"""Function that takes the user whom the run becomes, and the stack of the run; returns the opener
of the sink."""


def folder_sinks(out: Source | None, config: Config) -> SinkFor:
    """Returns the opener of the sink of logs. out: as `run` takes it."""

    def sink_for(user: "pwd.struct_passwd | None", stack: ExitStack) -> Callable[[Plan], Sink]:
        keeps = config.live.keeps_capture
        place = out
        if user is not None:
            from zanon_net.pipeline.privileges import go_on_as

            place = go_on_as(user, out, stack, keeps_capture=keeps)
        return partial(open_sink, place, config.output.format)

    return sink_for


def run_into(
    sink_for: SinkFor,
    sources: Sequence[Source],
    config: Config,
    *,
    progress: Progress | None = None,
    on_status: Callable[[Status], None] | None = None,
    interruption: Interruption | None = None,
    started: Started | None = None,
    service: ServiceManager | None = None,
    shard: "ShardLink | None" = None,
    live: "LiveInterfaces | None" = None,
) -> Report:
    """Runs the sources into a sink. Takes, returns and raises what `run` does.

    shard: the link of a shard to its run; None for other runs.
    live: the open interfaces of a shard.
    """
    interruption = interruption or Interruption()
    user = None
    if config.live.drop_to is not None:
        from zanon_net.pipeline.privileges import find_user

        user = find_user(config.live.drop_to)
    with ExitStack() as stack, ExitStack() as until_published:
        observers = Observers(config.live, service)
        stack.callback(observers.close)
        begin = reader_opener(sources, config, progress, interruption, stack, live)
        of_shard = {} if shard is None else shard.engine_arguments()
        engine = PacketEngine(**config.engine_arguments() | of_shard)
        stack.callback(engine.close)
        is_live = bool(interfaces_of(sources))
        counting = _begin_counting(engine, config, interruption, shard, is_live=is_live)
        if counting is not None:
            stack.callback(counting.close)
        if user is not None:
            from zanon_net.pipeline.privileges import load_libraries

            load_libraries(config)
        open_it = sink_for(user, stack)
        hooks = WindowHooks(config)
        until_published.callback(hooks.discard)
        plan = plan_of(engine, config, disk_rules(config, interruption, is_live=is_live))
        sink = open_it(plan)
        if config.limits.workers > 1 and sink.may_async_sink:
            from zanon_net.output.async_sink import AsyncSink

            sink = AsyncSink(sink, plan, engine.call_aside)
        stack.callback(sink.discard)
        reader = begin(engine, hooks)
        if started is not None:
            reader.started = partial(started, config.limits.max_flows, engine.flow_bytes_max)
        never = NeverFile(engine, config, interruption)
        report = run_reader(reader, engine, sink, hooks, observers, on_status, counting, never)
        until_published.pop_all()
        observers.finish()
        return report


def _begin_counting(
    engine: PacketEngine,
    config: Config,
    interruption: Interruption,
    shard: "ShardLink | None",
    *,
    is_live: bool,
) -> "Counting | None":
    """Connects the engine with the counter that decides for it; returns None if the engine
    decides."""
    if shard is None and config.count.count_at is None:
        return None
    from zanon_net.pipeline.counting import begin_counting, begin_shard

    if shard is not None:
        return begin_shard(engine, config, shard, is_live=is_live)
    return begin_counting(engine, config, interruption, is_live=is_live)


def disk_rules(config: Config, interruption: Interruption, *, is_live: bool) -> DiskRules:
    """Returns the rules for a run's use of its disk."""
    return DiskRules(
        keep_ns=int(config.output.keep or 0),
        max_bytes=int(config.output.max_disk or 0),
        waits=config.output.on_full == "wait",
        is_live=is_live,
        gives_up=lambda: interruption.requested,
    )


def plan_of(engine: PacketEngine, config: Config, disk: DiskRules | None = None) -> Plan:
    """Returns the plan of the files that a run of the engine writes."""
    views = config.view_outputs
    outputs = (*config.output.outputs, *views)
    return Plan(
        outputs=outputs,
        headers={output: engine.header(output) for output in outputs if output in OUTPUTS},
        fields={output: engine.fields(output) for output in outputs if output in TABLES},
        about={"zanon_net": __version__, "configuration": config.to_dict()},
        compress=config.output.compress,
        views={output: view.name for output, (_of, view) in views.items()},
        partition=config.output.partition_keys,
        split_ns=config.output.split_ns,
        split_bytes=config.output.size_limit,
        disk=disk or DiskRules(),
        mode=config.output.file_mode,
    )


def run_reader(
    reader: "Reader | LiveReader",
    engine: PacketEngine,
    sink: Sink,
    hooks: WindowHooks,
    observers: Observers,
    on_status: Callable[[Status], None] | None = None,
    counting: "Counting | None" = None,
    never: NeverFile | None = None,
) -> Report:
    """Reads to the end, and writes. Raises the errors of `run`."""
    config, began = hooks.config, time.monotonic()

    def manifest(error: str | None = None, *, running: bool = False) -> dict[str, Any]:
        ending = Ending(
            files=sink.files,
            written=sink.written,
            interrupted=reader.interrupted,
            error=error or reader.failure,
            drops=reader.drops(),
            was_cut=sink.was_cut,
            sent=sink.sent,
            disk=sink.disk,
            running=running,
            waited=None if counting is None else counting.note,
            captures=reader.note(),
        )
        built = build_manifest(config, Totals.of(engine), reader.facts(), ending)
        return built | hooks.facts() | ({} if never is None else never.facts())

    def state() -> bytes:
        return manifest_bytes(manifest(running=True))

    clock = _status_clock(reader, engine, sink, config.live.status_s, on_status)
    observers.begin(engine, reader.drops, hooks, lambda: sink.disk, reader.presence)
    try:
        upkeep = Upkeep(sink, config, state, is_live=reader.is_live)
        ticks = [one.tick for one in (never, observers, upkeep, clock) if one is not None]
        _read(reader, engine, sink, observers, counting, ticks)
        _finish(reader, engine, sink, observers, counting)
        hooks.see(engine)
        sink.finish(reader.first_ns)
        written = {output: n + sink.lost.get(output, 0) for output, n in sink.written.items()}
        packet_fates.check(engine.stats, written)
        packet_fates.check_views(engine.stats, engine.view_stats, written)
        final = manifest()
        hooks.publish()
        sink.publish(manifest_bytes(final))
    except BaseException as error:
        if isinstance(error, OutputError) or sink.files or sink.parts:
            text = str(error) if isinstance(error, ZanonError) else type(error).__name__
            kept_from = reader.first_ns if lacks_room(error) else None
            sink.abandon(lambda: manifest_bytes(manifest(text)), kept_from)
        raise
    log.info("finished")
    seconds = time.monotonic() - began
    return Report(final, sink.place, Totals.of(engine), seconds, sink.is_file)


def _read(
    reader: "Reader | LiveReader",
    engine: PacketEngine,
    sink: Sink,
    observers: Observers,
    counting: "Counting | None",
    ticks: Sequence[Callable[[], object]],
) -> None:
    """Reads all batches, and writes the output of each. ticks: functions to call after a batch."""
    drain = partial(_drain, engine, sink, observers)
    merges = MergeWarning()
    for _batch in reader.batches():
        if counting is not None:
            counting.tick(drain, reader)
        drain()
        _rotate(reader, engine, sink, observers)
        for tick in ticks:
            tick()
        merges.see(engine.counts("frames_merged"))


def _status_clock(
    reader: "Reader | LiveReader",
    engine: PacketEngine,
    sink: Sink,
    interval_s: float | None,
    notify: Callable[[Status], None] | None,
) -> StatusClock | None:
    """Returns a clock that reports the status at intervals; None without a function to notify."""
    if notify is None or interval_s is None:
        return None
    return StatusClock(engine, reader.drops, interval_s, notify, lambda: sink.sent, reader.presence)


def _finish(
    reader: "Reader | LiveReader",
    engine: PacketEngine,
    sink: Sink,
    observers: Observers,
    counting: "Counting | None",
) -> None:
    """Ends all flows after the last read, and moves the remaining output to the sink."""
    observers.stopping()
    if not reader.is_live:  # for an interface, no packet or an early end is no error
        _refuse_unreadable(reader.facts())
    if counting is not None:
        counting.finish(partial(_drain, engine, sink, observers))
    while engine.finish():
        _drain(engine, sink, observers)
        _rotate(reader, engine, sink, observers)
        observers.tick()
    _move(engine, sink, observers)


def _drain(engine: PacketEngine, sink: Sink, observers: Observers) -> None:
    """Moves output from the engine to the sink until no record waits. Rows of a Parquet table that
    do not fill a row group stay."""
    _move(engine, sink, observers, rows=FULL_ROWS)
    while engine.waiting:
        engine.flush()
        _move(engine, sink, observers, rows=FULL_ROWS)


def _move(engine: PacketEngine, sink: Sink, observers: Observers, **limits: int) -> None:
    """Moves output from the engine to the sink. limits: as `drain` takes them."""
    parts, tables = engine.drain(**limits)
    observers.count(parts)
    sink.take(parts, tables)


def _rotate(
    reader: "Reader | LiveReader", engine: PacketEngine, sink: Sink, observers: Observers
) -> None:
    """Ends a part if a signal requested it, or if a file is large."""
    times = engine.time_range_ns
    if reader.first_ns is not None and times and (sink.is_large or reader.take_rotation()):
        _move(engine, sink, observers)
        sink.rotate(reader.first_ns, times[1])


def _refuse_unreadable(facts: Sequence[Facts]) -> None:
    """Raises FormatError if no packet could be read and a source has a warning."""
    nothing_read = not any(source.frames for source in facts)
    for source in facts:
        if nothing_read and source.warning is not None:
            raise FormatError(f"{source.name}: {source.warning}; not one packet can be read")
