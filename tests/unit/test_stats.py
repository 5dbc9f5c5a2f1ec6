# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Counters: each has a name and a text, and nothing is lost without one."""

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine import Outcome, make_engine, run, run_capture
from support.examples import examples
from support.packets import HOUR, START, Frame, Tcp, Udp, dns, hello, request, visit

from zanon_net._core import STAT_INFO

NAMES_SEEN = ("names_tls", "names_http", "names_dns", "names_quic")


def test_every_counter_has_one_name_and_a_text() -> None:
    names = [name for name, _group, _text in STAT_INFO]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)
    texts = [(group, text) for _name, group, text in STAT_INFO]
    assert len(texts) == len(set(texts))
    assert all(re.fullmatch(r"[a-z]+", group) and text for group, text in texts)


def test_groups_are_in_one_piece() -> None:
    """The manifest and the summary print them in the order of the list."""
    groups = [group for _name, group, _text in STAT_INFO]
    starts = [group for i, group in enumerate(groups) if i == 0 or groups[i - 1] != group]
    assert len(starts) == len(set(starts))
    for name, group, _text in STAT_INFO:
        if name.startswith(("drop_", "suppressed_")):
            assert group == name.partition("_")[0]


def test_a_new_engine_has_counted_nothing() -> None:
    engine = make_engine()
    assert list(engine.stats) == [name for name, _group, _text in STAT_INFO]
    assert not any(engine.stats.values())
    assert engine.time_range_ns is None
    assert engine.users == 0


def group(outcome: Outcome, wanted: str) -> int:
    return sum(outcome.stats[name] for name, group, _text in STAT_INFO if group == wanted)


def check_sums(outcome: Outcome) -> None:
    """What every run must obey."""
    stats = outcome.stats
    later = ("drop_flow_table_full", "drop_flow_closed")  # decoded packets that no flow took
    undecoded = group(outcome, "drop") - sum(stats[name] for name in later)
    assert stats["frames"] == stats["packets_tcp"] + stats["packets_udp"] + undecoded
    assert stats["flows_tcp"] + stats["flows_udp"] == stats["flows_closed"]
    assert stats["flows_closed"] == stats["records"] + stats["flows_external"]
    assert stats["records"] == len(outcome.flows)
    assert stats["released"] + stats["dns_released"] == len(outcome.observations)
    decided = ("released", "suppressed_below_z", "suppressed_too_late")
    assert stats["observations"] == sum(stats[name] for name in decided)
    assert stats["dns_observations"] == stats["dns_released"] + stats["dns_suppressed"]
    status = Counter(flow["name_status"] for flow in outcome.flows)
    assert status.total() == stats["records"]


@pytest.mark.parametrize("z", [1, 2, 5, 20])
@pytest.mark.parametrize("established", [True, False])
def test_every_name_is_accounted_for(demo_pcap: Path, z: int, established: bool) -> None:
    """Seen = decided + repeated + refused; nothing of the demo is malformed or cut."""
    outcome = run_capture(demo_pcap, z=z, established=established)
    check_sums(outcome)
    stats = outcome.stats
    refused = ("unconfirmed", "invalid", "never_list", "home_name", "outside")
    fates = stats["observations"] + stats["dns_observations"] + stats["names_repeated"]
    fates += sum(stats[f"suppressed_{why}"] for why in refused)
    assert sum(stats[name] for name in NAMES_SEEN) == fates
    assert stats["suppressed_incomplete"] == stats["suppressed_conflict"] == 0


def test_no_counter_of_a_name_without_a_name() -> None:
    outcome = run(Tcp(ports=(40000, 9)).handshake().say(b"\0" * 50).close().frames)
    assert not any(outcome.stats[name] for name in NAMES_SEEN)
    assert group(outcome, "suppressed") == 0


GOOD = [
    *visit("10.7.0.1", b"www.example.org", START),
    *Udp().lookup(b"www.example.org").frames,
    *Tcp(ports=(1, 80)).handshake().say(request(b"www.example.org")).frames,
    *Tcp("2001:db8::1", "2001:db8::2", tags=(0x8100,)).handshake().say(hello(b"a.b")).frames,
    *Udp(ports=(9, 53)).send(dns(b"x.y")).frames,
]


@settings(max_examples=examples(100))
@given(data=st.data())
def test_broken_frames_are_counted_too(data: st.DataObject) -> None:
    """Frames of good conversations, some cut, some with bytes changed, some pure noise."""
    frames = []
    for frame in GOOD:
        fate = data.draw(st.sampled_from(["keep", "keep", "cut", "change", "noise", "lose"]))
        content = bytearray(frame.data)
        if fate == "cut":
            content = content[: data.draw(st.integers(0, len(content)))]
        elif fate == "change":
            content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        elif fate == "noise":
            content = bytearray(data.draw(st.binary(max_size=80)))
        if fate != "lose":
            t_ns = frame.t_ns + data.draw(st.sampled_from([0, 0, 0, HOUR, -HOUR, -START - 1]))
            wire = max(frame.wire, len(content)) if fate == "cut" else len(content)
            frames.append(Frame(t_ns, bytes(content), wire))
    for z in (1, 2):
        outcome = run(frames, z=z, established=data.draw(st.booleans()))
        check_sums(outcome)
        assert outcome.stats["drop_timestamp"] <= sum(frame.t_ns < 0 for frame in frames)
        assert outcome.stats["frames_cut"] == sum(len(f.data) < f.wire for f in frames)
        assert outcome.stats["bytes_captured"] == sum(len(f.data) for f in frames)
        assert outcome.stats["bytes_wire"] == sum(f.wire for f in frames)
