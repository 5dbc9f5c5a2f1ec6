# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What the job of publishers and the publishers in the test's own process have in common."""

import json
from pathlib import Path

import pyarrow as pa

from zanon_net import microdata as md

CITIES = [["bern", "CH", "*"], ["genf", "CH", "*"], ["graz", "AT", "*"], ["wien", "AT", "*"]]
PLAN = md.Plan(
    quasi={"city": md.Hierarchy.from_lines(CITIES), "age": md.Round(10, 0, 39)},
    user="user",
    sensitive="product",
    k=3,
    l=2,
)
SCHEMA = pa.schema(
    [("time", pa.int64()), ("user", pa.string()), ("city", pa.string()), ("age", pa.int64()),
     ("product", pa.string())]
)  # fmt: skip
SETTINGS = {"rows": 40, "delay": "60s", "time_unit": "s"}


def partition_of(source: Path) -> object:
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    return PLAN.partition(pa.Table.from_pylist(rows, SCHEMA), 4)
