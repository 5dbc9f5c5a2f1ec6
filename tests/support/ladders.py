# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs `filter --levels` on rows of bytes, in this process."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oracle.hierarchy import Tree

from support.hierarchies import as_file
from zanon_net._core import RowFilter
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.rows.ladder import Ladder


def write_hierarchies(folder: Path, lines: Sequence[Sequence[Sequence[str]]]) -> dict[str, str]:
    """The files of the columns a0, a1, ..., for `hierarchy`."""
    files = {}
    for i, rows in enumerate(lines):
        path = folder / f"a{i}.csv"
        path.write_bytes(as_file(rows, quoted=True))
        files[f"a{i}"] = str(path)
    return files


def ladder_of(files: dict[str, str], **options: Any) -> tuple[FilterConfig, Ladder]:
    """The settings and the ladder; times are seconds."""
    config = FilterConfig(
        **{"time_unit": "s", "levels": "chain", "attribute": ",".join(files), "hierarchy": files}
        | options
    )
    ladder = Ladder.of(config)
    assert ladder is not None
    return config, ladder


def sift_ladder(
    data: bytes, config: FilterConfig, ladder: Ladder, piece: int = 1 << 30
) -> tuple[bytes, RowFilter]:
    """The output for one source, fed in pieces, and the row filter for its counters."""
    row_filter = RowFilter(ladder=ladder.for_core(), **config.row_filter_arguments())
    for at in range(0, len(data), piece):
        row_filter.feed(data[at : at + piece])
    row_filter.end()
    return row_filter.take(), row_filter


def trees_of(lines: Sequence[Sequence[Sequence[str]]]) -> list[Tree]:
    return [Tree(rows) for rows in lines]
