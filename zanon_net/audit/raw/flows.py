# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Flows of a capture, and the names that each flow exposes, with their users and times.

Sections 2 to 4 of the contract are written here a second time, from their text.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from zanon_net.audit.raw.attributes import (
    OF_CERTIFICATES,
    OF_EXCHANGES,
    OF_HELLOS,
    OF_HOSTS,
)
from zanon_net.audit.raw.clock import Clock
from zanon_net.audit.raw.hosts import (
    ADDRESS,
    HOME,
    INVALID,
    NEVER,
    REFUSED,
    certified,
    normal,
    under,
)
from zanon_net.audit.raw.lists import Lists
from zanon_net.audit.raw.networks import Networks, is_multicast, is_special
from zanon_net.audit.raw.packets import ACK, FIN, RST, SYN, TCP, Ids, Packet, Query, Said

SECOND = 10**9
EARLY_NS = SECOND  # an answer may be captured so long before its question
SYN_IDLE_NS, TCP_IDLE_NS, ONE_IDLE_NS, UDP_IDLE_NS = (n * SECOND for n in (10, 300, 10, 200))
LINGER_NS = 10 * SECOND
DNS_PORT = 53
WELL_KNOWN = 1024
OVER_TCP = (*OF_HELLOS, *OF_EXCHANGES, "ehlo", "user-agent")
ATTRIBUTE_MAX = 253  # characters of a text
UNCERTAIN = "uncertain"  # an attribute whose text the audit could not read
CERTIFICATE, AGENT, SERVER, RESOLVER, DNS = "certificate", "agent", "addr", "resolver", "dns"


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of a run on which exposures depend."""

    networks: Networks
    z: int
    established: bool
    dns_votes: str
    window_ns: int
    rotate_ns: int
    ephemeral: bool
    never: tuple[str, ...] = ()
    lists: Lists = field(default_factory=Lists)
    attributes: tuple[str, ...] = ()  # besides names, by their words


@dataclass(slots=True)
class Name:
    """Name of a flow.

    why: reason for which the name never counts. voted_ns: time at which the name counted.
    """

    space: str
    text: str
    source: str
    seen_ns: int
    why: str | None = None
    voted_ns: int | None = None


@dataclass(slots=True)
class Connection:
    """A connection of QUIC: IDs that the server chose, and names that wait for an answer."""

    first: bytes
    own: bytes
    chosen: set[bytes] = field(default_factory=set)
    names: list[Name] = field(default_factory=list)
    proven_ns: int | None = None


Gap = tuple[int, int]


@dataclass(slots=True)
class Flow:
    """A flow, packet by packet. Sides are 0 and 1: the first packet's sender and receiver.

    opened_ns: the clock when the flow opened, which is later than a late packet. epoch: as
    Clock.epoch returns it. closed_ns: the latest time at which the flow may have closed.
    number: of flows that opened before. spoken: packets of each side with a payload.
    attributes: the first value of each attribute besides names.
    awaited: number of each side's next byte. gaps: first and next number of each side's bytes that
    have not come, ahead of bytes that have.
    """

    proto: int
    ends: tuple[tuple[bytes, int], tuple[bytes, int]]
    outer: tuple[tuple[bytes, bytes], ...]
    first_ns: int
    last_ns: int
    opened_ns: int
    epoch: tuple[int, int]
    client: int = 0
    closed_ns: int = 0
    packets: list[int] = field(default_factory=lambda: [0, 0])
    payload: list[int] = field(default_factory=lambda: [0, 0])
    number: int = 0
    spoken: list[int] = field(default_factory=lambda: [0, 0])
    awaited: list[int | None] = field(default_factory=lambda: [None, None])
    gaps: tuple[list[Gap], list[Gap]] = field(default_factory=lambda: ([], []))
    names: list[Name] = field(default_factory=list)
    attributes: list[Name] = field(default_factory=list)
    waiting: dict[tuple[str, str], Name] = field(default_factory=dict)  # by word and question
    read: bool = False  # a message of the client, or a protocol without names, was read
    hidden: bool = False
    greeted: bool = False  # the client sent a hello of TLS
    midstream: bool = False
    proven_ns: int | None = None
    only_syns: bool = True
    acked: bool = False  # the client sent an ACK
    begin: int | None = None  # number of the client's first byte
    carried: int = 0
    answer: int | None = None  # number of the server's SYN
    before: tuple[int, int] | None = None  # numbers of a SYN-ACK ahead of the client's packets
    early: int | None = None  # what the client acknowledged before the server's SYN
    ending: bool = False  # a FIN came
    fins: list[int | None] = field(default_factory=lambda: [None, None])
    acks: list[int | None] = field(default_factory=lambda: [None, None])
    closed: list[bool] = field(default_factory=lambda: [False, False])
    connections: list[Connection] = field(default_factory=list)
    targets: dict[bytes, int] = field(default_factory=dict)  # IDs that the client wrote to
    asked: list[tuple[tuple[int, int, str], Name]] = field(default_factory=list)
    answered: dict[tuple[int, int, str], int] = field(default_factory=dict)
    server_ns: int | None = None  # when the server's address counted
    user: bytes = b""
    user_end: int = 0
    votes: bool = False
    known_as: tuple[bytes, bytes] = (b"", b"")
    internal: tuple[bool, bool] = (False, False)

    @property
    def server_port(self) -> int:
        """The port of the server."""
        return self.ends[1 - self.client][1]

    @property
    def server(self) -> bytes:
        """The address of the server."""
        return self.ends[1 - self.client][0]

    @property
    def asks_dns(self) -> bool:
        """True if the server is asked as a resolver."""
        return self.server_port == DNS_PORT

    @property
    def recorded(self) -> bool:
        """True if the flow has a record."""
        return any(self.internal)

    @property
    def unread(self) -> bool:
        """True if the flow may have exposed a name that was not read."""
        return not self.read and not self.names and sum(self.payload) > 0

    @property
    def may_have_more(self) -> bool:
        """True if the flow may have a name that was not read: tshark reads no message behind a gap
        in the client's bytes."""
        return self.unread or bool(self.gaps[self.client])


def patience_ns(flow: Flow) -> int:
    """Returns for how long the flow may be idle."""
    if flow.proto == TCP:
        return SYN_IDLE_NS if flow.only_syns else TCP_IDLE_NS
    return ONE_IDLE_NS if sum(flow.packets) == 1 else UDP_IDLE_NS


def is_over(flow: Flow, now_ns: int) -> bool:
    """Returns whether the flow was idle for too long by the clock, which is looked at each second.

    A flow whose packets are all late ends with the second in which it opened.
    """
    idle = flow.last_ns // SECOND + patience_ns(flow) // SECOND
    return now_ns // SECOND > max(idle, flow.opened_ns // SECOND)


Key = tuple[int, bytes, int, bytes, int]


class FlowTable:
    """The flows of packets in the order of the capture; `done` takes each flow that closed."""

    def __init__(self, rules: Rules, done: Callable[[Flow], None]) -> None:
        self._rules = rules
        self._done = done
        self._flows: dict[Key, Flow] = {}
        self._lingering: dict[Key, Flow] = {}
        self._clock = Clock(rules.window_ns, rules.rotate_ns, rules.ephemeral)
        self.clients: dict[bytes, list[int]] = {}  # when an address was a client, by the clock
        self.moments = array("q")  # time of each packet
        self.of_moments = array("I")  # number of its flow
        self._opened = 0

    @property
    def now_ns(self) -> int:
        """The clock."""
        return self._clock.now_ns or 0

    @property
    def jumps(self) -> int:
        """Number of times that the clock was set back."""
        return self._clock.jumps

    def take(self, p: Packet) -> None:
        """Takes a packet."""
        if self._clock.see(p.t_ns):
            self.end()
            self._lingering.clear()
        now_ns = self.now_ns
        key = key_of(p)
        flow = self._flows.get(key)
        if flow is not None and (
            p.t_ns - flow.last_ns > patience_ns(flow)
            or is_over(flow, now_ns)
            or begins_another(flow, p)
        ):
            self._close(key, self._idle_ns(flow))
            flow = None
        if flow is None:
            flow = self._open(key, p)
            if flow is None:
                return
        side = 0 if (p.source, p.source_port) == flow.ends[0] else 1
        self._count(flow, side, p)
        if p.proto == TCP:
            take_segment(flow, side, p, self._rules)
        else:
            take_datagram(flow, side, p, self._rules)
        self._note_client(flow)
        if p.proto == TCP and (p.flags & RST or all(flow.closed)):
            self._close(key, now_ns)
            self._lingering[key] = flow

    def end(self) -> None:
        """Closes all flows."""
        for key, flow in list(self._flows.items()):
            self._close(key, self._idle_ns(flow))

    def _open(self, key: Key, p: Packet) -> Flow | None:
        if p.proto == TCP:
            stray = p.flags & (SYN | ACK) != SYN
            if p.flags & RST or (stray and self._lingers(key, p)):
                return None
        ends = ((p.source, p.source_port), (p.target, p.target_port))
        epoch = self._clock.epoch(p.t_ns)
        flow = Flow(p.proto, ends, p.outer, p.t_ns, p.t_ns, self.now_ns, epoch)
        flow.midstream = p.proto == TCP and p.flags & (SYN | ACK) != SYN
        flow.number = self._opened
        self._opened += 1
        choose_client(flow, p, self._rules)
        self._flows[key] = flow
        return flow

    def _lingers(self, key: Key, p: Packet) -> bool:
        """Returns whether a packet that opens no connection is of a flow that closed before."""
        flow = self._lingering.get(key)
        if flow is None or self.now_ns > flow.last_ns + LINGER_NS:
            return False
        return not p.flags & SYN or flow.begin is None or answers(flow, p.acknowledged)

    def _count(self, flow: Flow, side: int, p: Packet) -> None:
        flow.last_ns = max(flow.last_ns, p.t_ns)
        flow.packets[side] += 1
        flow.payload[side] += p.length
        flow.spoken[side] += p.length > 0
        self.moments.append(p.t_ns)
        self.of_moments.append(flow.number)
        flow.read |= p.known
        flow.only_syns &= p.proto == TCP and side == 0 and p.flags & SYN > 0
        flow.acked |= side == flow.client and p.flags & ACK > 0

    def _note_client(self, flow: Flow) -> None:
        """Notes at the time of the clock that the client has shown to be one. The clock is ahead of
        a late packet. A stray packet from outside shows nothing."""
        sent = flow.packets[flow.client]
        if flow.internal[1] and not flow.internal[0]:
            shown = sent > 0 and sum(flow.packets) > 1 and (flow.acked or flow.proto != TCP)
        else:
            shown = sent > 0
        if shown:
            for address in {flow.ends[flow.client][0], flow.known_as[0]}:
                times = self.clients.setdefault(address, [])
                if not times or abs(self.now_ns - times[-1]) >= SECOND:
                    times.append(self.now_ns)

    def _idle_ns(self, flow: Flow) -> int:
        """Returns the latest time at which a flow may have closed that has no more packets."""
        return min(max(flow.last_ns + patience_ns(flow), flow.opened_ns), self.now_ns)

    def _close(self, key: Key, t_ns: int) -> None:
        flow = self._flows.pop(key)
        flow.closed_ns = t_ns
        flow.targets, flow.answered, flow.asked, flow.waiting = {}, {}, [], {}
        self._done(flow)


# ---- client and user ----------------------------------------------------------------------------


def key_of(p: Packet) -> Key:
    """Returns what the packets of both directions share."""
    if (p.source, p.source_port) <= (p.target, p.target_port):
        return p.proto, p.source, p.source_port, p.target, p.target_port
    return p.proto, p.target, p.target_port, p.source, p.source_port


def inside(flow: Flow, networks: Networks) -> tuple[bool, bool]:
    """Returns whether the first packet's sender and receiver are internal.

    If an end of a tunnel is internal, the ends of that tunnel count.
    """
    pairs = (*flow.outer, (flow.ends[0][0], flow.ends[1][0])) if networks.given else ()
    for source, target in pairs or ((flow.ends[0][0], flow.ends[1][0]),):
        found = networks.hold(source), networks.hold(target)
        if any(found):
            return found
    return False, False


def choose_client(flow: Flow, p: Packet, rules: Rules) -> None:
    """Chooses the client by the first packet (contract, section 3)."""
    if p.proto == TCP and p.flags & SYN:
        flow.client = int(p.flags & ACK > 0)
    elif is_multicast(p.target):
        flow.client = 0
    elif (p.source_port < WELL_KNOWN) != (p.target_port < WELL_KNOWN):
        flow.client = int(p.source_port < WELL_KNOWN)
    else:
        speaks = p.proto == TCP and any(one.source in ("tls", "http") for one in p.said)
        flow.client = int(not speaks and inside(flow, rules.networks) == (False, True))
    orient(flow, rules)


def orient(flow: Flow, rules: Rules) -> None:
    """Notes the user that the client or the server is."""
    networks = rules.networks
    client, server = flow.ends[flow.client][0], flow.ends[1 - flow.client][0]
    around: tuple[bytes | None, bytes | None] = (None, None)
    for pair in flow.outer if networks.given else ():
        sides = pair if flow.client == 0 else pair[::-1]
        if any(map(networks.hold, sides)):
            around = tuple(one if networks.hold(one) else None for one in sides)  # type: ignore[assignment]
            break
    holds = networks.hold(client), networks.hold(server)
    if around != (None, None):
        flow.internal = (around[0] is not None or holds[0], around[0] is None or holds[1])
        flow.user_end = int(around[0] is None)
    else:
        flow.internal = (holds[0] or (not networks.given and not holds[1]), holds[1])
        flow.user_end = int(not flow.internal[0])
    behind = None if around[1] is not None and is_special(server) else around[1]
    flow.known_as = around[0] or client, behind or server
    flow.user = networks.user(flow.known_as[flow.user_end])
    flow.votes = flow.recorded and (flow.user_end == 0 or rules.z == 1)


def turn(flow: Flow, rules: Rules) -> None:
    """Takes the other end for the client."""
    flow.client = 1 - flow.client
    orient(flow, rules)


# ---- TCP ----------------------------------------------------------------------------------------


def begins_another(flow: Flow, p: Packet) -> bool:
    """Returns whether a client's SYN opens another connection than the flow, of which only the
    server's packets are known."""
    if p.proto != TCP or p.flags & (SYN | ACK) != SYN or not flow.midstream:
        return False
    side = 0 if (p.source, p.source_port) == flow.ends[0] else 1
    if flow.packets[side]:
        return False
    if flow.before is None:
        return True
    return not 0 < (flow.before[1] - p.sequence) % 2**32 <= 1 + p.length


def take_segment(flow: Flow, side: int, p: Packet, rules: Rules) -> None:
    """Takes a segment: what proves the client, and names."""
    if flow.midstream and not flow.names and side != flow.client and asks(p):
        turn(flow, rules)
    take_bytes(flow, side, p)
    take_end(flow, side, p)
    if side == flow.client:
        take_client(flow, p)
        take_attributes(flow, p, rules, OVER_TCP, again=flow.greeted)
        hear(flow, p, rules)
    else:
        take_server(flow, p)
        if flow.greeted:
            take_attributes(flow, p, rules, OF_CERTIFICATES)
        for one in p.said:
            if one.source == CERTIFICATE and flow.greeted:
                name = expose(flow, CERTIFICATE, certified(one.text), p.t_ns, rules)
                if name is not None and not rules.established:
                    vote(name, p.t_ns)
    if flow.proven_ns is not None or not (rules.established or flow.midstream):
        vote_all(flow, p.t_ns)


def asks(p: Packet) -> bool:
    """Returns whether a client sent the packet."""
    return any(one.source in ("tls", "http") for one in p.said) or any(
        not one.response for one in p.queries
    )


def take_bytes(flow: Flow, side: int, p: Packet) -> None:
    """Notes gaps in the bytes of a side. A late packet does not close a gap for tshark."""
    syn = int(p.flags & SYN > 0)
    if not syn and not p.length:
        return
    begin, end = p.sequence, (p.sequence + p.length + syn) % 2**32
    awaited, gaps = flow.awaited[side], flow.gaps[side]
    if awaited is not None and is_before(awaited, begin):
        gaps.append((awaited, begin))
    elif gaps and p.t_ns >= flow.last_ns:
        gaps[:] = [part for gap in gaps for part in without(gap, begin, end)]
    if awaited is None or is_before(awaited, end):
        flow.awaited[side] = end


def is_before(number: int, other: int) -> bool:
    """Returns whether a sequence number is before another."""
    return 0 < (other - number) % 2**32 < 2**31


def without(gap: Gap, begin: int, end: int) -> Iterator[Gap]:
    """Yields the parts of a gap that a segment leaves."""
    if not (is_before(begin, gap[1]) and is_before(gap[0], end)):
        yield gap
        return
    if is_before(gap[0], begin):
        yield gap[0], begin
    if is_before(end, gap[1]):
        yield end, gap[1]


def take_end(flow: Flow, side: int, p: Packet) -> None:
    """Notes FINs, and whether the other side acknowledged them."""
    flow.ending |= p.flags & FIN > 0
    if p.flags & FIN:
        flow.fins[side] = p.sequence + p.length
    if p.flags & ACK and flow.ending:
        flow.acks[side] = p.acknowledged
    for one in (0, 1):
        end, ack = flow.fins[one], flow.acks[1 - one]
        if end is not None and ack is not None:
            flow.closed[one] |= 0 < (ack - end) % 2**32 < 2**31


def answers(flow: Flow, ack: int) -> bool:
    """Returns whether a SYN-ACK with this acknowledgement answers the client's SYN."""
    return flow.begin is not None and (ack - flow.begin) % 2**32 <= flow.carried


def take_client(flow: Flow, p: Packet) -> None:
    """Takes the client's SYN, and what acknowledges the server's."""
    if p.flags & SYN:
        flow.begin, flow.carried = (p.sequence + 1) % 2**32, p.length
        spoke = flow.packets[flow.client] > 1
        if flow.before is not None and not spoke and answers(flow, flow.before[1]):
            flow.midstream, flow.answer = False, flow.before[0]
    elif p.flags & (ACK | RST) == ACK and not flow.midstream:
        if flow.answer is None and flow.early is None:
            flow.early = p.acknowledged
        if flow.answer is not None and p.acknowledged == (flow.answer + 1) % 2**32:
            flow.proven_ns = flow.proven_ns or p.t_ns


def take_server(flow: Flow, p: Packet) -> None:
    """Takes a SYN-ACK that answers the client's SYN, captured before or after it."""
    if p.flags & (SYN | ACK) != SYN | ACK:
        return
    if flow.midstream and not flow.packets[flow.client]:
        flow.before = p.sequence, p.acknowledged
    elif not flow.midstream and answers(flow, p.acknowledged):
        flow.answer = p.sequence
        if flow.early == (p.sequence + 1) % 2**32:
            flow.proven_ns = flow.proven_ns or p.t_ns


def hear(flow: Flow, p: Packet, rules: Rules) -> None:
    """Reads the names in a client's segment."""
    for one in p.said:
        if one.source in ("tls", "http", DNS):
            take_said(flow, one, p.t_ns, rules)
    if flow.asks_dns:
        for query in p.queries:
            if not query.response:
                expose(flow, "dns", query.name, p.t_ns, rules)
    if not rules.established and (p.said or p.queries):
        vote_all(flow, p.t_ns)


# ---- UDP ----------------------------------------------------------------------------------------


def take_datagram(flow: Flow, side: int, p: Packet, rules: Rules) -> None:
    """Takes a datagram."""
    if not rules.established and is_multicast(flow.server):
        vote_server(flow, p.t_ns)
    if DNS_PORT in (flow.ends[0][1], flow.ends[1][1]):
        for query in p.queries:
            if not query.response and side != flow.client and not flow.names:
                turn(flow, rules)
            take_query(flow, side == flow.client, query, p.t_ns, rules)
        return
    first = any(one.initial for one in p.ids) or any(one.source == "tls" for one in p.said)
    early = p.t_ns - flow.first_ns <= EARLY_NS and flow.packets[side] == 1
    opens = side != flow.client and first and early and p.said
    if opens and not (flow.names or flow.connections) and rules.networks.hold(p.source):
        turn(flow, rules)
    if p.ids:
        take_quic(flow, side == flow.client, p, rules)
    elif side == flow.client:
        for one in p.said:
            if one.source in ("tls", "quic"):
                take_said(flow, one, p.t_ns, rules)
                if p.cookie or not rules.established:
                    take_attributes(flow, p, rules, OF_HELLOS)
                    vote_all(flow, p.t_ns)
        take_attributes(flow, p, rules, OF_EXCHANGES)
    else:
        take_responses(flow, p)


def take_query(flow: Flow, from_client: bool, query: Query, t_ns: int, rules: Rules) -> None:
    """Takes a question, which counts when it is answered, or an answer."""
    what = (query.number, query.kind, normal(query.name)[1])
    if query.response:
        if from_client:
            return
        flow.answered[what] = t_ns
        for asked, waiting in flow.asked:
            if asked == what and rules.established:
                vote_server(flow, t_ns)
                vote(waiting, t_ns)
        return
    if not from_client:
        return
    name = expose(flow, "dns", query.name, t_ns, rules)
    if name is None:
        return
    flow.asked.append((what, name))
    early = abs(t_ns - flow.answered.get(what, -EARLY_NS - t_ns)) <= EARLY_NS
    if early or not rules.established:
        vote_server(flow, t_ns)
        vote(name, t_ns)


def take_quic(flow: Flow, from_client: bool, p: Packet, rules: Rules) -> None:
    """Takes packets of QUIC. A client that writes to an ID of the server's choice is real."""
    for one in p.ids:
        if from_client:
            reach(flow, one, p.t_ns)
        else:
            answer(flow, one, p.t_ns)
    if from_client:
        take_attributes(flow, p, rules, OF_HELLOS, again=bool(flow.attributes))
        for said in p.said:
            exposed = take_said(flow, said, p.t_ns, rules)
            if exposed is not None and flow.connections:
                flow.connections[-1].names.append(exposed)
    for connection in flow.connections:
        if connection.proven_ns is not None or not rules.established:
            vote_server(flow, p.t_ns)
            for name in (*connection.names, *flow.attributes):
                vote(name, p.t_ns)


def reach(flow: Flow, ids: Ids, t_ns: int) -> None:
    """Takes the IDs of a client's packet."""
    for connection in flow.connections:
        if any(
            ids.target.startswith(one) for one in connection.chosen if one or ids.source is None
        ):
            connection.proven_ns = connection.proven_ns or t_ns
            return
    known = any(ids.target == one.first for one in flow.connections)
    if ids.initial and ids.source is not None and not known:
        flow.connections.append(Connection(ids.target, ids.source))
    else:
        flow.targets[ids.target] = t_ns


def answer(flow: Flow, ids: Ids, t_ns: int) -> None:
    """Takes the ID that the server chose."""
    if ids.source is None:
        return
    for connection in reversed(flow.connections):
        if connection.own == ids.target:
            connection.chosen.add(ids.source)
            before = flow.targets.get(ids.source)
            if before is not None and t_ns - before <= EARLY_NS:
                connection.proven_ns = connection.proven_ns or t_ns
            return


# ---- names --------------------------------------------------------------------------------------


def take_said(flow: Flow, said: Said, t_ns: int, rules: Rules) -> Name | None:
    """Takes a message of the client."""
    flow.read = True
    flow.hidden |= said.hidden
    flow.greeted |= said.source == "tls"
    if said.text is None:
        return None
    if said.source == AGENT:
        return expose(flow, AGENT, said.text, t_ns, rules)
    return expose(flow, said.source, said.text, t_ns, rules)


def expose(flow: Flow, source: str, text: str | None, t_ns: int, rules: Rules) -> Name | None:
    """Returns the flow's name for a text; None if it can never be released."""
    if text is None:
        return None
    why, space = None, "name"
    if source in (CERTIFICATE, AGENT):
        space = source
    else:
        flow.read = True
        if source == DNS and not text:
            return None  # the root
        kind, text = normal(text)
        if kind == ADDRESS:
            return None
        if kind == INVALID or (kind == HOME and rules.z > 1):
            why = kind
        if source == DNS and rules.dns_votes != "all":
            space = DNS
    if source != AGENT and under(text.removeprefix("*."), rules.never):
        why = why or NEVER
    if source != AGENT and not why and rules.lists.refuses(text.removeprefix("*.")):
        why = REFUSED
    if not flow.votes:
        why = why or "outside"
    for name in flow.names:
        if (name.space, name.text, name.why) == (space, text, why):
            return None if why else name
    name = Name(space, text, source, t_ns, why)
    flow.names.append(name)
    return None if why else name


def take_attributes(
    flow: Flow, p: Packet, rules: Rules, words: Sequence[str], *, again: bool = False
) -> None:
    """Notes the attributes in a client's packet.

    words: of the attributes that this packet may have. again: the flow has had a hello before, so a
    later hello exposes nothing.
    """
    for word, text, question, is_response in p.attributes:
        if is_response or word not in words or (again and word in OF_HELLOS):
            continue
        if any(one.space == word for one in flow.attributes):
            continue
        name = attribute(flow, word, text, p.t_ns, rules)
        if name is None:
            continue
        flow.attributes.append(name)
        flow.waiting[word, question] = name
        if not rules.established:
            vote(name, p.t_ns)


def attribute(flow: Flow, word: str, text: str | None, t_ns: int, rules: Rules) -> Name | None:
    """Returns an attribute of a flow; None for an address, which is no host."""
    if text is None:
        return Name(word, "", word, t_ns, UNCERTAIN)
    why = None if flow.votes else "outside"
    if word in OF_HOSTS:
        wild = "*." if text.startswith("*.") and word in OF_CERTIFICATES else ""
        kind, text = normal(text.removeprefix(wild))
        if kind == ADDRESS or ":" in text or not text:
            return None
        if kind == INVALID or (kind == HOME and rules.z > 1):
            why = why or kind
        if under(text, rules.never) or rules.lists.refuses(text):
            why = why or REFUSED
        text = wild + text
    return Name(word, text, word, t_ns, why or (INVALID if len(text) > ATTRIBUTE_MAX else None))


def take_responses(flow: Flow, p: Packet) -> None:
    """Counts the attributes whose requests a server's datagram answers."""
    for word, _text, question, is_response in p.attributes:
        if is_response and (word, question) in flow.waiting:
            vote(flow.waiting[word, question], p.t_ns)


def vote(name: Name, t_ns: int) -> None:
    """Counts a name once."""
    if name.why is None and name.voted_ns is None:
        name.voted_ns = t_ns


def vote_server(flow: Flow, t_ns: int) -> None:
    """Counts the server's address once."""
    if flow.votes and flow.server_ns is None:
        flow.server_ns = t_ns


def vote_all(flow: Flow, t_ns: int) -> None:
    """Counts the server's address and all names."""
    vote_server(flow, t_ns)
    for name in (*flow.names, *flow.attributes):
        vote(name, t_ns)
