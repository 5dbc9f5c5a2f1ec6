# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Report of a folder of logs, and report of a run in a notebook."""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from zanon_net._text import table
from zanon_net.errors import FormatError, ZanonError
from zanon_net.popularity import Popularity
from zanon_net.report.contents import contents_of
from zanon_net.report.folder import RunFolder, checked
from zanon_net.report.page import fragment
from zanon_net.report.parts import Contents, Section
from zanon_net.report.records import Sums, sums_of

NO_RECORDS = "The run has written no records of flows and no observations."
NO_ARROW = (
    "The records are not counted, because pyarrow is not installed; install it with: pip install"
    " 'zanon-net[parquet]'"
)
UNREADABLE = "The records cannot be read, so they are not counted."


def report_of(path: Path, popularity: Path | None = None) -> Contents:
    """Returns the report of a folder that a run has written.

    popularity: file of users per name. Raises UnopenedError or FormatError for a folder, a manifest
    or a file that cannot be read.
    """
    folder = RunFolder.open(path)
    counts = None if popularity is None else Popularity.load(popularity)
    try:
        return contents_of(folder.manifest, *_sums_of(folder), counts)
    except FormatError as error:
        text = str(error)
        raise FormatError(text if text.startswith(str(path)) else f"{path}: {text}") from None


def _sums_of(folder: RunFolder) -> tuple[Sums | None, str]:
    """Returns the sums over the records, or None and the reason."""
    kind, files = folder.files()
    if not files:
        return None, NO_RECORDS
    if find_spec("pyarrow") is None:
        return None, NO_ARROW
    return sums_of(kind, files), ""


def html_of(manifest: Mapping[str, Any], out: Path | None) -> str:
    """Returns the report of a run as an element of HTML.

    out: the folder of the run; None if the run has no folder, so that only its counters are shown.
    """
    sums, reason = None, NO_RECORDS
    if out is not None:
        try:
            sums, reason = _sums_of(RunFolder(out, checked(manifest, out)))
        except ZanonError:  # such as files that were removed since the run
            reason = UNREADABLE
    return fragment(contents_of(manifest, sums, reason, None))


def text_of(contents: Contents, width: int) -> str:
    """Returns a report as tables for a terminal of `width` columns."""
    tiles = [(title, figure, about) for title, figure, about in contents.tiles]
    notes = "".join(table([("note", note)], width) for note in contents.notes)
    head = f"{contents.period}\n{contents.state}\n\n{table(tiles, width, right=(1,))}{notes}"
    return head + "".join(_section_texts(contents.sections, width))


def _section_texts(sections: Any, width: int) -> Iterator[str]:
    for section in sections:
        yield f"\n{section.title}\n{'-' * len(section.title)}\n"
        yield from (table([(sentence,)], width) for sentence in section.text)
        yield from _rows(section, width)


def _rows(section: Section, width: int) -> Iterator[str]:
    if section.table is None:
        return
    rows = [section.table.columns, *section.table.rows]
    if section.table.is_words:
        yield table(rows[1:], width)
        return
    # The first column may be long, and only the last column is folded.
    numbers = [(*row[1:], row[0]) for row in rows]
    yield table(numbers, width, right=range(len(section.table.columns) - 1))
