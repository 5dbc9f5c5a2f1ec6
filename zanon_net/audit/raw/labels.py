# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Labels of `--levels`: whether z users stand behind each label, by brute force.

A user stands behind a label if the user exposed a value below the label in the window, and neither
the value nor a finer label of it is shown in the window or passes at the time of the label.

A finer label passes without being shown only after a fall of z. This case is not checked.
"""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from zanon_net.audit.raw.exposures import Exposure, Exposures, Name
from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.flows import DNS, RESOLVER, SERVER
from zanon_net.audit.raw.lists import Lists
from zanon_net.audit.raw.names import IDLE_NS, Claim, Settings, fits, found
from zanon_net.audit.raw.shown import Row

SPACES = ("name", DNS, SERVER, RESOLVER)
NEEDS = {
    "*.": ("suffixes",),
    "category:": ("categories", "suffixes"),
    "as:": ("networks",),
    "country:": ("networks",),
}
"""The lists that a label depends on."""


@dataclass(slots=True)
class Labels:
    """Labels in the rows of a folder, and when each value and label was shown for certain.

    exact: true if the engine counted each exposure of the captures, so that a name that passes by
    the audit's count has passed. unchecked: number of labels whose lists are missing.
    """

    seen: Exposures
    settings: Settings
    lists: Lists
    exact: bool
    unchecked: int = 0
    _claims: list[tuple[Claim, Row]] = field(default_factory=list)
    _shown: dict[Name, list[int]] = field(default_factory=lambda: defaultdict(list))
    _below: dict[Name, list[tuple[Exposure, str | bytes]]] = field(default_factory=dict)

    def show(self, name: Name, times: Iterable[int]) -> None:
        """Notes that a row shows a value whose exposure is certain."""
        if not self.lists.levels:
            return
        for t_ns in times:
            rows = self._shown[name]
            if t_ns not in rows[bisect_left(rows, t_ns) :][:1]:
                insort(rows, t_ns)

    def take(self, claim: Claim, row: Row) -> None:
        """Takes a label, which is judged when all rows are known."""
        text = str(claim.name[1])
        needs = next(needs for start, needs in NEEDS.items() if text.startswith(start))
        if set(needs) & set(self.lists.missing):
            self.unchecked += 1
            return
        self._claims.append((claim, row))
        if row.form == "observations" and claim.times.exact:
            self.show(claim.name, [claim.times.first_ns])

    def findings(self) -> Iterator[Finding]:
        """Yields the labels that have too few users behind them."""
        if not self._claims:
            return
        for (space, what), rows in self.seen.index.items():
            if space in SPACES and not (isinstance(what, str) and self.lists.refuses(what)):
                for label in self.lists.chain(what):
                    self._below.setdefault((space, label), []).extend((one, what) for one in rows)
        for below in self._below.values():
            below.sort(key=lambda pair: pair[0].t_ns)
        for claim, row in self._claims:
            finding = self._judge(claim, row)
            if finding is not None:
                yield finding

    def _judge(self, claim: Claim, row: Row) -> Finding | None:
        check = "addresses" if claim.name[0] in (SERVER, RESOLVER) else "names"
        if claim.peek:
            return found(row, "reasons", claim, 0, self.settings.z)  # names of DNS have no label
        best, needed, last = 0, self.settings.z_at(claim.times.last_ns), claim.times.last_ns
        proven = True
        for one, what in reversed(self._of_row(claim, row)):
            z = self.settings.z_at(one.t_ns)
            users = self._behind(claim.name, one, what, z)
            if users >= z:
                return None
            if users >= best:
                best, needed, last = users, z, one.t_ns
            proven &= self.exact or self._behind(claim.name, one, what, z, passing=False) < z
        idle_ns = 0 if row.form == "observations" else IDLE_NS
        first = last - self.settings.window_ns - idle_ns
        proven &= best + self._doubtful(claim.name, first, last) < needed
        return found(row, check, claim, best, needed, proven=proven)

    def _doubtful(self, label: Name, first_ns: int, last_ns: int) -> float:
        """Returns how many more users may have exposed a value below a label."""
        more = {
            user
            for (space, what), rows in self.seen.maybe.items()
            if space == label[0] and label[1] in self.lists.chain(what)
            for t_ns, user in rows
            if first_ns <= t_ns <= last_ns
        }
        return self.seen.doubtful(label, first_ns, last_ns) + len(more)

    def _of_row(self, claim: Claim, row: Row) -> list[tuple[Exposure, str | bytes]]:
        """Returns the exposures below a label that may be the row's."""
        rows = self._below.get(claim.name, [])
        first = claim.times.first_ns if claim.times.exact else 0
        start = bisect_left(rows, first, key=lambda pair: pair[0].t_ns)
        end = bisect_right(rows, claim.times.last_ns, key=lambda pair: pair[0].t_ns)
        pairs = [pair for pair in rows[start:end] if fits(pair[0], claim, row, self.seen)]
        return pairs or (rows[start:end] if claim.times.exact else [])

    def _behind(
        self, label: Name, own: Exposure, what: str | bytes, z: int, *, passing: bool = True
    ) -> int:
        """Returns the number of users behind a label, at most z, if a user's exposure of a value is
        shown as the label. passing: false if names that pass do not matter."""
        rows, t_ns = self._below[label], own.t_ns
        at = bisect_right(rows, t_ns, key=lambda pair: pair[0].t_ns)
        over: dict[str | bytes, bool] = {}
        users: set[int] = set()
        # A user whose value was shown in a finer form does not count.
        without = {own.user} if self._is_shown(label, what, t_ns) else set()
        while at and rows[at - 1][0].t_ns >= t_ns - self.settings.window_ns and len(users) < z:
            at -= 1
            one, value = rows[at]
            if one.user in users or one.user in without:
                continue
            if value not in over:
                over[value] = self._is_shown(label, value, t_ns) or (
                    passing and self._passes((label[0], value), t_ns, z)
                )
            if not over[value]:
                users.add(one.user)
        return len(users)

    def _passes(self, name: Name, t_ns: int, z: int) -> bool:
        """Returns whether z users shared a value before. The order of exposures of one time is not
        known."""
        return len(self.seen.users_in(name, t_ns - self.settings.window_ns, t_ns - 1)) >= z

    def _is_shown(self, label: Name, value: str | bytes, t_ns: int) -> bool:
        """Returns whether a value, or a finer label of it, is shown in the window before."""
        chain = self.lists.chain(value)
        finer = [value, *chain[: chain.index(str(label[1]))]]
        for text in finer:
            times = self._shown.get((label[0], text), [])
            at = bisect_left(times, t_ns - self.settings.window_ns)
            if at < len(times) and times[at] < t_ns:
                return True
        return False


__all__ = ["Labels"]
