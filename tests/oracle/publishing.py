# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The oracle of `publish`: a stream of rows, its windows and what leaves when, in plain Python.

oracle/suhdsa.py groups the rows of a window; here is what stands around it (csrc/rows/window.h).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from oracle.adaptive_l import adaptive_l
from oracle.suhdsa import Grouper, Row

REBASE_AFTER = 256


@dataclass(frozen=True)
class Came:
    """A row as it came: its time, its user, nodes of quasi-identifiers (None: unknown) and the
    sensitive values."""

    t: int
    quasi: tuple[int | None, ...]
    sensitive: tuple[int, ...] = ()
    user: int | None = None


@dataclass
class Stream:
    """A run of `publish`. releases: (time, {number of a row: its nodes}); fates: of each row."""

    grouper: Grouper
    labels: Sequence[Sequence[str | None]]  # of each column's nodes
    size: int
    delay: int | None = None
    sliding: bool = False
    once: int | None = None
    adapt: tuple[int, bool] | None = None  # the largest l, and whether it rises as entropy falls
    windows: list[list[int]] = field(default_factory=list)
    releases: list[tuple[int, dict[int, tuple[int, ...]]]] = field(default_factory=list)
    fates: dict[int, str] = field(default_factory=dict)
    waits: int = 0
    rows: list[Came] = field(default_factory=list)
    buffer: list[int] = field(default_factory=list)
    new: int = 0
    clock: int | None = None
    late: int = 0
    accepted: list[tuple[int | None, int]] = field(default_factory=list)

    def take(self, row: Came) -> None:
        """The next row."""
        number = len(self.rows)
        self.rows.append(row)
        if not self.reach(row.t):
            self.fates[number] = "late"
        elif None in row.quasi:
            self.fates[number] = "unknown"
        elif self.is_further(row):
            self.fates[number] = "once"
        else:
            self.put(number)

    def put(self, number: int) -> None:
        self.buffer.append(number)
        self.new += 1
        if self.sliding and self.delay is not None:
            self.buffer.sort(key=lambda i: self.rows[i].t)  # a stable sort
        if (len(self.buffer) if self.sliding else self.new) == self.size:
            self.close("full", self.clock)

    def is_further(self, row: Came) -> bool:
        """Whether a row of the user was taken less than `once` before, or after."""
        if self.once is None:
            return False
        own = [t for user, t in self.accepted if user == row.user]
        if own and row.t - max(own) < self.once:
            return True
        self.accepted.append((row.user, row.t))
        return False

    def reach(self, t: int) -> bool:
        """Moves the clock; false: the time is too late for its own bound."""
        if self.delay is not None and self.clock is not None and self.clock - t >= self.delay:
            self.late += 1
            if self.late < REBASE_AFTER:
                return False
            if self.buffer:
                self.close("clock", t)
            self.clock = t
            self.accepted = [(user, min(taken, t)) for user, taken in self.accepted]
        self.late = 0
        while self.buffer and self.delay is not None and t - self.oldest() >= self.delay:
            self.close("time", t)
        self.clock = t if self.clock is None else max(t, self.clock)
        return True

    def oldest(self) -> int:
        return min(self.rows[i].t for i in self.buffer)

    def end(self) -> None:
        """No row follows."""
        if self.buffer:
            self.close("last", self.clock)

    def users(self, numbers: Sequence[int]) -> int:
        users = [self.rows[i].user for i in numbers]
        return len(users) if None in users else len(set(users))

    def close(self, why: str, next_time: int | None) -> None:
        rows = [self.rows[i] for i in self.buffer]
        given = [Row(row.quasi, row.sensitive, row.user) for row in rows]
        alone = self.sliding and why in ("full", "time")
        aim = None if alone or self.adapt is None else self.next_aim(rows)
        groups = [self.grouper.oldest(given)] if alone else self.grouper.window(given, aim)
        groups = [group for group in groups if group]
        nodes = {
            self.buffer[place]: self.grouper.nodes(group) for group in groups for place in group
        }
        time = self.clock if self.delay is not None else max(row.t for row in rows)
        stopped = self.stopped(nodes)
        leaving = {number: of for number, of in nodes.items() if number not in stopped}
        if leaving:
            self.releases.append((time, leaving))
        self.fates |= dict.fromkeys(leaving, "released") | dict.fromkeys(stopped, "gate")
        left = [i for i in self.buffer if i not in nodes]
        stays = self.left_of_oldest(left) if alone else self.left_of_all(left, why, next_time)
        self.buffer, self.new = stays, 0

    def next_aim(self, rows: Sequence[Came]) -> int:
        """What repairs of this window aim at, by the entropy of the first sensitive column."""
        assert self.adapt is not None
        most, rises = self.adapt
        pairs = {
            (row.sensitive[0], i if row.user is None else row.user) for i, row in enumerate(rows)
        }
        self.windows.append([value for value, _ in pairs])
        least = self.grouper.rule.l
        return [*adaptive_l(self.windows, least, most, rises=rises, alpha=0.3, band=0.05, dwell=5)][
            -1
        ]

    def stopped(self, nodes: Mapping[int, tuple[int, ...]]) -> list[int]:
        """The rows of classes, as written, that do not hold: a user's rows may be in two groups
        that hold each and are written the same."""
        classes: dict[tuple[object, ...], list[int]] = {}
        for number, of in nodes.items():
            written = tuple(label[node] for label, node in zip(self.labels, of, strict=True))
            classes.setdefault(written, []).append(number)
        return [i for members in classes.values() if not self.holds(members) for i in members]

    def holds(self, numbers: Sequence[int]) -> bool:
        users = self.users(numbers)
        for column in range(len(self.rows[numbers[0]].sensitive)):
            rows = [(i, self.rows[i]) for i in numbers]
            pairs = {
                (row.sensitive[column], i if row.user is None else row.user) for i, row in rows
            }
            if not self.grouper.rule.holds(users, Counter(value for value, _ in pairs)):
                return False
        return users >= self.grouper.rule.k

    def left_of_oldest(self, left: list[int]) -> list[int]:
        first = self.buffer[0]
        if first not in left:
            return left
        enough = self.users(self.buffer) >= self.grouper.rule.k
        self.fates[first] = "diversity" if enough else "users"
        return left[1:]

    def left_of_all(self, left: list[int], why: str, next_time: int | None) -> list[int]:
        if why == "last":
            self.fates |= dict.fromkeys(left, "end")
            return []
        stays = []
        if self.delay is not None and why != "clock":
            stays = [i for i in left if next_time - self.rows[i].t < self.delay]
        over = [i for i in left if i not in stays]
        enough = self.users(over) >= self.grouper.rule.k
        self.fates |= dict.fromkeys(over, "diversity" if enough else "users")
        most = self.size - 1 if self.sliding else self.size
        gone = stays[: max(len(stays) - most, 0)]
        self.fates |= dict.fromkeys(gone, "no_room")
        return stays[len(gone) :]
