# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Publishers of rows in a job: k-anonymous and l-diverse classes, a publisher a key.

`publish_rows` is a step for any stream of rows. `run_publisher_job` adds files of JSON Lines as
source and sink. The state of a key is its publisher's state, so a restarted job continues with
equal output.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyflink.common import Duration, Encoder, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    DataStream,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from pyflink.datastream.state import ValueStateDescriptor

from zanon_net.flink.parent_watch import end_with_task_manager
from zanon_net.microdata.flink_function import PublishFunction
from zanon_net.microdata.partition import Partition
from zanon_net.microdata.plan import Plan

Row = Mapping[str, Any]
NAME = "zanon-net publish"


class _Times(TimestampAssigner):
    """Assigner of row times, for Flink's watermarks."""

    def __init__(self, time_ms: Callable[[Row], int]) -> None:
        self._time_ms = time_ms

    def extract_timestamp(self, value: Row, record_timestamp: int) -> int:
        """Returns the time of a row in milliseconds since 1970."""
        return self._time_ms(value)


class KeyedPublishers(KeyedProcessFunction):
    """PublishFunction for Flink: takes a row, yields rows."""

    def __init__(self, function: PublishFunction, schema: pa.Schema) -> None:
        self._function, self._schema = function, schema

    def open(self, runtime_context: RuntimeContext) -> None:
        """Opens the state, which is empty or comes from a checkpoint."""
        end_with_task_manager()
        self._function.open(runtime_context)

    def close(self) -> None:
        """Forgets the publisher, whose state is in the checkpoint."""
        self._function.close()

    def process_element(self, value: Row, ctx: Any) -> Iterator[Row]:
        """Takes a row of the key and yields released rows."""
        table = pa.Table.from_pylist([value], self._schema)
        for released in self._function.process_element(table, ctx):
            yield from released.to_pylist()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Row]:
        """Yields the rows that have waited long enough."""
        for released in self._function.on_timer(timestamp, ctx):
            yield from released.to_pylist()


def publish_rows(
    stream: DataStream,
    plan: Plan,
    schema: pa.Schema,
    /,
    *,
    time_ms: Callable[[Row], int],
    partition: Partition,
    late_ms: int = 0,
    **settings: Any,
) -> DataStream:
    """Returns a stream of dicts with the rows that may be released.

    stream: dicts of the schema. time_ms: the time of a row, which comes at most late_ms late.
    partition: the keys, of Plan.partition. settings: those of a Publisher, with a delay.

    Raises ConfigError.
    """
    function = PublishFunction(
        plan,
        descriptor=ValueStateDescriptor("publisher", Types.PRIMITIVE_ARRAY(Types.BYTE())),
        **settings,
    )

    def key_of(row: Row) -> int:
        return int(partition.of(pa.Table.from_pylist([row], schema))[0])

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(late_ms))
    timed = stream.assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(_Times(time_ms))
    )
    keyed = timed.key_by(key_of, key_type=Types.INT())
    return keyed.process(KeyedPublishers(function, schema)).name("publishers").uid("publishers")


def run_publisher_job(
    environment: StreamExecutionEnvironment,
    source: Path,
    out: Path,
    plan: Plan,
    schema: pa.Schema,
    /,
    *,
    watches: bool = False,
    **settings: Any,
) -> None:
    """Publishes the rows of files of JSON Lines below `source` to files below `out`.

    `watches` is true to continue with files that appear later. `settings` are the settings of
    publish_rows. A schema has numbers or texts for dates and times, which are texts in JSON.

    Raises ConfigError.
    """
    builder = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), source.absolute().as_uri()
    )
    if watches:
        builder = builder.monitor_continuously(Duration.of_seconds(1))
    lines = environment.from_source(builder.build(), WatermarkStrategy.no_watermarks(), "rows")
    released = publish_rows(lines.map(json.loads), plan, schema, **settings)
    text = released.map(lambda row: json.dumps(row, separators=(",", ":")), Types.STRING())
    encoder = Encoder.simple_string_encoder()
    text.sink_to(FileSink.for_row_format(out.absolute().as_uri(), encoder).build())
    environment.execute(NAME)
