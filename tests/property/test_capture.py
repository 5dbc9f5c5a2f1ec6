# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The capture reader against dpkt and scapy on random captures, and streams against memory."""

import io
import os
import struct
import threading
from collections.abc import Iterator
from fractions import Fraction

import dpkt
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.utils import RawPcapNgReader, RawPcapReader
from support.capture_bytes import (
    PCAP_MICROSECONDS,
    PCAP_NANOSECONDS,
    TSOFFSET,
    TSRESOL,
    Frames,
    block,
    enhanced,
    interface,
    obsolete,
    option,
    pcap_header,
    pcap_record,
    read_all,
    read_bytes,
    section,
)
from support.examples import examples

from zanon_net import _core

SECOND_NS = 1_000_000_000
orders = st.sampled_from("<>")
payloads = st.binary(max_size=80)
seconds = st.integers(0, 2**32 - 1)
batches = st.integers(1, 70)


@st.composite
def pcaps(draw: st.DrawFn) -> tuple[bytes, Frames]:
    """A pcap file, and the frames it holds."""
    order = draw(orders)
    magic, unit_ns = draw(st.sampled_from([(PCAP_MICROSECONDS, 1000), (PCAP_NANOSECONDS, 1)]))
    link_type = draw(st.sampled_from([0, 1, 101, 113, 276]))
    data = pcap_header(order, magic=magic, link_type=link_type)
    frames: Frames = []
    for payload in draw(st.lists(payloads, max_size=8)):
        # A record of zeros, with neither a time nor a frame, is the end of a capture.
        whole = draw(seconds if payload else st.integers(1, 2**32 - 1))
        fraction = draw(st.integers(0, SECOND_NS // unit_ns - 1))
        wire = len(payload) + draw(st.integers(0, 2000))
        data += pcap_record(order, whole, fraction, payload, wire=wire)
        frames.append((whole * SECOND_NS + fraction * unit_ns, wire, link_type, payload))
    return data, frames


@st.composite
def pcapngs(draw: st.DrawFn) -> tuple[bytes, Frames]:
    """A pcapng file of one or two sections, and the frames it holds."""
    data, frames = b"", []
    for order in draw(st.lists(orders, min_size=1, max_size=2)):
        data += section(order)
        interfaces: list[tuple[int, Fraction, int]] = []
        for _ in range(draw(st.integers(1, 3))):
            link_type = draw(st.integers(0, 65535))
            resolution = draw(st.sampled_from([None, 0, 3, 6, 9, 12, 20, 0x80, 0x94, 0xA8]))
            offset = draw(st.sampled_from([None, 0, 1_700_000_000, -3]))
            options = b""
            if offset is not None:
                options += option(order, TSOFFSET, struct.pack(order + "q", offset))
            if resolution is not None:
                options += option(order, TSRESOL, bytes([resolution])) + option(order, 0, b"")
            n = 6 if resolution is None else resolution & 0x7F
            base = 2 if resolution is not None and resolution & 0x80 else 10
            data += interface(order, link_type=link_type, options=options)
            interfaces.append((link_type, Fraction(SECOND_NS, base**n), offset or 0))
        for payload in draw(st.lists(payloads, max_size=5)):
            number = draw(st.integers(0, len(interfaces) - 1))
            link_type, unit_ns, offset = interfaces[number]
            ticks = draw(st.integers(0, 2**64 - 1) | st.integers(0, 2**40))
            t_ns = int(ticks * unit_ns) + offset * SECOND_NS
            t_ns = t_ns if 0 <= t_ns < 2**63 else -1
            wire = len(payload)
            if draw(st.booleans()):
                data += obsolete(order, ticks, payload, number=number)
            else:
                wire += draw(st.integers(0, 2000))
                extra = draw(st.sampled_from([b"", option(order, 2, bytes(4))]))
                data += enhanced(order, ticks, payload, number=number, wire=wire, options=extra)
            frames.append((t_ns, wire, link_type, payload))
            data += block(order, draw(st.sampled_from([4, 5, 0xBAD])), bytes(4 * (ticks % 5)))
    return data, frames


captures = pcaps() | pcapngs()


@given(captures, batches)
def test_reads_what_was_written(capture: tuple[bytes, Frames], batch: int) -> None:
    data, frames = capture
    assert read_bytes(data, batch) == (frames, None)


@given(pcaps())
def test_pcap_as_dpkt_and_scapy_read_it(capture: tuple[bytes, Frames]) -> None:
    data, _ = capture
    ours, _ = read_bytes(data)
    by_dpkt = [(float(t), frame) for t, frame in dpkt.pcap.Reader(io.BytesIO(data))]
    assert [frame for _, frame in by_dpkt] == [frame for *_, frame in ours]
    for (t, _), (t_ns, *_) in zip(by_dpkt, ours, strict=True):
        assert abs(t - t_ns / SECOND_NS) < 2e-6
    reader = RawPcapReader(io.BytesIO(data))
    unit_ns = 1 if reader.nano else 1000
    by_scapy = [
        (meta.sec * SECOND_NS + meta.usec * unit_ns, meta.wirelen, reader.linktype, frame)
        for frame, meta in reader
    ]
    assert by_scapy == ours


@given(orders, st.lists(st.tuples(st.integers(0, 2**51), payloads), max_size=8))
def test_pcapng_as_dpkt_and_scapy_read_it(order: str, packets: list[tuple[int, bytes]]) -> None:
    blocks = [enhanced(order, ticks, payload) for ticks, payload in packets]
    data = section(order) + interface(order, snaplen=65535) + b"".join(blocks)
    ours, warning = read_bytes(data)
    assert warning is None
    by_scapy = [
        ((meta.tshigh << 32 | meta.tslow) * 1000, meta.wirelen, meta.linktype, frame)
        for frame, meta in RawPcapNgReader(io.BytesIO(data))
    ]
    assert by_scapy == ours
    by_dpkt = list(dpkt.pcapng.Reader(io.BytesIO(data)))
    assert [frame for _, frame in by_dpkt] == [frame for *_, frame in ours]
    for (t, _), (t_ns, *_) in zip(by_dpkt, ours, strict=True):
        assert abs(float(t) - t_ns / SECOND_NS) < 2e-6


def feed(fd: int, chunks: Iterator[bytes]) -> None:
    """Writes the chunks into a pipe, which it closes; the reader may go first."""
    try:
        for chunk in chunks:
            os.write(fd, chunk)
    except BrokenPipeError:
        pass
    finally:
        os.close(fd)


def read_stream(data: bytes, sizes: list[int], batch: int) -> tuple[Frames, str | None]:
    """The capture through a pipe, fed in chunks of these sizes in turn."""

    def chunks() -> Iterator[bytes]:
        at = turn = 0
        while at < len(data):
            size = sizes[turn % len(sizes)]
            yield data[at : at + size]
            at, turn = at + size, turn + 1

    reading, writing = os.pipe()
    feeder = threading.Thread(target=feed, args=(writing, chunks()))
    feeder.start()
    try:
        with _core.Capture(fd=reading, name="pipe") as capture:
            return read_all(capture, batch)
    finally:
        os.close(reading)
        feeder.join()


@given(captures, st.lists(st.integers(1, 300), min_size=1, max_size=4), batches, st.data())
@settings(max_examples=examples(60), deadline=None)
def test_stream_is_memory_even_when_damaged(
    capture: tuple[bytes, Frames], sizes: list[int], batch: int, data: st.DataObject
) -> None:
    damaged = bytearray(capture[0])
    for at in data.draw(st.lists(st.integers(28, len(damaged) + 28), max_size=2)):
        if at < len(damaged):
            damaged[at] ^= data.draw(st.integers(1, 255))
    size = data.draw(st.integers(28, max(28, len(damaged))))
    cut = bytes(damaged[:size])
    assert read_stream(cut, sizes, batch) == read_bytes(cut, batch)


def test_stream_skips_large_blocks_and_holds_large_frames() -> None:
    frame = bytes(256 << 10)
    comment = option("<", 1, bytes(65_000))
    data = section() + interface()
    data += block("<", 0xBAD, bytes((16 << 20) - 12)) + enhanced(
        "<", 7, frame, options=20 * comment
    )
    data += block("<", 5, bytes(3 << 20)) + enhanced("<", 8, b"last")
    expected = [(7000, len(frame), 1, frame), (8000, 4, 1, b"last")]
    assert read_bytes(data) == (expected, None)
    assert read_stream(data, [65_536, 1000, 1 << 20], 10) == (expected, None)


@given(st.binary(max_size=300))
def test_any_bytes_after_a_header_are_no_error(noise: bytes) -> None:
    for header in (pcap_header(), section(), section(">") + interface(">")):
        assert read_bytes(header + noise, 1) == read_bytes(header + noise)
