# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What is withheld is withheld from a packet time on, whenever a batch lets the engine look."""

from itertools import pairwise
from typing import Any

import pytest
from support.examples import each
from support.packet_run import Emitted, emitted
from support.packets import (
    ACK,
    FIN,
    MS,
    PSH,
    RST,
    SECOND,
    START,
    SYN,
    Frame,
    Tcp,
    hello,
    request,
    visit,
)

pytestmark = pytest.mark.source

BATCHES = (1, 7, 1 << 14)


def left_of(frames: list[Frame], key_file: str, **more: Any) -> Emitted:
    """What leaves, the same for all batches."""
    chosen = {"key_file": key_file, "hold_ns": SECOND} | more
    runs = [emitted(frames, batch=batch, **chosen) for batch in BATCHES]
    for one, other in pairwise(runs):
        assert one.frames == other.frames
        assert one.dropped() == other.dropped()
        assert one.stats["packets_deadline_missed"] == other.stats["packets_deadline_missed"]
    return runs[0]


@each("quiet_ns", [500 * MS, 999 * MS, 1100 * MS, 3 * SECOND])
@each("end", [(0, RST | ACK), (1, RST | ACK), (0, FIN | ACK), (0, SYN)])
@each("exact", [False, True])
def test_a_hello_that_ends_in_its_middle_withholds_its_flow(
    key_file: str, end: tuple[int, int], quiet_ns: int, exact: bool
) -> None:
    """Its server is one that three other users share."""
    frames = []
    for n in (1, 2, 3):
        frames += visit(f"10.7.1.{n}", b"shared.example", START + n * 20 * MS)
    whole = hello(b"rare.example")
    talk = Tcp("10.7.0.9", t_ns=START + SECOND)
    talk.handshake()
    talk.segment(0, PSH | ACK, whole[: len(whole) // 2])
    before = len(talk.frames)
    talk.segment(*end)
    later = Tcp("10.7.0.8", server="198.51.100.99", t_ns=talk.t_ns + quiet_ns)
    later.handshake()
    run = left_of(frames + talk.frames + later.frames, key_file, z=2, exact=exact)
    times = {frame.t_ns for frame in talk.frames[:before]}  # a SYN begins a flow of its own
    server = bytes([198, 51, 100, 7])
    assert not any(server in frame.data for frame in run.frames if frame.t_ns in times)
    if not exact:
        assert not times & {frame.t_ns for frame in run.frames}


@pytest.mark.parametrize("leaps", [[], [2**31 - 101, 2**32 - 2**19], [2**30, 2**31 + 2**29]])
def test_numbers_that_leap_show_nothing_late(key_file: str, leaps: list[int]) -> None:
    """Zeros were due in the place of what a response then says."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    talk = Tcp("10.7.0.9", ports=(40000, 80))
    talk.handshake()
    talk.segment(0, PSH | ACK, request(b"a.example"))
    first = talk.next[1]
    talk.segment(1, PSH | ACK, b"q" * len(answer))
    for leap in leaps:
        talk.segment(1, PSH | ACK, b"z" * 100, seq=(first + leap) % 2**32)
    talk.wait(1500 * MS)
    for _time in range(2):
        talk.segment(1, PSH | ACK, answer, seq=first)
    talk.wait(3 * SECOND)
    talk.segment(0, ACK)
    run = left_of(talk.frames, key_file, z=1)
    assert run.stats["packets_deadline_missed"] == 2
    assert not any(b"HTTP/1.1 200" in frame.data for frame in run.frames)


def test_records_of_a_segment_have_a_bound(key_file: str) -> None:
    talk = Tcp("10.7.0.9")
    talk.handshake()
    talk.segment(0, PSH | ACK, hello(b"a.example"))
    talk.segment(1, PSH | ACK, b"\x16\x03\x03\x00\x01\x00" * 200)
    run = left_of(talk.frames, key_file, z=1)
    assert run.stats["packets_messages_full"] >= 200 - 64
