# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a run's output: by time, by size, on a signal; and what a killed run leaves.

Throughout, every record of a closed flow is in exactly one file, or counted as left out or lost.
"""

import itertools
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from support.engine import feed, make_engine
from support.packets import DAY, HOUR, MINUTE, SECOND, START, Frame, merged, user, visit
from support.parts import (
    PROGRAM,
    capture_of,
    check_accounts,
    files_in,
    flow,
    in_this_order,
    manifest_of,
    records_in,
)
from support.waiting import PATIENCE_S

from zanon_net import Config, run
from zanon_net.output import folder
from zanon_net.system import signals
from zanon_net.system.signals import Interruption, StopReading

pytestmark = pytest.mark.usefixtures("hangups_end")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


# ---- by time ------------------------------------------------------------------------------------


@pytest.fixture
def days(tmp_path: Path) -> Path:
    """Lookups over a day, two at a time, with hours between some of them."""
    times = [START + 50 * MINUTE + n * 25 * MINUTE for n in range(20)] + [START + 3 * DAY]
    frames = [frame for n, t_ns in enumerate(times) for frame in flow(n, t_ns)]
    path = tmp_path / "days.pcap"
    path.write_bytes(capture_of(frames))
    return path


def stamp(t_ns: int, form: str) -> str:
    return time.strftime(form, time.gmtime(t_ns // SECOND))


def test_parts_are_aligned_and_nothing_is_lost(days: Path, out: Path) -> None:
    config = Config().replace(z=1, split="1h", format=("tstat", "csv", "jsonl", "parquet"))
    run(days, config, out=out)
    check_accounts(out)
    run(days, config.replace(split=None, exact=True), out=out.with_name("whole"))
    for name, pattern in (("flows.csv", "flows-*.csv"), ("flows.jsonl", "flows-*.jsonl")):
        whole = (out.with_name("whole") / name).read_text().splitlines()
        parts = [path.read_text().splitlines() for path in sorted(out.glob(pattern))]
        header = 1 if name.endswith("csv") else 0
        assert len(parts) == 10
        assert [part[:header] for part in parts] == [whole[:header]] * len(parts)
        lines = [line for part in parts for line in part[header:]]
        assert len(lines) == len(whole) - header == 21
        assert len(set(lines)) == 21


def test_a_record_lies_in_the_part_in_which_its_flow_was_closed(days: Path, out: Path) -> None:
    run(days, Config().replace(z=1, split="1h", format="jsonl"), out=out)
    starts = []
    for path in sorted(out.glob("flows-*.jsonl")):
        for line in path.read_text().splitlines():
            end_ns = json.loads(line)["t_end_ns"]
            starts.append((path.name, end_ns))
            # Closed by the first packet 200 s later: in the same hour, or in a later one.
            assert path.name >= f"flows-{stamp(end_ns, '%Y%m%dT%H0000Z')}.jsonl"
    assert [end for _name, end in starts] == sorted(end for _name, end in starts)


def test_a_long_gap_is_one_part(out: Path, tmp_path: Path) -> None:
    frames = [*flow(1, START), *flow(2, START + 366 * DAY)]
    (tmp_path / "gap.pcap").write_bytes(capture_of(frames))
    run(tmp_path / "gap.pcap", Config().replace(z=1, split="1h"), out=out)
    folders = {name.partition("/")[0] for name in files_in(out)} - {"manifest.json"}
    expected = {stamp(t, "%Y_%m_%d_%H_00.out") for t in (START, START + 366 * DAY)}
    assert folders == expected


@pytest.mark.parametrize("rows", [0, 3, 1000])
@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_what_belongs_to_a_part_does_not_depend_on_batches(batch: int, rows: int) -> None:
    frames = [frame for n in range(40) for frame in flow(n, START + n * 20 * MINUTE)]
    assert parts_of(frames, batch, rows) == parts_of(frames, 80, 0)


def parts_of(frames: list[Frame], batch: int, rows: int) -> dict[int, dict[str, int]]:
    """How many lines each output has in each period, and rows of a table, so many at a time."""
    outputs = ("csv", "observations", "udp_table")
    engine = make_engine(z=1, split_ns=HOUR, outputs=outputs)
    parts: dict[int, dict[str, int]] = {}
    period = -1
    more = True
    for at in range(0, len(frames) + batch, batch):
        feed(engine, frames[at : at + batch])
        if at >= len(frames):
            more = engine.finish()
        start = 0
        for period_ns, texts, ends in engine.drain(rows=0 if more is False else rows)[0]:
            period = period if period_ns is None else period_ns
            counts = parts.setdefault(period, dict.fromkeys(outputs, 0))
            for output, (lines, count) in texts.items():
                assert bytes(lines).count(b"\n") == count
                counts[output] += count
            counts["udp_table"] += ends.get("udp_table", start) - start
            start = ends.get("udp_table", start)
    assert not more
    engine.close()
    total = {output: sum(counts[output] for counts in parts.values()) for output in outputs}
    assert total == dict.fromkeys(outputs, 40)
    assert set(parts) - {-1} == {START + n * HOUR for n in range(14)}
    return {period: counts for period, counts in parts.items() if any(counts.values())}


def test_the_clock_set_back_begins_a_part_of_the_same_hour_anew(out: Path, tmp_path: Path) -> None:
    ahead = [frame for n in range(3) for frame in flow(n, START + n)]
    later = flow(9, START + 40 * HOUR)
    back = [frame for n in range(300) for frame in flow(10 + n, START + MINUTE + n)]
    (tmp_path / "back.pcap").write_bytes(in_this_order([*ahead, *later, *back]))
    run(tmp_path / "back.pcap", Config().replace(z=1, split="1h", format="csv"), out=out)
    first = stamp(START, "flows-%Y%m%dT%H%M%SZ")
    assert {f"{first}.csv", f"{first}-2.csv"} <= set(files_in(out))
    check_accounts(out)


# ---- by size, and on a signal -------------------------------------------------------------------


def test_parts_by_size(many: Path, out: Path) -> None:
    config = Config().replace(z=1, split_size="400k", format=("csv", "tstat"))
    run(many, config, out=out)
    check_accounts(out)
    sizes = [len(data) for name, data in files_in(out).items() if name.endswith(".csv")]
    assert len(sizes) > 3
    assert manifest_of(out)["records"]["csv"]["written"] == 20_000


class Running:
    """The command, reading a capture from a pipe."""

    def __init__(self, out: Path, *options: str) -> None:
        command = [*PROGRAM, "-", "--out", str(out), "--z", "1", "-q", *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self.out = out

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        pipe, rest = self.process.stdin.fileno(), memoryview(data)
        while rest:
            assert select.select([], [pipe], [], PATIENCE_S)[1], "it reads no more"
            rest = rest[os.write(pipe, rest[: select.PIPE_BUF]) :]

    def wait_for(self, pattern: str, count: int) -> None:
        """Waits until so many files have these names."""
        for _attempt in range(3000):
            if len(list(self.out.rglob(pattern))) >= count:
                return
            assert self.process.poll() is None, self.process.communicate()[1]
            time.sleep(0.01)
        pytest.fail(f"no {pattern} appeared")

    def end(self) -> tuple[int, bytes]:
        _out, err = self.process.communicate(timeout=60)
        return self.process.returncode, err


@pytest.fixture
def running(out: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def start(*options: str) -> Running:
        started.append(Running(out, *options))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.communicate()


def test_hangup_rotates_under_load(running: Callable[..., Running], many: Path, out: Path) -> None:
    data = many.read_bytes()
    run_ = running("--format", "csv", "--format", "tstat", "--format", "parquet")
    cuts = [0, *sorted(random.Random(7).sample(range(1000, len(data)), 4)), len(data)]
    for n, (start, end) in enumerate(itertools.pairwise(cuts)):
        if n:
            run_.process.send_signal(signal.SIGHUP)
            run_.wait_for("flows-*.csv", n)
        run_.send(data[start:end])
        if not n:
            run_.wait_for("*.partial", 1)
    code, err = run_.end()
    assert (code, err) == (0, b"")
    manifest = check_accounts(out)
    assert manifest["complete"]
    for name in ("csv", "parquet"):
        assert manifest["records"][name] == {"written": 20_000, "left_out": 0, "lost": 0}
    assert len(list(out.glob("flows-*.csv"))) == len(list(out.glob("flows/udp-*.parquet"))) == 5


def test_a_hangup_between_two_batches_does_not_wait_for_packets() -> None:
    """A stream may be silent from then on. It is told once: nothing may be there to rotate yet."""
    with Interruption(rotates=True) as interruption:
        signal.raise_signal(signal.SIGHUP)
        with interruption.reading(rotates=False):
            pass
        with pytest.raises(StopReading), interruption.reading():
            pass
        with interruption.reading():
            pass
        assert interruption.take_rotation()
        signal.raise_signal(signal.SIGHUP)
        assert interruption.take_rotation()
        with interruption.reading():
            pass


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
@pytest.mark.parametrize("step", range(8))
def test_a_hangup_at_any_step_of_a_reading_ends_only_that(step: int, number: int) -> None:
    """The signal behind it breaks nothing off. step: the line of `reading` it comes before."""
    steps = itertools.count()

    def trace(frame: FrameType, event: str, _about: object) -> Any:
        if frame.f_code.co_name == "reading" and event == "line" and next(steps) == step:
            signal.raise_signal(signal.SIGHUP)
        return trace

    former = sys.gettrace()
    with Interruption(rotates=True) as interruption:
        sys.settrace(trace)
        try:
            with suppress(StopReading), interruption.reading():
                pass
        finally:
            sys.settrace(former)
        assert interruption.take_rotation() or step >= next(steps)
        signal.raise_signal(number)
        assert interruption.rotation or interruption.requested


def test_more_signals_leave_the_removal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who presses Ctrl-C many times wants nothing left; if that is stuck, it can be repeated."""
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
        assert interruption.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        monkeypatch.setattr(signals, "REMOVAL_S", 0.0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_other_signals_end_a_run_well(
    running: Callable[..., Running], many: Path, out: Path, number: signal.Signals
) -> None:
    data = many.read_bytes()
    run_ = running("--format", "csv", "--split", "1m")
    run_.send(data[: len(data) * 9 // 10])
    run_.wait_for("flows-*.csv", 1)
    run_.process.send_signal(number)
    code, err = run_.end()
    assert code == 1
    assert b"interrupted: what had been read is complete" in err
    manifest = check_accounts(out)
    assert manifest["interrupted"]
    assert manifest["records"]["csv"]["lost"] == 0
    assert not list(out.rglob("*.partial"))


def visits_of_a_minute() -> bytes:
    """A capture of two users of one name, and of five with a name of their own."""
    hosts = [b"www.shared.example"] * 2 + [b"own%d.example" % n for n in range(5)]
    talks = [visit(user(n), host, START + n * SECOND) for n, host in enumerate(hosts)]
    return capture_of(merged(talks))


def statuses(paths: Iterable[Path]) -> list[list[str]]:
    """The name_status of each line of each file."""
    return [
        [json.loads(line)["name_status"] for line in path.read_text().splitlines()]
        for path in paths
    ]


@pytest.mark.parametrize("number", [None, signal.SIGTERM])
def test_the_running_minute_goes_into_the_next_part_and_leaves_at_the_end(
    running: Callable[..., Running], out: Path, number: signal.Signals | None
) -> None:
    """number: the signal that ends the run; None: its input ends."""
    run_ = running("--z", "2", "--format", "jsonl")
    run_.send(visits_of_a_minute())
    run_.wait_for("*.partial", 1)
    # A hangup before any record makes an empty part.
    while not any(path.stat().st_size for path in out.glob("flows-*.jsonl")):
        assert run_.process.poll() is None
        run_.process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
    if number is not None:
        run_.process.send_signal(number)
    code, _err = run_.end()
    assert code == (0 if number is None else 1)
    assert check_accounts(out)["counters"]["flow"]["records_held"] == 0
    parts = [part for part in statuses(sorted(out.glob("flows-*.jsonl"))) if part]
    assert parts == [["released"], ["suppressed"] * 6]


def test_a_run_that_is_given_up_keeps_what_was_whole(
    running: Callable[..., Running], many: Path, out: Path
) -> None:
    """And says no more than that of its files."""
    run_ = running("--format", "csv", "--split", "1m")
    run_.send(many.read_bytes()[:-100])
    run_.wait_for("flows-*.csv", 1)
    run_.process.send_signal(signal.SIGSTOP)
    run_.process.send_signal(signal.SIGINT)
    run_.process.send_signal(signal.SIGTERM)
    run_.process.send_signal(signal.SIGCONT)
    code, err = run_.end()
    assert code == 1
    assert err == b"zanon-net: interrupted; only files that are whole are left\n"
    assert check_accounts(out)["error"] == "KeyboardInterrupt"
    assert not list(out.rglob("*.partial"))


@pytest.mark.family(3)
@pytest.mark.parametrize("seed", range(6))
def test_a_killed_run_leaves_whole_files_and_partial_ones(
    running: Callable[..., Running], many: Path, out: Path, seed: int
) -> None:
    data = many.read_bytes()
    run_ = running("--format", "csv", "--format", "parquet", "--split-size", "200k")
    rng = random.Random(seed)
    end = rng.randrange(len(data) // 10, len(data))
    for at in range(0, end, 1 << 16):
        run_.send(data[at : min(end, at + (1 << 16))])
    waits = seed % 2 and end > len(data) // 2
    if waits:
        run_.wait_for("flows-*.csv", 1)
    run_.process.kill()
    run_.end()
    whole = {n: content for n, content in files_in(out).items() if not n.endswith(".partial")}
    assert whole or not waits
    for name, content in whole.items():
        if name.endswith(".parquet"):
            records_in(name, content)  # which fails on a file that is not whole
            continue
        assert name.endswith(".csv")
        assert content.endswith(b"\n")
        header, *lines = content.splitlines()
        assert {line.count(b",") for line in lines} == {header.count(b",")}


# ---- a signal at an awkward time ----------------------------------------------------------------


@pytest.mark.parametrize("part", [1, 3])
@pytest.mark.parametrize(
    ("where", "form"),
    [
        *itertools.product(["_new_file", "sync_folders", "rename"], ["csv", "tstat"]),
        ("mkdir", "tstat"),
    ],
)
def test_a_signal_that_gives_up_between_two_steps(
    days: Path, out: Path, monkeypatch: pytest.MonkeyPatch, where: str, form: str, part: int
) -> None:
    """Nothing is left under a partial name, and the manifest lists what is there."""
    calls = itertools.count(1)
    holders = {"_new_file": folder.FolderSink, "sync_folders": folder}
    holder: object = holders.get(where, Path)
    wrapped: Callable[..., object] = getattr(holder, where)

    def interrupted(*arguments: object) -> object:
        done = wrapped(*arguments)
        if next(calls) == part:
            raise KeyboardInterrupt
        return done

    monkeypatch.setattr(holder, where, interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(days, Config().replace(z=1, split="1h", format=form), out=out)
    there = files_in(out)
    assert not list(out.rglob("*.partial"))
    assert all(list(folder.iterdir()) for folder in out.rglob("*.out"))
    listed = [file["file"] for file in manifest_of(out)["outputs"]] if there else []
    assert sorted(name for name in there if name != "manifest.json") == listed
