# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The rule of generalization in Python, and the brute force that judges it.

`behind` counts the users behind a published label by definition: from all exposures and all
published labels, without a table of votes. `Rule` is what csrc/anonymity/levels does, observation
by observation. `Naive` and `Cascade` are simpler rules that isolate users, and `BROKEN` are ways to
leave a part of the rule out: `behind` has to notice all of them.
"""

import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Chain = tuple[int, ...]
"""Labels of a value, finest first. 0: the value lacks this level."""

NEVER = -(1 << 62)
SLICES = 7
"""Slices of a window: the unit in which the time of a value's last publication is stored."""


# ---- worlds -------------------------------------------------------------------------------------


@dataclass
class World:
    """Values with their chains and weights. Labels are numbers, different at each level.

    above: for each label, the labels at later levels beneath which its values lie.
    """

    chains: list[Chain]
    weights: list[float]
    above: dict[int, dict[int, set[int]]] = field(init=False)

    def __post_init__(self) -> None:
        self.above = defaultdict(lambda: defaultdict(set))
        for chain in self.chains:
            for level, label in enumerate(chain):
                for higher in range(level + 1, len(chain)):
                    if label and chain[higher]:
                        self.above[label][higher].add(chain[higher])

    @property
    def levels(self) -> int:
        """The number of levels above the values."""
        return len(self.chains[0]) - 1


def _numbered(chains: Sequence[Sequence[object]]) -> list[Chain]:
    """Gives each label of each level a number; None is 0."""
    numbers: dict[object, int] = {}
    return [
        tuple(
            0 if label is None else numbers.setdefault((level, label), len(numbers) + 1)
            for level, label in enumerate(chain)
        )
        for chain in chains
    ]


def _weights(rng: random.Random, n: int) -> list[float]:
    power = rng.choice((0.5, 1, 1.5))
    return [1 / (rank + 1) ** power for rank in rng.sample(range(n), n)]


def names(rng: random.Random, *, gaps: bool = False) -> World:
    """Names of domains of categories. gaps: some names lack a domain, a category or both."""
    categories = [rng.randrange(rng.randint(1, 2)) for _domain in range(rng.randint(2, 6))]
    chains: list[list[object]] = [
        [(domain, name), domain, category]
        for domain, category in enumerate(categories)
        for name in range(rng.randint(1, 7))
    ]
    for chain in chains if gaps else ():
        if rng.random() < 0.3:
            chain[rng.randint(1, 2)] = None
    return World(_numbered(chains), _weights(rng, len(chains)))


def domains(rng: random.Random) -> World:
    """Names and their domains."""
    world = names(rng)
    return World([chain[:2] for chain in world.chains], world.weights)


def addresses(rng: random.Random) -> World:
    """Addresses of networks (AS) that lie in two countries each."""
    chains = [
        [(network, address), network, rng.randrange(2)]
        for network in range(rng.randint(2, 6))
        for address in range(rng.randint(1, 7))
    ]
    return World(_numbered(chains), _weights(rng, len(chains)))


def rows(rng: random.Random, columns: int = 2) -> World:
    """Rows of columns with three levels each, in nested steps that raise one column by one."""
    sizes = [rng.randint(3, 8 if columns == 2 else 4) for _column in range(columns)]
    groups = [[rng.randrange(2 + (size > 4)) for _value in range(size)] for size in sizes]
    steps = [[0] * columns]
    while steps[-1] != [2] * columns:
        column = rng.choice([j for j in range(columns) if steps[-1][j] < 2])
        steps.append([level + (j == column) for j, level in enumerate(steps[-1])])
    values: list[tuple[int, ...]] = [()]
    for size in sizes:
        values = [(*value, one) for value in values for one in range(size)]

    def label(value: Sequence[int], step: Sequence[int]) -> tuple[object, ...]:
        return tuple(
            one if level == 0 else ("group", groups[j][one]) if level == 1 else "*"
            for j, (one, level) in enumerate(zip(value, step, strict=True))
        )

    chains = [[label(value, step) for step in steps[:-1]] for value in values]
    return World(_numbered(chains), _weights(rng, len(values)))


# ---- the rule -----------------------------------------------------------------------------------


def network_of(user: int) -> int:
    """The network of a user, for `max_per_network`."""
    return user // 4


class Label:
    """The votes of a label, user -> (time, chain of the value), oldest first, and its mark."""

    __slots__ = ("mark", "queued", "votes")

    def __init__(self, now: int) -> None:
        self.votes: dict[int, tuple[int, Chain]] = {}
        self.mark = NEVER
        self.queued = now

    def touched(self) -> int:
        """The time of the last vote or publication."""
        last = next(reversed(self.votes.values()))[0] if self.votes else NEVER
        return max(last, self.mark)

    def trim(self, start: int) -> None:
        """Drops the votes before start."""
        while self.votes:
            user = next(iter(self.votes))
            if self.votes[user][0] >= start:
                return
            del self.votes[user]


class VoteTable:
    """Labels of one level in the order of a queue, as csrc/anonymity/vote_table."""

    def __init__(self, window: int, keep: int, max_votes: int, max_labels: int) -> None:
        self.window, self.keep = window, keep
        self.max_votes, self.max_labels = max_votes, max_labels
        self.labels: dict[int, Label] = {}

    def votes(self) -> int:
        """The number of votes of all labels."""
        return sum(len(label.votes) for label in self.labels.values())

    def _queue_again(self, name: int, now: int) -> None:
        label = self.labels.pop(name)
        label.trim(now - self.window)
        label.queued = now
        self.labels[name] = label

    def reclaim(self, now: int) -> None:
        """Frees up to two labels at the end of the queue that are out of the window."""
        for _step in range(2):
            if not self.labels:
                return
            name, label = next(iter(self.labels.items()))
            if label.queued >= now - self.window:
                return
            if label.touched() < now - self.window:
                del self.labels[name]
            else:
                self._queue_again(name, now)

    def _evict(self, kept: int, now: int) -> bool:
        for _step in range(16):
            if not self.labels:
                return False
            name, label = next(iter(self.labels.items()))
            idle = label.touched() <= label.queued and label.mark < now - self.window
            if name != kept and idle:
                del self.labels[name]
                return True
            self._queue_again(name, now)
        return False

    def add(self, name: int, now: int) -> Label | None:
        """The label, which may be new; None if there is no room."""
        if name not in self.labels:
            if len(self.labels) == self.max_labels and not self._evict(0, now):
                return None
            self.labels[name] = Label(now)
        return self.labels[name]

    def vote(self, name: int, now: int, user: int, chain: Chain) -> bool:
        """Stores a vote; False if there is no room."""
        votes = self.labels[name].votes
        votes.pop(user, None)
        if len(votes) == self.keep:
            del votes[next(iter(votes))]
        while self.max_votes < 1 << 20 and self.votes() >= self.max_votes:
            if self._evict(name, now):
                continue
            if not votes:
                return False
            del votes[next(iter(votes))]
        votes[user] = now, chain
        return True


class Decider(Protocol):
    """A rule: decides exposures one after another."""

    def observe(self, t: int, user: int, chain: Chain, z: int) -> int | None:
        """The level at which the exposure is published, or None."""

    def passes(self, label: int, level: int, t: int, z: int) -> bool:
        """True if the rule's own count of a label is at least z."""


class Rule:
    """The rule of csrc/anonymity/levels.

    z_max: the largest z. without: the part of the rule to leave out, one of BROKEN. rebase_after:
    exposures in a row that are too late and prove that the clock was wrong. max_per_network: users
    of a network that may have votes for a label.
    """

    def __init__(
        self,
        world: World,
        window: int,
        *,
        z_max: int = 8,
        without: str = "",
        rebase_after: int = 256,
        max_votes: int = 1 << 22,
        max_labels: int = 1 << 20,
        max_per_network: int | None = None,
    ) -> None:
        self.world, self.window, self.without = world, window, without
        self.max_per_network = max_per_network
        self.rebase_after, self.rejected = rebase_after, 0
        self.keep = min(4 * z_max, 1000)
        self.slice = -(-window // SLICES)
        self.limits = max_votes, max_labels
        self.clock = self.floor = self.paused_to = NEVER
        self.z = 0
        self.users = 0
        self._empty()

    def _empty(self) -> None:
        self.values: dict[int, dict[int, int]] = {}  # value -> user -> time of the last exposure
        self.marks: dict[int, int] = {}  # value -> slice of the last publication
        self.tables = [
            VoteTable(self.window, self.keep, *self.limits) for _level in range(self.world.levels)
        ]

    # ---- level 0

    def _count(self, value: int, t: int) -> int:
        users = self.values.get(value, {})
        return sum(t - self.window <= s <= t for s in users.values())

    def _is_marked(self, value: int, now: int) -> bool:
        slices = SLICES // 2 if self.without == "whole marks" else SLICES
        return value in self.marks and now // self.slice - self.marks[value] <= slices

    def _publish_value(self, chain: Chain, t: int) -> None:
        value = chain[0]
        if not self._is_marked(value, max(t, self.clock)):
            self._withdraw(chain, 0)
            self.marks.pop(value, None)
        self.marks[value] = max(self.marks.get(value, NEVER), t // self.slice)

    def _accept(self, t: int) -> bool:
        """Follows the clock; False for a time that is too late."""
        if t >= self.clock - self.window:
            self.rejected = 0
            self.clock = max(self.clock, t)
            return True
        self.rejected += 1
        if self.rejected < self.rebase_after:
            return False
        self.rejected = 0
        self.clock = self.floor = t
        self.paused_to = t + self.window
        self._empty()
        return True

    def _decide(self, t: int, n: int, z: int, released: bool | None) -> bool:
        """The decision at level 0 on n users. Asserts that a z-table releases no more."""
        if released is None or t >= self.clock:
            return n >= z
        assert n >= z or not released
        return released

    def set_z(self, z: int) -> None:
        """Changes z; the votes before a fall no longer count."""
        if z < self.z and self.without != "floor":
            self.floor = self.clock
        self.z = z

    def observe(
        self,
        t: int,
        user: int,
        chain: Chain,
        z: int,
        *,
        peek: bool = False,
        early_z: int = 0,
        released: bool | None = None,
    ) -> int | None:
        """The level at which the exposure is published, or None.

        peek: only looks whether z users share the value. early_z: a higher z of an earlier time, by
        which the exposure is decided; 0: z. released: the decision of a z-table at level 0, which
        counts if the exposure is before the clock: a z-table may have dropped users by then.
        """
        self.set_z(z)
        self.users = 0
        early = early_z > z
        if peek:
            if not self._decide(t, self._count(chain[0], t), early_z if early else z, released):
                return None
            self._publish_value(chain, t)
            return 0
        late = t < self.clock
        before = self.values
        if not self._accept(t):
            return None
        rebased = before is not self.values
        late = (late and not rebased) or early
        users = self.values.setdefault(chain[0], {})
        users[user] = max(t, users.get(user, NEVER))
        for one in [v for v, s in users.items() if s < min(t, self.clock) - self.window]:
            del users[one]
        own = 0 if users[user] <= t else 1  # a later time of the user itself is stored
        n = self._count(chain[0], t) + own
        if self._decide(t, n, early_z if early else z, released):
            self._publish_value(chain, t)
            return 0
        if late and self.without != "late rule":
            if self._count(chain[0], self.clock) >= z:
                self._publish_value(chain, self.clock)
            return None
        if self.clock <= self.paused_to:
            return None
        return self._climb(t, user, chain, z)

    # ---- levels above

    def _withdraw(self, chain: Chain, level: int) -> None:
        label = chain[level]
        if self.without == "withdrawal by labels" and level > 0:
            return
        for higher in range(level + 1, len(chain)):
            if self.without == "withdrawal at all levels" and higher > level + 1:
                return
            labels: set[int] = self.world.above[label][higher] if level > 0 else {chain[higher]}
            if self.without == "parents":
                labels = {chain[higher]}
            for one in labels:
                found = self.tables[higher - 1].labels.get(one)
                if found is not None:
                    for user in [v for v, (_, c) in found.votes.items() if c[level] == label]:
                        del found.votes[user]

    def _is_over_cap(self, label: Label, user: int) -> bool:
        """True if the other users of the user's network have as many votes as the cap allows."""
        if self.max_per_network is None:
            return False
        others = [v for v in label.votes if v != user and network_of(v) == network_of(user)]
        return len(others) >= self.max_per_network

    def _climb(self, t: int, user: int, chain: Chain, z: int) -> int | None:
        voting = not self._is_marked(chain[0], t) or self.without == "marks"
        for level in range(1, len(chain)):
            name, table = chain[level], self.tables[level - 1]
            if not name:
                continue
            table.reclaim(t)
            label = table.add(name, t) if voting else table.labels.get(name)
            if label is None and voting:
                return None
            if label is None:
                continue
            label.trim(max(t - self.window, self.floor + 1))
            if voting and self._is_over_cap(label, user):
                return None
            if voting and not table.vote(name, t, user, chain):
                return None
            n = len(label.votes) - (not voting and user in label.votes)
            whole = self.window if self.without != "whole marks" else self.window // 2
            if n >= z:
                if label.mark < t - whole:
                    self._withdraw(chain, level)
                label.mark = max(label.mark, t)
                self.users = n
                return level
            if label.mark >= t - whole and self.without != "marks":
                voting = False
        return None

    def passes(self, label: int, level: int, t: int, z: int) -> bool:
        """True if the rule's own count of a label is at least z."""
        if level == 0:
            return self._count(label, t) >= z
        found = self.tables[level - 1].labels.get(label)
        if found is None:
            return False
        start = max(t - self.window, self.floor + 1)
        return sum(start <= s for s, _chain in found.votes.values()) >= z


BROKEN = {
    "floor": "moving",
    "withdrawal at all levels": "names",
    "withdrawal by labels": "names",
    "marks": "names",
    "whole marks": "names",
    "late rule": "late",
    "parents": "addresses",
}
"""Parts of the rule that `Rule(without=...)` leaves out, and a stream in which it shows."""


class Naive:
    """Every exposure counts at every level: what `filter --generalize` did. In order of time."""

    stops = False

    def __init__(self, world: World, window: int) -> None:
        self.window = window
        self.users: dict[int, dict[int, int]] = defaultdict(dict)

    def observe(self, t: int, user: int, chain: Chain, z: int) -> int | None:
        """The level at which the exposure is published, or None."""
        found = None
        for level, label in enumerate(chain):
            if not label or (self.stops and found is not None):
                continue
            users = self.users[label]
            users.pop(user, None)
            users[user] = t
            while next(iter(users.values())) < t - self.window:
                del users[next(iter(users))]
            if found is None and len(users) >= z:
                found = level
        return found

    def passes(self, _label: int, _level: int, _t: int, _z: int) -> bool:
        """False: a simple rule keeps no count that may be asked."""
        return False


class Cascade(Naive):
    """Only failed exposures count above, and nothing is withdrawn."""

    stops = True


class Literal:
    """The check that the rule replaces, for values and one level: all votes are looked up."""

    def __init__(self, world: World, window: int) -> None:
        self.window = window
        self.values: dict[int, dict[int, int]] = defaultdict(dict)
        self.votes: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
        self.shown: dict[int, int] = {}

    def _count(self, value: int, t: int) -> int:
        return sum(s >= t - self.window for s in self.values[value].values())

    def observe(self, t: int, user: int, chain: Chain, z: int) -> int | None:
        """The level at which the exposure is published, or None."""
        value, label = chain[:2]
        self.values[value][user] = t
        if self._count(value, t) >= z:
            self.shown[value] = t
            return 0
        votes = self.votes[label]
        votes[user] = t, value
        good = {
            one: self.shown.get(one, NEVER) < t - self.window and self._count(one, t) < z
            for one in {one for _s, one in votes.values()}
        }
        return 1 if sum(s >= t - self.window and good[v] for s, v in votes.values()) >= z else None

    def passes(self, _label: int, _level: int, _t: int, _z: int) -> bool:
        """False: the check looks at values, which `behind` counts itself."""
        return False


# ---- brute force --------------------------------------------------------------------------------

Exposure = tuple[int, int, Chain]
"""(time, user, chain)"""


def behind(
    decider: Decider,
    history: Sequence[Exposure],
    shown: dict[int, deque[int]],
    label: tuple[int, int],
    window: int,
    t: int,
    z: int,
) -> set[int]:
    """Returns the users behind a label that is published at t.

    history: all exposures of the window, and others. shown: the times at which labels were
    published. label: (number, level).
    """
    number, level = label
    inside = [one for one in history if t - window <= one[0] <= t]
    sharing: dict[int, set[int]] = defaultdict(set)
    for _s, user, chain in inside:
        sharing[chain[0]].add(user)
    taken: dict[int, bool] = {0: False}
    users = set()
    for _s, user, chain in inside:
        if chain[level] != number or user in users:
            continue
        for lower, beneath in enumerate(chain[:level]):
            if beneath not in taken:
                taken[beneath] = (
                    (lower == 0 and len(sharing[beneath]) >= z)
                    or any(t - window <= s <= t for s in shown.get(beneath, ()))
                    or decider.passes(beneath, lower, t, z)
                )
        if not any(taken[beneath] for beneath in chain[:level]):
            users.add(user)
    return users


@dataclass
class Stream:
    """Kinds of streams of exposures: `world` makes a world, z may move, some exposures are late."""

    world: Callable[[random.Random], World] = names
    moving: bool = False
    late: bool = False


STREAMS = {
    "names": Stream(),
    "two levels": Stream(domains),
    "gaps": Stream(lambda rng: names(rng, gaps=True), moving=True),
    "moving": Stream(moving=True),
    "late": Stream(moving=True, late=True),
    "addresses": Stream(addresses, moving=True),
    "rows": Stream(rows),
    "rows of three": Stream(lambda rng: rows(rng, 3), moving=True, late=True),
}
LENGTH = 500
"""Exposures of a world."""


@dataclass
class Verdict:
    """Counts of a judged stream. short: labels with fewer than z users behind them. worst: the
    least number of users behind a label, minus z."""

    exposures: int = 0
    values: int = 0
    labels: int = 0
    short: int = 0
    worst: int = 1 << 30


def worlds(
    kind: str, seed: int
) -> Iterator[tuple[World, int, Iterator[tuple[int, int, Chain, int]]]]:
    """Yields worlds without end: (world, window, (time, user, chain, z) of LENGTH exposures)."""
    stream = STREAMS[kind]
    for number in range(1 << 40):
        rng = random.Random(f"{kind}/{seed}/{number}")
        world = stream.world(rng)
        window = rng.choice((21, 42, 84))  # slices of whole ticks
        yield world, window, _exposures(rng, world, window, stream)


def _exposures(
    rng: random.Random, world: World, window: int, stream: Stream
) -> Iterator[tuple[int, int, Chain, int]]:
    z, users, t = rng.choice((2, 3, 4, 5)), rng.choice((6, 12, 25, 60)), 1000
    values = rng.choices(world.chains, world.weights, k=LENGTH)
    for chain in values:
        t += rng.choice((0, 1, 1, 2)) if rng.random() < 0.995 else rng.randint(1, 2 * window)
        if stream.moving and rng.random() < 0.02:
            z = rng.choice((2, 3, 5, 8))
        late = stream.late and rng.random() < 0.1
        yield t - rng.randint(1, window) if late else t, rng.randrange(users), chain, z


def judge(
    make: Callable[[World, int], Decider],
    kind: str,
    exposures: int,
    *,
    seed: int = 1,
    first: bool = False,
) -> Verdict:
    """Returns the counts of a rule on a kind of stream. first: stop at the first short label."""
    found = Verdict()
    for world, window, stream in worlds(kind, seed):
        if found.exposures >= exposures or (first and found.short):
            return found
        decider = make(world, window)
        history: deque[Exposure] = deque()
        shown: dict[int, deque[int]] = defaultdict(lambda: deque(maxlen=200))
        for t, user, chain, z in stream:
            while history and history[0][0] < t - 3 * window:
                history.popleft()
            history.append((t, user, chain))
            level = decider.observe(t, user, chain, z)
            found.exposures += 1
            if level is None:
                continue
            if level == 0:
                found.values += 1
            else:
                label = chain[level], level
                group = behind(decider, history, shown, label, window, t, z)
                found.labels += 1
                found.short += len(group) < z
                found.worst = min(found.worst, len(group) - z)
            shown[chain[level]].append(t)
    return found
