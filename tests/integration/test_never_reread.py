# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: the file of --never is read again, and applies to names that are read from then on."""

import json
import logging
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.engine import feed, make_engine
from support.packets import MINUTE, SECOND, START, Frame, merged, user, visit
from support.parts import PROGRAM, capture_of
from support.waiting import PATIENCE_S, running

import zanon_net
from zanon_net import _core
from zanon_net.system.signals import Interruption

pytestmark = pytest.mark.usefixtures("hangups_end")
SHARED, LISTED = b"www.shared.example", b"shop.listed.example"


def visits(t_ns: int, first: int) -> list[Frame]:
    """Two users of each of two names."""
    return merged(
        visit(user(first + n), host, t_ns + n * SECOND)
        for n, host in enumerate([SHARED, SHARED, LISTED, LISTED])
    )


@pytest.fixture
def hours(tmp_path: Path) -> list[Path]:
    """Captures with the same names, one after the other."""
    paths = [tmp_path / f"{n}.pcap" for n in range(3)]
    for n, path in enumerate(paths):
        path.write_bytes(capture_of(visits(START + n * MINUTE, 10 * n)))
    return paths


def released(path: Path) -> list[list[str]]:
    """The names that left in each minute."""
    names: list[list[str]] = [[], [], []]
    for line in path.read_text().splitlines():
        observation = json.loads(line)
        names[(observation["t_ns"] - START) // MINUTE].append(observation["name"])
    return names


class Operator:
    """Writes the list, and sends SIGHUP, when each capture has been read."""

    def __init__(self, never: Path, lists: list[str | None], frames: int) -> None:
        self._never, self._lists, self._frames = never, lists, frames

    def __call__(self, _done: int, _total: int, packets: int) -> None:
        if self._lists and packets >= self._frames:
            text = self._lists.pop(0)
            self._frames += self._frames
            if text is None:
                self._never.unlink()
            else:
                self._never.write_text(text)
            signal.raise_signal(signal.SIGHUP)


def reread(
    hours: list[Path], tmp_path: Path, lists: list[str | None], **settings: Any
) -> tuple[zanon_net.Report, list[list[str]]]:
    never = tmp_path / "never.txt"
    never.write_text("other.example\n")
    operator = Operator(never, lists, len(visits(START, 0)))
    with Interruption(rotates=True) as interruption:
        report = zanon_net.run(
            hours,
            out=tmp_path / "out",
            progress=operator,
            interruption=interruption,
            z=1,
            never=never,
            format=("jsonl", "observations"),
            **settings,
        )
    (tmp_path / "all").write_text(
        "".join(path.read_text() for path in sorted((tmp_path / "out").glob("obs*.jsonl")))
    )
    return report, released(tmp_path / "all")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_new_list_applies_to_names_that_are_read_then(
    hours: list[Path], tmp_path: Path, caplog: pytest.LogCaptureFixture, workers: int
) -> None:
    caplog.set_level(logging.INFO, "zanon_net")
    lists: list[str | None] = ["# of today\nlisted.example\nother.example\n", "other.example\n"]
    report, names = reread(hours, tmp_path, lists, workers=workers)
    both = [SHARED.decode()] * 2 + [LISTED.decode()] * 2
    assert names == [both, both[:2], both]
    assert report.counters["suppressed_never_list"] == 2
    assert report.manifest["never_reread"] == {"times": 2, "suffixes": 1}
    said = [record.getMessage() for record in caplog.records if "never" in record.getMessage()]
    assert said == [f"never: {tmp_path / 'never.txt'} was read again: {n} suffixes" for n in (2, 1)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("listed.example\nno name!\n", "line 2 is not a hostname suffix such as example.com"),
        (None, "cannot read "),
        ("# nothing\n", "holds no suffix"),
    ],
)
def test_a_bad_new_list_keeps_the_one_before(
    hours: list[Path],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    text: str | None,
    problem: str,
) -> None:
    report, names = reread(hours, tmp_path, ["listed.example\n", text])
    assert [len(of_minute) for of_minute in names] == [4, 2, 2]
    assert report.manifest["never_reread"] == {"times": 1, "suffixes": 1}
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert problem in warnings[0].getMessage()
    assert warnings[0].getMessage().endswith("; the list from before stays in use")


def test_a_list_of_texts_is_no_file_to_read_again(hours: list[Path], tmp_path: Path) -> None:
    hangups = iter([signal.SIGHUP])

    def hang_up(_done: int, _total: int, _packets: int) -> None:
        for number in hangups:
            signal.raise_signal(number)

    with Interruption(rotates=True) as interruption:
        report = zanon_net.run(
            hours,
            out=tmp_path / "out",
            progress=hang_up,
            interruption=interruption,
            z=1,
            never=["listed.example"],
        )
    assert "never_reread" not in report.manifest
    assert report.counters["suppressed_never_list"] == 6


def test_packets_reads_the_list_again_and_goes_on(hours: list[Path], tmp_path: Path) -> None:
    never, out = tmp_path / "never.txt", tmp_path / "out.pcap"
    never.write_text("other.example\n")
    words = [*PROGRAM[:-1], "packets", "-", str(out), "--z", "1", "--never", str(never)]
    words += ["--status", "100ms"]
    with running(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(hours[0].read_bytes())
        process.stdin.flush()
        taken = f"packets {len(visits(START, 0))} "
        assert any(taken in line.decode() for line in process.stderr)
        never.write_text("listed.example\nshared.example\n")
        process.send_signal(signal.SIGHUP)
        again = f"zanon-net: never: {never} was read again: 2 suffixes\n"
        assert any(line.decode() == again for line in process.stderr)
        process.stdin.write(hours[1].read_bytes()[24:])
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0
    counters = json.loads((tmp_path / "out.pcap.manifest.json").read_text())["decisions"]
    assert counters["suppressed"]["never_list"] == 4


def test_an_engine_without_memory_keeps_its_list() -> None:
    engine = make_engine(z=1, never=[b"listed.example"])
    _core.fail_allocation(1)
    try:
        with pytest.raises(zanon_net.CapacityError, match="no memory for a list of 1 suffixes"):
            engine.set_never([b"shared.example"])
    finally:
        _core.fail_allocation(0)
    feed(engine, visits(START, 0))
    assert engine.stats["suppressed_never_list"] == 2
    engine.set_never([])
    feed(engine, visits(START + MINUTE, 10))
    engine.finish()
    assert engine.stats["suppressed_never_list"] == 2
    engine.close()
