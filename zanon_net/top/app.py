# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The screen of `zanon-net top`: reads the run's metrics every two seconds and shows them."""

import asyncio
import time
from collections.abc import Iterable
from typing import ClassVar

from rich.table import Table
from rich.text import Text

from zanon_net._text import short
from zanon_net.errors import MissingExtraError, ZanonError
from zanon_net.top.figures import Row, panels
from zanon_net.top.released_names import ReleasedNames
from zanon_net.top.scrape import Endpoint, Scrape

try:
    from textual.app import App, ComposeResult
    from textual.binding import BindingType
    from textual.containers import ItemGrid
    from textual.widgets import Footer, Header, Static
except ImportError:
    raise MissingExtraError(
        "top needs prometheus-client and Textual; install them with: pip install 'zanon-net[top]'"
    ) from None

PERIOD_S = 2.0
NAMES_SHOWN = 15
STALE_S = 30.0  # a run makes its metrics every 10 s


class Panel(Static):
    """Rows of figures in a frame."""

    def show(self, title: str, rows: Iterable[Row]) -> None:
        """Replaces title and rows."""
        grid = Table.grid(padding=(0, 2), expand=True)
        grid.add_column(overflow="ellipsis", no_wrap=True)
        grid.add_column(justify="right", no_wrap=True)
        for name, value in rows:
            grid.add_row(Text(name), Text(value))
        self.border_title = title
        self.update(grid)


class Top(App[None]):
    """The application.

    endpoint: the place of the run's metrics. first: the present metrics. names: the released names
    of the folder that is to be read, or None.
    """

    BINDINGS: ClassVar[list[BindingType]] = [("q", "quit", "Quit")]
    CSS = """
    ItemGrid { grid-gutter: 0 1; height: auto; }
    Panel { border: round $primary; padding: 0 1; height: auto; }
    """
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, endpoint: Endpoint, first: Scrape, names: ReleasedNames | None = None):
        super().__init__()
        self.title = "zanon-net top"
        self._endpoint = endpoint
        self._first = first
        self._names = names
        self._answered = time.monotonic()

    def compose(self) -> ComposeResult:
        """See App."""
        yield Header()
        with ItemGrid(min_column_width=38):
            for title in panels(self._first):
                yield Panel(id=_id_of(title))
            if self._names is not None:
                yield Panel(id="names")
        yield Footer()

    def on_mount(self) -> None:
        """See App."""
        self._show(self._first)
        self.run_worker(self._watch())

    async def _watch(self) -> None:
        while True:
            try:
                if self._names is not None:
                    await asyncio.to_thread(self._names.update)
                    self._show_names(self._names)
                self._show(await asyncio.to_thread(self._endpoint.scrape))
            except ZanonError as error:
                silent_s = time.monotonic() - self._answered
                self.sub_title = f"{error} (for {silent_s:.0f} s)"
            await asyncio.sleep(PERIOD_S)

    def _show(self, scrape: Scrape) -> None:
        self._answered = time.monotonic()
        age_s = scrape.number("snapshot_age_seconds") or 0.0
        waits = f": the run has reported nothing new for {age_s:.0f} s" if age_s > STALE_S else ""
        self.sub_title = f"{self._endpoint.address}{waits}"
        for title, rows in panels(scrape).items():
            self.query_one(f"#{_id_of(title)}", Panel).show(title, rows)

    def _show_names(self, names: ReleasedNames) -> None:
        rows = [(name, f"{count:,}") for name, count in names.counts.most_common(NAMES_SHOWN)]
        if names.unreadable:
            rows.append(("lines that are not observations", f"{names.unreadable:,}"))
        title = f"Released names: {short(names.counts.total())} observations"
        self.query_one("#names", Panel).show(title, rows)


def _id_of(title: str) -> str:
    return title.lower().replace(" ", "-")
