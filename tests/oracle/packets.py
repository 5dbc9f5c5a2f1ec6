# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What a run must emit for each frame of a capture, by the letter of the rules and by brute force.

`Fates` says what becomes of each frame, from flows, names, votes and the delay. `expected` builds
the frame that must leave, with values that keys decide (addresses, ports, numbers) taken from what
left: `Keyed` checks that they are the same wherever they must be, and nowhere they must not.
"""

import contextlib
import ipaddress
import struct
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from support.packets import ACK, Frame

from oracle.coarse import Streams
from oracle.flow import flows_of
from oracle.layers import Address, Packet, Reader, behind_extensions, carried, in_ethernet, ip_of
from oracle.packet_addresses import block_of, is_derived_group, is_known_group, is_open
from oracle.quic import opened, split
from oracle.rules import Rules, is_special
from oracle.talks import DNS_PORT, Name, Talk, Vote
from oracle.ztable import ZOracle

NOT_YET = 1 << 80  # later than any time
PASSED, MASKED, NO_FLOW, LOCAL, NO_USER = "passed", "masked", "no_flow", "local", "no_user"
SUPPRESSED, INVALID, UNCONFIRMED, UNDECIDED = "suppressed", "invalid", "unconfirmed", "undecided"
COMMON_PORTS = (53, 80, 443, 853)
DISCARD = 9  # the port that stands for one that is not shown
INSIDE, OUTSIDE = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")
LEAST_BYTES = 60  # of a frame of Ethernet without its check sequence
TCP, UDP = 6, 17
URG, URGENT_AT = 0x20, 18
END, NOP, SIZE, SCALE, SACK_OK, SACK = 0, 1, 2, 3, 4, 5
KEPT = {SIZE: 4, SCALE: 3, SACK_OK: 2}  # options of TCP that stay, with their lengths


# ---- section 2: the fate of a frame -------------------------------------------------------------


@dataclass(slots=True)
class Exposure:
    """A name of a flow: when it was seen and decided, and whether others shared it then."""

    name: Name
    seen_ns: int
    shared: bool
    decided_ns: int = NOT_YET
    state: str = ""


@dataclass(slots=True)
class Course:
    """A flow's names, and all that was known of it at each time."""

    talk: Talk
    exposures: list[Exposure] = field(default_factory=list)
    nameless_ns: int = NOT_YET  # when it was known to have no name
    unread_ns: int = NOT_YET  # when it had bytes that nobody reads, which may hold a name
    server_decided_ns: int = NOT_YET  # when its own vote for the server's address was decided
    server_shared: bool = False  # by that vote
    server_open: bool = False  # the server is shown even if no vote is decided: z is 1
    server_withheld: bool = False  # a setting of the output
    streams: Streams = field(default_factory=Streams)

    def server_shown(self, due_ns: int) -> tuple[bool, bool]:
        """Return whether the first packet that leaves, behind due_ns, must and may show the
        server."""
        must = self.server_decided_ns <= due_ns and self.server_shared
        may = must or (self.server_decided_ns > due_ns and self.server_open)
        return must and not self.server_withheld, may and not self.server_withheld

    def fate(self, due_ns: int) -> str:
        """What becomes of a packet that leaves behind due_ns."""
        seen = [one for one in self.exposures if one.seen_ns <= due_ns]
        decided = [one for one in seen if one.decided_ns <= due_ns]
        for one in decided:
            if one.state != "released":
                return one.state
        if self.unread_ns <= due_ns:
            return INVALID
        if any(one not in decided and not one.shared for one in seen):
            return UNDECIDED
        return PASSED if seen or self.nameless_ns <= due_ns else UNDECIDED


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a frame; `course`: its flow's."""

    what: str
    frame: Frame
    packet: Packet | None = None
    course: Course | None = None
    streams: Streams | None = None  # of a flow that leaves with coarse positions
    due_ns: int = 0


def is_quic_or_dtls(payload: bytes) -> bool:
    """Whether a datagram may begin a conversation that has a name."""
    return payload[:1] >= b"\x80" or payload[:1] in (b"\x14", b"\x15", b"\x16", b"\x17")


class Fates:
    """The fates of frames in order of time, each a packet of TCP or UDP, or none; no fragments."""

    def __init__(self, rules: Rules, hold_ns: int, frames: Sequence[Frame]) -> None:
        self.rules, self.hold_ns, self.frames = rules, hold_ns, frames
        self.packets = [next(iter(Reader().read([frame])), None) for frame in frames]
        known = [p for p in self.packets if p is not None]
        self.courses: dict[int, Course] = {}  # by packet
        self.closed: list[tuple[Course, int]] = []
        for flow, _end, closed_ns in flows_of(list(known)):
            course = Course(Talk(rules, flow[0]))
            self.closed.append((course, closed_ns))
            self.courses |= {id(p): course for p in flow}
        self.clients: dict[Address, int] = {}
        self.passed: set[int] = set()  # courses of which a packet left unmasked
        self.votes, self.others = (ZOracle(rules.z, rules.window_ns) for _ in range(2))

    def run(self) -> list[Fate]:
        """The fate of each frame, in order."""
        for p in self.packets:
            course = self.courses.get(id(p))
            if p is not None and course is not None:
                self._take(p, course)
        for course, closed_ns in self.closed:
            self._close(course, closed_ns)
        return [self._fate(f, p) for f, p in zip(self.frames, self.packets, strict=True)]

    def _fate(self, frame: Frame, p: Packet | None) -> Fate:
        course = self.courses.get(id(p))
        if p is None or course is None:
            return Fate(NO_FLOW, frame, p)
        if any(is_special(end.address) and not end.address.is_multicast for end in p.ends):
            return Fate(LOCAL, frame, p, course)
        if not course.talk.shown_at_all:
            return Fate(NO_USER, frame, p, course)
        due_ns = frame.t_ns + self.hold_ns
        what = course.fate(due_ns)
        streams = None
        if p.tcp:
            streams = course.streams.take(p.sender, p.flags, p.seq, p.ack, p.length)
        if what == PASSED:
            self.passed.add(id(course))
        elif self.rules.coarse and id(course) not in self.passed and streams is not None:
            if what != UNDECIDED:
                return Fate(MASKED, frame, p, course, streams, due_ns)
        elif self.rules.exact and id(course) not in self.passed:
            what = MASKED
        return Fate(what, frame, p, course, None, due_ns)

    # ---- names --------------------------------------------------------------------------------

    def _take(self, p: Packet, course: Course) -> None:
        talk = course.talk
        if p is talk.first:
            self._open_server(course, p.t_ns)
        counted = (talk.counted, talk.greetings)
        before = len(talk.names)
        votes = list(talk.take(p))
        for name in talk.names[before:]:
            shared = name.state in ("waiting", "voted") and self._is_shared(p, name)
            course.exposures.append(Exposure(name, p.t_ns, shared))
            if name.state not in ("waiting", "voted"):
                self._settle(course, name, p.t_ns, name.state)
        if talk.unread:
            course.unread_ns = min(course.unread_ns, p.t_ns)
        for vote in votes:
            self._decide(vote, course)
        if len(talk.names) == before and self._none_is_there(p, talk, counted):
            course.nameless_ns = min(course.nameless_ns, p.t_ns)

    def _none_is_there(self, p: Packet, talk: Talk, counted: tuple[int, int]) -> bool:
        """Whether a packet without a name shows that its flow has none."""
        if (talk.counted, talk.greetings) != counted:
            return True  # a whole hello or request that names nobody
        asks = DNS_PORT in (end.port for end in talk.ends)
        return not p.tcp and not asks and talk.quic is None and not is_quic_or_dtls(p.payload)

    def _is_shared(self, p: Packet, name: Name) -> bool:
        """Whether z users exposed the name in the window; z = 1 needs none but this one."""
        kind = self.rules.namespace(name.source)
        if kind == "dns" and self.rules.dns_votes == "no":
            kind = "name"
        what = (kind, name.text)
        return self.rules.everything or len(self._users(what, p.t_ns)) >= self.rules.z

    def _users(self, what: Hashable, t_ns: int) -> set[Hashable]:
        since_ns = t_ns - self.rules.window_ns
        return {user for t, user in self.votes.seen.get(what, []) if since_ns <= t <= t_ns}

    def _decide(self, vote: Vote, course: Course) -> None:
        if vote.what is None:
            self._decide_server(vote, course)
            return
        if not isinstance(vote.what, Name):
            return
        kind = self.rules.namespace(vote.what.source)
        if kind == "dns" and self.rules.dns_votes == "no":
            released = self.votes.users(vote.t_ns, ("name", vote.what.text)) >= self.rules.z
        else:
            released = self.votes.observe(vote.t_ns, vote.talk.user, (kind, vote.what.text))
        self._settle(course, vote.what, vote.t_ns, "released" if released else SUPPRESSED)

    def _settle(self, course: Course, name: Name, t_ns: int, state: str) -> None:
        """Decides on a name, once."""
        for one in course.exposures:
            if one.name is name and one.decided_ns == NOT_YET:
                one.decided_ns, one.state = t_ns, state
                name.state = state

    def _close(self, course: Course, closed_ns: int) -> None:
        """What was not proven by the end of its flow is not any more; what had no name has none."""
        before = len(course.talk.names)
        course.talk.end()
        for name in course.talk.names[before:]:
            course.exposures.append(Exposure(name, closed_ns, False, closed_ns, name.state))
        for one in course.exposures:
            if one.decided_ns == NOT_YET:
                one.decided_ns, one.state = closed_ns, UNCONFIRMED
        course.nameless_ns = min(course.nameless_ns, closed_ns)
        if course.talk.unread:
            course.unread_ns = min(course.unread_ns, closed_ns)

    # ---- the server's address -----------------------------------------------------------------

    def _server(self, talk: Talk) -> Hashable:
        asks = talk.asks_dns and self.rules.dns_votes == "own"
        return ("resolver" if asks else "addr", talk.ends[1].address)

    def _open_server(self, course: Course, t_ns: int) -> None:
        """With z = 1 a server is shown even if no vote for it is cast."""
        talk = course.talk
        self.clients.setdefault(talk.ends[0].address, t_ns)
        course.server_open = self.rules.everything and self._is_attribute(talk)

    @staticmethod
    def _is_attribute(talk: Talk) -> bool:
        """Return whether the server's address could be released. An internal address could not,
        nor a group that is registered or holds a part of another address."""
        address = talk.ends[1].address
        if address.is_multicast:
            return not (talk.internal[1] or is_known_group(address) or is_derived_group(address))
        return not talk.internal[1] and not is_special(address)

    def _decide_server(self, vote: Vote, course: Course) -> None:
        talk = course.talk
        if not self._is_attribute(talk):
            return
        if talk.asks_dns and self.rules.dns_votes == "no":
            shared = self.votes.users(vote.t_ns, ("addr", talk.ends[1].address)) >= self.rules.z
        else:
            shared = self.votes.observe(vote.t_ns, talk.user, self._server(talk))
            shared = shared or self.rules.everything
        course.server_decided_ns, course.server_shared = vote.t_ns, shared


# ---- sections 1 and 3: the frame that leaves ----------------------------------------------------


class Keyed:
    """Values that keys decide, as they were found: each must be the same for the same key."""

    def __init__(self) -> None:
        self.values: dict[Hashable, object] = {}
        self.keys: dict[Hashable, dict[object, Hashable]] = defaultdict(dict)

    def take(self, key: Hashable, value: object, *, within: Hashable = None) -> None:
        """Checks a value. `within`: no other key of the same set has it."""
        known = self.values.setdefault(key, value)
        assert known == value, f"{key}: {known}, and then {value}"
        if within is not None:
            other = self.keys[within].setdefault(value, key)
            assert other == key, f"{key} and {other}: both {value}"


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a frame has under keys."""

    source: Address
    target: Address
    ports: tuple[int, int]
    ident: int = 0
    seq: int = 0
    ack: int = 0
    sacks: tuple[int, ...] = ()


def inner(frame: bytes) -> bytes:
    """The innermost IP packet of a frame."""
    inside: bytes | None = in_ethernet(frame)
    while inside is not None:
        packet, inside = inside, carried(ip_of(inside))
    return packet


def header_bytes(packet: bytes) -> int:
    """The length of an IP header, with its options or extension headers."""
    if packet[0] >> 4 == 4:
        return 4 * (packet[0] & 15)
    size = 40 + int.from_bytes(packet[4:6])
    return size - len(behind_extensions(packet[6], packet[40:size])[1])


def total_bytes(packet: bytes) -> int:
    """The length of a packet by its header."""
    if packet[0] >> 4 == 4:
        return int.from_bytes(packet[2:4])
    return 40 + int.from_bytes(packet[4:6])


def found_in(frame: bytes) -> Numbers:
    """The numbers of a frame that left."""
    packet = frame[14:]
    four = packet[0] >> 4 == 4
    source, target = (packet[12:16], packet[16:20]) if four else (packet[8:24], packet[24:40])
    ident = int.from_bytes(packet[4:6]) if four else 0
    rest = packet[20 if four else 40 :]
    ports = struct.unpack_from(">HH", rest)
    ends = ipaddress.ip_address(source), ipaddress.ip_address(target)
    if packet[9 if four else 6] == UDP:
        return Numbers(*ends, ports, ident)
    seq, ack = struct.unpack_from(">II", rest, 4)
    options = rest[20 : 4 * (rest[12] >> 4)]
    sacks = tuple(
        n
        for kind, value in options_of(options)
        if kind == SACK
        for n in struct.unpack(f">{len(value) // 4}I", value)
    )
    return Numbers(*ends, ports, ident, seq, ack, sacks)


def options_of(data: bytes) -> list[tuple[int, bytes]]:
    """(kind, value) of options of TCP (RFC 9293, 3.2); behind the end of the list is nothing."""
    found = []
    while data and data[0] != END:
        size = 1 if data[0] == NOP else data[1]
        found.append((data[0], data[2:size]))
        data = data[size:]
    return found


def options_shown(data: bytes, sacks: Sequence[int]) -> bytes:
    """Options with NOP in place of those that are not listed."""
    out, left = b"", list(sacks)
    for kind, value in options_of(data):
        size = 1 if kind == NOP else 2 + len(value)
        if KEPT.get(kind) == size:
            out += bytes([kind, size]) + value
        elif kind == SACK and size in (10, 18, 26, 34):
            edges, left = left[: len(value) // 4], left[len(value) // 4 :]
            out += bytes([kind, size]) + struct.pack(f">{len(edges)}I", *edges)
        else:
            out += bytes([NOP]) * size
    return out.ljust(len(data), bytes([NOP]))  # also where the list ends early


def class_of_ttl(ttl: int) -> int:
    """64, 128 or 255, the next above."""
    return next(one for one in (64, 128, 255) if one >= ttl)


def internet_sum(data: bytes) -> int:
    """The Internet checksum (RFC 1071), word by word."""
    total = 0
    for at in range(0, len(data), 2):
        total += int.from_bytes(data[at : at + 2].ljust(2, b"\0"))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def transport(packet: bytes, size: int, n: Numbers) -> tuple[bytes, int]:
    """(the header of TCP or UDP that leaves without checksum, bytes of payload behind it)."""
    header = header_bytes(packet)
    rest, ports = packet[header:size], struct.pack(">HH", *n.ports)
    protocol = packet[9] if packet[0] >> 4 == 4 else ip_of(packet).protocol
    if protocol == UDP:
        return ports + struct.pack(">HH", len(rest), 0), len(rest) - 8
    offset = 4 * (rest[12] >> 4)
    options = options_shown(rest[20:offset], n.sacks)
    numbers = struct.pack(">II", n.seq, n.ack)
    flags = bytes([rest[12] & 0xF0]) + rest[13:16]  # without the reserved bits; and the window
    return ports + numbers + flags + bytes(4) + options, len(rest) - offset


def expected(
    packet: bytes, n: Numbers, shown: bytes, *, outward: bool, cut: bool
) -> tuple[bytes, int]:
    """(the frame that leaves for a packet that passes, its length on the wire).

    shown: what a rule shows of its payload; the rest is zeros. outward: whether it goes from the
    user's side. cut: it ends behind the header of TCP or UDP.
    """
    size, four = total_bytes(packet), packet[0] >> 4 == 4
    segment, payload = transport(packet, size, n)
    protocol = TCP if len(segment) > 8 else UDP
    length = len(segment) + payload
    ends = n.source.packed + n.target.packed
    around = ends + struct.pack(">II", length, protocol)
    total = internet_sum(around + segment + shown)
    if protocol == UDP and total == 0:
        total = 0xFFFF
    at = 16 if protocol == TCP else 6
    segment = segment[:at] + total.to_bytes(2) + segment[at + 2 :]
    if four:
        fixed = struct.pack(">BBHHHBBH", 0x45, packet[1], 20 + length, n.ident,
                            int.from_bytes(packet[6:8]) & 0x4000, class_of_ttl(packet[8]),
                            protocol, 0) + ends  # fmt: skip
        header = fixed[:10] + internet_sum(fixed).to_bytes(2) + fixed[12:]
    else:
        word = 6 << 28 | (int.from_bytes(packet[:2]) >> 4 & 0xFF) << 20
        header = struct.pack(">IHBB", word, length, protocol, class_of_ttl(packet[7])) + ends
    macs = OUTSIDE + INSIDE if outward else INSIDE + OUTSIDE
    headers = macs + (b"\x08\0" if four else b"\x86\xdd") + header + segment
    wire = max(len(headers) + payload, LEAST_BYTES)
    if cut:
        return headers, wire
    return headers + shown.ljust(wire - len(headers), b"\0"), wire


def payload_of(frame: bytes) -> bytes:
    """The payload of a frame's TCP or UDP."""
    packet = inner(frame)
    rest = packet[header_bytes(packet) : total_bytes(packet)]
    return rest[4 * (rest[12] >> 4) :] if ip_of(packet).protocol == TCP else rest[8:]


def unsealed(payload: bytes) -> bytes:
    """A payload, and what a client's Initials of QUIC in it protect."""
    if not payload or payload[0] < 0xC0:
        return payload
    said = b""
    with contextlib.suppress(IndexError, ValueError, KeyError, struct.error):
        for packet in split(payload)[0]:
            said += opened(packet, packet.dcid) or b""
    return payload + said


def texts_of(name: str) -> list[bytes]:
    """A name as text and as labels, without what it shares with others."""
    labels = b"".join(bytes([len(one)]) + one.encode() for one in name.split("."))
    return [name.encode(), labels] if "." in name else []


def check_payload(fate: Fate, given: bytes, shown: bytes) -> None:
    """Nothing is shown of a flow that no rule is about, and no name but those that are released."""
    course = fate.course
    assert course is not None
    assert len(shown) <= len(given)
    if not course.exposures and not course.talk.counted and course.talk.quic is None:
        assert not any(shown), "bytes of a protocol that nobody lists"
    plain = unsealed(shown).lower()
    for one in course.exposures:
        if one.state == "released" or one.shared:
            continue
        found = [text for text in texts_of(one.name.text) if text in plain]
        assert not found, f"{one.name.text}: {one.state}"


class Checker:
    """Compares frames that left with those that must."""

    def __init__(self, rules: Rules, *, cut: bool) -> None:
        self.rules, self.cut, self.keyed = rules, cut, Keyed()
        self.servers: dict[int, tuple[bool, bool]] = {}  # by flow: it must and may show its server
        self.first_hidden: dict[int, bool] = {}  # by flow: its first packet that left was masked
        self.in_main: dict[int, bool] = {}  # by flow: the main output shows its server's address

    def fix_server(self, fate: Fate) -> None:
        """Fixes whether a flow shows its server, with the first of its packets that leaves."""
        if fate.course is not None:
            self.servers.setdefault(id(fate.course), fate.course.server_shown(fate.due_ns))

    def hidden(self, fate: Fate, *, in_main: bool = False) -> bool:
        """Whether the flow of a packet that leaves began with a masked one, here or in the main
        output: its server's address and port are hidden from then on."""
        return self.first_hidden.setdefault(id(fate.course), in_main or fate.what == MASKED)

    def check(
        self, fate: Fate, given: Frame, left: Frame, main: tuple[Frame, bool] | None = None
    ) -> None:
        """Checks the frame that left for a given one, which `fate.frame` is without ornaments.
        main: of a view, what left for it in the main output, and whether its flow began there with
        a masked packet."""
        p, course = fate.packet, fate.course
        assert p is not None
        assert course is not None
        assert left.t_ns == given.t_ns
        self.fix_server(fate)
        n = found_in(left.data)
        packet = inner(given.data)
        if fate.streams is not None:
            coarse = fate.streams.coarse(packet, p.sender)
            assert coarse is not None
            packet = coarse
            assert self.cut or not any(payload_of(left.data))
        if main is not None:
            beside = found_in(main[0].data)
            of_server = beside.target if p.sender == course.talk.client else beside.source
            self.in_main[id(course)] = of_server == course.talk.ends[1].address
        hidden = self.hidden(fate, in_main=main is not None and main[1])
        self._check_numbers(p, course, packet, n, hidden=hidden)
        outward = (p.sender == course.talk.client) == (course.talk.user_end == 0)
        shown = b"" if self.cut else payload_of(left.data)
        if fate.streams is None:
            check_payload(fate, payload_of(given.data), shown)
        data, wire = expected(packet, n, shown, outward=outward, cut=self.cut)
        assert (left.data.hex(), left.wire) == (data.hex(), wire)

    def _check_numbers(
        self, p: Packet, course: Course, packet: bytes, n: Numbers, *, hidden: bool
    ) -> None:
        talk = course.talk
        from_client = p.sender == talk.client
        shown = (n.source, n.target) if from_client else (n.target, n.source)
        ports = n.ports if from_client else n.ports[::-1]
        user = talk.known_as[talk.user_end]
        for end in (0, 1):
            self._check_address(course, end, shown[end], hidden=hidden)
        assert ports[1] == self._server_port(talk.ends[1].port, hidden=hidden)
        self._check_port(talk, user, ports[0], kept=not hidden)
        if packet[0] >> 4 == 4:
            ident, whole = struct.unpack_from(">HH", packet, 4)
            if whole & 0x4000:
                assert n.ident == 0
            else:
                self.keyed.take(("id", id(course), ident), n.ident)
        if p.tcp:
            self._check_sequence(p, course, packet, n)

    def _check_address(self, course: Course, end: int, shown: Address, *, hidden: bool) -> None:
        talk = course.talk
        real = talk.known_as[end] if end == 0 or talk.internal[end] else talk.ends[end].address
        assert shown.version == real.version
        epoch, user = talk.epoch, talk.known_as[talk.user_end]
        block = block_of(shown)
        if talk.internal[end] or end == 0:
            inside = self.rules.is_internal(real)
            assert block == ("client" if inside else "outside client"), (real, shown)
            self.keyed.take(("client", epoch, real), shown, within=("client", epoch, inside))
            return
        self.keyed.take(("server", id(course)), shown)  # one verdict for all packets of a flow
        in_main = self.in_main.get(id(course))
        must, may = self.servers[id(course)]
        if is_open(real):
            assert shown == real
            return
        if shown == real and may and not hidden and in_main is not False:
            return
        assert hidden or not must or in_main is False, f"{real} is not shown"
        assert shown != real
        assert block == ("group" if real.is_multicast else "pair"), (real, shown)
        # Nothing joins coarse flows, and those of which only the main output shows the server.
        veiled = in_main is True or (hidden and self.rules.coarse)
        self.keyed.take(("pair", epoch, user, real, veiled), shown)

    @staticmethod
    def _server_port(real: int, *, hidden: bool) -> int:
        """The port that must stand for a server's."""
        return DISCARD if hidden and real not in COMMON_PORTS else real

    def _check_port(self, talk: Talk, user: Address, shown: int, *, kept: bool) -> None:
        real = talk.ends[0].port
        if self.rules.keep_client_port and kept:
            assert shown == real
            return
        assert (shown < 1024) == (real < 1024)
        self.keyed.take(("port", talk.epoch, user, real), shown, within=(talk.epoch, user))

    def _check_sequence(self, p: Packet, course: Course, packet: bytes, n: Numbers) -> None:
        rest = packet[header_bytes(packet) :]
        seq, ack = struct.unpack_from(">II", rest, 4)
        self.keyed.take(("seq", id(course), p.sender), (n.seq - seq) % 2**32)
        back = ("seq", id(course), 1 - p.sender)
        if p.flags & ACK:
            self.keyed.take(back, (n.ack - ack) % 2**32)
        else:
            assert n.ack == 0
        edges = [
            edge
            for kind, value in options_of(rest[20 : 4 * (rest[12] >> 4)])
            if kind == SACK and len(value) in (8, 16, 24, 32)
            for edge in struct.unpack(f">{len(value) // 4}I", value)
        ]
        assert len(edges) == len(n.sacks)
        for edge, shown in zip(edges, n.sacks, strict=True):
            self.keyed.take(back, (shown - edge) % 2**32)
