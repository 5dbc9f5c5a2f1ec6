# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs captures or interfaces to one file of anonymized packets, or to an interface."""

import errno
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from zanon_net._record import dataclass
from zanon_net.config.formats import PACKET_FORMATS
from zanon_net.config.settings import Config
from zanon_net.errors import CaptureError, ConfigError
from zanon_net.output.choice import open_sink
from zanon_net.output.files import SUFFIXES
from zanon_net.output.folder import check_out
from zanon_net.output.one_file import (
    NoSink,
    OneFileSink,
    manifest_path,
    refuse_taken,
    view_path,
)
from zanon_net.output.sink import Plan, Sink
from zanon_net.output.wire import InterfaceSink
from zanon_net.pipeline.interfaces import interface_named, interfaces_of, refuse_output
from zanon_net.pipeline.reader import Progress, Started
from zanon_net.pipeline.report import Report
from zanon_net.pipeline.runner import SinkFor, run_into
from zanon_net.pipeline.status import Status
from zanon_net.system.file_errors import explained
from zanon_net.system.log import log
from zanon_net.system.service import ServiceManager
from zanon_net.system.signals import Interruption
from zanon_net.system.streams import STDIN, Source, check_sources

if TYPE_CHECKING:
    import pwd
    from typing import Unpack

    from zanon_net.config.keywords import PacketsSettings

ON_STDOUT = "pcapng"
TO_INTERFACE = "pcap"
NAMED = "name it .pcap or .pcapng, also with .gz or .zst after that, or - for standard output"


@dataclass(frozen=True, slots=True)
class PacketFile:
    """The file to write. path: None for standard output. compression: a word of `compress`."""

    path: Path | None
    format: str
    compression: str

    @property
    def ending(self) -> str:
        """The end of the file's name, in lower case."""
        return f".{self.format}{SUFFIXES[self.compression]}"

    @classmethod
    def named(cls, out: Source, wanted: str | None) -> "PacketFile":
        """Returns the file of this name. wanted: the format; None: the format that the name ends
        with.

        Raises ConfigError if the name has no ending of a format, or the ending of another format.
        """
        if wanted is not None and wanted not in PACKET_FORMATS:
            raise ConfigError(f"format: must be {' or '.join(PACKET_FORMATS)}")
        if out == "-":
            return cls(None, wanted or ON_STDOUT, "none")
        path = Path(out)
        endings = {
            f".{name}{packed}": (name, compression)
            for name in PACKET_FORMATS
            for compression, packed in SUFFIXES.items()
        }
        known = [found for ending, found in endings.items() if path.name.lower().endswith(ending)]
        if not known:
            is_link = bool(interfaces_of([out]))
            what = "is a network interface, no file" if is_link else "names no packet format"
            raise ConfigError(f"{out or 'an empty name'} {what}; {NAMED}")
        ((name, compression),) = known
        if wanted not in (None, name):
            raise ConfigError(f"format: {path.name} is named {name}; leave the format out")
        return cls(path, name, compression)


def packets(
    source: Source | Iterable[Source],
    out: Source | None = None,
    config: Config | None = None,
    *,
    to: str | None = None,
    format: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
    on_status: Callable[[Status], None] | None = None,
    interruption: Interruption | None = None,
    started: Started | None = None,
    service: ServiceManager | None = None,
    **settings: "Unpack[PacketsSettings]",
) -> Report:
    """Turns captures, or the traffic of network interfaces, into one capture of packets that may be
    shared: new packets, with names and addresses by the rules of `run`.

    source: as `run` takes it.
    out: a new file, which ends in .pcap or .pcapng, also with .gz or .zst after that; or "-" for
        standard output. Next to the file appear its manifest, OUT.manifest.json, and the file of
        each view, such as out.strict.pcapng.
    to: an Ethernet interface, instead of `out`: packets are sent through it as they are ready.
    config: the settings; the defaults if None. Settings of logs have no effect here.
    format: "pcap" or "pcapng", for standard output; None: pcapng.
    dry_run: if true, everything is done and counted, and nothing is written.
    progress, on_status, interruption, started, service: as `run` takes them.
    settings: single settings, which override config, such as z=10 or payload="cut".

    Returns the Report. Raises ConfigError, CaptureError, FormatError, CapacityError or OutputError
    as `run` does; after any error there is no file.
    """
    if (out is None) == (to is None):
        raise ConfigError("name a file to write, or with --to an interface, and not both")
    file = None if out is None else PacketFile.named(out, format)
    config = _without_folder((config or Config()).replace(**settings), file)
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    if file is not None:
        _check(file, sources, config)
    elif to is not None:
        to = interface_named(to) or to
        _check_interface(to, sources, config, format)

    return run_into(
        _sink_opener(file, to, sources, config, dry_run),
        sources,
        config,
        progress=progress,
        on_status=on_status,
        interruption=interruption,
        started=started,
        service=service,
    )


def _without_folder(config: Config, file: PacketFile | None) -> Config:
    """Returns the settings for one file of packets, or for an interface, instead of a folder."""
    return config.replace(
        format=TO_INTERFACE if file is None else file.format,
        compress="none" if file is None else file.compression,
        split=None,
        split_size=None,
        keep=None,
        max_disk=None,
        on_full="stop",
    )


def _sink_opener(
    file: PacketFile | None,
    to: str | None,
    sources: Sequence[Source],
    config: Config,
    dry_run: bool,
) -> SinkFor:
    """Returns the opener of the sink: an interface is opened while the process may, a file as
    `user`."""

    def sink_for(user: "pwd.struct_passwd | None", stack: ExitStack) -> Callable[[Plan], Sink]:
        sink = None if to is None else _open_interface(to, sources, stack)
        if user is not None:
            from zanon_net.pipeline.privileges import become

            become(user, keeps_capture=config.live.keeps_capture)
        if dry_run:
            return NoSink
        if sink is not None:
            return lambda _plan: sink
        assert file is not None
        if file.path is None:
            return partial(open_sink, "-", config.output.format)
        return partial(OneFileSink, file.path)

    return sink_for


def _check_interface(to: str, sources: Sequence[Source], config: Config, form: str | None) -> None:
    """Raises ConfigError if packets must not leave through this interface."""
    check_sources(sources)
    if form is not None:
        raise ConfigError("format: is for files; leave it out with --to")
    if config.addresses.internal is None:
        raise ConfigError(
            "--to: say with --internal which addresses are users, such as --internal 10.0.0.0/8"
            " (what leaves through an interface cannot be taken back)"
        )
    if config.views:
        raise ConfigError(
            "view: a view needs a file of its own, next to OUT; leave it out with --to"
        )
    if config.packets.payload == "cut":
        raise ConfigError(
            "payload: cut packets are no packets for an interface; use zero with --to"
        )
    refuse_output(to, sources)
    check_out(None, sources, config.output.popularity)


def _open_interface(to: str, sources: Sequence[Source], stack: ExitStack) -> InterfaceSink:
    """Opens the interface, while the process may; `stack` closes it. Raises ConfigError or
    CaptureError."""
    try:
        sink = InterfaceSink(to, waits=not interfaces_of(sources))
    except CaptureError as error:
        if error.errno == errno.EPERM:
            from zanon_net.pipeline.privileges import explain_missing

            raise explain_missing(error) from None
        raise
    stack.callback(sink.discard)
    if sink.warning is not None:
        log.warning("warning: %s", sink.warning)
    return sink


def _check(file: PacketFile, sources: Sequence[Source], config: Config) -> None:
    """Raises ConfigError if a file is taken, or would be read, before any source is opened."""
    check_sources(sources)
    views = config.views
    popularity = config.output.popularity
    check_out("-" if file.path is None else None, sources, popularity)
    if file.path is None:
        if views:
            raise ConfigError("view: a view needs a file of its own, next to OUT; name a file")
        return
    others = [view_path(file.path, file.ending, view.name) for view in views]
    for path in (file.path, *others):
        for source in sources:
            if source != STDIN:
                _refuse_source(path, Path(source))
    refuse_taken(file.path, others)
    if popularity is not None:
        with explained("write", popularity):
            names = (file.path, *others, manifest_path(file.path))
            taken = [os.path.realpath(path) for path in names]
            if os.path.realpath(popularity) in taken:
                raise ConfigError("popularity: is also where the packets go; choose another file")


def _refuse_source(path: Path, source: Path) -> None:
    """Raises ConfigError if `path` is the source, or would lie in it."""
    with explained("write", path):  # the working folder may have been removed
        real, read = Path(os.path.realpath(path)), Path(os.path.realpath(source))
        if real == read or (path.exists() and source.exists() and path.samefile(source)):
            raise ConfigError(f"{path} is also a source; choose another file to write")
        if source.is_dir() and real.parent == read:
            raise ConfigError(
                f"{path} would lie in {source}, a folder of sources; choose another place"
            )
