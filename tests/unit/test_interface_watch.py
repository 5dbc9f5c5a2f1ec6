# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The watch of a run's interfaces, look by look, on a system that a test sets."""

import errno
import logging
from typing import Any

import pytest

from zanon_net.errors import CaptureError
from zanon_net.pipeline.facts import Drops, absences
from zanon_net.pipeline.interface_watch import UNKNOWN, InterfaceWatch, missed_by
from zanon_net.pipeline.link_counters import LinkState, read_link_state
from zanon_net.pipeline.live_interfaces import InterfaceFacts

GONE = "went away: The interface disappeared"


class System:
    """Interface eth0 and a run that reads it; it stands in for LiveInterfaces."""

    names = ("eth0",)

    def __init__(self) -> None:
        self.link: LinkState | None = LinkState(3, True, 1000)
        self.is_gone = False
        self.error: str | None = None
        self.attempts: list[int] = []  # the frames that were missed

    def read_link(self, name: str) -> LinkState | None:
        """See read_link_state."""
        assert name == "eth0"
        return self.link

    def gone(self, i: int) -> bool:
        """See LiveInterfaces."""
        assert i == 0
        return self.is_gone

    def reopen(self, i: int, missed: int) -> None:
        """See LiveInterfaces."""
        assert i == 0
        self.attempts.append(missed)
        if self.error is not None:
            raise CaptureError(errno.EPERM, self.error)
        self.is_gone = False

    def facts(self) -> list[InterfaceFacts]:
        """See LiveInterfaces."""
        warning = GONE if self.is_gone else None
        return [InterfaceFacts("eth0", {1: 7}, 0, 7, 7, Drops(), warning)]

    def finish(self) -> None:
        """See LiveInterfaces."""


def watch_of(system: System, on_lost: str) -> Any:
    return InterfaceWatch(system, on_lost, system.read_link)  # type: ignore[arg-type]


def away(watch: Any) -> tuple[int, str | None]:
    (facts,) = watch.facts()
    return facts.away.count, facts.warning


@pytest.mark.parametrize(("rule", "fails"), [("fail", True), ("end", False)])
def test_a_removal_ends_the_run(rule: str, fails: bool) -> None:
    system = System()
    watch = watch_of(system, rule)
    watch.look(1.0)
    assert (watch.lost, watch.failure) == ([], None)
    system.is_gone, system.link = True, None
    watch.look(2.0)
    assert watch.lost == [f"interface eth0 {GONE}"]
    assert watch.failure == (watch.lost[0] if fails else None)
    assert away(watch) == (0, GONE)  # it is not away while the run goes on


def test_a_flap_ends_no_run(caplog: pytest.LogCaptureFixture) -> None:
    system = System()
    watch = watch_of(system, "fail")
    with caplog.at_level(logging.INFO, "zanon_net"):
        for now in range(55):
            system.link = LinkState(3, now % 11 == 10, 1000)
            watch.look(float(now))
    assert (watch.lost, away(watch)) == ([], (5, None))
    assert sum("is down" in text for text in caplog.messages) == 5
    assert caplog.messages.count("interface eth0 is back after 10.0 s") == 5
    system.link = LinkState(3, False, 1000)
    for now in range(60, 70):
        watch.look(float(now))
        assert watch.lost == []
        assert watch.presence()["eth0"] is not None
    watch.look(70.0)
    assert watch.lost == ["interface eth0 went away: it has been down for 10 s"]


def test_flaps_are_reported_at_times(caplog: pytest.LogCaptureFixture) -> None:
    """Every ten seconds; and a new reason at once, and an absence that lasts."""
    system = System()
    watch = watch_of(system, "wait")
    with caplog.at_level(logging.INFO, "zanon_net"):
        for now in range(100):
            system.link = LinkState(3, now % 2 == 0, 1000)
            watch.look(float(now))
        assert away(watch)[0] == 50
        assert sum("is down" in text for text in caplog.messages) == 10
        assert caplog.messages.count("interface eth0 is back after 1.0 s") == 10
        caplog.clear()
        watch.look(100.5)  # still down
        assert caplog.messages == []
        watch.look(105.0)
        assert caplog.messages == ["warning: interface eth0 is down; the run waits for it"]
        system.is_gone, system.link = True, None
        watch.look(105.5)
        assert caplog.messages[1:] == [f"warning: interface eth0 {GONE}; the run waits for it"]


def test_attempts_to_open_it(caplog: pytest.LogCaptureFixture) -> None:
    """One a second while it is up, and one warning of each problem."""
    system = System()
    watch = watch_of(system, "wait")
    watch.look(0.0)
    system.is_gone, system.link = True, None
    watch.look(1.0)
    assert system.attempts == []
    system.link = LinkState(9, False, 0)
    watch.look(2.0)
    assert system.attempts == []
    system.link, system.error = LinkState(9, True, 40), "no right"
    for n in range(50):
        watch.look(3.0 + n / 10)
    assert system.attempts == [40] * 5
    system.error = "no memory"
    watch.look(8.5)
    assert [text for text in caplog.messages if "tries again" in text] == [
        "warning: no right; the run tries again every second",
        "warning: no memory; the run tries again every second",
    ]
    assert away(watch) == (1, GONE)
    system.error = None
    watch.look(10.0)
    assert away(watch) == (1, None)
    assert watch.presence() == {"eth0": None}
    assert watch.lost == []


def test_an_interface_that_comes_back_too_late_stays_lost() -> None:
    """While the run reads what is left: its end has a reason."""
    system = System()
    watch = watch_of(system, "end")
    system.link = LinkState(3, False, 1000)
    watch.look(0.0)
    watch.look(10.0)
    system.link = LinkState(3, True, 1000)
    watch.finish()
    assert away(watch) == (1, "went away: it has been down for 10 s")


def test_another_interface_of_its_name() -> None:
    """What was read goes on under a new name: it is not away, whatever its old name's state is."""
    system = System()
    watch = watch_of(system, "fail")
    system.link = LinkState(4, False, 0)
    for now in range(100):
        watch.look(float(now))
    system.link = None
    watch.look(100.0)
    assert (watch.lost, away(watch)) == ([], (0, None))


def test_a_state_that_is_not_known_at_once() -> None:
    """The system was too busy to give it when the interface was opened; the watch goes on."""
    system = System()
    known, system.link = system.link, None

    def read_link(_name: str) -> LinkState | None:
        if system.link is None:
            raise TimeoutError
        return system.link

    watch = InterfaceWatch(system, "fail", read_link)  # type: ignore[arg-type]
    watch.look(0.0)
    assert away(watch) == (0, None)
    system.link = known
    watch.look(1.0)
    system.link = LinkState(3, False, 1000)
    for now in (2.0, 12.0):
        watch.look(now)
    assert watch.lost == ["interface eth0 went away: it has been down for 10 s"]


def test_it_came_back_since_the_last_look() -> None:
    system = System()
    watch = watch_of(system, "wait")
    system.link = LinkState(3, False, 1000)
    watch.look(0.0)
    system.link = LinkState(3, True, 1000)
    watch.finish()
    assert away(watch) == (1, None)
    assert watch.facts() == watch.facts()


@pytest.mark.parametrize(
    ("before", "now", "missed"),
    [
        (LinkState(3, True, 1000), LinkState(4, True, 30), 30),
        (LinkState(3, True, 0), LinkState(4, True, 30), 30),
        (LinkState(3, True, 1000), LinkState(4, True, 1005), 5),  # no less, perhaps more
        (LinkState(3, True, 1000), LinkState(3, True, 9999), 0),
        (None, LinkState(4, True, 30), 0),
        (UNKNOWN, LinkState(4, True, 30), 0),
    ],
)
def test_frames_that_nobody_read(before: LinkState | None, now: LinkState, missed: int) -> None:
    assert missed_by(before, now) == missed


def test_the_system_s_state_of_an_interface() -> None:
    assert read_link_state("no-such-link") is None
    state = read_link_state("lo")
    assert state is not None
    assert state.index == 1


def test_absences_for_people() -> None:
    sources = [
        {"name": "a.pcap"},
        {"name": "eth0", "away": {"count": 0, "seconds": 0.0}},
        {"name": "eth1", "away": {"count": 1, "seconds": 3.2}},
        {"name": "eth2", "away": {"count": 2000, "seconds": 86400.0}},
    ]
    first, second = absences(sources)
    assert first.startswith("interface eth1 was away once, for 3.2 s in all; ")
    assert second.startswith("interface eth2 was away 2,000 times, for 86,400.0 s in all; ")
