# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Streams of anonymized packets of TCP, and the bytes in them that no run writes."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from zanon_net.audit.raw.payload_forms import (
    HANDSHAKE,
    OTHER,
    STARTS,
    Span,
    dns_parts,
    head_end,
    outside,
    runs,
)

CHANGE, APPLICATION, LAST_TYPE, RECORD_HEAD, MESSAGE_HEAD = 20, 23, 24, 5, 4
RECORD_MOST = 16384 + 2048
SERVER_HELLO, CERTIFICATE = 2, 11
SHOWN_MESSAGES = (1, SERVER_HELLO, CERTIFICATE)  # tshark reads their values
HELLOS = (1, 2)
JOINED = 1 << 15  # zeros between two parts that are read as one
DNS_PORT, DNS_LEAST = 53, 12
RANDOM_BYTES = 32
RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
"""Random of each HelloRetryRequest (RFC 8446, 4.1.3)."""
UNKNOWN = 1 << 24
LINE = re.compile(rb"[A-Zx][ -~]*")  # to the end


class Part(NamedTuple):
    """Payload with other bytes than zeros. place: of its first byte in the stream."""

    place: int
    row: int
    t_ns: int
    data: bytes


@dataclass(slots=True)
class Stream:
    """One direction of a connection, with the payload that is not zeros."""

    dns: bool  # true if a port is that of DNS
    kept: bool  # true if records of application data are unchanged
    start: int | None = None  # place of the first byte behind the SYN, if the SYN was seen
    covered: list[list[int]] = field(default_factory=list)  # places of all packets
    parts: list[Part] = field(default_factory=list)
    last: tuple[int, int] | None = None  # sequence number and place of the newest packet

    def place_of(self, sequence: int) -> int:
        """Returns the place of a sequence number."""
        if self.last is None:
            self.last = sequence, 0
        number, place = self.last
        ahead = (sequence - number + 2**31) % 2**32 - 2**31
        self.last = sequence, place + ahead
        return place + ahead

    def take(self, sequence: int, row: int, t_ns: int, data: bytes) -> None:
        """Takes a packet with data."""
        place = self.place_of(sequence)
        end = place + len(data)
        if self.covered and self.covered[-1][0] <= place <= self.covered[-1][1]:
            self.covered[-1][1] = max(self.covered[-1][1], end)
        else:
            self.covered.append([place, end])
        if OTHER.search(data):
            self.parts.append(Part(place, row, t_ns, data))

    def unexplained(self) -> Iterator[tuple[Part, bytes]]:
        """Yields the bytes that no form explains, with their packets."""
        if not self.parts:
            return
        reader = Reader(self.dns, self.kept, self.start)
        covered = merged(self.covered)
        self.parts.sort(key=lambda part: part.place)
        for place, data, parts in islands(self.parts, covered):
            for start, end in reader.read(place, data, covered):
                for part in parts:
                    first = max(place + start - part.place, 0)
                    last = min(place + end - part.place, len(part.data))
                    if first < last:
                        yield part, part.data[first:last]


def merged(spans: list[list[int]]) -> list[Span]:
    """Returns the union of spans, in order."""
    found: list[Span] = []
    for start, end in sorted((one[0], one[1]) for one in spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def is_covered(covered: list[Span], first: int, end: int) -> bool:
    """Returns whether all places of a span were in packets."""
    at = bisect_right(covered, first, key=lambda span: span[0]) - 1
    return first >= end or (at >= 0 and end <= covered[at][1])


def islands(parts: list[Part], covered: list[Span]) -> Iterator[tuple[int, bytes, list[Part]]]:
    """Yields bytes of a stream with their place and packets. Parts between which few zeros are
    belong together. A byte that is zero in one packet may be another in a packet that repeats it.
    """
    held: list[Part] = []
    data = bytearray()
    for part in parts:
        end = held[0].place + len(data) if held else 0
        if held and (part.place - end > JOINED or not is_covered(covered, end, part.place)):
            yield held[0].place, bytes(data), held
            held, data = [], bytearray()
        if not held:
            end = part.place
        held.append(part)
        at = part.place - held[0].place
        data.extend(bytes(max(at + len(part.data) - len(data), 0)))
        for place, byte in enumerate(part.data[: max(end - part.place, 0)], at):
            data[place] = data[place] or byte
        fresh = part.data[max(end - part.place, 0) :]
        data[len(data) - len(fresh) :] = fresh
    if held:
        yield held[0].place, bytes(data), held


class Reader:
    """Reads a stream from its start. Behind a hole it looks for a form at the start of a packet."""

    def __init__(self, dns: bool, kept: bool, start: int | None) -> None:
        self._dns, self._kept = dns, kept
        self._known = start  # place up to which the stream is understood
        self._record_end = self._free_end = -1  # of a record, and of bytes that a form explains
        self._zero_end = -1  # of a message that must be zeros
        self._is_handshake = False
        self._carried = 0  # bytes of a message in the next record
        self._carried_free = False
        self._encrypted = False

    def read(self, place: int, data: bytes, covered: list[Span]) -> Iterator[Span]:
        """Yields the spans of the bytes that no form explains."""
        known, self._known = self._known, None
        ends = not is_covered(covered, place, place + len(data) + 1)
        if known is not None and not is_covered(covered, known, place):
            if place < self._record_end:  # a hole in a record
                if self._is_handshake:
                    self._give_up()
            else:
                known = None
        at = 0
        if known is None:
            self._record_end = self._free_end = self._zero_end = -1
            self._carried, self._encrypted = 0, False
            dns = self._dns and message_at(data, 0)
            if not (STARTS.match(data) or record_at(data, 0) or dns):
                return
        while (found := OTHER.search(data, at)) is not None:
            at = found.start()
            if place + at < self._free_end:
                at = self._free_end - place
            elif place + at < self._record_end:
                begin = at
                at = self._in_record(place, at, data)
                end = min(self._record_end - place, len(data))
                if at == begin:
                    at = end
                    yield from runs(data, begin, at)
                elif data[begin] in HELLOS:
                    yield from own_values(data, begin + MESSAGE_HEAD, end)
            elif record := record_at(data, at):
                self._begin(place + at, *record)
                at += RECORD_HEAD
            elif (behind := message_end(data, at)) is not None:
                at = behind
            elif (head := head_end(data, at)) is not None:
                at = head
                if ends and LINE.fullmatch(data, at):
                    return
            elif self._dns and (message := message_at(data, at)) is not None:
                yield from message[1]
                at = message[0]
            else:
                if ends and is_partial(data, at):
                    return
                span = next(runs(data, at))
                yield span
                at = span[1]
        self._known = place + len(data)

    def _give_up(self) -> None:
        """Takes the rest of the messages in this record and the next records as explained."""
        self._free_end = self._record_end
        self._carried, self._carried_free = UNKNOWN, True

    def _begin(self, place: int, kind: int, size: int) -> None:
        """Begins a record."""
        body = place + RECORD_HEAD
        self._record_end = body + size
        self._is_handshake = kind == HANDSHAKE
        self._free_end = body
        self._zero_end = -1
        if self._kept and kind == APPLICATION:
            self._free_end = self._record_end
        elif kind == CHANGE:
            self._encrypted, self._free_end = True, body + 1
        elif self._is_handshake and self._carried:
            taken = min(self._carried, size)
            self._carried -= taken
            if self._carried_free:
                self._free_end = body + taken
            else:
                self._zero_end = body + taken

    def _in_record(self, place: int, at: int, data: bytes) -> int:
        """Reads the start of a message in a record. Returns the place behind the message's header,
        or the same place if no message may begin there."""
        if not self._is_handshake or place + at < self._zero_end:
            return at
        left = self._record_end - place - at
        if at + MESSAGE_HEAD > len(data) or left < MESSAGE_HEAD:
            self._give_up()
            return at + 1
        kind, size = data[at], int.from_bytes(data[at + 1 : at + MESSAGE_HEAD])
        whole = MESSAGE_HEAD + size
        if self._encrypted and (kind not in HELLOS or whole > RECORD_MOST):
            return at
        here = min(whole, left)
        self._carried = whole - here
        self._carried_free = kind in SHOWN_MESSAGES
        self._free_end = place + at + (here if self._carried_free else MESSAGE_HEAD)
        self._zero_end = place + at + here
        return at + MESSAGE_HEAD


def record_at(data: bytes, at: int) -> tuple[int, int] | None:
    """Returns the type and length of a record that begins here, or None without a record."""
    if len(data) < at + RECORD_HEAD:
        return None
    kind, major, minor = data[at], data[at + 1], data[at + 2]
    size = int.from_bytes(data[at + 3 : at + 5])
    if CHANGE <= kind <= LAST_TYPE and major == 3 and minor <= 4 and 0 < size <= RECORD_MOST:
        return kind, size
    return None


def own_values(data: bytes, at: int, end: int) -> Iterator[Span]:
    """Yields what is not zeros in the random and session ID of a hello. end: of its record."""
    first, last = at + 2, min(at + 2 + RANDOM_BYTES, end)
    if data[first:last] != RETRY:
        yield from runs(data, first, last)
    if last < end:
        yield from runs(data, last + 1, min(last + 1 + data[last], end))


def message_end(data: bytes, at: int) -> int | None:
    """Returns the end of a server's hello or certificate, or None for other bytes. A record has a
    header of zeros if the run read the header too late."""
    size = int.from_bytes(data[at + 1 : at + 4])
    is_hello = data[at] == SERVER_HELLO and data[at + 4 : at + 5] == b"\3"
    is_list = data[at] == CERTIFICATE and int.from_bytes(data[at + 4 : at + 7]) + 3 == size
    return at + MESSAGE_HEAD + size if is_hello or is_list else None


def message_at(data: bytes, at: int) -> tuple[int, list[Span]] | None:
    """Returns the end of a message of DNS, and the spans in the message that no form explains. The
    first byte of the message's length may be the zero before."""
    for first in (at, at - 1):
        if first < 0:
            continue
        size = int.from_bytes(data[first : first + 2])
        body = data[first + 2 : first + 2 + size]
        if size > DNS_LEAST and len(body) < size:
            return len(data), []
        try:
            found = list(outside(body, dns_parts(body)) if OTHER.search(body) else ())
        except (IndexError, ValueError):
            continue
        return first + 2 + size, [(a + first + 2, b + first + 2) for a, b in found]
    return None


def is_partial(data: bytes, at: int) -> bool:
    """Returns whether the bytes end in a first line or a record's header that begins here."""
    return len(data) - at < RECORD_HEAD or LINE.fullmatch(data, at) is not None
