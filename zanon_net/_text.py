# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Counts and times as texts, for people and for manifests."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

NS_PER_S = 1_000_000_000


def iso_time(t_ns: int) -> str:
    """`t_ns` (ns since the epoch) in UTC with nine decimals."""
    moment = datetime.fromtimestamp(t_ns // NS_PER_S, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{t_ns % NS_PER_S:09d}Z"


def time_range(range_ns: tuple[int, int] | None) -> dict[str, Any] | None:
    """First and last time (ns since the epoch) as a manifest has them; None where there is none."""
    if range_ns is None:
        return None
    first_ns, last_ns = range_ns
    return {
        "first": iso_time(first_ns),
        "last": iso_time(last_ns),
        "first_ns": first_ns,
        "last_ns": last_ns,
    }


def time_span(range_ns: tuple[int, int]) -> str:
    """First and last time (ns since the epoch) for people, and the seconds between them."""
    first_ns, last_ns = range_ns
    seconds = (last_ns - first_ns) / NS_PER_S
    return f"{iso_time(first_ns)[:19]}Z to {iso_time(last_ns)[:19]}Z, {seconds:,.1f} s"


def printable(text: str) -> str:
    """`text` without a character that could end the line or steer a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)


def share(part: int, whole: int) -> str:
    """`part` of `whole` for people, also in percent where that is something."""
    return f"{part:,} of {whole:,}" + (f" ({part / whole:.1%})" if whole else "")


def print_rows(console: "Console", rows: Iterable[tuple[str, str]]) -> None:
    """Prints (title, text) as a table of two columns; long texts are folded."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for title, text in rows:
        table.add_row(Text(title), Text(printable(text)))
    console.print(table)
