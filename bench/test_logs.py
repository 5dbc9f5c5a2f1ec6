# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of a log of DNS through `filter --preset`, next to splitting the same rows in Python.

Names and users are drawn by Zipf's law from 100,000 each; z = 20 within an hour. Python splits each
row at its tabs and joins it again: the least that a program in Python does.
"""

import pytest
from measuring import Measure, Size, peer
from test_filter import PORTION, ROWS_PER_S, START_S, Z, draw

from zanon_net._core import RowFilter
from zanon_net.config.filter_settings import FilterConfig

ROWS = 200_000
FIELDS = [
    "ts",
    "uid",
    "id.orig_h",
    "id.orig_p",
    "id.resp_h",
    "id.resp_p",
    "proto",
    "trans_id",
    "rtt",
    "query",
    "qclass",
    "qclass_name",
    "qtype",
    "qtype_name",
    "rcode",
    "rcode_name",
    "AA",
    "TC",
    "RD",
    "RA",
    "Z",
    "answers",
    "TTLs",
    "rejected",
]


def log_of(rows: int) -> bytes:
    """Returns a log of DNS as Zeek writes it."""
    lines = ["#separator \\x09", "#path\tdns", "\t".join(("#fields", *FIELDS))]
    for i, (user, name) in enumerate(zip(draw(rows, 1), draw(rows, 2), strict=True)):
        t = f"{START_S + i // ROWS_PER_S}.{i % ROWS_PER_S:06}"
        client = f"10.{user >> 16}.{user >> 8 & 255}.{user & 255}"
        lines.append(
            f"{t}\tCHhAvVGS1DHF{i}\t{client}\t50000\t198.51.100.{user % 8}\t53\tudp\t{i % 65536}"
            f"\t0.01{i % 10000}\thost{name}.example\t1\tC_INTERNET\t1\tA\t0\tNOERROR\tF\tF\tT\tT\t0"
            f"\t203.0.113.{name % 200},203.0.113.{name % 100}\t300.000000,300.000000\tF"
        )
    return ("\n".join(lines) + "\n").encode()


def ours(row_filter: RowFilter, body: bytes) -> int:
    """Filters the rows in portions, as the command reads them; returns the rows written."""
    for at in range(0, len(body), PORTION):
        row_filter.feed(body[at : at + PORTION])
        row_filter.take()
    row_filter.end()
    return row_filter.stats["written"]


def python(body: bytes) -> int:
    """Splits and joins each row."""
    return sum(len("\t".join(line.split("\t"))) > 0 for line in body.decode().splitlines())


@pytest.mark.parametrize("who", ["filter", peer("Python")])
def test_log_of_dns(who: str, size: Size, measure: Measure) -> None:
    rows = size.of(ROWS)
    body = log_of(rows)
    group = "filter: rows of a log of DNS"
    if who == "Python":
        measure(group, python, rows, prepare=lambda: (body,))
        return
    settings = FilterConfig(preset="zeek-dns", z=Z).row_filter_arguments()
    found = measure(group, ours, rows, prepare=lambda: (RowFilter(**settings), body))
    assert 0 < found < rows
