# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net audit`: what an attacker can still do with released logs."""

import json
from pathlib import Path
from typing import Any

import click

from zanon_net._text import terminal_width
from zanon_net.cli.configure import chosen, naming_options
from zanon_net.cli.options import GroupedCommand, GroupedOption, quiet_option, setting_options
from zanon_net.config.schema import rows_of
from zanon_net.errors import ConfigError
from zanon_net.output.new_file import refuse_existing, write_files

EPILOG = """\b
DURATION is a number and a unit: 500ms, 90s, 10m, 1h, 1d. SIZE is bytes: 500M, 20G.
Exit codes: 0 passed, 1 not done, 2 wrong option, 3 promise broken, 4 risk too high.

\b
Example:
  zanon-net audit monday tuesday --for public --raw capture.pcap --html audit.html
"""


def _options() -> list[click.Parameter]:
    return [
        click.Argument(["logs"], nargs=-1, required=True),
        *setting_options("audit"),
        GroupedOption(
            ["--json", "json_file"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Write all figures into FILE, which must not exist.",
        ),
        GroupedOption(
            ["--html", "html_file"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Write a page to sign into FILE, which must not exist.",
        ),
        quiet_option("Print nothing; the exit code and --json tell the result."),
    ]


@click.command("audit", cls=GroupedCommand, params=_options(), epilog=EPILOG)
def audit_command(
    logs: tuple[str, ...],
    json_file: Path | None,
    html_file: Path | None,
    quiet: bool,
    **options: Any,
) -> int:
    """Measure what an attacker can still do with released logs.

    LOGS are output folders of `run` or `filter`; several are one release. Nothing that is printed
    has a name, an address or a pseudonym.
    """
    from zanon_net.audit.released import audit

    for file in (json_file, html_file):
        if file is not None:
            refuse_existing(file)
    named = [file for file in (json_file, html_file, options["details"]) if file is not None]
    if len({Path(file).resolve() for file in named}) < len(named):
        raise ConfigError("--json, --html and --details name the same file twice")
    with naming_options(_NAMES):
        report = audit(logs, **chosen(options))
    files = {}
    if json_file is not None:
        files[json_file] = (json.dumps(report.to_dict(), indent=2) + "\n").encode("ascii")
    if html_file is not None:
        from zanon_net.audit.page_html import audit_page

        files[html_file] = audit_page(report)
    write_files(files)
    if not quiet:
        click.echo(report.text(terminal_width()), nl=False)
    return report.exit_code


_NAMES = {row.label: row.options[0] for row in rows_of("audit")}
"""The option of each setting, for errors."""
