# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs over random conversations say the same in every format."""

import io
import json

import pyarrow.parquet as pq
from hypothesis import given, settings
from scenario.crowd import Scenario, scenarios
from support.contract_runs import run_files
from support.examples import examples
from support.formats import check_csv, check_parquet, check_tstat

FORMATS = ("jsonl", "csv", "parquet", "tstat")


@settings(max_examples=examples(12))
@given(scenarios)
def test_formats_say_the_same(key_file: str, scenario: Scenario) -> None:
    files = run_files(scenario, key_file, format=FORMATS)
    objects = [json.loads(line) for line in files["flows.jsonl"].splitlines()]
    check_csv(files["flows.csv"], files["flows.jsonl"])
    for name, proto in (("tcp", 6), ("udp", 17)):
        rows = [row for row in objects if row["proto"] == proto]
        check_parquet(pq.read_table(io.BytesIO(files[f"{name}.parquet"])), rows)
    check_tstat(files, objects)
