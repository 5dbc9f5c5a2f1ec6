# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Watches the interfaces of a run, which go away and come back while it reads them.

An interface that is removed takes its ring with it. An interface that appears under its name is a
different interface, which has to be opened. An interface that is only down keeps its ring, and
continues when it is up.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

from zanon_net._text import readable
from zanon_net.errors import ZanonError
from zanon_net.pipeline.facts import Away
from zanon_net.pipeline.link_counters import LinkState, read_link_state
from zanon_net.pipeline.live_interfaces import InterfaceFacts, LiveInterfaces
from zanon_net.system.log import log

LOOK_S = 0.2  # between two looks; a shorter absence may not be noticed
RETRY_S = 1.0  # between two attempts to open an interface that is up again
DOWN_S = 10.0  # an interface that is down for less flaps, and is not lost
REPORT_S = 10.0  # between two reports of an interface that flaps
UNKNOWN = LinkState(0, True, 0)
"""State if the system gives no state: only opening the interface shows whether it is up."""


class Presence:
    """Presence of an interface, and the number and length of its absences.

    link: its state when it was last present. reason: the reason for its absence, or None if it is
    present. is_lost: true if its loss ends the run, whatever comes after.
    """

    def __init__(self, name: str, link: LinkState | None) -> None:
        self.name, self.link = name, link
        self.reason: str | None = None
        self.is_lost = False
        self.since_ns: int | None = None  # by the system's clock; None: it is present
        self._since: float | None = None  # monotonic
        self._before = Away()  # without the present absence
        self._reported: str | None = None  # the reason, if this absence was reported
        self._quiet_until = 0.0
        self.retry_at = 0.0
        self.problem = ""  # the reason why it could not be opened again

    def has(self, link: LinkState | None) -> TypeGuard[LinkState]:
        """Returns true if this is a later state of the same interface, not of a different
        interface."""
        if link is None or self.link is None:
            return False
        return link.index == self.link.index or self.link is UNKNOWN

    def leave(self, reason: str, now: float) -> bool:
        """Notes its absence. Returns true if the absence, or a new reason, is to be reported."""
        if self._since is None:
            self._since, self.since_ns = now, time.time_ns()
        self.reason = reason
        is_flap = self._reported is None and now < self._quiet_until
        if is_flap or reason == self._reported:
            return False
        self._reported, self._quiet_until = reason, now + REPORT_S
        return True

    def lose(self, reason: str) -> str:
        """Notes that it is lost, which ends the run. Returns a text about it."""
        self.reason, self.is_lost = reason, True
        return f"interface {self.name} {reason}"

    def come_back(self, now: float) -> bool:
        """Notes its return. Returns true if its absence was reported."""
        was_reported = self._reported is not None
        self._before = self.away(now)
        self._since = self.since_ns = self.reason = self._reported = None
        self.problem = ""
        return was_reported

    def seconds(self, now: float) -> float:
        """Returns the length of its present absence so far, in seconds."""
        return 0.0 if self._since is None else now - self._since

    def away(self, now: float) -> Away:
        """Returns the number and length of its absences."""
        if self._since is None:
            return self._before
        return Away(self._before.count + 1, self._before.seconds + self.seconds(now))


class InterfaceWatch:
    """Watches interfaces by the rule of `on_lost`: fail, wait or end.

    lost: texts about interfaces whose loss ends the run.
    """

    def __init__(
        self,
        interfaces: LiveInterfaces,
        on_lost: str,
        read_link: Callable[[str], LinkState | None] = read_link_state,
    ) -> None:
        self._interfaces, self._on_lost, self._read_link = interfaces, on_lost, read_link
        self._presences = [Presence(name, self._link(name)) for name in interfaces.names]
        self._due = 0.0
        self._end: float | None = None
        self.lost: list[str] = []

    @property
    def failure(self) -> str | None:
        """The reason why the run failed; None if it did not fail."""
        return "; ".join(self.lost) or None if self._on_lost == "fail" else None

    def look(self, now: float) -> None:
        """Looks at each interface if a look is due; cheap enough to be called often. now:
        monotonic, in seconds."""
        if now < self._due:
            return
        self._due = now + LOOK_S
        for i, one in enumerate(self._presences):
            link = self._link(one.name)
            if self._interfaces.gone(i):
                self._see_gone(i, one, link, now)
            elif one.has(link):
                self._see_there(one, link, now)

    def finish(self) -> None:
        """Ends the watch: the facts stay as they are now."""
        self._interfaces.finish()
        self._end = time.monotonic()
        for i, one in enumerate(self._presences):
            link = self._link(one.name)
            if not self._interfaces.gone(i) and one.has(link) and link.is_up:
                self._welcome(one, self._end)  # it came up since the last look

    def presence(self) -> dict[str, int | None]:
        """Returns when each interface went away, in ns since the epoch; None if it is present.
        Names are UTF-8."""
        return {readable(one.name): one.since_ns for one in self._presences}

    def facts(self) -> list[InterfaceFacts]:
        """Returns the facts about each interface so far."""
        now = time.monotonic() if self._end is None else self._end
        return [
            replace(facts, away=one.away(now), warning=one.reason or facts.warning)
            for facts, one in zip(self._interfaces.facts(), self._presences, strict=True)
        ]

    def _link(self, name: str) -> LinkState | None:
        try:
            return self._read_link(name)
        except OSError:
            return UNKNOWN

    def _see_there(self, one: Presence, link: LinkState, now: float) -> None:
        one.link = link
        if link.is_up:
            self._welcome(one, now)
            return
        if one.leave("is down", now):
            ends = f"the run ends if it is not up within {DOWN_S:g} s"
            waits = "the run waits for it"
            log.warning(
                "warning: interface %s is down; %s",
                one.name,
                waits if self._on_lost == "wait" else ends,
            )
        if self._on_lost != "wait" and one.seconds(now) >= DOWN_S:
            self.lost.append(one.lose(f"went away: it has been down for {DOWN_S:g} s"))

    def _see_gone(self, i: int, one: Presence, link: LinkState | None, now: float) -> None:
        reason = self._interfaces.facts()[i].warning or "went away"
        if self._on_lost != "wait":
            self.lost.append(one.lose(reason))
            return
        if one.leave(reason, now):
            log.warning("warning: interface %s %s; the run waits for it", one.name, reason)
        if link is not None and link.is_up and now >= one.retry_at:
            self._reopen(i, one, link, now)

    def _reopen(self, i: int, one: Presence, link: LinkState, now: float) -> None:
        one.retry_at = now + RETRY_S
        try:
            self._interfaces.reopen(i, missed_by(one.link, link))
        except ZanonError as error:
            if str(error) != one.problem:
                one.problem = str(error)
                log.warning("warning: %s; the run tries again every second", error)
            return
        one.link = self._link(one.name) or link
        self._welcome(one, time.monotonic())

    def _welcome(self, one: Presence, now: float) -> None:
        if one.reason is None or one.is_lost:
            return
        seconds = one.seconds(now)
        if one.come_back(now):
            log.notice("interface %s is back after %.1f s", one.name, seconds)


def missed_by(before: LinkState | None, now: LinkState) -> int:
    """Returns the frames that passed an interface before it was opened again, as far as they are
    known.

    Its counter restarts with a new interface. An interface that was in another namespace has its
    old index. The number of its frames that were read there is unknown.
    """
    if before is None or before is UNKNOWN or before.index == now.index:
        return 0
    return now.received - before.received if now.received >= before.received else now.received
