# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Opening and closing of flows, next to the same in Python and to a walk over the frames."""

from collections import OrderedDict

import numpy as np
import pytest
from dpkt_peer import Job
from engines import SETS, close_flows, engine_for, full_engine
from flow_traffic import Batch, conversations, openings
from measuring import Measure, Size, peer

FLOWS = 100_000
DPKT_SHARE = 20
DPKT, WALK, ORDERED = "dpkt", "memory walk", "OrderedDict"
IP, L4 = 14, 34


def frames_of(batches: list[Batch], most: int) -> list[bytes]:
    """Returns the first frames, at most `most`."""
    frames: list[bytes] = []
    for data, _times, captured, _lengths in batches:
        end = 0
        for size in captured[: most - len(frames)].tolist():
            frames.append(data[end : end + size])
            end += size
    return frames


def walk(batches: list[Batch]) -> int:
    """Reads every word of the frames."""
    return sum(
        int(np.frombuffer(batch[0], np.uint64, len(batch[0]) // 8).sum()) for batch in batches
    )


@pytest.mark.parametrize("who", [*SETS, peer(DPKT), peer(WALK)])
def test_opening(who: str, size: Size, measure: Measure) -> None:
    count = size.of(FLOWS)
    batches = list(openings(count))
    group = "flows: opening, a SYN each"
    if who == WALK:
        measure(group, walk, count, prepare=lambda: (batches,))
        return
    if who == DPKT:
        frames = frames_of(batches, max(count // DPKT_SHARE, 10))

        def job() -> int:
            peer = Job(20, 3600)
            for frame in frames:
                peer.packet(0, frame)
            return len(peer.flows)

        assert measure(group, job, len(frames)) == len(frames)
        return
    live, used = full_engine(engine_for(SETS[who], count, ()), batches).flow_memory
    assert live == count
    facts = {"bytes a live flow:": f"{used / live:.1f}"}

    def prepare() -> tuple[object, list[Batch]]:
        return engine_for(SETS[who], count, ()), batches

    measure(group, full_engine, count, prepare=prepare, **facts)


@pytest.mark.parametrize("who", [*SETS, peer(ORDERED)])
def test_closing(who: str, size: Size, measure: Measure) -> None:
    """Flows of five segments or of two datagrams become idle at once. Nothing is written."""
    count = size.of(FLOWS)
    batches = list(conversations(count))
    group = "flows: closing"
    if who == ORDERED:
        keys = [(frame[IP + 12 : L4 + 4], frame[IP + 9]) for frame in frames_of(batches, 5 * count)]
        flows = OrderedDict.fromkeys(keys, 0.0)

        def job(flows: OrderedDict[tuple[bytes, int], float]) -> None:
            while flows and next(iter(flows.values())) < 1:
                flows.popitem(last=False)

        measure(group, job, len(flows), prepare=lambda: (flows.copy(),))
        return

    def prepare() -> tuple[object]:
        return (full_engine(engine_for(SETS[who], count, ()), batches),)

    measure(group, close_flows, count, prepare=prepare)
