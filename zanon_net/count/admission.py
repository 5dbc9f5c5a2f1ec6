# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Admission: checks messages before they are counted, and finds probes that are gone.

Everything here that depends on a clock ends up as an entry of a commit.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from zanon_net._core import (
    COUNTING_KINDS,
    STANDINGS,
    VoteWatch,
    read_votes,
    vote_rules_difference,
)
from zanon_net.config.parse import format_duration
from zanon_net.count.attachments import plain_message
from zanon_net.count.commits import ALL_PRESENT, COUNTED, GONE, UNCOUNTED, Entry
from zanon_net.count.counter import Counter
from zanon_net.count.frames import ENDED, OTHER_SETTINGS, Refusal, VotesHeader, votes_header
from zanon_net.count.lateness import NS_PER_S, lag_text
from zanon_net.count.settings import CounterSettings
from zanon_net.count.transport import Received
from zanon_net.errors import FormatError

CHECK_S = 0.5  # interval at which the probes are looked at
CATCHING_UP_NS = 10 * NS_PER_S  # for a probe that is behind, before a warning
OTHER_SHARD = -1  # standing of a message for a shard that the counter does not have
SENDERS_MAX = 4096  # senders whose users are known at once, the number of sessions of a shard


@dataclass(slots=True)
class Admitted:
    """Result of an admission.

    `entries` are the entries of the next commit, and `sources` the received message of each entry,
    or None. `refused` has the messages that are not counted, with the refusal and the name of its
    counter. `warnings` has texts by subject. A subject is logged once a minute. `sequences` has the
    last admitted sequence of each session and shard.
    """

    entries: list[Entry] = field(default_factory=list)
    sources: list[Received | None] = field(default_factory=list)
    refused: list[tuple[Received, Refusal, str]] = field(default_factory=list)
    warnings: dict[str, str] = field(default_factory=dict)
    sequences: dict[tuple[int, int], int] = field(default_factory=dict)


class Clocks(NamedTuple):
    """Clocks of a counter. time_ns counts from the Unix epoch, seconds only grow."""

    time_ns: Callable[[], int] = time.time_ns
    seconds: Callable[[], float] = time.monotonic


class Admission:
    """Checks each message before it is counted."""

    def __init__(self, settings: CounterSettings, counter: Counter, clocks: Clocks) -> None:
        self._settings, self._counter, self._clocks = settings, counter, clocks
        self._watch = VoteWatch(int(settings.probe_timeout_s * NS_PER_S), self._now_ns())
        self._watch.look(counter.shards, self._now_ns())
        self._check_due = clocks.seconds()
        self._users: dict[str, _Quota] = {}
        self._first_window = 0  # votes of an earlier window can no longer count

    def look_at(self, received: Iterable[Received], lost: Iterable[int] = ()) -> Admitted:
        """Sorts the received messages. lost: sessions that are known to be gone."""
        admitted = Admitted()
        for item in received:
            try:
                self._look_at(item, votes_header(item.message), admitted)
            except FormatError as error:
                self._refuse(item, Refusal(str(error), is_final=True), "refused_format", admitted)
        now = self._clocks.seconds()
        if now >= self._check_due:
            self._check_due = now + CHECK_S
            self._watch.look(self._counter.shards, self._now_ns())
            self._drop_silent(admitted)
            self._drop_slow(admitted)
            self._warn_of_late(admitted)
            self._look_who_is_there(admitted)
            self._forget_users()
        for probe in lost:  # after the look, which watches each probe that decisions wait for
            if self._watch.remove(probe):
                self._drop(probe, "it began anew", admitted)
        return admitted

    @property
    def last_seen(self) -> Mapping[int, float]:
        """Seconds of the clock at which a message of each probe was last counted."""
        return {probe: heard_ns / NS_PER_S for probe, heard_ns in self._watch.heard.items()}

    def _now_ns(self) -> int:
        return int(self._clocks.seconds() * NS_PER_S)

    def _look_at(self, item: Received, header: VotesHeader, admitted: Admitted) -> None:
        place = header.probe, header.shard
        if header.shard >= self._settings.shards:
            standing = OTHER_SHARD
        else:
            standing = self._counter.standing(header, admitted.sequences.get(place, 0))
        if problem := self._misfit(header, standing):
            self._refuse(item, Refusal(problem, is_final=True), "refused_settings", admitted)
            return
        before = admitted.sequences.get(place) or self._counter.sequence_of(header)
        if standing == STANDINGS["duplicate"]:
            self._counter.tally["duplicates_resent"] += 1
        elif standing == STANDINGS["gap"]:
            text = f"its message {header.sequence} came after {before}: those between are missing"
            self._refuse(item, Refusal(text, is_final=False), "refused_gap", admitted)
            self._note_unknown(header.probe, admitted)
        elif lead := self._lead_ns(item, header):
            text = (
                f"its clock is {format_duration(lead - lead % NS_PER_S)} ahead of the counter's,"
                " more than --max-skew; set both clocks by NTP"
            )
            self._refuse(item, Refusal(text, is_final=False), "refused_future", admitted)
            self._note_unknown(header.probe, admitted)
        else:
            admitted.sequences[place] = header.sequence
            self._watch.hear(header.probe, self._now_ns(), joins=before == 0)
            self._admit(item, header, admitted)

    def _misfit(self, header: VotesHeader, standing: int) -> str:
        """Reason why a message can never be counted here; empty if it can."""
        if header.settings != self._settings.number:
            return OTHER_SETTINGS
        if standing == OTHER_SHARD:
            return f"it votes in shard {header.shard}, and the counter has {self._settings.shards}"
        if standing == STANDINGS["other_rules"]:
            return vote_rules_difference(header.rules, self._counter.rules or 0)
        return ""

    def _admit(self, item: Received, header: VotesHeader, admitted: Admitted) -> None:
        problem = self._over_quota(item, header)
        kind = UNCOUNTED if problem else COUNTED
        if problem:
            admitted.warnings[f"users {header.probe}"] = (
                f"probe {header.probe:016x} {problem}; votes of it do not count"
            )
        admitted.entries.append(Entry(kind, item.message, read=header))
        admitted.sources.append(item)

    def _refuse(self, item: Received, refusal: Refusal, name: str, admitted: Admitted) -> None:
        self._counter.tally[name] += 1
        admitted.refused.append((item, refusal, name))

    def _lead_ns(self, item: Received, header: VotesHeader) -> int:
        """Returns the nanoseconds by which a message is ahead of the clock; 0 if they are few."""
        limit = self._clocks.time_ns() + self._settings.max_skew_ns
        newest = header.latest
        if newest > limit:  # the header has only a bound on the times
            times = read_votes(plain_message(item.message))["t_ns"]
            newest = int(times.max()) if len(times) else 0
        if header.watermark != ENDED:
            newest = max(newest, header.watermark)
        return newest - limit + self._settings.max_skew_ns if newest > limit else 0

    def _over_quota(self, item: Received, header: VotesHeader) -> str:
        """Reason why --max-users-per-probe keeps the votes of a message from counting, or ""."""
        most = self._settings.max_users_per_probe
        if most is None or not header.votes:
            return ""
        votes = read_votes(plain_message(item.message))
        users = np.unique(votes["user"][np.isin(votes["kind"], COUNTING_KINDS)])
        if not len(users):
            return ""
        window = int(votes["t_ns"].max()) // self._settings.window_ns
        sender = item.sender or f"{header.probe:016x}"
        if window < self._first_window:  # its users may be forgotten
            return "is more than a window late"
        if sender not in self._users and len(self._users) >= SENDERS_MAX:
            self._counter.tally["senders_over"] += 1
            return f"is one of more than {SENDERS_MAX} with users in two windows"
        if not self._users.setdefault(sender, _Quota()).take(window, users.tolist(), most):
            return "has more users than --max-users-per-probe"
        return ""

    def _forget_users(self) -> None:
        """Forgets the users of past windows that late votes can no longer be in."""
        decided = self._counter.watermark
        if decided != ENDED:
            window_ns = self._settings.window_ns
            self._first_window = max(self._first_window, decided // window_ns - 1)
            first = self._first_window
            self._users = {who: own for who, own in self._users.items() if own.window >= first}

    # ---- probes that are gone --------------------------------------------------------------------

    def _drop_silent(self, admitted: Admitted) -> None:
        for probe in self._watch.take_silent(self._now_ns()):
            self._drop(probe, f"it is silent for {self._settings.probe_timeout_s:g} s", admitted)

    def _drop_slow(self, admitted: Admitted) -> None:
        """Drops probes whose clock is far behind: they would delay the votes of all others."""
        limit = self._clocks.time_ns() - self._settings.max_skew_ns
        for probe in self._watch.slow(limit, self._now_ns()):
            self._drop(probe, "its clock is behind by more than --max-skew", admitted)

    def _warn_of_late(self, admitted: Admitted) -> None:
        """Warns of probes that stay behind the decided time."""
        self._watch.note_late(self._now_ns())
        for probe, lag_ns in self._watch.late(self._now_ns(), CATCHING_UP_NS).items():
            admitted.warnings[f"behind {probe}"] = lag_text(probe, lag_ns)

    def _drop(self, probe: int, reason: str, admitted: Admitted) -> None:
        if self._counter.waits_for(probe):
            admitted.entries.append(Entry(GONE, probe=probe))
            admitted.sources.append(None)
            admitted.warnings[f"gone {probe} {self._clocks.seconds()}"] = (
                f"probe {probe:016x} is gone: {reason}; decisions go on without it"
            )

    def _note_unknown(self, probe: int, admitted: Admitted) -> None:
        """Notes again that a probe is gone, because the clients that it reports now are not known
        either."""
        if self._counter.is_known(probe) and not self._counter.waits_for(probe):
            entry = Entry(GONE, probe=probe)
            if entry not in admitted.entries:
                admitted.entries.append(entry)
                admitted.sources.append(None)

    # ---- probes that are there -------------------------------------------------------------------

    def _look_who_is_there(self, admitted: Admitted) -> None:
        """Expects no more probes when as many send as are expected. A session may replace a session
        that this counter never heard of, because it started without its state."""
        if not self._counter.probes_missing:
            return
        if self._watch.all_present(self._counter.shards, self._settings.expect_probes):
            admitted.entries.append(Entry(ALL_PRESENT))
            admitted.sources.append(None)


class _Quota:
    """Users of a sender in the latest window of packet time."""

    def __init__(self) -> None:
        self.window = -1
        self._users: set[int] = set()

    def take(self, window: int, users: Iterable[int], most: int) -> bool:
        """Counts users. Returns false and counts none of them if there would be too many."""
        if window > self.window:
            self.window, self._users = window, set()
        together = self._users.union(users)
        if len(together) > most:
            return False
        self._users = together
        return True
