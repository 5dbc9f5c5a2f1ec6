# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""System counters of frames that interfaces received and no program saw: Linux, rtnetlink(7).

/proc/net/dev adds up two counters that must be kept apart. `rx_missed_errors` counts frames that
the card lost. `rx_dropped` counts frames that the system did not deliver to a protocol. Some of
them were dropped because the system's input queue, the backlog, was full, and no program saw them.
Others are of protocols that the system does not handle, and capturing programs have read them.
Frames refused for their length are counted there, too.
"""

import errno
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from zanon_net._record import dataclass

SOFTNET_STAT = Path("/proc/net/softnet_stat")
_DROPPED, _PROCESSOR = 1, 12  # columns of softnet_stat, hexadecimal; the kernel counts in 32 bits

_HEADER, _LINK = struct.Struct("=IHHII"), struct.Struct("=BxHiII")  # nlmsghdr, ifinfomsg
_ATTRIBUTE = struct.Struct("=HH")
_ERROR, _DONE, _NEW_LINK, _GET_LINK = 2, 3, 16, 18  # types of messages
_REQUEST, _DUMP = 1, 0x300  # flags of messages
_NAME, _BELOW, _STATS64, _BELOW_NAMESPACE = 3, 5, 23, 37  # attributes of links
_OTHER_NAME = 53  # another name of a link
_OTHER_NAME_BYTES = 127
_AF_NETLINK, _ROUTE = 16, 0
_UP = 1  # the flag IFF_UP
_STATS = struct.Struct("=16Q")  # the start of rtnl_link_stats64
_RX_PACKETS, _RX_DROPPED, _RX_FIFO, _RX_MISSED = 0, 6, 14, 15
_REPLY_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class LinkCounters:
    """missed: frames that the card lost. dropped: frames that the system did not deliver."""

    missed: int
    dropped: int


@dataclass(frozen=True, slots=True)
class LinkState:
    """index: number of the interface; a different index under one name is a different interface.
    received: frames so far."""

    index: int
    is_up: bool
    received: int


def read_link_state(interface: str) -> LinkState | None:
    """Returns the state of an interface; None if it does not exist. Raises OSError."""
    try:
        for message in _links(interface):
            _family, _type, index, flags, _change = _LINK.unpack_from(message)
            stats = _stats(_attributes(message))
            return LinkState(index, bool(flags & _UP), 0 if stats is None else stats[_RX_PACKETS])
    except OSError as error:
        if error.errno != errno.ENODEV:
            raise
    return None


def read_links(interface: str | None) -> dict[str, LinkCounters]:
    """Returns the counters of an interface, or of all, by name. Raises OSError."""
    links: dict[str, LinkCounters] = {}
    for message in _links(interface):
        links |= _counters(message)
    return links


def read_link_below(interface: str) -> int | None:
    """Returns the index of the interface below a VLAN interface, or at the other end of a virtual
    cable.

    None if it does not exist, or is not in this network namespace. Raises OSError.
    """
    for message in _links(interface):
        found = _attributes(message)
        if _BELOW in found and _BELOW_NAMESPACE not in found:
            return int.from_bytes(found[_BELOW], sys.byteorder)
    return None


def read_interface_name(other: str) -> str | None:
    """Returns the name of the interface with the alternative name `other` (`ip link property add`).

    None if there is no such interface, or the system does not know. Alternative names have up to
    127 bytes.
    """
    if not 0 < len(os.fsencode(other)) <= _OTHER_NAME_BYTES:
        return None
    with suppress(OSError):
        for message in _links(other, _OTHER_NAME):
            return os.fsdecode(_attributes(message).get(_NAME, b"").rstrip(b"\0")) or None
    return None


def _links(interface: str | None, kind: int = _NAME) -> Iterator[bytes]:
    """Yields a message about each interface, or about the interface with this name.

    kind: the attribute that has the name. Raises OSError.
    """
    asked = b"" if interface is None else _attribute(kind, os.fsencode(interface) + b"\0")
    import socket  # late: a run on captures needs no socket

    flags = _REQUEST | (_DUMP if interface is None else 0)
    body = _LINK.pack(0, 0, 0, 0, 0) + asked
    with socket.socket(_AF_NETLINK, socket.SOCK_RAW, _ROUTE) as kernel:
        kernel.settimeout(1.0)
        kernel.send(_HEADER.pack(_HEADER.size + len(body), _GET_LINK, flags, 1, 0) + body)
        while True:
            for kind, message in _messages(kernel.recv(_REPLY_BYTES)):
                if kind == _ERROR:
                    number = -int.from_bytes(message[:4], sys.byteorder, signed=True)
                    raise OSError(number, os.strerror(number))
                if kind == _NEW_LINK:
                    yield message
                if kind == _DONE or interface is not None:
                    return


def _attribute(kind: int, value: bytes) -> bytes:
    padding = -len(value) % 4
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + bytes(padding)


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields (type, content) of each netlink message."""
    while len(data) >= _HEADER.size:
        length, kind, *_rest = _HEADER.unpack_from(data)
        if length < _HEADER.size:
            return
        yield kind, data[_HEADER.size : length]
        data = data[(length + 3) & ~3 :]


def _attributes(message: bytes) -> dict[int, bytes]:
    """Returns the attributes of a message about a link, by their numbers."""
    found: dict[int, bytes] = {}
    data = message[_LINK.size :]
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        if length < _ATTRIBUTE.size:
            break
        found[kind] = data[_ATTRIBUTE.size : length]
        data = data[(length + 3) & ~3 :]
    return found


def _stats(found: Mapping[int, bytes]) -> tuple[int, ...] | None:
    """Returns the system's counters among the attributes of a link; None if the system gives no
    counters."""
    stats = found.get(_STATS64, b"")
    return _STATS.unpack_from(stats) if len(stats) >= _STATS.size else None


def _counters(message: bytes) -> dict[str, LinkCounters]:
    """Returns the counters in a message about a link, by its name; empty if the system gives no
    counters."""
    found = _attributes(message)
    stats = _stats(found)
    if _NAME not in found or stats is None:
        return {}
    name = os.fsdecode(found[_NAME].rstrip(b"\0"))
    return {name: LinkCounters(stats[_RX_MISSED] + stats[_RX_FIFO], stats[_RX_DROPPED])}


def read_backlog(text: str) -> Mapping[int, int]:
    """Returns the frames of all interfaces that a full backlog dropped, by processor.

    text: content of /proc/net/softnet_stat.
    """
    dropped = {}
    for number, line in enumerate(text.splitlines()):
        columns = [int(column, 16) for column in line.split()]
        processor = columns[_PROCESSOR] if len(columns) > _PROCESSOR else number
        dropped[processor] = columns[_DROPPED]
    return dropped
