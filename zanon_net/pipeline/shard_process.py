# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Process of a shard: a run of its own that reports to the process that started it."""

import json
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from zanon_net import errors
from zanon_net._core import set_process
from zanon_net._record import dataclass
from zanon_net.config.settings import Config
from zanon_net.count.shard_link import ShardLink, ShardLinks, ShardStoppedError
from zanon_net.errors import ZanonError
from zanon_net.pipeline.runner import folder_sinks, run_into
from zanon_net.pipeline.shard_report import packed, packed_status
from zanon_net.system.log import log
from zanon_net.system.signals import Interruption, signals_blocked
from zanon_net.system.streams import Source

if TYPE_CHECKING:
    from zanon_net.pipeline.live_interfaces import LiveInterfaces
    from zanon_net.pipeline.status import Status

OBEYED = signal.SIGUSR1
"""The signal by which a shard ends its reading, as a run does at SIGTERM."""
_PR_SET_PDEATHSIG = 1
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class ShardWork:
    """The part of a run that a shard does. live: the open interfaces of all shards, or None."""

    shard: int
    sources: Sequence[Source]
    config: Config
    live: "LiveInterfaces | None"


class ShardProcess:
    """A shard, in the process that started it. `status` is its last packed status, or None."""

    def __init__(self, work: ShardWork, pid: int, pipe: int) -> None:
        self.is_live = work.live is not None
        self.pipe = pipe
        self.status: dict[str, Any] | None = None
        self._shard, self._pid = work.shard, pid
        self._report: dict[str, Any] | None = None
        self._error: ZanonError | None = None
        self._received = b""
        self._code: int | None = None

    @property
    def has_ended(self) -> bool:
        """True if the process was waited for."""
        return self._code is not None

    @property
    def report(self) -> dict[str, Any]:
        """The packed report of a shard that has ended well."""
        assert self._report is not None
        return self._report

    def signal(self, number: int) -> None:
        """Sends a signal to the process, which has not been waited for."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def listen(self) -> bool:
        """Takes what the process has sent; false at its end."""
        chunk = os.read(self.pipe, _CHUNK)
        *lines, self._received = (self._received + chunk).split(b"\n")
        for line in lines:
            self._take(json.loads(line))
        return chunk != b""

    def _take(self, said: dict[str, Any]) -> None:
        if "log" in said:
            level, text = said["log"]
            log.log(level, "shard %d: %s", self._shard, text)
        elif "status" in said:
            self.status = said["status"]
        elif "report" in said:
            self._report = said["report"]
        elif said["error"] == KeyboardInterrupt.__name__:
            raise KeyboardInterrupt
        else:
            kind = getattr(errors, said["error"], ZanonError)
            text = f"shard {self._shard}: {said['text']}"
            is_of_system = issubclass(kind, errors.CaptureError)
            self._error = kind(said["errno"], text) if is_of_system else kind(text)

    def leave(self) -> None:
        """Stops listening. A second call does nothing."""
        if self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1

    def close(self) -> None:
        """Waits for the process, whose end of the pipe is closed. Raises its error unless it ended
        well."""
        self.leave()
        self.wait()
        if self._error is not None:
            raise self._error
        if self._report is None:
            how = f"signal {-self._code}" if self._code and self._code < 0 else f"code {self._code}"
            raise ZanonError(f"shard {self._shard} ended by {how}; the run ends with it")

    def has_exited(self) -> bool:
        """Returns true if the process has exited, and waits for it then."""
        if self._code is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code is not None

    def wait(self) -> None:
        """Waits for the process. A second call does nothing."""
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def start_shard(
    work: ShardWork, out: Path, links: ShardLinks, interruption: Interruption
) -> ShardProcess:
    """Starts the process of a shard, which writes into the folder `out`."""
    listening, saying = os.pipe()
    with signals_blocked():
        pid = os.fork()
        if pid == 0:
            os.close(listening)
            interruption.obey(OBEYED)
    if pid == 0:
        _be_shard(work, out, links, interruption, saying)
    os.close(saying)
    return ShardProcess(work, pid, listening)


def _be_shard(
    work: ShardWork, out: Path, links: ShardLinks, interruption: Interruption, pipe: int
) -> NoReturn:
    """Runs a shard, and ends this process without the clean-up of the process that forked it."""
    code = 1
    try:
        set_process(_PR_SET_PDEATHSIG, OBEYED)  # it may be waiting for packets
        log.forward = lambda level, text: _say(pipe, {"log": (level, text)})
        _say(pipe, _run(work, out, links, interruption, pipe))
        code = 0
    except ShardStoppedError:
        pass  # the error of the other shard is reported
    except BaseException as error:
        _say(pipe, _described(error))
    finally:
        os._exit(code)


def _run(
    work: ShardWork, out: Path, links: ShardLinks, interruption: Interruption, pipe: int
) -> dict[str, Any]:
    """Runs the shard; returns its packed report."""
    link = ShardLink(links, work.shard)
    config = _config_of(work, link.shards)
    if work.live is not None:
        work.live.keep(work.shard, link.shards)
    report = run_into(
        folder_sinks(out, config),
        work.sources,
        config,
        on_status=partial(_say_status, pipe) if config.live.status else None,
        interruption=interruption,
        shard=link,
        live=work.live,
    )
    return {"report": packed(report)}


def _config_of(work: ShardWork, shards: int) -> Config:
    """Returns the settings of a shard. Raises ConfigError if its port does not exist."""
    config = work.config
    if config.output.max_disk is not None:
        config = config.replace(max_disk=max(int(config.output.max_disk) // shards, 1))
    if config.live.metrics is not None:
        host, _colon, port = config.live.metrics.rpartition(":")
        if port != "0":  # the system chooses a port
            config = config.replace(metrics=f"{host}:{int(port) + work.shard}")
    return config


def _say_status(pipe: int, status: "Status") -> None:
    _say(pipe, {"status": packed_status(status)})


def _described(error: BaseException) -> dict[str, Any]:
    """Returns an error as plain values. An error that is no ZanonError is named by its type only,
    because its text could contain data."""
    known = error if isinstance(error, ZanonError) else None
    return {
        "error": type(error).__name__,
        "errno": getattr(error, "errno", None),
        "text": f"internal error: {type(error).__name__}" if known is None else str(error),
    }


def _say(pipe: int, what: dict[str, Any]) -> None:
    """Sends a line to the process that started this one, if that still listens."""
    line = json.dumps(what).encode() + b"\n"
    with suppress(BrokenPipeError):
        while line:
            line = line[os.write(pipe, line) :]
