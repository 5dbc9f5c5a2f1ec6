# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Which messages become part of a commit, and which probes are gone: all that clocks decide."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from zanon_net._core import read_votes, vote_rules_difference
from zanon_net.config.parse import format_duration
from zanon_net.count.attachments import plain_message
from zanon_net.count.commits import ALL_PRESENT, COUNTED, GONE, UNCOUNTED, Entry
from zanon_net.count.counter import Counter
from zanon_net.count.frames import ENDED, OTHER_SETTINGS, Refusal, VotesHeader, votes_header
from zanon_net.count.lateness import NS_PER_S, lag_text
from zanon_net.count.settings import CounterSettings
from zanon_net.count.transport import Received
from zanon_net.errors import FormatError

VOTING_KINDS = (1, 4, 5, 10)  # the others count no user
CHECK_S = 0.5  # between two looks for probes that are gone
CATCHING_UP_S = 10.0  # for a probe that is behind, before it is spoken of
SENDERS_MAX = 4096  # whose users are known at once: as many as a shard knows probes


@dataclass(slots=True)
class Admitted:
    """entries: of the next commit. sources: what each of them came out of; None: of no message.

    refused: what is not counted, why, and how that is counted. warnings: texts by their subjects,
    of each of which people read once a minute. sequences: the last of each probe and shard.
    """

    entries: list[Entry] = field(default_factory=list)
    sources: list[Received | None] = field(default_factory=list)
    refused: list[tuple[Received, Refusal, str]] = field(default_factory=list)
    warnings: dict[str, str] = field(default_factory=dict)
    sequences: dict[tuple[int, int], int] = field(default_factory=dict)


class Clocks(NamedTuple):
    """time_ns: since the Unix epoch. seconds: that only grow."""

    time_ns: Callable[[], int] = time.time_ns
    seconds: Callable[[], float] = time.monotonic


class Admission:
    """Looks at each message before it is counted.

    last_seen: by probe, the seconds of the clock when a message of it was last counted.
    """

    def __init__(self, settings: CounterSettings, counter: Counter, clocks: Clocks) -> None:
        self._settings, self._counter, self._clocks = settings, counter, clocks
        now = clocks.seconds()
        self.last_seen: dict[int, float] = dict.fromkeys(counter.watermarks(), now)
        self._check_due = now
        self._joined, self._speakers = now, set[int]()
        self._behind_since: dict[int, float] = {}
        self._late_since: dict[int, float] = {}
        self._users: dict[str, _Quota] = {}
        self._first_window = 0  # no vote of an earlier one can count any more

    def look_at(self, received: Iterable[Received], lost: Iterable[int] = ()) -> Admitted:
        """Sorts what was received. lost: probes that are known to be gone."""
        admitted = Admitted()
        for item in received:
            try:
                self._look_at(item, votes_header(item.message), admitted)
            except FormatError as error:
                self._refuse(item, Refusal(str(error), is_final=True), "refused_format", admitted)
        for probe in lost:
            if self.last_seen.pop(probe, None) is not None:
                self._drop(probe, "it began anew", admitted)
        now = self._clocks.seconds()
        if now >= self._check_due:
            self._check_due = now + CHECK_S
            self._drop_silent(admitted)
            self._drop_slow(admitted)
            self._warn_of_late(admitted)
            self._look_who_is_there(admitted)
            self._forget_users()
        return admitted

    def _look_at(self, item: Received, header: VotesHeader, admitted: Admitted) -> None:
        if problem := self._misfit(header):
            self._refuse(item, Refusal(problem, is_final=True), "refused_settings", admitted)
            return
        place = header.probe, header.shard
        before = admitted.sequences.get(place, self._counter.sequence_of(header))
        if before is not None and header.sequence <= before:
            self._counter.tally["duplicates_resent"] += 1
        elif before is not None and header.sequence != before + 1:
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
            self._note_speaker(header.probe, is_new=before is None)
            self._admit(item, header, admitted)

    def _misfit(self, header: VotesHeader) -> str:
        """Why a message can never be counted here; empty: it can."""
        if header.settings != self._settings.number:
            return OTHER_SETTINGS
        if header.shard >= self._settings.shards:
            return f"it votes in shard {header.shard}, and the counter has {self._settings.shards}"
        if (rules := self._counter.rules) not in (None, header.rules):
            return vote_rules_difference(header.rules, rules)
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
        self.last_seen[header.probe] = self._clocks.seconds()

    def _refuse(self, item: Received, refusal: Refusal, name: str, admitted: Admitted) -> None:
        self._counter.tally[name] += 1
        admitted.refused.append((item, refusal, name))

    def _lead_ns(self, item: Received, header: VotesHeader) -> int:
        """By how much a message is of the future, where that is too much; else 0."""
        limit = self._clocks.time_ns() + self._settings.max_skew_ns
        newest = header.latest
        if newest > limit:  # perhaps: the header has only a bound
            times = read_votes(plain_message(item.message))["t_ns"]
            newest = int(times.max()) if len(times) else 0
        if header.watermark != ENDED:
            newest = max(newest, header.watermark)
        return newest - limit + self._settings.max_skew_ns if newest > limit else 0

    def _over_quota(self, item: Received, header: VotesHeader) -> str:
        """Why the votes of a message do not count, with --max-users-per-probe; empty: they do."""
        most = self._settings.max_users_per_probe
        if most is None or not header.votes:
            return ""
        votes = read_votes(plain_message(item.message))
        users = np.unique(votes["user"][np.isin(votes["kind"], VOTING_KINDS)])
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
        """Forgets the users of windows that are over, and that late votes cannot be in any more."""
        decided = self._counter.watermark
        if decided != ENDED:
            window_ns = self._settings.window_ns
            self._first_window = max(self._first_window, decided // window_ns - 1)
            first = self._first_window
            self._users = {who: own for who, own in self._users.items() if own.window >= first}

    # ---- probes that are gone --------------------------------------------------------------------

    def _drop_silent(self, admitted: Admitted) -> None:
        now, patience = self._clocks.seconds(), self._settings.probe_timeout_s
        for probe, seen in list(self.last_seen.items()):
            if now - seen > patience:
                del self.last_seen[probe]
                self._drop(probe, f"it is silent for {patience:g} s", admitted)

    def _drop_slow(self, admitted: Admitted) -> None:
        """A clock far behind would hold up the votes of all others, though its probe sends."""
        now, limit = self._clocks.seconds(), self._clocks.time_ns() - self._settings.max_skew_ns
        watermarks = self._counter.watermarks()
        slow = {
            probe for probe in self.last_seen if probe in watermarks and watermarks[probe] < limit
        }
        if len(slow) == len(self.last_seen):  # all are: they read captures
            slow.clear()
        self._behind_since = {probe: self._behind_since.get(probe, now) for probe in slow}
        for probe, since in self._behind_since.items():
            if now - since > self._settings.probe_timeout_s and self._counter.waits_for(probe):
                self._drop(probe, "its clock is behind by more than --max-skew", admitted)

    def _warn_of_late(self, admitted: Admitted) -> None:
        """Says which probes are behind what is decided and do not catch up."""
        now, behind = self._clocks.seconds(), self._counter.lags()
        late = self.last_seen.keys() & behind.keys()
        self._late_since = {probe: self._late_since.get(probe, now) for probe in late}
        for probe, since in self._late_since.items():
            if now - since >= CATCHING_UP_S:
                admitted.warnings[f"behind {probe}"] = lag_text(probe, behind[probe])

    def _drop(self, probe: int, reason: str, admitted: Admitted) -> None:
        if self._counter.waits_for(probe):
            admitted.entries.append(Entry(GONE, probe=probe))
            admitted.sources.append(None)
            admitted.warnings[f"gone {probe} {self._clocks.seconds()}"] = (
                f"probe {probe:016x} is gone: {reason}; decisions go on without it"
            )

    def _note_unknown(self, probe: int, admitted: Admitted) -> None:
        """Notes again that a probe is gone for which nobody waits: what it tells of clients now is
        not known either."""
        if self._counter.is_known(probe) and not self._counter.waits_for(probe):
            entry = Entry(GONE, probe=probe)
            if entry not in admitted.entries:
                admitted.entries.append(entry)
                admitted.sources.append(None)

    # ---- probes that are there -------------------------------------------------------------------

    def _note_speaker(self, probe: int, *, is_new: bool) -> None:
        """Notes who speaks although the newest number came long ago: so that one did not take its
        place."""
        if is_new:
            self._joined = self._clocks.seconds()
            self._speakers.clear()
        elif self._clocks.seconds() - self._joined > self._settings.probe_timeout_s:
            self._speakers.add(probe)

    def _look_who_is_there(self, admitted: Admitted) -> None:
        """A number may have taken the place of one that this counter never heard of, as it began
        without its state; so who speaks for long, or has ended, is a probe by itself."""
        if not self._counter.probes_missing:
            return
        if len(self._speakers | self._counter.ended) >= self._settings.expect_probes:
            admitted.entries.append(Entry(ALL_PRESENT))
            admitted.sources.append(None)


class _Quota:
    """The users of a sender in one window of packet time after the other; window: the latest."""

    def __init__(self) -> None:
        self.window = -1
        self._users: set[int] = set()

    def take(self, window: int, users: Iterable[int], most: int) -> bool:
        """Counts users; false, and they are not counted, where there would be too many."""
        if window > self.window:
            self.window, self._users = window, set()
        together = self._users.union(users)
        if len(together) > most:
            return False
        self._users = together
        return True
