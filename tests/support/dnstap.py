# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Logs of dnstap: frames made and read by the `fstrm` package, and a reader of Protocol Buffers."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from fstrm import FSTRM_CONTROL_START, FSTRM_CONTROL_STOP, FSTRM_DATA_FRAME, FstrmCodec
from scapy.layers.dns import DNS, DNSQR, DNSRR

CONTENT = b"protobuf:dnstap.Dnstap"
CLIENT_QUERY, CLIENT_RESPONSE, RESOLVER_QUERY = 5, 6, 3
NS = 1_000_000_000


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def fixed32(field: int, value: int) -> bytes:
    return varint(field << 3 | 5) + struct.pack("<I", value)


def data(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


@dataclass(frozen=True)
class Message:
    """A message of dnstap: what a test puts in."""

    type: int
    t_ns: int
    client: str
    name: str
    server: str = "9.9.9.9"
    qtype: int = 1

    def dns(self) -> bytes:
        """Returns the DNS message, with an answer if it is a response."""
        message = DNS(id=4711, rd=1, qr=self.type % 2 == 0, qd=DNSQR(qname=self.name, qtype="A"))
        if self.type % 2 == 0:
            message.an = DNSRR(rrname=self.name, type="A", rdata="192.0.2.77", ttl=5)
        return bytes(message)

    def frame(self) -> bytes:
        """Returns the message as Protocol Buffers."""
        client, server = ip_address(self.client), ip_address(self.server)
        response = self.type % 2 == 0
        time_field, message_field = (12, 14) if response else (8, 10)
        body = number(1, self.type) + number(2, 1 if client.version == 4 else 2) + number(3, 1)
        body += data(4, client.packed) + data(5, server.packed)
        body += number(6, 40_000) + number(7, 53)
        body += number(time_field, self.t_ns // NS) + fixed32(time_field + 1, self.t_ns % NS)
        body += data(message_field, self.dns()) + data(11, b"\x07example\0")
        return data(1, b"resolver-7") + data(2, b"BIND 9") + data(14, body) + number(15, 1)


def stream(frames: Iterable[bytes], *, stop: bool = True) -> bytes:
    """Returns frames as a file."""
    codec = FstrmCodec()
    out = codec.encode(FSTRM_CONTROL_START, [CONTENT])
    out += b"".join(codec.encode(FSTRM_DATA_FRAME, payload=frame) for frame in frames)
    return out + (codec.encode(FSTRM_CONTROL_STOP) if stop else b"")


def frames_of(content: bytes) -> list[bytes]:
    """Returns the data frames of a file, which begins with START and ends with STOP."""
    codec, found = FstrmCodec(), []
    codec.append(content)
    while codec.process():
        found.append(codec.decode())
        if not codec.buf:
            break
    assert codec.buf == b""
    assert found[0][:2] == (FSTRM_CONTROL_START, [CONTENT])
    assert found[-1][0] == FSTRM_CONTROL_STOP
    assert all(kind == FSTRM_DATA_FRAME for kind, _types, _payload in found[1:-1])
    return [payload for _kind, _types, payload in found[1:-1]]


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yields the fields of a message of Protocol Buffers."""
    at = 0

    def take() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = take()
        if key & 7 == 0:
            yield key >> 3, take()
        elif key & 7 == 5:
            yield key >> 3, struct.unpack("<I", message[at : at + 4])[0]
            at += 4
        else:
            assert key & 7 == 2
            size = take()
            yield key >> 3, message[at : at + size]
            at += size
    assert at == len(message)


def read(content: bytes) -> list[dict[int, Any]]:
    """Returns the fields of each dnstap.Message in a file, which has nothing else."""
    found = []
    for frame in frames_of(content):
        outer = dict(fields(frame))
        assert outer.keys() == {14, 15}
        assert outer[15] == 1
        found.append(dict(fields(outer[14])))
    return found
