# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The capture reader: formats, times, the end of a capture, and files that are no capture."""

import bz2
import gzip
import lzma
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
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
    simple,
)
from support.captures import (
    BLOCK_MAX,
    DATA,
    FIRST_RECORD,
    FRAME,
    FRAME_MAX,
    SECOND_NS,
    five_seconds,
    pcapng,
    refused,
)
from support.examples import each
from support.file_map import unmapped

from zanon_net import _core
from zanon_net.errors import CaptureError, FormatError

# ---- pcap ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcap_microseconds_and_nanoseconds(order: str) -> None:
    record = pcap_record(order, 1, 999_999, DATA, wire=1514)
    micro = read_bytes(pcap_header(order, link_type=101) + record)
    assert micro == ([(1_999_999_000, 1514, 101, DATA)], None)
    nano = read_bytes(pcap_header(order, magic=PCAP_NANOSECONDS) + record)
    assert nano == ([(1_000_999_999, 1514, 1, DATA)], None)


def test_pcap_largest_numbers_do_not_overflow() -> None:
    record = pcap_record("<", 2**32 - 1, 2**32 - 1, b"x", wire=2**32 - 1)
    [(t_ns, wire, _, _)], warning = read_bytes(pcap_header() + record)
    assert t_ns == (2**32 - 1) * SECOND_NS + (2**32 - 1) * 1000
    assert wire == 2**32 - 1
    assert warning is None


def test_pcap_frame_is_never_longer_than_on_the_wire() -> None:
    [(_, wire, _, data)], _ = read_bytes(pcap_header() + pcap_record("<", 0, 0, DATA, wire=7))
    assert (wire, data) == (len(DATA), DATA)


def test_pcap_link_type_is_told_from_the_fcs_length() -> None:
    frames, _ = read_bytes(pcap_header(link_type=0x2400_0001) + pcap_record("<", 5, 0, DATA))
    assert frames == [FRAME]


@pytest.mark.parametrize(("minor", "swapped"), [(2, True), (3, True), (3, False), (4, False)])
def test_pcap_lengths_of_early_versions_are_swapped(minor: int, swapped: bool) -> None:
    lengths = {"captured": 100, "wire": len(DATA)} if swapped else {"wire": 100}
    record = pcap_record("<", 5, 0, DATA, **lengths)
    frames, _ = read_bytes(pcap_header(version=(2, minor)) + record)
    assert frames == [(5 * SECOND_NS, 100, 1, DATA)]


def test_pcap_without_records_is_a_capture_without_frames() -> None:
    assert read_bytes(pcap_header()) == ([], None)


def test_pcap_empty_and_largest_frames() -> None:
    frames = [b"", bytes(FRAME_MAX), b"x"]
    data = pcap_header() + b"".join(pcap_record("<", 1, 0, frame) for frame in frames)
    got, warning = read_bytes(data)
    assert [frame for *_, frame in got] == frames
    assert warning is None


# ---- where a capture ends -----------------------------------------------------------------------


ZEROS = "zeros where a record should be, as in a file that was not written to its end"


def read_both(data: bytes, path: Path) -> tuple[Frames, str | None]:
    """Reads a mapped file, memory and a stream, which must agree."""
    path.write_bytes(data)
    with _core.Capture(str(path)) as capture:
        mapped = read_all(capture)
    fd = os.open(path, os.O_RDONLY)
    with _core.Capture(fd=fd, name="x") as capture:
        streamed = read_all(capture)
    os.close(fd)
    assert streamed == mapped == read_bytes(data) == read_bytes(data, 1)
    return mapped


@pytest.mark.parametrize("magic", [PCAP_MICROSECONDS, PCAP_NANOSECONDS])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("zeros", [16, 17, 31, 32, 4096, 1 << 20])
def test_pcap_ends_where_zeros_follow(order: str, magic: int, zeros: int, tmp_path: Path) -> None:
    """The end of a file is zeros if its host lost power while a program wrote it."""
    head = pcap_header(order, magic=magic)
    record = pcap_record(order, 5, 7, DATA)
    for count in (0, 1, 3, 70):
        frames, warning = read_both(head + count * record + bytes(zeros), tmp_path / "x")
        assert [data for *_, data in frames] == count * [DATA]
        at = len(head) + count * len(record)
        assert warning == f"record {count + 1} at byte {at}: {ZEROS}"


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kept", range(1, 9))
def test_pcap_ends_where_zeros_begin_inside_a_header(order: str, kept: int, tmp_path: Path) -> None:
    """Zeros that begin inside the time of a record."""
    head = pcap_header(order) + pcap_record(order, 5, 7, DATA)
    record = pcap_record(order, 0x01020304, 0x00050607, DATA)
    frames, warning = read_both(head + record[:kept] + bytes(500), tmp_path / "x")
    assert [data for *_, data in frames] == [DATA]
    assert warning == f"record 2 at byte {len(head)}: {ZEROS}"


def test_pcap_zeros_inside_a_frame_are_of_the_frame(tmp_path: Path) -> None:
    record = pcap_record("<", 5, 7, b"x" * 300)
    data = pcap_header() + record + record[:100] + bytes(1000)
    frames, warning = read_both(data, tmp_path / "x")
    assert [data for *_, data in frames] == [b"x" * 300, b"x" * 84 + bytes(216)]
    assert warning is not None
    assert warning.endswith(ZEROS)


def test_pcap_records_at_time_zero_and_without_bytes_are_records(tmp_path: Path) -> None:
    records = [
        pcap_record("<", 0, 0, DATA),
        pcap_record("<", 0, 0, bytes(60)),
        pcap_record("<", 0, 0, b"", wire=60),
        pcap_record("<", 1, 0, b"", wire=0),
        pcap_record("<", 0, 1, b"", wire=0),
    ]
    data = pcap_header() + b"".join(records) * 2
    frames, warning = read_both(data, tmp_path / "x")
    assert (len(frames), warning) == (10, None)


@pytest.mark.parametrize("batch", [1, 2, 64])
def test_pcap_every_cut_ends_with_what_was_whole(batch: int) -> None:
    record = pcap_record("<", 5, 0, DATA)
    whole = pcap_header() + 2 * record
    for size in range(FIRST_RECORD, len(whole)):
        frames, warning = read_bytes(whole[:size], batch)
        count, left = divmod(size - FIRST_RECORD, len(record))
        assert frames == [FRAME] * count
        if left == 0:
            assert warning is None
        else:
            wanted = 16 if left < 16 else len(record)
            start = FIRST_RECORD + count * len(record)
            what = f"{wanted} bytes wanted, {left} left"
            assert warning == f"record {count + 1} at byte {start}: {what}"


@pytest.mark.parametrize("captured", [FRAME_MAX + 1, 2**31, 2**32 - 1])
def test_pcap_absurd_length_ends_the_capture(captured: int) -> None:
    good = pcap_record("<", 5, 0, DATA)
    bad = pcap_record("<", 5, 0, DATA, captured=captured)
    frames, warning = read_bytes(pcap_header() + good + bad + good)
    assert frames == [FRAME]
    start = FIRST_RECORD + len(good)
    assert warning is not None
    assert warning.startswith(f"record 2 at byte {start}: a frame of {captured} bytes")


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_every_cut_ends_with_what_was_whole(order: str) -> None:
    blocks = [section(order), interface(order), five_seconds(order), block(order, 0xBAD, DATA)]
    blocks += [five_seconds(order)]
    whole = b"".join(blocks)
    ends = [sum(map(len, blocks[: i + 1])) for i in range(len(blocks))]
    for size in range(28, len(whole) + 1):
        frames, warning = read_bytes(whole[:size])
        assert frames == [FRAME] * sum(size >= ends[i] for i in (2, 4))
        done = sum(size >= end for end in ends)
        if size in ends:
            assert warning is None
        else:
            assert warning is not None
            assert warning.startswith(f"block {done + 1} at byte {ends[done - 1]}: ")
            assert warning.endswith(f" bytes wanted, {size - ends[done - 1]} left")


WARNINGS = {
    "a block of 8 bytes": struct.pack("<III", 99, 8, 8),
    "a block of 30 bytes": struct.pack("<II", 99, 30) + bytes(30),
    f"a block of {BLOCK_MAX + 4} bytes": struct.pack("<II", 99, BLOCK_MAX + 4),
    "its length is 72 at its start and 76 at its end": block("<", 99, DATA, after=76),
    "its length is 20 at its start and 0 at its end": block("<", 3, bytes(8), after=0),
    "a packet block that is too short": block("<", 6, bytes(16)),
    "a packet of interface 1": enhanced("<", 0, DATA, number=1),
    "a frame of 100 bytes, more than its block": block(
        "<", 6, struct.pack("<IIIII", 0, 0, 0, 100, 100) + DATA
    ),
    f"a frame of {FRAME_MAX + 1} bytes, more than {FRAME_MAX}": block(
        "<", 6, struct.pack("<IIIII", 0, 0, 0, FRAME_MAX + 1, 0) + DATA
    ),
    "an interface block that is too short": block("<", 1, bytes(4)),
    "an interface block whose options": interface(options=struct.pack("<HHI", 2, 999, 0)),
    "an interface block whose options ": interface(options=option("<", TSRESOL, b"ab")),
    "an interface block whose options  ": interface(options=option("<", TSOFFSET, b"abcd")),
    "a section of version 2": section(version=(2, 0)),
    "a section header that is too short": block("<", 0x0A0D0D0A, struct.pack("<I", 0x1A2B3C4D)),
    "a section header without its byte order": block("<", 0x0A0D0D0A, bytes(16)),
}


@each("reason", WARNINGS)
def test_pcapng_block_that_lies_ends_the_capture(reason: str) -> None:
    good = pcapng("<", five_seconds("<"))
    frames, warning = read_bytes(good + WARNINGS[reason] + five_seconds("<"))
    assert frames == [FRAME]
    assert warning is not None
    assert warning.startswith(f"block 4 at byte {len(good)}: {reason.strip()}")


def test_pcapng_interface_without_end_is_bounded() -> None:
    frames, warning = read_bytes(section() + 65_537 * interface())
    assert frames == []
    assert warning is not None
    assert warning.startswith("block 65538 ")
    assert "more than 65536 interfaces" in warning


def test_file_that_becomes_shorter_ends_there(tmp_path: Path) -> None:
    """One that is read; tests/unit/test_file_map.py has those that are mapped."""
    path = tmp_path / "shrinking.pcap"
    path.write_bytes(pcap_header() + 50_000 * pcap_record("<", 5, 0, DATA))
    with unmapped(tmp_path), _core.Capture(str(path)) as capture:
        assert len(capture.frames(10)) == 10
        os.truncate(path, 4096)
        frames, warning = read_all(capture)
        assert warning is not None
        assert "became shorter" in warning
        assert 0 < len(frames) < 40_000
        assert set(frames) == {FRAME}
        assert capture.frames(10) == []


def test_what_is_appended_meanwhile_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "growing.pcap"
    record = pcap_record("<", 5, 0, DATA)
    path.write_bytes(pcap_header() + 50_000 * record)
    with _core.Capture(str(path)) as capture:
        first = capture.frames(10)
        with path.open("ab") as file:
            file.write(record)
        frames, warning = read_all(capture)
        assert capture.bytes_read == capture.bytes_total
    assert warning is None
    assert first + frames == 50_000 * [FRAME]


# ---- pcapng -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_packet_blocks(order: str) -> None:
    options = option(order, 1, b"a comment") + option(order, 0, b"")
    data = pcapng(
        order,
        five_seconds(order),
        enhanced(order, 5_000_000, DATA[:5], wire=1514, options=options),
        obsolete(order, 5_000_000, DATA[:7]),
        simple(order, DATA[:9]),
    )
    frames, warning = read_bytes(data)
    assert warning is None
    assert frames == [
        FRAME,
        (5 * SECOND_NS, 1514, 1, DATA[:5]),
        (5 * SECOND_NS, 7, 1, DATA[:7]),
        (-1, 9, 1, DATA[:9]),  # a simple packet block has no time
    ]


def test_pcapng_simple_block_is_cut_by_the_snaplen() -> None:
    data = section() + interface(snaplen=10) + simple("<", DATA[:10], wire=1514)
    assert read_bytes(data) == ([(-1, 1514, 1, DATA[:10])], None)


def test_pcapng_sections_have_their_own_order_and_interfaces() -> None:
    data = (
        section("<")
        + interface("<", link_type=113)
        + interface("<", link_type=101)
        + enhanced("<", 5_000_000, DATA, number=1)
        + section(">", version=(1, 2), options=option(">", 4, b"someone"))
        + interface(">", link_type=228)
        + enhanced(">", 5_000_000, DATA)
        + section("<")
        + enhanced("<", 5_000_000, DATA)
    )
    frames, warning = read_bytes(data)
    assert [link_type for _, _, link_type, _ in frames] == [101, 228]
    assert warning is not None
    assert "a packet of interface 0" in warning


def test_pcapng_unknown_blocks_are_skipped() -> None:
    unknown = [block("<", kind, DATA) for kind in (0, 4, 5, 10, 0xBAD, 0x80000001, 2**32 - 1)]
    unknown += [block("<", 0xBAD, b""), block("<", 0xBAD, bytes(1 << 20))]
    data = pcapng("<", *(each + five_seconds("<") for each in unknown))
    assert read_bytes(data) == ([FRAME] * len(unknown), None)


RESOLUTIONS = [
    (0, 5, 5 * SECOND_NS),
    (3, 5001, 5_001_000_000),
    (6, 5_000_001, 5_000_001_000),
    (9, 2**63 - 1, 2**63 - 1),
    (9, 2**63, -1),
    (9, 2**64 - 1, -1),
    (12, 5_000_000_999_999, 5_000_000_999),
    (19, 2**64 - 1, 1_844_674_407),
    (28, 2**64 - 1, 1),
    (29, 2**64 - 1, 0),
    (127, 2**64 - 1, 0),
    (0x80, 5, 5 * SECOND_NS),
    (0x80 | 10, 1023, 999_023_437),
    (0x80 | 32, (7 << 32) + (1 << 31), 7_500_000_000),
    (0x80 | 64, 2**64 - 1, 999_999_999),
    (0x80 | 127, 2**64 - 1, 0),
    (0, 2**64 - 1, -1),
    (0x80, 2**64 - 1, -1),
]


@each("order", ["<", ">"])
@each("resolution, ticks, expected", RESOLUTIONS)
def test_pcapng_time_units(order: str, resolution: int, ticks: int, expected: int) -> None:
    options = option(order, 2, b"eth0") + option(order, TSRESOL, bytes([resolution]))
    data = section(order) + interface(order, options=options) + enhanced(order, ticks, DATA)
    [(t_ns, *_)], _ = read_bytes(data)
    assert t_ns == expected


@each("order", ["<", ">"])
@each(
    "offset, ticks, expected",
    [
        (1_700_000_000, 1, 1_700_000_000_000_001_000),
        (-5, 5_000_000, 0),
        (-5, 4_999_999, -1),
        (-(2**63), 2**64 - 1, -1),
        (2**63 - 1, 0, -1),
        (9_223_372_036, 854_775, 9_223_372_036_854_775_000),
        (9_223_372_036, 854_776, -1),
    ],
)
def test_pcapng_time_offset(order: str, offset: int, ticks: int, expected: int) -> None:
    options = option(order, TSOFFSET, struct.pack(order + "q", offset)) + option(order, 0, b"")
    data = section(order) + interface(order, options=options) + enhanced(order, ticks, DATA)
    [(t_ns, *_)], _ = read_bytes(data)
    assert t_ns == expected


# ---- what is no capture -------------------------------------------------------------------------


OTHER_FORMATS: dict[str, Callable[[bytes], bytes]] = {
    "compressed with gzip": gzip.compress,
    "compressed with bzip2": bz2.compress,
    "compressed with xz": lzma.compress,
    "compressed with zstd": lambda data: b"\x28\xb5\x2f\xfd" + data,
    "compressed with lz4": lambda data: b"\x04\x22\x4d\x18" + data,
    "a ZIP archive": lambda data: b"PK\3\4" + data,
    "a tar archive": lambda data: b"mon.pcap".ljust(257, b"\0") + b"ustar\x0000" + data,
    "a snoop of version 3": lambda data: b"snoop\0\0\0\0\0\0\3" + data,
    "a Network Monitor capture": lambda data: b"GMBU" + data,
    "not a capture": lambda data: b"GET / HTTP/1.1" + data,
}


@pytest.mark.parametrize("what", OTHER_FORMATS)
def test_other_formats_are_named(what: str) -> None:
    message = refused(OTHER_FORMATS[what](pcap_header() + pcap_record("<", 5, 0, DATA)))
    assert f" is {what}" in message
    assert ("unpack it first" in message) == ("compressed" in what or "archive" in what)


def test_a_tar_archive_is_named_that_comes_in_pieces() -> None:
    """As what is unpacked does: its word lay behind what had come so far."""
    data = OTHER_FORMATS["a tar archive"](pcap_header())
    reading, writing = os.pipe()

    def send() -> None:
        for at in range(0, len(data), 9):
            os.write(writing, data[at : at + 9])
        os.close(writing)

    sender = threading.Thread(target=send)
    sender.start()
    with pytest.raises(FormatError, match=r"^it is a tar archive: unpack it first"):
        _core.Capture(fd=reading, name="it")
    sender.join()
    os.close(reading)


def test_too_little_is_told_apart() -> None:
    messages = [refused(data) for data in (b"", b"\xd4\xc3", pcap_header()[:23], section()[:27])]
    assert "is empty" in messages[0]
    assert "too short to be a capture: 2 bytes" in messages[1]
    assert "too short: 23 bytes, a pcap header has 24" in messages[2]
    assert "too short: 27 bytes, a pcapng section header has 28" in messages[3]


def test_unknown_versions_are_refused() -> None:
    assert "pcap of version 3" in refused(pcap_header(version=(3, 0)))
    assert "pcapng of version 2" in refused(section(version=(2, 0)))
    assert "without its byte order" in refused(block("<", 0x0A0D0D0A, bytes(16)))


def test_path_is_named_where_it_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="is a folder") as caught:
        _core.Capture(str(tmp_path))
    assert str(tmp_path) in str(caught.value)
    with pytest.raises(CaptureError, match="cannot be opened: No such file") as caught:
        _core.Capture(str(tmp_path / "nowhere"))
    assert str(tmp_path / "nowhere") in str(caught.value)
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(FormatError, match="is empty") as refusal:
        _core.Capture(str(empty))
    assert str(empty) in str(refusal.value)


def test_descriptor_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "for-writing", os.O_WRONLY | os.O_CREAT)
    try:
        with pytest.raises(CaptureError, match="somewhere cannot be read"):
            _core.Capture(fd=fd, name="somewhere")
    finally:
        os.close(fd)
