# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""E2E and OPTIONS columns against an oracle, and case by case."""

import itertools
import struct
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.path import Direction
from support.engine import run
from support.examples import examples
from support.packets import ACK, CLIENT, MS, PSH, SERVER, START, SYN, Frame, Tcp

SETS = ("core", "e2e", "options")
C, S = CLIENT, SERVER
ISN = (1000, 500_000)


def row(frames: list[Frame]) -> dict[str, object]:
    """The flow's JSON record, which has every set also when the flow is not complete."""
    return run(frames, z=1, columns=SETS).flow


@dataclass(frozen=True)
class Segment:
    """One segment of a conversation: which side, from which byte, how many, and what it acks."""

    side: int
    at: int
    n: int
    ack: int
    wait_ms: int


segments = st.builds(
    Segment,
    side=st.sampled_from([C, S]),
    at=st.integers(0, 12).map(lambda n: 10 * n),
    n=st.sampled_from([0, 5, 10, 10, 20, 40]),
    ack=st.integers(0, 16).map(lambda n: 10 * n),
    wait_ms=st.integers(1, 9),
)


@given(st.lists(segments, max_size=40))
@settings(max_examples=examples(200), deadline=None)
def test_round_trips_are_the_oracles(conversation: list[Segment]) -> None:
    talk = Tcp(step_ns=0).segment(C, SYN).wait(MS).segment(S, SYN | ACK)
    sides = [Direction(), Direction()]
    sides[C].send(0, 1, START)
    sides[S].send(0, 1, START + MS)
    sides[C].acknowledge(1, START + MS)
    for one in conversation:
        talk.wait(one.wait_ms * MS)
        seq, ack = ISN[one.side] + 1 + one.at, ISN[1 - one.side] + 1 + one.ack
        talk.segment(one.side, ACK, bytes(one.n), seq=seq, ack=ack)
        if one.n:
            sides[one.side].send(1 + one.at, 1 + one.at + one.n, talk.t_ns)
        sides[1 - one.side].acknowledge(1 + one.ack, talk.t_ns)
    told = row(talk.frames)
    for prefix, side in zip("cs", sides, strict=True):
        samples = side.samples
        assert told[f"{prefix}_rtt_cnt"] == len(samples)
        if samples:
            mean = sum(samples) // len(samples) / MS
            assert told[f"{prefix}_rtt_avg"] == pytest.approx(mean, abs=2e-6)
            assert told[f"{prefix}_rtt_min"] == min(samples) / MS
            assert told[f"{prefix}_rtt_max"] == max(samples) / MS


def test_a_long_flight_is_bounded_and_merges_when_acknowledged() -> None:
    talk = Tcp().handshake()
    for _ in range(500):
        talk.segment(C, ACK, bytes(100))
    talk.segment(S, ACK)
    told = row(talk.say(b"x").frames)
    assert told["c_rtt_cnt"] == 3
    assert (told["c_cwin_max"], told["c_mss_max"], told["c_mss_min"]) == (50_000, 100, 1)


def test_sequence_numbers_wrap() -> None:
    talk = Tcp(next=[2**32 - 50, 7]).handshake()
    for _ in range(20):
        talk.say(bytes(10)).say(bytes(20), S)
    told = row(talk.frames)
    assert (told["c_rtt_cnt"], told["s_rtt_cnt"]) == (21, 21)
    assert told["c_pkts_retx"] == 0


# ---- options and windows ------------------------------------------------------------------------


def with_options(frame: Frame, options: bytes, window: int = 100, ttl: int = 64) -> Frame:
    """The segment of a frame with TCP options of a multiple of four bytes."""
    data = bytearray(frame.data)
    data[22] = ttl
    data[14 + 2 : 14 + 4] = struct.pack(">H", len(data) - 14 + len(options))
    data[34 + 12] = (5 + len(options) // 4) << 4
    data[34 + 14 : 34 + 16] = struct.pack(">H", window)
    data[54:54] = options
    return Frame(frame.t_ns, bytes(data), len(data))


MSS, SCALE, SACK_OK, TIMES = b"\2\4\5\xb4", b"\1\3\3\7", b"\1\1\4\2", b"\1\1\x08\x0a" + bytes(8)
SACK = b"\1\1\5\x0a" + bytes(8)


def opened(client: bytes, server: bytes, *more: tuple[int, bytes, int]) -> dict[str, object]:
    """A handshake with these options, then segments: (side, options, window)."""
    talk = Tcp().handshake()
    for side, _options, _window in more:
        talk.segment(side, ACK)
    options = [(client, 100), (server, 200), (b"", 50), *((o, w) for _s, o, w in more)]
    frames = [with_options(f, *o) for f, o in zip(talk.frames, options, strict=True)]
    return row(frames)


def test_options() -> None:
    told = opened(MSS + SCALE + SACK_OK + TIMES, MSS + SCALE, (C, SACK, 10), (C, SACK + SACK, 10))
    names = ("f1323_opt", "tm_opt", "win_scl", "sack_opt", "sack_cnt", "mss")
    assert [told[f"c_{name}"] for name in names] == [1, 1, 7, 1, 2, 1460]
    assert [told[f"s_{name}"] for name in names] == [1, 0, 7, 0, 0, 1460]


@pytest.mark.parametrize(
    ("options", "mss"),
    [(b"\2\4\5\xb4", 1460), (b"\0\2\4\5\xb4\0\0\0", 0), (b"\2\0\0\0", 0), (b"\2\x28\5\xb4", 0)],
)
def test_options_that_end_or_lie(options: bytes, mss: int) -> None:
    assert opened(options, b"")["c_mss"] == mss


def test_windows_are_scaled_when_both_asked() -> None:
    told = opened(SCALE, SCALE, (S, b"", 10), (S, b"", 0))
    assert (told["c_win_max"], told["c_win_min"]) == (50 << 7, 100)
    assert (told["s_win_max"], told["s_win_min"], told["s_win_0"]) == (10 << 7, 200, 1)
    told = opened(SCALE, b"", (C, b"", 10))
    assert (told["c_win_max"], told["c_win_min"], told["c_win_scl"]) == (100, 10, 0)


def test_hop_limits() -> None:
    talk = Tcp().handshake()
    frames = [with_options(f, b"", ttl=t) for f, t in zip(talk.frames, (64, 250, 60), strict=True)]
    told = row(frames)
    assert [told[f"{side}_ttl_{end}"] for side in "cs" for end in ("min", "max")] == [
        *(60, 64),
        *(250, 250),
    ]


# ---- why a segment came again -------------------------------------------------------------------


def identified(frames: list[Frame]) -> list[Frame]:
    """Each packet with an IP identification of its own."""
    changed = []
    for n, frame in enumerate(frames):
        data = bytearray(frame.data)
        data[18:20] = struct.pack(">H", n + 1)
        changed.append(Frame(frame.t_ns, bytes(data), frame.wire))
    return changed


def anomalies(talk: Tcp, side: str = "c") -> dict[str, object]:
    told = row(identified(talk.frames))
    names = ("rto", "fs", "reor", "dup", "unk", "fc", "unrto", "unfs")
    return {name: told[f"{side}_pkts_{name}"] for name in names if told[f"{side}_pkts_{name}"]}


def lossy() -> Tcp:
    """Some round trips of 1 ms each way, so that they are known."""
    talk = Tcp().handshake()
    for _ in range(3):
        talk.say(bytes(100)).say(bytes(100), S)
    return talk


def test_by_timeout() -> None:
    talk = lossy().segment(C, ACK, bytes(100)).wait(400 * MS)
    assert anomalies(talk.segment(C, ACK, bytes(100), seq=talk.next[C] - 100)) == {"rto": 1}


def test_by_duplicate_acknowledgements() -> None:
    talk = lossy()
    lost = talk.next[C]
    talk.next[C] += 100
    for _ in range(5):
        talk.segment(C, ACK, bytes(100)).segment(S, ACK, ack=lost)
    talk.segment(C, ACK, bytes(100), seq=lost)
    assert anomalies(talk) == {"fs": 1}


def test_reordered() -> None:
    talk = lossy()
    late = talk.next[C]
    talk.next[C] += 100
    talk.segment(C, ACK, bytes(100)).wait(-MS // 2)
    assert anomalies(talk.segment(C, ACK, bytes(100), seq=late)) == {"reor": 1}


def test_again_although_acknowledged() -> None:
    talk = lossy().say(bytes(100)).wait(400 * MS)
    assert anomalies(talk.segment(C, ACK, bytes(100), seq=talk.next[C] - 100)) == {"unrto": 1}


def test_duplicated_by_the_network() -> None:
    talk = lossy().segment(C, ACK, bytes(100))
    frames = identified(talk.frames)
    copy = Frame(frames[-1].t_ns + MS, frames[-1].data, frames[-1].wire)
    told = row([*frames, copy])
    assert (told["c_pkts_dup"], told["c_pkts_retx"]) == (1, 1)


def test_a_probe_of_a_closed_window() -> None:
    talk = lossy().say(b"x")
    frames = identified(talk.frames)
    frames[-1] = with_options(frames[-1], b"", window=0)
    probe = lossy().say(b"x").wait(900 * MS)
    probe.segment(C, ACK, b"x", seq=probe.next[C] - 1)
    told = row([*frames, *identified(probe.frames)[-1:]])
    assert told["c_pkts_fc"] == 1


def test_each_anomaly_is_counted_once() -> None:
    """Whatever happens, the classes add up to the segments that did not extend the flow."""
    talk = lossy()
    for n, step in itertools.product(range(6), (30, 130, 60)):
        talk.segment(C, PSH | ACK, bytes(50), seq=talk.next[C] - step).wait(n * 40 * MS)
    counted = anomalies(talk)
    told = row(identified(talk.frames))
    assert sum(int(str(n)) for n in counted.values()) >= int(str(told["c_pkts_retx"]))


def test_a_syn_with_another_number() -> None:
    talk = Tcp().segment(C, SYN).segment(C, SYN, seq=2000)
    told = row(talk.frames)
    assert (told["c_syn_retx"], told["c_syn_cnt"]) == (1, 2)
    talk = Tcp().segment(C, SYN).segment(C, SYN, seq=1000)
    assert row(talk.frames)["c_syn_retx"] == 0
