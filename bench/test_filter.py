# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rows through `zanon-net filter` and `zanon_net.filter`, next to the same job in plain Python.

Attributes and users are drawn by Zipf's law from 100,000 each; z = 20 within an hour. The job in
Python uses the csv or json module, an OrderedDict of users for each attribute (Algorithm 1), and a
pseudonym for each user and window by HMAC-SHA256, remembered during the window. It handles neither
bad or late rows, nor attributes that are never exposed again.
"""

import csv
import hmac
import io
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from measuring import Measure, Size, peer

import zanon_net
from zanon_net._core import RowFilter
from zanon_net.config.filter_settings import FilterConfig

ROWS = 200_000
FRAME_ROWS = 1_000_000
PYTHON_SHARE = 5
Z, WINDOW_S = 20, 3600
KINDS = 100_000  # of attributes, and of users
ROWS_PER_S = 100
START_S = 1_700_000_000
PORTION = 1 << 18
NS_PER_S = 10**9
FORMATS = ("csv", "jsonl")

Row = tuple[float, str, str]


def draw(rows: int, seed: int) -> list[int]:
    """Returns `rows` numbers below KINDS by Zipf's law."""
    weights = 1 / np.arange(1, KINDS + 1)
    picked = np.random.default_rng(seed).choice(KINDS, rows, p=weights / weights.sum())
    return [int(number) for number in picked]


def input_of(form: str, rows: int) -> str:
    """Returns the rows as CSV or as JSON Lines."""
    lines = ["time,user,attribute\n"] if form == "csv" else []
    for i, (user, attribute) in enumerate(zip(draw(rows, 1), draw(rows, 2), strict=True)):
        t = f"{START_S + i // ROWS_PER_S}.{i % ROWS_PER_S:02}"
        if form == "csv":
            lines.append(f"{t},user{user},item{attribute}.example\n")
        else:
            names = f'"user": "user{user}", "attribute": "item{attribute}.example"'
            lines.append(f'{{"time": {t}, {names}}}\n')
    return "".join(lines)


def ours(row_filter: RowFilter, body: bytes) -> str:
    """Filters the rows in portions, as the command reads them."""
    found = []
    for at in range(0, len(body), PORTION):
        row_filter.feed(body[at : at + PORTION])
        found.append(row_filter.take())
    row_filter.end()
    found.append(row_filter.take())
    return b"".join(found).decode()


def rows_in(form: str, text: str) -> Iterator[Row]:
    """Yields the time in seconds, the user and the attribute of each row."""
    if form == "csv":
        rows = csv.reader(io.StringIO(text, newline=""))
        t, user, attribute = map(next(rows).index, ("time", "user", "attribute"))
        for row in rows:
            yield float(row[t]), row[user], row[attribute]
    else:
        for line in text.splitlines():
            member = json.loads(line)
            yield float(member["time"]), member["user"], member["attribute"]


def released(rows: Iterable[Row]) -> Iterator[Row]:
    """Yields the rows whose attribute Z users share within the window."""
    seen: dict[str, OrderedDict[str, float]] = {}
    for t, user, attribute in rows:
        users = seen.setdefault(attribute, OrderedDict())
        users[user] = t
        users.move_to_end(user)
        oldest = t - WINDOW_S
        while next(iter(users.values())) < oldest:
            users.popitem(last=False)
        if len(users) >= Z:
            yield t, user, attribute


def pseudonyms(rows: Iterable[Row]) -> Iterator[Row]:
    """Yields the rows with each user's pseudonym of the window."""
    epoch, known = -1.0, dict[str, str]()
    for t, user, attribute in rows:
        if t // WINDOW_S != epoch:
            epoch = t // WINDOW_S
            known.clear()
        alias = known.get(user)
        if alias is None:
            key = int(epoch).to_bytes(32, "big")
            alias = known[user] = hmac.digest(key, user.encode(), "sha256")[:16].hex()
        yield t, alias, attribute


def python(form: str, text: str) -> str:
    """Filters the rows in Python."""
    out = io.StringIO(newline="")
    rows = pseudonyms(released(rows_in(form, text)))
    if form == "csv":
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("time", "user", "attribute"))
        writer.writerows(rows)
    else:
        for t, alias, attribute in rows:
            out.write(json.dumps({"time": t, "user": alias, "attribute": attribute}) + "\n")
    return out.getvalue()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("who", ["filter", peer("Python")])
def test_filter(form: str, who: str, size: Size, measure: Measure) -> None:
    rows = size.of(ROWS) // (1 if who == "filter" else PYTHON_SHARE)
    text = input_of(form, rows)
    group = f"filter: rows of {form}"
    if who == "Python":
        measure(group, python, rows, prepare=lambda: (form, text))
        return
    settings = FilterConfig(time_unit="s", z=Z).row_filter_arguments()
    found = measure(group, ours, rows, prepare=lambda: (RowFilter(**settings), text.encode()))
    shown = [[(t, attribute) for t, _user, attribute in rows_in(form, each)]
             for each in (found, python(form, text))]  # fmt: skip
    assert shown[0] == shown[1]


def frame_of(content: str, rows: int) -> pa.Table:
    """Returns the rows as a table, with times in ns."""
    step = NS_PER_S // ROWS_PER_S
    times = np.arange(rows, dtype=np.int64) * step + START_S * NS_PER_S
    users, attributes = draw(rows, 1), draw(rows, 2)
    if content == "numbers":
        return pa.table({"time": times, "user": users, "attribute": attributes})
    return pa.table(
        {
            "time": times,
            "user": [f"user{user}" for user in users],
            "attribute": [f"item{attribute}.example" for attribute in attributes],
        }
    )


def filter_frame(table: Any) -> Any:
    """Filters a table with the settings of the job in Python."""
    return zanon_net.filter(table, z=Z, window=f"{WINDOW_S}s", time_unit="ns")


def python_frame(table: pd.DataFrame) -> int:
    """Filters a DataFrame row by row."""
    times = (table["time"] / NS_PER_S).tolist()
    users, attributes = (table[name].astype(str).tolist() for name in ("user", "attribute"))
    return sum(1 for _ in pseudonyms(released(zip(times, users, attributes, strict=True))))


def per_cpu_second(job: Callable[[Any], object], table: Any) -> str:
    """Returns the millions of rows that the job filters in a second of CPU."""
    began = time.process_time()
    job(table)
    return f"{len(table) / (time.process_time() - began) / 1e6:.2f}"


@pytest.mark.parametrize("content", ["numbers", "texts"])
@pytest.mark.parametrize("who", ["pandas", "pyarrow", peer("Python")])
def test_frames(content: str, who: str, size: Size, measure: Measure) -> None:
    rows = size.of(FRAME_ROWS) // (PYTHON_SHARE if who == "Python" else 1)
    table: Any = frame_of(content, rows)
    group = f"filter: a table of {content}"
    if who != "pyarrow":
        table = table.to_pandas()
    job = python_frame if who == "Python" else filter_frame
    shown = {"million rows a CPU second:": lambda: per_cpu_second(job, table)}
    found = measure(group, job, rows, prepare=lambda: (table,), **shown)
    count = found if who == "Python" else len(found)
    assert count == python_frame(table if who != "pyarrow" else table.to_pandas())
