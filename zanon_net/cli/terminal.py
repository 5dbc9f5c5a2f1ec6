# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Output that moves on a terminal: a progress bar, and the status of a live run."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import click

from zanon_net.cli.messages import printing_above, say, write_if_heard

if TYPE_CHECKING:
    from rich.console import Console

    from zanon_net.pipeline.reader import Progress
    from zanon_net.pipeline.status import Status


def _terminal() -> "Console | None":
    """A console on standard error; None if that is no terminal."""
    if not os.isatty(2):  # an environment variable can make rich take a pipe for one
        return None
    from rich.console import Console

    console = Console(stderr=True)
    return console if console.is_terminal else None


def _messages_above(console: "Console") -> AbstractContextManager[None]:
    """Inside, messages do not run into the bar or the table that the console shows."""
    from rich.text import Text

    return printing_above(lambda line: console.print(Text(line), soft_wrap=True))


@contextmanager
def progress_bar(quiet: bool) -> "Iterator[Progress | None]":
    """A progress bar on stderr if that is a terminal; else None."""
    console = None if quiet else _terminal()
    if console is None:
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rate]:,.0f} packets/s"),
        TimeRemainingColumn(),
    )
    bar = Bar(*columns, console=console, transient=True)
    task = bar.add_task("", total=None, rate=0.0)

    def show(bytes_read: int, bytes_total: int, packets: int) -> None:
        rate = packets / max(bar.tasks[0].elapsed or 0.0, 1e-9)
        bar.update(task, completed=bytes_read, total=bytes_total or None, rate=rate)

    write_if_heard(bar.start)
    try:
        with _messages_above(console):
            yield show
    finally:
        write_if_heard(bar.stop)


@contextmanager
def status_printer(wanted: bool, form: str) -> "Iterator[Callable[[Status], None]]":
    """Yields the printer of a status: as JSON in a line; as text on a terminal a table that
    changes, elsewhere a line."""
    if form == "json":
        yield lambda status: write_if_heard(lambda: click.echo(status.to_json(), err=True))
        return
    console = _terminal() if wanted else None
    if console is None:
        yield lambda status: say(f"status: {status.line()}")
        return
    from rich.live import Live
    from rich.table import Table

    def table(status: "Status") -> Table:
        grid = Table.grid(padding=(0, 2))
        for row in status.rows():
            grid.add_row(*row)
        return grid

    live = Live(console=console, auto_refresh=False, transient=True)
    write_if_heard(live.start)
    try:
        with _messages_above(console):
            yield lambda status: write_if_heard(lambda: live.update(table(status), refresh=True))
    finally:
        write_if_heard(live.stop)
