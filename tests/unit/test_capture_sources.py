# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The capture reader's sources, paths, streams and bytes, and its filter."""

import errno
import os
import signal
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest
from support.capture_bytes import (
    pcap_header,
    pcap_record,
    read_all,
)
from support.captures import DATA, FIRST_RECORD, FRAME, FRAME_MAX, SECOND_NS, five_seconds, pcapng

from zanon_net import _core
from zanon_net.errors import CaptureError, ConfigError

# ---- sources ------------------------------------------------------------------------------------


def test_format_and_progress(tmp_path: Path) -> None:
    for name, data in {
        "pcap": pcap_header() + 3 * pcap_record("<", 5, 0, DATA),
        "pcapng": pcapng("<", *3 * [five_seconds("<")]),
    }.items():
        path = tmp_path / name
        path.write_bytes(data)
        with _core.Capture(str(path)) as capture:
            assert capture.format == name
            assert capture.bytes_total == len(data)
            assert len(capture.frames(2)) == 2
            assert 0 < capture.bytes_read < len(data)
            assert read_all(capture) == ([FRAME], None)
            assert capture.bytes_read == len(data)


def test_large_file_over_many_reads(tmp_path: Path) -> None:
    sizes = [1, 1514, 9000, 65_000, FRAME_MAX]
    frames = [bytes([i % 251]) * sizes[i % len(sizes)] for i in range(200)]
    path = tmp_path / "large.pcap"
    path.write_bytes(
        pcap_header() + b"".join(pcap_record("<", i, 0, data) for i, data in enumerate(frames))
    )
    with _core.Capture(str(path)) as capture:
        got, warning = read_all(capture, 4096)
    assert warning is None
    assert got == [(i * SECOND_NS, len(data), 1, data) for i, data in enumerate(frames)]


def test_stream_delivers_what_is_there() -> None:
    record = pcap_record("<", 5, 0, DATA)
    reading, writing = os.pipe()
    try:
        os.write(writing, pcap_header() + 3 * record + record[:10])
        with _core.Capture(fd=reading, name="pipe") as capture:
            assert capture.bytes_total == 0
            assert capture.frames(1000) == 3 * [FRAME]
            os.write(writing, record[10:] + record[:20])
            assert capture.frames(1000) == [FRAME]
            os.close(writing)
            writing = -1
            frames, warning = read_all(capture)
            start = FIRST_RECORD + 4 * len(record)
            assert frames == []
            assert warning == f"record 5 at byte {start}: {len(record)} bytes wanted, 20 left"
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)


class StopWaitingError(Exception):
    """What a signal handler raises in place of Ctrl-C's KeyboardInterrupt."""


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize("in_header", [True, False])
def test_signal_ends_a_wait_or_is_survived(stop: bool, in_header: bool) -> None:
    """A handler that raises (Ctrl-C) ends the wait for a stream; after another it goes on."""
    reading, writing = os.pipe()
    head, tail = pcap_header(), pcap_record("<", 5, 0, DATA)

    def handler(*_: object) -> None:
        if stop:
            raise StopWaitingError
        os.write(writing, head + tail if in_header else tail)

    before = signal.signal(signal.SIGUSR1, handler)
    sender = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        if not in_header:
            os.write(writing, head)
        ending = pytest.raises(StopWaitingError) if stop else nullcontext()
        with ending:
            sender.start()
            with _core.Capture(fd=reading, name="pipe") as capture:
                assert capture.frames(10) == [FRAME]
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)
        os.close(reading)
        os.close(writing)


def test_a_signal_before_a_fifo_has_a_writer(tmp_path: Path) -> None:
    """It is an interrupted opener, not an empty capture."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    sender = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        sender.start()
        with pytest.raises(CaptureError) as raised:
            _core.Capture(str(fifo))
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)
    assert raised.value.errno == errno.EINTR


# ---- filter -------------------------------------------------------------------------------------

IPV4_TCP = bytes.fromhex("450000280000400040060000c0a80001c0a80002") + bytes(20)
IPV4_UDP = bytes.fromhex("4500001c0000400040110000c0a80001c0a80002") + bytes(8)
HEADS = {  # of link types, some of which libpcap has other numbers for
    1: bytes(12) + b"\x08\x00",
    12: b"",
    14: b"",
    100: b"\xaa\xaa\x03\0\0\0\x08\x00",
    101: b"",
    108: b"\0\0\0\x02",
    109: b"\x02\0\0\0" + bytes(8),
}


@pytest.mark.parametrize("link_type", HEADS)
def test_filter_by_link_type(link_type: int) -> None:
    head = HEADS[link_type]
    data = pcap_header(link_type=link_type)
    data += pcap_record("<", 5, 0, head + IPV4_TCP) + pcap_record("<", 5, 0, head + IPV4_UDP)
    with _core.Capture(data=data, filter="udp and host 192.168.0.2") as capture:
        frames, warning = read_all(capture)
    assert [frame for *_, frame in frames] == [head + IPV4_UDP]
    assert warning is None


def test_filter_passes_nothing_it_cannot_tell_apart() -> None:
    data = pcap_header(link_type=101) + pcap_record("<", 5, 0, IPV4_TCP)
    with _core.Capture(data=data, filter="ether host 00:00:00:00:00:00") as capture:
        assert read_all(capture) == ([], None)


@pytest.mark.parametrize("expression", ["tcpp", "port", "tcp and", "(tcp", "vlan 70000 x"])
def test_filter_that_is_wrong_is_refused(expression: str) -> None:
    with pytest.raises(ConfigError, match="filter is not valid"):
        _core.Capture(data=pcap_header(), filter=expression)
