# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Messages with names for bench/test_parsers.py: as browsers send them, and the costliest ones."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from zanon_net.bench.messages import (
    Dice,
    HelloShape,
    client_hello,
    dns_labels,
    dns_query,
    handshake,
    hello_record,
    http_request,
    record,
    server_name_extension,
    u16,
    vec,
)
from zanon_net.bench.quic_packets import (
    DATAGRAM_BYTES,
    LongHeader,
    Side,
    client_initials,
    crypto_frame,
    initial_packet,
)

ETHERNET = bytes.fromhex("020000000001020000000002") + b"\x08\0"
SEED = "bench/names"


@dataclass(frozen=True, slots=True)
class Sample:
    """Messages to a port, each in one or more payloads, and the name in each."""

    protocol: str
    port: int
    messages: list[list[bytes]]
    names: list[str]

    @property
    def tcp(self) -> bool:
        """True if the messages travel over TCP."""
        return self.protocol in ("TLS", "HTTP")

    def first(self, n: int) -> "Sample":
        """Returns the first n messages."""
        return Sample(self.protocol, self.port, self.messages[:n], self.names[:n])


def names_of(count: int) -> list[str]:
    """Returns `count` different names."""
    return [f"host{n}.bench.example" for n in range(count)]


def quic_sample(count: int) -> Sample:
    """Returns Initials as browsers send them: two CRYPTO frames out of order, a PING, PADDING."""
    dice, messages = Dice(SEED), []
    for name in names_of(count):
        hello = client_hello(name.encode(), HelloShape(quic_scid=b""), dice)
        messages.append(client_initials(hello, LongHeader(dice.bytes(8), b"", 0), (), dice))
    return Sample("QUIC", 443, messages, names_of(count))


def quic_in_pieces(count: int) -> Sample:
    """Returns Initials whose CRYPTO frames have 8 bytes each, the last frame first."""
    dice, messages = Dice(SEED), []
    for name in names_of(count):
        hello = client_hello(name.encode(), HelloShape(quic_scid=b""), dice)
        frames = [crypto_frame(at, hello[at : at + 8]) for at in range(0, len(hello), 8)]
        ids = LongHeader(dice.bytes(8), b"", 0)
        payload = b"".join(reversed(frames))
        messages.append([initial_packet(ids, Side(ids.dcid), payload, DATAGRAM_BYTES)])
    return Sample("QUIC", 443, messages, names_of(count))


def tls_sample(count: int) -> Sample:
    """Returns ClientHellos, each in one segment."""
    dice = Dice(SEED)
    messages = [[hello_record(name.encode(), HelloShape(), dice)] for name in names_of(count)]
    return Sample("TLS", 443, messages, names_of(count))


def tls_in_two(count: int) -> Sample:
    """Returns ClientHellos with an ML-KEM key share, each in two segments."""
    dice, messages = Dice(SEED), []
    for name in names_of(count):
        hello = hello_record(name.encode(), HelloShape(mlkem=True), dice)
        messages.append([hello[:1400], hello[1400:]])
    return Sample("TLS", 443, messages, names_of(count))


def tls_with_many_extensions(count: int) -> Sample:
    """Returns ClientHellos with 1,500 empty extensions before the name."""
    filler = b"".join(u16(0x2000 + i) + b"\0\0" for i in range(1500))
    start = b"\3\3" + bytes(32) + b"\0" + vec(2, u16(0x1301)) + b"\1\0"
    messages = [
        [record(22, handshake(1, start + vec(2, filler + server_name_extension(name.encode()))))]
        for name in names_of(count)
    ]
    return Sample("TLS", 443, messages, names_of(count))


def http_sample(count: int) -> Sample:
    """Returns small GET requests."""
    messages = [[http_request(b"GET", b"/index.html", name.encode())] for name in names_of(count)]
    return Sample("HTTP", 80, messages, names_of(count))


def http_with_many_fields(count: int) -> Sample:
    """Returns requests with 200 fields before the host."""
    filler = b"".join(b"X-Field-%d: value\r\n" % i for i in range(200))
    messages = [
        [b"GET / HTTP/1.1\r\n" + filler + b"Host: " + name.encode() + b"\r\n\r\n"]
        for name in names_of(count)
    ]
    return Sample("HTTP", 80, messages, names_of(count))


def dns_of(names: list[str]) -> Sample:
    """Returns queries with EDNS for these names."""
    messages = [
        [dns_query(n & 0xFFFF, dns_labels(name.encode()), 1, edns=True)]
        for n, name in enumerate(names)
    ]
    return Sample("DNS", 53, messages, names)


def dns_with_many_labels(count: int) -> Sample:
    """Returns queries for names of 120 labels."""
    return dns_of([".".join([f"a{n}", *"b" * 118, "example"]) for n in range(count)])


SAMPLES: dict[str, Callable[[int], Sample]] = {
    "TLS hello": tls_sample,
    "TLS hello in two segments": tls_in_two,
    "TLS hello of 1,500 extensions": tls_with_many_extensions,
    "HTTP request": http_sample,
    "HTTP request of 200 fields": http_with_many_fields,
    "DNS query": lambda count: dns_of(names_of(count)),
    "DNS query of 120 labels": dns_with_many_labels,
    "QUIC Initial": quic_sample,
    "QUIC Initial in pieces of 8 bytes": quic_in_pieces,
}


def frame(sample: Sample, user: int, segment: bytes) -> bytes:
    """Returns a frame with a segment or datagram from an address of the user's own."""
    ends = struct.pack(">II", 0x0A000000 + user, 0xC6336407)
    proto = 6 if sample.tcp else 17
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), 0, 0x4000, 64, proto, 0)
    return ETHERNET + head + ends + segment


def frames_of(sample: Sample) -> Iterator[bytes]:
    """Yields the frames of each message; over TCP a SYN comes first."""
    for user, payloads in enumerate(sample.messages):
        if not sample.tcp:
            for payload in payloads:
                udp = struct.pack(">HHHH", 40000, sample.port, 8 + len(payload), 0)
                yield frame(sample, user, udp + payload)
            continue
        sequence = 1000
        for payload, flags in zip([b"", *payloads], [2, *[0x18] * len(payloads)], strict=True):
            numbers = struct.pack(">II", sequence, 0 if flags == 2 else 1)
            tcp = struct.pack(">HH", 40000, sample.port) + numbers
            tcp += struct.pack(">BBHHH", 0x50, flags, 65535, 0, 0)
            yield frame(sample, user, tcp + payload)
            sequence += 1 if flags == 2 else len(payload)
