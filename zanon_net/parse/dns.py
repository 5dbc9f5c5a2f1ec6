# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""DNS over UDP, TCP and HTTPS, and dnstap."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from zanon_net import _core
from zanon_net.parse.result import Parsed, State, hostname


@dataclass(frozen=True, slots=True)
class DnsQuestion(Parsed):
    """A DNS message's first question.

    raw: labels joined by dots, as sent, without the final dot. offset: offset of the first label's
    length. used: bytes up to the end of the question. response: true for a response. id: of the
    message. type: QTYPE. qclass: QCLASS. opcode: 0 for a query. more: true if further questions
    are about other names.
    """

    used: int
    response: bool
    id: int
    type: int
    qclass: int
    opcode: int
    more: bool


@dataclass(frozen=True, slots=True)
class DnsQuestions:
    """The questions of a DNS stream over TCP. used: bytes of the messages that are complete."""

    state: State
    used: int
    questions: tuple[DnsQuestion, ...]


@dataclass(frozen=True, slots=True)
class DnsAnswers:
    """The addresses in a DNS response's answers, at most 32."""

    state: State
    addresses: tuple[IPv4Address | IPv6Address, ...]


@dataclass(frozen=True, slots=True)
class Dnstap:
    """A message of dnstap.

    type: dnstap.Message.Type (5 CLIENT_QUERY, 6 CLIENT_RESPONSE, ...). socket_protocol:
    dnstap.SocketProtocol, 0 if absent. client, server: query_address and response_address.
    server_port: response_port. query_ns, response_ns: ns since the Unix epoch. query, response: DNS
    messages, empty if absent. query_offset, response_offset: their offsets in the data.
    """

    state: State
    type: int
    socket_protocol: int
    client: IPv4Address | IPv6Address | None
    server: IPv4Address | IPv6Address | None
    server_port: int
    query_ns: int | None
    response_ns: int | None
    query: bytes
    query_offset: int | None
    response: bytes
    response_offset: int | None


@dataclass(frozen=True, slots=True)
class FrameStreamControl:
    """A control frame of Frame Streams. type: 1 ACCEPT, 2 START, 3 STOP, 4 READY, 5 FINISH. dnstap:
    false if the frame names types of content, without dnstap's."""

    state: State
    type: int
    dnstap: bool


def _question(fields: tuple[Any, ...]) -> DnsQuestion:
    state, raw, offset, *rest = fields
    return DnsQuestion(state, raw, hostname(raw), offset, *rest)


def dns_question(data: bytes, *, whole: bool = True) -> DnsQuestion:
    """Parses the first question of a DNS message (RFC 1035, 4.1).

    data: the message, without the length that precedes it over TCP. whole: true if all of it is
    there; otherwise missing bytes are need_more.
    """
    return _question(_core.read_dns(data, whole=whole))


def dns_stream(data: bytes) -> DnsQuestions:
    """Parses the messages of a DNS stream over TCP (RFC 1035, 4.2.2), each after its length.

    data: one side's bytes, from the start of a message on. Returns the first question of each, up
    to the first message that is cut or malformed.
    """
    state, used, questions = _core.read_dns_stream(data)
    return DnsQuestions(state, used, tuple(map(_question, questions)))


def dns_answers(data: bytes, *, whole: bool = True) -> DnsAnswers:
    """Parses the A and AAAA records in the answers of a DNS response without error.

    data, whole: as for dns_question.
    """
    state, addresses = _core.read_dns_answers(data, whole=whole)
    return DnsAnswers(state, addresses)


def doh_question(target: bytes) -> DnsQuestion:
    """Parses the question in the target of a GET request of DNS over HTTPS (RFC 8484, 4.1).

    target: as sent. offset and used count in the decoded message. The body of a POST request is a
    message for dns_question.
    """
    return _question(_core.read_doh(target))


def dnstap_message(data: bytes) -> Dnstap:
    """Parses a data frame of dnstap. The state is other if the frame has no message."""
    state, *fields = _core.read_dnstap(data)
    return Dnstap(state, *fields)


def frame_stream_control(data: bytes) -> FrameStreamControl:
    """Parses the payload of a control frame of Frame Streams, the format of dnstap's files."""
    state, *fields = _core.read_frame_stream(data)
    return FrameStreamControl(state, *fields)
