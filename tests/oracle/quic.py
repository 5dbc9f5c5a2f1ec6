# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The contract's model reads QUIC: which hello is whole, and which client is real."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from support.quic_wire import HANDSHAKE, INITIAL, RETRY, RETRY_KEYS, V2, ZERO_RTT, initial_keys

from oracle.stream import StreamOracle

ALIKE = 4  # fewer bytes than these can be guessed
EARLY_NS = 10**9  # longest time from an early answer to its question
TRUST = 3  # a server sends an unproven client no more than so many times what it received

side_keys = lru_cache(maxsize=1 << 12)(initial_keys)


class Long(NamedTuple):
    """A packet with a long header; `data` is all of it, with its number at `at`."""

    kind: int
    version: int
    dcid: bytes
    scid: bytes
    data: bytes
    at: int


def begins(datagram: bytes) -> bool:
    """Returns whether a datagram begins with a client's first Initial."""
    packets = split(datagram)[0]
    first = packets[0] if packets else None
    return first is not None and first.kind == INITIAL and opened(first, first.dcid) is not None


def varint(data: bytes, at: int) -> tuple[int, int]:
    """(value, place behind it), by RFC 9000, 16."""
    end = at + (1 << (data[at] >> 6))
    return int.from_bytes(data[at:end]) & (1 << (8 * (end - at) - 2)) - 1, end


def split(datagram: bytes) -> tuple[list[Long], bytes]:
    """The packets with long headers that a datagram begins with, and the rest."""
    found = []
    while datagram and datagram[0] & 0x80:
        version, at, ids = int.from_bytes(datagram[1:5]), 5, []
        for _ in range(2):
            ids.append(datagram[at + 1 : at + 1 + datagram[at]])
            at += 1 + datagram[at]
        kind, end = ((datagram[0] >> 4) - (version == V2)) % 4, len(datagram)
        if kind == INITIAL:
            token, at = varint(datagram, at)
            at += token
        if kind != RETRY:
            length, at = varint(datagram, at)
            end = at + length
        found.append(Long(kind, version, ids[0], ids[1], datagram[:end], at))
        datagram = datagram[end:]
    return found, datagram


@lru_cache(maxsize=1 << 12)
def opened(packet: Long, key_id: bytes, server: bool = False) -> bytes | None:
    """The plaintext of a side's Initial under the keys of an ID (RFC 9001, 5); None: it does not
    authenticate. Takes its packet number as it stands, not truncated."""
    keys, at = side_keys(packet.version, key_id, server=server), packet.at
    sample = packet.data[at + 4 : at + 20]
    mask = Cipher(algorithms.AES(keys.hp), modes.ECB()).encryptor().update(sample)
    first = packet.data[0] ^ mask[0] & 0x0F
    begin = at + 1 + (first & 3)
    number = bytes(a ^ b for a, b in zip(packet.data[at:begin], mask[1:], strict=False))
    nonce = (int.from_bytes(keys.iv) ^ int.from_bytes(number)).to_bytes(12)
    head = bytes([first]) + packet.data[1:at] + number
    try:
        return AESGCM(keys.key).decrypt(nonce, packet.data[begin:], head)
    except InvalidTag:
        return None


def tagged(packet: Long, key_id: bytes) -> bool:
    """Whether a Retry has the tag of a client's first ID (RFC 9001, 5.8)."""
    key, nonce = map(bytes.fromhex, RETRY_KEYS[packet.version])
    said = bytes([len(key_id)]) + key_id + packet.data[:-16]
    return AESGCM(key).encrypt(nonce, b"", said) == packet.data[-16:]


def said_by(plain: bytes) -> Iterator[tuple[int, bytes]]:
    """(offset, bytes) of the CRYPTO frames among PADDING, PING and ACK frames of one range."""
    at = 0
    while at < len(plain):
        kind, at = plain[at], at + 1
        if kind == 2:
            for _ in range(3):
                value, at = varint(plain, at)
            for _ in range(1 + 2 * value):
                _, at = varint(plain, at)
        elif kind == 6:
            offset, at = varint(plain, at)
            length, at = varint(plain, at)
            yield offset, plain[at : at + length]
            at += length


@dataclass(slots=True, eq=False)
class Connection:
    """A client's connection, from its first Initial on."""

    key_id: bytes  # the ID from which its Initials' keys come
    client_id: bytes
    stream: StreamOracle = field(default_factory=StreamOracle)
    hello: bytes | None = None
    server_id: bytes | None = None  # the last one
    retry_id: bytes | None = None
    guessable: bool = False
    addressed: bool = False  # the client sent something to the server's ID
    proven: bool = False
    answered: int = 0  # bytes
    ahead: tuple[bytes, int] | None = None  # an ID addressed before the server chose one, and when
    short_ahead: tuple[bytes, int] = (
        b"",
        0,
    )  # what follows the first byte of a short header, and when

    def open(self, packet: Long) -> bytes | None:
        """The plaintext of one of its Initials; the hello begins again behind a Retry."""
        plain = opened(packet, self.key_id)
        if plain is None and self.retry_id is not None:
            plain = opened(packet, self.retry_id)
            if plain is not None:
                self.key_id, self.stream = self.retry_id, StreamOracle()
        return plain

    def hear(self, plain: bytes) -> None:
        """Takes CRYPTO frames. A hello is whole when its last byte is in contiguous data, unless
        copies differ."""
        for offset, data in said_by(plain):
            self.stream.add(offset, data)
        head = self.stream.head()
        whole = len(head) >= 4 and len(head) >= 4 + int.from_bytes(head[1:4])
        if self.hello is None and whole and not self.stream.tainted:
            self.hello = head[: 4 + int.from_bytes(head[1:4])]

    def is_authentic(self, packet: Long) -> bool:
        """Whether the packet authenticates: one of a server that had the client's first, or an
        echo."""
        if packet.kind == RETRY:
            return tagged(packet, self.key_id)
        key_ids = (self.key_id, self.retry_id)
        return packet.kind == INITIAL and any(
            key_id is not None and opened(packet, key_id, True) is not None for key_id in key_ids
        )

    def reach(self, dcid: bytes, kind: int | None) -> None:
        """Takes a packet of the client; kind None: with a short header. 0-RTT proves nothing, as it
        needs no answer of the server; nor does an empty ID, which all know, in an Initial."""
        reached = dcid == self.server_id and kind != ZERO_RTT
        self.addressed |= reached and (dcid != b"" or kind in (HANDSHAKE, None))


class First(NamedTuple):
    """The first datagram between two ports."""

    datagram: bytes
    from_client: bool
    t_ns: int


@dataclass(slots=True)
class QuicTalk:
    """The connections between two ports; only the last one goes on."""

    connections: list[Connection] = field(default_factory=list)
    made_up: list[bytes] = field(default_factory=list)  # IDs that the client chose
    sent: int = 0  # bytes of the client
    first: First | None = None  # an early answer, if it is the server's
    t_ns: int = 0  # of the last datagram

    @property
    def last(self) -> Connection | None:
        """The connection that goes on."""
        return self.connections[-1] if self.connections else None

    def turned(self) -> "QuicTalk":
        """The talk whose client is the other end: what came so far came from the server."""
        first = self.first
        return QuicTalk(first=first and first._replace(from_client=not first.from_client))

    def take(self, datagram: bytes, from_client: bool, t_ns: int) -> None:
        """Takes the next datagram."""
        self.t_ns = t_ns
        self.sent += len(datagram) * from_client
        packets, rest = split(datagram)
        begun = self.last
        for packet in packets:
            if from_client:
                self._ask(packet)
            else:
                self._answer(packet)
        now = self.last
        early = self.first if begun is None and now is not None else None
        if early is not None and not early.from_client and t_ns - early.t_ns <= EARLY_NS:
            for packet in split(early.datagram)[0]:
                self._answer(packet)
        if now is None:
            return
        if from_client and rest and now.server_id is not None and not rest[0] & 0x80:
            now.reach(rest[1 : 1 + len(now.server_id)], None)
        elif from_client and rest and not rest[0] & 0x80:
            now.short_ahead = rest[1:21], t_ns
        now.answered += len(datagram) * (not from_client)
        trusted = len(self.connections) == 1 and now.answered > TRUST * self.sent
        now.proven |= now.addressed and (trusted or not now.guessable)

    def disregard(self, datagram: bytes) -> None:
        """Takes a datagram in the client's name that anybody may have sent: what looks like an
        answer may be its echo."""
        self.sent += len(datagram)
        for packet in split(datagram)[0]:
            self._note_ids(packet, counts=False)

    def _note_ids(self, packet: Long, *, counts: bool = True) -> None:
        """Notes the IDs that a sender of the client's packet knows. counts: it is the client's."""
        now = self.last
        if now is None or packet.dcid not in (now.server_id, now.retry_id):
            if now is not None and counts and self._runs_ahead(now, packet):
                if now.ahead is not None and now.ahead[0] != packet.dcid:
                    self.made_up.append(now.ahead[0])
                if now.ahead is None or now.ahead[0] != packet.dcid:
                    now.ahead = packet.dcid, self.t_ns
            else:
                self.made_up.append(packet.dcid)
        if packet.scid:
            self.made_up.append(packet.scid)
        if now is not None:
            now.guessable |= packet.scid == now.server_id

    def _runs_ahead(self, now: Connection, packet: Long) -> bool:
        """Returns whether the packet may go to an ID that the server chose in a packet which the
        capture shows later. The client did not make this ID up."""
        follows = packet.kind in (INITIAL, HANDSHAKE) and len(packet.dcid) >= ALIKE
        return follows and now.server_id is None and packet.dcid not in self.made_up

    def _ask(self, packet: Long) -> None:
        now = self.last
        self._note_ids(packet)
        if now is not None:
            now.reach(packet.dcid, packet.kind)
        if packet.kind != INITIAL:
            return
        plain = now.open(packet) if now is not None else None
        addressed_here = now is not None and packet.dcid in (now.key_id, now.server_id)
        if plain is None and not addressed_here:
            plain = opened(packet, packet.dcid)
            if plain is not None:
                if now is not None and now.ahead is not None:
                    self.made_up.append(now.ahead[0])
                self.made_up.append(packet.dcid)
                now = Connection(packet.dcid, packet.scid)
                self.connections.append(now)
        if plain is not None and now is not None:
            now.hear(plain)

    def _answer(self, packet: Long) -> None:
        now = self.last
        if now is None or packet.dcid != now.client_id:
            return
        if packet.kind == RETRY:
            now.retry_id = packet.scid
        if packet.scid != now.server_id and now.is_authentic(packet):
            ahead, now.ahead = now.ahead, None
            now.server_id = packet.scid
            before = [] if ahead is None else [(ahead[0] == packet.scid, ahead[1])]
            before.append((now.short_ahead[0].startswith(packet.scid), now.short_ahead[1]))
            now.addressed = len(packet.scid) >= ALIKE and any(
                same and self.t_ns - t_ns <= EARLY_NS for same, t_ns in before
            )
            if ahead is not None and not (now.addressed and ahead[0] == packet.scid):
                self.made_up.append(ahead[0])
            now.guessable = any(unlike(packet.scid, own) < ALIKE for own in self.made_up)


def unlike(server_id: bytes, own: bytes) -> int:
    """The bytes of a server's ID that a forger who knows one of the client's has to guess."""
    return sum(own[i : i + 1] != server_id[i : i + 1] for i in range(len(server_id)))
