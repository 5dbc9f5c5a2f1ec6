# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What a run must emit for messages of ICMP, and for fragments of UDP, by the letter of the rules.

`MessageFates` adds both to the fates of other packets, `MessageChecker` compares every byte. Frames
are plain: Ethernet, IP without options, in order of time, each with a time of its own.
"""

import ipaddress
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from support.packets import Frame

from oracle.flow import flows_of
from oracle.layers import Address, Packet, Reader, ip_of
from oracle.packet_addresses import block_of
from oracle.packets import (
    INSIDE,
    LEAST_BYTES,
    LOCAL,
    MASKED,
    NO_FLOW,
    NO_USER,
    OUTSIDE,
    PASSED,
    Checker,
    Course,
    Fate,
    Fates,
    class_of_ttl,
    internet_sum,
)
from oracle.rules import Rules
from oracle.talks import Talk

FRAGMENT = "fragment"
ICMP, ICMP6, TCP, UDP = 1, 58, 6, 17
ECHO, ECHO_REPLY, ECHO6, ECHO_REPLY6 = 8, 0, 128, 129
ERRORS, ERRORS6 = {3: "unreachable", 5: "redirect", 11: "time", 12: "parameter"}, {
    1: "unreachable", 2: "too big", 3: "time", 4: "parameter"}  # fmt: skip
NEIGHBOURS, NEIGHBOURS6 = (9, 10, 17, 18), range(130, 256)
EXTENSIONS6 = (0, 43, 44, 51, 59, 60)
LEAST_DECLARED = 128  # RFC 4884, 4


@dataclass(frozen=True, slots=True)
class Quote:
    """The packet that an error quotes, where it can be read."""

    packet: bytes  # as much of it as the error has
    ends: tuple[Address, Address]
    protocol: int
    rest: bytes

    @property
    def flow(self) -> tuple[tuple[int, int], bool]:
        """What tells its flow apart: both ends, and whether it is TCP."""
        ports = struct.unpack_from(">HH", self.rest)
        keys = [int(end) << 16 | port for end, port in zip(self.ends, ports, strict=True)]
        return (min(keys), max(keys)), self.protocol == TCP


def quote_in(message: bytes, *, four: bool) -> Quote | None:
    """Reads the quote of an error, None: it is none, or of a kind that nobody reads."""
    kind = message[0]
    declared = 0
    if four and kind != 5:
        declared = 4 * message[5]
    elif not four and kind in (1, 3):
        declared = 8 * message[4]
    if declared and declared < LEAST_DECLARED:
        return None
    packet = message[8 : 8 + declared] if declared else message[8:]
    header = 20 if four else 40
    if len(message) < 8 + header + 8:
        return None
    if four:
        total, _ident, place = struct.unpack_from(">HHH", packet, 2)
        if packet[0] != 0x45 or total < 28 or place & 0x1FFF:
            return None
        protocol, ends = packet[9], (packet[12:16], packet[16:20])
    else:
        total = 40 + int.from_bytes(packet[4:6])
        protocol, ends = packet[6], (packet[8:24], packet[24:40])
        if packet[0] >> 4 != 6 or total < 48 or protocol in EXTENSIONS6:
            return None
    if protocol == (ICMP if four else ICMP6) and not is_echo(packet[header], four=four):
        return None
    both = ipaddress.ip_address(ends[0]), ipaddress.ip_address(ends[1])
    return Quote(packet[:total], both, protocol, packet[header:total])


def is_echo(kind: int, *, four: bool) -> bool:
    return kind in ((ECHO, ECHO_REPLY) if four else (ECHO6, ECHO_REPLY6))


# ---- fates --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message(Fate):
    """A message of ICMP; `course`: of the flow that it quotes; `clock_ns`: packet time when it
    came."""

    quote: Quote | None = None
    clock_ns: int = 0


@dataclass(frozen=True, slots=True)
class Part(Fate):
    """A fragment of `packet`, which is whole with its last one."""


class MessageFates(Fates):
    """The fates of frames among which are messages of ICMP and fragments of UDP."""

    def __init__(self, rules: Rules, hold_ns: int, frames: Sequence[Frame]) -> None:
        super().__init__(rules, hold_ns, frames)
        reader = Reader()
        self.packets = [next(iter(reader.read([frame])), None) for frame in frames]
        self.parts = self._parts()
        known = [p for p in self.packets if p is not None]
        self.courses, self.closed = {}, []
        self.flows: list[tuple[list[Packet], str]] = []
        for flow, end, closed_ns in flows_of(list(known)):
            course = Course(Talk(rules, flow[0]))
            self.closed.append((course, closed_ns))
            self.courses |= {id(p): course for p in flow}
            self.flows.append((flow, end))

    def _parts(self) -> dict[int, tuple[Packet | None, int]]:
        """By fragment: the datagram that it is of, and when the first one came."""
        open_parts: dict[object, list[int]] = {}
        parts: dict[int, tuple[Packet | None, int]] = {}
        for n, (frame, packet) in enumerate(zip(self.frames, self.packets, strict=True)):
            ip = ip_of(frame.data[14:])
            if not ip.place:
                continue
            which = (ip.ends, ip.number, ip.protocol)
            together = open_parts.setdefault(which, [])
            together.append(n)
            first_ns = self.frames[together[0]].t_ns
            parts |= dict.fromkeys(together, (packet, first_ns))
            if packet is not None:
                del open_parts[which]
        return parts

    def _fate(self, frame: Frame, p: Packet | None) -> Fate:
        n = next(n for n, one in enumerate(self.frames) if one is frame)
        if n in self.parts:
            return self._part(frame, *self.parts[n])
        if p is not None:
            return super()._fate(frame, p)
        return self._message(n, frame)

    def _left(self, course: Course, due_ns: int) -> str:
        """What becomes of what belongs to a flow."""
        what = course.fate(due_ns)
        if what == PASSED:
            self.passed.add(id(course))
        elif self.rules.exact and id(course) not in self.passed:
            what = MASKED
        return what

    def _part(self, frame: Frame, packet: Packet | None, first_ns: int) -> Fate:
        course = self.courses.get(id(packet))
        if packet is None or course is None or packet.t_ns > first_ns + self.hold_ns:
            return Fate(FRAGMENT, frame)
        if not course.talk.shown_at_all:
            return Fate(NO_USER, frame, packet, course)
        due_ns = first_ns + self.hold_ns
        return Part(self._left(course, due_ns), frame, packet, course, due_ns=due_ns)

    def _message(self, n: int, frame: Frame) -> Fate:
        ip = ip_of(frame.data[14:])
        four = ip.ends[0].version == 4
        kind = ip.rest[0]
        if kind in (NEIGHBOURS if four else NEIGHBOURS6):
            return Fate(LOCAL, frame)
        if self.rules.internal is not None and not any(map(self.rules.is_internal, ip.ends)):
            return Fate(NO_USER, frame)
        times = [p.t_ns for p in self.packets[:n] if p is not None]
        clock_ns = max(times, default=frame.t_ns)
        is_error = kind in (ERRORS if four else ERRORS6)
        quote = quote_in(ip.rest, four=four) if is_error else None
        course = self._quoted(frame, quote, ip.ends[1])
        if course is not None:
            if not course.talk.shown_at_all:
                return Fate(NO_USER, frame)
            due_ns = frame.t_ns + self.hold_ns
            what = self._left(course, due_ns)
            return Message(
                what, frame, course=course, due_ns=due_ns, quote=quote, clock_ns=clock_ns
            )
        if is_error and (quote is None or quote.protocol in (TCP, UDP)):
            return Fate(NO_FLOW, frame)
        return Message(PASSED, frame, clock_ns=clock_ns)

    def _quoted(self, frame: Frame, quote: Quote | None, receiver: Address) -> Course | None:
        """The open flow of which an error quotes a packet that its receiver sent."""
        if quote is None or quote.protocol not in (TCP, UDP) or quote.ends[0] != receiver:
            return None
        for flow, end in reversed(self.flows):
            begun = flow[0].t_ns < frame.t_ns
            over = end in ("fin", "rst") and flow[-1].t_ns < frame.t_ns
            if (tuple(sorted(flow[0].ports)), flow[0].tcp) == quote.flow and begun and not over:
                return self.courses[id(flow[0])]
        return None


# ---- bytes --------------------------------------------------------------------------------------


def header(packet: bytes, ends: bytes, protocol: int, length: int, ident: int = 0,
           place: int | None = None) -> bytes:  # fmt: skip
    """The IP header that leaves for that of a packet; `place`: flags and offset of IPv4."""
    if packet[0] >> 4 == 6:
        word = 6 << 28 | (int.from_bytes(packet[:2]) >> 4 & 0xFF) << 20
        return struct.pack(">IHBB", word, length, protocol, class_of_ttl(packet[7])) + ends
    place = int.from_bytes(packet[6:8]) & 0x4000 if place is None else place
    fixed = struct.pack(">BBHHHBBH", 0x45, packet[1], 20 + length, ident, place,
                        class_of_ttl(packet[8]), protocol, 0) + ends  # fmt: skip
    return fixed[:10] + internet_sum(fixed).to_bytes(2) + fixed[12:]


def ends_of(packet: bytes) -> tuple[bytes, tuple[Address, Address]]:
    """The addresses of a packet, as bytes and each."""
    both = packet[12:20] if packet[0] >> 4 == 4 else packet[8:40]
    half = len(both) // 2
    return both, (ipaddress.ip_address(both[:half]), ipaddress.ip_address(both[half:]))


def framed(packet: bytes, *, outward: bool) -> bytes:
    """The packet in the frame that leaves."""
    macs = OUTSIDE + INSIDE if outward else INSIDE + OUTSIDE
    kind = b"\x08\0" if packet[0] >> 4 == 4 else b"\x86\xdd"
    return (macs + kind + packet).ljust(LEAST_BYTES, b"\0")


def second_word(message: bytes, *, four: bool) -> bytes:
    """What an error says besides its quote."""
    kind, code, word = message[0], message[1], message[4:8]
    if not four:
        return word if kind in (2, 4) else bytes(4)
    if kind == 3 and code == 4:
        return bytes(2) + word[2:]
    return word[:1] + bytes(3) if kind == 12 else bytes(4)


def summed(segment: bytes, ends: bytes, protocol: int, at: int) -> bytes:
    """The segment with its checksum, which has a pseudo-header but in ICMP of IPv4."""
    around = ends + struct.pack(">II", len(segment), protocol) if protocol != ICMP else b""
    total = internet_sum(around + segment)
    if protocol == UDP and total == 0:
        total = 0xFFFF
    return segment[:at] + total.to_bytes(2) + segment[at + 2 :]


class MessageChecker(Checker):
    """Compares messages of ICMP and fragments, too, with those that must leave."""

    def check(self, fate: Fate, given: Frame, left: Frame) -> None:
        self.fix_server(fate)
        if isinstance(fate, Message):
            self._check_message(fate, given, left)
        elif isinstance(fate, Part):
            self._check_part(fate, given, left)
        else:
            super().check(fate, given, left)

    def _compare(self, left: Frame, given: Frame, frame: bytes, headers: int) -> None:
        assert left.t_ns == given.t_ns
        assert left.wire == len(frame)
        assert left.data.hex() == (frame[: 14 + headers] if self.cut else frame).hex()

    # ---- messages -----------------------------------------------------------------------------

    def _check_message(self, fate: Message, given: Frame, left: Frame) -> None:
        packet, out = given.data[14:], left.data[14:]
        four = packet[0] >> 4 == 4
        size, protocol = (20, ICMP) if four else (40, ICMP6)
        message = ip_of(packet).rest
        ends, shown = ends_of(out)
        real = ends_of(packet)[1]
        answers = self._answers(message[0], four=four)
        user = self._user(real, answers=answers)
        for i in (0, 1):
            self._check_end(fate, real, shown, i, user)
        body = message[:2] + bytes(len(message) - 2)
        if is_echo(message[0], four=four):
            ident = int.from_bytes(out[size + 4 : size + 6]) if not self.cut else 0
            if not self.cut:
                epoch = fate.clock_ns // self.rules.rotate_ns
                key = ("echo", epoch, frozenset(real), message[4:6])
                self.keyed.take(key, ident)
            body = body[:4] + ident.to_bytes(2) + message[6:8] + body[8:]
        elif message[0] in (ERRORS if four else ERRORS6):
            body = body[:4] + second_word(message, four=four) + body[8:]
            if fate.course is not None and not self.cut:
                body = self._with_quote(fate, out[size + 8 :], body)
        body = summed(body, ends, protocol, 2)
        whole = header(packet, ends, protocol, len(body)) + body
        self._compare(left, given, framed(whole, outward=user == 0), size)

    def _answers(self, kind: int, *, four: bool) -> bool:
        """Whether a message goes back to who asked for it, or sent what it is about."""
        if kind in (ERRORS if four else ERRORS6):
            return True
        return kind == (ECHO_REPLY if four else ECHO_REPLY6)

    def _user(self, real: tuple[Address, Address], *, answers: bool) -> int:
        """The end on the user's side: an internal one, or else who asked."""
        if self.rules.is_internal(real[0]):
            return 0
        return int(self.rules.is_internal(real[1]) or answers)

    def _check_end(self, fate: Message, real: tuple[Address, Address],
                   shown: tuple[Address, Address], i: int, user: int) -> None:  # fmt: skip
        course = fate.course
        if course is not None:
            flow_ends = [end.address for end in course.talk.ends]
            if real[i] in flow_ends:
                end = flow_ends.index(real[i])
                self._check_address(course, end, shown[i], hidden=self.hidden(fate))
                return
        epoch = fate.clock_ns // self.rules.rotate_ns
        inside = self.rules.is_internal(real[i])
        if inside or i == user:
            assert block_of(shown[i]) == ("client" if inside else "outside client")
            self.keyed.take(("client", epoch, real[i]), shown[i], within=("client", epoch, inside))
            return
        assert block_of(shown[i]) == "pair"
        self.keyed.take(("pair", epoch, real[user], real[i]), shown[i])

    def _with_quote(self, fate: Message, shown: bytes, body: bytes) -> bytes:
        """The error with its quote as it must be; numbers under keys are taken from `shown`."""
        quote, course = fate.quote, fate.course
        assert quote is not None
        assert course is not None
        four, talk = quote.packet[0] >> 4 == 4, course.talk
        size = 20 if four else 40
        ends, addresses = ends_of(shown)
        ports, sequence = struct.unpack_from(">HHI", shown, size)[:2], shown[size + 4 : size + 8]
        from_client = quote.ends[0] == talk.ends[0].address
        hidden = self.hidden(fate)
        for end in (0, 1):
            shown_end = addresses[end if from_client else 1 - end]
            self._check_address(course, end, shown_end, hidden=hidden)
        real = struct.unpack_from(">HH", quote.rest)
        client = 0 if from_client else 1
        assert ports[1 - client] == self._server_port(real[1 - client], hidden=hidden)
        self._check_port(talk, talk.known_as[talk.user_end], ports[client], kept=not hidden)
        ident = 0
        if four and not int.from_bytes(quote.packet[6:8]) & 0x4000:
            ident = int.from_bytes(shown[4:6])
            self.keyed.take(("id", id(course), int.from_bytes(quote.packet[4:6])), ident)
        length = (
            int.from_bytes(quote.packet[2:4]) - 20 if four else int.from_bytes(quote.packet[4:6])
        )
        place = int.from_bytes(quote.packet[6:8]) & 0x6000 if four else None
        start = struct.pack(">HH", *ports)
        if quote.protocol == TCP:
            sender = talk.client if from_client else 1 - talk.client
            shift = int.from_bytes(sequence) - int.from_bytes(quote.rest[4:8])
            self.keyed.take(("seq", id(course), sender), shift % 2**32)
            start += sequence
            if len(quote.rest) >= 20:
                start += bytes(4) + b"\x50" + bytes(7)
        else:
            start += struct.pack(">HH", length, 0)
        around = ends + struct.pack(">II", length, quote.protocol)
        total = internet_sum(around + start)
        if quote.protocol == UDP:
            start = start[:6] + (total or 0xFFFF).to_bytes(2)
        elif len(start) == 20:
            start = start[:16] + total.to_bytes(2) + bytes(2)
        built = header(quote.packet, ends, quote.protocol, length, ident, place) + start
        return body[:8] + built + body[8 + len(built) :]

    # ---- fragments ----------------------------------------------------------------------------

    def _check_part(self, fate: Part, given: Frame, left: Frame) -> None:
        packet, out, course, p = given.data[14:], left.data[14:], fate.course, fate.packet
        assert course is not None
        assert p is not None
        four, talk, ip = packet[0] >> 4 == 4, course.talk, ip_of(packet)
        size = 20 if four else 48
        ends, addresses = ends_of(out)
        from_client = p.sender == talk.client
        hidden = self.hidden(fate)
        for end in (0, 1):
            shown_end = addresses[end if from_client else 1 - end]
            self._check_address(course, end, shown_end, hidden=hidden)
        start, data = (ip.place >> 1) * 8, bytes(len(ip.rest))
        if start == 0:
            data = self._datagram_header(fate, p, out[size : size + 4], ends) + data[8:]
        if four:
            ident = int.from_bytes(out[4:6])
            self.keyed.take(("id", id(course), ip.number), ident)
            place = (ip.place & 1) << 13 | start >> 3 | int.from_bytes(packet[6:8]) & 0x4000
            whole = header(packet, ends, UDP, len(data), ident, place) + data
        else:
            number = out[44:48]
            self.keyed.take(("long id", id(course), ip.number), number)
            behind = struct.pack(">BBH", UDP, 0, start | ip.place & 1) + number
            whole = header(packet, ends, 44, len(behind + data)) + behind + data
        outward = from_client == (talk.user_end == 0)
        self._compare(left, given, framed(whole, outward=outward), size + 8 * (start == 0))

    def _datagram_header(self, fate: Fate, p: Packet, ports: bytes, ends: bytes) -> bytes:
        """The header of UDP, whose checksum is that of the whole datagram."""
        assert fate.course is not None
        talk, shown = fate.course.talk, struct.unpack(">HH", ports)
        client, hidden = 0 if p.sender == talk.client else 1, self.hidden(fate)
        assert shown[1 - client] == self._server_port(talk.ends[1].port, hidden=hidden)
        self._check_port(talk, talk.known_as[talk.user_end], shown[client], kept=not hidden)
        length = 8 + p.length
        return summed(ports + struct.pack(">HH", length, 0) + bytes(p.length), ends, UDP, 6)[:8]
