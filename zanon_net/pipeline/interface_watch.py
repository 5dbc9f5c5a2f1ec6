# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The interfaces of a run, which go away and come back while it reads them.

An interface that is removed takes its ring with it: what comes back under its name is another one,
which has to be opened. One that is only down keeps its ring, and goes on by itself when it is up.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

from zanon_net._text import readable
from zanon_net.errors import ZanonError
from zanon_net.pipeline.facts import Away
from zanon_net.pipeline.link_counters import LinkState, read_link_state
from zanon_net.pipeline.live_interfaces import InterfaceFacts, LiveInterfaces
from zanon_net.system.log_levels import NOTICE

LOOK_S = 0.2  # between two looks: who is down for less may not be noticed
RETRY_S = 1.0  # between two attempts to open one that is up again
DOWN_S = 10.0  # one that is down for less flaps, and is not lost
REPORT_S = 10.0  # between two reports of one that flaps
UNKNOWN = LinkState(0, True, 0)
"""Where the system gives no state: to open the interface shows whether it is up."""

_log = logging.getLogger("zanon_net")


class Presence:
    """Whether an interface is there, and how often and for how long it was not.

    link: its state when it was last there. reason: why it is not there; None: it is. is_lost: that
    ends the run, whatever comes after.
    """

    def __init__(self, name: str, link: LinkState | None) -> None:
        self.name, self.link = name, link
        self.reason: str | None = None
        self.is_lost = False
        self.since_ns: int | None = None  # by the system's clock; None: it is there
        self._since: float | None = None  # monotonic
        self._before = Away()  # without the absence that lasts
        self._reported: str | None = None  # the reason, where this absence was reported
        self._quiet_until = 0.0
        self.retry_at = 0.0
        self.problem = ""  # why it could not be opened again

    def has(self, link: LinkState | None) -> TypeGuard[LinkState]:
        """Whether this is a later state of the interface that is read, and not of another one."""
        if link is None or self.link is None:
            return False
        return link.index == self.link.index or self.link is UNKNOWN

    def leave(self, reason: str, now: float) -> bool:
        """Notes that it is not there. Returns whether that, or a new reason, is to be reported."""
        if self._since is None:
            self._since, self.since_ns = now, time.time_ns()
        self.reason = reason
        is_flap = self._reported is None and now < self._quiet_until
        if is_flap or reason == self._reported:
            return False
        self._reported, self._quiet_until = reason, now + REPORT_S
        return True

    def lose(self, reason: str) -> str:
        """Notes that it is lost, which ends the run. Returns that for people."""
        self.reason, self.is_lost = reason, True
        return f"interface {self.name} {reason}"

    def come_back(self, now: float) -> bool:
        """Notes that it is there. Returns whether its absence was reported."""
        was_reported = self._reported is not None
        self._before = self.away(now)
        self._since = self.since_ns = self.reason = self._reported = None
        self.problem = ""
        return was_reported

    def seconds(self, now: float) -> float:
        """For how long it is not there by now."""
        return 0.0 if self._since is None else now - self._since

    def away(self, now: float) -> Away:
        """How often and for how long it was not there."""
        if self._since is None:
            return self._before
        return Away(self._before.count + 1, self._before.seconds + self.seconds(now))


class InterfaceWatch:
    """Looks after them by the rule of `on_lost`: fail, wait or end.

    lost: those by whose loss the run has to end, for people.
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
        """Why the run failed; None where it did not."""
        return "; ".join(self.lost) or None if self._on_lost == "fail" else None

    def look(self, now: float) -> None:
        """Looks at each of them if that is due; call it often, it is cheap. now: monotonic."""
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
                self._welcome(one, self._end)  # it is up since the last look

    def presence(self) -> dict[str, int | None]:
        """Since when each is away, in ns since the epoch; None: it is there. Names are UTF-8."""
        return {readable(one.name): one.since_ns for one in self._presences}

    def facts(self) -> list[InterfaceFacts]:
        """The facts about each so far."""
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
            _log.warning(
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
            _log.warning("warning: interface %s %s; the run waits for it", one.name, reason)
        if link is not None and link.is_up and now >= one.retry_at:
            self._reopen(i, one, link, now)

    def _reopen(self, i: int, one: Presence, link: LinkState, now: float) -> None:
        one.retry_at = now + RETRY_S
        try:
            self._interfaces.reopen(i, missed_by(one.link, link))
        except ZanonError as error:
            if str(error) != one.problem:
                one.problem = str(error)
                _log.warning("warning: %s; the run tries again every second", error)
            return
        one.link = self._link(one.name) or link
        self._welcome(one, time.monotonic())

    def _welcome(self, one: Presence, now: float) -> None:
        if one.reason is None or one.is_lost:
            return
        seconds = one.seconds(now)
        if one.come_back(now):
            _log.log(NOTICE, "interface %s is back after %.1f s", one.name, seconds)


def missed_by(before: LinkState | None, now: LinkState) -> int:
    """Frames that passed an interface before it was opened again, as far as that is known.

    Its counter begins anew with a new interface. One that only was away, in another namespace, has
    its old index, and of what it counted there nobody knows how much was read here.
    """
    if before is None or before is UNKNOWN or before.index == now.index:
        return 0
    return now.received - before.received if now.received >= before.received else now.received
