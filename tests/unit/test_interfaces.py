# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The system's counts of an interface's losses, and the status of a live run."""

import os
import pwd
import re
from pathlib import Path

import pytest
from support.engine import feed, make_engine
from support.packets import crowd

from zanon_net.errors import CaptureError, ConfigError
from zanon_net.pipeline import status
from zanon_net.pipeline.facts import Drops
from zanon_net.pipeline.interfaces import Losses, interfaces_of, read_losses
from zanon_net.pipeline.privileges import explain_missing, find_user
from zanon_net.pipeline.status import Status, StatusClock

NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
    lo:   0       0    0    0    0     0          0         0        0       0    0    0
  eth0: 900      70    6    5    4     3          2         1        9       8    7   99
eth0.5:1000       8    0 {:4}    0     0          0         0        0       0    0    0
"""


def test_losses_are_the_columns_drop_and_fifo() -> None:
    assert read_losses(NET_DEV.format(7)) == {"lo": 0, "eth0": 9, "eth0.5": 7}


def test_losses_count_from_the_start_and_over_a_reset(tmp_path: Path) -> None:
    source = tmp_path / "dev"
    source.write_text(NET_DEV.format(7))
    one, every = Losses("eth0.5", source), Losses("any", source)
    counts = []
    for now in (7, 10, 2, 2, 6):
        source.write_text(NET_DEV.format(now))
        counts.append((one.refresh(), every.refresh()))
    assert [count for count, _ in counts] == [0, 3, 5, 5, 9]
    assert counts[1] == (3, 3)
    source.unlink()
    assert one.refresh() == 9


def test_losses_of_any_when_interfaces_come_and_go(tmp_path: Path) -> None:
    """What the others lost before the run began stays out of it."""
    source = tmp_path / "dev"
    source.write_text(NET_DEV.format(7))
    every, counts = Losses("any", source), []
    without = "".join(NET_DEV.format(7).splitlines(keepends=True)[:-1])
    for text in (without, NET_DEV.format(2), NET_DEV.format(3)):
        source.write_text(text)
        counts.append(every.refresh())
    assert counts == [0, 2, 3]
    source.unlink()
    assert every.refresh() == 3
    source.write_text(NET_DEV.format(4).replace("eth0:", "old0:"))  # another name, and its losses
    assert every.refresh() == 4


def test_losses_from_the_first_look_on(tmp_path: Path) -> None:
    source = tmp_path / "dev"
    one, every = Losses("eth0.5", source), Losses("any", source)
    without = "".join(NET_DEV.format(7).splitlines(keepends=True)[:-1])
    counts = []
    for text in (NET_DEV.format(900), without, NET_DEV.format(902)):
        source.write_text(text)
        counts.append((one.refresh(), every.refresh()))
    assert counts == [(0, 0), (0, 0), (2, 2)]


def test_losses_of_an_interface_whose_name_is_not_ascii(tmp_path: Path) -> None:
    source = tmp_path / "dev"
    for name in ("b\u00fcro0", "e\u2028\u3000", os.fsdecode(b"\xff0")):  # as socket has them
        text = NET_DEV.replace("eth0.5", name)
        source.write_bytes(os.fsencode(text.format(7)))
        one = Losses(name, source)
        source.write_bytes(os.fsencode(text.format(9)))
        assert one.refresh() == 2


def test_losses_of_an_unknown_interface(tmp_path: Path) -> None:
    assert Losses("wlan0", tmp_path / "missing").refresh() == 0


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
    one = Status(61.4, 1234567, 20000.4, 1.5e9, 99, 7, 50, 30, 40, Drops(1, 2, 3), 1 << 30)
    assert one.line() == (
        "running 61 s, packets 1,234,567 (20,000/s), on the wire 1.500 Gbit/s, flows 99 (7 open),"
        " observations 50, names released 75.0%,"
        " dropped 1 by the ring, 2 by the interface, 3 by us, memory 1,024 MiB"
    )
    assert one.rows()[0] == ("running", "61 s")


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
