# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Mapped captures: the same frames as read ones, and no end of the process where a file is cut."""

import mmap
import os
import re
import signal
import struct
import subprocess
import sys
from functools import partial
from itertools import chain, pairwise
from pathlib import Path

import pytest
from support.capture_bytes import (
    Frames,
    enhanced,
    interface,
    pcap_header,
    pcap_record,
    read_all,
    section,
)
from support.captures import DATA, FRAME
from support.file_map import unmapped
from support.snoop_bytes import snoop_header, snoop_record

from zanon_net import _core
from zanon_net.errors import CaptureError

PART = 2 << 20  # bytes that get their pages at once
RECORD = pcap_record("<", 5, 0, DATA)
HEADER = pcap_header()


def numbered(path: Path, size: int) -> Path:
    """A capture of at least `size` bytes whose frames, of any length, are all different."""
    parts, n, length = [HEADER], 0, len(HEADER)
    while length < size:
        data = struct.pack("<I", n) + bytes(n * 7919 % 3000)
        parts.append(pcap_record("<", n, 0, data))
        length += len(parts[-1])
        n += 1
    path.write_bytes(b"".join(parts))
    return path


def frames_of(path: Path) -> Frames:
    with _core.Capture(str(path)) as capture:
        frames, warning = read_all(capture)
    assert warning is None
    return frames


@pytest.mark.parametrize("parts", [0, 1, 14])
def test_read_files_give_the_same_frames(tmp_path: Path, parts: int) -> None:
    path = numbered(tmp_path / "x.pcap", parts * PART + 4000)
    mapped = frames_of(path)
    with unmapped(tmp_path):
        assert frames_of(path) == mapped
    assert [data[:4] for *_, data in mapped] == [struct.pack("<I", n) for n in range(len(mapped))]


def resident() -> int:
    """Bytes of files that this process has pages of."""
    return 1024 * int(re.findall(r"RssFile:\s+(\d+) kB", Path("/proc/self/status").read_text())[0])


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says what is resident")
def test_pages_behind_the_reader_are_given_back(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(HEADER + pcap_record("<", 5, 0, bytes(9000)) * (40 * PART // 9016))
    before, most = resident(), 0
    with _core.Capture(str(path)) as capture:
        for _ in iter(partial(capture.frames, 512), []):
            most = max(most, resident() - before)
    assert 8 * PART < most < 16 * PART


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_files_that_end_where_a_part_does(tmp_path: Path, extra: int) -> None:
    path = tmp_path / "x.pcap"
    n = PART // len(RECORD) + 2
    path.write_bytes((HEADER + n * RECORD)[: PART + extra])
    with _core.Capture(str(path)) as capture:
        frames, _ = read_all(capture)
    assert len(frames) == (PART + extra - len(HEADER)) // len(RECORD)


def test_file_that_is_cut_before_what_was_read(tmp_path: Path) -> None:
    """What was not taken yet may have become zeros: it is not given out."""
    path = tmp_path / "cut.pcap"
    path.write_bytes(HEADER + 50_000 * RECORD)
    with _core.Capture(str(path)) as capture:
        frames = capture.frames(10)
        os.truncate(path, 4096)
        more = iter(partial(capture.frames, 64), [])
        with pytest.raises(CaptureError, match=r"cut\.pcap was cut while it was read: read it "):
            frames.extend(chain.from_iterable(more))
        with pytest.raises(CaptureError, match="was cut"):
            capture.frames(10)
    assert set(frames) == {FRAME}
    assert len(frames) < 4096 // len(RECORD) + 1


PCAPNG = (section() + interface("<"), enhanced("<", 5, DATA))
SNOOP = (snoop_header(), snoop_record(5, 0, DATA))


@pytest.mark.parametrize(
    ("header", "record"), [(HEADER, RECORD), PCAPNG, SNOOP], ids=["pcap", "pcapng", "snoop"]
)
def test_file_whose_last_page_is_cut(header: bytes, record: bytes, tmp_path: Path) -> None:
    """No page is missing: the kernel fills the last one with zeros, which may end a capture."""
    path = tmp_path / "cut.pcap"
    path.write_bytes(header + 100 * record)
    with _core.Capture(str(path)) as capture:
        assert len(capture.frames(10)) == 10
        size = path.stat().st_size
        os.truncate(path, size - 2 * len(record))
        assert path.stat().st_size // mmap.PAGESIZE == size // mmap.PAGESIZE
        with pytest.raises(CaptureError, match="was cut while it was read: read it again"):
            read_all(capture)


def test_file_that_is_cut_behind_what_was_read(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(HEADER + (3 * PART // len(RECORD)) * RECORD)
    left = PART + 1000
    with _core.Capture(str(path)) as capture:
        assert len(capture.frames(10)) == 10
        os.truncate(path, left)
        frames, warning = read_all(capture)
        assert capture.frames(10) == []
    assert warning is not None
    assert "became shorter" in warning
    assert len(frames) + 10 == (left - len(HEADER)) // len(RECORD)
    assert set(frames) == {FRAME}


def test_more_captures_than_can_be_guarded(tmp_path: Path) -> None:
    path = numbered(tmp_path / "x.pcap", 100_000)
    expected = frames_of(path)
    captures = [_core.Capture(str(path)) for _ in range(70)]
    assert all(read_all(capture) == (expected, None) for capture in captures)


# ---- other users of the signal ------------------------------------------------------------------

OPEN = """
import faulthandler, mmap, os, signal, sys
from zanon_net import _core
path = sys.argv[1]
def open_and_cut():
    capture = _core.Capture(path)
    assert len(capture.frames(10)) == 10
    os.truncate(path, 4096)
    try:
        while capture.frames(64):
            pass
    except _core.CaptureError as error:
        return "was cut" in str(error)
    return "became shorter" in capture.warning
def touch_a_missing_page():
    with open(path, "r+b") as file:
        file.truncate(1 << 20)
        page = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        file.truncate(0)
    print("before", flush=True)
    page[70000]
"""


def run_script(tmp_path: Path, script: str) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "x.pcap"
    path.write_bytes(HEADER + 50_000 * RECORD)
    command = [sys.executable, "-c", OPEN + script, str(path)]
    # AddressSanitizer, where tests run under it, has a handler of its own.
    env = os.environ | {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":handle_sigbus=0"}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)


def test_a_missing_page_of_somebody_else_ends_the_process(tmp_path: Path) -> None:
    done = run_script(tmp_path, "assert open_and_cut(); touch_a_missing_page()")
    assert (done.returncode, done.stdout) == (-signal.SIGBUS, "before\n")


def test_a_handler_of_before_is_still_called(tmp_path: Path) -> None:
    script = "faulthandler.enable(); assert open_and_cut(); touch_a_missing_page()"
    done = run_script(tmp_path, script)
    assert (done.returncode, done.stdout) == (-signal.SIGBUS, "before\n")
    assert done.stderr.count("Fatal Python error: Bus error") == 1


def test_a_handler_of_later_is_left_alone(tmp_path: Path) -> None:
    """Nothing is mapped any more: what was read before the cut stays, and is told of."""
    script = """
_core.Capture(path).close()
faulthandler.enable()
assert open_and_cut()
assert not any(path in line for line in open("/proc/self/maps"))
touch_a_missing_page()
"""
    done = run_script(tmp_path, script)
    assert (done.returncode, done.stdout) == (-signal.SIGBUS, "before\n")
    assert "Fatal Python error: Bus error" in done.stderr


def test_the_map_goes_with_the_capture(tmp_path: Path) -> None:
    path = numbered(tmp_path / "x.pcap", 100_000)

    def is_mapped() -> bool:
        return str(path) in Path("/proc/self/maps").read_text("utf-8")

    with _core.Capture(str(path)) as capture:
        assert capture.frames(1)
        assert is_mapped()
    assert not is_mapped()


def test_what_is_mapped_is_in_no_core_dump(tmp_path: Path) -> None:
    path = numbered(tmp_path / "x.pcap", 100_000)
    with _core.Capture(str(path)) as capture:
        assert capture.frames(1)
        areas = Path("/proc/self/smaps").read_text("utf-8").split("VmFlags:")
    flags = [after for area, after in pairwise(areas) if str(path) in area.split("\n", 1)[1]]
    assert flags
    assert all("dd" in after.split("\n")[0].split() for after in flags)


# ---- where files are not mapped -----------------------------------------------------------------

NOT_MAPPED = {
    "blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGBUS])",
    "limited": "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 46, 1 << 46))",
}


@pytest.mark.parametrize("why", NOT_MAPPED)
def test_files_are_read_where_mapping_could_hurt(tmp_path: Path, why: str) -> None:
    script = """
capture = _core.Capture(path)
assert len(capture.frames(10)) == 10
assert not any(path in line for line in open("/proc/self/maps"))
assert open_and_cut()
"""
    done = run_script(tmp_path, NOT_MAPPED[why] + "\n" + script)
    assert (done.returncode, done.stderr) == (0, "")


# ---- the signal from another program ------------------------------------------------------------

SENT = "_core.Capture(path).close(); os.kill(os.getpid(), signal.SIGBUS); print('after')"
SENT_TWICE = SENT + "; os.kill(os.getpid(), signal.SIGBUS); print('after all')"


def test_a_signal_that_is_sent_ends_the_process(tmp_path: Path) -> None:
    done = run_script(tmp_path, SENT)
    assert (done.returncode, done.stdout) == (-signal.SIGBUS, "")


def test_a_signal_that_is_sent_and_ignored_is_ignored(tmp_path: Path) -> None:
    done = run_script(tmp_path, "signal.signal(signal.SIGBUS, signal.SIG_IGN); " + SENT_TWICE)
    assert (done.returncode, done.stdout) == (0, "after\nafter all\n")


def test_a_missing_page_ends_a_process_that_ignores_the_signal(tmp_path: Path) -> None:
    script = "signal.signal(signal.SIGBUS, signal.SIG_IGN); assert open_and_cut()"
    done = run_script(tmp_path, script + "; touch_a_missing_page()")
    assert (done.returncode, done.stdout) == (-signal.SIGBUS, "before\n")


def test_what_is_sent_is_no_address(tmp_path: Path) -> None:
    """Behind a signal that was sent, a file that is mapped is still guarded."""
    script = """
signal.signal(signal.SIGBUS, lambda *_: print("seen", flush=True))
mapped = _core.Capture(path)
os.kill(os.getpid(), signal.SIGBUS)
assert open_and_cut()
"""
    done = run_script(tmp_path, script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "seen\n", "")
