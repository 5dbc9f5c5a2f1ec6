# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""First bytes of connections, and ICMP."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Literal

from zanon_net import _core
from zanon_net.parse.result import State


@dataclass(frozen=True, slots=True)
class StreamPrefix:
    """A prefix before a ClientHello or a request. used: its length, which may exceed the data."""

    state: State
    used: int


@dataclass(frozen=True, slots=True)
class NamelessProtocol:
    """Protocols without names. opened: each whose opening the bytes are. known: true if no name can
    come in the connection."""

    opened: tuple[str, ...]
    known: bool


@dataclass(frozen=True, slots=True)
class DatagramKind:
    """The kind that a datagram looks like: sip, teredo, mpeg-ts, dtls, rtp, rtcp, rtp-companion, or
    None. source: SSRC of RTP and RTCP. sequence: sequence number of RTP."""

    kind: str | None
    source: int
    sequence: int


@dataclass(frozen=True, slots=True)
class IcmpQuote:
    """The packet that an ICMP error quotes.

    kind: ip, tcp, udp or echo. src, dst: its addresses. protocol: IANA's number. length: bytes
    after its IP header, on the wire. hops: TTL or hop limit. ports: source and destination of TCP
    and UDP, else 0. sequence: of TCP or an echo. echo_id: identifier of an echo. more_fragments:
    true if it is the first fragment.
    """

    kind: str
    src: IPv4Address | IPv6Address
    dst: IPv4Address | IPv6Address
    protocol: int
    length: int
    hops: int
    ports: tuple[int, int]
    sequence: int
    echo_id: int
    more_fragments: bool


@dataclass(frozen=True, slots=True)
class IcmpMessage:
    """A message of ICMP.

    kind: echo, error or other. type, code: IANA's numbers. id, sequence: of an echo. mtu: of packet
    too big, else 0. pointer: of a parameter problem, else 0. gateway: of a redirect. quote: the
    packet that an error quotes, None if nothing is quoted that is read.
    """

    state: State
    kind: Literal["other", "echo", "error"]
    type: int
    code: int
    id: int
    sequence: int
    mtu: int
    pointer: int
    gateway: IPv4Address | IPv6Address | None
    quote: IcmpQuote | None


def stream_prefix(data: bytes) -> StreamPrefix:
    """Parses one prefix that a client may send before its ClientHello or request: the PROXY
    protocol, SOCKS, or another protocol's request for TLS (STARTTLS)."""
    state, used = _core.read_prefix(data)
    return StreamPrefix(state, used)


def nameless_protocol(
    data: bytes, *, from_client: bool, later: Iterable[bytes] = ()
) -> NamelessProtocol:
    """Recognises protocols that expose no name, such as SSH.

    data: first bytes of one side of a TCP connection. from_client: true if the client sent them.
    later: the client's next segments, of which one may show that no TLS follows.
    """
    return NamelessProtocol(*_core.read_nameless(data, later, from_client))


def service_signature(data: bytes) -> str | None:
    """Returns the service that the start of a TCP segment looks like, as for Tstat's con_t, such as
    ssh or tls-client-hello; None if it looks like none."""
    return _core.read_signature(data)


def datagram_kind(data: bytes, *, wire: int | None = None) -> DatagramKind:
    """Returns the kind that a UDP payload looks like.

    wire: length of the payload before the capture cut it; None: the length of the data.
    """
    return DatagramKind(*_core.read_datagram_kind(data, len(data) if wire is None else wire))


def icmp_message(data: bytes, *, v6: bool = False) -> IcmpMessage:
    """Parses a message of ICMP (RFC 792) or ICMPv6 (RFC 4443).

    data: the message, from its type on. The state is need_more for fewer than four bytes.
    """
    state, kind, *fields, quote = _core.read_icmp(data, v6)
    number, code, ident, sequence, mtu, pointer, gateway = fields
    return IcmpMessage(
        *(state, kind, number, code, ident, sequence, mtu, pointer, gateway),
        quote=None if quote is None else IcmpQuote(*quote),
    )
