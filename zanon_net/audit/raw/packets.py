# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Packets as the readers of captures pass them to the audit."""

from typing import NamedTuple

TCP, UDP = 6, 17
FIN, SYN, RST, ACK = 1, 2, 4, 16


class Said(NamedTuple):
    """Name in a message of a packet.

    source: tls, quic, http or dns; certificate; agent. text: None if the message has no name.
    hidden: true if the name is the outer one of Encrypted Client Hello.
    """

    source: str
    text: str | None
    hidden: bool = False


class Query(NamedTuple):
    """A message of DNS."""

    response: bool
    number: int
    kind: int
    name: str


class Ids(NamedTuple):
    """Connection IDs in a packet of QUIC; source: None with a short header."""

    target: bytes
    source: bytes | None
    initial: bool


class Exposed(NamedTuple):
    """Attribute besides names, by its word. text: None if the text is not certain.

    question: what a request over UDP and its response have in common. is_response: true for the
    response, which has no text.
    """

    word: str
    text: str | None
    question: str = ""
    is_response: bool = False


class Packet(NamedTuple):
    """Packet of TCP or UDP. Addresses have 4 or 16 bytes.

    outer: source and destination of the IP headers around the packet, the outermost first.
    known: true if the payload is of a protocol that carries no names of hosts.
    cookie: true if a hello of DTLS has a cookie, or a message of Google's QUIC a token.
    attributes: attributes besides names, and responses to requests with one.
    """

    t_ns: int
    proto: int
    source: bytes
    source_port: int
    target: bytes
    target_port: int
    flags: int = 0
    sequence: int = 0
    acknowledged: int = 0
    length: int = 0
    outer: tuple[tuple[bytes, bytes], ...] = ()
    said: tuple[Said, ...] = ()
    queries: tuple[Query, ...] = ()
    ids: tuple[Ids, ...] = ()
    known: bool = False
    cookie: bool = False
    attributes: tuple[Exposed, ...] = ()


class Frame(NamedTuple):
    """A frame without a packet of TCP or UDP.

    dark: true if the frame may hold a packet that was not read. cut: true if the frame is missing,
    because the capture is cut at its end.
    """

    t_ns: int
    dark: bool
    cut: bool = False


Read = Packet | Frame
