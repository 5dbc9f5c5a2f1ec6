# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Files that other threads decode ahead: the output is the same as that of one thread."""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.capture_bytes import (
    block,
    enhanced,
    interface,
    option,
    pcap_header,
    pcap_record,
    section,
)
from support.cli import ENVIRONMENT
from support.engine import Outcome, Taker, make_engine
from support.examples import examples
from support.file_map import unmapped
from support.packets import SECOND, START, visit
from support.paths import TESTS

from zanon_net import _core
from zanon_net.errors import CaptureError

PART = 2 << 20  # bytes of a file that get their pages at once
CALL = 16384  # frames of a call; of 1024 or fewer none is read ahead
UNKNOWN = 0x0BAD  # a kind of block that says nothing
COMMENT, NANOSECONDS = 1, 9  # options
COMMENT_BYTES = 60_000  # in one of them, at most
Meanwhile = Callable[[_core.Capture, int], None]


def outcome_of(
    path: Path, key_file: str, workers: int, meanwhile: Meanwhile | None = None
) -> tuple[Outcome, str | None]:
    """(outcome of a run over the capture, its warning); `meanwhile` is called between calls."""
    chosen = {"z": 1, "established": False, "outputs": ("jsonl",), "key_file": key_file}
    taker = Taker(make_engine(**chosen, workers=workers))
    with _core.Capture(str(path)) as capture:
        calls = 0
        if meanwhile is not None:
            meanwhile(capture, calls)
        while taker.engine.run(capture, CALL):
            taker.take()
            calls += 1
            if meanwhile is not None:
                meanwhile(capture, calls)
        warning = capture.warning
    return taker.outcome(), warning


def same(path: Path, key_file: str) -> Outcome:
    """Asserts that any number of workers makes the same of the capture."""
    one, warning = outcome_of(path, key_file, 1)
    for workers in (2, 5):
        several, told = outcome_of(path, key_file, workers)
        assert (several.text, several.stats, told) == (one.text, one.stats, warning), workers
    return one


@cache
def pcap_of_visits() -> bytes:
    """A capture of 60,000 packets of visits, 60 ms apart."""
    frames = []
    at = START
    while len(frames) < 60_000:
        frames += visit(f"10.0.{len(frames) % 200}.{len(frames) % 250}", b"a.example", at)
        at += 60 * SECOND // 1000
    records = (pcap_record("<", f.t_ns // SECOND, f.t_ns % SECOND // 1000, f.data) for f in frames)
    return pcap_header() + b"".join(records)


def pcapng_of(path: Path, dice: random.Random, blocks: int) -> Path:
    """Packets between blocks that say nothing, and with comments: of any size up to some parts."""
    sizes = (0, 4, 60, 1500, PART - 64, PART, PART + 4, 3 * PART + 8)
    parts = [section(), interface(options=option("<", NANOSECONDS, b"\x09"))]
    for n in range(blocks):
        talk = visit(f"10.0.0.{n % 250}", b"b%d.example" % (n % 3), START + n * SECOND)
        for frame in talk:
            if dice.random() < 0.05:
                parts.append(block("<", UNKNOWN, bytes(dice.choice(sizes))))
            comments = dice.choice((1, 2, 5, 13)) if dice.random() < 0.04 else 0
            options = option("<", COMMENT, bytes(COMMENT_BYTES)) * comments
            parts.append(enhanced("<", frame.t_ns, frame.data, options=options))
    path.write_bytes(b"".join(parts))
    return path


@settings(max_examples=examples(10))
@given(st.integers(0, 2**32))
def test_records_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, key_file: str, seed: int
) -> None:
    path = tmp_path_factory.mktemp("large") / "x.pcapng"
    outcome = same(pcapng_of(path, random.Random(seed), 60), key_file)
    assert outcome.stats["records"] > 0


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_files_that_end_where_a_part_does(tmp_path: Path, key_file: str, extra: int) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap_of_visits()[: 2 * PART + extra])
    outcome = same(path, key_file)
    assert outcome.stats["frames"] > 0


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """More frames than a call takes, in more parts than one."""
    path = tmp_path / "long.pcap"
    path.write_bytes(pcap_of_visits())
    return path


def test_a_file_that_becomes_shorter(long: Path, key_file: str) -> None:
    """Frames that were read before are kept, and a warning names the end."""
    whole = long.read_bytes()
    told = set()
    for workers in (1, 2, 5):
        long.write_bytes(whole)

        def cut(_capture: _core.Capture, calls: int) -> None:
            if calls == 1:
                os.truncate(long, len(whole) // 2 + 11)

        outcome, warning = outcome_of(long, key_file, workers, cut)
        assert warning is not None
        assert "became shorter" in warning
        told.add((outcome.stats["frames"], outcome.stats["records"], warning))
    assert len(told) == 1


def test_a_file_that_is_cut_before_what_was_read(long: Path, key_file: str) -> None:
    """Frames of it cannot be trusted: any number of workers ends with an error."""
    whole = long.read_bytes()
    for workers in (1, 2, 5):
        long.write_bytes(whole)

        def cut(_capture: _core.Capture, calls: int) -> None:
            if calls == 1:
                os.truncate(long, 1000)

        with pytest.raises(CaptureError, match=r"long\.pcap was cut while it was read"):
            outcome_of(long, key_file, workers, cut)


def test_a_file_that_cannot_be_mapped(long: Path, key_file: str, tmp_path: Path) -> None:
    """It is read as a stream is, by one thread."""
    mapped = same(long, key_file)
    with unmapped(tmp_path):
        assert same(long, key_file) == mapped


def test_a_file_that_cannot_be_read_any_further(long: Path, key_file: str, tmp_path: Path) -> None:
    """A folder takes the place of the open file: any number of workers says so."""
    for workers in (1, 2, 5):

        def replace(_capture: _core.Capture, calls: int) -> None:
            if calls != 1:
                return
            (file,) = (
                int(fd.name)
                for fd in Path("/proc/self/fd").iterdir()
                if fd.exists() and fd.readlink() == long
            )
            folder = os.open(tmp_path, os.O_RDONLY)
            os.dup2(folder, file)
            os.close(folder)

        with (
            unmapped(tmp_path),
            pytest.raises(CaptureError, match=r"long\.pcap cannot be read: Is a directory"),
        ):
            outcome_of(long, key_file, workers, replace)


FORKED = f"""
import os, sys
from support.engine import make_engine
from zanon_net import _core
engine = make_engine(key_file=sys.argv[2], workers=3)
with _core.Capture(sys.argv[1]) as capture:
    assert engine.run(capture, {CALL}) > 0
    child = os.fork()
    engine.close()
    if child == 0:
        os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_a_process_that_was_forked_ends(demo_pcap: Path, key_file: str) -> None:
    """The workers are not in it: it does without them."""
    command = [sys.executable, "-c", FORKED, str(demo_pcap), key_file]
    folders = os.pathsep.join((ENVIRONMENT["PYTHONPATH"], str(TESTS)))
    subprocess.run(command, env=ENVIRONMENT | {"PYTHONPATH": folders}, check=True, timeout=120)
