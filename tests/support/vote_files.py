# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Votes in a folder that a job of Flink watches."""

import shutil
from collections.abc import Callable
from pathlib import Path

from support.vote_stream import SECOND, VoteStream, answers_below


def job_options(folder: Path, stream: VoteStream, parallelism: int) -> list[object]:
    generations = []
    if stream.count_rotate_ns is not None:
        generations = ["--count-rotate", f"{stream.count_rotate_ns // SECOND}s"]
    return [
        "--votes", folder, "--z", stream.z, "--window", f"{stream.window_ns // SECOND}s",
        *generations, "--shards", stream.shards, "--expect-probes", stream.probes,
        "--probe-timeout", "1h", "--parallelism", parallelism, "--checkpoint-every", "1s",
    ]  # fmt: skip


def feed(stream: VoteStream, whole: Path, folder: Path, first: int, last: int | None) -> None:
    """Moves files of the whole stream, in the order of their sequences, to where the job looks."""
    if not whole.exists():
        stream.write(whole)
    files = sorted(whole.rglob("*.znv"), key=lambda path: (path.name[4:], path))
    for path in files[first:last]:
        target = folder / path.relative_to(whole)
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.partial")
        shutil.copy(path, partial)
        partial.rename(target)


def is_answered(folder: Path, number: int) -> Callable[[], bool]:
    return lambda: sum(answers_below(folder / "answers").values()) >= number
