# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Which visits a run may release, by the brute-force oracle, and which it has released."""

import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from oracle.ztable import ZOracle
from support.packets import HOUR

from month.broken import Broken
from month.traffic import WINDOW, Visit, Z

REMEMBERED = 8 * HOUR  # longer than the window and the widest step back together
FEW = 10  # users that are too few to say anything about

Key = tuple[int, str, str]


@dataclass(slots=True)
class _Expected:
    number: int  # in the order of sending
    visit: Visit
    may_release: bool
    is_exact: bool  # the oracle's no and yes both bind
    is_observed: bool = False
    is_recorded: bool = False


class Releases:
    """What a single process releases: it counts users anew, and its key is one."""

    def __init__(self) -> None:
        self._oracle = ZOracle(Z, WINDOW)
        self._expected: dict[Key, _Expected] = {}
        self._by_flow: dict[tuple[int, str], _Expected] = {}
        self._numbers = itertools.count()
        self._latest_ns = 0
        self._exact_from_ns = 0
        self._last_observed = -1
        self._pseudonyms: dict[int, dict[str, str]] = defaultdict(dict)
        self.observed = 0

    def clock_set_back(self) -> None:
        """From now on times are earlier than some before: the run may release less, until nothing
        of those counts any more."""
        self._exact_from_ns = self._latest_ns + WINDOW

    def send(self, visits: list[Visit]) -> None:
        """Notes visits, in the order in which they are sent."""
        for visit in visits:
            self._latest_ns = max(self._latest_ns, visit.t_ns)
            namespace = "dns" if visit.source == "dns" else "name"
            shared = self._oracle.observe(visit.t_ns, visit.user, (namespace, visit.name))
            is_exact = visit.t_ns > self._exact_from_ns
            expected = _Expected(next(self._numbers), visit, shared, is_exact)
            self._expected[visit.t_ns, visit.name, visit.source] = expected
            self._by_flow[visit.start_ns, visit.name] = expected
        self._forget(min((visit.t_ns for visit in visits), default=0) - REMEMBERED)

    def _forget(self, before_ns: int) -> None:
        for attribute, seen in list(self._oracle.seen.items()):
            self._oracle.seen[attribute] = [one for one in seen if one[0] >= before_ns]
            if not self._oracle.seen[attribute]:
                del self._oracle.seen[attribute]

    def observe(self, lines: list[dict[str, Any]]) -> None:
        """Takes the lines of observations of a part that is over."""
        for line in lines:
            expected = self._expected.get((line["t_ns"], line["name"], line["name_source"]))
            if expected is None:
                raise Broken("an observation is of no visit", str(line["t_ns"]))
            if expected.is_observed:
                raise Broken("an observation is written twice", str(line["t_ns"]))
            if not expected.may_release:
                raise Broken("a name is released that too few users share", str(line["t_ns"]))
            expected.is_observed = True
            self.observed += 1
            self._last_observed = max(self._last_observed, expected.number)
            self._learn(expected.visit, line["client"])

    def record(self, lines: list[dict[str, Any]]) -> None:
        """Takes the flow records of a part that is over."""
        for line in lines:
            if line["name"] is None:
                continue
            expected = self._by_flow.get((line["t_start_ns"], line["name"]))
            if expected is None or not expected.may_release:
                raise Broken("a record has a name that is not released", str(line["t_start_ns"]))
            if expected.is_recorded:
                raise Broken("a record is written twice", str(line["t_start_ns"]))
            expected.is_recorded = True
            self._learn(expected.visit, line["client"])

    def _learn(self, visit: Visit, pseudonym: str) -> None:
        """A user has one pseudonym an epoch, and no other user has it."""
        known = self._pseudonyms[visit.start_ns // WINDOW]
        if known.setdefault(visit.user, pseudonym) != pseudonym:
            raise Broken("a user has two pseudonyms in an epoch", str(visit.start_ns))
        if len(set(known.values())) < len(known):
            raise Broken("two users have one pseudonym", str(visit.start_ns))

    def check_so_far(self, lost: int = 0) -> None:
        """Nothing is missing before the last observation that has appeared, but for `lost` ones."""
        missing = [
            expected
            for expected in self._expected.values()
            if expected.may_release
            and not expected.is_observed
            and expected.number <= self._last_observed
        ]
        exact = [expected for expected in missing if expected.is_exact]
        if len(exact) > lost:
            first = exact[0].visit.t_ns
            raise Broken("observations are missing", f"{len(exact)}, lost {lost}, first {first}")
        self._check_epochs()

    def check_whole(self, lost: int = 0, records_lost: int = 0) -> None:
        """Nothing is missing at all, but for `lost` observations, and records of as many flows as
        given: the run has ended by itself."""
        self._last_observed = len(self._expected)
        self.check_so_far(lost)
        seen = [expected for expected in self._expected.values() if expected.is_observed]
        unrecorded = sum(not expected.is_recorded for expected in seen)
        if unrecorded > records_lost:
            what = f"{unrecorded} of {len(seen)}, records lost {records_lost}"
            raise Broken("released names are in no record", what)

    def _check_epochs(self) -> None:
        epochs = sorted(self._pseudonyms)
        for one, next_one in itertools.pairwise(epochs):
            before, after = self._pseudonyms[one], self._pseudonyms[next_one]
            both = before.keys() & after.keys()
            same = sum(before[user] == after[user] for user in both)
            if len(both) >= FEW and same > len(both) // 2:
                raise Broken("pseudonyms are the same in two epochs", str(one))

    def shared_pseudonyms(self, other: "Releases") -> Counter[bool]:
        """How many users have the same pseudonym (True) or another one (False) in an epoch in which
        both processes ran."""
        return Counter(
            other._pseudonyms[epoch][user] == pseudonym
            for epoch, known in self._pseudonyms.items()
            for user, pseudonym in known.items()
            if user in other._pseudonyms.get(epoch, {})
        )
