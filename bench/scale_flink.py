# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the cost of counting as a job of Flink and by zanon-net count: python
bench/scale_flink.py

Both read equal files of messages. CPU is the time of all processes. The cost of each further vote,
from a short and a long stream, is without the start of the JVM and of Python. That start differs by
a second from run to run, so the ratio is the median of several rounds.
"""

import argparse
import ctypes
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.vote_stream import SECOND, VoteStream, answers_below, releases

from zanon_net.count.frames import ENDED, framed, messages_in, votes_header
from zanon_net.flink.count_settings import CountSettings
from zanon_net.flink.logged_shard import LoggedShard

PR_SET_CHILD_SUBREAPER = 36
FILE_S = 60
"""Files of minutes, as docs/howto/flink.md asks for."""
CHECKPOINT = re.compile(
    r"Completed checkpoint \d+ for job \w+ \((\d+) bytes, checkpointDuration=(\d+) ms"
)


@dataclass(frozen=True)
class Run:
    """A stream, the folder of its files, and the tuples alive at its end."""

    folder: Path
    stream: VoteStream
    tuples: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=".venv-flink/bin/python", help="with PyFlink")
    parser.add_argument("--short", type=int, default=2_000_000)
    parser.add_argument("--long", type=int, default=16_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=int, default=3333, help="votes a second")
    parser.add_argument("--parallelism", type=int, default=1)
    parser.add_argument("--interval", type=int, default=5, help="seconds between messages")
    parser.add_argument("--folder", type=Path, help="where the streams stay [default: temporary]")
    args = parser.parse_args()
    # Python workers and JVMs that outlive their parents are waited for here.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory(prefix="scale-flink-") as temporary:
        folder = args.folder or Path(temporary)
        runs = [_run(args, folder / str(n), n) for n in (args.short, args.long)]
        ratios = [_further(args, runs) for _round in range(args.rounds)]
    print(f"median: Flink takes {median(ratios):.2f} x the CPU of zanon-net count")


def _run(args: argparse.Namespace, folder: Path, votes: int) -> Run:
    stream = VoteStream(
        observations=votes, interval_ns=args.interval * SECOND,
        duration_ns=votes // args.rate * SECOND, messages_a_file=FILE_S // args.interval,
    )  # fmt: skip
    if not (folder / "votes").is_dir():
        stream.write(folder)
    tuples, kept = _state_of_a_live_job(stream)
    print(
        f"{votes:,} votes: a live job keeps {kept / tuples:.1f} bytes for each of {tuples:,} tuples"
    )
    return Run(folder, stream, tuples)


def _further(args: argparse.Namespace, runs: list[Run]) -> float:
    """Returns the cost of a further vote for Flink as a multiple of its cost for zanon-net
    count."""
    costs = [_measure(args, run) for run in runs]
    of_count, of_flink = ((costs[1][i] - costs[0][i]) / (args.long - args.short) for i in range(2))
    print(
        f"each further vote: zanon-net count {of_count * 1e9:.0f} ns,"
        f" Flink {of_flink * 1e9:.0f} ns: {of_flink / of_count:.2f} x"
    )
    return of_flink / of_count


def _measure(args: argparse.Namespace, run: Run) -> tuple[float, float]:
    """Returns CPU seconds of one process and of Flink."""
    folder, stream, votes = run.folder, run.stream, run.stream.observations
    expected = stream.expected(_messages(folder))
    alone = _cost_of_count(folder, stream)
    begun, cpu = time.monotonic(), _cpu_of_children()
    log = _run_flink(args, folder, stream)
    wall, flink = time.monotonic() - begun, _cpu_of_children() - cpu
    same = answers_below(folder / "answers") == expected
    print(
        f"{votes:,} votes in {sum(expected.values()):,} messages,"
        f" {releases(expected):,} released\n"
        f"  zanon-net count: {alone:.2f} s of CPU, {alone / votes * 1e9:.0f} ns each\n"
        f"  Flink, parallelism {args.parallelism}: {flink:.2f} s of CPU,"
        f" {flink / votes * 1e9:.0f} ns each, {wall:.1f} s,"
        f" {votes / wall:,.0f} votes/s; answers {'identical' if same else 'DIFFER'}"
    )
    for size, duration in CHECKPOINT.findall(log)[-3:]:
        each = int(size) / run.tuples
        print(f"  checkpoint: {int(size):,} bytes, {each:.1f} a tuple of the end, in {duration} ms")
    return alone, flink


def _cost_of_count(folder: Path, stream: VoteStream) -> float:
    """Returns CPU seconds of `zanon-net count`, which keeps state, too."""
    with tempfile.TemporaryDirectory(prefix="scale-flink-count-") as temporary:
        copy, key = Path(temporary) / "shared", Path(temporary) / "state.key"
        shutil.copytree(folder / "votes", copy / "votes")
        subprocess.run([sys.executable, "-m", "zanon_net", "key", "new", key], check=True)
        cpu = _cpu_of_children()
        options = {
            "--z": stream.z, "--window": f"{stream.window_ns // SECOND}s",
            "--shards": stream.shards, "--expect-probes": stream.probes,
            "--state": f"{temporary}/state", "--state-key-file": key,
        }  # fmt: skip
        words = [str(word) for pair in options.items() for word in pair]
        command = [sys.executable, "-m", "zanon_net", "count", f"file:{copy}", "--until-done"]
        subprocess.run([*command, "--quiet", *words], check=True)
        return _cpu_of_children() - cpu


def _state_of_a_live_job(stream: VoteStream) -> tuple[int, int]:
    """Returns (tuples alive, bytes of state) at the end, with messages that come as time passes.

    In a job that reads old files, messages of the probes that are ahead wait in the state, too.
    """
    settings = CountSettings(
        votes="", answers="", z=stream.z, window_ns=stream.window_ns, rotate_ns=stream.window_ns,
        expect_probes=stream.probes,
    )  # fmt: skip
    shards = [LoggedShard(settings, number) for number in range(stream.shards)]
    kept = [0] * stream.shards
    for _probe, message in stream.messages():
        if votes_header(message).watermark == ENDED:
            break
        number, entry = votes_header(message).shard, framed(message)
        for _answer in shards[number].take(entry):
            pass
        kept[number] += len(entry)
        if shards[number].is_snapshot_due:
            snapshot, log = shards[number].snapshot()
            kept[number] = len(snapshot) + sum(map(len, log))
    return sum(shard.tuples for shard in shards), sum(kept)


def _messages(folder: Path):
    """Returns All messages, probes in turn, as the job reads them."""
    for path in sorted((folder / "votes").rglob("*.znv"), key=lambda path: (path.name[4:], path)):
        yield from messages_in(path.read_bytes())


def _run_flink(args: argparse.Namespace, folder: Path, stream: VoteStream) -> str:
    """Runs the job to its end in a cluster within one JVM; returns what that logged."""
    subprocess.run(["rm", "-rf", str(folder / "answers")], check=True)
    with tempfile.TemporaryDirectory(prefix="scale-flink-log-") as logs:
        options = {
            "--votes": folder, "--z": stream.z, "--window": f"{stream.window_ns // SECOND}s",
            "--expect-probes": stream.probes, "--shards": stream.shards, "--probe-timeout": "1h",
            "--parallelism": args.parallelism, "--checkpoint-every": "5s",
            "--checkpoints": f"{logs}/checkpoints",
        }  # fmt: skip
        words = [str(word) for pair in options.items() for word in pair]
        subprocess.run(
            [args.python, "-m", "zanon_net", "flink", "job", "--ends", *words],
            env={**os.environ, "FLINK_LOG_DIR": logs},
            check=True,
        )
        with suppress(ChildProcessError):
            while True:
                os.wait()
        return "".join(path.read_text() for path in Path(logs).glob("*.log"))


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
