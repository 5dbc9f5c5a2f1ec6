# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs `publish` on bytes, in this process; small hierarchies."""

import csv
import io
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from zanon_net._core import RowPublisher
from zanon_net.config.schema import rows_of
from zanon_net.config.setting import core_arguments, read_settings
from zanon_net.microdata.hierarchy import Hierarchy, Round

COMMAND = (sys.executable, "-m", "zanon_net", "publish")
CITY_LINES = [
    ("bern", "west", "*"),
    ("genf", "west", "*"),
    ("graz", "east", "*"),
    ("wien", "east", "*"),
    (None, "east", "*"),
]
CITY = Hierarchy.from_lines(CITY_LINES)
AGE = Round(10, 0, 39).hierarchy(None)
COLUMNS = ("time", "user", "city", "age", "product", "secret")


def settings_of(**options: Any) -> dict[str, Any]:
    """The settings of `publish`; two quasi-identifiers and times in seconds unless stated."""
    usual = {
        "user": "user",
        "quasi": "city,age",
        "hierarchy": ["city=unread"],
        "round": ["age=10"],
        "clip": ["age=0..39"],
        "sensitive": "product",
        "k": 2,
        "time_unit": "s",
    }
    rows = rows_of("publish")
    return read_settings(rows, {row.name: row.default for row in rows} | usual | options)


def open_publisher(**options: Any) -> RowPublisher:
    """A publisher with the settings of `publish`."""
    arguments = core_arguments(rows_of("publish"), settings_of(**options))
    return RowPublisher([CITY.taxonomy, AGE.taxonomy], **arguments)


def publish(data: bytes | Iterable[bytes], **options: Any) -> tuple[bytes, RowPublisher]:
    """The output for one source, fed at once or in parts, and the publisher for its counters."""
    publisher = open_publisher(**options)
    for piece in [data] if isinstance(data, bytes) else data:
        publisher.feed(piece)
    publisher.end()
    publisher.finish()
    return publisher.take(), publisher


def pieces(data: bytes, size: int) -> Iterable[bytes]:
    """The data in pieces of so many bytes."""
    return (data[i : i + size] for i in range(0, len(data), size))


def csv_bytes(rows: Iterable[Sequence[object]], columns: Sequence[str] = COLUMNS) -> bytes:
    """Rows as CSV; None is an empty field."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([columns, *(["" if v is None else v for v in row] for row in rows)])
    return text.getvalue().encode()


def jsonl_bytes(rows: Iterable[Sequence[object]], columns: Sequence[str] = COLUMNS) -> bytes:
    """Rows as JSON Lines."""
    return b"".join(
        json.dumps(dict(zip(columns, row, strict=True))).encode() + b"\n" for row in rows
    )


def write_city(path: Path) -> Path:
    """The file of the cities' hierarchy."""
    path.write_bytes(CITY.to_bytes())
    return path
