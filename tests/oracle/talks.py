# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The exposures of a flow, and when they count: sections 2 (votes), 3 and 4 of the contract.

One `Talk` a flow takes its packets in the order in which they came and yields the votes that each
of them completes. Nothing is decided here.
"""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass, field

from support.h2 import PREFACE
from support.packets import ACK, RST, SECOND, SYN

from oracle.layers import Address, End, Packet
from oracle.names import hides, normal, question, said_in, server_name, under
from oracle.quic import First, QuicTalk, begins
from oracle.rules import Rules, is_special
from oracle.secondary import Secondary, ServerFlight, agent_of, host_of
from oracle.stream import STREAM_MAX, StreamOracle

DNS_PORT = 53
WORDS = (b"GET", b"POST", b"PUT", b"CONNECT", b"BITS_POST", b"M-SEARCH", b"get")
WELL_KNOWN = 1024  # ports below are well-known
EARLY_NS = SECOND  # an answer may be captured so long before its question
ACK_BEYOND_MAX = 1 << 20  # bytes past those that a server was seen to send


@dataclass(slots=True)
class Name:
    """A name of a flow; `state` is the record's name_status, or "waiting" for evidence."""

    source: str
    text: str
    state: str = "waiting"


@dataclass(slots=True)
class Vote:
    """A user exposes a name or a secondary attribute, or with None the server's address."""

    t_ns: int
    talk: "Talk"
    what: Name | Secondary | None


def service_of(segment: bytes) -> str | None:
    """The service that a client's segment begins, by its first word."""
    if segment[:1] == b"\x16" and segment[5:6] == b"\1":
        return "tls"
    return "http" if segment.split(b" ")[0] in WORDS else None


@dataclass(slots=True)
class Talk:
    """A flow, packet by packet."""

    rules: Rules
    first: Packet
    names: list[Name] = field(default_factory=list)
    proven: bool = False
    addr_voted: bool = False
    last: Packet = field(init=False)
    stream: StreamOracle = field(default_factory=StreamOracle)
    base: int | None = None  # sequence number of the client's first byte
    midstream: bool = field(init=False)  # the client's SYN is not known
    carried: int = 0  # bytes in the client's SYN
    server_isn: int | None = None  # of the answer to the client's SYN
    answer: Packet | None = None  # a SYN-ACK that came before all packets of the client
    first_ack: Packet | None = None  # the client's, if it came before the server's SYN
    spoke: bool = False  # the client sent something
    acked: bool = False  # the client acknowledged something
    server_syn: bool = False
    plays_server: bool = False  # the client sent a server's message, which an echo sends back
    counted: int = 0  # hellos and requests that were taken from the stream
    read: int = 0  # bytes of them
    asked: list[tuple[int, int, Name]] = field(default_factory=list)
    answered: list[tuple[int, int, int, str]] = field(default_factory=list)  # time, and question
    packets: list[int] = field(default_factory=lambda: [0, 0])  # of each end so far
    client_acks: bool = False  # the client sent an ACK, whatever it acknowledges
    turned: bool = False  # a client's first message showed that the guess was wrong
    quic: QuicTalk | None = None
    greetings: int = 0  # connections of QUIC whose hello was taken, or given up
    greeted: Name | None = None  # the name in the last one
    ech: bool = False  # a hello's name hides another
    service: str | None = None  # of the client's first hello or request
    hello: bool = False  # the client sent a hello, maybe behind another message
    flight: ServerFlight = field(default_factory=ServerFlight)
    certificate: Secondary | None = None
    agent: Secondary | None = None
    agent_by: int = 0  # the number of the connection that sent it
    replied: int = 0  # the end of the server's bytes so far
    all_comes: bool = False  # no bytes are lost, whatever their order
    lost_place: bool = False  # nobody knows where the next request begins
    unread: bool = False  # bytes that may hold a name: not the client's, or behind a gap
    understood: bool = False  # a message of the client was read, with a name or without

    def __post_init__(self) -> None:
        """A flow begins with its client's SYN, unless a server's answer was captured before it."""
        self.midstream = self.first.tcp and self.first.flags & (SYN | ACK) != SYN

    # ---- section 3 --------------------------------------------------------------------------

    @property
    def client(self) -> int:
        """The index of the client: the sender of the SYN or the receiver of a SYN-ACK. Where no
        SYN was captured, and in UDP, the end without a well-known port, else the end that speaks
        as a client, else the internal end, else the first sender. A group is no client."""
        p = self.first
        if p.tcp and p.flags & SYN:
            return p.sender ^ (p.flags & ACK > 0)
        return p.sender ^ self._first_is_answer(p) ^ self.turned

    def _first_is_answer(self, p: Packet) -> bool:
        """Returns whether the first packet, no SYN, is taken for a server's."""
        own, other = p.ends[p.sender], p.ends[1 - p.sender]
        if other.address.is_multicast:
            return False
        if (own.port < WELL_KNOWN) != (other.port < WELL_KNOWN):
            return own.port < WELL_KNOWN
        speaks = p.tcp and (service_of(p.payload) or p.payload.startswith(PREFACE[:9]))
        return not speaks and self.inside(p) == (False, True)

    @property
    def client_shown(self) -> bool:
        """Returns whether the client has shown so far to be a client. A packet of the other end
        shows nothing, nor does a stray packet that comes in from outside."""
        sent, got = self.packets[self.client], self.packets[1 - self.client]
        if self.internal[0] or not self.internal[1]:
            return sent > 0
        return sent > 0 and sent + got > 1 and (self.client_acks or not self.first.tcp)

    @property
    def ends(self) -> tuple[End, End]:
        """The client's and the server's end."""
        return self.first.ends[self.client], self.first.ends[1 - self.client]

    def inside(self, p: Packet) -> tuple[bool, bool]:
        """Whether the sender and the receiver are internal."""
        ends = p.ends[p.sender].address, p.ends[1 - p.sender].address
        around = p.outer if self.rules.internal is not None else ()
        for pair in (*around, ends):
            found = self.rules.is_internal(pair[0]), self.rules.is_internal(pair[1])
            if any(found):
                return found
        return (False, False)

    def around(self, p: Packet) -> tuple[Address | None, Address | None]:
        """If networks are given, the internal ends on the client's and on the server's side of the
        outermost tunnel that has any."""
        for pair in p.outer if self.rules.internal is not None else ():
            sides = pair if p.sender == self.client else pair[::-1]
            client, server = (a if self.rules.is_internal(a) else None for a in sides)
            if client or server:
                return client, server
        return None, None

    @property
    def known_as(self) -> tuple[Address, Address]:
        """The addresses that stand for the client and the server: those of a tunnel's ends, as one
        host can forge any number of inner ones. A special address never stands for a server."""
        client, server = self.around(self.first)
        if client and server and is_special(server):
            server = None
        return client or self.ends[0].address, server or self.ends[1].address

    @property
    def internal(self) -> tuple[bool, bool]:
        """Whether client and server are internal; without networks given, one of them is."""
        client, server = (self.rules.is_internal(end.address) for end in self.ends)
        behind_client, behind_server = self.around(self.first)
        if behind_client or behind_server:
            return behind_client is not None or client, behind_client is None or server
        return client or (self.rules.internal is None and not server), server

    @property
    def shown_at_all(self) -> bool:
        """Whether the flow has a record: with networks given, flows between strangers have none."""
        return any(self.internal)

    @property
    def user_end(self) -> int:
        """The index of the user in `ends`: the internal one, of two the client; a tunnel's ends
        come first."""
        client, server = self.around(self.first)
        return int(client is None) if client or server else int(not self.internal[0])

    @property
    def user(self) -> str:
        """The user: an address cut to its prefix, all special addresses as one."""
        address = self.known_as[self.user_end]
        if is_special(address):
            return "special"
        bits = self.rules.user_prefix[address.version == 6]
        return str(ipaddress.ip_network((address, bits), strict=False))

    def speaks(self, p: Packet) -> bool:
        """Whether the packet counts: one out of another's tunnel than the user's may be forged by
        its owner, answers included. A mirror's tunnels have the same ends both ways."""
        sides, user = self.around(p), self.known_as[self.user_end]
        behind = self.around(self.first) != (None, None)
        answers = p.sender != self.client ^ self.user_end
        if sides == (None, None):
            return answers or not behind
        return behind and user in sides if answers else sides[self.user_end] == user

    @property
    def may_vote(self) -> bool:
        """Whether the user is the client: a flow that others open to the user exposes nothing of
        the user's. At z = 1 all is released."""
        return self.shown_at_all and (self.user_end == 0 or self.rules.everything)

    @property
    def asks_dns(self) -> bool:
        """Whether the server is asked as a resolver."""
        return self.ends[1].port == DNS_PORT

    @property
    def epoch(self) -> int:
        """The epoch in which the flow began, whose pseudonyms it has (section 6)."""
        return self.first.t_ns // self.rules.rotate_ns

    # ---- sections 2 and 4 -------------------------------------------------------------------

    def take(self, p: Packet) -> Iterator[Vote]:
        """Takes a packet; yields the votes that it completes."""
        self.last = p
        from_client = p.sender == self.client
        self.packets[p.sender] += 1
        self.client_acks |= p.tcp and from_client and p.flags & ACK > 0
        if not from_client:
            self.replied = max(self.replied, p.seq + p.length)
        if not p.tcp:
            if self.speaks(p):
                yield from self._datagram(p, from_client)
            elif self.quic is not None and from_client:
                self.quic.disregard(p.payload)
            return
        yield from self._prove(p)
        if not self.speaks(p) and not self.addr_voted:
            self.proven, self.server_isn, self.answer, self.first_ack = False, None, None, None
        if self.speaks(p) and p.payload and not p.flags & RST:
            yield from self._hear(p) if from_client else self._watch(p)

    def pass_gap(self, p: Packet) -> None:
        """Exposes what a segment begins to say, once all have come: it is read by itself where the
        bytes before it never come."""
        head = self.stream.head(p.seq + (p.flags & SYN > 0) - (self.base or 0))
        if not service_of(head) and not (self.asks_dns and head[:1] == b"\0"):
            return
        one = next(said_in(head), None)
        name = self._expose(one.source, one.raw) if one and one.raw is not None else None
        if name is not None and (self.proven or not self.rules.established):
            name.state = "voted"

    def end(self) -> None:
        """Ends the flow: a hello that never became whole has a name that is withheld, and bytes
        that never came may have held one."""
        if self.quic is not None and self.greetings < max(1, len(self.quic.connections)):
            self.names.append(Name("quic", "", "suppressed"))
        head = self.stream.head()
        if service_of(head[self.read :]):
            self.names.append(Name("tls", "", "suppressed"))
        self.unread |= len(self.stream.byte) > len(head)

    def _prove(self, p: Packet) -> Iterator[Vote]:
        """Looks for the proof of a client: SYN, SYN-ACK, and its acknowledgement, in any order;
        without `established` any packet of a flow with a SYN."""
        if p.sender == self.client:
            self._prove_client(p)
            self.spoke = True
        elif p.flags & SYN:
            self._prove_server(p)
            self.server_syn = True
        if self.midstream:
            return
        if self.speaks(p) and (self.proven or not self.rules.established):
            yield from self._vote_addr(p)
            for name in self.names:
                yield from self._vote(p, name)
            if self.certificate is not None:
                yield from self._vote(p, self.certificate)

    def _prove_client(self, p: Packet) -> None:
        """Takes the client's SYN, and what acknowledges the server's. The first
        acknowledgement before the server's SYN counts, and no later one: a forger of addresses has
        one guess."""
        if p.flags & SYN:
            self.base, self.carried = p.seq + 1, p.length
            self.plays_server |= p.flags & ACK > 0
            before = self.answer
            if before is not None and not self.spoke and self._answers(before.ack):
                self.midstream, self.server_isn = False, before.seq
            if self.plays_server:
                self.server_isn = None
        elif p.flags & (ACK | RST) == ACK and not self.midstream:
            if self.first_ack is None and not self.acked and not self.server_syn:
                self.first_ack = p
            self.acked = True
            self.proven |= self.server_isn is not None and p.ack == self.server_isn + 1

    def _prove_server(self, p: Packet) -> None:
        """Takes a SYN-ACK that answers the client's SYN, captured before or after it."""
        if not p.flags & ACK:
            return
        if self.midstream and not self.spoke:
            self.answer = p
        elif not self.midstream and self._answers(p.ack) and not self.plays_server:
            self.server_isn = p.seq
            early, self.first_ack = self.first_ack, None
            self.proven |= early is not None and early.ack == p.seq + 1

    def _answers(self, ack: int) -> bool:
        """Returns true if a SYN-ACK with this number answers the client's SYN. The server may
        acknowledge bytes that the SYN carries, too (RFC 7413)."""
        return self.base is not None and self.base <= ack <= self.base + self.carried

    def _watch(self, p: Packet) -> Iterator[Vote]:
        """Looks for a certificate that answers the user's hello."""
        if self.service != "tls" and not self.hello:
            return
        found = self.flight.take(p.seq, p.payload)
        host = None if found is None else host_of(found, self.rules.never)
        if host is None or not self.may_vote:
            return
        self.certificate = Secondary("certificate", host)
        if self.proven or not self.rules.established:
            yield from self._vote(p, self.certificate)

    def _hear(self, p: Packet) -> Iterator[Vote]:
        """Looks for names: each is complete when the last byte of its hello, request or question
        is in contiguous data."""
        self.service = self.service or service_of(p.payload)
        start = p.seq + (p.flags & SYN > 0)
        self.base = start if self.base is None else self.base
        if start < self.base or not self._takes(p, start - self.base):
            return
        self.stream.add(start - self.base, p.payload)
        said = list(said_in(self.stream.head()))
        for one in said[self.counted :]:
            self.ech |= one.ech
            self.hello |= one.whole and one.source == "tls"
            self.understood |= one.whole
            name = None if one.raw is None else self._expose(one.source, one.raw)
            if name is not None and (self.proven or not self.rules.established):
                yield from self._vote_addr(p)
                yield from self._vote(p, name)
        self.counted, self.read = len(said), sum(one.end for one in said)

    def _takes(self, p: Packet, offset: int) -> bool:
        """Whether the stream takes bytes at an offset. Those that come before the bytes in front of
        them wait. Far ahead, the bytes in front are given up: a name may have been there. Far ahead
        or ahead of a request, only what acknowledges the server's bytes is the client's. Behind a
        gap a request begins only with its segment, and only if the gap began between two."""
        ahead = offset - len(self.stream.head())
        again = self.service == "http" and self.counted > 0 and ahead > 0
        if self.all_comes or (ahead < STREAM_MAX and not again):
            return True
        known = self.server_isn is not None and abs(p.ack - self.replied) <= ACK_BEYOND_MAX
        if self.rules.established and not self.midstream and not known:
            self.unread = True
            return False
        if ahead < STREAM_MAX:
            return True
        self.unread = True
        between = not self.stream.head()[self.read :] and len(self.stream.head()) >= self.read
        if self.lost_place or (again and not (between and service_of(p.payload) == "http")):
            self.lost_place = True
            return False
        self.base, self.stream = p.seq, StreamOracle()
        self.counted = self.read = 0
        return True

    def _datagram(self, p: Packet, from_client: bool) -> Iterator[Vote]:
        """Reads a datagram: DNS by its port, QUIC by a long header."""
        if DNS_PORT in (end.port for end in self.ends):
            yield from self._ask(p) if from_client else self._answer(p)
            return
        if self.quic is None and p.payload[0] & 0x80:
            self.quic = QuicTalk()
        if self.quic is None:
            return
        if sum(self.packets) == 1:
            self.quic.first = First(p.payload, from_client, p.t_ns)
        if not from_client and self._opens_late(p, self.quic):
            self.turned, self.quic, from_client = not self.turned, self.quic.turned(), True
        self.quic.take(p.payload, from_client, p.t_ns)
        yield from self._greet(p, self.quic)

    def _opens_late(self, p: Packet, quic: QuicTalk) -> bool:
        """Returns whether the packet is the first of a user who was taken for the server, and a
        client's first."""
        early = p.t_ns - self.first.t_ns <= EARLY_NS and self.packets[p.sender] == 1
        inside = self.rules.is_internal(p.ends[p.sender].address)
        return early and inside and not (quic.connections or self.names) and begins(p.payload)

    def _greet(self, p: Packet, quic: QuicTalk) -> Iterator[Vote]:
        """Reads QUIC: a hello counts when its client addresses the ID that the server chose."""
        for one in quic.connections[self.greetings :]:
            self.greeted = None
            if one.hello is not None:
                raw = server_name(one.hello)
                self.ech |= hides(one.hello)
                self.understood = True
                self.greeted = None if raw is None else self._expose("quic", raw)
                self._note_agent(agent_of(one.hello))
            elif one is quic.last:
                break
            else:
                self.names.append(Name("quic", "", "suppressed"))
            self.greetings += 1
            if self.greeted is not None and not self.rules.established:
                yield from self._vote_addr(p)
                yield from self._vote(p, self.greeted)
        proven = quic.last is not None and quic.last.proven
        if proven:
            yield from self._vote_addr(p)
            if self.greeted is not None:
                yield from self._vote(p, self.greeted)
        last = self.agent_by == len(quic.connections)
        if self.agent is not None and last and (proven or not self.rules.established):
            yield from self._vote(p, self.agent)

    def _note_agent(self, text: str | None) -> None:
        """Keeps the flow's first user agent; each connection has to prove its own."""
        if text is not None and self.agent is None and self.may_vote:
            self.agent, self.agent_by = Secondary("agent", text), self.greetings + 1

    def _ask(self, p: Packet) -> Iterator[Vote]:
        """Reads a DNS question, which counts when it is answered."""
        q = question(p.payload)
        if q.response:
            return
        name = self._expose("dns", q.name)
        if name is None:
            return
        self.asked.append((q.ident, q.kind, name))
        early = any(
            abs(p.t_ns - t_ns) <= EARLY_NS and (ident, kind, text) == (q.ident, q.kind, name.text)
            for t_ns, ident, kind, text in self.answered
        )
        if early or not self.rules.established:
            yield from self._vote_addr(p)
            yield from self._vote(p, name)

    def _answer(self, p: Packet) -> Iterator[Vote]:
        q = question(p.payload)
        if q.response:
            self.answered.append((p.t_ns, q.ident, q.kind, normal(q.name)[1]))
        for ident, kind, name in self.asked:
            same = (ident, kind, name.text) == (q.ident, q.kind, normal(q.name)[1])
            if q.response and same and self.rules.established:
                yield from self._vote_addr(p)
                yield from self._vote(p, name)

    def _expose(self, source: str, raw: bytes) -> Name | None:
        """The flow's name for a text of the client's; None where none could be released."""
        kind, text = normal(raw)
        self.understood = True
        if kind == "address":
            return None
        why = self._forbids(kind, text)
        if why is None:
            space = self.rules.namespace(source)
            for name in self.names:
                if name.text == text and self.rules.namespace(name.source) == space:
                    return name
        self.names.append(Name(source, text, why or "waiting"))
        return None if why else self.names[-1]

    def _forbids(self, kind: str, text: str) -> str | None:
        if kind == "invalid":
            return "invalid"
        home = kind == "home" and not self.rules.everything
        if home or under(text, self.rules.never) or not self.may_vote:
            return "suppressed"
        return None

    def _vote(self, p: Packet, what: Name | Secondary) -> Iterator[Vote]:
        """Casts one vote a flow and name."""
        if what.state == "waiting":
            what.state = "voted"
            yield Vote(p.t_ns, self, what)

    def _vote_addr(self, p: Packet) -> Iterator[Vote]:
        if not self.addr_voted and self.may_vote:
            self.addr_voted = True
            yield Vote(p.t_ns, self, None)
