# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Records of flows in each format, next to what Python writes of the same values.

All flows become idle at once. Closing them and writing their records is measured; "no output" is
closing alone. Three of four flows are of TCP, with a name.
"""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from engines import FORMATS, SETS, Nowhere, Written, close_flows, engine_for, full_engine
from flow_traffic import conversations
from measuring import Measure, Size, peer

FLOWS = 40_000
PEER_FLOWS = 10_000
NOTHING = "no output"
PEERS = {"tstat": "str.join", "csv": "csv module", "jsonl": "json module", "parquet": "pyarrow"}


def joined(rows: list[list[bytes]]) -> bytes:
    """Writes lines of Tstat's form."""
    return b"".join(b" ".join(row) + b"\n" for row in rows)


def csv_written(rows: list[list[str]]) -> str:
    """Writes rows with the csv module."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def json_written(rows: list[dict[str, Any]]) -> str:
    """Writes objects with the json module."""
    return "".join(json.dumps(row) + "\n" for row in rows)


def parquet_written(tables: list[Any]) -> None:
    """Writes tables of Arrow as Parquet."""
    import pyarrow.parquet as pq

    for table in tables:
        pq.write_table(table, Nowhere(), compression="snappy")


def peer_job(form: str, kept: Written) -> tuple[Callable[[Any], object], Any, int]:
    """Returns the peer's function, its rows, and their number."""
    if form == "parquet":
        return parquet_written, kept.tables, sum(table.num_rows for table in kept.tables)
    lines = b"".join(kept.texts.values()).splitlines()
    if form == "tstat":
        return joined, [line.split(b" ") for line in lines], len(lines)
    if form == "csv":
        return csv_written, list(csv.reader(line.decode() for line in lines)), len(lines)
    return json_written, [json.loads(line) for line in lines], len(lines)


@pytest.mark.parametrize("columns", SETS)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("who", ["ours", peer(NOTHING), peer("Python")])
def test_format(form: str, columns: str, who: str, size: Size, measure: Measure) -> None:
    count = size.of(PEER_FLOWS if who == "Python" else FLOWS)
    batches = list(conversations(count))
    group = f"records: {form}, {columns}"
    outputs = () if who == NOTHING else FORMATS[form]

    def prepare() -> tuple[object]:
        return (full_engine(engine_for(SETS[columns], count, outputs), batches),)

    if who != "Python":
        measure(group, close_flows, count, prepare=prepare)
        return
    kept = Written()
    close_flows(*prepare(), kept)
    job, rows, n = peer_job(form, kept)
    measure(group, job, n, prepare=lambda: (rows,), who=PEERS[form])
