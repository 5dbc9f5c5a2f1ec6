# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net inspect`: what a capture holds."""

import click

from zanon_net._text import terminal_width
from zanon_net.cli.configure import configure
from zanon_net.cli.messages import EXIT_OPERATIONAL, warn
from zanon_net.cli.terminal import progress_bar
from zanon_net.pipeline.inspection import inspect
from zanon_net.pipeline.manifest import manifest_bytes
from zanon_net.system.signals import Interruption


@click.command("inspect")
@click.argument("source")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
@click.option("--max-bytes", metavar="BYTES", help="Most bytes a compressed source may unpack to.")
def inspect_command(source: str, as_json: bool, max_bytes: str | None) -> int:
    """Show what a capture holds, in counts.

    SOURCE is what `run` reads: a pcap, pcapng or snoop file, also compressed, a folder of them, or
    - for standard input. No name and no address is printed.
    """
    config = configure(None, {"max_bytes": max_bytes})
    with Interruption() as interruption, progress_bar(quiet=False) as progress:
        inspection = inspect(source, config, progress=progress, interruption=interruption)
    if as_json:
        click.echo(manifest_bytes(inspection.to_dict()).decode("ascii"), nl=False)
    else:
        click.echo(inspection.table(terminal_width()), nl=False)
    for facts in inspection.facts:
        if facts.warning is not None:
            warn(f"{facts.name}: {facts.warning}")
    return EXIT_OPERATIONAL if inspection.interrupted else 0
