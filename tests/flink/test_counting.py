# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The counting job on a cluster of processes gives the answers of one table, whatever happens."""

import pytest
from support.flink_cluster import FlinkCluster, is_alive, long_form, wanted
from support.vote_files import feed, is_answered, job_options
from support.vote_stream import SECOND, VoteStream, answers_below, releases

pytestmark = wanted()


@pytest.mark.parametrize(
    ("kills", "backend", "observations"),
    [
        (1, "hashmap", 200_000),
        pytest.param(5, "hashmap", 2_000_000, marks=long_form),
        pytest.param(2, "rocksdb", 1_000_000, marks=long_form),
    ],
)
def test_killed_task_managers_change_no_answer(tmp_path, kills, backend, observations):
    length = 1800 * SECOND  # of a generation of hashes, which change in the midst
    stream = VoteStream(
        observations=observations, messages_a_file=6,
        begin_ns=length - 800 * SECOND, count_rotate_ns=length,
    )  # fmt: skip
    expected = stream.expected()
    assert 0 < releases(expected) < observations
    votes, whole = tmp_path / "shared", tmp_path / "whole"
    feed(stream, whole, votes, 0, 0)
    parts = sum(1 for _ in whole.rglob("*.znv"))
    with FlinkCluster(tmp_path / "cluster", backend=backend) as cluster:
        job = cluster.submit(*job_options(votes, stream, 2))
        for i in range(kills + 1):
            bounds = [parts * (i + k) // (kills + 1) for k in (0, 1)]
            feed(stream, whole, votes, *bounds)
            if i < kills:
                done = cluster.completed(job)
                cluster.wait(lambda done=done: cluster.completed(job) > done + 1, "a checkpoint")
                workers = cluster.kill_task_manager(away_s=40 * (i == 1))
                cluster.wait(lambda workers=workers: not any(map(is_alive, workers)), "workers")
        cluster.wait(is_answered(votes, sum(expected.values())), "all answers", 300)
        assert cluster.state_of(job) == "RUNNING"
        assert cluster.get(f"/jobs/{job}")["vertices"][0]["parallelism"] == 2
    assert answers_below(votes / "answers") == expected


@long_form
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_savepoints_rescale_the_job(tmp_path, backend):
    stream = VoteStream(observations=1_000_000, messages_a_file=6)
    expected = stream.expected()
    votes, whole = tmp_path / "shared", tmp_path / "whole"
    feed(stream, whole, votes, 0, 0)
    parts = sum(1 for _ in whole.rglob("*.znv"))
    savepoint: list[object] = []
    with FlinkCluster(tmp_path / "cluster", backend=backend) as cluster:
        for i, parallelism in enumerate((2, 1, 2)):
            job = cluster.submit(*job_options(votes, stream, parallelism), *savepoint)
            feed(stream, whole, votes, parts * i // 3, parts * (i + 1) // 3)
            done = cluster.completed(job)
            cluster.wait(lambda job=job, done=done: cluster.completed(job) > done + 2, "checkpoint")
            if i < 2:
                text = cluster.flink("stop", "--savepointPath", str(cluster.savepoints), job).stdout
                path = text.rpartition("Path: ")[2].split()[0]
                savepoint = ["--savepoint", path]
        cluster.wait(is_answered(votes, sum(expected.values())), "all answers", 300)
    assert answers_below(votes / "answers") == expected
