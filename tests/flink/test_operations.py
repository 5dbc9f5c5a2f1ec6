# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What fails beside a job costs time and no answer, and what cannot be read ends it by one line."""

import os
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from support.flink_cluster import PYTHON, FlinkCluster, long_form, wanted
from support.vote_files import feed, is_answered, job_options
from support.vote_stream import VoteStream, answers_below

from zanon_net._core import VoteWriter, read_answers, vote_rules
from zanon_net.count.frames import REFUSAL, framed, messages_in, read_refusal, votes_header
from zanon_net.flink.client import reason_in
from zanon_net.flink.logged_shard import SNAPSHOT_VERSION

pytestmark = [*wanted(), long_form]
SMALL, ROOMY = "128k", "200m"


@pytest.fixture
def small_disk(tmp_path: Path):
    """A folder with little room."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode != 0:
        pytest.skip("has to mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def is_part_of(some: Counter[bytes], whole: Counter[bytes]) -> bool:
    return not some - whole


def reasons_of_failure(cluster: FlinkCluster, job: str) -> list[str]:
    """Why a job has failed, the last time first."""
    cluster.wait(lambda: cluster.state_of(job) == "FAILED", "the end of the job")
    failures = cluster.get(f"/jobs/{job}/exceptions")["exceptionHistory"]["entries"]
    return [reason_in(failure["stacktrace"]) for failure in failures]


def reason_of_failure(cluster: FlinkCluster, job: str) -> str:
    """Why a job has failed, without another try."""
    (reason,) = reasons_of_failure(cluster, job)
    return reason


def of_another_version(savepoint: Path, copy: Path) -> Path:
    """A savepoint whose snapshots say that they are of the next version."""
    shutil.copytree(savepoint, copy)
    changed = 0
    for path in copy.iterdir():
        data = path.read_bytes()
        changed += data.count(b"ZNVF%c" % SNAPSHOT_VERSION)
        other = b"ZNVF%c" % (SNAPSHOT_VERSION + 1)
        path.write_bytes(data.replace(b"ZNVF%c" % SNAPSHOT_VERSION, other))
    assert changed > 0
    # Flink's own file names the folder that it was written to.
    meta = copy / "_metadata"
    meta.write_bytes(meta.read_bytes().replace(savepoint.name.encode(), copy.name.encode()))
    return copy


def test_failures_around_the_job(tmp_path: Path, small_disk: Path) -> None:
    stream = VoteStream(messages_a_file=6)
    expected = stream.expected()
    votes, whole = tmp_path / "shared", tmp_path / "whole"
    feed(stream, whole, votes, 0, 0)
    parts = sum(1 for _ in whole.rglob("*.znv"))
    checkpoints = ["--checkpoints", small_disk]
    with FlinkCluster(tmp_path / "cluster") as cluster:
        # A full disk: nothing is committed, and all is when there is room.
        job = cluster.submit(*job_options(votes, stream, 2), *checkpoints)
        feed(stream, whole, votes, 0, parts // 3)
        cluster.wait(lambda: cluster.counts_of(job).get("failed", 0) > 1, "failed checkpoints")
        done, before = cluster.completed(job), answers_below(votes / "answers")
        assert is_part_of(before, expected)
        assert cluster.state_of(job) == "RUNNING"
        subprocess.run(["mount", "-o", f"remount,size={ROOMY}", str(small_disk)], check=True)
        cluster.wait(lambda: cluster.completed(job) > done + 1, "a checkpoint")

        # A job manager that was killed: the last checkpoint goes on.
        cluster.kill_job_manager()
        (last,) = [path.parent for path in small_disk.glob(f"{job}/chk-*/_metadata")]
        feed(stream, whole, votes, parts // 3, parts * 2 // 3)
        job = cluster.submit(*job_options(votes, stream, 2), *checkpoints, "--savepoint", last)
        cluster.wait(lambda: cluster.completed(job) > 2, "checkpoints")

        # State of another version decides nothing.
        text = cluster.flink("stop", "--savepointPath", str(cluster.savepoints), job).stdout
        savepoint = Path(text.rpartition("Path: ")[2].split()[0].removeprefix("file:"))
        other = of_another_version(savepoint, savepoint.with_name(savepoint.name[:-1] + "!"))
        before = answers_below(votes / "answers")
        job = cluster.submit(*job_options(votes, stream, 2), *checkpoints, "--savepoint", other)
        feed(stream, whole, votes, parts * 2 // 3, None)
        problem = f"version {SNAPSHOT_VERSION + 1}, and only {SNAPSHOT_VERSION} is known"
        assert problem in reason_of_failure(cluster, job)
        assert answers_below(votes / "answers") == before

        job = cluster.submit(*job_options(votes, stream, 2), *checkpoints, "--savepoint", savepoint)
        cluster.wait(is_answered(votes, sum(expected.values())), "all answers", 300)
    assert answers_below(votes / "answers") == expected


def count_other_users(message: bytes) -> bytes:
    """A message as a probe with another --user-prefix sends it, without its votes."""
    header, rules = votes_header(message), vote_rules(user_prefix=(24, 56))
    place = header.probe, header.shard, header.settings
    writer = VoteWriter(*place, rules=rules, sequence=header.sequence)
    return bytes(writer.finish(header.watermark))


def run_job(folder: Path, *options: object) -> "subprocess.CompletedProcess[str]":
    """The job within a process, to the end of the files."""
    return subprocess.run(
        [PYTHON, "-m", "zanon_net", "flink", "job", "--ends", *map(str, options)],
        env={**os.environ, "FLINK_LOG_DIR": str(folder)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_a_probe_that_counts_other_users_is_told_so_and_the_job_goes_on(tmp_path: Path) -> None:
    stream = VoteStream(observations=20_000, messages_a_file=6)
    stream.write(tmp_path)
    odd = max((tmp_path / "votes").iterdir())
    for path in odd.glob("*.znv"):
        messages = map(count_other_users, messages_in(path.read_bytes()))
        path.write_bytes(b"".join(map(framed, messages)))
    options = [*job_options(tmp_path, stream, 1), "--expect-probes", stream.probes - 1]
    done = run_job(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    told = [
        message
        for path in (tmp_path / "answers" / odd.name).glob("*.zna")
        for message in messages_in(path.read_bytes())
    ]
    refusals = {read_refusal(message).text for message in told if message[:4] == REFUSAL}
    text = "its --user-prefix is 24,56 and not 32,56, as at the probes counted before"
    assert refusals == {f"{text}: give all the same"}
    assert not any(
        read_answers(message)["answers"].any() for message in told if message[:4] != REFUSAL
    )
    probe = int(odd.name, 16)
    others = [m for p, m in stream.messages() if p != probe]
    shutil.rmtree(tmp_path / "answers" / odd.name)
    assert answers_below(tmp_path / "answers") == stream.expected(others)


def test_what_cannot_be_read_fails_a_job_at_once(tmp_path: Path) -> None:
    stream = VoteStream(observations=20_000, messages_a_file=6)
    others, cut = tmp_path / "others", tmp_path / "cut"
    replace(stream, z=stream.z + 1).write(others)
    stream.write(cut)
    damaged = max((cut / "votes").rglob("*.znv"))
    damaged.write_bytes(damaged.read_bytes()[:-5])
    with FlinkCluster(tmp_path / "cluster", task_managers=1) as cluster:
        for votes, problem in (others, "another z"), (cut, "ends in the midst of a message"):
            job = cluster.submit(*job_options(votes, stream, 1))
            assert problem in reason_of_failure(cluster, job)
    assert not answers_below(others / "answers")


def test_a_job_that_always_fails_ends_after_as_many_tries_as_the_user_wants(tmp_path: Path) -> None:
    stream = VoteStream(observations=1000, messages_a_file=6)
    stream.write(tmp_path)
    tries = {"restart-strategy.exponential-delay.attempts-before-reset-backoff": 2}
    options = [*job_options(tmp_path, stream, 1), "--python", shutil.which("false")]
    with FlinkCluster(tmp_path / "cluster", task_managers=1, more=tries) as cluster:
        reasons = reasons_of_failure(cluster, cluster.submit(*options))
    assert len(reasons) == 3
    assert all("false" in reason for reason in reasons), reasons


def test_a_silent_probe_holds_up_no_other(tmp_path: Path) -> None:
    stream = VoteStream(observations=20_000, messages_a_file=6)
    whole, votes = tmp_path / "whole", tmp_path / "shared"
    stream.write(whole)
    silent = min((whole / "votes").iterdir())
    for path in silent.iterdir():
        if not path.name.endswith(f"-{1:020d}.znv"):
            path.unlink()
    feed(stream, whole, votes, 0, None)
    messages = sum(1 for _ in stream.messages()) * (stream.probes - 1) // stream.probes
    options = [*job_options(votes, stream, 1), "--probe-timeout", "2s"]
    with FlinkCluster(tmp_path / "cluster", task_managers=1) as cluster:
        job = cluster.submit(*options)
        cluster.wait(is_answered(votes, messages), "the answers of the others")
        assert cluster.state_of(job) == "RUNNING"


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda data: data[:-5], "ends in the midst of a message"),
        (lambda data: b"\xff" * 8 + data[8:], "no frame of a vote message"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "checksum|damaged"),
    ],
)
def test_a_damaged_file_ends_the_job(tmp_path: Path, damage, problem: str) -> None:
    stream = VoteStream(observations=20_000, messages_a_file=6)
    stream.write(tmp_path)
    files = sorted((tmp_path / "votes").rglob("*.znv"), key=lambda path: (path.name[4:], path))
    damaged = files[len(files) // 2]
    damaged.write_bytes(damage(damaged.read_bytes()))
    done = run_job(tmp_path, *job_options(tmp_path, stream, 1))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("zanon-net: the job has failed: ")
    assert any(word in line for word in problem.split("|")), line
    assert is_part_of(answers_below(tmp_path / "answers"), stream.expected())
