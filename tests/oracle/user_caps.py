# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Caps against invented users, by brute force over all votes that count."""

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field

REBASE_AFTER = 256


@dataclass(frozen=True, slots=True)
class CappedVote:
    """A vote of a user in a network. If `is_name`, the attribute counts as a name of the user."""

    t_ns: int
    user: Hashable
    network: Hashable
    attribute: Hashable
    is_name: bool = True


@dataclass
class CapsOracle:
    """Decides votes as docs/reference/names.md says. A cap that is 0 is off.

    The votes that the z-table counts are kept by attribute and, if they are names, by user.
    """

    window_ns: int
    max_per_prefix: int = 0
    max_names: int = 0
    min_age_ns: int = 0
    clock_ns: int | None = None
    too_late: int = 0
    first_ns: dict[Hashable, int] = field(default_factory=dict)
    counted: dict[Hashable, list[CappedVote]] = field(default_factory=lambda: defaultdict(list))
    names: dict[Hashable, list[CappedVote]] = field(default_factory=lambda: defaultdict(list))

    def vote(self, vote: CappedVote) -> str:
        """Returns "none" if the z-table gets the vote, else the cap that refuses it."""
        first = min(vote.t_ns, self.first_ns.get(vote.user, vote.t_ns))
        self.first_ns[vote.user] = first
        if vote.t_ns - first < self.min_age_ns:
            return "age"
        if self.clock_ns is not None and vote.t_ns < self.clock_ns - self.window_ns:
            self.too_late += 1
            if self.too_late == REBASE_AFTER:
                self.counted.clear()
                self.names.clear()
                self.clock_ns = None
                self._count(vote)
            return "none"
        start = vote.t_ns - self.window_ns
        users = {
            other.user
            for other in self.counted[vote.attribute]
            if other.network == vote.network and other.t_ns >= start
        }
        if self.max_per_prefix and len(users - {vote.user}) >= self.max_per_prefix:
            return "prefix"
        names = {other.attribute for other in self.names[vote.user] if other.t_ns >= start}
        if self.max_names and vote.is_name and len(names - {vote.attribute}) >= self.max_names:
            return "names"
        self._count(vote)
        return "none"

    def _count(self, vote: CappedVote) -> None:
        self.clock_ns = vote.t_ns if self.clock_ns is None else max(self.clock_ns, vote.t_ns)
        self.too_late = 0
        self.counted[vote.attribute].append(vote)
        if vote.is_name:
            self.names[vote.user].append(vote)
