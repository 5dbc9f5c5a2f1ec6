# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net packets`: captures or live traffic into one capture that may be shared."""

from contextlib import closing
from typing import Any

import click

from zanon_net.cli.common import COMMON
from zanon_net.cli.configure import configure, naming_origins
from zanon_net.cli.messages import finish_run, say, say_memory, set_verbosity
from zanon_net.cli.options import (
    INPUT_AND_OUTPUT,
    GroupedCommand,
    GroupedOption,
    json_option,
    quiet_option,
    setting_options,
    with_config_file,
)
from zanon_net.cli.terminal import progress_bar, status_printer
from zanon_net.config.formats import PACKET_FORMATS
from zanon_net.pipeline.packet_runner import ON_STDOUT, packets
from zanon_net.system.service import ServiceManager
from zanon_net.system.signals import Interruption
from zanon_net.system.streams import STDIN

EPILOG = """\b
DURATION is a number and a unit: 500ms, 90s, 10m, 1h, 1d. SIZE is bytes: 500M, 20G.
An option overrides the same setting of --config.
Exit codes: 0 done, 1 could not be done, 2 wrong option or setting.

\b
Examples:
  zanon-net packets capture.pcap shared.pcapng --internal 10.0.0.0/8
  zanon-net packets monday/ tuesday.pcap.zst shared.pcap.zst --payload cut
  zanon-net packets capture.pcap shared.pcapng --dry-run
  sudo zanon-net packets eth0 - --internal 10.0.0.0/8 | zeek -r -
  sudo zanon-net packets eth0 --to eth1 --internal 10.0.0.0/8 --drop-to nobody
"""


def packets_options() -> list[click.Parameter]:
    """SOURCE, OUT and every option, in the order of the help."""
    form = GroupedOption(
        ["--format"],
        group=INPUT_AND_OUTPUT,
        type=click.Choice(PACKET_FORMATS),
        help=f"The format of standard output; a file's name tells its own. [default: {ON_STDOUT}]",
    )
    to = GroupedOption(
        ["--to"],
        group=INPUT_AND_OUTPUT,
        metavar="IFACE",
        help="Send the packets through this interface, where a monitor listens; there is no OUT.",
    )
    dry_run = GroupedOption(
        ["--dry-run"],
        group=INPUT_AND_OUTPUT,
        is_flag=True,
        help="Do everything but write: what becomes of each packet is only counted.",
    )
    settings = setting_options("packets")
    return [
        click.Argument(["paths"], nargs=-1, required=True, metavar="SOURCE... [OUT]"),
        *with_config_file(settings, [to, form, dry_run]),
        json_option("Print the manifest, not the summary: on stdout, or on stderr where OUT is -."),
        quiet_option("No summary and no progress bar."),
        GroupedOption(["-v", "--verbose"], is_flag=True, help="Also say what is being done."),
    ]


@click.command(
    "packets", cls=GroupedCommand, common=COMMON["packets"], params=packets_options(), epilog=EPILOG
)
def packets_command(
    paths: tuple[str, ...],
    config_file: str | None,
    to: str | None,
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    **options: Any,
) -> int:
    """Turn captures or live traffic into a capture that may be shared.

    Packets are built anew: no packet has a name that fewer than z users share, addresses are
    pseudonyms, and payload is zeros. SOURCE is as for `zanon-net run`. OUT is a new file that ends
    in .pcap or .pcapng, also with .gz or .zst after that, or - for standard output. The manifest
    OUT.manifest.json appears next to the file. With --to there is no OUT.
    """
    set_verbosity(quiet=quiet, verbose=verbose)
    sources, out = (paths, None) if to is not None else (paths[:-1], paths[-1])
    if not sources:
        raise click.UsageError("give a source, and behind it the file to write, or -")
    form = options.pop("format")
    config = configure(config_file, options)
    has_status = config.live.status is not None
    with (
        Interruption(rotates=True) as interruption,
        progress_bar(quiet or has_status) as progress,
        status_printer(has_status, config.live.status_format) as show_status,
        closing(ServiceManager()) as service,
        naming_origins(config_file, {**options, "format": form}),
    ):
        report = packets(
            sources,
            out,
            config,
            to=to,
            format=form,
            dry_run=dry_run,
            progress=progress,
            on_status=show_status,
            interruption=interruption,
            started=say_memory if verbose else None,
            service=service,
        )
    code = finish_run(
        report,
        as_json=as_json,
        quiet=quiet,
        fail_on_loss=config.live.fail_on_loss,
        has_stdout=out == STDIN and not dry_run,
    )
    if dry_run and not quiet:
        say("dry run: nothing was written")
    return code
