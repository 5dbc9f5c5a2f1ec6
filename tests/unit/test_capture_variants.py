# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""pcap's variants and snoop: other headers, recognised by a magic number or by the content."""

import struct
from collections.abc import Callable
from itertools import pairwise

import pytest
from support.capture_bytes import Frames, pcap_header, pcap_record, read_bytes
from support.snoop_bytes import snoop_header, snoop_record

from zanon_net import _core
from zanon_net.errors import FormatError

SECOND_NS = 1_000_000_000
MODIFIED, IXIA_HARDWARE, IXIA_SOFTWARE = 0xA1B2CD34, 0x1C0001AC, 0x1C0001AB
DATA = bytes(range(60))
FRAMES: Frames = [(i * SECOND_NS + 7000, 100, 1, DATA[i:]) for i in range(5)]
orders = pytest.mark.parametrize("order", ["<", ">"])


def records(order: str, more: bytes, *, unit_ns: int = 1000) -> list[bytes]:
    """FRAMES, with `more` at the end of each record's header."""
    made = []
    for t_ns, wire, _link, data in FRAMES:
        head = pcap_record(order, t_ns // SECOND_NS, t_ns % SECOND_NS // unit_ns, b"")[:8]
        made.append(head + struct.pack(order + "II", len(data), wire) + more + data)
    return made


def extra(order: str, more: int = 0, *, interface: int = 3, protocol: int = 0x800) -> bytes:
    """Kuznetzov's fields: interface, protocol, packet type, padding, `more` bytes for debugging."""
    return struct.pack(order + "IHBB", interface, protocol, 4, 0) + bytes(more)


@orders
@pytest.mark.parametrize("more", [0, 4])
def test_modified_pcap_of_both_lengths(order: str, more: int) -> None:
    head = pcap_header(order, magic=MODIFIED)
    made = records(order, extra(order, more))
    for count in range(len(FRAMES) + 1):
        data = head + b"".join(made[:count])
        assert read_bytes(data) == (FRAMES[:count], None)


@orders
@pytest.mark.parametrize("more", [lambda o: extra(o), lambda o: struct.pack(o + "I", 0x0FBF0100)])
def test_longer_headers_under_the_usual_magic(order: str, more: Callable[[str], bytes]) -> None:
    made = records(order, more(order))
    for count in range(len(FRAMES) + 1):
        data = pcap_header(order) + b"".join(made[:count])
        assert read_bytes(data) == (FRAMES[:count], None)


@orders
def test_a_plain_pcap_is_one_whatever_its_frames_begin_with(order: str) -> None:
    """Even with what looks like the further fields of a longer header."""
    for start in (extra(order), extra(order, 4), bytes(12), struct.pack(order + "I", 0x0FBF0100)):
        frames = [start + DATA[i:] for i in range(4)]
        for count in range(1, 5):
            made = [pcap_record(order, i, 0, data) for i, data in enumerate(frames[:count])]
            data = pcap_header(order) + b"".join(made)
            got, warning = read_bytes(data)
            assert [frame for *_, frame in got] == frames[:count]
            assert warning is None
            for cut in (1, 4, 8, 12, 20):
                got, warning = read_bytes(data[:-cut])
                assert [frame for *_, frame in got] == frames[: count - 1]
                assert warning is not None


@pytest.mark.parametrize("version", [(2, 2), (2, 3), (2, 5)])
def test_variants_are_of_version_2_4(version: tuple[int, int]) -> None:
    data = pcap_header(version=version) + b"".join(records("<", extra("<")))
    assert read_bytes(data)[0] != FRAMES


@orders
@pytest.mark.parametrize(("magic", "unit_ns"), [(IXIA_HARDWARE, 1), (IXIA_SOFTWARE, 1000)])
def test_ixia_pcap(order: str, magic: int, unit_ns: int) -> None:
    """Four bytes more in the file's header."""
    made = b"".join(records(order, b"", unit_ns=unit_ns))
    data = pcap_header(order, magic=magic) + struct.pack(order + "I", len(made)) + made
    assert read_bytes(data) == (FRAMES, None)
    with pytest.raises(FormatError, match="too short: 27 bytes, a pcap header has 28"):
        _core.Capture(data=data[:27])


# ---- snoop --------------------------------------------------------------------------------------


def snoop(*, link: int = 4) -> list[bytes]:
    made = [
        snoop_record(t_ns // SECOND_NS, t_ns % SECOND_NS // 1000, data, wire=wire)
        for t_ns, wire, _link, data in FRAMES
    ]
    return [snoop_header(link=link), *made]


@pytest.mark.parametrize(("link", "expected"), [(0, 1), (4, 1), (2, 6), (8, 10)])
def test_snoop(link: int, expected: int) -> None:
    data = b"".join(snoop(link=link))
    frames = [(t_ns, wire, expected, frame) for t_ns, wire, _link, frame in FRAMES]
    assert read_bytes(data) == (frames, None)
    with _core.Capture(data=data) as capture:
        assert capture.format == "snoop"


@pytest.mark.parametrize("link", [1, 9, 77, 2**32 - 1])
def test_snoop_link_types_without_a_number_in_pcap_stay_unknown(link: int) -> None:
    frames, warning = read_bytes(b"".join(snoop(link=link)))
    assert {number >= 1 << 16 for _t, _wire, number, _data in frames} == {True}
    assert warning is None


def test_snoop_every_cut_ends_with_what_was_whole() -> None:
    parts = snoop()
    ends = [sum(map(len, parts[: i + 1])) for i in range(len(parts))]
    data = b"".join(parts)
    for n, (begin, end) in enumerate(pairwise(ends)):
        for size in range(begin + 1, end):
            frames, warning = read_bytes(data[:size])
            assert frames == FRAMES[:n]
            assert warning is not None
            assert warning.startswith(f"record {n + 1} at byte {begin}: ")


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (snoop_record(1, 0, DATA, captured=(256 << 10) + 1), "a frame of 262145 bytes, more than"),
        (snoop_record(1, 0, DATA, captured=2**32 - 1), "a frame of 4294967295 bytes, more than"),
        (snoop_record(1, 0, DATA, length=83), "a record of 83 bytes for a frame of 60"),
        (snoop_record(1, 0, DATA, length=0), "a record of 0 bytes for a frame of 60"),
        (snoop_record(1, 0, DATA, length=2**32 - 1), "a record of 4294967295 bytes for a frame"),
    ],
)
def test_snoop_record_that_lies_ends_the_capture(record: bytes, problem: str) -> None:
    data = b"".join(snoop()) + record + snoop_record(2, 0, DATA)
    frames, warning = read_bytes(data)
    assert frames == FRAMES
    assert warning is not None
    assert problem in warning


def test_snoop_frame_is_never_longer_than_on_the_wire() -> None:
    [(_, wire, _, data)], _ = read_bytes(snoop_header() + snoop_record(1, 2, DATA, wire=7))
    assert (wire, data) == (len(DATA), DATA)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (snoop_header()[:15], "is too short: 15 bytes, a snoop header has 16"),
        (snoop_header(version=1), "is a snoop of version 1, which is not known"),
        (b"snoopy\0\0" + bytes(8), "is not a capture: neither pcap, pcapng nor snoop"),
    ],
)
def test_snoop_headers_that_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        _core.Capture(data=data)


# ---- peeking ------------------------------------------------------------------------------------


def test_peeking_takes_nothing() -> None:
    data = pcap_header() + b"".join(records("<", b""))
    with _core.Capture(data=data) as capture:
        assert capture.peek_ns() == capture.peek_ns() == FRAMES[0][0]
        assert capture.frames(1) == FRAMES[:1]
        assert capture.peek_ns() == FRAMES[1][0]
        got: Frames = []
        while more := capture.frames(2):
            got += more
        assert got == FRAMES[1:]
        assert capture.peek_ns() is None
        assert capture.frames(1) == []
