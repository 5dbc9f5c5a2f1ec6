# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net run`: captures or live traffic into anonymized flow logs."""

from contextlib import closing
from typing import Any

import click

from zanon_net.cli.configure import configure, naming_origins
from zanon_net.cli.messages import (
    EXIT_OPERATIONAL,
    print_manifest,
    print_table,
    say,
    set_verbosity,
    warn,
)
from zanon_net.cli.options import RUN_EPILOG, GroupedCommand, run_options
from zanon_net.cli.terminal import progress_bar, status_printer
from zanon_net.pipeline.report import Report
from zanon_net.pipeline.runner import run
from zanon_net.system.service import ServiceManager
from zanon_net.system.signals import Interruption


@click.command("run", cls=GroupedCommand, params=run_options(), epilog=RUN_EPILOG)
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
    with (
        Interruption(rotates=True) as interruption,
        progress_bar(quiet or has_status) as progress,
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


def finish_run(
    report: Report, *, as_json: bool, quiet: bool, fail_on_loss: float | None, has_stdout: bool
) -> int:
    """Prints what a run came to; returns the exit code.

    fail_on_loss: the percentage of lost packets beyond which the code is that of a failure.
    has_stdout: standard output got the data, so that a manifest goes to standard error.
    """
    for warning in report.warnings if report.failure is None else ():
        warn(f"{warning}; what comes before that is in the output")
    if report.loss is not None:
        warn(report.loss.text())
    for doubt in report.doubts:
        warn(doubt)
    if report.sent is not None and (unsent := report.sent.warning()) is not None:
        warn(unsent)
    if as_json:
        print_manifest(report.manifest, report.speed(), err=has_stdout)
    elif not quiet:
        print_table(report.summary)
    if report.failure is not None:
        say(f"{report.failure}; what comes before that is in the output")
        return EXIT_OPERATIONAL
    if fail_on_loss is not None and report.loss is not None and report.loss.percent > fail_on_loss:
        say(f"more than {fail_on_loss:g} % of the packets were lost; the rest is whole")
        return EXIT_OPERATIONAL
    if report.interrupted:
        say("interrupted: what had been read is complete")
        return EXIT_OPERATIONAL
    return 0


def say_memory(flows: int, memory_bytes: int) -> None:
    """Says what the flow table may take; see Started."""
    say(f"the flow table holds up to {flows:,} flows, in up to {memory_bytes:,} bytes of memory")
