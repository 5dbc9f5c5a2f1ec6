# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs several engines as processes, with one counter: starts the shards, counts, and supervises.

A shard is a run of its own, into the folder shard-<number> of the output. The process that started
the shards counts their votes. If a shard fails, all shards end, and discard what they have not
published.
"""

import gc
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zanon_net._core import LocalCounter
from zanon_net.config.settings import Config
from zanon_net.count.settings import CounterSettings
from zanon_net.count.shard_link import DONE, READY, ShardLinks
from zanon_net.errors import ConfigError
from zanon_net.output.files import PARTIAL
from zanon_net.output.folder import default_folder
from zanon_net.output.new_file import create_private
from zanon_net.output.state_file import MANIFEST
from zanon_net.pipeline.interfaces import interfaces_of
from zanon_net.pipeline.manifest import manifest_bytes
from zanon_net.pipeline.report import Report
from zanon_net.pipeline.shard_process import OBEYED, ShardProcess, ShardWork, start_shard
from zanon_net.pipeline.shard_report import FOLDER, merged, merged_status
from zanon_net.pipeline.shard_sources import divide
from zanon_net.system.durability import sync_folders
from zanon_net.system.file_errors import explained
from zanon_net.system.service import ServiceManager
from zanon_net.system.signals import Interruption
from zanon_net.system.streams import STDIN, Source

if TYPE_CHECKING:
    import pwd

    from zanon_net.pipeline.status import Status

WAIT_S = 0.1  # longest wait for votes, after which signals and shards are looked at
JOINING_S = 2.0  # from the first votes of an interface on, the wait for the votes of all shards
PENDING = 1 << 21  # votes of a shard that may wait; its queue has half as many steps
ENDING_S = 10.0  # after an error, shards that take longer to end are killed


def run_shards(
    sources: Sequence[Source],
    config: Config,
    *,
    out: Source | None,
    on_status: "Callable[[Status], None] | None",
    interruption: Interruption,
    service: ServiceManager | None,
) -> Report:
    """Runs the sources in `config.limits.shards` processes; takes, returns and raises what `run`
    does."""
    if out == STDIN:
        raise ConfigError("shards: the shards need a folder; name one with --out")
    user = None
    if config.live.drop_to is not None:
        from zanon_net.pipeline.privileges import find_user

        user = find_user(config.live.drop_to)
    folder = default_folder(datetime.now(UTC)) if out is None else Path(out)
    with ExitStack() as stack:
        work = _divided(sources, config, stack)
        if threading.active_count() > 1:
            raise ConfigError(
                "shards: a process with other threads cannot start them; use the command"
            )
        _make_folder(folder, user, stack)
        links = ShardLinks(config.limits.shards)
        stack.callback(links.close)
        shards: list[ShardProcess] = []
        stack.callback(_end, shards, links)
        gc.freeze()  # a collection in a shard would copy the memory of all objects
        for part in work:
            place = folder / FOLDER.format(part.shard)
            shards.append(start_shard(part, place, links, interruption))
        gc.unfreeze()
        _leave_to_shards(work, user, config)
        supervisor = _Supervisor(shards, links, config, interruption, service)
        supervisor.run(on_status)
        report = merged([shard.report for shard in shards], folder, config)
        _write_manifest(folder, report, config)
    return report


def _divided(sources: Sequence[Source], config: Config, stack: ExitStack) -> list[ShardWork]:
    """Opens interfaces, or divides captures; returns the work of each shard."""
    n = config.limits.shards
    names = interfaces_of(sources)
    if not names:
        parts = divide(sources, config, n)
        return [ShardWork(i, [part], config, None) for i, part in enumerate(parts)]
    from zanon_net.pipeline.live_interfaces import open_interfaces

    live = open_interfaces(names, len(sources) - len(names), config)
    stack.callback(live.close)
    return [ShardWork(i, list(sources), config, live) for i in range(n)]


def _make_folder(folder: Path, user: "pwd.struct_passwd | None", stack: ExitStack) -> None:
    """Makes the folder of the run. Raises ConfigError if it contains files, or OutputError."""
    with explained("make", folder):
        if folder.exists() and not folder.is_dir():
            raise ConfigError(f"{folder} exists and is not a folder")
        folder.mkdir(exist_ok=True)
        stack.callback(_remove_empty, folder)
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid, follow_symlinks=False)
    with explained("read", folder):
        if any(folder.iterdir()):
            raise ConfigError(
                f"{folder} is not empty, and nothing is ever overwritten; "
                "choose another folder or empty it"
            )


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _leave_to_shards(
    work: Sequence[ShardWork], user: "pwd.struct_passwd | None", config: Config
) -> None:
    """Closes the interfaces, which the shards read, and gives up rights that only they need."""
    if work[0].live is not None:
        work[0].live.close()
    if user is not None:
        from zanon_net.pipeline.privileges import become, load_libraries

        load_libraries(config)
        become(user)


def _write_manifest(folder: Path, report: Report, config: Config) -> None:
    """Writes the manifest of the run, after the manifests of all shards."""
    path = folder / MANIFEST
    partial = path.with_name(path.name + PARTIAL)
    with explained("write", path):
        with create_private(partial, config.output.file_mode) as file:
            file.write(manifest_bytes(report.manifest))
            os.fsync(file.fileno())
        partial.rename(path)
        sync_folders([folder])


def _end(shards: Sequence[ShardProcess], links: ShardLinks) -> None:
    """Ends the shards that are left after an error."""
    left = [shard for shard in shards if not shard.has_ended]
    if not left:
        return
    links.stop()
    for shard in left:
        shard.leave()
        shard.signal(OBEYED)
    until = time.monotonic() + ENDING_S
    while (left := [shard for shard in left if not shard.has_exited()]) and (
        time.monotonic() < until
    ):
        time.sleep(0.01)
    for shard in left:
        shard.signal(signal.SIGKILL)
        shard.wait()


class _Supervisor:
    """Counts the votes of the shards until all shards have ended."""

    def __init__(
        self,
        shards: Sequence[ShardProcess],
        links: ShardLinks,
        config: Config,
        interruption: Interruption,
        service: ServiceManager | None,
    ) -> None:
        self._shards, self._links = shards, links
        self._interruption, self._service = interruption, service
        self._status_s = config.live.status_s
        self._status_due = time.monotonic() + (self._status_s or 0.0)
        self._is_live = any(shard.is_live for shard in shards)
        self._counter = LocalCounter(_vote_shard(config), links.rings)
        self._is_ready = self._is_stopping = False
        self._silent = set(range(links.shards))  # shards without a sign of life since the last beat
        self._joined_s: float | None = None  # when the first shard of an interface sent votes
        self._poll = select.poll()
        self._poll.register(links.bell, select.POLLIN)
        for shard in shards:
            self._poll.register(shard.pipe, select.POLLIN)

    def run(self, on_status: "Callable[[Status], None] | None") -> None:
        """Raises the error of the first shard that fails, or KeyboardInterrupt at the second
        signal."""
        while any(not shard.has_ended for shard in self._shards):
            more, answered = self._counter.step(self._expected)
            if answered:
                self._links.wake_all(answered)
            if not more:
                self._wait()
            self._obey()
            self._report(on_status)

    @property
    def _expected(self) -> int:
        """The number of shards that must send votes before the first decision.

        A shard that ended without a packet sends no vote. A queue of an interface may be silent, so
        that the wait is short. All shards of interfaces have one clock, so later votes are in time.
        """
        shards = range(self._links.shards)
        have_sent = [self._counter.has_sent(shard) for shard in shards]
        if self._is_live and any(have_sent):
            self._joined_s = self._joined_s or time.monotonic()
            if time.monotonic() - self._joined_s > JOINING_S:
                return 0
        return sum(sent or self._links.state(n) != DONE for n, sent in enumerate(have_sent))

    def _wait(self) -> None:
        for handle, _events in self._poll.poll(WAIT_S * 1000):
            if handle == self._links.bell:
                with suppress(BlockingIOError):
                    os.eventfd_read(handle)
                continue
            shard = next(shard for shard in self._shards if shard.pipe == handle)
            if not shard.listen():
                self._poll.unregister(handle)
                shard.close()

    def _obey(self) -> None:
        """Passes signals on to the shards, once."""
        if self._interruption.requested and not self._is_stopping:
            self._is_stopping = True
            if self._service is not None:
                self._service.stopping()
            self._signal(OBEYED)
        if self._interruption.take_rotation():
            self._signal(signal.SIGHUP)

    def _signal(self, number: int) -> None:
        for shard in self._shards:
            if not shard.has_ended:
                shard.signal(number)

    def _report(self, on_status: "Callable[[Status], None] | None") -> None:
        now = time.monotonic()
        if self._service is not None:
            if not self._is_ready and self._links.count(READY) == self._links.shards:
                self._is_ready = True
                self._service.ready()
            self._silent -= {n for n in self._silent if self._links.take_beat(n)}
            if all(self._shards[n].has_ended for n in self._silent):
                self._service.beat(now)  # a shard that hangs lets the service manager act
                self._silent = set(range(self._links.shards))
        if on_status is None or self._status_s is None or now < self._status_due:
            return
        self._status_due = now + self._status_s
        known = [shard.status for shard in self._shards if shard.status is not None]
        if known:
            on_status(merged_status(known))


def _vote_shard(config: Config) -> Any:
    """Returns the table of the run's votes."""
    limits = config.limits
    return CounterSettings(
        z=config.anonymity.z,
        window_ns=config.anonymity.window_ns,
        rotate_ns=config.rotate_ns,
        max_tuples=limits.max_tuples,
        max_attributes=limits.max_attributes,
        max_pending=limits.shards * PENDING,
    ).new_shard(0)
