# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Chooses a sink: a folder, a folder that waits if the disk is full, or standard output."""

import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from zanon_net.config.formats import FORMATS, ON_STDOUT, PACKET_FORMATS
from zanon_net.errors import ConfigError
from zanon_net.output.folder import FolderSink, default_folder
from zanon_net.output.sink import Plan, Sink


def open_sink(out: str | os.PathLike[str] | None, formats: Iterable[str], plan: Plan) -> Sink:
    """Returns the sink for `out`: a folder, "-" for standard output, None for the default folder.

    Raises ConfigError, or OutputError if the system refuses.
    """
    chosen = tuple(formats)
    if out != "-":
        kind = FolderSink
        if plan.disk.waits and plan.disk.is_live:
            from zanon_net.output.waiting_folder import WaitingFolderSink

            kind = WaitingFolderSink
        return kind(default_folder(datetime.now(UTC)) if out is None else Path(out), plan)
    for name, given in (
        ("keep", plan.disk.keep_ns),
        ("max_disk", plan.disk.max_bytes),
        ("on_full", plan.disk.waits),
    ):
        if given:
            raise ConfigError(f"{name}: is for the files of a folder; leave it out with --out -")
    names = ", ".join(ON_STDOUT)
    for name, form in FORMATS.items():
        if name in chosen and form.not_on_stdout:
            raise ConfigError(
                f"{form.not_on_stdout} and need a folder; --out - takes one of {names}"
            )
    if len(chosen) != 1:
        raise ConfigError(f"--out - takes one format, one of {names}; or choose a folder")
    if chosen[0] in PACKET_FORMATS and sys.stdout is not None and sys.stdout.isatty():
        raise ConfigError("packets are no text for a terminal; write them to a file, or to a pipe")
    from zanon_net.output.stdout import StdoutSink

    return StdoutSink(plan)
