# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Counting job: files of votes, shards by key, and files of answers."""

import tempfile
from pathlib import Path

from pyflink.common import Configuration, Types
from pyflink.datastream import DataStream, KeyedStream, StreamExecutionEnvironment
from pyflink.java_gateway import get_gateway

from zanon_net.flink.count_function import BYTES, CountFunction
from zanon_net.flink.count_settings import CountSettings
from zanon_net.flink.java_classes import compile_classes
from zanon_net.flink.restarts import NEVER, restart_strategy

KEY_GROUPS = 256
DISCOVERY_MS = 250
BUNDLE_ELEMENTS = 4096
BUNDLE_MS = 1000
"""Longest time of a bundle. It delays no answer, because answers appear with a checkpoint, which
ends a bundle."""
TOLERATED = 1 << 30
"""Number of failed checkpoints after which the job ends. A full disk ends no job: its answers wait
for a checkpoint that succeeds."""
NAME = "zanon-net count"


def run_count_job(settings: CountSettings) -> None:
    """Runs the job, or submits it if `flink run` started this process."""
    with tempfile.TemporaryDirectory(prefix="zanon-flink-") as folder:
        environment = StreamExecutionEnvironment.get_execution_environment(_configuration(settings))
        environment.add_jars(compile_classes(Path(folder)).as_uri())
        _build(environment, settings)
        environment.execute(NAME)


def _configuration(settings: CountSettings) -> Configuration:
    configuration = Configuration()
    for key, value in {
        "parallelism.default": settings.parallelism,
        "python.executable": settings.python,
        "pipeline.max-parallelism": KEY_GROUPS,
        "python.fn-execution.bundle.size": BUNDLE_ELEMENTS,
        "python.fn-execution.bundle.time": BUNDLE_MS,
        "execution.checkpointing.tolerable-failed-checkpoints": TOLERATED,
        "execution.checkpointing.interval": f"{settings.checkpoint_ms} ms",
        **(restart_strategy(_users_settings()) if settings.restarts else NEVER),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    }.items():
        configuration.set_string(key, str(value))
    if settings.checkpoints is not None:
        configuration.set_string("execution.checkpointing.dir", settings.checkpoints)
    if settings.savepoint is not None:
        configuration.set_string("execution.state-recovery.path", settings.savepoint)
    return configuration


def _users_settings() -> set[str]:
    """Returns the names of the settings in the configuration that Flink's client reads."""
    flink = get_gateway().jvm.org.apache.flink.configuration
    return set(flink.GlobalConfiguration.loadConfiguration().keySet())


def _build(environment: StreamExecutionEnvironment, settings: CountSettings) -> None:
    votes = _votes(environment, settings)
    answers = votes.process(CountFunction(settings), output_type=BYTES).name("shards").uid("shards")
    refusals = get_gateway().jvm.zanon.flink.Refusals()
    checked = answers._j_data_stream.map(refusals).name("refusals").uid("refusals")
    checked.sinkTo(_answers(settings)).name("answers").uid("answers")


def _votes(environment: StreamExecutionEnvironment, settings: CountSettings) -> KeyedStream:
    """Messages by their shards. The format gives the pairs that PyFlink makes of keyed elements, so
    that no element goes through Python only to find its key."""
    jvm = get_gateway().jvm
    path = jvm.org.apache.flink.core.fs.Path(Path(settings.votes).absolute().as_uri())
    paths = get_gateway().new_array(jvm.org.apache.flink.core.fs.Path, 1)
    paths[0] = path
    builder = jvm.org.apache.flink.connector.file.src.FileSource.forBulkFileFormat(
        jvm.zanon.flink.FrameFormat(), paths
    ).setSplitAssigner(getattr(jvm.zanon.flink, "SequenceOrder$Provider")())
    if not settings.ends:
        builder = builder.monitorContinuously(jvm.java.time.Duration.ofMillis(DISCOVERY_MS))
    stream = environment._j_stream_execution_environment.fromSource(
        builder.build(),
        jvm.org.apache.flink.api.common.eventtime.WatermarkStrategy.noWatermarks(),
        "votes",
    ).uid("votes")
    keyed = stream.keyBy(jvm.KeyByKeySelector(), Types.ROW([Types.INT()]).get_java_type_info())
    return KeyedStream(keyed, BYTES, DataStream(stream))


def _answers(settings: CountSettings) -> object:
    """Files that appear with the checkpoint that covers them, a folder a probe."""
    jvm = get_gateway().jvm
    filesystem = jvm.org.apache.flink.streaming.api.functions.sink.filesystem
    path = jvm.org.apache.flink.core.fs.Path(Path(settings.answers).absolute().as_uri())
    names = filesystem.OutputFileConfig.builder().withPartPrefix("part").withPartSuffix(".zna")
    return (
        jvm.org.apache.flink.connector.file.sink.FileSink.forRowFormat(
            path, jvm.zanon.flink.FrameEncoder()
        )
        .withBucketAssigner(jvm.zanon.flink.ProbeFolders())
        .withRollingPolicy(filesystem.rollingpolicies.OnCheckpointRollingPolicy.build())
        .withOutputFileConfig(names.build())
        .build()
    )
