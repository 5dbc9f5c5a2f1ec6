# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Tests a dictionary of names against packets whose name is masked.

Knowledge: 100,000 names, among them the masked name, and every byte of the packet except the name.
`checksums`: of the candidates of the right length, those remain with which the packet would have
its checksum; one of them is the guess. α-MON leaves the checksums of the packet with its name; that
is the control. `differing` requires more: the capture with other names of equal length, under the
same key, must give equal bytes, in all fields: checksums, lengths, seals of QUIC.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from packet_traffic import Traffic
from packet_view import ETHERNET, anonymized
from packets import ACK, PSH, SYN
from population import START_NS, Ints
from score import Score

from zanon_net.bench.messages import (
    Dice,
    HelloShape,
    client_hello,
    dns_labels,
    dns_query,
    dns_response,
    hello_record,
    http_request,
    u16,
    u32,
)
from zanon_net.bench.quic_packets import LongHeader, Side, client_initials, initial_packet

WORDS = 100_000
TCP_PROTO, UDP_PROTO, ICMP_PROTO = 6, 17, 1
KINDS = ("TLS", "HTTP", "DNS", "QUIC")
STEP_NS = 10_000_000
Frames = list[tuple[int, bytes]]


def dictionary(rng: np.random.Generator, count: int = WORDS) -> list[str]:
    """Names of one to three labels below `example`, of lengths as names have them."""
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz0123456789"))
    lengths = np.clip(rng.normal(9, 3, size=count).astype(int), 3, 24)
    fronts = np.array(["www.", "api.", "cdn.", "m.", ""])[rng.integers(0, 5, size=count)]
    drawn = letters[rng.integers(0, len(letters), size=int(lengths.sum()))]
    ends = np.cumsum(lengths)
    words = ("".join(drawn[end - n : end]) for end, n in zip(ends, lengths, strict=True))
    return [f"{front}{word}.example" for front, word in zip(fronts, words, strict=True)]


def words_sum(data: bytes) -> int:
    """Returns the ones' complement sum of 16-bit words (RFC 1071)."""
    return int(np.frombuffer(data + b"\0" * (len(data) & 1), dtype=">u2").astype(np.int64).sum())


def checksum(data: bytes) -> int:
    """Returns the Internet checksum."""
    return 0xFFFF - (words_sum(data) % 0xFFFF or (0xFFFF if any(data) else 0))


def ipv4(ends: tuple[bytes, bytes], proto: int, payload: bytes) -> bytes:
    """Returns a packet whose checksums are right. The transport's checksum is 0 so far."""
    at = {TCP_PROTO: 16, UDP_PROTO: 6, ICMP_PROTO: 2}[proto]
    pseudo = b"" if proto == ICMP_PROTO else b"".join(ends) + bytes([0, proto]) + u16(len(payload))
    payload = payload[:at] + u16(checksum(pseudo + payload)) + payload[at + 2 :]
    head = b"\x45\0" + u16(20 + len(payload)) + b"\0\1\x40\0\x40" + bytes([proto, 0, 0])
    head += b"".join(ends)
    return head[:10] + u16(checksum(head)) + head[12:] + payload


@dataclass(slots=True)
class Talk:
    """One flow of a user: the frames of both sides."""

    user: int
    proto: int
    service: int
    t_ns: int
    frames: Frames

    def ends(self, back: bool) -> tuple[bytes, bytes]:
        """Returns Addresses."""
        ends = (b"\x0a\7" + u16(self.user), b"\xcb\0\x71\7")
        return ends[::-1] if back else ends

    def put(self, packet: bytes) -> None:
        """A frame more."""
        self.frames.append((self.t_ns, packet))
        self.t_ns += STEP_NS

    def datagram(self, payload: bytes, back: bool = False) -> bytes:
        """Sends a UDP datagram; returns the packet."""
        ports = (20_000 + self.user, self.service)
        ports = ports[::-1] if back else ports
        udp = u16(ports[0]) + u16(ports[1]) + u16(8 + len(payload)) + b"\0\0" + payload
        self.put(ipv4(self.ends(back), UDP_PROTO, udp))
        return self.frames[-1][1]

    def segment(self, flags: int, seq: int, ack: int, payload: bytes = b"", back: bool = False
                ) -> None:  # fmt: skip
        """Sends a TCP segment."""
        ports = (20_000 + self.user, self.service)
        ports = ports[::-1] if back else ports
        tcp = u16(ports[0]) + u16(ports[1]) + u32(seq) + u32(ack) + bytes([0x50, flags])
        self.put(ipv4(self.ends(back), TCP_PROTO, tcp + b"\x20\0\0\0\0\0" + payload))


def conversation(kind: str, user: int, name: str, t_ns: int) -> Frames:
    """Returns a user's flow that contains a name, and the evidence of the user."""
    text, dice = name.encode(), Dice(f"{kind} {user}")
    service = {"TLS": 443, "HTTP": 80, "DNS": 53, "QUIC": 443}[kind]
    proto = TCP_PROTO if kind in ("TLS", "HTTP") else UDP_PROTO
    talk = Talk(user, proto, service, t_ns, [])
    if kind == "DNS":
        labels = dns_labels(text)
        talk.datagram(dns_query(user, labels, 1, edns=False))
        answer = talk.datagram(dns_response(user, labels, 1, [b"\xcb\0\x71\x08"]), back=True)
        error = b"\3\3\0\0\0\0\0\0" + answer
        talk.put(ipv4(talk.ends(False), ICMP_PROTO, error))
    elif kind == "QUIC":
        dcid, scid, server = (dice.bytes(8) for _ in range(3))
        shape = HelloShape(ech=False, quic_scid=scid)
        hello = client_hello(text, shape, dice)
        talk.datagram(client_initials(hello, LongHeader(dcid, scid, 0), [], dice)[0])
        side = Side(dcid, server=True)
        talk.datagram(initial_packet(LongHeader(scid, server, 0), side, b"\2\0\0\0\0", 1200), True)
        side = Side(dcid)
        talk.datagram(initial_packet(LongHeader(server, scid, 1), side, b"\2\0\0\0\0", 1200))
    else:
        say = hello_record(text, HelloShape(ech=False), dice) if kind == "TLS" else (
            http_request(b"GET", b"/", text))  # fmt: skip
        talk.segment(SYN, 7, 0)
        talk.segment(SYN | ACK, 9, 8, back=True)
        talk.segment(ACK, 8, 10)
        talk.segment(PSH | ACK, 8, 10, say)
        talk.segment(ACK, 10, 8 + len(say), back=True)
    return talk.frames


def capture(names: list[str]) -> Traffic:
    """One flow for each name, the kinds in turn, each of another user."""
    frames = [
        frame
        for i, name in enumerate(names)
        for frame in conversation(KINDS[i % len(KINDS)], i, name, START_NS + i * 10 * STEP_NS)
    ]
    length = np.array([len(data) for _, data in frames])
    return Traffic(
        np.frombuffer(b"".join(data for _, data in frames), dtype=np.uint8),
        np.cumsum(length) - length,
        length,
        length,
        np.array([t for t, _ in frames]),
        np.zeros(len(frames), dtype=np.int64),
    )


def masked_packets(names: list[str], seed: int) -> list[tuple[int, bytes, int]]:
    """Returns (index of the name, the IP packet, the place of the mask in it) of packets with a
    mask of `--exact`."""
    traffic = capture(names)
    (data, offset, length, t_ns), _ = anonymized(traffic, 3, seed, exact=True)
    found = []
    for at, size, when in zip(offset.tolist(), length.tolist(), t_ns.tolist(), strict=True):
        which = (when - START_NS) // (10 * STEP_NS)
        packet = bytes(data[at + ETHERNET : at + size])
        packet = packet[: int.from_bytes(packet[2:4], "big")]
        n = len(names[which])
        kind = KINDS[which % len(KINDS)]
        masks = [b"x" * (n - 8) + b".invalid"]
        if kind == "DNS":
            masks = [masks_of_dns(n)]
        if kind in ("TLS", "HTTP", "DNS") and (place := packet.find(masks[0], 20)) >= 0:
            found.append((which, packet, place))
    return found


def masks_of_dns(size: int) -> bytes:
    """Returns the replacement of a name in a question: one label of x."""
    return bytes([size]) + b"x" * size


def written(name: str, kind: str) -> bytes:
    """Returns the name as it is written in a packet."""
    if kind != "DNS":
        return name.encode()
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))


Given = Callable[[bytes, int, bytes], bytes]


def as_left(packet: bytes, place: int, name: bytes) -> bytes:
    """Returns the packet as it left."""
    return packet


def original_checksum(packet: bytes, place: int, name: bytes) -> bytes:
    """Returns the packet with the checksum that it had with its name, as an editor leaves it."""
    whole = packet[:place] + name + packet[place + len(name) :]
    at = 20 + {TCP_PROTO: 16, UDP_PROTO: 6}[packet[9]]
    ends = (packet[12:16], packet[16:20])
    right = ipv4(ends, packet[9], whole[20:at] + b"\0\0" + whole[at + 2 :])
    return packet[:at] + right[at : at + 2] + packet[at + 2 :]


def checksums(names: list[str], words: list[str], packets: list[tuple[int, bytes, int]],
              given: Given, rng: np.random.Generator) -> Score:  # fmt: skip
    """Names that are guessed by length and checksum. Baseline: by length alone."""
    table = {kind: by_length([written(word, kind) for word in words]) for kind in ("TLS", "DNS")}
    number = {word: i for i, word in enumerate(words)}
    hits, chance = 0, 0.0
    for which, packet, place in packets:
        kind = KINDS[which % len(KINDS)]
        name = written(names[which], kind)
        seen = given(packet, place, name)
        index, sums = table["DNS" if kind == "DNS" else "TLS"][len(name)]
        rest = seen[:place] + bytes(len(name)) + seen[place + len(name) :]
        payload = rest[20:]
        total = words_sum(rest[12:20]) + packet[9] + len(payload) + words_sum(payload)
        fits = index[(total + sums[(place - 20) & 1]) % 0xFFFF == 0]
        candidates = fits if len(fits) else index
        hits += int(rng.choice(candidates)) == number[names[which]]
        chance += 1 / len(index)
    return Score(hits, len(packets), chance / max(1, len(packets)))


def by_length(texts: list[bytes]) -> dict[int, tuple[Ints, tuple[Ints, Ints]]]:
    """Returns for each length: the texts, and their sums at an even and an odd place."""
    length = np.array([len(text) for text in texts])
    found = {}
    for n in np.unique(length).tolist():
        index = np.flatnonzero(length == n)
        rows = np.frombuffer(b"".join(texts[i] for i in index.tolist()), dtype=np.uint8)
        rows = rows.reshape(len(index), n).astype(np.int64)
        high, low = rows[:, ::2].sum(axis=1), rows[:, 1::2].sum(axis=1)
        found[n] = index, (high * 256 + low, low * 256 + high)
    return found


def replaced(names: list[str], words: list[str], rng: np.random.Generator) -> list[str]:
    """Returns for each name another of equal length, with labels of equal lengths."""
    shape = [tuple(map(len, word.split("."))) for word in words]
    of: dict[tuple[int, ...], list[int]] = {}
    for i, key in enumerate(shape):
        of.setdefault(key, []).append(i)
    return [words[int(rng.choice(of[tuple(map(len, name.split(".")))]))] for name in names]


def differing(names: list[str], others: Iterator[list[str]], seed: int, z: int = 3,
              **settings: object) -> Score:  # fmt: skip
    """Captures with other names in place of the withheld ones whose output differs in a byte."""
    (data, _, _, t_ns), _ = anonymized(capture(names), z, seed, **settings)
    trials = hits = 0
    for other in others:
        (again, _, _, times), _ = anonymized(capture(other), z, seed, **settings)
        same = data.shape == again.shape and bool((data == again).all())
        hits += not (same and bool((t_ns == times).all()))
        trials += 1
    return Score(hits, trials, 0.0)
