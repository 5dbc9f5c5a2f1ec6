# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Messages of a log of dnstap: Frame Streams, Protocol Buffers, and a DNS message in each frame."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, BinaryIO

from zanon_net.audit.raw.messages import dns_message
from zanon_net.audit.text_files import opened
from zanon_net.errors import FormatError

FRAME_MAX = 1 << 20
MESSAGE, TYPE, CLIENT = 14, 1, 4
OF_QUERY, OF_RESPONSE = (8, 9, 10), (12, 13, 14)
"""Fields of dnstap.Message that have seconds, nanoseconds and the DNS message."""
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Message = tuple[int, str | None, str | None]


def messages_of(path: Path) -> Iterator[Message]:
    """Yields the time (us since the Unix epoch), the client and the name of each message.

    Raises FormatError for a file that is cut, or that is no log of dnstap.
    """
    with opened(path) as stream:
        try:
            for frame in _frames(stream):
                yield _message(frame)
        except (IndexError, KeyError, TypeError, ValueError):
            raise FormatError(f"{path}: it is cut, or no log of dnstap") from None


def _frames(stream: BinaryIO) -> Iterator[bytes]:
    """Yields the frames of data. A control frame follows a length of 0."""
    while head := stream.read(4):
        size = int.from_bytes(head)
        is_control = size == 0
        if is_control:
            size = int.from_bytes(stream.read(4))
        if len(head) < 4 or size > FRAME_MAX:
            raise ValueError
        frame = stream.read(size)
        if len(frame) < size:
            raise ValueError
        if not is_control:
            yield frame


def _message(frame: bytes) -> Message:
    found = _fields(_fields(frame)[MESSAGE])
    seconds, nanoseconds, dns = OF_QUERY if found[TYPE] % 2 else OF_RESPONSE
    query = dns_message(found.get(dns, b""))
    client = found.get(CLIENT)
    return (
        found[seconds] * 10**6 + found.get(nanoseconds, 0) // 1000,
        None if client is None else str(ip_address(client)),
        None if query is None or not query.name else query.name.lower(),
    )


def _fields(data: bytes) -> Mapping[int, Any]:
    """Returns the fields of a message of Protocol Buffers by their numbers: numbers and bytes."""
    found: dict[int, Any] = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == VARINT:
            found[key >> 3], at = _varint(data, at)
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(kind)
        if kind == BYTES:
            size, at = _varint(data, at)
        if size is None or at + size > len(data):
            raise ValueError
        part = data[at : at + size]
        found[key >> 3] = part if kind == BYTES else int.from_bytes(part, "little")
        at += size
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Returns a number, and the place after it."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        if data[at] < 0x80:
            return value, at + 1
        at, shift = at + 1, shift + 7
