# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A run over captures that each hold one direction of a link says how to merge the captures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support import wire
from support.packet_run import write_pcap
from support.packets import HOUR, MINUTE, START, Frame, crowd, patched

import zanon_net

USERS = 20


def directions(frames: Sequence[Frame]) -> tuple[list[Frame], list[Frame]]:
    """The frames that users send, and the frames that users receive."""
    up = [frame for frame in frames if frame.data[26] == 10]
    return up, [frame for frame in frames if frame.data[26] != 10]


def notes(folder: Path, sources: Sequence[Path], **settings: Any) -> list[str]:
    report = zanon_net.run(sources, z=2, format="jsonl", out=folder / "out", **settings)
    return [note for note in report.manifest["notes"] if "mergecap" in note]


def advice(first: str, second: str, more: str = "") -> str:
    return (
        f"{first} and {second} overlap in time and look like two directions of one link{more};"
        f" merge them first: mergecap -w both.pcap {first} {second}"
    )


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("packet_output", [False, True])
def test_two_directions_are_noticed(
    order: int, packet_output: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    up, down = directions(crowd(wire.HOST, USERS))
    sources = [write_pcap(tmp_path / "rx.pcap", up), write_pcap(tmp_path / "tx.pcap", down)]
    expected = advice("rx.pcap", "tx.pcap")
    if packet_output:
        zanon_net.packets(sources[:: 1 - 2 * order], tmp_path / "left.pcap", z=2)
    else:
        assert notes(tmp_path, sources[:: 1 - 2 * order]) == [expected]
    assert caplog.messages.count(expected) == 1


def test_the_later_capture_may_lie_in_another_window(tmp_path: Path) -> None:
    """The clock then takes the time of the second capture for a wrong time, and is set back."""
    frames = [*crowd(wire.HOST, 100), *crowd(wire.HOST, 100, START + 3 * HOUR)]
    up, down = directions(frames)
    sources = [write_pcap(tmp_path / "rx.pcap", up), write_pcap(tmp_path / "tx.pcap", down)]
    assert notes(tmp_path, sources, window="10m") == [advice("rx.pcap", "tx.pcap")]


def test_two_taps_that_rotate(tmp_path: Path) -> None:
    sources = []
    for part in range(3):
        up, down = directions(crowd(wire.HOST, USERS, START + part * MINUTE))
        sources.append(write_pcap(tmp_path / f"rx{part}.pcap", up))
        sources.append(write_pcap(tmp_path / f"tx{part}.pcap", down))
    expected = advice("rx0.pcap", "tx0.pcap", " (2 more such pairs)")
    assert notes(tmp_path, sources) == [expected]


def test_captures_that_follow_each_other_are_none(tmp_path: Path) -> None:
    """Not even with some packets of the next one in the wrong file, or of one direction."""
    frames = crowd(wire.HOST, 3 * USERS)
    for kind, some in (("both", frames), ("up", directions(frames)[0])):
        third = len(some) // 3
        parts = [[*some[:third], *some[third + 3 : third + 6]]]
        parts.append([*some[third : third + 3], *some[third + 6 : 2 * third]])
        parts.append(some[2 * third :])
        sources = [write_pcap(tmp_path / f"{kind}{n}.pcap", part) for n, part in enumerate(parts)]
        (tmp_path / kind).mkdir()
        assert notes(tmp_path / kind, sources) == []


def test_two_whole_captures_are_none(tmp_path: Path) -> None:
    frames = crowd(wire.HOST, USERS)
    others = [patched(frame, 29, b"\x77", frame.t_ns) for frame in frames]
    sources = [write_pcap(tmp_path / "a.pcap", frames), write_pcap(tmp_path / "b.pcap", others)]
    assert notes(tmp_path, sources) == []
