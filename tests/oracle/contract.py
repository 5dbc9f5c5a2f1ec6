# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The required output of a run over a capture, by the letter of the contract and by brute force.

Sections are those of the contract. Where it leaves a run free to disclose less, as of the address
of a server that was a client in another epoch, there are two answers: what a run must show, and
what it may.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from support.packets import SYN, Frame

from oracle.epochs import pseudonym
from oracle.flow import flows_of
from oracle.layers import Address, Packet, Reader
from oracle.resolved import Resolution, Resolved
from oracle.rules import MINUTE, Rules, is_special, shortened, stepped
from oracle.secondary import Secondary
from oracle.talks import Name, Talk, Vote
from oracle.tcp import counts
from oracle.unread import is_unread
from oracle.user_caps import CappedVote, CapsOracle
from oracle.ztable import ZOracle

COMMON_PORTS = (53, 80, 443, 853)  # ports that disclose no more than the protocol
COARSE = ("pkts", "bytes", "pkts_all", "pkts_data", "bytes_all", "bytes_uniq")
NEVER = (0, 0)

Line = dict[str, Any]
Sizes = dict[Hashable, int]
Hunted = tuple[str | None, str | None, tuple[int, int]]


@dataclass(slots=True)
class Disclosure:
    """Whether an address must, or may, be shown."""

    must: bool = False
    may: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """A record: its columns, apart from those with several right values: the server's address, and
    DNS's answer about it (a name, the resolver, the times of question and answer)."""

    line: Line
    servers: tuple[str | None, ...]
    hunted: tuple[Hunted, ...]
    coarse: bool  # then no other column is exact


@dataclass(slots=True)
class Outcome:
    """All output of a run."""

    observations: list[Line] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    names: int = 0  # observations of names, released or not
    dns: int = 0  # decisions on names of DNS that count apart


class Model:
    """A run over packets in order of time."""

    def __init__(self, rules: Rules, frames: Sequence[Frame]) -> None:
        self.rules = rules
        self.packets = list(Reader().read(frames))
        ended = list(flows_of(list(self.packets)))
        self.flows = [(flow, Talk(rules, flow[0])) for flow, _end, _closed_ns in ended]
        talks = [talk for _flow, talk in self.flows]
        self.closed_ns = {
            id(talk): closed_ns for talk, (_flow, _end, closed_ns) in zip(talks, ended, strict=True)
        }
        self.talk_of = {id(p): talk for flow, talk in self.flows for p in flow}
        self.clients: dict[Address, dict[int, int]] = {}  # by epoch, when it was a client first
        self.always_servers = {talk.ends[1].address for _flow, talk in self.flows}
        self.always_servers -= {
            a for flow, talk in self.flows for a in clients_of(talk) if shows_client(talk, flow)
        }
        self.addr: dict[int, Disclosure] = {}  # by talk: its server's address was released
        self.withdrawn: set[int] = set()  # talks whose server became a client before they ended
        self.resolved = Resolved(rules.never)
        self.tied: dict[int, Resolution | None] = {}  # by talk
        self.must, self.may = (ZOracle(rules.z, rules.window_ns) for _ in range(2))
        self.caps = CapsOracle(
            rules.window_ns,
            max_per_prefix=0 if rules.max_per_prefix is None else rules.max_per_prefix[2],
            max_names=rules.max_names_per_user or 0,
        )
        self.received: list[tuple[Sizes, Sizes]] = []  # by packet: see _receive
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Takes all packets."""
        for p in self.packets:
            self._receive()
            talk = self.talk_of.get(id(p))
            if talk is None:
                continue
            if p is talk.first:
                self.tied[id(talk)] = self.resolved.of(talk)
            votes = list(talk.take(p))
            for address in clients_of(talk) if talk.client_shown else ():
                epoch = p.t_ns // self.rules.rotate_ns
                self.clients.setdefault(address, {}).setdefault(epoch, p.t_ns)
            self.must.z = self.may.z = self.rules.z_at(p.t_ns)
            for vote in votes:
                self._decide(vote)
            self.resolved.take(talk, p)
            if self._was_client(talk.ends[1].address, talk.epoch, p.t_ns):
                self.withdrawn.add(id(talk))
        self._receive()
        for _flow, talk in self.flows:
            talk.end()
        self.outcome.records = [
            self._record(flow, talk) for flow, talk in self.flows if talk.shown_at_all
        ]
        return self.outcome

    # ---- section 2 --------------------------------------------------------------------------

    def _receive(self) -> None:
        """Notes how many observations of each attribute precede the next packet's: in `must`, and
        in `may`."""
        must, may = ({a: len(seen) for a, seen in o.seen.items()} for o in (self.must, self.may))
        self.received.append((must, may))

    def _decide(self, vote: Vote) -> None:
        what = vote.what
        if what is None:
            self._decide_addr(vote)
            return
        kind = self.rules.namespace(what.source) if isinstance(what, Name) else what.kind
        if kind == "dns" and self.rules.dns_votes == "no":  # it casts no vote
            released = self.must.users(vote.t_ns, ("name", what.text)) >= self.must.z
        else:
            counts = self._counts(vote, (kind, what.text))
            released = counts and self.must.observe(vote.t_ns, vote.talk.user, (kind, what.text))
        what.state = "released" if released else "suppressed"
        if isinstance(what, Secondary):
            return
        self.outcome.names += kind == "name"
        self.outcome.dns += kind == "dns"
        if released:
            self.outcome.observations.append(
                {
                    "t_ns": floored(vote.t_ns, self.rules.detail.times_ns),
                    "client": self._pseudonym(vote.talk, vote.talk.user_end),
                    "name": what.text,
                    "name_source": what.source,
                }
            )

    def _counts(self, vote: Vote, attribute: Hashable) -> bool:
        """Returns true if no cap on invented users refuses the vote."""
        user, is_name = vote.talk.user, isinstance(vote.what, Name)
        network = self.rules.network(user)
        return self.caps.vote(CappedVote(vote.t_ns, user, network, attribute, is_name)) == "none"

    # ---- section 5 --------------------------------------------------------------------------

    def _was_client(self, address: Address, first_epoch: int, until_ns: int) -> bool:
        """Whether a packet up to then came from the address as a client, since the epoch began."""
        since_ns = self.clients.get(address, {})
        return any(first_epoch <= epoch and since_ns[epoch] <= until_ns for epoch in since_ns)

    def _decide_addr(self, vote: Vote) -> None:
        """Decides on a server's address. An address that is internal or was a client in the epoch
        is no attribute; one that ever was a client need not be one. With caps, votes that need
        not come could keep others from counting, so that no address must be shown."""
        address, shown = vote.talk.ends[1].address, Disclosure()
        epoch = vote.t_ns // self.rules.rotate_ns
        if vote.talk.internal[1] or is_special(address):
            return
        if not self._was_client(address, epoch, vote.t_ns):
            shown.may = self._reached(self.may, vote)
        if address in self.always_servers and not self.rules.has_caps:
            shown.must = self._reached(self.must, vote)
        self.addr[id(vote.talk)] = shown

    def _reached(self, oracle: ZOracle, vote: Vote) -> bool:
        """Whether z users reached the server, of whom the vote is one; of DNS's as its names."""
        address, asks = vote.talk.ends[1].address, vote.talk.asks_dns
        if asks and self.rules.dns_votes == "no":
            return oracle.users(vote.t_ns, ("addr", address)) >= oracle.z
        return oracle.observe(vote.t_ns, vote.talk.user, self._place(address, asks=asks))

    def _place(self, address: Address, *, asks: bool) -> Hashable:
        """Where the users of a server are counted: those who ask it over DNS apart."""
        return ("resolver" if asks and self.rules.dns_votes == "own" else "addr", address)

    def _pseudonym(self, talk: Talk, end: int) -> str | None:
        address = talk.known_as[end]
        if is_special(address):
            return None
        return pseudonym(self.rules.key, self.rules.scope, talk.epoch, address)

    def _servers(self, talk: Talk, withheld: bool) -> tuple[str | None, ...]:
        address = talk.ends[1].address
        shown = self.addr.get(id(talk), Disclosure())
        if withheld or is_special(address):
            return (None,)
        if talk.internal[1]:
            return (self._pseudonym(talk, 1),)
        if id(talk) in self.withdrawn or not shown.may:
            return (None,)
        return (str(address),) if shown.must else (str(address), None)

    def _record(self, flow: list[Packet], talk: Talk) -> Record:
        states = [name.state.replace("waiting", "unconfirmed") for name in talk.names]
        valid = [n for n, state in enumerate(states) if state != "invalid"]
        first = min(valid, default=0)  # the name that the record shows
        unread = is_unread(flow, talk)
        hides = talk.unread or any(state != "released" for state in states)
        hides |= unread and not self.rules.exact
        withheld = not self.rules.everything and hides
        coarse = withheld and not self.rules.exact
        client, server = talk.ends
        keeps_port = self.rules.keep_client_port and (
            self.rules.everything or (states[first:][:1] == ["released"] and not withheld)
        )
        detail = self.rules.detail
        step_ns = MINUTE if coarse else detail.times_ns
        times = (flow[0].t_ns, flow[-1].t_ns)
        if coarse and not detail.has_end:
            times = (self.closed_ns[id(talk)],) * 2
        line = {
            "proto": 6 if talk.first.tcp else 17,
            "client": None if coarse and not detail.has_client else self._pseudonym(talk, 0),
            "client_port": client.port if keeps_port else 0,
            "server_port": server.port if not withheld or server.port in COMMON_PORTS else 0,
            "name": talk.names[first].text if states[first:][:1] == ["released"] else None,
            "name_source": talk.names[first].source if states else None,
            "name_status": (*states, "suppressed" if talk.unread or unread else "none")[first],
            "ech": "offered" if talk.ech and not coarse else "none",
            "epoch": 0 if self.rules.rotate_ns % step_ns else talk.epoch,
            "t_start_ns": floored(times[0], step_ns),
            "t_end_ns": floored(times[1], step_ns),
        }
        if coarse and not detail.has_client:
            line["epoch"] = 0
        secondary = talk.certificate if talk.first.tcp else talk.agent
        disclosed = secondary is not None and secondary.state == "released" and not withheld
        line["s_tls_SCN" if talk.first.tcp else "quic_UA"] = secondary.text if disclosed else None
        measured = measurements(flow, talk.client)
        if coarse:
            measured = {
                name: stepped(n, detail.base) if name[2:] in COARSE else 0
                for name, n in measured.items()
            }
        else:
            measured = {name: shortened(n, detail.digits) for name, n in measured.items()}
        hunted = self._hunted(flow, talk, line["name"], withheld)
        return Record(line | measured, self._servers(talk, withheld), hunted, coarse)

    # ---- DN-Hunter --------------------------------------------------------------------------

    def _shared(self, oracle: ZOracle, what: Hashable, last: Packet) -> set[bool]:
        """Whether z users share `what` when the record is written: the answers that are possible.
        The record can be written right after its flow's last packet, or at any later packet. A
        packet moves the clock first, and its observations count then: users may leave the window
        before others enter it."""
        if self.rules.everything:
            return {True}
        which = oracle is self.may
        sizes = [received[which].get(what, 0) for received in self.received]
        since = next(n for n, p in enumerate(self.packets) if p is last)
        moments = [(last.t_ns, sizes[since + 1])]
        for n, p in enumerate(self.packets[since + 1 :], since + 1):
            moments += [(p.t_ns, sizes[n]), (p.t_ns, sizes[n + 1])]
        return {oracle.users(t, what, first) >= self.rules.z_at(t) for t, first in moments}

    def _hunted(
        self, flow: list[Packet], talk: Talk, name: str | None, withheld: bool
    ) -> tuple[Hunted, ...]:
        if not self.rules.dn_hunter:
            asks = not talk.first.tcp and talk.names and talk.names[0].source == "dns"
            return ((name if asks else None, None, NEVER),)
        found, nothing = self.tied[id(talk)], (None, None, NEVER)
        if found is None or withheld or talk.ech:
            return (nothing,)
        last = flow[-1]
        shared = self._shared(self.must, ("name", found.name), last)
        step_ns = self.rules.detail.times_ns
        asked = (floored(found.asked_ns, step_ns), floored(found.answered_ns, step_ns))
        times = asked if talk.first.tcp else NEVER
        resolvers = self._resolvers(found, talk, last) if talk.first.tcp else {None}
        disclosed = [(found.name, r, times) for r in resolvers]
        return (*(disclosed if True in shared else []), *([nothing] if False in shared else []))

    def _resolvers(self, found: Resolution, talk: Talk, last: Packet) -> set[str | None]:
        address = found.resolver.ends[1].address
        if is_special(address):
            return {None}
        if found.resolver.internal[1]:
            same = found.resolver.epoch == talk.epoch
            return {self._pseudonym(found.resolver, 1) if same else None}
        was_client = self._was_client(address, talk.epoch, last.t_ns)
        shared = self._shared(self.may, self._place(address, asks=True), last)
        return {None, str(address)} if True in shared and not was_client else {None}


def floored(t_ns: int, step_ns: int) -> int:
    """The last multiple of a step that is not after t_ns."""
    return t_ns // step_ns * step_ns


def shows_client(talk: Talk, flow: list[Packet]) -> bool:
    """Returns whether a flow shows its client to be a client."""
    fresh = Talk(talk.rules, talk.first)
    for p in flow:
        list(fresh.take(p))
    return fresh.client_shown


def clients_of(talk: Talk) -> set[Address]:
    """A client's address, and the address of the tunnel's end that stands for it."""
    return {talk.ends[0].address, talk.known_as[0]}


class Talks:
    """The flows of packets in any order of time, of which none is split."""

    def __init__(self, rules: Rules, frames: Sequence[Frame]) -> None:
        self.rules = rules
        self.packets = list(Reader().read(frames))
        self.talks: dict[object, Talk] = {}
        for p in self.packets:
            talk = self.of(p)
            if p.sender == talk.client and p.tcp:
                start = p.seq + (p.flags & SYN > 0)
                talk.base = start if talk.base is None else min(start, talk.base)

    def of(self, p: Packet) -> Talk:
        """The flow of a packet."""
        return self.talks.setdefault((p.ports, p.tcp), Talk(self.rules, p, all_comes=True))

    def exposed(self) -> ZOracle:
        """An oracle to which each flow's user exposed each of its names with each of its packets:
        an upper bound, whatever the times of the packets are. A flow that they end early, or a
        datagram whose fragments they part, leaves gaps, behind which a segment may begin a
        request."""
        oracle = ZOracle(self.rules.z, self.rules.window_ns)
        for p in self.packets:
            list(self.of(p).take(p))
        for p in self.packets:
            talk = self.of(p)
            if p.tcp and p.length and p.sender == talk.client:
                talk.pass_gap(p)
        for p in self.packets:
            talk = self.of(p)
            for name in talk.names:
                space = self.rules.namespace(name.source)
                if name.state == "voted" and (space, self.rules.dns_votes) != ("dns", "no"):
                    oracle.observe(p.t_ns, talk.user, (space, name.text))
        return oracle


def measurements(flow: list[Packet], client: int) -> Line:
    """The measurements of what each side sent, by column."""
    line = {}
    for prefix, side in (("c", client), ("s", 1 - client)):
        own = [p for p in flow if p.sender == side]
        packets, payload = len(own), sum(p.length for p in own)
        sizes = {"pkts": packets, "bytes": payload, "pkts_all": packets, "bytes_all": payload}
        if flow[0].tcp:
            least = min((p.seq for p in own), default=0) - 1
            sizes |= counts([replace(p, seq=p.seq - least) for p in own], side)
        line |= {f"{prefix}_{name}": n for name, n in sizes.items()}
    return line
