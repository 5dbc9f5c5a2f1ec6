# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The system's counts of an interface's losses, and the status of a live run."""

import json
import os
import pwd
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from support.engine import feed, make_engine
from support.packets import START, crowd

from zanon_net._core import PacketEngine
from zanon_net.config.settings import Config
from zanon_net.errors import CaptureError, ConfigError
from zanon_net.output.sink import Sent
from zanon_net.pipeline import status
from zanon_net.pipeline.facts import Drops, Loss
from zanon_net.pipeline.interfaces import Losses, SystemCounters, interfaces_of
from zanon_net.pipeline.link_counters import LinkCounters, read_backlog, read_links
from zanon_net.pipeline.live import LiveWarnings
from zanon_net.pipeline.privileges import explain_missing, find_user
from zanon_net.pipeline.status import Status, StatusClock


class Script(SystemCounters):
    """Counters that a test sets: (missed, dropped) by interface, and the backlog's."""

    def __init__(self, **interfaces: tuple[int, int]) -> None:
        self.interfaces = interfaces
        self.full = {0: 1000, 1: 0}

    def links(self, interface: str | None) -> Mapping[str, LinkCounters]:
        """See SystemCounters."""
        wanted = self.interfaces if interface is None else {interface: self.interfaces[interface]}
        return {name: LinkCounters(*counts) for name, counts in wanted.items()}

    def backlog(self) -> Mapping[int, int]:
        """See SystemCounters."""
        return dict(self.full)


def test_losses_count_from_the_start_and_over_a_reset() -> None:
    system = Script(lo=(0, 0), eth0=(9, 0), dsl0=(7, 0))
    one, every = Losses("dsl0", system), Losses("any", system)
    counts = []
    for now in (7, 10, 2, 2, 6):
        system.interfaces["dsl0"] = (now, 0)
        counts.append((one.refresh(), every.refresh()))
    assert [count for count, _ in counts] == [0, 3, 5, 5, 9]
    assert counts[1] == (3, 3)


def test_losses_of_any_when_interfaces_come_and_go() -> None:
    """What the others lost before the run began stays out of it."""
    system = Script(eth0=(9, 0), dsl0=(7, 0))
    every, counts = Losses("any", system), []
    for now in (
        {"eth0": (9, 0)},
        {"eth0": (9, 0), "dsl0": (2, 0)},
        {"eth0": (9, 0), "dsl0": (3, 0)},
    ):
        system.interfaces = now
        counts.append(every.refresh())
    assert counts == [0, 2, 3]
    system.interfaces = {}
    assert every.refresh() == 3
    system.interfaces = {"old0": (9, 0), "dsl0": (4, 0)}  # another name, and its losses
    assert every.refresh() == 4


def test_frames_that_the_system_does_not_handle_are_no_losses() -> None:
    system = Script(eth0=(0, 50))
    losses = Losses("eth0", system)
    system.interfaces["eth0"] = (0, 1981)
    assert losses.refresh() == losses.refresh() == 0
    system.full[0] += 300  # of other interfaces
    assert losses.refresh() == losses.refresh() == 0


@pytest.mark.parametrize("first", ["dropped", "full"])
def test_frames_that_a_full_backlog_dropped_are_losses(first: str) -> None:
    """Also where one of the two counters was read before the frame and the other behind it."""
    system = Script(eth0=(0, 50))
    losses = Losses("eth0", system)
    for turn in ("first", "second", "third"):
        if (first == "dropped") == (turn == "first"):
            system.interfaces["eth0"] = (0, 60)
        else:
            system.full[1] = 10
        losses.refresh()
    assert losses.count == 10


def test_the_backlog_s_counters_wrap() -> None:
    system = Script(eth0=(0, 0))
    system.full[0] = (1 << 32) - 3
    losses = Losses("eth0", system)
    system.full[0] = 4
    system.interfaces["eth0"] = (0, 7)
    assert losses.refresh() == 7


def test_the_backlog_s_columns() -> None:
    assert read_backlog("0011 0000000a 0\n001b ffffffff 1\n") == {0: 10, 1: 0xFFFFFFFF}
    row = " ".join(["0"] * 12)
    assert read_backlog(f"{row} 00000003 0\n{row} 0000000b 0\n") == {3: 0, 11: 0}


def test_losses_of_an_unknown_interface() -> None:
    assert Losses("wlan0").refresh() == 0


def test_the_system_s_counters_of_every_interface() -> None:
    if sys.platform != "linux":
        pytest.skip("rtnetlink is Linux's")
    names = {name for _index, name in socket.if_nameindex()}
    assert set(read_links(None)) == names
    for name in names:
        assert set(read_links(name)) == {name}


def test_a_file_goes_before_an_interface(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert interfaces_of(["lo", "-", "any", "other.pcap"]) == ["lo", "any"]
    Path("lo").write_bytes(b"")
    assert interfaces_of(["lo", Path("any")]) == ["any"]


# ---- status -------------------------------------------------------------------------------------


def test_a_snapshot_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(status.time, "monotonic", lambda: now[0])
    engine, told, lost = make_engine(z=2), [], Drops(3, 2, 1)
    clock = StatusClock(engine, lambda: lost, 10.0, told.append)
    frames = crowd(b"shared.example", 3)
    feed(engine, frames)
    for moment in (100.0, 109.9, 110.5, 119.9, 120.0):
        now[0] = moment
        clock.tick()
    assert [one.seconds for one in told] == [10.5, 20.0]
    first, second = told
    assert first.packets == second.packets == len(frames)
    assert first.packets_per_s == pytest.approx(len(frames) / 10.5)
    octets = sum(frame.wire for frame in frames)
    assert first.bits_per_s == pytest.approx(octets * 8 / 10.5)
    assert (second.packets_per_s, second.bits_per_s) == (0, 0)
    assert (first.flows, first.flows_open) == (3, 0)
    assert (first.observations, first.released_share) == (3, pytest.approx(2 / 3))
    assert first.drops == lost
    assert first.memory_bytes == engine.memory_bytes
    now[0] = 153.0  # intervals that nobody asked about are not made up for
    clock.tick()
    clock.tick()
    assert len(told) == 3


def test_a_status_line() -> None:
    one = Status(START, 61.4, 1234567, 20000.4, 1.5e9, 99, 7, 50, 30, 40, Drops(1, 2, 3), 1 << 30)
    assert one.line() == (
        "2023-11-14T22:00:00Z, running 61 s, packets 1,234,567 (20,000/s),"
        " on the wire 1.500 Gbit/s, flows 99 (7 open), observations 50, names released 75.0%,"
        " dropped 1 by the ring, 2 by the interface, 3 by us, memory 1,024 MiB"
    )
    assert one.rows()[0] == ("running", "61 s")


def test_a_status_line_of_a_run_that_sends() -> None:
    sent = Sent("eth1", 1200, 90000, 3, 2, 1)
    one = Status(START, 61.4, 1300, 1.0, 1.0, 9, 7, 50, 30, 40, Drops(1, 2, 3), 1 << 30, sent)
    assert (
        "3 by us, left 1,200 through eth1; dropped 3 as its queue was full, 2 above its MTU,"
        " 1 rejected, memory"
    ) in one.line()
    assert (sent.dropped, sent.total) == (6, 1206)
    assert json.loads(one.to_json())["interface"] == sent.to_dict()
    assert Sent.of(sent.to_dict()) == sent
    assert Sent("eth1", 5).warning() is None


# ---- privileges ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nobody-at-all", "a\0b", ""])
def test_an_unknown_user(name: str) -> None:
    with pytest.raises(ConfigError, match="there is no user"):
        find_user(name)


def test_root_is_no_user_to_drop_to() -> None:
    with pytest.raises(ConfigError, match="is root"):
        find_user(pwd.getpwuid(0).pw_name)


def test_only_root_can_become_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ConfigError, match="only root"):
        find_user("nobody")


def test_the_advice_is_one_line() -> None:
    error = explain_missing(CaptureError(1, "interface x cannot be opened"))
    assert error.errno == 1
    assert re.fullmatch(
        r"interface x cannot be opened; [^\n]* setcap cap_net_raw=ep /\S+", str(error)
    )


class Counters:
    """An engine that has counters only."""

    def __init__(self) -> None:
        self.stats = dict.fromkeys(
            ("questions", "questions_unanswered", "suppressed_unanswered", "clock_rebased"), 0
        )
        self.table_stats = {"clock_jumps": 0}


def test_a_loss_is_warned_of_at_once_and_then_at_times(caplog: pytest.LogCaptureFixture) -> None:
    warnings = LiveWarnings(cast(PacketEngine, Counters()), Config(status="20s"))
    told = []
    for now, lost in ((0, 0), (1, 5), (2, 6), (15, 7), (21.5, 7), (22, 7), (60, 7), (61, 8)):
        warnings.see(Loss(Drops(ring=lost), 100) if lost else None, now)
        told.append(len(caplog.messages))
    assert told == [0, 1, 1, 1, 2, 2, 2, 3]
    assert caplog.messages[1].startswith("warning: so far 7 of 100 packets were lost (7.0 %): 7 by")


def test_missing_answers_and_steps_of_the_clock_are_warned_of_in_their_own_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = Counters()
    warnings = LiveWarnings(cast(PacketEngine, engine), Config())
    engine.stats |= {"questions": 50, "questions_unanswered": 7, "suppressed_unanswered": 3}
    warnings.see(None, 1)
    engine.table_stats["clock_jumps"] = 1
    engine.stats["questions_unanswered"] = 8
    warnings.see(None, 2)
    warnings.see(None, 12)
    warnings.see(None, 30)
    missing, step, more = caplog.messages
    assert missing == (
        "warning: so far the counter did not answer 7 of 50 questions in time (--count-hold): 3"
        " names were suppressed for want of an answer"
    )
    assert step == (
        "warning: so far the time of the packets was set back once: all users were forgotten, and"
        " fewer names were released until they were counted again"
    )
    assert more == missing.replace("7 of", "8 of")


@pytest.mark.parametrize(("lost", "share"), [(1, "less than 0.1"), (20, "0.2"), (10_000, "100.0")])
def test_a_loss_in_words(lost: int, share: str) -> None:
    loss = Loss(Drops(interface=lost), 10_000)
    assert loss.text() == (
        f"{lost:,} of 10,000 packets were lost ({share} %): 0 by the ring, {lost:,} by the"
        " interface, 0 by us"
    )


@pytest.mark.parametrize(
    "name", ["", "-", "x" * 127, "x" * 300, "x" * 9000, "a/b", "a\0b", "\udcff"]
)
def test_names_of_no_interface(name: str) -> None:
    """Of any length and with any bytes, they are no error."""
    assert interfaces_of([name]) == []
