# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Coarse packets as tshark follows them: no segment is missing or repeated that was not before."""

import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from oracle.coarse import BLOCK
from scenario.transfers import Plan, Transfer
from support.packet_readers import call, complaints
from support.packet_run import emitted, write_pcap
from support.packets import SECOND, SERVER_ADDRESS, Frame, merged

pytestmark = pytest.mark.source

MISSING = {"lost_segment", "ack_lost_segment"}
REPEATED = {"retransmission", "fast_retransmission", "spurious_retransmission"}
REPEATED |= {"out_of_order", "keep_alive"}
WINDOW = {"zero_window", "window_full", "window_update"}
FLAGS = sorted(MISSING | REPEATED | WINDOW)


def analysis(frames: Sequence[Frame], path: Path) -> list[set[str]]:
    """What tshark says of each frame's place in its stream."""
    words = [word for name in FLAGS for word in ("-e", f"tcp.analysis.{name}")]
    text = call("tshark", "-n", "-r", write_pcap(path, frames), "-T", "fields", *words)
    rows = [line.split("\t") for line in text.split("\n")[:-1]]
    return [{name for name, value in zip(FLAGS, row, strict=True) if value} for row in rows]


def connections(dice: random.Random) -> list[Frame]:
    """Connections to a rare name each, with faults."""
    plan = Plan(sizes=(20_000, 5 * BLOCK), faults=0.2)
    plans = [
        replace(
            plan,
            client=f"10.7.0.{n}",
            server=SERVER_ADDRESS,
            host=b"%d.example" % n,
            starts=(2**32 - dice.randrange(90_000), dice.randrange(2**32)),
            segment=dice.choice((536, 1460, 9000)),
            whole=n % 5 != 0,
        )
        for n in range(1, 16)
    ]
    return merged(Transfer(one, dice).frames for one in plans)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_misses_no_more_than_before(tmp_path: Path) -> None:
    given = connections(random.Random(7))
    run = emitted(given, z=2, coarse_suppressed=True, hold_ns=SECOND)
    assert [frame.t_ns for frame in run.frames] == [frame.t_ns for frame in given]
    before = analysis(given, tmp_path / "in.pcap")
    after = analysis(run.frames, tmp_path / "out.pcap")
    for old, new in zip(before, after, strict=True):
        assert new & MISSING <= old
        assert not new & REPEATED or old & REPEATED
        assert not new & WINDOW
    for kind in (MISSING, REPEATED):
        assert sum(bool(one & kind) for one in before) > 20  # and there is something to see
        assert any(one & kind for one in after)
    assert complaints(tmp_path / "out.pcap") == {}
