# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net inspect`: the content of a capture, in counts."""

from typing import Any

import click

from zanon_net._text import terminal_width
from zanon_net.cli.configure import configure
from zanon_net.cli.messages import EXIT_OPERATIONAL, warn
from zanon_net.cli.options import GroupedOption, json_option, setting_options
from zanon_net.cli.terminal import progress_bar
from zanon_net.pipeline.inspection import inspect
from zanon_net.pipeline.manifest import manifest_bytes
from zanon_net.system.signals import Interruption


def _options() -> list[click.Parameter]:
    json = json_option("JSON instead of a table.")
    each = GroupedOption(
        ["-v", "--verbose"], is_flag=True, help="Of several sources also show each, last."
    )
    sources = click.Argument(["source"], nargs=-1, required=True)
    return [sources, json, each, *setting_options("inspect")]


@click.command("inspect", params=_options())
def inspect_command(source: tuple[str, ...], as_json: bool, verbose: bool, **options: Any) -> int:
    """Show what captures hold, in counts.

    SOURCE is what `run` reads: a pcap, pcapng or snoop file, also compressed, a folder of them, or
    - for standard input. Several are counted together. No name and no address is printed.
    """
    config = configure(None, options)
    with Interruption() as interruption, progress_bar(quiet=False) as progress:
        inspection = inspect(source, config, progress=progress, interruption=interruption)
    if as_json:
        click.echo(manifest_bytes(inspection.to_dict()).decode("ascii"), nl=False)
    else:
        click.echo(inspection.table(terminal_width(), each=verbose), nl=False)
    for facts in inspection.facts:
        if facts.warning is not None:
            warn(f"{facts.name}: {facts.warning}")
    return EXIT_OPERATIONAL if inspection.interrupted else 0
