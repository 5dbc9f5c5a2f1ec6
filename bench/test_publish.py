# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Buffered release: the windows alone, CSV to CSV, Arrow to Arrow; next to filter and to Python.

k = 10, 50 rows a window, l = 2, three quasi-identifiers. `filter` gets the same rows. The oracle of
the tests in plain Python gets the same windows.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from measuring import Measure, Size, peer

from zanon_net import microdata as md
from zanon_net._core import CodedPublisher, RowFilter, RowPublisher
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.config.schema import rows_of
from zanon_net.config.setting import core_arguments, read_settings

ROWS = 100_000
PYTHON_SHARE = 50
K, WINDOW, L = 10, 50, 2
PORTION = 1 << 18
SIZES = (20, 16, 41)
NAMES = ("city", "job", "land")
VALUES = 9
HEADER = b"time,user,city,job,land,item,other\n"
START_S = 1_700_000_000


def hierarchy(size: int) -> md.Hierarchy:
    """Returns leaves in groups of four, and these in groups of four."""
    lines = [(f"v{i}", f"g{i // 4}", f"h{i // 16}", "*") for i in range(size)]
    return md.Hierarchy.from_lines(lines)


HIERARCHIES = [hierarchy(size) for size in SIZES]


@cache
def codes(rows: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Returns skewed quasi-identifiers, sensitive values and users."""
    chance = np.random.default_rng(1)
    quasi = [np.minimum(chance.zipf(1.6, rows) - 1, size - 1).astype(np.int32) for size in SIZES]
    sensitive = np.minimum(chance.zipf(1.5, rows), VALUES).astype(np.uint64)
    return quasi, sensitive, chance.integers(0, 50_000, rows).astype(np.uint64)


def csv_of(rows: int) -> bytes:
    """Returns the rows as CSV."""
    quasi, sensitive, users = codes(rows)
    lines = zip(*(column.tolist() for column in (users, *quasi, sensitive)), strict=True)
    return (
        HEADER
        + "".join(
            f"{START_S + i // 50},u{user},v{a},v{b},v{c},item{value},x\n"
            for i, (user, a, b, c, value) in enumerate(lines)
        ).encode()
    )


def row_publisher() -> RowPublisher:
    """Returns a publisher of rows, as the command opens it."""
    rows = rows_of("publish")
    options = {
        "user": "user",
        "quasi": NAMES,
        "sensitive": "item",
        "k": K,
        "l": L,
        "rows": WINDOW,
        "hierarchy": [f"{name}=unread" for name in NAMES],
        "time_unit": "s",
    }
    settings = read_settings(rows, {row.name: row.default for row in rows} | options)
    return RowPublisher([h.taxonomy for h in HIERARCHIES], **core_arguments(rows, settings))


def row_filter() -> RowFilter:
    """Returns a filter of the same rows."""
    setting = FilterConfig(time_unit="s", z=5, attribute="item", no_user=True)
    return RowFilter(**setting.row_filter_arguments())


def feed(reader: Any, body: bytes) -> None:
    """Sends rows through a reader; its output is dropped."""
    for at in range(0, len(body), PORTION):
        reader.feed(body[at : at + PORTION])
        reader.take()
    reader.end()
    reader.finish()
    reader.take()


def coded_publisher() -> CodedPublisher:
    """Returns the windows alone."""
    return CodedPublisher(
        [h.taxonomy for h in HIERARCHIES], k=K, l=L, kind=0, c=1.0, max_share=1.0,
        sensitive_count=1, with_user=True, rows=WINDOW, delay_ns=0, sliding=False, neighbours=3,
        growth=3, lambda_=0.7, adapt_l=0, adapt_way=0, once_ns=0,
    )  # fmt: skip


def feed_codes(publisher: CodedPublisher, rows: int) -> None:
    """Sends all rows to the windows."""
    quasi, sensitive, users = codes(rows)
    publisher.feed(np.arange(rows, dtype=np.int64), users, quasi, [sensitive], 0)
    publisher.take()


def arrow_publisher() -> md.Publisher:
    """Returns the publisher of Python's interface."""
    quasi = dict(zip(NAMES, HIERARCHIES, strict=True))
    plan = md.Plan(quasi=quasi, sensitive="item", user="user", k=K, l=L)
    return md.Publisher(plan, rows=WINDOW, time_unit="s")


def arrow_table(rows: int) -> Any:
    """Returns the rows as Arrow has them."""
    import pyarrow as pa

    quasi, sensitive, users = codes(rows)
    columns = {"time": START_S + np.arange(rows) // 50, "user": users}
    columns |= {
        name: pa.array([f"v{i}" for i in codes_of])
        for name, codes_of in zip(NAMES, quasi, strict=True)
    }
    return pa.table(columns | {"item": sensitive})


def feed_arrow(publisher: md.Publisher, table: Any) -> None:
    """Sends the table through the publisher."""
    publisher.feed(table)
    publisher.flush()


def oracle(rows: int) -> None:
    """Runs the windows through the oracle of the tests."""
    from oracle.publishing import Came, Stream
    from oracle.suhdsa import Grouper, Rule, Tree

    quasi, sensitive, users = codes(rows)
    trees = [Tree(h.parent.tolist()) for h in HIERARCHIES]
    stream = Stream(Grouper(trees, Rule(K, L)), [h.labels for h in HIERARCHIES], WINDOW)
    for i in range(rows):
        nodes = tuple(int(column[i]) for column in quasi)
        stream.take(Came(i, nodes, (int(sensitive[i]),), int(users[i])))
    stream.end()


Way = tuple[Callable[..., None], Callable[[int], tuple[Any, ...]]]
WAYS: dict[str, Way] = {
    "windows alone": (feed_codes, lambda rows: (coded_publisher(), rows)),
    "CSV to CSV": (feed, lambda rows: (row_publisher(), csv_of(rows))),
    "Arrow to Arrow": (feed_arrow, lambda rows: (arrow_publisher(), arrow_table(rows))),
    "filter": (feed, lambda rows: (row_filter(), csv_of(rows))),
    "Python": (oracle, lambda rows: (rows,)),
}


@pytest.mark.parametrize(
    "who", ["windows alone", "CSV to CSV", "Arrow to Arrow", peer("filter"), peer("Python")]
)
def test_publish(who: str, size: Size, measure: Measure) -> None:
    rows = size.of(ROWS)
    if who == "Python":
        rows = max(rows // PYTHON_SHARE, WINDOW)
    job, prepare = WAYS[who]
    codes(rows)
    measure("publish: rows", job, rows, prepare=lambda: prepare(rows))
