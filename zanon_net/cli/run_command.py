# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net run`: captures or live traffic into anonymized flow logs."""

from contextlib import closing
from typing import Any

import click

from zanon_net.cli.common import COMMON
from zanon_net.cli.configure import configure, naming_origins
from zanon_net.cli.messages import finish_run, say_memory, set_verbosity
from zanon_net.cli.options import RUN_EPILOG, GroupedCommand, run_options
from zanon_net.cli.terminal import progress_bar, status_printer
from zanon_net.pipeline.runner import run
from zanon_net.system.service import ServiceManager
from zanon_net.system.signals import Interruption


@click.command(
    "run", cls=GroupedCommand, common=COMMON["run"], params=run_options(), epilog=RUN_EPILOG
)
def run_command(
    source: tuple[str, ...],
    out: str | None,
    config_file: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    **options: Any,
) -> int:
    """Turn captures or live traffic into anonymized flow logs.

    SOURCE is a pcap, pcapng or snoop file, also compressed (.gz .zst .xz .lzma .lz4 .bz2), a folder
    of them, or - for standard input. Several are read as one stream, in the order of their
    first packets' times. Or it is one or more network interfaces, read until SIGINT or SIGTERM.
    """
    set_verbosity(quiet=quiet, verbose=verbose)
    config = configure(config_file, options)
    has_status = config.live.status is not None
    has_shards = config.limits.shards > 1  # no thread may move a bar when they are started
    with (
        Interruption(rotates=True) as interruption,
        progress_bar(quiet or has_status or has_shards) as progress,
        status_printer(has_status, config.live.status_format) as show_status,
        closing(ServiceManager()) as service,
        naming_origins(config_file, options),
    ):
        report = run(
            source,
            config,
            out=out,
            progress=progress,
            on_status=show_status,
            interruption=interruption,
            started=say_memory if verbose else None,
            service=service,
        )
    return finish_run(
        report,
        as_json=as_json,
        quiet=quiet,
        fail_on_loss=config.live.fail_on_loss,
        has_stdout=report.out is None,
    )
