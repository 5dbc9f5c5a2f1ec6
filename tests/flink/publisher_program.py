# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A job of publishers, run by test_publisher_job.py: SOURCE, OUT and the parallelism."""

import sys
from pathlib import Path

from pyflink.common import Configuration
from pyflink.datastream import StreamExecutionEnvironment
from support.publisher_plan import PLAN, SCHEMA, SETTINGS, partition_of

from zanon_net.flink.publisher_job import run_publisher_job

if __name__ == "__main__":
    source, out = map(Path, sys.argv[1:3])
    configuration = Configuration()
    configuration.set_string("python.executable", sys.executable)
    configuration.set_string("parallelism.default", sys.argv[3])
    configuration.set_string("restart-strategy.type", "none")
    run_publisher_job(
        StreamExecutionEnvironment.get_execution_environment(configuration), source, out, PLAN,
        SCHEMA, time_ms=lambda row: row["time"] * 1000, partition=partition_of(source), **SETTINGS,
    )  # fmt: skip
