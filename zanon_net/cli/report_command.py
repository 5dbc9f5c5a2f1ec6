# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net report`: what a run released and suppressed, for people."""

from pathlib import Path

import click

from zanon_net._text import terminal_width
from zanon_net.cli.options import GroupedCommand
from zanon_net.output.new_file import refuse_existing, write_files

EPILOG = """\b
Exit codes: 0 done, 1 the folder is not of a run or is damaged, 2 wrong option.

\b
Examples:
  zanon-net report logs
  zanon-net report logs --html report.html
  zanon-net report logs --html report.html --popularity popularity.json
"""


@click.command("report", cls=GroupedCommand, epilog=EPILOG)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write one page into FILE, which must not exist. The page loads nothing, and it has no"
    " script.",
)
@click.option(
    "--popularity",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Show the users per name, too, from the file of `run --popularity`.",
)
def report_command(folder: Path, html: Path | None, popularity: Path | None) -> int:
    """Show what a run released and suppressed, as tables or as a page.

    DIR is a folder that `run` has written. The report has counts and released names only: no
    address, no pseudonym and no suppressed name. Without --html it is printed as tables.
    """
    from zanon_net.report.page import page
    from zanon_net.report.run_report import report_of, text_of

    if html is not None:
        refuse_existing(html)
    contents = report_of(folder, popularity)
    if html is None:
        click.echo(text_of(contents, terminal_width()), nl=False)
    else:
        write_files({html: page(contents)})
    return 0
