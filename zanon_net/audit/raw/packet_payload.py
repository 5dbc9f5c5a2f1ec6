# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the payload of anonymized packets: zeros, but for the forms that a run builds.

Bytes that no form explains break the promise if the raw packet of the same time has them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from zanon_net.audit.raw import tshark
from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.packets import SYN, TCP, UDP
from zanon_net.audit.raw.payload_forms import OF_HEADS, of_datagram, of_icmp, runs
from zanon_net.audit.raw.payload_streams import DNS_PORT, Stream
from zanon_net.audit.raw.reader import CUT, ETHERNET, IPV4, IPV6, frames, pcapng_frames
from zanon_net.errors import FormatError

LEAST = 8  # bytes in a row that chance does not explain
DISTINCT = 3  # values of these bytes at least, as padding repeats few values
DETAIL = 32  # bytes of a finding that the operator gets
LEFT_MOST = 100_000  # findings that are compared with raw packets
HELD_MOST = 64 << 20  # bytes of payload that wait for the end of their stream
FRAGMENT, UDP_HEAD, ICMP = 44, 8, {4: 1, 6: 58}


class Left(NamedTuple):
    """Bytes of a packet that no form explains."""

    row: int
    t_ns: int
    data: bytes


class Segment(NamedTuple):
    """A packet of IP in the output."""

    version: int
    protocol: int
    ends: bytes
    data: bytes  # behind the header
    fragment: int | None  # place in the datagram; None: a whole packet


class Choice(NamedTuple):
    """The settings of a run on which payload depends."""

    unit_ns: int = 1  # of the output's times
    kept: bool = False  # true if encrypted bytes are unchanged
    wrapped: bool = False  # true if headers may be around packets


def payload_of(path: Path, raw: Sequence[Path], choice: Choice) -> Iterator[Finding]:
    """Yields the packets whose payload has bytes of the raw packet that no form explains.

    raw: captures of the run.
    """
    left: dict[int, list[Left]] = defaultdict(list)
    telling = (one for one in left_in(path, choice) if len(one.data) >= LEAST)
    for one in islice(telling, LEFT_MOST):
        left[one.t_ns].append(one)
    found: dict[int, str] = {}
    for source in raw if left else ():
        for one in had_by(source, left, choice.unit_ns):
            found[one.row] = one.data[:DETAIL].hex()
    for row, text in sorted(found.items()):
        yield Finding("hidden", path.name, row, "payload", 1, 0, text)


def had_by(source: Path, left: Mapping[int, list[Left]], unit_ns: int) -> Iterator[Left]:
    """Yields the bytes of which a raw frame of the same time has some in a row."""
    for t_ns, frame in raw_frames(source):
        for one in left.get(t_ns - t_ns % unit_ns, ()):
            if any(window in frame for window in windows_of(one.data)):
                yield one


def windows_of(data: bytes) -> Iterator[bytes]:
    """Yields the parts of some bytes that chance does not explain."""
    data = OF_HEADS.sub(lambda match: bytes(len(match[0])), data)
    for at in range(len(data) - LEAST + 1):
        window = data[at : at + LEAST]
        if len(set(window)) >= DISTINCT:
            yield window


def raw_frames(source: Path) -> Iterator[tuple[int, bytes]]:
    """Yields time and bytes of the frames of a capture in any format that tshark reads."""
    program = tshark.find()
    assert program is not None  # the packets of the output were read with it
    command = [program, "-n", "-r", str(source), "-F", "pcapng", "-w", "-"]
    some = False
    with tshark.started(command) as child:
        assert child.stdout is not None
        for t_ns, link, data, _whole in pcapng_frames(child.stdout):
            if link != CUT:
                some = True
                yield t_ns, data
    if child.returncode != 0 and not some:
        raise FormatError(f"{source}: tshark cannot read it as a capture")


def left_in(path: Path, choice: Choice) -> Iterator[Left]:
    """Yields the bytes that no form explains in a capture of anonymized packets."""
    streams: dict[bytes, Stream] = {}
    held = 0
    with path.open("rb") as file:
        for row, (t_ns, link, frame, _whole) in enumerate(frames(file, path), 1):
            segment = segment_in(frame) if link == ETHERNET else None
            if segment is None:
                continue
            if segment.protocol != TCP or segment.fragment is not None:
                others = () if choice.wrapped else others_in(segment, choice.kept)
                yield from (Left(row, t_ns, data) for data in others)
                continue
            source, flags = segment.data[:4], segment.data[13]
            data = segment.data[4 * (segment.data[12] >> 4) :]
            sequence = int.from_bytes(segment.data[4:8])
            key = segment.ends + source
            if flags & SYN and key in streams:
                yield from left_of(streams.pop(key))
            if key not in streams:
                ports = int.from_bytes(source[:2]), int.from_bytes(source[2:])
                streams[key] = Stream(DNS_PORT in ports, choice.kept)
            stream = streams[key]
            if flags & SYN:
                sequence = (sequence + 1) % 2**32
                stream.start = stream.place_of(sequence)
            if data:
                stream.take(sequence, row, t_ns, data)
                held += len(data) if stream.parts and stream.parts[-1].row == row else 0
            if held > HELD_MOST:
                for one in streams.values():
                    yield from left_of(one)
                streams, held = {}, 0
    for stream in streams.values():
        yield from left_of(stream)


def left_of(stream: Stream) -> Iterator[Left]:
    """Yields the bytes that no form explains in a stream."""
    for part, data in stream.unexplained():
        yield Left(part.row, part.t_ns, data)


def others_in(segment: Segment, kept: bool) -> Iterable[bytes]:
    """Yields the bytes that no form explains in a packet that is not of TCP."""
    data = segment.data
    if segment.fragment is not None:
        spans = list(runs(data, 0 if segment.fragment else UDP_HEAD))
    elif segment.protocol == UDP:
        data = data[UDP_HEAD:]
        spans = of_datagram(data, kept=kept)
    elif segment.protocol == ICMP[segment.version]:
        spans = of_icmp(data, segment.version)
    else:
        spans = list(runs(data))
    return (data[start:end] for start, end in spans)


def segment_in(frame: bytes) -> Segment | None:
    """Returns the packet in a frame of the output, or None without a whole header of IP."""
    kind = int.from_bytes(frame[12:14])
    if kind == IPV4 and len(frame) >= 34:
        end = 14 + int.from_bytes(frame[16:18])
        place = (int.from_bytes(frame[20:22]) & 0x1FFF) * 8
        more = frame[20] & 0x20
        data = frame[14 + 4 * (frame[14] & 15) : end]
        found = Segment(4, frame[23], frame[26:34], data, place if place or more else None)
    elif kind == IPV6 and len(frame) >= 54:
        data = frame[54 : 54 + int.from_bytes(frame[18:20])]
        protocol, fragment = frame[20], None
        if protocol == FRAGMENT and len(data) >= 8:
            protocol, fragment = data[0], int.from_bytes(data[2:4]) & 0xFFF8
            data = data[8:]
        found = Segment(6, protocol, frame[22:54], data, fragment)
    else:
        return None
    return None if found.protocol == TCP and len(found.data) < 20 else found
