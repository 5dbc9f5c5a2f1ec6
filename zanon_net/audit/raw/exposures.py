# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""All exposures of a capture, with the number of users that shared each name when it counted."""

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from zanon_net.audit.raw.attributes import OF_CERTIFICATES, READERS
from zanon_net.audit.raw.flows import (
    CERTIFICATE,
    DNS,
    RESOLVER,
    SERVER,
    UNCERTAIN,
    Flow,
    FlowTable,
    Rules,
)
from zanon_net.audit.raw.networks import is_multicast, is_special
from zanon_net.audit.raw.packets import UDP, Frame, Read
from zanon_net.audit.raw.sweep import Observations, count_users

Name = tuple[str, str | bytes]  # namespace, and text or address


@dataclass(frozen=True, slots=True)
class Exposure:
    """An exposure that counted, and the number of users then."""

    t_ns: int
    users: int
    user: int
    flow: int


@dataclass(slots=True)
class Exposures:
    """Flows and exposures of all captures.

    flows: all closed flows. moments: times of all packets, in order. of_moments: number of each
    packet's flow. index: exposures of each name, in order of time. started: the same by
    name and first packet of the flow.
    maybe: (time, user) of names whose evidence was not seen. barred: (time, reason) of names that
    never count. unread: (first, last, user) of flows that may have exposed any name. partly: flows
    that may have exposed any text of a namespace, in this form. peaks: what `peak` returned before.
    attributes: words of the attributes besides names that the reader can read.
    """

    rules: Rules
    flows: list[Flow] = field(default_factory=list)
    moments: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    of_moments: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    clients: dict[bytes, list[int]] = field(default_factory=dict)
    index: dict[Name, list[Exposure]] = field(default_factory=dict)
    started: dict[tuple[Name, int], list[Exposure]] = field(default_factory=dict)
    maybe: dict[Name, list[tuple[int, bytes]]] = field(default_factory=lambda: defaultdict(list))
    barred: dict[Name, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    unread: list[tuple[int, int, bytes]] = field(default_factory=list)
    partly: dict[str, list[tuple[int, int, bytes]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    dark: list[int] = field(default_factory=list)
    users: dict[bytes, int] = field(default_factory=dict)
    tunnelled: set[bytes] = field(default_factory=set)
    peaks: dict[Name, int] = field(default_factory=dict)
    packets: int = 0
    cut: int = 0  # captures that end in the middle of a frame
    reader: str = ""
    attributes: frozenset[str] = frozenset()
    first_ns: int | None = None
    last_ns: int | None = None
    _by_number: dict[int, Flow] = field(default_factory=dict)
    _ends: set[bytes] = field(default_factory=set)

    def is_tunnelled(self, address: bytes) -> bool:
        """Returns whether the address was in a tunnel, or at an end of one."""
        return address in self.tunnelled

    def peak(self, name: Name) -> int:
        """Returns the largest number of users that ever shared the name."""
        if name not in self.peaks:
            self.peaks[name] = max((one.users for one in self.index.get(name, ())), default=0)
        return self.peaks[name]

    def users_in(self, name: Name, first_ns: int, last_ns: int) -> set[int]:
        """Returns the users that exposed the name in a span of time."""
        return {one.user for one in self.between(name, first_ns, last_ns)}

    def between(self, name: Name, first_ns: int, last_ns: int) -> list[Exposure]:
        """Returns the exposures of the name in a span of time."""
        rows = self.index.get(name, [])
        start = bisect_left(rows, first_ns, key=lambda one: one.t_ns)
        end = bisect_right(rows, last_ns, key=lambda one: one.t_ns)
        return rows[start:end]

    def flows_at(self, first_ns: int, last_ns: int) -> list[Flow]:
        """Returns the flows with a packet in a span of time."""
        if len(self._by_number) != len(self.flows):
            self._by_number = {flow.number: flow for flow in self.flows}
        start, end = np.searchsorted(self.moments, (first_ns, last_ns + 1))
        numbers = np.unique(self.of_moments[start:end]).tolist()
        return [self._by_number[number] for number in numbers if number in self._by_number]

    def is_dark(self, first_ns: int, last_ns: int) -> bool:
        """Returns whether a frame of a span of time was not read."""
        at = bisect_left(self.dark, first_ns)
        return at < len(self.dark) and self.dark[at] <= last_ns

    def has_end(self, address: bytes) -> bool:
        """Returns whether the address is at an end of a flow, or of a tunnel."""
        if not self._ends:
            self._ends |= self.tunnelled
            for flow in self.flows:
                self._ends.update(end for end, _port in flow.ends)
                self._ends.update(flow.known_as)
        return address in self._ends

    def doubtful(self, name: Name, first_ns: int, last_ns: int) -> float:
        """Returns how many more users may have exposed the name in a span of time.

        These are the users of flows that were not read, and of names without evidence. The number
        is infinite if a frame was not read.
        """
        if self.is_dark(first_ns, last_ns):
            return float("inf")
        known = self.users_in(name, first_ns, last_ns)
        more = {user for t_ns, user in self.maybe.get(name, ()) if first_ns <= t_ns <= last_ns}
        if name[0] != SERVER:
            flows = [*self.unread, *self.partly.get(name[0], ())]
            more |= {user for a, b, user in flows if a <= last_ns and b >= first_ns}
        return len({user for user in more if self.users.get(user) not in known})


def collect(packets: Iterable[Read], rules: Rules, memory: int, threads: int = 1) -> Exposures:
    """Reads packets, and counts the users of each name."""
    found = Exposures(rules, attributes=frozenset(rules.attributes) & READERS.keys())
    table = FlowTable(rules, found.flows.append)
    for p in packets:
        found.first_ns = p.t_ns if found.first_ns is None else min(found.first_ns, p.t_ns)
        found.last_ns = p.t_ns if found.last_ns is None else max(found.last_ns, p.t_ns)
        if isinstance(p, Frame):
            found.cut += p.cut
            if p.dark:
                found.dark.append(p.t_ns)
            continue
        found.packets += 1
        if p.outer and rules.networks.given:
            found.tunnelled.update((p.source, p.target))
            for pair in p.outer:
                found.tunnelled.update(pair)
        table.take(p)
    table.end()
    found.clients = table.clients
    times, numbers = (np.frombuffer(one, one.typecode) for one in (table.moments, table.of_moments))
    order = np.argsort(times, kind="stable")
    found.moments, found.of_moments = times[order], numbers[order]
    found.dark.sort()
    count(found, memory, threads)
    return found


def count(found: Exposures, memory: int, threads: int) -> None:
    """Fills the index."""
    names: dict[Name, int] = {}
    times, users, numbers, flows = array("q"), array("I"), array("I"), array("I")
    for at, flow in enumerate(found.flows):
        if not flow.recorded:
            continue
        note(found, flow)
        for name, t_ns in votes(flow, found.rules):
            times.append(t_ns)
            users.append(found.users.setdefault(flow.user, len(found.users)))
            numbers.append(names.setdefault(name, len(names)))
            flows.append(at)
    rows = Observations(
        np.frombuffer(times, np.int64),
        np.frombuffer(users, np.uint32),
        np.frombuffer(numbers, np.uint32),
    )
    counts = count_users(rows, found.rules.window_ns, memory=memory, threads=threads)
    texts = list(names)
    for at in np.argsort(rows.t_ns, kind="stable").tolist():
        one = Exposure(times[at], int(counts[at]), users[at], flows[at])
        name = texts[numbers[at]]
        found.index.setdefault(name, []).append(one)
        first_ns = found.flows[one.flow].first_ns
        found.started.setdefault((name, first_ns), []).append(one)


def votes(flow: Flow, rules: Rules) -> Iterator[tuple[Name, int]]:
    """Yields what a flow exposes, and when it counted."""
    for name in flow.names:
        casts = name.space != DNS or rules.dns_votes != "no"
        if name.voted_ns is not None and casts:
            yield (name.space, name.text), name.voted_ns
    for name in flow.attributes:
        if name.voted_ns is not None:
            yield (name.space, name.text), name.voted_ns
    group = is_multicast(flow.server)
    hidden = flow.internal[1] or (is_special(flow.server) and not group)
    if (
        flow.server_ns is not None
        and not hidden
        and not (flow.asks_dns and rules.dns_votes == "no")
    ):
        yield (server_space(flow, rules), flow.server), flow.server_ns


def server_space(flow: Flow, rules: Rules) -> str:
    """Returns the namespace in which the users of a server are counted."""
    return RESOLVER if flow.asks_dns and rules.dns_votes == "own" else SERVER


def note(found: Exposures, flow: Flow) -> None:
    """Notes the names of a flow that never count, and names that may count."""
    if flow.may_have_more:
        found.unread.append((flow.first_ns, flow.last_ns, flow.user))
        if flow.proto == UDP and flow.votes and flow.server_ns is None:
            server = server_space(flow, found.rules), flow.server
            found.maybe[server].append((flow.first_ns, flow.user))
    if flow.greeted and flow.payload[1 - flow.client] and not has_certificate(flow):
        for space in (CERTIFICATE, *OF_CERTIFICATES):
            found.partly[space].append((flow.first_ns, flow.last_ns, flow.user))
    for name in flow.attributes:
        if name.why == UNCERTAIN:
            found.partly[name.space].append((flow.first_ns, flow.last_ns, flow.user))
    for name in flow.names:
        key = (name.space, name.text)
        if name.why is not None:
            found.barred[key].append((name.seen_ns, name.why))
        elif name.voted_ns is None and flow.proto == UDP:
            found.maybe[key].append((name.seen_ns, flow.user))
    found.users.setdefault(flow.user, len(found.users))


def has_certificate(flow: Flow) -> bool:
    """Returns whether a certificate of the flow's server was read."""
    return any(name.space == CERTIFICATE for name in flow.names)


__all__ = ["Exposure", "Exposures", "Name", "collect", "server_space"]
