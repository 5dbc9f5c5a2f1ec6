# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Publishers in a job of Flink release what a Publisher of each key does in this process."""

import json
import os
import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from support import publisher_plan
from support.flink_cluster import PYTHON, ROOT, long_form, wanted

from zanon_net import microdata as md

pa = pytest.importorskip("pyarrow")
pytestmark = [*wanted(), long_form]
PROGRAM = Path(__file__).with_name("publisher_program.py")


def rows_of(n: int) -> list[dict[str, object]]:
    chance, rows, now = random.Random(5), [], 1000
    for _ in range(n):
        now += chance.choice((0, 1, 2, 5))
        rows.append({
            "time": now, "user": f"user{chance.randrange(60)}",
            "city": chance.choice(("bern", "genf", "graz", "wien")),
            "age": chance.choice((1, 12, 25, 33, None)),
            "product": chance.choice(("tea", "tea", "jam", "oil")),
        })  # fmt: skip
    return rows


def expected(source: Path, rows: list[dict[str, object]]) -> Counter[str]:
    table = pa.Table.from_pylist(rows, publisher_plan.SCHEMA)
    keys = publisher_plan.partition_of(source).of(table)
    assert len(set(keys.tolist())) > 1
    released = []
    for key in set(keys.tolist()):
        publisher = md.Publisher(publisher_plan.PLAN, **publisher_plan.SETTINGS)
        tables = [publisher.feed(table.filter(pa.array(keys == key)))]
        while (deadline := publisher.deadline_ns) is not None:
            tables.append(publisher.advance(deadline))
        released += [row for table in tables for row in table.to_pylist()]
    return Counter(map(json.dumps, released))


@pytest.mark.parametrize("parallelism", [1, 2])
def test_the_same_rows_as_in_one_process(tmp_path, parallelism):
    source, out, rows = tmp_path / "rows.jsonl", tmp_path / "out", rows_of(600)
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = subprocess.run(
        [PYTHON, PROGRAM, source, out, str(parallelism)],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/tests", "FLINK_LOG_DIR": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line for path in out.rglob("part-*") for line in path.read_text().splitlines()]
    wanted_rows = expected(source, rows)
    assert sum(wanted_rows.values()) > 200
    assert Counter(json.dumps(json.loads(line)) for line in lines) == wanted_rows
