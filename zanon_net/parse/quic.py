# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""QUIC (RFC 9000)."""

from dataclasses import dataclass
from typing import Literal

from zanon_net import _core
from zanon_net.parse.result import Parsed, State, hostname
from zanon_net.parse.tls import ServerHello

QuicType = Literal["initial", "0-rtt", "handshake", "retry", "negotiation", "foreign"]
"""Type of a packet with a long header. foreign: of a version that is not read."""


@dataclass(frozen=True, slots=True)
class QuicPacket:
    """A packet with a long header.

    type: see QuicType. version: its number. dcid, scid: destination and source connection ID.
    offset, length: its place in the datagram.
    """

    type: QuicType
    version: int
    dcid: bytes
    scid: bytes
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class QuicPackets:
    """The packets with long headers of a datagram. state: how the reading ended."""

    state: State
    packets: tuple[QuicPacket, ...]


@dataclass(frozen=True, slots=True)
class QuicInitial(Parsed):
    """The client's QUIC Initials of one datagram.

    state is need_more if Initials opened and the ClientHello continues in another datagram. crypto
    then has its parts: (offset in bytes, bytes) of each CRYPTO frame, by offset in each packet.
    offset is None, because the bytes are encrypted. version, dcid and scid are the last Initial's.
    used: bytes of the datagram up to the end of the last Initial that opened. places: offset of
    each Initial that opened. user_agent: as Google's clients send it; empty if there is none.
    """

    ech_offered: bool
    version: int
    dcid: bytes
    scid: bytes
    crypto: tuple[tuple[int, bytes], ...]
    used: int
    places: tuple[int, ...]
    user_agent: bytes


@dataclass(frozen=True, slots=True)
class QuicServerInitial:
    """The server's QUIC Initials of one datagram; fields as in QuicInitial.

    hello: the ServerHello in the CRYPTO frames, whose state says whether it is there.
    """

    state: State
    hello: ServerHello
    version: int
    dcid: bytes
    scid: bytes
    crypto: tuple[tuple[int, bytes], ...]
    used: int
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GquicHello(Parsed):
    """A client's packet of Google's QUIC (Q043, Q046 or Q050).

    state is need_more if the packet opened and the CHLO continues in another datagram. parts then
    has its parts: (offset in bytes, bytes). offset is None, because the message may be encrypted or
    split. version: its number. connection_id: of 8 bytes. token: the server's source-address token
    in the CHLO; empty if there is none.
    """

    version: int
    connection_id: bytes
    parts: tuple[tuple[int, bytes], ...]
    token: bytes


def quic_packets(data: bytes, *, whole: bool = True) -> QuicPackets:
    """Parses the packets with long headers at the start of a datagram (RFC 9000, 17.2).

    data: the payload of a datagram. whole: true if all of it is there.
    """
    state, packets = _core.read_quic_packets(data, whole=whole)
    found = tuple(QuicPacket(kind, *fields) for kind, *fields in packets)
    return QuicPackets(state, found)


def quic_initial(data: bytes, first_dcid: bytes | None = None) -> QuicInitial:
    """Opens the client's Initials in a UDP payload and parses the ClientHello in them.

    Versions 1 (RFC 9001, 5), 2 (RFC 9369), drafts 22 to 34 and mvfst.

    data: the payload of a datagram. first_dcid: the Destination Connection ID of the client's first
    Initial (after a Retry: the Retry's Source Connection ID), from which the keys are derived;
    None: the Initial's own. Returns the hello, or its parts. Raises ValueError if first_dcid is
    longer than 20 bytes.
    """
    state, used, version, dcid, scid, crypto, places = _core.read_quic(data, first_dcid)
    raw, ech_offered, agent = b"", False, b""
    if state == "done":
        message, contradicts = _message_of(crypto)
        state, raw, _, _, ech_offered, *_, agent = _core.read_hello_message(message)
        if contradicts:
            state, raw, ech_offered, agent = "malformed", b"", False, b""
    return QuicInitial(
        state=state,
        raw=raw,
        name=hostname(raw),
        offset=None,
        ech_offered=ech_offered,
        version=version,
        dcid=dcid,
        scid=scid,
        crypto=tuple(crypto),
        used=used,
        places=tuple(places),
        user_agent=agent,
    )


def gquic_hello(data: bytes, *, whole: bool = True) -> GquicHello:
    """Opens a client's packet of Google's QUIC and parses the CHLO in it.

    The versions Q043, Q046 and Q050 of Chromium are read. No specification of them was published.

    data: the payload of a datagram. whole: true if all of it is there. Returns the hello, or its
    parts; the state other if the packet does not authenticate.
    """
    state, version, connection_id, parts = _core.parse_gquic(data, whole=whole)
    raw, token = b"", b""
    if state == "done":
        message, contradicts = _message_of(parts)
        state, raw, _, token = _core.parse_gquic_hello(message)
        if contradicts:
            state, raw, token = "malformed", b"", b""
    return GquicHello(
        state=state,
        raw=raw,
        name=hostname(raw),
        offset=None,
        version=version,
        connection_id=connection_id,
        parts=tuple(parts),
        token=token,
    )


def quic_server_initial(data: bytes, first_dcid: bytes) -> QuicServerInitial:
    """Opens the server's Initials in a UDP payload and parses the ServerHello in them.

    data: the payload of a datagram. first_dcid: as for quic_initial; the server's packets do not
    carry it. Raises ValueError if first_dcid is longer than 20 bytes.
    """
    state, used, version, dcid, scid, crypto, places = _core.read_quic(
        data, first_dcid, server=True
    )
    message, contradicts = _message_of(crypto)
    hello_state, *fields = _core.read_server_message(message)
    hello = ServerHello("malformed" if contradicts else hello_state, *fields)
    return QuicServerInitial(
        *(state, hello, version, dcid, scid, tuple(crypto), used, tuple(places))
    )


def _message_of(crypto: list[tuple[int, bytes]]) -> tuple[bytes, bool]:
    """Returns the first bytes that the CRYPTO frames make up, and true if frames contradict."""
    message = b""
    for offset, piece in sorted(crypto):
        if offset != len(message):
            return _message_of_any(crypto)
        message += piece
    return message, False


def _message_of_any(crypto: list[tuple[int, bytes]]) -> tuple[bytes, bool]:
    """Returns the first bytes of CRYPTO frames that overlap or leave holes, and true as above."""
    stream = _core.Stream(0)
    for offset, piece in crypto:
        if stream.add(min(offset, 0xFFFFFFFF), piece) == "conflict":
            return b"", True
    return stream.head(), False
